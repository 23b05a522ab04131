// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the users of a disk. Checked are the disk, its partitions, and all that is built on them
 * (device mapper and md, which are holders in sysfs; loop; a btrfs of several disks). For each of
 * these block devices, mounts, swap, and the files that processes have open are searched.
 * Containers and services have mount namespaces of their own, with other mounts, and with nodes of
 * our device elsewhere than in /dev: the mounts of each namespace count, and a file by its device
 * number.
 *
 * stat() of a file may wait for a server, so those on network file systems and FUSE are left out.
 * The search ends after some seconds, and says so.
 *
 * For a disk that clients have open, processes are not counted: programs read disks at any time.
 * Such a disk may be a partition. Then the whole disk is checked too, but not its other partitions.
 */
#include <fnmatch.h>
#include <libmount.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ibnbd/logic/text.h"
#include "tools/host/mapping.h"
#include "tools/out/say.h"

#define USERS_DEPTH	8
#define USERS_TIME	5	/* seconds */
#define USERS_MOUNTS	8	/* of other namespaces that are told */

/* A place where a mount begins, below which another kind of file system may begin. */
struct users_place {
	char *target;
	bool waits;		/* stat() may wait there */
};

/* A mount namespace, and those of its mounts that lie on or below one that may wait. */
struct users_ns {
	unsigned long ino;
	struct users_place *places;
	size_t nr;
};

/* A mount namespace that a bind mount keeps; it may have no process. */
struct users_kept {
	unsigned long ino;
	char *target;
};

struct users_devs {
	dev_t *list;
	size_t nr;
};

struct users {
	char **list;		/* NULL-terminated */
	size_t nr;
	const char *entry;	/* of a file, in the server's ctl/devices; NULL: it is a disk */
	struct users_devs devs;	/* the disk and all that is built on it */
	struct users_devs mates;	/* disks that share a btrfs with one of devs */
	struct users_ns *ns;	/* the first is ours */
	size_t nr_ns;
	struct users_kept *kept;
	size_t nr_kept;
	unsigned int nr_mounts;	/* of other namespaces; USERS_MOUNTS: enough, or ours has one */
	int64_t end;		/* of the search, in µs of sysfs_now() */
	size_t nr_udev;		/* how many of the list are udev's processes */
	bool vital;
};

static void users_add(struct users *u, char *text)
{
	u->list = say_grow(u->list, (u->nr + 2) * sizeof(*u->list));
	u->list[u->nr++] = text;
	u->list[u->nr] = NULL;
}

static void users_add_dev(struct users_devs *d, const char *dir)
{
	char *dev __free(free) = sysfs_attr(dir, "dev");
	unsigned int major, minor;

	if (dev && sscanf(dev, "%u:%u", &major, &minor) == 2) {
		d->list = say_grow(d->list, (d->nr + 1) * sizeof(*d->list));
		d->list[d->nr++] = makedev(major, minor);
	}
}

static bool users_has(const struct users_devs *d, dev_t dev)
{
	for (size_t i = 0; i < d->nr; i++)
		if (d->list[i] == dev)
			return true;
	return false;
}

static bool users_has_node(const struct users_devs *d, const char *node)
{
	char *path __free(free) = sysfs_root("%s", node);
	dev_t dev;

	return sysfs_node(path, &dev) && users_has(d, dev);
}

static void users_walk(struct users *u, const char *dir, int depth);

static void users_holders(struct users *u, const char *dir, int depth)
{
	char *path __free(free) = say_fmt("%s/holders", dir),
	     **names __free(sysfs_list_free) = sysfs_list(path, NULL);

	for (size_t i = 0; names[i]; i++) {
		char *below __free(free) = say_fmt("%s/%s", path, names[i]),
		     *name __free(free) = say_fmt("%s/%s/dm/name", path, names[i]),
		     *dm __free(free) = sysfs_text(name);

		users_add(u, dm ? say_fmt("%s (%s) is built on it", names[i], dm) :
				  say_fmt("%s is built on it", names[i]));
		users_walk(u, below, depth + 1);
	}
}

static void users_walk(struct users *u, const char *dir, int depth)
{
	char **names __free(sysfs_list_free) = NULL;

	users_add_dev(&u->devs, dir);
	if (depth == USERS_DEPTH)
		return;
	users_holders(u, dir, depth);
	names = sysfs_list(dir, NULL);
	for (size_t i = 0; names[i]; i++) {
		char *part __free(free) = say_fmt("%s/%s/partition", dir, names[i]),
		     *below __free(free) = say_fmt("%s/%s", dir, names[i]);

		if (sysfs_exists(part))
			users_walk(u, below, depth + 1);
	}
}

