/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device: its state, its timers, what the server has open for it, its end.
 *
 * dev.c allocates and frees the object; dev_state.c drives its state; recover.c has its works and
 * removes it; open.c asks the server to open it; disk.c shows it to the block layer.
 */
#ifndef IBNBD_CLIENT_DEV_H
#define IBNBD_CLIENT_DEV_H

#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/ratelimit.h>
#include <linux/workqueue.h>
#include "ibnbd/client/session.h"
#include "ibnbd/logic/dev_sm.h"
#include "ibnbd/logic/kept.h"
#include "ibnbd/logic/limits.h"
#include "ibnbd/logic/mapopt.h"
#include "ibnbd/logic/unflushed.h"

/* News and timers of devices: memory reclaim may wait for these works. */
extern struct workqueue_struct *ibnbd_clt_dev_wq;
/* Removals, and other works that may wait for an RDMA device or for memory. */
extern struct workqueue_struct *ibnbd_clt_remove_wq;

#define IBNBD_CLT_REASON_LEN	256
#define IBNBD_CLT_LINK_LEN	(NAME_MAX + 2)	/* NUL, and a byte that shows a cut name */

/* How queue_rq handles a request. */
enum ibnbd_clt_gate {
	IBNBD_CLT_GATE_OPEN,		/* send it */
	IBNBD_CLT_GATE_HOLD,		/* give it back: the queue is about to be quiesced */
	/* end what another leg can do, else put it aside until the gate changes */
	IBNBD_CLT_GATE_FAILFAST,
	IBNBD_CLT_GATE_FAIL,		/* end it with an error */
	IBNBD_CLT_GATE_NO_WRITES,	/* end what changes the disk (L8), send other requests */
};

/* News for the device's work; bits of ibnbd_clt_dev.news. */
enum ibnbd_clt_news {
	/* re-OPEN when held, replaying or failed; when open, only if ibnbd_clt_dev_asks() */
	IBNBD_CLT_NEWS_OPEN,
	IBNBD_CLT_NEWS_RESIZED,		/* re-OPEN even when open */
	IBNBD_CLT_NEWS_REVOKED,		/* the server closed the export */
	/* a flush failed, or the server did not know the device for our own flush; before STRAY */
	IBNBD_CLT_NEWS_FLUSH,
	IBNBD_CLT_NEWS_STRAY,		/* the server answered that it does not know the device */
	IBNBD_CLT_NEWS_REPLAY,		/* requests are parked while the link is up */
	IBNBD_CLT_NEWS_SLOW,		/* some request is older than io_timeout= */
	IBNBD_CLT_NEWS_OVERDUE,		/* a request is overdue (queue.c) although paths are up */
	IBNBD_CLT_NEWS_CLOSE,		/* tell the server that we are done */
	IBNBD_CLT_NEWS_GROUP,		/* a leg of the group has changed */
};

/* Bits of ibnbd_clt_dev.uevent_due. */
enum {
	IBNBD_CLT_DUE_STATE	= 1,	/* offline or online */
	IBNBD_CLT_DUE_RESIZE	= 2,	/* the disk has another size */
	IBNBD_CLT_DUE_RO	= 4,	/* the disk became read-only, or writable */
	IBNBD_CLT_DUE_WRITER	= 8,	/* another client has written */
};

/* An answer to OPEN, and what follows from it. */
struct ibnbd_clt_grant {
	struct ibnbd_open_rsp rsp;
	struct ibnbd_limits lim;
	u64 features;
	u32 gen;			/* link on which it was given, as session.gen counts */
	u32 link_gen;			/* the same link, as ibtrs counts */
	u8 version;
};

/* What the device keeps of writes that no flush has covered. */
enum ibnbd_clt_keeps {
	IBNBD_CLT_KEEPS_NOTHING,
	IBNBD_CLT_KEEPS_ACCOUNT,	/* logic/unflushed.h */
	IBNBD_CLT_KEEPS_DATA,		/* the account, and the data, for a replay (kept.c) */
};

/* Does the disk have the limits of the answer that it uses? */
enum ibnbd_clt_limits {
	IBNBD_CLT_LIMITS_FIT,
	IBNBD_CLT_LIMITS_DUE,		/* the block layer was busy: at the next answer */
	IBNBD_CLT_LIMITS_REFUSED,	/* the server refused what they allow (queue.c) */
};

