/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session: the paths to one server under one name, and the slots they share. Each embedded struct
 * is used by its own file only: link.c, turn.c, dirs.c, slot.c.
 */
#ifndef IBTRS_CLIENT_SESSION_H
#define IBTRS_CLIENT_SESSION_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <ibtrs/clt.h>
#include "ibtrs/client/path.h"
#include "ibtrs/client/slot.h"
#include "ibtrs/logic/retry.h"

/**
 * struct ibtrs_clt_pathset - the paths that are up, immutable, replaced whole (decision 5)
 * @gen: session generation; it grows whenever the first path comes up after none was up. The server
 *	may then be a new one
 */
struct ibtrs_clt_pathset {
	struct rcu_head rcu;
	u32 n;
	u32 gen;
	struct ibtrs_clt_path *path[];
};

/* Whether I/O waits for the link: link.c. */
struct ibtrs_clt_want {
	unsigned long until;		/* seconds since boot; cmpxchg */
	/* requests posted on the paths that were up at the last look */
	atomic64_t seen;
	struct work_struct work;
};

/* Which path of a session that has no path up may make the session at the server (protocol 2.2). */
struct ibtrs_clt_turn {
	spinlock_t lock;
	/* this path may ask the server to make the session */
	struct ibtrs_clt_path *holder;
	/* jiffies: after that the holder blocks no other path */
	unsigned long holder_end;
	/* a path that the server has answered; only compared, never dereferenced */
	const struct ibtrs_clt_path *next;
	/* jiffies: until then only `next` may take the turn */
	unsigned long next_end;
};

struct ibtrs_clt {
	/* hot, read only while the session is open */
	struct ibtrs_clt_pathset __rcu *up;
	u8 policy;			/* READ_ONCE; enum ibtrs_mpath_policy */
	bool acked;			/* the pages of a write wait for the adapter (answer.c) */
	struct ibtrs_clt_slots slots;
	unsigned int __percpu *cursor;	/* round robin */
	u32 max_io_size;
	u32 max_segments;
	u32 nr_irq_conns;
	u32 nr_cpus;			/* online when the session was created */
	u16 *cpu_number;		/* NULL: their numbers are 0 to nr_cpus - 1 */
	atomic_t nr_parked;

	/* set before publish */
	char name[IBTRS_NAME_LEN];
	u8 uuid[IBTRS_UUID_LEN];
	struct ibtrs_clt_opts opts;	/* READ_ONCE: max_reconnect_attempts, which sysfs changes */
	struct ibtrs_backoff backoff;
	const struct ibtrs_clt_ops *ops;
	void *priv;
	/* path works; WQ_MEM_RECLAIM: writeback may wait for a reconnect */
	struct workqueue_struct *wq;
	struct workqueue_struct *drain_wq;
	struct list_head entry;		/* all sessions, under the module's lock */

	/* paths, up, opened, closing, limits; link events are delivered under it */
	struct mutex lock;
	struct list_head paths;
	u32 nr_paths;
	char last_error[IBTRS_CLT_WHY_LEN];	/* why the last add_path failed */
	bool loose;			/* a path was removed while it was loose */
	bool opened;
	/* READ_ONCE; the server knows our extensions, or did when last seen */
	bool ours;
	bool closing;
	atomic_t removing;		/* tasks and works that are removing a path */

	struct work_struct again;	/* req.c */
	/* READ_ONCE; the latest life of the session at the server (protocol 8.2) */
	u32 life;
	struct ibtrs_clt_want want;
	struct ibtrs_clt_turn turn;
	struct ibtrs_clt_sysfs sysfs;
};

/* The number of a CPU among those of the session; it may be any without a table. */
static inline u32 ibtrs_clt_cpu(const struct ibtrs_clt *clt, u32 cpu)
{
	return unlikely(clt->cpu_number) ? clt->cpu_number[cpu] : cpu;
}

/* link.c: effects of path changes on their session */

/*
 * The server has granted limits to a path. The first path of the session allocates the slots; the
 * limits of the other paths must match. 0, or an errno with the reason in *@why.
 */
int ibtrs_clt_link_limits(struct ibtrs_clt *clt, struct ibtrs_clt_path *path, const char **why);
/* Path work: the path is ready / not ready any more. */
int ibtrs_clt_link_path_up(struct ibtrs_clt_path *path);
void ibtrs_clt_link_path_down(struct ibtrs_clt_path *path);
/* Drain of a path: a write leaves the path, and the server may still execute it (law L8). */
void ibtrs_clt_link_path_loose(struct ibtrs_clt_path *path);
/* The walk parked requests: tell the user if the link is up. */
void ibtrs_clt_link_parked(struct ibtrs_clt *clt);
/* The work of clt->want: I/O began to wait for the link. */
void ibtrs_clt_link_retry_work(struct work_struct *work);

/*
 * Check whether I/O flows over the paths that are up. If so, the other paths are wanted, too. Call
 * it about once a second. Any context.
 */
void ibtrs_clt_link_look(struct ibtrs_clt *clt);
/* Is I/O waiting for a path, or was it lately? */
bool ibtrs_clt_link_wanted(struct ibtrs_clt *clt);

/* pathset.c: the paths that are up */

int ibtrs_clt_pathset_init(struct ibtrs_clt *clt);	/* after an error call _free(), too */
void ibtrs_clt_pathset_free(struct ibtrs_clt *clt);
/*
 * Both under clt->lock. Return: how many paths are up now, or -ENOMEM (add only). A removed path
 * may still be in use for a grace period.
 */
int ibtrs_clt_pathset_add(struct ibtrs_clt *clt, struct ibtrs_clt_path *path);
int ibtrs_clt_pathset_del(struct ibtrs_clt *clt, struct ibtrs_clt_path *path);
/*
 * The path for the next request, which will use its connection @cid; NULL when all paths were
 * tried. RCU read side.
 */
struct ibtrs_clt_path *ibtrs_clt_pathset_pick(struct ibtrs_clt *clt,
					      const struct ibtrs_clt_pathset *set, u32 cid,
					      u64 tried[2]);

/* turn.c: who may make the session at the server */

/* @path is about to connect cid 0: may that make the session? CM event of cid 0. */
bool ibtrs_clt_turn_take(struct ibtrs_clt_path *path);
/*
 * The server answered that it does not know the session. Return true if that is because another
 * path has the turn: then @path was not refused, but asked too early. CM event of cid 0.
 */
bool ibtrs_clt_turn_early(struct ibtrs_clt_path *path);
/*
 * The turn of @path ends. @up: because the path is up, so the session exists and no path is the
 * next one; else because nothing that it sent is on its way any more. Path work, drain.
 */
void ibtrs_clt_turn_end(struct ibtrs_clt_path *path, bool up);

#endif
