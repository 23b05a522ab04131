/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* When a heartbeat is sent, and when a silent peer counts as dead (protocol 7). Pure. */
#ifndef IBTRS_LOGIC_BEAT_H
#define IBTRS_LOGIC_BEAT_H

#include <ibtrs/pure.h>

enum ibtrs_beat_verdict {
	IBTRS_BEAT_QUIET,	/* an HB_MSG is on its way already */
	IBTRS_BEAT_SEND,	/* send an HB_MSG */
	IBTRS_BEAT_DEAD,
};

/**
 * ibtrs_beat_tick() - an interval has passed
 * @missed: intervals in a row without a sign of life; 0 for a new path
 * @seen: something has arrived since the last tick
 * @max: so many misses are tolerated
 *
 * An HB_MSG is sent only at count 0: the connection is reliable, so a second HB_MSG could not
 * arrive where the first did not.
 */
static inline enum ibtrs_beat_verdict ibtrs_beat_tick(u32 *missed, bool seen, u32 max)
{
	if (seen)
		*missed = 0;
	if (*missed > max)
		return IBTRS_BEAT_DEAD;
	return (*missed)++ ? IBTRS_BEAT_QUIET : IBTRS_BEAT_SEND;
}

#endif
