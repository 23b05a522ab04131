// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that the client sends by itself: a flush when the pool of kept writes is more than half
 * used, and all kept writes when the server may have lost them.
 *
 * Both use the transport's own slots, because requests that wait may hold all slots of the device.
 * The transport has few such slots, so a session has at most two flushes of its own under way, and
 * a replay uses only one slot when fewer than half are free. The transport copies the data once
 * more: when a call times out, its data may still be under way and must not lie in the pool.
 *
 * A flush of our own counts as any other flush: it is numbered when it is sent and noted when it
 * has succeeded. A flush that was sent because the pool was low is noted only if the device still
 * uses the mapping that the flush was sent to. Later the device may be replaying, and the replay
 * reads the log, which must not change.
 *
 * Failure: a replay that ends early changes nothing, and the next replay starts from the beginning.
 * But the server may still execute what the first replay had under way, and overwrite newer data:
 * open.c prevents this before the next replay. A flush that is not answered covers nothing; the
 * pool may get full, which makes a gap. If the server's disk fails a flush, the writes that it
 * should have covered may be lost, and the next flush would succeed: so the kept writes are sent
 * again. If the flush behind a replay fails, the device is fenced.
 */
#include "ibnbd/client/open.h"
#include "ibnbd/client/unflushed.h"
#include "ibnbd/proto/msg_io.h"

#define REPLAY_CALL_MS	10000		/* for each call; then the replay starts over */
#define REPLAY_FLUSH_MS	30000		/* a disk may take that long */
#define REPLAY_FLUSHES	2		/* our own, under way at a time, per session */
#define REPLAY_AGAIN	(HZ / 20 ?: 1)
#define REPLAY_WINDOW	8		/* calls under way */

/* ---- flushes of our own ---- */

/* @op: for ibnbd_clt_unflushed_flushed(), if the flush succeeds */
static int replay_flush(struct ibnbd_clt_dev *dev, struct ibnbd_clt_op *op, u32 device_id,
			u8 version, u32 link_gen, bool *answered)
{
	struct ibnbd_io m = { .device_id = device_id, .op = IBNBD_OP_FLUSH };
	struct ibtrs_clt_call *call;
	struct ibnbd_wire_io hdr;
	u32 len;
	int err;

	len = ibnbd_msg_io_encode(&hdr, version, &m);
	op->dev = dev;
	ibnbd_clt_unflushed_send_flush(dev, op);
	call = ibtrs_clt_call_io_begin(dev->sess->clt, link_gen, IBTRS_READ, &hdr, len, NULL, 0,
				       REPLAY_FLUSH_MS, false);
	*answered = !IS_ERR(call);
	err = IS_ERR(call) ? PTR_ERR(call) : ibtrs_clt_call_io_end(call);
	*answered &= !ibtrs_clt_call_unanswered(err);
	return err;
}

/* Our mapping keeps its id and link as long as it lives, so both together identify it. */
static void replay_flushed(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op, u32 device_id,
			   u32 link_gen, int err)
{
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN || dev->device_id != device_id ||
	    dev->link_gen != link_gen)
		return;
	if (!err && !READ_ONCE(dev->flush_failed))
		ibnbd_clt_unflushed_flushed(dev, op);
	/* The block layer did not send this flush, so the error cannot be reported there. */
	if (err == -ENOTCONN || (err && ibnbd_clt_unflushed_failed(op)))
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_FLUSH);
}

void ibnbd_clt_replay_flush_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev =
		container_of(to_delayed_work(work), struct ibnbd_clt_dev, flush_work);
	struct ibnbd_clt_pool *pool = dev->sess->pool;
	struct ibnbd_clt_op op;
	bool open, answered;
	u32 id, gen;
	u8 version;
	int err;

	guard(noio)();
	mutex_lock(&dev->lock);
	open = dev->state == IBNBD_DEV_OPEN && dev->keeps == IBNBD_CLT_KEEPS_DATA;
	id = dev->device_id;
	gen = dev->link_gen;
	version = dev->version;
	mutex_unlock(&dev->lock);
	if (!open || (ibnbd_kept_empty(&dev->kept) && !READ_ONCE(dev->kept.gap)))
		return;
	if (atomic_inc_return(&pool->flushes) > REPLAY_FLUSHES) {
		queue_delayed_work(ibnbd_clt_dev_wq, &dev->flush_work, REPLAY_AGAIN);
	} else {
		err = replay_flush(dev, &op, id, version, gen, &answered);
		if (answered)
			replay_flushed(dev, &op, id, gen, err);
	}
	atomic_dec(&pool->flushes);
}

/* ---- the way back ---- */

static_assert(IBTRS_CLT_CALL_DATA_MAX % IBNBD_KEPT_BLOCK_MAX == 0);

