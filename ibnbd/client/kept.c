// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver of logic/kept: it has the memory and copies the data.
 *
 * The pool of a session is one piece of memory. It is allocated when the first device that needs it
 * is mapped, before that device has any request (L22). A device takes segments as it writes and
 * gives them back when a flush has covered them, so a thousand disks of one session cost no more
 * than the pool. When more than half of the pool is in use, each device that keeps something, or
 * has a gap, is told to flush (replay.c).
 *
 * Locking: kept_lock of a device protects its log. A write reserves its place under kept_lock and
 * copies its data under kept_copying, as a reader, so that CPUs copy side by side; segments are
 * freed under both, as a writer of kept_copying. pool->lock is taken inside them, only to move
 * segments. All are taken in softirqs. A replay takes none: nothing of the device is in flight.
 *
 * Failure: a pool that is full makes a gap; without memory for a pool nothing is kept. In both
 * cases a loss fences the device, which would replay otherwise. No failure here fails a request.
 */
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "ibnbd/client/unflushed.h"

/* ---- the pool ---- */

static void kept_low_work(struct work_struct *work)
{
	struct ibnbd_clt_pool *pool = container_of(work, struct ibnbd_clt_pool, low_work);
	struct ibnbd_clt_dev *dev;

	guard(mutex)(&pool->sess->lock);
	list_for_each_entry(dev, &pool->sess->devs, sess_entry)
		if (!ibnbd_kept_empty(&dev->kept) || READ_ONCE(dev->kept.gap))
			queue_delayed_work(ibnbd_clt_dev_wq, &dev->flush_work, 0);
}

void ibnbd_clt_kept_pool_free(struct ibnbd_clt_pool *pool)
{
	if (!pool)
		return;
	cancel_work_sync(&pool->low_work);
	vfree(pool->mem);
	kvfree(pool->pool.segs);
	kfree(pool);
}

int ibnbd_clt_kept_pool_get(struct ibnbd_clt_session *s, unsigned int mib)
{
	u32 nr = mib * (SZ_1M / IBNBD_KEPT_SEG_SIZE);
	struct ibnbd_clt_pool *pool;
	struct ibnbd_kept_seg *segs;

	if (READ_ONCE(s->pool))
		return 0;
	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return -ENOMEM;
	spin_lock_init(&pool->lock);
	INIT_WORK(&pool->low_work, kept_low_work);
	pool->sess = s;
	pool->mem = vmalloc(array_size(nr, IBNBD_KEPT_SEG_SIZE));
	segs = kvcalloc(nr, sizeof(*segs), GFP_KERNEL);
	if (segs)
		ibnbd_kept_pool_init(&pool->pool, segs, nr);
	if (segs && pool->mem) {
		/* The memory was allocated without this lock: a link that comes back needs it. */
		guard(mutex)(&s->lock);
		if (!s->pool)
			swap(s->pool, pool);
	}
	ibnbd_clt_kept_pool_free(pool);
	return READ_ONCE(s->pool) ? 0 : -ENOMEM;
}

/* ---- the log ---- */

/* False: the pool is full, and the log was dropped. */
static bool kept_grow(struct ibnbd_clt_dev *dev, struct ibnbd_clt_pool *pool, unsigned long needs)
{
	bool low, grown;

	spin_lock(&pool->lock);
	grown = ibnbd_kept_grow(&pool->pool, &dev->kept);
	low = ibnbd_kept_pool_low(&pool->pool);
	spin_unlock(&pool->lock);
	if (!grown) {
		write_lock(&dev->kept_copying);
		spin_lock(&pool->lock);
		ibnbd_kept_overflow(&pool->pool, &dev->kept, needs);
		spin_unlock(&pool->lock);
		write_unlock(&dev->kept_copying);
	}
	if (low || !grown)
		queue_work(ibnbd_clt_dev_wq, &pool->low_work);
	return grown;
}

