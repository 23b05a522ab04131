// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who uses a disk. Checked are the disk, its partitions, and all that is built on them (device
 * mapper and md, which are holders in sysfs; loop; a btrfs of several disks). For each of these
 * block devices, mounts, swap, and the files that processes have open are searched.
 *
 * For a disk that clients have open, processes are not counted: programs read disks at any time.
 * Such a disk may be a partition. Then the whole disk is checked too, but not its other partitions.
 */
#include <libmount.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ibnbd/logic/linkname.h"
#include "tools/host/mapping.h"
#include "tools/out/say.h"

#define USERS_DEPTH	8

struct users_devs {
	dev_t *list;
	size_t nr;
};

struct users {
	char **list;		/* NULL-terminated */
	size_t nr;
	struct users_devs devs;	/* the disk and all that is built on it */
	struct users_devs mates;	/* disks that share a btrfs with one of devs */
	size_t nr_udev;		/* how many of the list are udev's processes */
	bool vital;
};

static void users_add(struct users *u, char *text)
{
	u->list = say_grow(u->list, (u->nr + 2) * sizeof(*u->list));
	u->list[u->nr++] = text;
	u->list[u->nr] = NULL;
}

/* The block device of a directory in sysfs. */
static void users_add_dev(struct users_devs *d, const char *dir)
{
	char *dev = sysfs_attr(dir, "dev");
	unsigned int major, minor;

	if (dev && sscanf(dev, "%u:%u", &major, &minor) == 2) {
		d->list = say_grow(d->list, (d->nr + 1) * sizeof(*d->list));
		d->list[d->nr++] = makedev(major, minor);
	}
	free(dev);
}

static bool users_has(const struct users_devs *d, dev_t dev)
{
	size_t i;

	for (i = 0; i < d->nr; i++)
		if (d->list[i] == dev)
			return true;
	return false;
}

static bool users_has_node(const struct users_devs *d, const char *node)
{
	char *path = sysfs_root(node);
	dev_t dev;
	bool found = sysfs_node(path, &dev) && users_has(d, dev);

	free(path);
	return found;
}

static void users_walk(struct users *u, const char *dir, int depth);

static void users_holders(struct users *u, const char *dir, int depth)
{
	char *path = say_fmt("%s/holders", dir), **names = sysfs_list(path, NULL);
	size_t i;

	for (i = 0; names[i]; i++) {
		char *below = say_fmt("%s/%s", path, names[i]),
		     *name = say_fmt("%s/%s/dm/name", path, names[i]), *dm = sysfs_text(name);

		users_add(u, dm ? say_fmt("%s (%s) is built on it", names[i], dm) :
				  say_fmt("%s is built on it", names[i]));
		users_walk(u, below, depth + 1);
		free(below);
		free(name);
		free(dm);
	}
	sysfs_list_free(names);
	free(path);
}

static void users_walk(struct users *u, const char *dir, int depth)
{
	char **names;
	size_t i;

	users_add_dev(&u->devs, dir);
	if (depth == USERS_DEPTH)
		return;
	users_holders(u, dir, depth);
	names = sysfs_list(dir, NULL);
	for (i = 0; names[i]; i++) {
		char *part = say_fmt("%s/%s/partition", dir, names[i]),
		     *below = say_fmt("%s/%s", dir, names[i]);

		if (sysfs_exists(part))
			users_walk(u, below, depth + 1);
		free(part);
		free(below);
	}
	sysfs_list_free(names);
}

/* For a partition, add the whole disk and its holders, but not its other partitions. */
static void users_whole(struct users *u, const char *dir)
{
	char *part = say_fmt("%s/partition", dir), *whole = say_fmt("%s/..", dir);

	if (sysfs_exists(part)) {
		users_add_dev(&u->devs, whole);
		users_holders(u, whole, 0);
	}
	free(part);
	free(whole);
}

/* A loop device opens its file as a process does, so it is not among the holders in sysfs. */
static void users_loops(struct users *u)
{
	char *block = sysfs_path("block"), **names = sysfs_list(block, NULL);
	size_t i;

	for (i = 0; names[i]; i++) {
		char *dir = say_fmt("%s/%s", block, names[i]),
		     *file = sysfs_attr(dir, "loop/backing_file");

		if (file && !strncmp(file, "/dev/", 5) && users_has_node(&u->devs, file)) {
			users_add(u, say_fmt("%s is built on it", names[i]));
			users_walk(u, dir, 1);
		}
		free(dir);
		free(file);
	}
	sysfs_list_free(names);
	free(block);
}

/*
 * A mount of a btrfs names only one of its disks. /sys/fs/btrfs lists all disks of each btrfs that
 * is mounted.
 */
