/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device: its state, its timers, what the server has open for it, its end.
 *
 * dev.c is the object; dev_state.c drives its state, recover.c does its works; open.c asks the
 * server for it, disk.c shows it to the block layer, remove.c ends it.
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
#include "ibnbd/logic/open_sm.h"
#include "ibnbd/logic/unflushed.h"

#define IBNBD_CLT_REASON_LEN	256
#define IBNBD_CLT_LINK_LEN	(NAME_MAX + 2)	/* one more: it was cut */

/* What queue_rq does with a request. */
enum ibnbd_clt_gate {
	IBNBD_CLT_GATE_OPEN,		/* send it */
	IBNBD_CLT_GATE_HOLD,		/* give it back, the queue is about to be quiesced */
	IBNBD_CLT_GATE_FAIL,		/* end it */
	IBNBD_CLT_GATE_NO_WRITES,	/* end what changes the disk (L8), send the rest */
};

/* News for the device's work; bits of ibnbd_clt_dev.news. */
enum ibnbd_clt_news {
	IBNBD_CLT_NEWS_OPEN,		/* re-OPEN when closed or failed */
	IBNBD_CLT_NEWS_RESIZED,		/* re-OPEN although open */
	IBNBD_CLT_NEWS_REVOKED,		/* the server closed the export */
	/* a flush has failed, or one of our own has found no device; before STRAY */
	IBNBD_CLT_NEWS_FLUSH,
	IBNBD_CLT_NEWS_STRAY,		/* the server answered that it does not know the device */
	IBNBD_CLT_NEWS_REPLAY,		/* requests are parked while the link is up */
	IBNBD_CLT_NEWS_SLOW,		/* io_timeout= is over for some request */
	IBNBD_CLT_NEWS_OVERDUE,		/* hold= is over for some request, although paths are up */
	IBNBD_CLT_NEWS_CLOSE,		/* tell the server that we are done */
};

/* An answer to OPEN, and what follows from it. */
struct ibnbd_clt_grant {
	struct ibnbd_open_rsp rsp;
	struct ibnbd_limits lim;
	u64 features;
	u32 gen;			/* link on which it was given, as we count them */
	u32 link_gen;			/* the same as ibtrs counts them */
	u8 version;
};

struct ibnbd_clt_number;

struct ibnbd_clt_dev {
	/* hot: read for each request, written on a quiesced queue; gate: WRITE_ONCE */
	u8 gate;			/* enum ibnbd_clt_gate */
	u8 version;
	u16 nr_irq;			/* hardware queues before the polled ones */
	u32 device_id;
	/* on which device_id means this disk: on a later one it may be another's */
	u32 link_gen;
	u32 io_flags;			/* IBNBD_F_* that the server understands */
	u32 op_stride;
	bool account;			/* of what no flush has covered is kept */
	bool keep;			/* the data, too */
	void *ops;
	struct ibtrs_clt *clt;

	/* read for each write, written once or twice per flush: without a lock */
	struct ibnbd_unflushed unflushed ____cacheline_aligned;
	u64 __percpu *wrote;		/* bytes, while account; never less */
	u64 flushed;			/* of these, covered by a flush; READ_ONCE */
	/* what is not flushed may be lost: another epoch until that is dealt with; READ_ONCE */
	bool flush_failed;

	/* written for each write, while keep */
	spinlock_t kept_lock ____cacheline_aligned;
	struct ibnbd_kept kept;		/* under it; gap, and whether it is empty: READ_ONCE */

	/* set before publish */
	struct ibnbd_clt_session *sess;
	struct ibnbd_map map;		/* hold and io_timeout: READ_ONCE, writable in sysfs */
	char link[IBNBD_CLT_LINK_LEN];	/* name in ctl/devices */
	struct ibnbd_clt_number *number;
	int index;			/* of /dev/ibnbdN; negative: it waits for its name */