/* Copies the data of @op into the records that were reserved for it, the first of them at @at. */
static void kept_copy(struct ibnbd_clt_pool *pool, const struct ibnbd_clt_op *op,
		      struct ibnbd_kept_at at)
{
	struct ibnbd_kept_rec *rec;
	u32 done;

	for (done = 0; done < op->io.len; done += rec->bytes) {
		if (done)	/* the rest begins the next segment */
			at = (struct ibnbd_kept_at){ .seg = pool->pool.segs[at.seg].next };
		rec = ibnbd_clt_kept_mem(pool, at.seg, at.offset);
		sg_pcopy_to_buffer(op->io.sgl, op->io.nents, rec + 1, rec->bytes, done);
	}
}

void ibnbd_clt_kept_add(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op)
{
	bool fua = op->account == IBNBD_CLT_ACCOUNT_FUA;
	struct ibnbd_clt_pool *pool = dev->sess->pool;
	u32 block = dev->grant.lim.logical_block_size;
	struct ibnbd_kept_at at, first = {};
	unsigned long needs, safe;
	struct ibnbd_kept_rec rec;
	u32 left = op->io.len;

	rec.sector = le64_to_cpu(op->hdr->sector);
	rec.bytes = le32_to_cpu(op->hdr->bytes);
	rec.op = le32_to_cpu(op->hdr->rw) & (IBNBD_OP_MASK | IBNBD_F_NOUNMAP);
	spin_lock_bh(&dev->kept_lock);
	needs = ibnbd_unflushed_needs(&dev->unflushed);
	/* A FUA write is safe by itself, but must be kept if a replay could overwrite it. */
	if (fua && ibnbd_kept_empty(&dev->kept))
		goto unlock;
	for (;;) {
		safe = fua ? ibnbd_kept_needs(&pool->pool, &dev->kept) : needs;
		if (!ibnbd_kept_place(&pool->pool, &dev->kept, left, block, safe, &at)) {
			if (!kept_grow(dev, pool, needs))
				goto unlock;
			continue;
		}
		if (left == op->io.len)
			first = at;
		if (left)
			rec.bytes = at.bytes;
		memcpy(ibnbd_clt_kept_mem(pool, at.seg, at.offset), &rec, sizeof(rec));
		rec.sector += at.bytes >> SECTOR_SHIFT;
		left -= at.bytes;
		if (!left)
			break;
	}
	read_lock(&dev->kept_copying);
	spin_unlock(&dev->kept_lock);
	kept_copy(pool, op, first);
	read_unlock_bh(&dev->kept_copying);
	return;
unlock:
	spin_unlock_bh(&dev->kept_lock);
}

void ibnbd_clt_kept_flushed(struct ibnbd_clt_dev *dev, unsigned long number)
{
	struct ibnbd_clt_pool *pool = dev->sess->pool;

	spin_lock_bh(&dev->kept_lock);
	write_lock(&dev->kept_copying);
	spin_lock(&pool->lock);
	ibnbd_kept_flushed(&pool->pool, &dev->kept, number);
	spin_unlock(&pool->lock);
	write_unlock(&dev->kept_copying);
	spin_unlock_bh(&dev->kept_lock);
}

void ibnbd_clt_kept_forget(struct ibnbd_clt_dev *dev, bool gap)
{
	struct ibnbd_clt_pool *pool = dev->sess ? dev->sess->pool : NULL;

	if (!pool)
		return;
	spin_lock_bh(&dev->kept_lock);
	write_lock(&dev->kept_copying);
	spin_lock(&pool->lock);
	ibnbd_kept_drop(&pool->pool, &dev->kept);
	dev->kept.gap = false;
	if (gap)
		ibnbd_kept_overflow(&pool->pool, &dev->kept,
				    ibnbd_unflushed_needs(&dev->unflushed));
	spin_unlock(&pool->lock);
	write_unlock(&dev->kept_copying);
	spin_unlock_bh(&dev->kept_lock);
}

bool ibnbd_clt_kept_whole(struct ibnbd_clt_dev *dev)
{
	return dev->keeps == IBNBD_CLT_KEEPS_DATA && !READ_ONCE(dev->kept.gap);
}
