/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The directories below /sys/class/ibtrs-client (spec C.3).
 *
 * Lifetime: what sysfs and the driver core may hold on to is memory of its own, never the session
 * or the path. After ibtrs_clt_dirs_path_del() / _session_del() no show or store runs any more and
 * the owner frees its object at once, whoever still has a file open. ibtrs_clt_dirs_exit() waits
 * for the last of that memory.
 */
#ifndef IBTRS_CLIENT_DIRS_H
#define IBTRS_CLIENT_DIRS_H

#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <ibtrs/addr.h>

struct device;
struct ibtrs_clt;
struct ibtrs_clt_path;
struct ibtrs_clt_path_dir;
struct rdma_cm_id;

/**
 * struct ibtrs_clt_sysfs - of a session: clt->sysfs
 * @dev: /sys/class/ibtrs-client/<name>
 * @paths: its paths/
 * @removing: how many are removing a path that they own
 */
struct ibtrs_clt_sysfs {
	struct device *dev;
	struct kobject *paths;
	atomic_t removing;
};

/**
 * struct ibtrs_clt_path_sysfs - of a path: path->sysfs
 * @dir: paths/<src@dst>/
 * @lock: src, hca. Process context
 * @src: where the path comes from: as given, and as resolved once it was
 * @hca: the RDMA device it uses, or used last; empty until the first route was resolved
 * @port: its port
 * @named: the directory bears the resolved source address, or the given one
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
 * The session's device with its attributes, and paths/. -EEXIST. On error nothing is left. Its
 * files may be used before this returns: no path may be added by them until clt->opened.
 */
int ibtrs_clt_dirs_session_add(struct ibtrs_clt *clt);
/*
 * No add_path runs any more and none will. For close: after clt->closing is set and CLOSE is posted
 * to all paths, before they are removed.
 */
void ibtrs_clt_dirs_session_shut(struct ibtrs_clt *clt);
/*
 * Waits for stores to remove_path that still run. Called when all other paths have been removed,
 * and before the work queues are destroyed. It may be called twice.
 */
void ibtrs_clt_dirs_session_del(struct ibtrs_clt *clt);
/*
 * Before a path is taken off the list of its session in order to remove it, and after that is done.
 * The session may be gone with the latter.
 */
void ibtrs_clt_dirs_removing(struct ibtrs_clt *clt);
void ibtrs_clt_dirs_removed(struct ibtrs_clt *clt);

/*
 * paths/<src@dst>/ with stats/: the last step of making a path, for the files work from now on.
 * -EEXIST.
 */
int ibtrs_clt_dirs_path_add(struct ibtrs_clt_path *path);
/* Waits for running show and store. Idempotent. */
void ibtrs_clt_dirs_path_del(struct ibtrs_clt_path *path);
/* cid 0 resolved its route: source address, device and port are known. CM handler. */
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

#endif
