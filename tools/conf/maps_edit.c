// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puts a line into maps.conf or takes one out. The files are read again under the lock, so a change
 * that somebody else wrote in the meantime is not lost. maps_plan.c computes the new texts. A
 * change that would make another mapping lose its line is refused. Nothing is changed while a file
 * of maps.conf is refused: its content is unknown then.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "tools/conf/maps_edit.h"
#include "tools/conf/maps_plan.h"
#include "tools/out/escape.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define EDIT_LOCK	"/run/ibnbd/maps.lock"
#define EDIT_PATIENCE	10	/* seconds for somebody else's change */

/* Rights and labels that stat(2) does not show, and that the new file gets too. */
static const char *const edit_kept[] = { "security.selinux", "system.posix_acl_access" };

static const char edit_head[] =
	"# Mappings saved by `ibnbd map --save` and `ibnbd maps save`. They may be changed by hand; see ibnbd-maps.conf(5).\n";

/* ---- writing a file ---- */

static char *edit_dir(const char *path)
{
	char *copy = say_dup(path), *dir = say_dup(dirname(copy));

	free(copy);
	return dir;
}

static int edit_failed(const char *path, const char *what)
{
	int err = errno;

	say_error(0, "%s: %s: %s", path, what, strerror(err));
	if (err == EACCES || err == EPERM)
		say_hint("only root may change it");
	return say_exit_of(err);
}

/* Give the new file the rights of the old one. */
static void edit_inherit(int fd, const char *path)
{
	char value[1024];
	struct stat st;
	ssize_t n;
	size_t i;

	if (stat(path, &st)) {
		fchmod(fd, 0644);
		return;
	}
	if (fchown(fd, st.st_uid, st.st_gid))
		say_more("%s: the owner cannot be kept: %s", path, strerror(errno));
	fchmod(fd, st.st_mode & 07777);
	for (i = 0; i < ARRAY_SIZE(edit_kept); i++) {
		n = getxattr(path, edit_kept[i], value, sizeof(value));
		if (n > 0 && fsetxattr(fd, edit_kept[i], value, (size_t)n, 0))
			say_more("%s: %s cannot be kept: %s", path, edit_kept[i], strerror(errno));
	}
}

static bool edit_write_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	for (; len; text += n, len -= (size_t)n) {
		n = write(fd, text, len);
		if (n < 0)
			return false;
	}
	return true;
}

static int edit_replace(const char *path, const char *text, size_t len)
{
	char *temp = say_fmt("%s.XXXXXX", path), *dir;
	int fd = mkostemp(temp, O_CLOEXEC), dirfd, rc = SAY_DONE;

	if (fd < 0) {
		rc = edit_failed(path, "cannot be written");
		free(temp);
		return rc;
	}
	edit_inherit(fd, path);
	if (!edit_write_all(fd, text, len) || fsync(fd)) {
		rc = edit_failed(path, "cannot be written");
		close(fd);
	} else if (close(fd) || rename(temp, path)) {
		rc = edit_failed(path, "cannot be replaced");
	}
	if (rc) {
		unlink(temp);
	} else {
		dir = edit_dir(path);
		dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dirfd >= 0) {
			fsync(dirfd);
			close(dirfd);
		}
		free(dir);
	}
	free(temp);
	return rc;
}

/*
 * Replace the file that a link leads to, not the link: the administrator may keep all such files in
 * another place.
 */
static int edit_write(const char *path, const char *text, size_t len)
{
	char *real = realpath(path, NULL);
	struct stat st;
	int rc;

	if (!real && !lstat(path, &st) && S_ISLNK(st.st_mode))
		return edit_failed(path, "the link leads nowhere");
	if (real && !stat(real, &st) && !S_ISREG(st.st_mode)) {
		free(real);
		return say_error(SAY_FAILED, "%s: cannot be written: no file stands there", path);
	}
	rc = edit_replace(real ? real : path, text, len);
	free(real);
	return rc;
}

/* ---- the lock ---- */

static void edit_mkdirs(const char *path)
{
	char *copy = say_dup(path), *p;

	for (p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(copy, 0755);
		*p = '/';
	}
	free(copy);
}

/*
 * Who may open a file can lock it, so what is locked is a file that root alone may open. A user who
 * changes a file of her own, with --file, cannot: she locks its directory.
 */
