// SPDX-License-Identifier: GPL-2.0-only
/*
 * Putting a line into maps.conf or taking one out.
 *
 * The parser remembers where each line begins and ends in its file, so an edit is: the bytes before, the new line or nothing, the bytes after.
 * Comments, order, spacing and lines with mistakes stay as they are; so do, in a line that is replaced, the options that say how the mapping is
 * started and presented, unless the new one says any. The files are read again under the lock; what another one wrote in
 * the meantime is not lost.
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
#include <unistd.h>
#include "tools/maps_edit.h"
#include "tools/say.h"
#include "tools/sysfs.h"

#define EDIT_LABEL	"security.selinux"

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
		say_mend("only root may change it");
	return say_exit_of(err);
}

/* The new file is to have the rights of the old one. */
static void edit_inherit(int fd, const char *path)
{
	char label[256];
	struct stat st;
	ssize_t n;

	if (stat(path, &st)) {
		fchmod(fd, 0644);
		return;
	}
	if (fchown(fd, st.st_uid, st.st_gid))
		say_more("%s: the owner cannot be kept: %s", path, strerror(errno));
	fchmod(fd, st.st_mode & 07777);
	n = getxattr(path, EDIT_LABEL, label, sizeof(label));
	if (n > 0 && fsetxattr(fd, EDIT_LABEL, label, (size_t)n, 0))
		say_more("%s: the label cannot be kept: %s", path, strerror(errno));
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

/* What a link stands for is replaced, not the link: it may lead to where the administrator keeps all his files. */
static int edit_write(const char *path, const char *text, size_t len)
{
	char *real = realpath(path, NULL);
	struct stat st;
	int rc;

	if (!real && !lstat(path, &st) && S_ISLNK(st.st_mode))
		return edit_failed(path, "the link leads nowhere");
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

/* On the directory that holds the files; -1 when it cannot be had. */
static int edit_lock(const char *file)
{
	char *path = file ? say_dup(file) : sysfs_root(MAPS_DIR "/" MAPS_MAIN), *dir;
	int fd;

	edit_mkdirs(path);
	dir = edit_dir(path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX)) {
		edit_failed(dir, "cannot be locked");
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	free(path);
	free(dir);
	return fd;
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

/* ---- lines ---- */

static void edit_append(char *text, size_t *n, const char *more, size_t len)
{
	if (len)
		memcpy(text + *n, more, len);
	*n += len;
}

static int edit_splice(const struct maps_file *f, size_t off, size_t len, const char *line, bool reload)
{
	bool open_end = line && off == f->len && f->len && f->text[f->len - 1] != '\n';
	FILE *told = sysfs_dry_run_stderr ? stderr : stdout;
	size_t n = 0;
	char *text;
	int rc;

	text = say_alloc(f->len + (line ? strlen(line) : 0) + 3);
	edit_append(text, &n, f->text, off);
	if (open_end)
		edit_append(text, &n, "\n", 1);
	if (line) {
		edit_append(text, &n, line, strlen(line));
		edit_append(text, &n, "\n", 1);
	}
	edit_append(text, &n, f->text + off + len, f->len - off - len);
	if (sysfs_dry_run) {
		fprintf(told, "%s: ", f->path);
		if (line)
			fprintf(told, "%s\n", line);
		else
			fprintf(told, "without: %.*s%s", (int)len, f->text + off, len && f->text[off + len - 1] == '\n' ? "" : "\n");
		free(text);
		return SAY_DONE;
	}
	edit_mkdirs(f->path);
	rc = edit_write(f->path, text, n);
	free(text);
	if (!rc)
		edit_reload(reload);
	return rc;
}

/* The comment behind the line to be replaced: it is the administrator's. */
static char *edit_with_comment(const struct maps_file *f, const struct maps_entry *e, char *line)
{
	size_t end = e->line.off + e->line.len, i, quoted = 0;
	char *longer;

	while (end > e->line.off && (f->text[end - 1] == '\n' || f->text[end - 1] == '\r'))
		end--;
	for (i = e->line.off; i < end; i++) {
		if (f->text[i] == '\n')
			quoted = 0;
		if (f->text[i] == '\\' && quoted)
			i++;
		else if (f->text[i] == '"')
			quoted = !quoted;
		else if (f->text[i] == '#' && !quoted && i > e->line.off && (f->text[i - 1] == ' ' || f->text[i - 1] == '\t'))
			break;
	}
	if (i >= end)
		return line;
	longer = say_fmt("%s  %.*s", line, (int)(end - i), f->text + i);
	free(line);
	return longer;
}

static struct maps_entry *edit_find(struct maps *m, const char *name)
{
	struct maps_entry *found = NULL;
	size_t i;

	/* Lines with mistakes count: the new one is to take their place. The last of a name is the one that is used. */
	for (i = 0; i < m->nr; i++)
		if (!strcmp(m->entries[i].name, name))
			found = &m->entries[i];
	return found;
}

/* On a command line these options cannot be said; then the old line's are meant. What is in @e stays the old entry's. */
static void edit_keep(struct maps_entry *e, const struct maps_entry *old)
{
	if (e->given || e->nr_own)
		return;
	e->given = old->given;
	memcpy(e->text, old->text, sizeof(e->text));
	memcpy(e->number, old->number, sizeof(e->number));
	e->own = old->own;
	e->nr_own = old->nr_own;
}

/* A file that is not there yet is an empty one. */
static struct maps *edit_load(const char *file)
{
	return maps_load(file && access(file, F_OK) ? "/dev/null" : file);
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
		rc = say_error(SAY_USAGE, "saved, but maps.conf has mistakes now, and lines with mistakes are left out");
		say_mend("change them, then: ibnbd maps check");
	}
	maps_free(m);
	return rc;
}

/* The same device of the same session in two lines: neither could be told from the other. */
static int edit_twice(struct maps *m, const struct maps_entry *e)
{
	const struct maps_entry *other = maps_find_device(m, e->map.sessname, e->map.device_path);

	if (!other || !strcmp(other->name, e->name))
		return SAY_DONE;
	say_error(SAY_ALREADY, "cannot save %s: maps.conf has %s of session %s already, as %s", e->name, e->map.device_path, e->map.sessname,
		  other->name);
	say_mend("ibnbd maps remove %s, if that is the old name", other->name);
	return SAY_ALREADY;
}

int maps_edit_save(const struct maps_entry *new_entry, const char *file, bool reload)
{
	struct maps_entry e = *new_entry, *old;
	char *line, *path = NULL;
	struct maps_file new = { 0 };
	struct maps *m;
	int lock, rc;

	lock = sysfs_dry_run ? -1 : edit_lock(file);
	if (lock < 0 && !sysfs_dry_run)
		return SAY_PERMISSION;
	m = edit_load(file);
	old = edit_find(m, e.name);
	if (old)
		edit_keep(&e, old);
	line = maps_line(&e);
	rc = edit_twice(m, &e);
	if (!rc && old) {
		struct maps_file *f = &m->files[old->line.file];
		char *now = maps_line(old);

		if (!old->bad && !strcmp(now, line)) {
			rc = SAY_DONE;
		} else {
			line = edit_with_comment(f, old, line);
			rc = edit_splice(f, old->line.off, old->line.len, line, reload);
		}
		free(now);
	} else if (!rc) {
		struct maps_file *f = NULL;
		size_t i;

		path = file ? say_dup(file) : sysfs_root(MAPS_DIR "/" MAPS_SAVED);
		for (i = 0; i < m->nr_files; i++)
			if (!strcmp(m->files[i].path, path))
				f = &m->files[i];
		if (!f) {
			new.path = path;
			new.text = (char *)(file ? "" : edit_head);
			new.len = strlen(new.text);
			f = &new;
		}
		rc = edit_splice(f, f->len, 0, line, reload);
	}
	if (!rc)
		say_more("saved: %s", line);
	free(path);
	free(line);
	maps_free(m);
	if (lock >= 0)
		close(lock);
	return rc;
}

static int edit_remove(const char *name, const char *session, const char *device_path, const char *file, bool reload)
{
	struct maps_entry *e = NULL;
	struct maps *m;
	int lock, rc;
	size_t i;

	lock = sysfs_dry_run ? -1 : edit_lock(file);
	if (lock < 0 && !sysfs_dry_run)
		return SAY_PERMISSION;
	m = maps_load(file);
	e = name ? edit_find(m, name) : maps_find_device(m, session, device_path);
	rc = e ? edit_splice(&m->files[e->line.file], e->line.off, e->line.len, NULL, reload) : SAY_NOTHING;
	for (i = 0; !rc && i < m->nr; i++)
		if (m->entries[i].overridden && !strcmp(m->entries[i].name, e->name))
			say_warn("the line of %s in %s counts again", e->name, m->files[m->entries[i].line.file].path);
	maps_free(m);
	if (lock >= 0)
		close(lock);
	return rc;
}

int maps_edit_remove(const char *name, const char *file, bool reload)
{
	return edit_remove(name, NULL, NULL, file, reload);
}

int maps_edit_remove_device(const char *session, const char *device_path, const char *file, bool reload)
{
	int rc = edit_remove(NULL, session, device_path, file, reload);

	return rc == SAY_NOTHING ? SAY_DONE : rc;
}
