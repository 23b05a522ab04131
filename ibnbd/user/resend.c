// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Writes that are kept until a flush has covered them, and sent again when the server may have lost
 * them: the driver of logic/kept. The rules are those of the kernel's client (ibnbd/client/kept.c,
 * ibnbd/client/replay.c).
 *
 * A write is copied when it has been answered, under kept_lock. When more than half of the pool is
 * used, the control thread sends a flush of its own. A pool that is full makes a gap, and a loss
 * then fences the disk. Nothing here fails a request.
 *
 * A replay runs in the control thread, while the gates are shut and nothing is on the wire, so the
 * log stands still. It sends one request after the other, so none can pass another one. If it ends
 * early, the next one begins at the beginning; what the server may still execute of this one is
 * noted (at_large), and judge.c has the disk closed before it is used.
 */
#include <stdlib.h>
#include "ibnbd/proto/msg_io.h"
#include "ibnbd/user/disk.h"

#define KEPT_CALL_MS	10000
#define KEPT_FLUSH_MS	30000	/* behind a replay; a disk may take that long */
#define KEPT_LOW_MS	5000	/* while the disk is in use: the link is not watched meanwhile */

/* ---- the pool ------------------------------------------------------------ */

int disk_kept_init(struct ibnbd_disk *d)
{
	u32 nr = d->opts.retain_mb * ((1u << 20) / IBNBD_KEPT_SEG_SIZE);
	struct ibnbd_kept_seg *segs;

	ibnbd_kept_init(&d->kept);
	if (d->opts.unflushed == IBNBD_DISK_UNFLUSHED_FENCE ||
	    d->opts.unflushed == IBNBD_DISK_UNFLUSHED_IGNORE || d->access == IBNBD_ACCESS_RO)
		return 0;
	segs = calloc(nr, sizeof(*segs));
	/* Untouched pages cost nothing. */
	d->kept_mem = malloc((size_t)nr * IBNBD_KEPT_SEG_SIZE);
	if (!segs || !d->kept_mem) {
		free(segs);
		return -ENOMEM;
	}
	ibnbd_kept_pool_init(&d->pool, segs, nr);
	return 0;
}

void disk_kept_free(struct ibnbd_disk *d)
{
	free(d->kept_mem);
	free(d->pool.segs);
}

static u8 *kept_mem(const struct ibnbd_disk *d, u32 seg, u32 offset)
{
	return d->kept_mem + (size_t)seg * IBNBD_KEPT_SEG_SIZE + offset;
}

/* False: the pool is full, and the log was dropped. */
static bool kept_grow(struct ibnbd_disk *d, unsigned long needs)
{
	bool grown = ibnbd_kept_grow(&d->pool, &d->kept);

	if (!grown)
		ibnbd_kept_overflow(&d->pool, &d->kept, needs);
	if (!grown || ibnbd_kept_pool_low(&d->pool))
		disk_tell(d, DISK_NEWS_LOW);
	return grown;
}

static void kept_add(struct ibnbd_disk *d, const struct disk_op *op, u32 block)
{
	unsigned long needs = ibnbd_unflushed_needs(&d->unflushed), safe;
	bool fua = op->account == DISK_ACCOUNT_FUA;
	struct ibnbd_kept_rec rec = {
		.sector	= le64_to_cpu(op->hdr.sector),
		.bytes	= le32_to_cpu(op->hdr.bytes),
		.op	= le32_to_cpu(op->hdr.rw) & (IBNBD_OP_MASK | IBNBD_F_NOUNMAP),
	};
	const u8 *data = op->io.data;
	u32 left = op->io.len;
	struct ibnbd_kept_at at;

	/* A FUA write is safe by itself, but must be kept if a replay could overwrite it. */
	if (fua && ibnbd_kept_empty(&d->kept))
		return;
	for (;;) {
		safe = fua ? ibnbd_kept_needs(&d->pool, &d->kept) : needs;
		if (!ibnbd_kept_place(&d->pool, &d->kept, left, block, safe, &at)) {
			if (!kept_grow(d, needs))
				return;
			continue;
		}
		if (left) {
			rec.bytes = at.bytes;
			memcpy(kept_mem(d, at.seg, at.offset + sizeof(rec)),
			       data + op->io.len - left, at.bytes);
		}
		memcpy(kept_mem(d, at.seg, at.offset), &rec, sizeof(rec));
		rec.sector += at.bytes >> IBNBD_SECTOR_SHIFT;
		left -= at.bytes;
		if (!left)
			return;
	}
}

void disk_kept_add(struct ibnbd_q *q, const struct disk_op *op)
{
	struct ibnbd_disk *d = q->disk;

	pthread_mutex_lock(&d->kept_lock);
	kept_add(d, op, q->terms.facts.logical_block_size);
	pthread_mutex_unlock(&d->kept_lock);
}

void disk_kept_flushed(struct ibnbd_disk *d, unsigned long number)
{
	pthread_mutex_lock(&d->kept_lock);
	ibnbd_kept_flushed(&d->pool, &d->kept, number);
	pthread_mutex_unlock(&d->kept_lock);
}

void disk_kept_forget(struct ibnbd_disk *d, bool gap)
{
	pthread_mutex_lock(&d->kept_lock);
	ibnbd_kept_drop(&d->pool, &d->kept);
	d->kept.gap = false;
	if (gap)
		ibnbd_kept_overflow(&d->pool, &d->kept, ibnbd_unflushed_needs(&d->unflushed));
	pthread_mutex_unlock(&d->kept_lock);
}

