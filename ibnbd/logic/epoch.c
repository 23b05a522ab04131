// SPDX-License-Identifier: GPL-2.0-only
/*
 * When acknowledged writes that no flush has covered may be lost, the cache epoch of their disk
 * changes, and by that its clients know. A doubt is a change: that costs a replay, the other
 * mistake costs data.
 *
 * A server that stops in good order ends each disk clean. So a record that is not clean tells of a
 * loss of power, a crash, or a file that could not be written; none of them says what became of the
 * cache, and neither does the id of the boot, nor that the kernel still has the same disk.
 */
#include "ibnbd/logic/epoch.h"

static void epoch_anew(struct ibnbd_epoch *e, u64 fresh)
{
	e->epoch = fresh ?: 1;
	e->clean = true;
}

/**
 * ibnbd_epoch_begin() - the disk is opened, and nobody had it open
 * @e: what is recorded of it, by whichever life of the server; comes to what is true now
 * @fresh: a random number
 *
 * Return: true: the epoch is the recorded one.
 */
bool ibnbd_epoch_begin(struct ibnbd_epoch *e, u64 fresh)
{
	bool keeps = e->epoch && e->clean;

	if (!keeps)
		epoch_anew(e, fresh);
	return keeps;
}

/**
 * ibnbd_epoch_writer() - somebody may write from now on
 * @e: to be recorded before it is told that it may
 */
void ibnbd_epoch_writer(struct ibnbd_epoch *e)
{
	e->clean = false;
}

/**
 * ibnbd_epoch_end() - the last writer has left, and all its requests have ended
 * @e: to be recorded
 * @flushed: a flush that came after them has succeeded. One that failed may have dropped what it
 *	could not write, and the next one would succeed.
 * @fresh: a random number
 */
void ibnbd_epoch_end(struct ibnbd_epoch *e, bool flushed, u64 fresh)
{
	if (flushed)
		e->clean = true;
	else
		epoch_anew(e, fresh);
}

/**
 * ibnbd_epoch_lost() - the disk is said to have lost its cache
 * @e: to be recorded; a writer goes on writing
 * @fresh: a random number
 */
void ibnbd_epoch_lost(struct ibnbd_epoch *e, u64 fresh)
{
	bool clean = e->clean;

	epoch_anew(e, fresh == e->epoch ? ~fresh : fresh);
	e->clean = clean;
}
