// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Requests of any length that wait: split as the disk takes them, one part after the other.
 */
#include "ibnbd/user/disk.h"

struct io_whole {
	enum ibnbd_req_op op;
	u8 *data;
	u64 len;
	u64 offset;
	unsigned int flags;
};

static struct disk_terms io_terms(struct ibnbd_q *q)
{
	struct disk_terms t;

	pthread_mutex_lock(&q->lock);
	t = q->terms;
	pthread_mutex_unlock(&q->lock);
	return t;
}

static u32 io_most(const struct disk_terms *t, enum ibnbd_req_op op)
{
	switch (op) {
	case IBNBD_REQ_DISCARD:
		return t->facts.max_discard_sectors << IBNBD_SECTOR_SHIFT;
	case IBNBD_REQ_ZEROES:
		return t->facts.max_write_zeroes_sectors << IBNBD_SECTOR_SHIFT;
	default:
		return t->max_bytes;
	}
}

/* All of it, until a part fails. A length of 0 is one request, which is refused with words. */
static int io_do(struct ibnbd_q *q, const struct disk_terms *t, const struct io_whole *w,
		 const char **why)
{
	u32 most = io_most(t, w->op);
	struct ibnbd_req req;
	u64 done = 0;
	int err;

	do {
		req = (struct ibnbd_req){
			.op	= (u8)w->op,
			.flags	= (u8)w->flags,
			.len	= (u32)(w->len - done < most ? w->len - done : most),
			.offset	= w->offset + done,
			.data	= w->data ? w->data + done : NULL,
		};
		if (!most)
			req.len = t->facts.logical_block_size;
		err = ibnbd_q_do(q, &req);
		done += req.len;
	} while (!err && done < w->len);
	if (err && why)
		*why = req.why;
	return err;
}

int ibnbd_read(struct ibnbd_q *q, void *data, size_t len, uint64_t offset, const char **why)
{
	const struct io_whole w = { IBNBD_REQ_READ, data, len, offset };
	const struct disk_terms t = io_terms(q);

	return io_do(q, &t, &w, why);
}

int ibnbd_write(struct ibnbd_q *q, const void *data, size_t len, uint64_t offset,
		unsigned int flags, const char **why)
{
	const struct disk_terms t = io_terms(q);
	bool flush = flags & IBNBD_REQ_FUA && t.cache && !t.fua;
	const struct io_whole w = {
		IBNBD_REQ_WRITE, (u8 *)data, len, offset,
		flush ? flags & ~IBNBD_REQ_FUA : flags,
	};
	int err;

	err = io_do(q, &t, &w, why);
	return !err && flush ? ibnbd_flush(q, why) : err;
}

int ibnbd_flush(struct ibnbd_q *q, const char **why)
{
	struct ibnbd_req req = { .op = IBNBD_REQ_FLUSH };
	int err;

	err = ibnbd_q_do(q, &req);
	if (err && why)
		*why = req.why;
	return err;
}

int ibnbd_discard(struct ibnbd_q *q, uint64_t len, uint64_t offset, const char **why)
{
	const struct io_whole w = { IBNBD_REQ_DISCARD, NULL, len, offset };
	const struct disk_terms t = io_terms(q);

	return io_do(q, &t, &w, why);
}

int ibnbd_zeroes(struct ibnbd_q *q, uint64_t len, uint64_t offset, unsigned int flags,
		 const char **why)
{
	const struct io_whole w = { IBNBD_REQ_ZEROES, NULL, len, offset, flags };
	const struct disk_terms t = io_terms(q);

	return io_do(q, &t, &w, why);
}
