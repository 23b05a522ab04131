/* SPDX-License-Identifier: GPL-2.0-only */
/* Mapping and unmapping one device. */
#ifndef TOOLS_MAPPING_H
#define TOOLS_MAPPING_H

#include "tools/conf/maps_conf.h"
#include "tools/host/state.h"

#define MAPPING_WAIT	30	/* seconds that an unmapped device may take to go */

/*
 * Run modprobe, or print in a dry run that it would be run; @argv[0] is its name. 0, a status of
 * waitpid(2), or -1.
 */
int mapping_modprobe(const char *const argv[]);
#define MODPROBE(...) \
	mapping_modprobe((const char *const[]){ "modprobe", __VA_ARGS__, NULL })
/*
 * Is the driver in memory another one than modprobe would load now, after an upgrade? What runs and
 * what is installed, in words, allocated; or NULL. @module as in /sys/module.
 */
char *mapping_upgraded(const char *module);
/* Is the client's driver there? Loads it when @load. SAY_DONE or SAY_DRIVER with its error. */
int mapping_driver(bool load);

/**
 * mapping_map() - ask the driver for a device, and warn if all its paths share a port
 * @asked: finished
 * @host: names of hosts, which are resolved; while no server answers the next address of each
 *	is tried
 * @nr_hosts: how many
 * @kname: the disk, allocated; NULL in a dry run
 * @err: errno of the driver, 0 when it was not asked
 * @why: the reason of an error, allocated; no message is printed
 */
int mapping_map(const struct ibnbd_map *asked, char *const *host, size_t nr_hosts, char **kname,
		int *err, char **why);
/*
 * Resolve names of hosts and add the first address of each to the paths. SAY_DONE, or an exit
 * status with @why allocated.
 */
int mapping_resolve(struct ibnbd_map *map, char *const *host, size_t nr_hosts, char **why);
/*
 * The remedy for an errno of a write to @name in @dir of the driver, NULL: of any; NULL = none is
 * known.
 */
const char *mapping_hint(const char *dir, const char *name, int err);
/* The same for a session name that another client's session has on the server. */
extern const char mapping_hint_name[];

/*
 * Unmap a device. Refuses if it is in use, unless @force. Waits up to @wait seconds until it is
 * gone, and then for udev.
 */
int mapping_unmap(const struct state_dev *d, bool force, int wait);

/* The users of a device: mounts, swap, dm, md, loop, processes. NULL-terminated, allocated. */
char **mapping_users(const struct state_dev *d);
/* Print them as hints of an error. */
void mapping_tell_users(const struct state_dev *d);
/*
 * The same for a local disk of this host, without processes. @dir: directory of the disk in sysfs.
 */
char **mapping_disk_users(const char *dir);
/* Loop devices and swap on a file. @entry: its name in the server's ctl/devices. */
char **mapping_file_users(const char *entry);
/* Does anything other than a process use it? */
bool mapping_built_upon(const struct state_dev *d);
/* Does udev alone use the device? udev reads a disk that is new or has changed. */
bool mapping_only_udev(const struct state_dev *d);
/* Does the machine need it to run: /, /usr, swap, directly or below dm and md? */
bool mapping_vital(const struct state_dev *d);

/*
 * settle.c: wait until udev has done its part, at most ten seconds, with a warning then. Call
 * settle_look() before, and one of the others behind: a disk of this name has come since then (0:
 * at any time), it has changed, or it is gone. The last two free @s, and wait only if @wait.
 */
struct settle;

struct settle *settle_look(const char *kname);
void settle_made(const char *kname, int64_t since);
void settle_changed(struct settle *s, bool wait);
void settle_gone(struct settle *s, bool wait);

/*
 * NULL if the disk has this UUID (of a file system, volume or partition table); else a text that
 * says what the disk has. Allocated.
 */
char *mapping_wrong_uuid(const struct state_dev *d, const char *want);

/*
 * Say that a write to @name in @dir was refused, with what @fmt says, and @why, or in the driver's
 * own words if that is NULL; and @hint, if there is one. If the write cannot have reached the
 * driver, both are those of what has kept it away. Returns the exit status.
 */
int mapping_refused(const char *dir, const char *name, int err, const char *why, const char *hint,
		    const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Why the driver refused that write, in its own words if it has any. Allocated. */
char *mapping_reason(const char *dir, const char *name, int err);
/* The driver's words about the last refusal, allocated, or NULL. */
char *mapping_last_error(void);
/* The last @nr messages of our modules in the kernel's log, indented. */
void mapping_kmsg(FILE *f, size_t nr);
/*
 * The last message of the kernel's log that holds both texts, allocated, or NULL. @second may be
 * NULL.
 */
char *mapping_kmsg_find(const char *first, const char *second);

/*
 * kmsg.c: a socket that gets the kernel's uevents, whose netlink group is read directly, so udev is
 * not needed. recv(2) does not wait. -1: there is none, errno.
 */
int mapping_uevents(void);

#endif
