/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Is a send queue dead, or is it waiting for a slow disk (decision 16)? Pure: the caller looks once
 * per heartbeat interval and posts the probes.
 */
#ifndef IBTRS_LOGIC_SQWATCH_H
#define IBTRS_LOGIC_SQWATCH_H

#include <ibtrs/pure.h>

enum ibtrs_sqwatch_verdict {
	IBTRS_SQWATCH_FINE,
	IBTRS_SQWATCH_PROBE,	/* post a signalled zero-byte write */
	IBTRS_SQWATCH_DEAD,
};

/* @silent: looks in a row at which something was posted and nothing had completed */
struct ibtrs_sqwatch {
	u32 silent;
};

/*
 * How many silent looks are tolerated: the heartbeats that may be missed, and the intervals that
 * @bytes need on a very slow link.
 */
u32 ibtrs_sqwatch_patience(u32 misses, u64 bytes);
/*
 * @out: something was posted that must complete. @seen: something completed since the last look.
 * @probing: a probe is posted and has not completed.
 */
enum ibtrs_sqwatch_verdict ibtrs_sqwatch_look(struct ibtrs_sqwatch *w, bool out, bool seen,
					      bool probing, u32 patience);

#endif
