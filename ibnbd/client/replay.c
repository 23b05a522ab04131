// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the client sends by itself: a flush when the pool of kept writes is half full, and all that
 * is kept when the server may have lost it.
 *
 * Called by: kept.c (by a work, when the pool is low), open.c (replay).
 *
 * Both go through slots of the transport's own: those of the device may all be taken by requests
 * that wait. Such slots are few, so two flushes of a session are under way at a time, and a replay
 * sends one record after the other. That is its order, too: no two overlapping writes are ever
 * under way at once. Data is copied once more on the way, so that nothing that is under way still,
 * when a call has ended for want of time, lies in memory of the pool.
 *
 * A flush of ours counts as any other does: numbered when it is sent, noted when it has succeeded.
 *
 * Failure: a replay that ends early changes nothing, and the next one starts over. A flush that
 * fails covers nothing; the pool may get full, which makes a gap.
 */
#include <linux/sched/mm.h>
#include "ibnbd/client/replay.h"
#include "ibnbd/client/unflushed.h"
#include "ibnbd/client/wq.h"

#define REPLAY_CALL_MS	10000		/* for each record: that is what L4 gives */
#define REPLAY_FLUSH_MS	30000		/* as a disk may take */
#define REPLAY_FLUSHES	2		/* of ours, at a time, per session */
#define REPLAY_AGAIN	(HZ / 20 ?: 1)

/* ---- flushes of our own ---- */

static int replay_flush(struct ibnbd_clt_dev *dev, u32 device_id, u8 version, u32 link_gen)
{
	struct ibnbd_io m = { .device_id = device_id, .op = IBNBD_OP_FLUSH };
	struct ibnbd_clt_op op;
	struct ibnbd_wire_io hdr;
	u32 len;
	int err;

	len = ibnbd_msg_io_encode(&hdr, version, &m);
	ibnbd_clt_unflushed_send_flush(dev, &op);
	err = ibtrs_clt_call_io(dev->sess->clt, link_gen, IBTRS_READ, &hdr, len, NULL, 0,
				REPLAY_FLUSH_MS);
	if (!err)
		ibnbd_clt_unflushed_flushed(dev, &op);
	return err;
}

void ibnbd_clt_replay_flush_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev =
		container_of(to_delayed_work(work), struct ibnbd_clt_dev, flush_work);
	struct ibnbd_clt_pool *pool = dev->sess->pool;
	unsigned int noio = memalloc_noio_save();
	u32 id, gen;
	bool open;
	u8 version;

	mutex_lock(&dev->lock);
	open = dev->state == IBNBD_DEV_OPEN && dev->keep;
	id = dev->device_id;
	gen = dev->link_gen;
	version = dev->version;
	mutex_unlock(&dev->lock);
	if (!open || (ibnbd_kept_empty(&dev->kept) && !READ_ONCE(dev->kept.gap)))
		goto out;
	if (atomic_inc_return(&pool->flushes) <= REPLAY_FLUSHES)
		replay_flush(dev, id, version, gen);
	else
		queue_delayed_work(ibnbd_clt_dev_wq, &dev->flush_work, REPLAY_AGAIN);
	atomic_dec(&pool->flushes);
out:
	memalloc_noio_restore(noio);
}

/* ---- the way back ---- */

static_assert(IBTRS_CLT_CALL_DATA_MAX % IBNBD_KEPT_BLOCK_MAX == 0);

/* The most that one request of @op may carry or name; 0: none at all. */
static u32 replay_most(const struct ibnbd_limits *lim, u32 op)
{
	u32 sectors;

	switch (op & IBNBD_OP_MASK) {
	case IBNBD_OP_WRITE:
		return IBTRS_CLT_CALL_DATA_MAX;
	case IBNBD_OP_WRITE_ZEROES:
		sectors = lim->max_write_zeroes_sectors;
		break;
	case IBNBD_OP_SECURE_ERASE:
		sectors = lim->max_secure_erase_sectors;
		break;
	default:
		sectors = lim->max_discard_sectors;
		break;
	}
	return min_t(u32, sectors, U32_MAX >> SECTOR_SHIFT) << SECTOR_SHIFT;
}

static int replay_send(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g,
		     const struct ibnbd_kept_rec *rec, const void *data)
{
	u32 most = replay_most(&g->lim, rec->op), done, len;
	bool write = rec->op == IBNBD_OP_WRITE;
	struct ibnbd_wire_io hdr;
	struct ibnbd_io m = {
		.device_id	= g->rsp.device_id,
		.op		= rec->op & IBNBD_OP_MASK,
		.flags		= rec->op & ~IBNBD_OP_MASK,
	};
	int err;

	if (!most)
		return m.op == IBNBD_OP_DISCARD ? 0 : -EPROTO;
	for (done = 0; done < rec->bytes; done += m.bytes) {
		if (READ_ONCE(dev->state) != IBNBD_DEV_REPLAYING)
			return -ECONNRESET;
		m.sector = rec->sector + (done >> SECTOR_SHIFT);
		m.bytes = min(most, rec->bytes - done);
		len = ibnbd_msg_io_encode(&hdr, g->version, &m);
		err = ibtrs_clt_call_io(dev->sess->clt, g->link_gen, IBTRS_WRITE, &hdr, len,
					data + done, write ? m.bytes : 0, REPLAY_CALL_MS);
		if (err)
			return err;
		WRITE_ONCE(dev->resent_bytes, dev->resent_bytes + m.bytes);
	}
	return 0;
}

/* Nothing of the device is in flight and its gate is shut, so the log stands still. */
static int replay_send_all(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	struct ibnbd_clt_pool *pool = dev->sess->pool;
	struct ibnbd_kept_rec rec;
	const void *data;
	u32 seg, at;
	int err;

	for (seg = dev->kept.first; seg != IBNBD_KEPT_NONE; seg = pool->pool.segs[seg].next) {
		for (at = 0; at < pool->pool.segs[seg].used;
		     at += sizeof(rec) + ibnbd_kept_data(&rec)) {
			memcpy(&rec, ibnbd_clt_kept_mem(pool, seg, at), sizeof(rec));
			data = ibnbd_clt_kept_mem(pool, seg, at + sizeof(rec));
			err = replay_send(dev, g, &rec, data);
			if (err)
				return err;
		}
	}
	return 0;
}

int ibnbd_clt_replay(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	lockdep_assert_held(&dev->open_lock);
	return replay_send_all(dev, g) ?:
	       replay_flush(dev, g->rsp.device_id, g->version, g->link_gen);
}
