// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files are read under the lock, so a change that another process wrote in the meantime is not
 * lost. maps_saved.c computes the new texts. Nothing is changed while a file of maps.conf is
 * refused: its content is unknown then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/conf/file.h"
#include "tools/conf/maps_saved.h"
#include "tools/conf/maps_store.h"
#include "tools/out/escape.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define STORE_LOCK	"/run/ibnbd/maps.lock"
#define STORE_PATIENCE	10	/* seconds for the change of another process */

static int store_failed(const char *path, const char *what, int err)
{
	say_error(0, "%s: %s: %s", path, what, strerror(err));
	if (err == EACCES || err == EPERM)
		say_hint("only root may change it");
	return say_exit_of(err);
}

/* ---- the lock ---- */

/*
 * Any process that can open a file can lock it, so the lock is a file that only root may open. A
 * user who changes a file of her own, with --file, locks its directory instead.
 */
static int store_lock_open(const char *file, char **path, bool *own)
{
	char *real __free(free) = file ? realpath(file, NULL) : NULL;
	int fd;

	*path = sysfs_root(STORE_LOCK);
	file_mkdirs(*path);
	fd = open(*path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	*own = fd < 0 && file && geteuid();
	if (*own) {
		free(*path);
		*path = file_dir_of(real ? real : file);
		fd = open(*path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return fd;
}

/* "process 12 (ibnbd maps save --all)", as far as it can be known. Allocated. */
static char *store_lock_holder(int fd, pid_t *pid)
{
	struct flock lock = { .l_type = F_WRLCK };
	char *path __free(free) = NULL, text[128];
	int cmdline __free(say_close) = -1;
	ssize_t n, i;

	*pid = !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK ? lock.l_pid : 0;
	if (*pid <= 0)		/* 0: one of another PID namespace */
		return say_dup("a process that cannot be seen from here");
	path = say_fmt("/proc/%d/cmdline", *pid);
	cmdline = open(path, O_RDONLY | O_CLOEXEC);
	n = read(cmdline, text, sizeof(text));
	while (n > 0 && !text[n - 1])
		n--;
	for (i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	return n > 0 ? say_fmt("process %d (%.*s)", *pid, (int)n, text) :
		       say_fmt("process %d", *pid);
}

static int store_lock_held(int fd, const char *path)
{
	pid_t pid;
	char *who __free(free) = store_lock_holder(fd, &pid);

	say_error(SAY_BUSY, "%s: %s has held the lock for %u s; nothing was saved", path, who,
		  STORE_PATIENCE);
	return pid > 0 ? say_hint("try again when it has ended; if it hangs: kill %d", pid) :
			 say_hint("try again when it has ended: fuser -v %s", path);
}

/*
 * Sets *@fd, which holds the lock, if the exit status is 0, until it is closed; -1 in a dry run.
 */
static int store_lock(const char *file, int *fd)
{
	char *maps __free(free) = file ? say_dup(file) : sysfs_root(MAPS_DIR "/" MAPS_MAIN),
	     *path __free(free) = NULL;
	bool own;
	int err;

	*fd = -1;
	if (sysfs_dry_run)
		return SAY_DONE;
	file_mkdirs(maps);
	*fd = store_lock_open(file, &path, &own);
	err = *fd < 0 ? errno : file_lock(*fd, own, STORE_PATIENCE);
	if (err == EAGAIN)
		return store_lock_held(*fd, path);
	return err ? store_failed(path, "cannot be locked", err) : SAY_DONE;
}

static void store_reload(bool reload)
{
	if (!reload || sysfs_redirected() || access("/run/systemd/system", F_OK))
		return;
	if (SYSFS_RUN("systemctl", "daemon-reload"))
		say_warn("systemctl daemon-reload failed; systemd does not know the change yet");
}

/* ---- changes ---- */

/**
 * struct store - a change of saved mappings, under the lock
 * @old: the index of 50-saved.conf, whose lines get files of their own; SIZE_MAX = not
 * @unsplit: why they do not, or NULL
 */
struct store {
	struct maps *m;
	struct maps_saved s;
	char *dir;
	size_t old;
	char *unsplit, *hint;
	int lock;
};

static int store_usable(const struct maps *m)
{
	if (!maps_say_refused(m))
		return SAY_DONE;
	say_error(SAY_USAGE, "maps.conf is not changed while a file of it is not used");
	return say_hint("ibnbd maps check");
}

static int store_refused(const char *why, const char *hint)
{
	say_error(SAY_USAGE, "maps.conf is not changed: %s", why);
	if (hint)
		say_hint("%s", hint);
	return SAY_USAGE;
}

/* A named file that does not exist yet counts as empty. Call store_end() also after an error. */
static int store_begin(struct store *t, const char *file)
{
	struct stat st;
	int rc;

	*t = (struct store){ .old = SIZE_MAX, .lock = -1 };
	rc = store_lock(file, &t->lock);
	if (rc)
		return rc;
	t->dir = sysfs_root(MAPS_DIR "/" MAPS_MAIN ".d");
	t->m = file && lstat(file, &st) && errno == ENOENT ? say_alloc(sizeof(*t->m)) :
							     maps_load(file);
	maps_saved_init(&t->s, t->m, t->dir);
	rc = store_usable(t->m);
	if (!rc && !file)
		t->unsplit = maps_saved_split(&t->s, &t->old, &t->hint);
	return rc;
}

static int store_end(struct store *t, int rc)
{
	if (t->m) {
		maps_saved_free(&t->s);
		maps_free(t->m);
	}
	free(t->dir);
	free(t->unsplit);
	free(t->hint);
	if (t->lock >= 0)
		close(t->lock);
	return rc;
}

/* Print what a dry run does not write. */
static void store_tell(const struct store *t)
{
	FILE *told = sysfs_dry_run_stderr ? stderr : stdout;
	const struct maps *m = t->m;

	for (size_t i = 0; i < t->s.nr; i++) {
		const struct maps_entry *was = i < m->nr ? &m->entries[i] : NULL,
					*is = &t->s.will[i];
		char *before __free(free) = was ? maps_line(was) : say_dup(""),
		     *now __free(free) = maps_line(is),
		     *without __free(free) = escape_unseen(before),
		     *with __free(free) = escape_unseen(now);

		if (was && was->line.file != is->line.file)
			fprintf(told, "%s: without: %s\n", m->files[was->line.file].path, without);
		if (is->line.file != MAPS_SAVED_GONE && t->s.touched[is->line.file] &&
		    (!was || was->line.file != is->line.file || strcmp(before, now)))
			fprintf(told, "%s: %s\n", m->files[is->line.file].path, with);
	}
}

/* The old file is kept under another name: it may hold comments. */
static int store_take_away(const struct store *t, size_t file)
{
	const char *path = t->m->files[file].path;
	char *as __free(free) = file == t->old ? say_fmt("%s.old", path) : NULL;
	int err = file_remove(path, as);

	if (!err && as)
		say_warn("each mapping of %s has a file of its own now; %s is not read", path, as);
	return err ? store_failed(path, "cannot be removed", err) : SAY_DONE;
}

/* Files whose lines are elsewhere now are removed last. */
static int store_write(const struct store *t)
{
	int rc = SAY_DONE, err;

	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t file = 0; !rc && file < t->m->nr_files; file++) {
			const char *path = t->m->files[file].path;
			char *text __free(free) =
				t->s.touched[file] ? maps_saved_text(&t->s, file) : NULL;

			if (text && !pass) {
				file_mkdirs(path);
				err = file_replace(path, text, strlen(text));
				if (err)
					rc = store_failed(path, "cannot be written", err);
			} else if (t->s.touched[file] && !text && pass &&
				   file < t->s.loaded) {
				rc = store_take_away(t, file);
			}
		}
	}
	return rc;
}

/* Write all files of the change, unless another mapping would lose its line. */
static int store_do(struct store *t, bool reload)
{
	char *lost __free(free) = NULL, *hint __free(free) = NULL;
	size_t file;
	int rc;

	for (file = 0; file < t->m->nr_files && !t->s.touched[file];)
		file++;
	if (file == t->m->nr_files)
		return SAY_DONE;
	lost = maps_saved_lost(&t->s, &hint);
	if (lost)
		return store_refused(lost, hint);
	if (sysfs_dry_run) {
		store_tell(t);
		return SAY_DONE;
	}
	if (t->unsplit) {
		say_warn("its mappings get no files of their own: %s", t->unsplit);
		say_hint("%s", t->hint);
	}
	rc = store_write(t);
	if (!rc)
		store_reload(reload);
	return rc;
}

/* Refuse two lines for the same device of the same session: they could not be told apart. */
static int store_twice(struct maps *m, const struct maps_entry *e)
{
	const struct maps_entry *other = maps_find_device(m, e->map.sessname, e->map.device_path);

	if (!other || !strcmp(other->name, e->name))
		return SAY_DONE;
	say_error(SAY_ALREADY, "cannot save %s: maps.conf has %s of session %s already, as %s",
		  e->name, e->map.device_path, e->map.sessname, other->name);
	return say_hint("ibnbd maps remove %s, if that is the old name", other->name);
}

int maps_store_save(const struct maps_entry *new_entry, const char *file, bool live, bool reload)
{
	struct maps_entry e = *new_entry;
	struct store t;
	char *why __free(free) = NULL, *hint __free(free) = NULL, *line __free(free) = NULL;
	int rc = store_begin(&t, file);

	rc = rc ? rc : store_twice(t.m, &e);
	if (!rc) {
		why = maps_saved_put(&t.s, &e, file, live, &hint);
		rc = why ? store_refused(why, hint) : store_do(&t, reload);
	}
	if (!rc) {
		line = maps_line(&e);
		say_more("saved: %s", line);
	}
	return store_end(&t, rc);
}

int maps_store_remove(const char *name, const char *file, bool reload)
{
	char *why __free(free) = NULL, *hint __free(free) = NULL;
	struct store t;
	int rc = store_begin(&t, file);
	struct maps_entry *e = rc ? NULL : maps_saved_find(&t.s, name);

	if (!e)
		return store_end(&t, rc ? rc : SAY_NOTHING);
	why = maps_saved_remove(&t.s, e, &hint);
	rc = why ? store_refused(why, hint) : store_do(&t, reload);
	for (size_t i = 0; !rc && i < t.m->nr; i++)
		if (t.m->entries[i].overridden && !strcmp(t.m->entries[i].name, name))
			say_warn("the line of %s in %s counts again", name,
				 t.m->files[t.m->entries[i].line.file].path);
	return store_end(&t, rc);
}

int maps_store_forget(const char *session, const char *device_path, const char *file, bool reload)
{
	struct maps *m __free(maps_free) = maps_load(file);
	struct maps_entry *e = maps_find_device(m, session, device_path);
	int rc = store_usable(m);

	if (!rc && e)
		rc = maps_store_remove(e->name, file, reload);
	return rc == SAY_NOTHING ? SAY_DONE : rc;
}

int maps_store_tidy(bool reload)
{
	struct store t;
	int rc = store_begin(&t, NULL);

	if (!rc)
		rc = t.unsplit ? store_refused(t.unsplit, t.hint) : store_do(&t, reload);
	return store_end(&t, rc);
}