static int edit_lock_open(const char *file, char **path, bool *own)
{
	char *real = file ? realpath(file, NULL) : NULL, *in;
	int fd;

	*path = sysfs_root(EDIT_LOCK);
	edit_mkdirs(*path);
	fd = open(*path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	*own = fd < 0 && file && geteuid();
	if (*own) {
		in = edit_dir(real ? real : file);
		free(*path);
		*path = in;
		fd = open(in, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	free(real);
	return fd;
}

static bool edit_lock_try(int fd, bool own)
{
	struct flock lock = { .l_type = F_WRLCK };

	return own ? !flock(fd, LOCK_EX | LOCK_NB) : !fcntl(fd, F_SETLK, &lock);
}

/* "process 12 (ibnbd maps save --all)", as far as it can be known. Allocated. */
static char *edit_lock_holder(int fd, pid_t *pid)
{
	struct flock lock = { .l_type = F_WRLCK };
	char *path, text[128];
	ssize_t n = 0, i;

	*pid = !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK ? lock.l_pid : 0;
	if (*pid <= 0)		/* 0: one of another PID namespace */
		return say_dup("a process that cannot be seen from here");
	path = say_fmt("/proc/%d/cmdline", *pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text));
		close(fd);
	}
	while (n > 0 && !text[n - 1])
		n--;
	for (i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	return n > 0 ? say_fmt("process %d (%.*s)", *pid, (int)n, text) :
		       say_fmt("process %d", *pid);
}

static int edit_lock_held(int fd, const char *path)
{
	pid_t pid;
	char *who = edit_lock_holder(fd, &pid);

	say_error(SAY_BUSY, "%s: %s has held the lock for %u s; nothing was saved", path, who,
		  EDIT_PATIENCE);
	if (pid > 0)
		say_hint("try again when it has ended; if it hangs: kill %d", pid);
	else
		say_hint("try again when it has ended: fuser -v %s", path);
	free(who);
	return SAY_BUSY;
}

/* Sets *@fd, which holds the lock until it is closed; -1 in a dry run. Returns the exit status. */
static int edit_lock(const char *file, int *fd)
{
	char *maps = file ? say_dup(file) : sysfs_root(MAPS_DIR "/" MAPS_MAIN), *path;
	const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
	unsigned int tries = EDIT_PATIENCE * 20;
	int rc = SAY_DONE;
	bool own, got;

	*fd = -1;
	if (sysfs_dry_run) {
		free(maps);
		return SAY_DONE;
	}
	edit_mkdirs(maps);
	free(maps);
	*fd = edit_lock_open(file, &path, &own);
	for (got = *fd >= 0 && edit_lock_try(*fd, own);
	     !got && *fd >= 0 && (errno == EAGAIN || errno == EACCES) && tries; tries--) {
		nanosleep(&pause, NULL);
		got = edit_lock_try(*fd, own);
	}
	if (!got)
		rc = tries ? edit_failed(path, "cannot be locked") : edit_lock_held(*fd, path);
	if (!got && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	free(path);
	return rc;
}

static void edit_reload(bool reload)
{
	char *const argv[] = { (char *)"systemctl", (char *)"daemon-reload", NULL };
	int status;
	pid_t pid;

	if (!reload || sysfs_redirected() || access("/run/systemd/system", F_OK))
		return;
	pid = fork();
	if (!pid) {
		execvp("systemctl", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		say_warn("systemctl daemon-reload failed; systemd does not know the change yet");
}

/* ---- changes ---- */

/* A named file that does not exist yet counts as empty. */
static struct maps *edit_load(const char *file)
{
	struct stat st;

	return file && lstat(file, &st) && errno == ENOENT ? say_alloc(sizeof(struct maps)) :
							     maps_load(file);
}

size_t maps_edit_errors(const char *file)
{
	struct maps *m = edit_load(file);
	size_t nr = m->nr_errors;

	maps_free(m);
	return nr;
}

int maps_edit_check(const char *file, size_t before)
{
	struct maps *m = edit_load(file);
	int rc = SAY_DONE;
	size_t i;

	for (i = 0; m->nr_errors > before && i < m->nr_diags; i++)
		if (m->diags[i].level == MAPS_ERROR)
			maps_print_diag(m, &m->diags[i], stderr);
	if (m->nr_errors > before) {
		rc = say_error(
			SAY_USAGE,
			"saved, but maps.conf has mistakes now, and lines with mistakes are left out");
		say_hint("change them, then: ibnbd maps check");
	}
	maps_free(m);
	return rc;
}

/* Refuse two lines for the same device of the same session: they could not be told apart. */
static int edit_twice(struct maps *m, const struct maps_entry *e)
{
	const struct maps_entry *other = maps_find_device(m, e->map.sessname, e->map.device_path);

	if (!other || !strcmp(other->name, e->name))
		return SAY_DONE;
	say_error(SAY_ALREADY, "cannot save %s: maps.conf has %s of session %s already, as %s",
		  e->name, e->map.device_path, e->map.sessname, other->name);
	say_hint("ibnbd maps remove %s, if that is the old name", other->name);
	return SAY_ALREADY;
}

static int edit_usable(const struct maps *m)
{
	if (!maps_say_refused(m))
		return SAY_DONE;
	say_error(SAY_USAGE, "maps.conf is not changed while a file of it is not used");
	say_hint("ibnbd maps check");
	return SAY_USAGE;
}

/* Print what a dry run does not write. */
static void edit_tell(const struct maps *m, const struct maps_plan *p)
{
	FILE *told = sysfs_dry_run_stderr ? stderr : stdout;
	size_t i;

	for (i = 0; i < p->nr; i++) {
		const struct maps_change *c = &p->changes[i];
		const struct maps_file *f = &m->files[c->at.file];
		char *old = say_fmt("%.*s", (int)c->at.len, f->text + c->at.off);
		char *shown = escape_unseen(c->line ? c->line : old);
		size_t len = strlen(shown);

		fprintf(told, "%s: %s%s%s", f->path, c->line ? "" : "without: ", shown,
			len && shown[len - 1] == '\n' ? "" : "\n");
		free(shown);
		free(old);
	}
}

static int edit_file(const struct maps *m, const struct maps_plan *p, size_t file)
{
	size_t len;
	char *text = maps_plan_text(p, m, file, &len);
	int rc;

	edit_mkdirs(m->files[file].path);
	rc = edit_write(m->files[file].path, text, len);
	free(text);
	return rc;
}

/*
 * Write all files of the plan, unless another mapping would lose its line. The file of the change
 * that was asked for is written last, after the changes that other lines need.
 */
static int edit_do(struct maps *m, const struct maps_plan *p, bool reload)
{
	struct maps *after;
	size_t i, file;
	char *lost;
	int rc = SAY_DONE;

	if (!p->nr)
		return SAY_DONE;
	after = maps_plan_after(p, m);
	lost = maps_plan_lost(p, m, after);
	maps_free(after);
	if (lost) {
		say_error(SAY_USAGE, "maps.conf is not changed: %s", lost);
		say_hint("change it by hand, then: ibnbd maps check");
		free(lost);
		return SAY_USAGE;
	}
	if (sysfs_dry_run) {
		edit_tell(m, p);
		return SAY_DONE;
	}
	for (file = 0; !rc && file < m->nr_files; file++) {
		for (i = 1; i < p->nr && p->changes[i].at.file != file;)
			i++;
		if (i < p->nr && file != p->changes[0].at.file)
			rc = edit_file(m, p, file);
	}
	if (!rc)
		rc = edit_file(m, p, p->changes[0].at.file);
	if (!rc)
		edit_reload(reload);
	return rc;
}

/* The file that gets a line of a new name. Returns its index. */
static size_t edit_new_file(struct maps *m, struct maps_plan *p, const char *file)
{
	char *path = file ? say_dup(file) : sysfs_root(MAPS_DIR "/" MAPS_SAVED);
	size_t i;

	for (i = 0; i < m->nr_files && strcmp(m->files[i].path, path);)
		i++;
	if (i == m->nr_files)
		p->made =
			maps_add_file(m, path, file ? "" : edit_head, file ? 0 : strlen(edit_head));
	free(path);
	return i;
}

int maps_edit_save(const struct maps_entry *new_entry, const char *file, bool reload)
{
	struct maps_entry e = *new_entry, *old;
	struct maps_plan plan;
	struct maps *m;
	char *line;
	int lock, rc;

	rc = edit_lock(file, &lock);
	if (rc)
		return rc;
	maps_plan_init(&plan);
	m = edit_load(file);
	old = maps_plan_find(m, e.name);
	rc = edit_usable(m);
	if (!rc)
		rc = edit_twice(m, &e);
	if (!rc) {
		maps_plan_save(&plan, m, &e, old, old ? 0 : edit_new_file(m, &plan, file));
		rc = edit_do(m, &plan, reload);
	}
	if (!rc) {
		line = maps_line(&e);
		say_more("saved: %s", line);
		free(line);
	}
	maps_plan_free(&plan);
	maps_free(m);
	if (lock >= 0)
		close(lock);
	return rc;
}

static int edit_remove(const char *name, const char *session, const char *device_path,
		       const char *file, bool reload)
{
	struct maps_entry *e = NULL;
	struct maps_plan plan;
	struct maps *m;
	int lock, rc;
	size_t i;

	rc = edit_lock(file, &lock);
	if (rc)
		return rc;
	maps_plan_init(&plan);
	m = maps_load(file);
	e = name ? maps_plan_find(m, name) : maps_find_device(m, session, device_path);
	rc = edit_usable(m);
	if (!rc && !e)
		rc = SAY_NOTHING;
	if (!rc) {
		maps_plan_remove(&plan, m, e);
		rc = edit_do(m, &plan, reload);
	}
	for (i = 0; !rc && i < m->nr; i++)
		if (m->entries[i].overridden && !strcmp(m->entries[i].name, e->name))
			say_warn("the line of %s in %s counts again", e->name,
				 m->files[m->entries[i].line.file].path);
	maps_plan_free(&plan);
	maps_free(m);
	if (lock >= 0)
		close(lock);
	return rc;
}

int maps_edit_remove(const char *name, const char *file, bool reload)
{
	return edit_remove(name, NULL, NULL, file, reload);
}

int maps_edit_remove_device(const char *session, const char *device_path, const char *file,
			    bool reload)
{
	int rc = edit_remove(NULL, session, device_path, file, reload);

	return rc == SAY_NOTHING ? SAY_DONE : rc;
}