/* Where the disk can be seen. */
enum ibnbd_clt_shown {
	IBNBD_CLT_SHOWN_NOT,
	IBNBD_CLT_SHOWN_DISK,		/* add_disk returned */
	IBNBD_CLT_SHOWN_LINK,		/* ctl/devices has it, too */
};

struct ibnbd_clt_number;

struct ibnbd_clt_dev {
	/* hot: read for each request, written on a quiesced queue; gate: WRITE_ONCE */
	u8 gate;			/* enum ibnbd_clt_gate */
	u8 version;
	u16 nr_irq;			/* hardware queues before the polled ones */
	u32 device_id;
	/* the link on which device_id means this disk; on a later one it may mean another disk */
	u32 link_gen;
	u32 io_flags;			/* IBNBD_F_* that the server understands */
	u32 op_stride;
	u8 keeps;			/* enum ibnbd_clt_keeps */
	void *ops;
	struct ibtrs_clt *clt;

	/* read for each write, written once or twice per flush: without a lock */
	struct ibnbd_unflushed unflushed ____cacheline_aligned;
	u64 __percpu *wrote;		/* bytes written while account is set; only grows */
	u64 flushed;			/* how many of these a flush has covered; READ_ONCE */
	/*
	 * a flush failed: unflushed writes may be lost, as in another epoch, until made good;
	 * READ_ONCE
	 */
	bool flush_failed;

	/* written for each write, while data is kept */
	spinlock_t kept_lock ____cacheline_aligned;
	rwlock_t kept_copying;		/* inside kept_lock; see kept.c */
	struct ibnbd_kept kept;		/* under kept_lock; gap and ibnbd_kept_empty(): READ_ONCE */

	/* set before publish */
	struct ibnbd_clt_session *sess;
	struct ibnbd_map map;		/* hold, failfast, io_timeout: READ_ONCE, sysfs writes */
	char link[IBNBD_CLT_LINK_LEN];	/* name in ctl/devices */
	struct ibnbd_clt_number *number;
	int index;			/* the N of /dev/ibnbdN; negative: none yet */

	struct mutex open_lock;		/* one OPEN or CLOSE at a time; taken before lock */
	struct ibnbd_open_refused said;	/* the refusal of the last OPEN; under open_lock */
	struct mutex lock;		/* protects all from here to uevent_reason */
	enum ibnbd_dev_state state;
	struct ibnbd_clt_grant grant;	/* the answer that the disk uses */
	struct gendisk *disk;
	enum ibnbd_clt_shown shown;
	bool stopped;			/* queue is quiesced (L16) */
	enum ibnbd_clt_limits limits;	/* READ_ONCE outside of lock */
	/* what the server has open for it, as remote_id; READ_ONCE outside */
	enum ibnbd_open_state remote;
	u32 remote_id;
	u32 remote_gen;			/* link on which remote_id was given, as ibtrs counts */
	struct ibnbd_clt_unclosed *unclosed;	/* session gets it if a CLOSE is owed at the end */
	struct ibnbd_at_large at_large;
	/* the mirror says that the leg has everything; READ_ONCE outside of lock */
	bool in_sync;
	unsigned long let_go_at;	/* jiffies: end of failfast=, while group_work waits */
	unsigned long held_since;	/* jiffies */
	u64 resumed_ns;			/* ktime_get_ns() when I/O flowed again; 0: never held */
	int refusal;			/* why the disk is not open yet: told in the log once */
	unsigned int replays;		/* successful ones; READ_ONCE, also for the next two */
	u64 resent_bytes;
	unsigned int losses;		/* losses that an administrator accepted */
	unsigned int other_writers;	/* answers to OPEN that showed one; READ_ONCE */
	u64 other_gen;			/* the writer generation that was counted last */
	char reason[IBNBD_CLT_REASON_LEN];
	unsigned int uevent_due;	/* IBNBD_CLT_DUE_*: what uevent_work tells */
	/* for DUE_STATE: the action (ADD: none yet), with state and reason at that time */
	enum kobject_action uevent;
	enum ibnbd_dev_state uevent_state;
	char uevent_reason[IBNBD_CLT_REASON_LEN];

