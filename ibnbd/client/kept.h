/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes that are kept until a flush has covered them, and sent again if the server lost them. */
#ifndef IBNBD_CLIENT_KEPT_H
#define IBNBD_CLIENT_KEPT_H

#include "ibnbd/client/dev.h"

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

#endif