	struct mutex open_lock;		/* one OPEN or CLOSE at a time; outside of lock */
	struct ibnbd_open_refused said;	/* by the server to the last OPEN; under open_lock */
	struct mutex lock;		/* from here to uevent_reason */
	enum ibnbd_dev_state state;
	struct ibnbd_clt_grant grant;	/* what the disk lives by */
	struct gendisk *disk;
	bool added;			/* add_disk returned */
	bool linked;			/* ctl/devices has it */
	bool stopped;			/* queue is quiesced (L16) */
	/* those of grant could not be committed yet; READ_ONCE outside */
	bool limits_due;
	/* limits of grant were too good to be true (queue.c); READ_ONCE */
	bool refused;
	/* what the server has open for it, as remote_id; READ_ONCE outside */
	enum ibnbd_open_state remote;
	u32 remote_id;
	struct ibnbd_clt_unclosed *unclosed;	/* for the session, if a CLOSE is owed at the end */
	/* requests that the server may still execute, in the mapping of grant */
	bool gave_up;
	bool no_writes;			/* L8, until the link has settled, or an administrator */
	/* what a replay had under way in mapping resend_id may still be executed */
	bool resend_at_large;
	u32 resend_id;
	bool hold_armed;
	unsigned long held_since;	/* jiffies */
	u64 resumed_ns;			/* ktime_get_ns() when I/O flowed again; 0: never held */
	unsigned long late_end;
	unsigned int replays;		/* that ended well; READ_ONCE, as are the next two */
	u64 resent_bytes;
	unsigned int losses;		/* that an administrator took; READ_ONCE */
	char reason[IBNBD_CLT_REASON_LEN];
	/* what uevent_work sends, with what was true at that time */
	enum kobject_action uevent;
	enum ibnbd_dev_state uevent_state;
	char uevent_reason[IBNBD_CLT_REASON_LEN];

	unsigned long news;		/* atomic bits */
	unsigned long resize_next;	/* jiffies; RESIZED is not asked about before; READ_ONCE */
	struct delayed_work work;	/* does what news says */
	struct delayed_work hold_work;	/* hold= is over */
	struct delayed_work late_work;	/* L4 */
	struct delayed_work sweep_work;	/* replay or end what is parked still, or again */
	struct delayed_work flush_work;	/* of our own, when the pool is half full */
	struct delayed_work uevent_work;
	struct ratelimit_state uevent_limit;
	struct work_struct remove_work;
	struct completion mapped;	/* map_device has finished with it, one way or the other */

	struct list_head sess_entry;	/* session's lock and ev_lock */
	struct list_head entry;		/* ibnbd_clt_lock */
};

/* A device in state init, without a number, unknown to anybody. */
struct ibnbd_clt_dev *ibnbd_clt_dev_alloc(const struct ibnbd_map *m);
void ibnbd_clt_dev_free(struct ibnbd_clt_dev *dev);
/* Any context. */
void ibnbd_clt_dev_tell(struct ibnbd_clt_dev *dev, enum ibnbd_clt_news news);

/* RESIZED came: tells it at once, or when its time has come. Any context. */
void ibnbd_clt_dev_resized(struct ibnbd_clt_dev *dev);
/* True: RESIZED is asked about now, and the next one not soon. The device's work. */
bool ibnbd_clt_dev_takes_resized(struct ibnbd_clt_dev *dev);

/* Why its state is what it is. Under dev->lock. */
__printf(2, 3) void ibnbd_clt_dev_say(struct ibnbd_clt_dev *dev, const char *fmt, ...);
/* What the server has of it changed. Under dev->lock. */
void ibnbd_clt_dev_remote(struct ibnbd_clt_dev *dev, enum ibnbd_open_event ev);
/* Re-OPEN after @delay. */
void ibnbd_clt_dev_ask_later(struct ibnbd_clt_dev *dev, unsigned long delay);

/*
 * Is @g another mapping of the server than the one the disk lives by? False if that can not be
 * told: only a server of ours draws ids that do not come again, and opens for writing when all
 * mappings that were closed have ended. Under dev->lock.
 */
static inline bool ibnbd_clt_grant_is_new(const struct ibnbd_clt_dev *dev,
					  const struct ibnbd_clt_grant *g)
{
	return g->features & IBNBD_FEAT_IDENTITY && g->rsp.device_id != dev->grant.rsp.device_id;
}

#endif