	atomic_t nr_strays;		/* requests that queue_stray() has left to this device */
	unsigned long news;		/* atomic bits */
	unsigned long resize_next;	/* jiffies; no re-OPEN for RESIZED before it; READ_ONCE */
	struct delayed_work work;	/* does what news says */
	struct delayed_work hold_work;	/* hold= is over */
	struct delayed_work group_work;	/* failfast= is over */
	struct delayed_work sweep_work;	/* replay or end what is still parked, or parked again */
	struct delayed_work flush_work;	/* a flush of our own, when the pool is low */
	struct delayed_work uevent_work;
	struct ratelimit_state uevent_limit;
	unsigned long resize_tell;	/* jiffies; no new size is told before it */
	struct work_struct remove_work;
	struct completion mapped;	/* map_device has finished, with or without success */

	struct list_head sess_entry;	/* session's lock and ev_lock */
	struct list_head group_entry;	/* group_lock of dev.c */
	struct list_head entry;		/* ibnbd_clt_lock */
};

/* A device in state init, without a number and on no list. NULL: no memory. */
struct ibnbd_clt_dev *ibnbd_clt_dev_alloc(const struct ibnbd_map *m);
void ibnbd_clt_dev_free(struct ibnbd_clt_dev *dev);
/* Any context. */
void ibnbd_clt_dev_tell(struct ibnbd_clt_dev *dev, enum ibnbd_clt_news news);

/* Jiffies until @at, which was at most @most away; 0: it is past, however long ago. */
static inline unsigned long ibnbd_clt_dev_left(unsigned long at, unsigned long most)
{
	unsigned long left = at - jiffies;

	return left <= most ? left : 0;
}

/* RESIZED came: runs dev->work now, or at resize_next if that is later. Any context. */
void ibnbd_clt_dev_resized(struct ibnbd_clt_dev *dev);
/* For dev->work. True: send OPEN for RESIZED now; resize_next is then set for the next one. */
bool ibnbd_clt_dev_takes_resized(struct ibnbd_clt_dev *dev);

/* Sets the reason of the state. Under dev->lock. */
__printf(2, 3) void ibnbd_clt_dev_say(struct ibnbd_clt_dev *dev, const char *fmt, ...);
/* Steps dev->remote, which says what the server has open for @dev. Under dev->lock. */
void ibnbd_clt_dev_remote(struct ibnbd_clt_dev *dev, enum ibnbd_open_event ev);
/* L8: false until the writes that were given up have ended, or an administrator remaps. */
static inline bool ibnbd_clt_dev_takes_writes(const struct ibnbd_clt_dev *dev)
{
	return READ_ONCE(dev->at_large.given_up) != IBNBD_GIVEN_UP_WRITES;
}

/* An open device asks again: it takes no writes yet, or its limits are due. */
static inline bool ibnbd_clt_dev_asks(const struct ibnbd_clt_dev *dev)
{
	return !ibnbd_clt_dev_takes_writes(dev) || READ_ONCE(dev->limits) == IBNBD_CLT_LIMITS_DUE;
}

/* Re-OPEN after @delay. */
void ibnbd_clt_dev_ask_later(struct ibnbd_clt_dev *dev, unsigned long delay);

/*
 * Is @g another mapping on the server than that of dev->grant? False if this cannot be told: only
 * a server of ours never gives an id twice, and opens for writing only when all requests of closed
 * mappings have ended. Under dev->lock.
 */
static inline bool ibnbd_clt_grant_is_new(const struct ibnbd_clt_dev *dev,
					  const struct ibnbd_clt_grant *g)
{
	return g->features & IBNBD_FEAT_IDENTITY && g->rsp.device_id != dev->grant.rsp.device_id;
}

/* From here to ibnbd_clt_group_leave() the device is a leg of its group=, if it names one. */
void ibnbd_clt_group_join(struct ibnbd_clt_dev *dev);
/* No other leg tells @dev anything from here on. */
void ibnbd_clt_group_leave(struct ibnbd_clt_dev *dev);
/* State or in_sync of @dev changed: all legs of its group get NEWS_GROUP. Any context. */
void ibnbd_clt_group_changed(struct ibnbd_clt_dev *dev);
/* Can another leg stand for @dev? Any context. */
bool ibnbd_clt_group_another(struct ibnbd_clt_dev *dev);

/*
 * refuse.c: log the refusal of something an administrator wrote, keep it for ctl/last_error, and
 * return @err.
 */
__printf(2, 3) int ibnbd_clt_refuse(int err, const char *fmt, ...);
/* A new command begins: the last refusal is cleared. */
void ibnbd_clt_refuse_forget(void);
/* Writes the last refusal to @page. Return: its length. */
int ibnbd_clt_refuse_show(char *page);

#endif
