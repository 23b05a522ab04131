/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pool of writes that are kept until a flush has covered them, so that they can be sent again
 * when the server has lost its cache: who has which segment, what is in it, what may be forgotten.
 *
 * A session has one pool of segments, given to its devices as they need them; each device has a log
 * of records, in the order in which writes completed, in a chain of segments. A record is a header
 * and its data; one that does not fit where the log ends is cut into several, of whole blocks. The
 * caller has the memory: this file says where in it.
 *
 * A segment is forgotten when a flush has covered its last record, the oldest segment first. So of
 * any record that is left, everything that completed after it is left, too: sending the log again
 * never puts an older write over a newer one. Two rules keep that true:
 *
 *	- a FUA write, which is safe by itself, is kept as long as the log has anything it could
 *	  lie over;
 *	- when the pool is full the log is dropped, and the device has a *gap* until a flush covers
 *	  that moment. It begins a new log behind it, which is good for nothing before that.
 *
 * One after the other, in the order of the log, is how it is sent: no two overlapping writes are
 * ever under way at once. Two that were under way at once when they were first sent have no order
 * on any disk.
 *
 * Locking: the caller's; the log of one device and the pool may have different locks.
 */
#ifndef IBNBD_LOGIC_KEPT_H
#define IBNBD_LOGIC_KEPT_H

#include "ibnbd/logic/unflushed.h"
#include "ibnbd/proto/wire.h"

#define IBNBD_KEPT_SEG_SIZE	65536u
#define IBNBD_KEPT_BLOCK_MAX	4096u	/* logical block size that can be kept */
#define IBNBD_KEPT_NONE		U32_MAX

struct ibnbd_kept_rec {			/* in front of its data */
	u64 sector;
	u32 bytes;			/* of the operation; of data only with a WRITE */
	u32 op;				/* enum ibnbd_op */
};

struct ibnbd_kept_seg {
	u32 next;			/* of the log, or of the free ones */
	u32 used;			/* bytes */
	unsigned long needs;		/* the flush that covers its last record */
};

struct ibnbd_kept_pool {
	struct ibnbd_kept_seg *segs;
	u32 nr;
	u32 nr_free;
	u32 free;			/* the first */
};

struct ibnbd_kept {
	u32 first, last;		/* segments */
	bool gap;
	unsigned long gap_needs;	/* the flush that closes the gap */
};

/* Where a record lies, and how much of the data it takes. */
struct ibnbd_kept_at {
	u32 seg;
	u32 offset;			/* of the header */
	u32 bytes;
};

void ibnbd_kept_pool_init(struct ibnbd_kept_pool *p, struct ibnbd_kept_seg *segs, u32 nr);
void ibnbd_kept_init(struct ibnbd_kept *k);

static inline bool ibnbd_kept_empty(const struct ibnbd_kept *k)
{
	return READ_ONCE(k->first) == IBNBD_KEPT_NONE;
}

/* More than half of it is in use: time for a flush of one's own. */
static inline bool ibnbd_kept_pool_low(const struct ibnbd_kept_pool *p)
{
	return p->nr_free < p->nr - p->nr / 2;
}

/* The flush that covers all of the log, which has something. */
static inline unsigned long ibnbd_kept_needs(const struct ibnbd_kept_pool *p,
					     const struct ibnbd_kept *k)
{
	return p->segs[k->last].needs;
}

/* One more segment at the end of the log; false: there is none. Under both locks. */
bool ibnbd_kept_grow(struct ibnbd_kept_pool *p, struct ibnbd_kept *k);

static inline u32 ibnbd_kept_data(const struct ibnbd_kept_rec *rec)
{
	return rec->op == IBNBD_OP_WRITE ? rec->bytes : 0;
}

/**
 * ibnbd_kept_place() - room for a record at the end of the log
 * @data: bytes of data that are to be kept, whole blocks; 0: an operation without
 * @block: logical block size
 * @needs: the flush that covers it
 *
 * Return: true, and @at: of the data @at->bytes fit, at least a block. False: the log has to grow.
 */
bool ibnbd_kept_place(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, u32 data, u32 block,
		      unsigned long needs, struct ibnbd_kept_at *at);

/* Everything goes. Under both locks. */
void ibnbd_kept_drop(struct ibnbd_kept_pool *p, struct ibnbd_kept *k);
/* A write that needs flush @needs could not be kept. Under both locks. */
void ibnbd_kept_overflow(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, unsigned long needs);
/* Flush @number has succeeded: what it covers goes. Under both locks. */
void ibnbd_kept_flushed(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, unsigned long number);

#endif
