/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The cache epoch of a disk (protocol.md, "What a flush covers"): does it stay, or is a new one
 * drawn? Pure.
 *
 * When acknowledged writes that no flush has covered may be lost, the cache epoch of their disk
 * changes. The new epoch tells the clients. In doubt the epoch changes: a needless change costs a
 * replay, a missing change costs data.
 *
 * A server that stops in good order records each disk as clean. So a record that is not clean means
 * a power loss, a crash, or a record file that could not be written. None of these tells whether
 * the disk has lost its cache. An unchanged boot id, or a kernel that still has the same disk, does
 * not tell it either.
 */
#ifndef IBNBD_LOGIC_EPOCH_H
#define IBNBD_LOGIC_EPOCH_H

#include <ibtrs/pure.h>

/**
 * struct ibnbd_epoch - what is known of a disk's cache
 * @epoch: the number that clients are told; 0: nothing is known
 * @clean: a flush has covered all acknowledged writes, and no client may write
 */
struct ibnbd_epoch {
	u64 epoch;
	bool clean;
};

static inline void ibnbd_epoch_anew(struct ibnbd_epoch *e, u64 fresh)
{
	e->epoch = fresh ?: 1;
	e->clean = true;
}

/**
 * ibnbd_epoch_begin() - the disk is opened, and it was not open before
 * @e: the record of the disk, from this or an earlier run of the server; updated to what is true
 *	now
 * @fresh: a random number
 *
 * Return: true: the recorded epoch stays valid.
 */
static inline bool ibnbd_epoch_begin(struct ibnbd_epoch *e, u64 fresh)
{
	bool keeps = e->epoch && e->clean;

	if (!keeps)
		ibnbd_epoch_anew(e, fresh);
	return keeps;
}

/**
 * ibnbd_epoch_writer() - a client may write from now on
 * @e: the caller must record it before it tells the client that it may write
 */
static inline void ibnbd_epoch_writer(struct ibnbd_epoch *e)
{
	e->clean = false;
}

/**
 * ibnbd_epoch_end() - the last writer has left, and all its requests have ended
 * @e: to be recorded
 * @flushed: a flush that was sent after these requests has succeeded. A failed flush does not
 *	count, even if a later one succeeds: the disk may have dropped the data that it could not
 *	write.
 * @fresh: a random number
 */
static inline void ibnbd_epoch_end(struct ibnbd_epoch *e, bool flushed, u64 fresh)
{
	if (flushed)
		e->clean = true;
	else
		ibnbd_epoch_anew(e, fresh);
}

/**
 * ibnbd_epoch_lost() - the disk may have lost its cache while it is open
 * @e: to be recorded; @e->clean does not change, since a writer may continue to write
 * @fresh: a random number
 */
static inline void ibnbd_epoch_lost(struct ibnbd_epoch *e, u64 fresh)
{
	bool clean = e->clean;

	ibnbd_epoch_anew(e, fresh == e->epoch ? ~fresh : fresh);
	e->clean = clean;
}

#endif
