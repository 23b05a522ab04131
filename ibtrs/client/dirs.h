/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The directories below /sys/class/ibtrs-client (docs/sysfs.md). After ibtrs_clt_dirs_path_del() /
 * _session_del() the owner frees its object at once, even if a file is still open.
 */
#ifndef IBTRS_CLIENT_DIRS_H
#define IBTRS_CLIENT_DIRS_H

#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <ibtrs/addr.h>

struct attribute_group;
struct device;
struct device_attribute;
struct ibtrs_clt;
struct ibtrs_clt_path;
struct ibtrs_clt_path_dir;
struct rdma_cm_id;

/**
 * struct ibtrs_clt_sysfs - of a session: clt->sysfs
 * @dev: /sys/class/ibtrs-client/<name>
 * @paths: its paths/
 */
struct ibtrs_clt_sysfs {
	struct device *dev;
	struct kobject *paths;
};

/**
 * struct ibtrs_clt_path_sysfs - of a path: path->sysfs
 * @dir: paths/<src@dst>/
 * @lock: protects src and hca. Process context
 * @src: source address: as given, then as resolved
 * @hca: the RDMA device it uses, or used last; empty until the first route was resolved
 * @port: its port
 * @named: the directory's name has the given or the resolved source address, and will not change
 */
struct ibtrs_clt_path_sysfs {
	struct ibtrs_clt_path_dir *dir;
	spinlock_t lock;
	struct ibtrs_addr src;
	char hca[IB_DEVICE_NAME_MAX];
	u32 port;
	bool named;
};

int ibtrs_clt_dirs_init(void);		/* the class */
void ibtrs_clt_dirs_exit(void);

/*
 * Put the session on the list, and create its device with its attributes, and paths/. -EEXIST: the
 * name is taken. On error nothing is left. The files may be used before this returns; add_path is
 * refused until clt->opened is set.
 */
int ibtrs_clt_dirs_session_add(struct ibtrs_clt *clt);
void ibtrs_clt_dirs_session_unlist(struct ibtrs_clt *clt);
/* For device and port events: call @fn for every path of every session. */
void ibtrs_clt_dirs_each_path(void (*fn)(struct ibtrs_clt_path *path));
/*
 * After it no add_path runs, and none can start. Called by close after clt->closing is set and
 * CLOSE is posted to all paths, before they are removed.
 */
void ibtrs_clt_dirs_session_shut(struct ibtrs_clt *clt);
void ibtrs_clt_dirs_session_del(struct ibtrs_clt *clt);	/* all paths have been removed */

/*
 * Create paths/<src@dst>/ with stats/. This is the last step of making a path, because its files
 * can be used from now on. -EEXIST.
 */
int ibtrs_clt_dirs_path_add(struct ibtrs_clt_path *path);
/* Waits for running show and store. Idempotent. */
void ibtrs_clt_dirs_path_del(struct ibtrs_clt_path *path);
/* cid 0 of a path on the list of its session has resolved its route. CM handler. */
void ibtrs_clt_dirs_path_route(struct ibtrs_clt_path *path, const struct rdma_cm_id *id);

/**
 * struct ibtrs_clt_path_dir - paths/<src@dst>/
 * @kobj: owns this memory
 * @path: valid while show or store runs
 */
struct ibtrs_clt_path_dir {
	struct kobject kobj;
	struct ibtrs_clt_path *path;
};

/* sysfs.c: the attributes of sessions and paths */

extern const struct attribute_group *ibtrs_clt_sysfs_session_groups[];
extern const struct device_attribute *const ibtrs_clt_sysfs_add_path;
extern const struct attribute_group *ibtrs_clt_sysfs_path_groups[];

#endif
