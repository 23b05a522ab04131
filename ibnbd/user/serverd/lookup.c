// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the name that a client asks for to the object it means (design.md decision 13, E-29), as in
 * the kernel's server (ibnbd/server/backing.c). Below an ordinary search path no symlink is
 * followed on the way, and the walk cannot leave the search path. The last component may be a
 * symlink, if it belongs to root or to the user that this server runs as. If its text is relative,
 * its directory and those above it, up to the search path, must be theirs, too.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

static int lookup_refuse(struct serverd_find *f, int err, const char *why)
{
	f->why = why;
	return err;
}

static int lookup_beneath(int dir, const char *name, u64 flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static bool lookup_is_ours(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Is no directory from @dir up to @root another user's to change? */
static bool lookup_way_is_ours(int root, int dir)
{
	struct stat top, st;
	int at = dup(dir), up;
	bool ours = at >= 0 && !fstat(root, &top);

	while (ours && !fstat(at, &st)) {
		ours = lookup_is_ours(&st) && !(st.st_mode & 0022);
		if (st.st_dev == top.st_dev && st.st_ino == top.st_ino)
			break;
		up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = up;
	}
	if (at < 0)
		return false;
	close(at);
	return ours;
}

static int lookup_follow(const struct ibnbd_export_path *p, const char *tail)
{
	char *full = NULL;
	int fd;

	if (asprintf(&full, "%s/%s%s%s", p->root, p->dir, *p->dir ? "/" : "", tail) < 0)
		return -ENOMEM;
	fd = open(full, O_PATH | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	free(full);
	return fd;
}

/* The last component, @link, is a symlink. Return: what it leads to. */
static int lookup_symlink(struct serverd_find *f, const struct ibnbd_export_path *p, int root,
			  int dir, int link)
{
	char text[IBNBD_EXPORT_PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	if (fstat(link, &st))
		return -errno;
	if (!lookup_is_ours(&st))
		return lookup_refuse(f, -EACCES, "the symbolic link belongs neither to root nor to the user of the server; make it anew");
	n = readlinkat(link, "", text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	if (text[0] != '/' && !lookup_way_is_ours(root, dir))
		return lookup_refuse(f, -EACCES, "the symbolic link is relative, in a directory that others can change; make it absolute");
	if (text[0] == '/') {
		fd = open(text, O_PATH | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	} else {
		fd = lookup_follow(p, text);
	}
	if (fd == -ENOENT)
		f->why = "the symbolic link of the export leads nowhere";
	return fd;
}

static int lookup_last(struct serverd_find *f, const struct ibnbd_export_path *p, int root, int dir)
{
	int fd = openat(dir, p->last, O_PATH | O_NOFOLLOW | O_CLOEXEC), to;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISLNK(st.st_mode))
		return fd;
	to = lookup_symlink(f, p, root, dir, fd);
	close(fd);
	return to;
}

static int lookup_walk(struct serverd_find *f, const struct ibnbd_export_path *p)
{
	int root = open(p->root, O_PATH | O_DIRECTORY | O_CLOEXEC), dir, fd;

	if (root < 0)
		return lookup_refuse(f, -errno, "the directory of dev_search_path does not exist");
	dir = *p->dir ? lookup_beneath(root, p->dir, O_DIRECTORY) : dup(root);
	if (dir == -ELOOP)
		f->why = "a directory of the name is a symbolic link; only the last part may be one";
	fd = dir < 0 ? dir : lookup_last(f, p, root, dir);
	if (dir >= 0)
		close(dir);
	close(root);
	return fd;
}

/* A block device on a file system that may carry devices, a regular file, or a socket. */
static int lookup_check(struct serverd_find *f, int fd)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode))
		return 0;
	if (!S_ISBLK(st.st_mode))
		return lookup_refuse(f, -ENOTBLK, "neither a block device nor a regular file, nor the socket of an NBD server");
	if (!fstatvfs(fd, &fs) && fs.f_flag & ST_NODEV)
		return lookup_refuse(f, -EACCES, "its file system is mounted with nodev");
	return 0;
}

int serverd_lookup(struct serverd_find *f)
{
	char buf[IBNBD_EXPORT_PATH_MAX];
	struct ibnbd_export_path p;
	int err, fd;

	err = ibnbd_export_resolve(f->search, f->session, f->name, buf, sizeof(buf), &p, &f->why);
	if (err)
		return err;
	fd = p.follow ? lookup_follow(&p, p.last) : lookup_walk(f, &p);
	err = fd < 0 ? 0 : lookup_check(f, fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}
