// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/sqwatch.h"

/* a link that moves less than 4 MiB in an interval is as good as dead */
#define SQWATCH_FLOOR_SHIFT	22
/* at most so many intervals for @bytes, so that a dead queue that only seems full is found, too */
#define SQWATCH_FLOOR_MAX	30

/**
 * ibtrs_sqwatch_patience() - how many silent looks are tolerated
 * @misses: heartbeats that may be missed
 * @bytes: bytes that may be in flight; they may need more intervals, on a very slow link
 */
u32 ibtrs_sqwatch_patience(u32 misses, u64 bytes)
{
	u64 more = bytes >> SQWATCH_FLOOR_SHIFT;

	if (more > SQWATCH_FLOOR_MAX)
		more = SQWATCH_FLOOR_MAX;
	return misses + (u32)more;
}

/**
 * ibtrs_sqwatch_look() - one look at a send queue
 * @w: what earlier looks saw
 * @out: something was posted that must complete
 * @seen: something completed since the last look, a probe included
 * @probing: a probe is posted and has not completed
 * @patience: silent looks before the queue counts as dead
 *
 * Return: what to do. If the queue is full and the caller cannot post the probe, the next look asks
 * for it again.
 */
enum ibtrs_sqwatch_verdict ibtrs_sqwatch_look(struct ibtrs_sqwatch *w, bool out, bool seen,
					      bool probing, u32 patience)
{
	if (!out || seen) {
		w->silent = 0;
		return IBTRS_SQWATCH_FINE;
	}
	if (w->silent++ > patience)
		return IBTRS_SQWATCH_DEAD;
	return probing ? IBTRS_SQWATCH_FINE : IBTRS_SQWATCH_PROBE;
}
