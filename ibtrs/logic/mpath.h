/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which path carries a request (spec A.21). Pure: the caller hands in the load of each path of its
 * immutable set; all paths in a set are up.
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
 * Index of the smallest @load not in @tried (bit mask of 128 bits), first wins a tie; -1 if all
 * were tried.
 */
int ibtrs_mpath_min(const u64 *load, unsigned int n, const u64 tried[2]);
/* Round robin: the first index after @cursor (wrapping) that was not tried; -1 if all were. */
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
 * What mpath_policy accepts (C.3): "0".."2", "rr" "mi" "ml" (exactly), or the full names,
 * case-insensitive, trailing newline allowed. Return a policy or -EINVAL.
 */
int ibtrs_mpath_parse(const char *s, size_t len);
/* "round-robin" ... as in maps.conf */
const char *ibtrs_mpath_name(enum ibtrs_mpath_policy p);
/* "round-robin (RR: 0)" ... as in C.3 */
const char *ibtrs_mpath_sysfs(enum ibtrs_mpath_policy p);

#endif
