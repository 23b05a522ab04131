/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Which path carries the next request (docs/sysfs.md), and the names of the policies. The caller
 * has the loads that are compared.
 */
#ifndef IBTRS_LOGIC_MPATH_H
#define IBTRS_LOGIC_MPATH_H

#include <ibtrs/addr.h>

enum ibtrs_mpath_policy {
	IBTRS_MPATH_RR			= 0,
	IBTRS_MPATH_MIN_INFLIGHT	= 1,	/* the default */
	IBTRS_MPATH_MIN_LATENCY		= 2,
};

static inline bool ibtrs_mpath_tried(const u64 tried[2], unsigned int i)
{
	return tried[i / 64] >> (i % 64) & 1;
}

static inline void ibtrs_mpath_mark(u64 tried[2], unsigned int i)
{
	tried[i / 64] |= (u64)1 << (i % 64);
}

/* More than any load: such a path is chosen only if no other one is left. */
#define IBTRS_MPATH_AVOID	((u64)1 << 63)

/*
 * The index with the least @load that is not in @tried; of equal ones the first from @from on, so
 * that callers can prefer different paths, or take turns (round robin). -1 if all are in @tried.
 * @load must be inlined: each request asks it.
 */
static __always_inline int ibtrs_mpath_least(unsigned int from, unsigned int n, const u64 tried[2],
					     u64 (*load)(const void *priv, unsigned int i),
					     const void *priv)
{
	u64 least = U64_MAX, l;
	unsigned int k, i;
	int best = -1;

	if (n > IBTRS_MAX_PATHS)
		n = IBTRS_MAX_PATHS;
	for (k = 0, i = n ? from % n : 0; k < n; k++, i = i + 1 < n ? i + 1 : 0) {
		if (ibtrs_mpath_tried(tried, i))
			continue;
		l = load(priv, i);
		if (l < least) {
			least = l;
			best = (int)i;
		}
	}
	return best;
}

/*
 * Parses a value of mpath_policy (docs/sysfs.md): "0".."2", "rr" "mi" "ml" (exactly), or the full
 * names, case-insensitive, or what ibtrs_mpath_sysfs() shows; trailing newline allowed. Return: a
 * policy or -EINVAL.
 */
int ibtrs_mpath_parse(const char *s, size_t len);
/* "round-robin (RR: 0)" ... as docs/sysfs.md says; never NULL */
const char *ibtrs_mpath_sysfs(enum ibtrs_mpath_policy p);

#endif
