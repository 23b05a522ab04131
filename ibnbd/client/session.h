/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A session as the block client sees it: one transport session, one tag set, its devices. Behind it
 * the way of a request through that tag set, and the names of sessions and devices.
 */
#ifndef IBNBD_CLIENT_SESSION_H
#define IBNBD_CLIENT_SESSION_H

#include <linux/blk-mq.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <ibtrs/clt.h>
#include "ibnbd/logic/mapopt.h"

struct ibnbd_clt_dev;

/* The effect of a successful request on the account of writes that no flush has covered. */
enum ibnbd_clt_account {
	IBNBD_CLT_ACCOUNT_NOTHING,
	IBNBD_CLT_ACCOUNT_WRITE,
	IBNBD_CLT_ACCOUNT_FUA,
	IBNBD_CLT_ACCOUNT_FLUSH,
};

/*
 * One record per slot (decision 4). queue_rq owns the record from when it has the slot until the
 * submit; then ibtrs owns it until done(); then, if the request strayed, the holder of the device's
 * lock. The scatterlist follows the record in the array.
 */
struct ibnbd_clt_op {
	struct ibtrs_clt_io io;
	struct ibnbd_wire_io *hdr;	/* the slot's header buffer */
	struct ibnbd_clt_dev *dev;
	struct request *rq;
	u32 start;			/* jiffies */
	blk_status_t status;
	u8 tries;			/* times the server did not know the device */
	u8 stray;			/* answered with "unknown device": to be submitted again */
	/* on a polled queue: may not be completed by an interrupt */
	bool polled;
	u8 account;			/* enum ibnbd_clt_account */
	unsigned long flush;		/* ACCOUNT_FLUSH: its number */
	u64 wrote;			/* and the bytes written when it was sent */
	struct llist_node late;		/* session's late */
};

enum ibnbd_clt_session_state {
	IBNBD_CLT_SESSION_OPENING,
	IBNBD_CLT_SESSION_READY,
	IBNBD_CLT_SESSION_CLOSING,
};

/* A mapping on the server that a removed device could not close. */
struct ibnbd_clt_unclosed {
	struct list_head entry;
	u32 id;
};

struct ibnbd_clt_session {
	/* set before READY, then constant */
	char name[IBNBD_NAME_LEN];
	struct ibtrs_clt *clt;
	struct ibtrs_clt_attrs attrs;
	struct blk_mq_tag_set set;
	struct request_queue *queue;	/* keeps the set shared for ever (L2) */
	void *ops;
	u32 op_stride;
	u32 nr_irq;			/* hardware queues that interrupt; those that poll follow */
	struct workqueue_struct *wq;
	struct delayed_work link_work;
	struct work_struct stop_work;	/* stops a session that could not be opened */

	struct llist_head late;		/* ops of polled queues that an interrupt answered */
	struct work_struct late_work;	/* completes them */

	spinlock_t ev_lock;		/* protects the next four, and changes of devs */
	unsigned long news;
	/* counts link events: answers of an earlier link are void */
	u32 gen;
	bool up;
	bool listening;			/* link_work may be queued */

	struct mutex lock;		/* protects the rest */
	struct list_head devs;
	/*
	 * struct ibnbd_clt_unclosed; under unclosed_lock, which is taken inside a dev's open_lock
	 */
	struct list_head unclosed;
	struct mutex unclosed_lock;
	struct ibnbd_clt_pool *pool;	/* kept.c's; set once, before a device needs it */
	u32 known_gen;			/* the link on which SESS_INFO was answered */
	u8 version;
	u64 features;

	/* under ibnbd_clt_lock of names.c */
	struct list_head entry;
	enum ibnbd_clt_session_state state;
	unsigned int users;
};

static inline struct ibnbd_clt_op *ibnbd_clt_op(void *ops, u32 stride, u32 slot)
{
	return ops + (size_t)stride * slot;
}

/**
 * ibnbd_clt_session_get() - find or open the session of a mapping
 * @m: the mapping: name, paths, session options
 *
 * Waits, killable, while a session of the same name is being opened or closed. Return: the session,
 * with one more user, or an ERR_PTR; a refusal was logged.
 */
struct ibnbd_clt_session *ibnbd_clt_session_get(const struct ibnbd_map *m);
/* Drops a user; the last one closes the session and waits until it is closed. */
void ibnbd_clt_session_put(struct ibnbd_clt_session *s);

/* queue.c: the path of a request from the block layer to ibtrs and back. */

extern const struct blk_mq_ops ibnbd_clt_queue_ops;

/* Allocates @s->ops, which session.c frees. */
int ibnbd_clt_queue_alloc_ops(struct ibnbd_clt_session *s);
/* Work: completes what is on @s->late. */
void ibnbd_clt_queue_late(struct work_struct *work);

/* Ends a request that the server has answered, or that the server cannot execute any more. */
void ibnbd_clt_queue_end(struct ibnbd_clt_op *op, int err);
/*
 * Does the request end in state FAILFAST? It is a read, which another leg can answer, or a flush;
 * or its sender says that it can do without this disk, as md does and the device mapper does not.
 */
bool ibnbd_clt_queue_lets_go(const struct request *rq);
/* Has the request lost several paths, one after the other, for hold= seconds? */
bool ibnbd_clt_queue_is_overdue(const struct ibnbd_clt_op *op);

/* names.c: which device has a name, and how a task waits for a name. */

/*
 * Protects the lists of devices and sessions. Of the other mutexes only refuse_lock is taken under
 * it, and nothing waits for a server under it.
 */
extern struct mutex ibnbd_clt_lock;

int ibnbd_clt_names_init(struct kobject *ctl);
void ibnbd_clt_names_exit(void);

/*
 * Claims the name of a device; waits, killable, for a removal of that name. 0, or an errno whose
 * reason was logged.
 */
int ibnbd_clt_names_claim(struct ibnbd_clt_dev *dev);
/* Takes the device off the list: its name may be mapped again. */
void ibnbd_clt_names_forget(struct ibnbd_clt_dev *dev);
/* Is there a device with this link? Under ibnbd_clt_lock. */
bool ibnbd_clt_names_taken(const char *link);

/* Link and unlink in ctl/devices. */
int ibnbd_clt_names_link(struct ibnbd_clt_dev *dev);
void ibnbd_clt_names_unlink(struct ibnbd_clt_dev *dev);

/*
 * To wait for another task's map or unmap: read the turn under ibnbd_clt_lock, then wait for the
 * next turn without the lock.
 */
unsigned int ibnbd_clt_names_turn(void);
int ibnbd_clt_names_wait(unsigned int turn);
void ibnbd_clt_names_next_turn(void);
/*
 * Waits until @there (called under ibnbd_clt_lock) returns false, but only for a limited time, and
 * not when killed: the removal ends by itself.
 */
void ibnbd_clt_names_wait_gone(bool (*there)(const char *name), const char *name);

#endif