/* Calls under way, the oldest first. */
struct replay {
	struct ibnbd_clt_dev *dev;
	const struct ibnbd_clt_grant *g;
	unsigned int nr;
	struct replay_call {
		struct ibtrs_clt_call *call;
		u64 sector;
		u32 bytes;
	} calls[REPLAY_WINDOW];
	bool at_large;			/* the server may still execute a call */
};

static int replay_wait_first(struct replay *r)
{
	struct replay_call first = r->calls[0];
	int err = ibtrs_clt_call_io_end(first.call);

	memmove(r->calls, r->calls + 1, --r->nr * sizeof(first));
	if (ibtrs_clt_call_unanswered(err))
		r->at_large = true;
	if (!err)
		WRITE_ONCE(r->dev->resent_bytes, r->dev->resent_bytes + first.bytes);
	return err;
}

/* Waits for all calls, even if one fails. @err: an earlier error, which is returned first. */
static int replay_wait(struct replay *r, int err)
{
	int one;

	while (r->nr) {
		one = replay_wait_first(r);
		err = err ?: one;
	}
	return err;
}

static bool replay_overlaps(const struct replay *r, u64 sector, u32 bytes)
{
	const struct replay_call *c;

	for (c = r->calls; c < r->calls + r->nr; c++)
		if (sector < c->sector + (c->bytes >> SECTOR_SHIFT) &&
		    c->sector < sector + (bytes >> SECTOR_SHIFT))
			return true;
	return false;
}

static int replay_begin(struct replay *r, const struct ibnbd_io *m, const void *data, u32 data_len)
{
	struct ibtrs_clt_call *call;
	struct ibnbd_wire_io hdr;
	u32 len;
	int err;

	len = ibnbd_msg_io_encode(&hdr, r->g->version, m);
	for (;;) {
		if (READ_ONCE(r->dev->state) != IBNBD_DEV_REPLAYING)
			return -ECONNRESET;
		if (r->nr < REPLAY_WINDOW && !replay_overlaps(r, m->sector, m->bytes)) {
			call = ibtrs_clt_call_io_begin(r->dev->sess->clt, r->g->link_gen,
						       IBTRS_WRITE, &hdr, len, data, data_len,
						       REPLAY_CALL_MS, r->nr);
			if (!IS_ERR(call))
				break;
			if (PTR_ERR(call) != -EAGAIN)
				return PTR_ERR(call);
		}
		err = replay_wait_first(r);
		if (err)
			return err;
	}
	r->calls[r->nr++] = (struct replay_call){ call, m->sector, m->bytes };
	return 0;
}

static int replay_send(struct replay *r, const struct ibnbd_kept_rec *rec, const void *data)
{
	bool write = rec->op == IBNBD_OP_WRITE;
	struct ibnbd_io m = {
		.device_id	= r->g->rsp.device_id,
		.op		= rec->op & IBNBD_OP_MASK,
		.flags		= rec->op & ~IBNBD_OP_MASK,
	};
	u32 most = ibnbd_limits_most(&r->g->lim, m.op), done;
	int err;

	if (write)
		most = min_t(u32, most, IBTRS_CLT_CALL_DATA_MAX);
	if (!most)
		return m.op == IBNBD_OP_DISCARD ? 0 : -EPROTO;
	for (done = 0; done < rec->bytes; done += m.bytes) {
		m.sector = rec->sector + (done >> SECTOR_SHIFT);
		m.bytes = min(most, rec->bytes - done);
		err = replay_begin(r, &m, data + done, write ? m.bytes : 0);
		if (err)
			return err;
	}
	return 0;
}

/* Nothing of the device is in flight and its gate is shut, so the log stands still. */
static int replay_send_all(struct replay *r)
{
	struct ibnbd_clt_pool *pool = r->dev->sess->pool;
	struct ibnbd_kept_rec rec;
	const void *data;
	u32 seg, at;
	int err;

	for (seg = r->dev->kept.first; seg != IBNBD_KEPT_NONE; seg = pool->pool.segs[seg].next) {
		for (at = 0; at < pool->pool.segs[seg].used;
		     at += sizeof(rec) + ibnbd_kept_data(&rec)) {
			memcpy(&rec, ibnbd_clt_kept_mem(pool, seg, at), sizeof(rec));
			data = ibnbd_clt_kept_mem(pool, seg, at + sizeof(rec));
			err = replay_send(r, &rec, data);
			if (err)
				return err;
		}
	}
	return 0;
}

int ibnbd_clt_replay(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g, bool *at_large)
{
	struct replay r = { .dev = dev, .g = g };
	struct ibnbd_clt_op op;
	bool answered;
	int err;

	lockdep_assert_held(&dev->open_lock);
	err = replay_wait(&r, replay_send_all(&r));
	*at_large = r.at_large;
	err = err ?: replay_flush(dev, &op, g->rsp.device_id, g->version, g->link_gen,
				  &answered);
	if (!err)
		ibnbd_clt_unflushed_flushed(dev, &op);
	return err;
}