bool disk_kept_whole(struct ibnbd_disk *d)
{
	bool whole;

	pthread_mutex_lock(&d->kept_lock);
	whole = d->keeps == DISK_KEEPS_DATA && !d->kept.gap;
	pthread_mutex_unlock(&d->kept_lock);
	return whole;
}

/* ---- requests of the library itself ---------------------------------------- */

/* *@at_large: the server may still execute it. */
static int kept_call(struct ibnbd_disk *d, const struct disk_grant *g, const struct ibnbd_io *m,
		     void *data, int timeout_ms, bool *at_large)
{
	struct ibnbd_wire_io hdr;
	struct ibtrs_io io = {
		.dir	= ibnbd_msg_op_reads(m->op) ? IBTRS_IO_READ : IBTRS_IO_WRITE,
		.hdr	= &hdr,
		.len	= ibnbd_msg_io_data_len(m->op, m->bytes),
		.data	= data,
	};
	int err;

	io.hdr_len = (u16)ibnbd_msg_io_encode(&hdr, g->version, m);
	if (disk_stops(d) || !disk_ask_on(d, g->ups))
		return -ECONNRESET;
	err = ibtrs_clt_call_io(d->clt, &io, timeout_ms);
	*at_large |= err == -ETIMEDOUT || err == -ECONNRESET;
	return err;
}

static int kept_flush(struct ibnbd_disk *d, const struct disk_grant *g, struct disk_op *op,
		      int timeout_ms)
{
	const struct ibnbd_io m = { .device_id = g->rsp.device_id, .op = IBNBD_OP_FLUSH };
	bool ignored = false;

	disk_account_flush(d, op);
	return kept_call(d, g, &m, NULL, timeout_ms, &ignored);
}

/*
 * The pool is low. The flush counts if the disk still lives by the grant that it was sent to: later
 * it may be in a replay, whose log must not change.
 */
void disk_kept_low(struct ibnbd_disk *d)
{
	struct disk_grant g;
	struct disk_op op;
	bool open;
	int err;

	pthread_mutex_lock(&d->lock);
	open = d->state == IBNBD_DEV_OPEN && d->keeps == DISK_KEEPS_DATA;
	g = d->grant;
	pthread_mutex_unlock(&d->lock);
	if (!open)
		return;
	err = kept_flush(d, &g, &op, KEPT_LOW_MS);
	pthread_mutex_lock(&d->lock);
	if (d->state == IBNBD_DEV_OPEN && d->grant.rsp.device_id == g.rsp.device_id &&
	    d->grant.ups == g.ups) {
		if (!err && !READ_ONCE(d->flush_failed))
			disk_account_flushed(d, &op);
		else if (err && !disk_ask_unreached(err))
			disk_account_doubt(d);
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- the replay ------------------------------------------------------------ */

static int kept_send(struct ibnbd_disk *d, const struct disk_grant *g,
		     const struct ibnbd_kept_rec *rec, u8 *data, bool *at_large)
{
	struct ibnbd_io m = {
		.device_id	= g->rsp.device_id,
		.op		= rec->op & IBNBD_OP_MASK,
		.flags		= rec->op & ~IBNBD_OP_MASK,
	};
	u32 most = ibnbd_limits_most(&g->lim, m.op), done;
	int err = 0;

	if (!most)
		return m.op == IBNBD_OP_DISCARD ? 0 : -EPROTO;
	for (done = 0; done < rec->bytes && !err; done += m.bytes) {
		m.sector = rec->sector + (done >> IBNBD_SECTOR_SHIFT);
		m.bytes = most < rec->bytes - done ? most : rec->bytes - done;
		err = kept_call(d, g, &m, data + done, KEPT_CALL_MS, at_large);
	}
	return err;
}

static int kept_send_all(struct ibnbd_disk *d, const struct disk_grant *g, bool *at_large)
{
	struct ibnbd_kept_rec rec;
	u32 seg, at;
	int err;

	for (seg = d->kept.first; seg != IBNBD_KEPT_NONE; seg = d->pool.segs[seg].next) {
		for (at = 0; at < d->pool.segs[seg].used;
		     at += sizeof(rec) + ibnbd_kept_data(&rec)) {
			memcpy(&rec, kept_mem(d, seg, at), sizeof(rec));
			err = kept_send(d, g, &rec, kept_mem(d, seg, at + sizeof(rec)), at_large);
			if (err)
				return err;
		}
	}
	return 0;
}

void disk_kept_replay(struct ibnbd_disk *d, const struct disk_grant *g)
{
	bool at_large = false;
	struct disk_op op;
	int err = kept_send_all(d, g, &at_large);

	err = err ?: kept_flush(d, g, &op, KEPT_FLUSH_MS);
	pthread_mutex_lock(&d->lock);
	d->at_large.resent = at_large;
	d->at_large.resent_id = g->rsp.device_id;
	if (!err) {
		disk_account_flushed(d, &op);
		__atomic_store_n(&d->flush_failed, false, __ATOMIC_RELAXED);
		d->replays++;
		disk_post(d, IBNBD_DEV_EV_OPENED, g);
	} else if (disk_ask_unreached(err)) {
		disk_lose(d, "not all writes that the server may have lost could be sent again");
		disk_ask_later(d, DISK_HELD_MS);
	} else {
		disk_say(d, "the writes that the server may have lost cannot be repeated (%d): close the disk and open it again to accept the loss",
			 err);
		disk_post(d, IBNBD_DEV_EV_FENCE, NULL);
	}
	pthread_mutex_unlock(&d->lock);
}
