// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads files that people write, all in the same way.
 *
 * A file is read whole. A file that is too long, that changes while it is read, or that fails in
 * the middle is refused; the part that was read is never used. If something else stands in its
 * place (a directory, a FIFO, a link that leads nowhere), it is refused too, and does not count as
 * absent. A user who can write to a file of ours, to a directory on the way to it, or to a link in
 * between decides what root does. So all of these must belong to root, and no other user may write
 * to them. A command that does not run as root also accepts files of the user who runs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tools/conf/file.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define FILE_TRIES	3	/* to read one that changes meanwhile */
#define FILE_LINKS	40	/* as many as the kernel follows */

/* ---- rights ---- */

/* @what: "it", or "its directory NAME". NULL = fine. */
static char *file_rights(const struct stat *st, const char *what, const char *path, char **hint)
{
	mode_t others = st->st_mode & (S_IWGRP | S_IWOTH);

	if (st->st_uid && st->st_uid != geteuid()) {
		/* without -h it would change what the link leads to */
		*hint = say_fmt("chown %sroot %s", S_ISLNK(st->st_mode) ? "-h " : "", path);
		return say_fmt("%s belongs to user %u, not to root", what,
			       (unsigned int)st->st_uid);
	}
	/* In a sticky directory no user can replace what is another's. */
	if (!others || S_ISLNK(st->st_mode) || (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
		return NULL;
	*hint = say_fmt("chmod %s%s-w %s", others & S_IWGRP ? "g" : "",
			others & S_IWOTH ? "o" : "", path);
	return say_fmt("%s can write to %s", others & S_IWOTH ? "everybody" : "its group", what);
}

static char *file_readers(const struct stat *st, const char *path, char **hint)
{
	if (!(st->st_mode & (S_IRWXG | S_IRWXO)))
		return NULL;
	*hint = say_fmt("chmod 600 %s; a key that others may have read is to be replaced", path);
	return say_dup("others than root can read it");
}

/*
 * Judge each directory and link that @path leads through, but not those in its first @skip bytes.
 * NULL = all are fine, else why not.
 */
static char *file_chain(const char *path, size_t skip, unsigned int depth, char **hint)
{
	char *part __free(free) = say_dup(path), *slash, *why = NULL, to[PATH_MAX];
	struct stat st;
	ssize_t n;
	char kept;

	for (size_t i = skip; !why && part[i]; i++) {
		/* At the end of a component, and after the "/" at the beginning. */
		slash = part[i] == '/' && i == 0			       ? part + 1 :
			part[i] != '/' && (part[i + 1] == '/' || !part[i + 1]) ? part + i + 1 :
										 NULL;
		if (!slash)
			continue;
		kept = *slash;
		*slash = 0;
		if (!lstat(part, &st) && (S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode))) {
			char *what __free(free) =
				say_fmt("the %s %s", S_ISDIR(st.st_mode) ? "directory" : "link", part);
			char *next __free(free) = NULL;

			why = file_rights(&st, what, part, hint);
			n = !why && S_ISLNK(st.st_mode) && depth < FILE_LINKS ?
				    readlink(part, to, sizeof(to) - 1) :
				    -1;
			if (n > 0) {
				to[n] = 0;
				next = *to == '/' ?
					       say_dup(to) :
					       say_fmt("%.*s/%s", (int)(strrchr(part, '/') - part),
						       part, to);
				why = file_chain(next, *to == '/' ? 0 : skip, depth + 1, hint);
			}
		}
		*slash = kept;
	}
	return why;
}

char *file_distrust(const char *path, char **hint)
{
	char *here __free(free) = *path == '/' ? NULL : getcwd(NULL, 0), *full __free(free) = NULL;
	size_t skip = strlen(sysfs_prefix());

	*hint = NULL;
	full = here ? say_fmt("%s/%s", here, path) : say_dup(path);
	/* The directories that lead to IBNBD_ROOT are not judged: the user has chosen them. */
	return file_chain(full, strncmp(full, sysfs_prefix(), skip) ? 0 : skip, 0, hint);
}

/* ---- reading ---- */

static void file_refuse(struct file_text *out, char *why, const char *hint)
{
	out->state = FILE_REFUSED;
	out->why = why;
	out->hint = hint ? say_dup(hint) : NULL;
}

static void file_unreadable(struct file_text *out, int err)
{
	file_refuse(out, say_fmt("cannot be read: %s", strerror(err)),
		    (err == EACCES || err == EPERM) && geteuid() ? "the same with sudo" : NULL);
}

/* NULL: the file can be read, and has an end. Else what it is instead. */
static const char *file_kind(int fd, const struct stat *st, bool named)
{
	struct statfs fs;

	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return NULL;
	case S_IFDIR:
		return "it is a directory";
	case S_IFIFO:
		/* A pipe without a name in a file system comes from the caller. */
		return named && !fstatfs(fd, &fs) && fs.f_type == PIPEFS_MAGIC ? NULL :
										 "it is a FIFO";
	case S_IFCHR:
		return st->st_rdev == makedev(1, 3) ? NULL : "it is a device";
	case S_IFBLK:
		return "it is a device";
	default:
		return "it is no file";
	}
}

