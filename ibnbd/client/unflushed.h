/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver of logic/unflushed: what a device has written that no flush has covered. */
#ifndef IBNBD_CLIENT_UNFLUSHED_H
#define IBNBD_CLIENT_UNFLUSHED_H

#include <linux/percpu.h>
#include "ibnbd/client/dev.h"
#include "ibnbd/proto/msg.h"

/* kept.c: writes that are kept until a flush has covered them, and sent again if they are lost. */

struct ibnbd_clt_pool {
	spinlock_t lock;		/* protects pool */
	struct ibnbd_kept_pool pool;
	void *mem;			/* the memory of its segments */
	struct ibnbd_clt_session *sess;
	struct work_struct low_work;
	atomic_t flushes;		/* our own, under way */
};

static inline void *ibnbd_clt_kept_mem(const struct ibnbd_clt_pool *pool, u32 seg, u32 offset)
{
	return pool->mem + (size_t)seg * IBNBD_KEPT_SEG_SIZE + offset;
}

/* Allocates the pool of @s, @mib MiB, unless @s has one. 0 or -ENOMEM. Process context. */
int ibnbd_clt_kept_pool_get(struct ibnbd_clt_session *s, unsigned int mib);
/* Frees a pool, or nothing if @pool is NULL. No device is left, and no request. */
void ibnbd_clt_kept_pool_free(struct ibnbd_clt_pool *pool);

/**
 * ibnbd_clt_kept_add() - keep a write that has completed
 * @op: answered without an error; the block layer has not heard of it yet
 *
 * Copies the data, side by side with other CPUs. Never waits for memory: when the pool is full, the
 * log is dropped and the device has a gap. When more than half of the pool is in use, the session's
 * devices are told to flush. Softirq or process context.
 */
void ibnbd_clt_kept_add(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op);
/* Flush @number has succeeded. The same contexts. */
void ibnbd_clt_kept_flushed(struct ibnbd_clt_dev *dev, unsigned long number);
/*
 * Drops the log: its loss was accepted, keeping begins or ends, or another client has written.
 * @gap: the device has a gap until a flush has covered it.
 */
void ibnbd_clt_kept_forget(struct ibnbd_clt_dev *dev, bool gap);
/* Are all writes kept that no flush has covered? */
bool ibnbd_clt_kept_whole(struct ibnbd_clt_dev *dev);

/* unflushed.c: the account. */

/*
 * send: a flush is about to be sent. flushed: it was answered without an error. Softirq or process
 * context.
 */
void ibnbd_clt_unflushed_send_flush(struct ibnbd_clt_dev *dev, struct ibnbd_clt_op *op);
void ibnbd_clt_unflushed_flushed(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op);

/**
 * ibnbd_clt_unflushed_send() - note what a request means for the account
 * @op: of the request, which is about to be submitted
 * @kind: what it does
 * @fua: it has FUA
 *
 * Called in queue_rq, and in inflight.c when a request that the account has not noted is posted
 * again. Writes only @op, and for a flush the account.
 */
static __always_inline void ibnbd_clt_unflushed_send(struct ibnbd_clt_dev *dev,
						     struct ibnbd_clt_op *op, enum ibnbd_op kind,
						     bool fua)
{
	op->account = IBNBD_CLT_ACCOUNT_NOTHING;
	if (!dev->keeps || kind == IBNBD_OP_READ)
		return;
	if (kind == IBNBD_OP_FLUSH)
		ibnbd_clt_unflushed_send_flush(dev, op);
	else if (kind != IBNBD_OP_WRITE || !fua)
		op->account = IBNBD_CLT_ACCOUNT_WRITE;
	else
		op->account = IBNBD_CLT_ACCOUNT_FUA;
}

/**
 * ibnbd_clt_unflushed_done() - a request was answered without an error
 *
 * Must run before the block layer hears of the request: a flush that is sent afterwards relies on
 * the account. Unless data is kept, a write touches only one cache line that all CPUs share and
 * that changes once per flush, and a counter of its own CPU. Softirq or process context.
 */
static __always_inline void ibnbd_clt_unflushed_done(const struct ibnbd_clt_op *op)
{
	struct ibnbd_clt_dev *dev = op->dev;

	if (op->account == IBNBD_CLT_ACCOUNT_NOTHING)
		return;
	/* Before it is kept: if the log is dropped in between, the account knows of the gap. */
	if (op->account == IBNBD_CLT_ACCOUNT_WRITE)
		ibnbd_unflushed_wrote(&dev->unflushed);
	if (dev->keeps == IBNBD_CLT_KEEPS_DATA && op->account != IBNBD_CLT_ACCOUNT_FLUSH)
		ibnbd_clt_kept_add(dev, op);
	if (op->account == IBNBD_CLT_ACCOUNT_WRITE) {
		this_cpu_add(*dev->wrote, blk_rq_bytes(op->rq));
	} else if (op->account == IBNBD_CLT_ACCOUNT_FLUSH && !READ_ONCE(dev->flush_failed)) {
		/*
		 * A flush beside a failed one proves nothing: it may have found nothing left to
		 * write.
		 */
		ibnbd_clt_unflushed_flushed(dev, op);
	}
}

/**
 * ibnbd_clt_unflushed_failed() - a request was answered with an error of the server's disk
 * @op: of the request
 *
 * The server's disk reports a failed flush only once: the disk may have dropped what it could not
 * write, and the next flush would succeed. So a failed flush counts as another epoch, if anything
 * is not flushed. Any context.
 *
 * Return: true if the failure counts as another epoch.
 */
bool ibnbd_clt_unflushed_failed(const struct ibnbd_clt_op *op);

/* Bytes that were written, zeroed or discarded, and that no flush has covered. For display only. */
u64 ibnbd_clt_unflushed_bytes(const struct ibnbd_clt_dev *dev);

/* The rest: under dev->lock. */

/* What is kept with a server that answers @g? Without memory for the data, the account alone. */
enum ibnbd_clt_keeps ibnbd_clt_unflushed_keeps(const struct ibnbd_clt_dev *dev,
					       const struct ibnbd_clt_grant *g);
/* Is the account kept, and does @g name another epoch than dev->grant, or did a flush fail? */
bool ibnbd_clt_unflushed_other(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/*
 * May what was acknowledged and not flushed be lost, now that the server answers @g? Nothing of the
 * device is in flight.
 */
bool ibnbd_clt_unflushed_lost(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/* The loss was judged, or the writes were sent again: failed flushes do not count any more. */
void ibnbd_clt_unflushed_made_good(struct ibnbd_clt_dev *dev);
/* An administrator accepts the loss. */
void ibnbd_clt_unflushed_accept(struct ibnbd_clt_dev *dev);

#endif
