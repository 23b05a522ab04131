/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Which path is next in a round robin (docs/sysfs.md), and the names of the policies. The other
 * policies are in client/pathset.c, next to the counters that they compare.
 */
#ifndef IBTRS_LOGIC_MPATH_H
#define IBTRS_LOGIC_MPATH_H

#include <ibtrs/pure.h>

enum ibtrs_mpath_policy {
	IBTRS_MPATH_RR			= 0,
	IBTRS_MPATH_MIN_INFLIGHT	= 1,	/* the default */
	IBTRS_MPATH_MIN_LATENCY		= 2,
};

/*
 * Round robin: the first index after @cursor (wrapping) that is not in @tried, a mask of 128 bits;
 * -1 if all are.
 */
int ibtrs_mpath_next(unsigned int cursor, unsigned int n, const u64 tried[2]);

static inline bool ibtrs_mpath_tried(const u64 tried[2], unsigned int i)
{
	return tried[i / 64] >> (i % 64) & 1;
}

static inline void ibtrs_mpath_mark(u64 tried[2], unsigned int i)
{
	tried[i / 64] |= (u64)1 << (i % 64);
}

/*
 * Parses a value of mpath_policy (docs/sysfs.md): "0".."2", "rr" "mi" "ml" (exactly), or the full
 * names, case-insensitive, trailing newline allowed. Return: a policy or -EINVAL.
 */
int ibtrs_mpath_parse(const char *s, size_t len);
/* "round-robin (RR: 0)" ... as docs/sysfs.md says */
const char *ibtrs_mpath_sysfs(enum ibtrs_mpath_policy p);

#endif
