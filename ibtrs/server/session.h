/* SPDX-License-Identifier: GPL-2.0-only */
/* A session: what one client's paths share, found by its uuid. */
#ifndef IBTRS_SERVER_SESSION_H
#define IBTRS_SERVER_SESSION_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include "ibtrs/logic/fence.h"
#include "ibtrs/server/path.h"
#include "ibtrs/server/server.h"

struct device;
struct kobject;

#define IBTRS_SRV_SESSION_LOOK	HZ

/* One slot of the session, whatever path a request for it comes over. */
struct ibtrs_srv_slot {
	/* all, and busy of the slot's op on each path; any context */
	spinlock_t lock;
	struct ibtrs_fence_slot fence;
	struct ibtrs_srv_opx *parked;
} ____cacheline_aligned_in_smp;

#define IBTRS_SRV_PEERS	8

/* Where a session's paths came from; those beyond that many are not remembered. */
struct ibtrs_srv_peers {
	u32 nr;
	struct ibtrs_addr addr[IBTRS_SRV_PEERS];
};

struct ibtrs_srv_session {
	/* hot, constant once the first path is connected */
	struct ibtrs_srv_slot *slots;
	void *priv;

	/* set at creation */
	u8 uuid[IBTRS_UUID_LEN];
	struct ibtrs_addr peer;		/* of the first path */
	/* whose it is: name of the key that all its paths have proved; empty: anybody's */
	char key[IBTRS_KEY_NAME_LEN];
	u32 life;			/* random: tokens are counted from 1 in each (F.2) */
	struct ibtrs_dev_pool devs;

	/* under ibtrs_srv.lock */
	struct list_head entry;		/* readers RCU */
	struct list_head paths;		/* readers RCU */
	u32 nr_paths;			/* CLOSING ones count (L6) */
	struct ibtrs_srv_peers peers;
	bool dying;			/* the last path is gone */
	/* empty until the first INFO_REQ, and again when its client is lost */
	char name[IBTRS_NAME_LEN];
	u32 naming;			/* INFO works that have taken the name, and not ended */
	/* jiffies: its client was heard of, or its last path began to close */
	unsigned long knocked;
	unsigned long down_at;		/* jiffies: its last path that was up began to close */

	struct delayed_work look;	/* while a path is coming to its end */

	struct mutex up_lock;		/* up, sysfs_dev */
	bool up;			/* the user knows it */
	struct ibtrs_origin from;	/* of the path that made it known; constant then */

	/* sysfs.c */
	struct device *sysfs_dev;
	struct kobject *sysfs_paths;

	struct rcu_head rcu;
};

/* What to call it in the log. */
static inline const char *ibtrs_srv_session_label(const struct ibtrs_srv_session *s)
{
	return s->name[0] ? s->name : "(no name yet)";
}

/*
 * A path begins to end: look after the session once a second, until none does. Paths that wait only
 * for what the client has given up linger. When no path has been up for half a minute, what the
 * rest waits for is taken from it (give_up), so that it gets in. Is the client gone? When nobody
 * has knocked for as long, the user hears of it (session_lost), and once nothing but lingering
 * paths is left another session may take the name. Any context.
 */
static inline void ibtrs_srv_session_watch(struct ibtrs_srv_session *s)
{
	queue_delayed_work(ibtrs_srv.info_wq, &s->look, IBTRS_SRV_SESSION_LOOK);
}

/* Under ibtrs_srv.lock: */
struct ibtrs_srv_session *ibtrs_srv_session_find(const u8 *uuid);
/* -ENOMEM and a reason. The caller adds a path or calls ibtrs_srv_session_drop(). */
struct ibtrs_srv_session *ibtrs_srv_session_create(const u8 *uuid, const struct ibtrs_addr *peer,
						   const char *key, const char **why);
void ibtrs_srv_session_drop(struct ibtrs_srv_session *s);
struct ibtrs_srv_path *ibtrs_srv_session_find_path(struct ibtrs_srv_session *s,
						   const u8 *path_uuid);
/*
 * Room for one more path with this address? -EEXIST, -EBUSY (that one is closing), -ECONNRESET,
 * -ENOSPC and a reason.
 */
int ibtrs_srv_session_may_add(struct ibtrs_srv_session *s, const struct ibtrs_addr_pair *addr,
			      const char **why);
void ibtrs_srv_session_add_path(struct ibtrs_srv_session *s, struct ibtrs_srv_path *path);

/*
 * INFO_REQ of @path says that the session is called @name. 0, or an errno and a reason, which may
 * lie in @path.
 */
int ibtrs_srv_session_take_name(struct ibtrs_srv_path *path, const char *name, const char **why);
/*
 * The INFO work of @path, which has taken the name, has ended. Should the session have come to
 * nothing (@good is false, no other path is at it, and the user does not know it), the name is
 * anybody's again: one that was refused, and stays connected, keeps it from nobody.
 */
void ibtrs_srv_session_named(struct ibtrs_srv_path *path, bool good);
/*
 * It has its name and its first path all it needs: the user hears of it. 0, or an errno and a
 * reason. Sleeps.
 */
int ibtrs_srv_session_bring_up(struct ibtrs_srv_path *path, const char **why);
/*
 * May @path, which is not the first, join its session? For the user to say. 0, or an errno and a
 * reason.
 */
int ibtrs_srv_session_admit_peer(struct ibtrs_srv_path *path, const char **why);
/* One look now. */
void ibtrs_srv_session_look(struct ibtrs_srv_session *s);
/* Close work: nothing is left of @path, take it off. With the last one the session ends. Sleeps. */
void ibtrs_srv_session_del_path(struct ibtrs_srv_path *path);
/* ibtrs_srv_close(): close all paths of all sessions and wait until the last session has gone. */
void ibtrs_srv_session_close_all(void);

#endif