/* Forget the text, which may be a key: also where the file was refused. */
static void file_wipe(struct file_text *out)
{
	if (out->text)
		explicit_bzero(out->text, out->len);
	free(out->text);
	out->text = NULL;
	out->len = 0;
}

static bool file_same(const struct stat *a, const struct stat *b, size_t len)
{
	if (!S_ISREG(b->st_mode))
		return true;
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       (!b->st_size || (size_t)b->st_size == len);
}

static void file_take(int fd, struct stat *st, struct file_text *out)
{
	struct stat before;
	int tries = FILE_TRIES, err;

	do {
		before = *st;
		file_wipe(out);
		err = tries < FILE_TRIES && lseek(fd, 0, SEEK_SET) ?
			      errno :
			      sysfs_read(fd, FILE_MAX, &out->text, &out->len);
		if (!err && fstat(fd, st))
			err = errno;
		if (!err && out->len > FILE_MAX)
			break;
	} while (!err && !file_same(&before, st, out->len) && --tries);
	out->state = FILE_THERE;
	if (err)
		file_unreadable(out, err);
	else if (out->len > FILE_MAX)
		file_refuse(out,
			    say_fmt("it is longer than %u MiB, and nothing of it is used",
				    FILE_MAX >> 20),
			    NULL);
	else if (!tries)
		file_refuse(out, say_dup("it changes while it is read"), "try again");
	if (out->state == FILE_REFUSED)
		file_wipe(out);
}

static void file_absent(const char *path, struct file_text *out, int err)
{
	struct stat st;

	if (err == ENOENT && lstat(path, &st))
		out->state = FILE_ABSENT;
	else if (err == ENOENT)
		file_refuse(out, say_dup("the link leads nowhere"), NULL);
	else if (err == ENXIO || err == ENODEV)
			/* open(2) of a socket, or of a device without a driver */
		file_refuse(out, say_dup("cannot be read: it is no file"), NULL);
	else
		file_unreadable(out, err);
}

struct file_text file_read(const char *path, enum file_whose whose, bool named)
{
	int fd __free(say_close) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char *why, *hint __free(free) = NULL;
	struct file_text out = { 0 };
	const char *kind;
	struct stat st;

	if (fd < 0) {
		file_absent(path, &out, errno);
	} else if (fstat(fd, &st)) {
		file_unreadable(&out, errno);
	} else if ((kind = file_kind(fd, &st, named))) {
		file_refuse(&out, say_fmt("cannot be read: %s", kind), NULL);
	} else {
		if (S_ISFIFO(st.st_mode))
			fcntl(fd, F_SETFL, 0);
		file_take(fd, &st, &out);
	}
	if (out.state != FILE_THERE || whose == FILE_HOSTS || !S_ISREG(st.st_mode))
		return out;
	why = file_rights(&st, "it", path, &hint);
	if (!why && whose == FILE_SECRET)
		why = file_readers(&st, path, &hint);
	if (!why)
		why = file_distrust(path, &hint);
	if (why)
		file_refuse(&out, why, hint);
	return out;
}

void file_free(struct file_text f)
{
	file_wipe(&f);
	free(f.why);
	free(f.hint);
}

/* ---- writing ---- */

char *file_dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash != path ? say_fmt("%.*s", (int)(slash - path), path) :
					say_dup(slash ? "/" : ".");
}

void file_mkdirs(const char *path)
{
	char *copy __free(free) = say_dup(path), *p;

	for (p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(copy, 0755);
		*p = '/';
	}
}

/* A rename or removal is on the disk when its directory is. */
static void file_sync_dir(const char *path)
{
	char *dir __free(free) = file_dir_of(path);
	int fd __free(say_close) = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsync(fd);
}

static int file_put(int fd, const char *text, size_t len, mode_t mode)
{
	ssize_t n;

	for (; len; text += n, len -= (size_t)n) {
		n = write(fd, text, len);
		if (n < 0)
			return errno;
	}
	return fchmod(fd, mode) || fsync(fd) ? errno : 0;
}

int file_replace(const char *path, const char *text, size_t len)
{
	char *real = realpath(path, NULL), *to __free(free) = real ? real : say_dup(path),
	     *temp __free(free) = say_fmt("%s.XXXXXX", to);
	int fd = mkostemp(temp, O_CLOEXEC), err = fd < 0 ? errno : 0;
	struct stat st;

	if (!err)
		err = file_put(fd, text, len, stat(to, &st) ? 0644 : st.st_mode & 07777);
	if (fd >= 0 && close(fd) && !err)
		err = errno;
	if (!err && rename(temp, to))
		err = errno;
	if (!err)
		file_sync_dir(to);
	else if (fd >= 0)
		unlink(temp);
	return err;
}

int file_remove(const char *path, const char *as)
{
	if (as ? rename(path, as) : unlink(path))
		return errno;
	file_sync_dir(path);
	return 0;
}

int file_lock(int fd, bool dir, int seconds)
{
	struct flock lock = { .l_type = F_WRLCK };
	int64_t end = sysfs_now() + seconds * 1000000LL;

	while (dir ? flock(fd, LOCK_EX | LOCK_NB) : fcntl(fd, F_SETLK, &lock)) {
		if (errno != EAGAIN && errno != EACCES)
			return errno;
		if (sysfs_now() >= end)
			return EAGAIN;
		usleep(50000);
	}
	return 0;
}
