/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * When a heartbeat is sent, and when a silent peer counts as dead (protocol 7); and whether a send
 * queue is dead, or waits for a slow disk (decision 16). Pure: the caller asks once per heartbeat
 * interval, and posts heartbeats and probes.
 */
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

enum ibtrs_sqwatch_verdict {
	IBTRS_SQWATCH_FINE,
	IBTRS_SQWATCH_PROBE,	/* post a signalled zero-byte write */
	IBTRS_SQWATCH_DEAD,
};

/* @silent: looks in a row at which something was posted and nothing had completed */
struct ibtrs_sqwatch {
	u32 silent;
};

/* a link that moves less than 4 MiB in an interval is as good as dead */
#define IBTRS_SQWATCH_FLOOR_SHIFT	22
/* at most so many intervals for @bytes, so that a dead queue that only seems full is found, too */
#define IBTRS_SQWATCH_FLOOR_MAX	30

/**
 * ibtrs_sqwatch_patience() - how many silent looks are tolerated
 * @misses: heartbeats that may be missed
 * @bytes: bytes that may be in flight; they may need more intervals, on a very slow link
 */
static inline u32 ibtrs_sqwatch_patience(u32 misses, u64 bytes)
{
	u64 more = bytes >> IBTRS_SQWATCH_FLOOR_SHIFT;

	if (more > IBTRS_SQWATCH_FLOOR_MAX)
		more = IBTRS_SQWATCH_FLOOR_MAX;
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
static inline enum ibtrs_sqwatch_verdict ibtrs_sqwatch_look(struct ibtrs_sqwatch *w, bool out,
							    bool seen, bool probing, u32 patience)
{
	if (!out || seen) {
		w->silent = 0;
		return IBTRS_SQWATCH_FINE;
	}
	if (w->silent++ > patience)
		return IBTRS_SQWATCH_DEAD;
	return probing ? IBTRS_SQWATCH_FINE : IBTRS_SQWATCH_PROBE;
}

#endif
