/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes that are kept until a flush has covered them, and sent again if the server lost them. */
#ifndef IBNBD_CLIENT_KEPT_H
#define IBNBD_CLIENT_KEPT_H

#include "ibnbd/client/dev.h"

struct ibnbd_clt_pool {
	spinlock_t lock;		/* of pool */
	struct ibnbd_kept_pool pool;
	void *mem;			/* of its segments */
	struct ibnbd_clt_session *sess;
	struct work_struct low_work;
	atomic_t flushes;		/* of ours, under way */
};

static inline void *ibnbd_clt_kept_mem(const struct ibnbd_clt_pool *pool, u32 seg, u32 offset)
{
	return pool->mem + (size_t)seg * IBNBD_KEPT_SEG_SIZE + offset;
}

/* The pool of @s, @mib large, if there is none yet. 0 or -ENOMEM. Process context. */
int ibnbd_clt_kept_pool_get(struct ibnbd_clt_session *s, unsigned int mib);
/* No device is left, and no request. */
void ibnbd_clt_kept_pool_free(struct ibnbd_clt_session *s);

/* An empty log, for the life of @dev. */
void ibnbd_clt_kept_init(struct ibnbd_clt_dev *dev);
/* Nobody needs it any more: before the session goes. Waits for a flush that is under way. */
void ibnbd_clt_kept_end(struct ibnbd_clt_dev *dev);

/**
 * ibnbd_clt_kept_add() - keep a write that has completed
 * @op: answered without an error; nobody has heard of it yet
 *
 * Copies the data, under the log's lock. Never waits for memory: without room the log is dropped,
 * and the device has a gap. At half the pool the session's devices are told to flush. Softirq or
 * process context.
 */
void ibnbd_clt_kept_add(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op);
/* Flush @number has succeeded. The same contexts. */
void ibnbd_clt_kept_flushed(struct ibnbd_clt_dev *dev, unsigned long number);
/* Nothing is kept: it was lost, and that was taken, or the account ends. @gap: until a flush. */
void ibnbd_clt_kept_forget(struct ibnbd_clt_dev *dev, bool gap);
/* Is everything there that no flush has covered? */
bool ibnbd_clt_kept_whole(struct ibnbd_clt_dev *dev);

#endif