/* For a partition, add the whole disk and its holders, but not its other partitions. */
static void users_whole(struct users *u, const char *dir)
{
	char *part __free(free) = say_fmt("%s/partition", dir),
	     *whole __free(free) = say_fmt("%s/..", dir);

	if (sysfs_exists(part)) {
		users_add_dev(&u->devs, whole);
		users_holders(u, whole, 0);
	}
}

/*
 * A mount of a btrfs names only one of its disks. /sys/fs/btrfs lists all disks of each btrfs that
 * is mounted.
 */
static void users_btrfs(struct users *u)
{
	char *top __free(free) = sysfs_path("fs/btrfs"),
	     **fs __free(sysfs_list_free) = sysfs_list(top, NULL);

	for (size_t i = 0; fs[i]; i++) {
		char *path __free(free) = say_fmt("%s/%s/devices", top, fs[i]),
		     **names __free(sysfs_list_free) = sysfs_list(path, NULL);
		size_t before = u->mates.nr;
		bool ours = false;

		for (size_t j = 0; names[j]; j++) {
			char *dir __free(free) = say_fmt("%s/%s", path, names[j]);

			users_add_dev(&u->mates, dir);
		}
		for (size_t j = before; j < u->mates.nr; j++)
			ours |= users_has(&u->devs, u->mates.list[j]);
		if (!ours)
			u->mates.nr = before;
	}
}

/*
 * A mount of a btrfs has a device number of its own, so its source is compared instead. Only a
 * source below /dev is: there stat() never waits for a server.
 */
static bool users_mounted(const struct users *u, struct libmnt_fs *fs)
{
	const char *source = mnt_fs_get_source(fs);
	bool found = users_has(&u->devs, mnt_fs_get_devno(fs));

	if (!found && source && !strncmp(source, "/dev/", 5))
		found = users_has_node(&u->devs, source) || users_has_node(&u->mates, source);
	return found;
}

/* May stat() of @path wait? The innermost mount counts. */
static bool users_waits(const struct users_ns *ns, const char *path)
{
	const struct users_place *p, *at = NULL;

	for (p = ns->places; p < ns->places + ns->nr; p++)
		if (sysfs_below(path, p->target) &&
		    (!at || strlen(p->target) >= strlen(at->target)))
			at = p;
	return at && at->waits;
}

static bool users_is_remote(struct libmnt_fs *fs)
{
	const char *type = mnt_fs_get_fstype(fs);

	return mnt_fs_is_netfs(fs) ||
	       (type && !fnmatch("@(fuse|ceph|lustre|autofs|virtiofs)*", type, FNM_EXTMATCH));
}

static void users_place(struct users_ns *ns, struct libmnt_fs *fs)
{
	const char *target = mnt_fs_get_target(fs);
	bool waits = users_is_remote(fs);

	/* (a mount stands behind the one that it lies on) */
	if (!waits && !users_waits(ns, target))
		return;
	ns->places = say_grow(ns->places, (ns->nr + 1) * sizeof(*ns->places));
	ns->places[ns->nr++] = (struct users_place){ say_dup(target), waits };
}

static void users_keep(struct users *u, struct libmnt_fs *fs)
{
	const char *type = mnt_fs_get_fstype(fs), *root = mnt_fs_get_root(fs);
	unsigned long ino;

	if (!type || strcmp(type, "nsfs") || !root || sscanf(root, "mnt:[%lu]", &ino) != 1)
		return;
	u->kept = say_grow(u->kept, (u->nr_kept + 1) * sizeof(*u->kept));
	u->kept[u->nr_kept++] = (struct users_kept){ ino, say_dup(mnt_fs_get_target(fs)) };
}

/* The mount namespace of the process with this directory in /proc; 0: it has ended. */
static unsigned long users_ns_ino(const char *dir)
{
	char *path __free(free) = say_fmt("%s/ns/mnt", dir), *to __free(free) = sysfs_link(path);
	unsigned long ino;

	return to && sscanf(to, "mnt:[%lu]", &ino) == 1 ? ino : 0;
}

static struct libmnt_table *users_table(const char *dir)
{
	char *path __free(free) = say_fmt("%s/mountinfo", dir);

	return mnt_new_table_from_file(path);
}

/* The namespace of this table is one more that has been seen. */
static struct users_ns *users_new_ns(struct users *u, struct libmnt_table *table, unsigned long ino)
{
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;
	struct users_ns *ns;

	u->ns = say_grow(u->ns, (u->nr_ns + 1) * sizeof(*u->ns));
	ns = &u->ns[u->nr_ns++];
	*ns = (struct users_ns){ .ino = ino };
	while (table && iter && !mnt_table_next_fs(table, iter, &fs))
		if (mnt_fs_get_target(fs)) {
			users_place(ns, fs);
			users_keep(u, fs);
		}
	mnt_free_iter(iter);
	return ns;
}