static void users_btrfs(struct users *u)
{
	char *top = sysfs_path("fs/btrfs"), **fs = sysfs_list(top, NULL);
	size_t i, j;

	for (i = 0; fs[i]; i++) {
		char *path = say_fmt("%s/%s/devices", top, fs[i]), **names = sysfs_list(path, NULL);
		struct users_devs all = { 0 };
		bool ours = false;

		for (j = 0; names[j]; j++) {
			char *dir = say_fmt("%s/%s", path, names[j]);

			users_add_dev(&all, dir);
			free(dir);
		}
		for (j = 0; j < all.nr; j++)
			ours |= users_has(&u->devs, all.list[j]);
		if (ours) {
			u->mates.list =
				say_grow(u->mates.list, (u->mates.nr + all.nr) * sizeof(*all.list));
			memcpy(u->mates.list + u->mates.nr, all.list, all.nr * sizeof(*all.list));
			u->mates.nr += all.nr;
		}
		free(all.list);
		sysfs_list_free(names);
		free(path);
	}
	sysfs_list_free(fs);
	free(top);
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

static void users_mounts(struct users *u)
{
	char *path = sysfs_root("/proc/self/mountinfo");
	struct libmnt_table *table = mnt_new_table_from_file(path);
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;

	while (table && iter && !mnt_table_next_fs(table, iter, &fs)) {
		const char *target = mnt_fs_get_target(fs);

		if (!target || !users_mounted(u, fs))
			continue;
		users_add(u, say_fmt("it is mounted on %s", target));
		u->vital |= !strcmp(target, "/") || !strcmp(target, "/usr");
	}
	mnt_free_iter(iter);
	mnt_unref_table(table);
	free(path);
}

static void users_swap(struct users *u)
{
	char *path = sysfs_root("/proc/swaps"), *text = sysfs_text(path), *line, *save = NULL;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, " \t")] = 0;
		if (*line != '/' || !users_has_node(&u->devs, line))
			continue;
		users_add(u, say_fmt("%s is swap", line));
		u->vital = true;
	}
	free(text);
	free(path);
}

/* Only files below /dev are checked, as with mounts. */
static bool users_opened(const struct users *u, const char *fd)
{
	char to[PATH_MAX], *below = sysfs_root("/dev/");
	ssize_t n = readlink(fd, to, sizeof(to) - 1);
	bool found;
	dev_t dev;

	to[n > 0 ? n : 0] = 0;
	found = !strncmp(to, below, strlen(below)) && sysfs_node(fd, &dev) &&
		users_has(&u->devs, dev);
	free(below);
	return found;
}

static void users_process(struct users *u, const char *dir, const char *pid)
{
	char *fds = say_fmt("%s/fd", dir), **names = sysfs_list(fds, NULL), *comm, *group;
	bool found = false;
	size_t i;

	for (i = 0; names[i] && !found; i++) {
		char *fd = say_fmt("%s/%s", fds, names[i]);

		found = users_opened(u, fd);
		free(fd);
	}
	if (found) {
		comm = sysfs_attr(dir, "comm");
		group = sysfs_attr(dir, "cgroup");
		users_add(u, say_fmt("process %s (%s) has it open", pid, comm ? comm : "?"));
		u->nr_udev += group && strstr(group, "/systemd-udevd.service");
		free(comm);
		free(group);
	}
	sysfs_list_free(names);
	free(fds);
}

static void users_processes(struct users *u)
{
	char *proc = sysfs_root("/proc"), **names = sysfs_list(proc, NULL);
	size_t i;

	for (i = 0; names[i]; i++) {
		char *dir = say_fmt("%s/%s", proc, names[i]);

		if (!names[i][strspn(names[i], "0123456789")])
			users_process(u, dir, names[i]);
		free(dir);
	}
	sysfs_list_free(names);
	free(proc);
}

static void users_find(struct users *u, const char *dir)
{
	*u = (struct users){ .list = say_alloc(sizeof(char *)) };
	users_walk(u, dir, 0);
	users_whole(u, dir);
	users_loops(u);
	users_btrfs(u);
	users_mounts(u);
	users_swap(u);
}

static void users_free(struct users *u)
{
	sysfs_list_free(u->list);
	free(u->devs.list);
	free(u->mates.list);
}

char **mapping_users(const struct state_dev *d)
{
	struct users u;
	char **list;

	users_find(&u, d->dir);
	users_processes(&u);
	list = u.list;
	u.list = NULL;
	users_free(&u);
	return list;
}

char **mapping_disk_users(const char *dir)
{
	struct users u;
	char **list;

	users_find(&u, dir);
	list = u.list;
	u.list = NULL;
	users_free(&u);
	return list;
}

/* Is @path the file of this entry in the server's ctl/devices, with or without "#2"? */
static bool users_is_file(const char *path, const char *entry)
{
	size_t size = 4 * strlen(path) + 1, len = strcspn(entry, "#");
	char *name = say_alloc(size);
	bool is = ibnbd_linkname(path, '#', name, size) == len && !strncmp(name, entry, len);

	free(name);
	return is;
}

char **mapping_file_users(const char *entry)
{
	char *path = sysfs_root("/proc/swaps"), *text = sysfs_text(path), *line, *save = NULL;
	char *block = sysfs_path("block"), **names = sysfs_list(block, NULL);
	struct users u = { .list = say_alloc(sizeof(char *)) };
	size_t i;

	for (i = 0; names[i]; i++) {
		char *dir = say_fmt("%s/%s", block, names[i]),
		     *file = sysfs_attr(dir, "loop/backing_file");

		if (file && users_is_file(file, entry))
			users_add(&u, say_fmt("%s is built on it", names[i]));
		free(dir);
		free(file);
	}
	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		line[strcspn(line, " \t")] = 0;
		if (users_is_file(line, entry))
			users_add(&u, say_dup("it is swap"));
	}
	sysfs_list_free(names);
	free(block);
	free(text);
	free(path);
	return u.list;
}

bool mapping_built_upon(const struct state_dev *d)
{
	struct users u;

	users_find(&u, d->dir);
	users_free(&u);
	return u.nr;
}

bool mapping_only_udev(const struct state_dev *d)
{
	struct users u;

	users_find(&u, d->dir);
	users_processes(&u);
	users_free(&u);
	return u.nr && u.nr == u.nr_udev;
}

bool mapping_vital(const struct state_dev *d)
{
	struct users u;

	users_find(&u, d->dir);
	users_free(&u);
	return u.vital;
}
