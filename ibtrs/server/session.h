/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session: what one client's paths share, found by its uuid and its key. It outlives its last
 * path until its last op has ended.
 */
#ifndef IBTRS_SERVER_SESSION_H
#define IBTRS_SERVER_SESSION_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include "ibtrs/logic/fence.h"
#include "ibtrs/logic/kept.h"
#include "ibtrs/server/path.h"
#include "ibtrs/server/server.h"

struct device;
struct kobject;

#define IBTRS_SRV_SESSION_LOOK	HZ

/* One slot of the session; all paths of the session share it. */
struct ibtrs_srv_slot {
	/* protects all fields, and busy of the slot's op on each path; any context */
	spinlock_t lock;
	struct ibtrs_fence_slot fence;
	struct ibtrs_srv_opx *parked;
} ____cacheline_aligned_in_smp;

struct ibtrs_srv_session {
	/* hot, constant once the first path is connected */
	struct ibtrs_srv_slot *slots;
	void *priv;
	/* made with the slots; for requests that were parked: a device may make each wait */
	struct workqueue_struct *op_wq;

	/* set at creation */
	u8 uuid[IBTRS_UUID_LEN];
	/* owner: name of the key that all its paths have proved; empty: no key was proved */
	char key[IBTRS_KEY_NAME_LEN];
	u8 identity[IBTRS_UUID_LEN];	/* made of uuid and key, for the user */
	u32 life;			/* random; in each life tokens start at 1 (protocol 8.2) */

	/* under ibtrs_srv.lock */
	struct list_head entry;		/* readers RCU */
	struct list_head paths;		/* readers RCU */
	u32 nr_paths;			/* CLOSING ones count (L6); 0: the session is ending */
	struct ibtrs_peers peers;	/* the first: of the path that made the session */
	/* empty before a good INFO_REQ, and again when its client is lost */
	char name[IBTRS_NAME_LEN];
	char label[IBTRS_NAME_LEN];	/* name.c; valid while there is a name */
	u32 naming;			/* running INFO works that took the name */
	struct ibtrs_kept *kept;	/* the name was kept for it; or NULL */
	/* jiffies: last time that its client sent a CONN_REQ or that a path began to close */
	unsigned long knocked;
	unsigned long down_at;		/* jiffies: last time that a connected path was closed */

	struct delayed_work look;	/* runs while a path is closing or lingering */

	struct mutex up_lock;		/* protects up, sysfs_dev */
	bool up;			/* session_up() was good */
	char user_name[IBTRS_NAME_LEN];	/* the name that the user was told then */
	struct ibtrs_origin from;	/* of the path that brought it up; then constant */

	/* sysfs.c */
	struct device *sysfs_dev;
	struct kobject *sysfs_paths;

	struct rcu_head rcu;
};

/* The session's unique name in the log and in sysfs. */
static inline const char *ibtrs_srv_session_label(const struct ibtrs_srv_session *s)
{
	return s->name[0] ? s->label : "(no name yet)";
}

/* A path begins to close: look.c looks at the session from now on, once a second. Any context. */
static inline void ibtrs_srv_session_watch(struct ibtrs_srv_session *s)
{
	queue_delayed_work(ibtrs_srv.info_wq, &s->look, IBTRS_SRV_SESSION_LOOK);
}

/* Under ibtrs_srv.lock: */
/* @key: empty for a session that has proved none */
struct ibtrs_srv_session *ibtrs_srv_session_find(const u8 *uuid, const char *key);
/* An errno and a reason. The caller adds a path or calls ibtrs_srv_session_drop(). */
struct ibtrs_srv_session *ibtrs_srv_session_create(const u8 *uuid, const char *key,
						   const char **why);
void ibtrs_srv_session_drop(struct ibtrs_srv_session *s);
struct ibtrs_srv_path *ibtrs_srv_session_find_path(struct ibtrs_srv_session *s,
						   const u8 *path_uuid);
/*
 * May a path with these addresses be added? 0, or a reason and -EEXIST (a path has them), -EBUSY
 * (that path is closing), or -ECONNRESET (too many paths).
 */
int ibtrs_srv_session_may_add(struct ibtrs_srv_session *s, const struct ibtrs_addr_pair *addr,
			      const char **why);
void ibtrs_srv_session_add_path(struct ibtrs_srv_session *s, struct ibtrs_srv_path *path);

/*
 * The INFO_REQ of @path gives the session the name @name. 0, or an errno and a reason, whose text
 * may be in @path.
 */
int ibtrs_srv_session_take_name(struct ibtrs_srv_path *path, const char *name, const char **why);
/*
 * The INFO work of @path, which has taken the name, has ended. If it failed (@good is false), no
 * other INFO work has taken the name, and the user does not know the session, the session gives up
 * its name: a refused path may stay connected for a while, and must not keep the name from other
 * clients.
 */
void ibtrs_srv_session_named(struct ibtrs_srv_path *path, bool good);
/*
 * The session has its name, and its first path has all that it needs: tell the user (session_up()).
 * Does nothing if the user knows the session already, but makes its sysfs directory again if that
 * was removed. 0, or an errno and a reason. Sleeps.
 */
int ibtrs_srv_session_bring_up(struct ibtrs_srv_path *path, const char **why);
/* Asks the user (peer_joins()) whether @path may join its session. 0, or an errno and a reason. */
int ibtrs_srv_session_admit_peer(struct ibtrs_srv_path *path, const char **why);
/*
 * Close work: removes @path, which nothing uses any more. The last path ends the session. Sleeps.
 */
void ibtrs_srv_session_del_path(struct ibtrs_srv_path *path);
/* ibtrs_srv_close(): close all paths of all sessions and wait until the last session has gone. */
void ibtrs_srv_session_close_all(void);

/*
 * look.c: a look at a session whose client may be away or gone, and the ops of a path that is
 * closing.
 */

void ibtrs_srv_look_work(struct work_struct *work);	/* the work @look of a session */

/* Close work; may sleep: ends the parked ops of @path; they are not executed. */
void ibtrs_srv_look_ops_unpark(struct ibtrs_srv_path *path);
/*
 * True: an op of slot *@from or higher is busy; *@from becomes its slot. All ops before it are idle
 * and stay idle.
 */
bool ibtrs_srv_look_ops_any_busy(const struct ibtrs_srv_path *path, u32 *from);

/*
 * sysfs.c: /sys/class/ibtrs-server. After ibtrs_srv_sysfs_path_del() / _session_del() no show or
 * store of it runs any more, even if a file is still open.
 */

int ibtrs_srv_sysfs_init(void);
void ibtrs_srv_sysfs_exit(void);	/* waits until the last directory is freed */

int ibtrs_srv_sysfs_session_add(struct ibtrs_srv_session *s);
void ibtrs_srv_sysfs_session_del(struct ibtrs_srv_session *s);	/* idempotent; its paths are gone */
int ibtrs_srv_sysfs_path_add(struct ibtrs_srv_path *path);
/* idempotent; not from a show or store of it */
void ibtrs_srv_sysfs_path_del(struct ibtrs_srv_path *path);

#endif