/*
 * The mounts of our devices. @who: whose namespace it is, NULL = ours. Most namespaces have copies
 * of the mounts of ours, which go with them, so others are looked at when ours has none.
 */
static void users_mounts(struct users *u, struct libmnt_table *table, const char *who)
{
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;

	while (table && iter && !mnt_table_next_fs(table, iter, &fs)) {
		const char *target = mnt_fs_get_target(fs);

		if (!target || !users_mounted(u, fs) || (who && u->nr_mounts >= USERS_MOUNTS))
			continue;
		if (who && ++u->nr_mounts == USERS_MOUNTS)
			users_add(u, say_dup("it is mounted in more mount namespaces: lsns -t mnt"));
		else if (who)
			users_add(u, say_fmt("it is mounted on %s in the mount namespace of %s",
					     target, who));
		else
			users_add(u, say_fmt("it is mounted on %s", target));
		u->vital |= !who && (!strcmp(target, "/") || !strcmp(target, "/usr"));
		u->nr_mounts = who ? u->nr_mounts : USERS_MOUNTS;
	}
	mnt_free_iter(iter);
}

static char *users_who(const char *dir, const char *pid)
{
	char *comm __free(free) = sysfs_attr(dir, "comm");

	return say_fmt("process %s (%s)", pid, comm ? comm : "?");
}

static struct users_ns *users_ns(struct users *u, const char *dir, const char *pid)
{
	unsigned long ino = users_ns_ino(dir);
	struct libmnt_table *table;
	struct users_ns *ns;
	char *who __free(free) = NULL;

	for (size_t i = 0; i < u->nr_ns; i++)
		if (!ino || u->ns[i].ino == ino)
			return &u->ns[i];
	table = users_table(dir);
	who = users_who(dir, pid);
	ns = users_new_ns(u, table, ino);
	users_mounts(u, table, who);
	mnt_unref_table(table);
	return ns;
}

/* Is time left? The first call that finds none notes it. */
static bool users_in_time(struct users *u)
{
	if (!u->end)
		return false;
	if (sysfs_now() < u->end)
		return true;
	u->end = 0;
	users_add(u, say_fmt("not all processes could be looked at in %d seconds", USERS_TIME));
	return false;
}

/* Is @path the file of this entry in the server's ctl/devices, with or without "#2"? */
static bool users_is_file(const char *path, const char *entry)
{
	size_t size = 4 * strlen(path) + 1, len = strcspn(entry, "#");
	char *name __free(free) = say_alloc(size);

	return ibnbd_linkname(path, '#', name, size) == len && !strncmp(name, entry, len);
}

/* A loop device opens its file as a process does, so it is not among the holders in sysfs. */
static void users_loops(struct users *u)
{
	char *block __free(free) = sysfs_path("block"),
	     **names __free(sysfs_list_free) = sysfs_list(block, NULL);

	for (size_t i = 0; names[i]; i++) {
		char *dir __free(free) = say_fmt("%s/%s", block, names[i]),
		     *file __free(free) = sysfs_attr(dir, "loop/backing_file");

		if (!file || (u->entry ? !users_is_file(file, u->entry) :
					 users_waits(&u->ns[0], file) ||
						 !users_has_node(&u->devs, file)))
			continue;
		users_add(u, say_fmt("%s is built on it", names[i]));
		if (!u->entry)
			users_walk(u, dir, 1);
	}
}

static void users_swap(struct users *u)
{
	char *path __free(free) = sysfs_root("/proc/swaps"), *text __free(free) = sysfs_text(path),
	     *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		line[strcspn(line, " \t")] = 0;
		if (u->entry && users_is_file(line, u->entry))
			users_add(u, say_dup("it is swap"));
		if (u->entry || *line != '/' || !users_has_node(&u->devs, line))
			continue;
		users_add(u, say_fmt("%s is swap", line));
		u->vital = true;
	}
}

/* @path: where the file lies in its namespace, if it is one of our devices. */
static bool users_opened(const struct users *u, const struct users_ns *ns, const char *fd,
			 char path[PATH_MAX])
{
	char to[PATH_MAX];
	ssize_t n = readlink(fd, to, sizeof(to) - 1);
	size_t below = strlen(sysfs_prefix());
	bool found;
	dev_t dev;

	to[n > 0 ? n : 0] = 0;
	below = strncmp(to, sysfs_prefix(), below) ? 0 : below;
	found = to[below] == '/' && !users_waits(ns, to + below) && sysfs_node(fd, &dev) &&
		users_has(&u->devs, dev);
	strcpy(path, to + below);
	return found;
}

