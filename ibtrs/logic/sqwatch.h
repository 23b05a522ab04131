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

u32 ibtrs_sqwatch_patience(u32 misses, u64 bytes);
enum ibtrs_sqwatch_verdict ibtrs_sqwatch_look(struct ibtrs_sqwatch *w, bool out, bool seen,
					      bool probing, u32 patience);

#endif
