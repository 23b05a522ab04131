/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The pool of writes that the client keeps until a flush has covered them, so that it can send them
 * again when the server has lost its cache. This file decides which device has which segment, what
 * a segment contains, and which segments may be freed.
 *
 * A session has one pool of segments; its devices take segments from it as they need them. Each
 * device has a log of records, in the order in which the writes completed, stored in a chain of
 * segments. A record is a header and its data. A record that does not fit in the last segment is
 * split into several records of whole blocks. The caller owns the memory; this file returns
 * positions in it.
 *
 * A segment is freed when a flush has covered its last record, the oldest segment first. So when a
 * record is still in the log, all records that completed after it are in the log, too: sending the
 * log again never overwrites newer data with older data. Two rules keep this true:
 *
 *	- a FUA write is safe by itself, but it is kept, too, unless the log is empty: an older
 *	  write in the log may overlap it, and would overwrite it when the log is sent again;
 *	- when the pool is full, the log is dropped. The device then has a *gap* until a flush
 *	  covers all writes up to that moment. The device begins a new log after the gap; the new
 *	  log must not be sent before the gap is closed.
 *
 * The records are sent in the order of the log, and a record waits for a record that it overlaps.
 * So two overlapping writes are never in flight at the same time. Two writes that were in flight
 * together when they were first sent have no defined order on any disk.
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
	u32 bytes;			/* of the operation; only a WRITE has data */
	u32 op;				/* enum ibnbd_op */
};

struct ibnbd_kept_seg {
	u32 next;			/* next segment of the log or of the free list */
	u32 used;			/* bytes */
	unsigned long needs;		/* the flush that covers its last record */
};

struct ibnbd_kept_pool {
	struct ibnbd_kept_seg *segs;
	u32 nr;
	u32 nr_free;
	u32 free;			/* first free segment */
};

struct ibnbd_kept {
	u32 first, last;		/* segments; last is valid while there is a first */
	bool gap;
	unsigned long gap_needs;	/* the flush that closes the gap */
};

/* Where a record is, and how many bytes of the data it holds. */
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

/* More than half of the pool is in use: the client has to send a flush of its own. */
static inline bool ibnbd_kept_pool_low(const struct ibnbd_kept_pool *p)
{
	return p->nr_free < p->nr - p->nr / 2;
}

/* The flush that covers all of the log. The log must not be empty. */
static inline unsigned long ibnbd_kept_needs(const struct ibnbd_kept_pool *p,
					     const struct ibnbd_kept *k)
{
	return p->segs[k->last].needs;
}

/* Adds a segment at the end of the log; false: the pool has no free segment. Under both locks. */
bool ibnbd_kept_grow(struct ibnbd_kept_pool *p, struct ibnbd_kept *k);

static inline u32 ibnbd_kept_data(const struct ibnbd_kept_rec *rec)
{
	return rec->op == IBNBD_OP_WRITE ? rec->bytes : 0;
}

/**
 * ibnbd_kept_place() - room for a record at the end of the log
 * @data: bytes of data to keep, whole blocks; 0: an operation without data
 * @block: logical block size
 * @needs: the flush that covers it
 *
 * Return: true: @at is set, and @at->bytes of the data fit, at least one block if there is data.
 * False: the log has to grow.
 */
bool ibnbd_kept_place(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, u32 data, u32 block,
		      unsigned long needs, struct ibnbd_kept_at *at);

/* Frees the whole log. Under both locks. */
void ibnbd_kept_drop(struct ibnbd_kept_pool *p, struct ibnbd_kept *k);
/*
 * A write that needs flush @needs could not be kept: drops the log, begins a gap. Under both locks.
 */
void ibnbd_kept_overflow(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, unsigned long needs);
/* Flush @number has succeeded: frees the segments that it covers. Under both locks. */
void ibnbd_kept_flushed(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, unsigned long number);

#endif