static void users_process(struct users *u, const char *dir, const char *pid)
{
	char *fds __free(free) = say_fmt("%s/fd", dir),
	     **names __free(sysfs_list_free) = sysfs_list(fds, NULL);
	const struct users_ns *ns = users_ns(u, dir, pid);
	bool found = false, here = ns == &u->ns[0];
	char path[PATH_MAX];

	for (size_t i = 0; names[i] && !found && users_in_time(u); i++) {
		char *fd __free(free) = say_fmt("%s/%s", fds, names[i]);

		found = users_opened(u, ns, fd, path);
	}
	if (found) {
		char *who __free(free) = users_who(dir, pid),
		     *group __free(free) = sysfs_attr(dir, "cgroup");

		if (here && sysfs_below(path, "/dev"))
			users_add(u, say_fmt("%s has it open", who));
		else
			users_add(u, say_fmt("%s has it open as %s%s", who, path,
					     here ? "" : " in another mount namespace"));
		u->nr_udev += group && strstr(group, "/systemd-udevd.service");
	}
}

/* Look at the mounts of each process, and at its files if @files, while there is time. */
static void users_processes(struct users *u, bool files)
{
	char *proc __free(free) = sysfs_root("/proc"),
	     **names __free(sysfs_list_free) = sysfs_list(proc, NULL);

	for (size_t i = 0; names[i]; i++) {
		char *dir __free(free) = say_fmt("%s/%s", proc, names[i]);

		if (names[i][strspn(names[i], "0123456789")] || !users_in_time(u))
			continue;
		if (files)
			users_process(u, dir, names[i]);
		else
			users_ns(u, dir, names[i]);
	}
}

/* No user was found: a mount namespace without a process may have it. */
static void users_tell_kept(struct users *u)
{
	size_t i, j;

	for (i = 0; i < u->nr_kept; i++) {
		for (j = 0; j < u->nr_ns && u->ns[j].ino != u->kept[i].ino;)
			j++;
		if (j == u->nr_ns)
			users_add(u, say_fmt("it may be mounted in the mount namespace that %s keeps, which has no process: nsenter --mount=%s findmnt",
					     u->kept[i].target, u->kept[i].target));
	}
}

enum users_where { USERS_HERE, USERS_ALL_MOUNTS, USERS_FILES };

/* USERS_ALL_MOUNTS: the mounts of all namespaces, if ours shows no user; USERS_FILES: all. */
static struct users users_find(const char *dir, enum users_where where)
{
	char *self __free(free) = sysfs_root("/proc/self");
	struct libmnt_table *table = users_table(self);
	struct users u = { .list = say_alloc(sizeof(char *)),
			   .end = sysfs_now() + USERS_TIME * 1000000 };

	users_new_ns(&u, table, users_ns_ino(self));
	users_walk(&u, dir, 0);
	users_whole(&u, dir);
	users_loops(&u);
	users_btrfs(&u);
	users_mounts(&u, table, NULL);
	users_swap(&u);
	mnt_unref_table(table);
	if (where == USERS_FILES || (where == USERS_ALL_MOUNTS && !u.nr))
		users_processes(&u, where == USERS_FILES);
	return u;
}

static void users_free_at(struct users *u)
{
	for (size_t i = 0; i < u->nr_ns; i++) {
		for (size_t j = 0; j < u->ns[i].nr; j++)
			free(u->ns[i].places[j].target);
		free(u->ns[i].places);
	}
	for (size_t i = 0; i < u->nr_kept; i++)
		free(u->kept[i].target);
	free(u->kept);
	free(u->ns);
	sysfs_list_free(u->list);
	free(u->devs.list);
	free(u->mates.list);
}

/* The list, which is not freed with all else that was found. */
static char **users_taken(struct users *u)
{
	char **list = u->list;

	u->list = NULL;
	return list;
}

char **mapping_users(const struct state_dev *d)
{
	struct users u __free(users_free) = users_find(d->dir, USERS_FILES);

	if (!u.nr)
		users_tell_kept(&u);
	return users_taken(&u);
}

char **mapping_disk_users(const char *dir)
{
	struct users u __free(users_free) = users_find(dir, USERS_ALL_MOUNTS);

	return users_taken(&u);
}

char **mapping_file_users(const char *entry)
{
	struct users u = { .list = say_alloc(sizeof(char *)), .entry = entry };

	users_loops(&u);
	users_swap(&u);
	return u.list;
}

bool mapping_built_upon(const struct state_dev *d)
{
	struct users u __free(users_free) = users_find(d->dir, USERS_ALL_MOUNTS);

	return u.nr;
}

bool mapping_only_udev(const struct state_dev *d)
{
	struct users u __free(users_free) = users_find(d->dir, USERS_FILES);

	return u.nr && u.nr == u.nr_udev;
}

bool mapping_vital(const struct state_dev *d)
{
	struct users u __free(users_free) = users_find(d->dir, USERS_HERE);

	return u.vital;
}
