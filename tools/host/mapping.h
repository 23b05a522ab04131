/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mapping and unmapping one device, in words: shared by map, unmap, maps start, maps stop and maps
 * apply.
 */
#ifndef TOOLS_MAPPING_H
#define TOOLS_MAPPING_H

#include "tools/conf/maps_conf.h"
#include "tools/host/state.h"

#define MAPPING_WAIT	30	/* seconds that an unmapped device may take to go */

/* Run modprobe; @argv[0] is its name. 0, a status of waitpid(2), or -1. */
int mapping_modprobe(char *const argv[]);
/* Is the client's driver there? Loads it when @load. SAY_DONE or SAY_DRIVER with its error. */
int mapping_driver(bool load);

/**
 * mapping_map() - ask the driver for a device
 * @map: finished; @host names of hosts are resolved into its paths
 * @kname: the disk, allocated; NULL in a dry run
 * @err: errno of the driver, 0 when it was not asked
 * @quiet: no error message, but @why, allocated
 */
int mapping_map(struct ibnbd_map *map, char *const *host, size_t nr_hosts, char **kname, int *err,
		char **why);
/* Names of hosts become paths. SAY_DONE, or @why allocated. */
int mapping_resolve(struct ibnbd_map *map, char *const *host, size_t nr_hosts, char **why);
/* What to do about an errno of the driver; NULL = nothing is known. */
const char *mapping_mend(int err);
/* The same when the server has a session of that name of somebody else. */
extern const char mapping_mend_name[];

/* Refuses when somebody uses it, unless @force. Waits up to @wait seconds until it is gone. */
int mapping_unmap(const struct state_dev *d, bool force, int wait);

/*
 * Who uses it: mounts, swap, dm, md, loop, processes. NULL-terminated, allocated, empty = nobody.
 */
char **mapping_users(const struct state_dev *d);
/* The same for a disk of this host's own, but for processes. @dir: its directory in sysfs. */
char **mapping_disk_users(const char *dir);
/* Loop devices and swap on a file. @entry: its name in the server's ctl/devices. */
char **mapping_file_users(const char *entry);
/* Any of them but processes? */
bool mapping_built_upon(const struct state_dev *d);
/* Has udev it open, which reads a disk that is new or has changed, and nobody else? */
bool mapping_only_udev(const struct state_dev *d);
/* Does the machine need it to run: /, /usr, swap, directly or below dm and md? */
bool mapping_vital(const struct state_dev *d);

/*
 * NULL when the disk has this UUID (file system, volume or partition table), or what it has.
 * Allocated.
 */
char *mapping_wrong_uuid(const struct state_dev *d, const char *want);

/* Why the driver refused with this errno, in its own words if it has any. Allocated. */
char *mapping_reason(int err);
/* What the driver said of the last refusal, allocated, or NULL. */
char *mapping_last_error(void);
/* The last @nr messages of our modules in the kernel's log, indented. */
void mapping_kmsg(FILE *f, size_t nr);
/* Does a message hold both texts? The last such one, allocated, or NULL. @second may be NULL. */
char *mapping_kmsg_find(const char *first, const char *second);

#endif
