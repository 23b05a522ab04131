/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of one path (docs/sysfs.md). */
#ifndef IBTRS_CLIENT_STATS_H
#define IBTRS_CLIENT_STATS_H

#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <ibtrs/dir.h>

/* The traffic of a path, which stats/rdma shows, is an array of counters. */
#define IBTRS_CLT_REQUESTS	0	/* + enum ibtrs_dir */
#define IBTRS_CLT_BYTES		2	/* + enum ibtrs_dir */
#define IBTRS_CLT_FAILOVERS	4
#define IBTRS_CLT_COUNTS	5

/* Counters of one CPU, which only grow. A completion may interrupt a submission. */
struct ibtrs_clt_pcpu {
	u64 n[IBTRS_CLT_COUNTS];	/* changed by this_cpu_*() */
	/* submitted here and answered elsewhere; [true]: answered here and submitted elsewhere */
	atomic64_t migrated[2];
};

/**
 * struct ibtrs_clt_stats - of a path
 * @pcpu: the counters
 * @wary: the path is marginal and gets one request at a time while others are up; read by each
 *	submission when there is a choice of paths
 * @reconnects_ok: successful connects; starts at -1, so that the first one shows 0. Path work only
 * @reconnects_bad: failed ones. Path work only
 * @lock: protects the members below it. A reset does not touch counters that others increment: it
 *	stores their values as a base. Process context
 */
struct ibtrs_clt_stats {
	struct ibtrs_clt_pcpu __percpu *pcpu;
	bool wary;
	int reconnects_ok ____cacheline_aligned_in_smp;
	int reconnects_bad;

	spinlock_t lock;
	u64 base[IBTRS_CLT_COUNTS];
	u64 (*migrated_base)[2];	/* by CPU */
	int ok_base;
	int bad_base;
};

int ibtrs_clt_stats_init(struct ibtrs_clt_stats *s);	/* on failure nothing is left */
void ibtrs_clt_stats_free(struct ibtrs_clt_stats *s);	/* idempotent */

/*
 * Count a request of @bytes (user header included) before it is posted, since the answer may be
 * fast. Any context.
 */
static inline void ibtrs_clt_stats_posted(struct ibtrs_clt_stats *s, enum ibtrs_dir dir, u32 bytes)
{
	this_cpu_inc(s->pcpu->n[IBTRS_CLT_REQUESTS + dir]);
	this_cpu_add(s->pcpu->n[IBTRS_CLT_BYTES + dir], bytes);
}

/* A request left the path: answered, or taken off. @cpu: where it was submitted. Any context. */
static inline void ibtrs_clt_stats_ended(struct ibtrs_clt_stats *s, unsigned int cpu)
{
	if (unlikely(cpu != raw_smp_processor_id())) {
		atomic64_inc(&raw_cpu_ptr(s->pcpu)->migrated[true]);
		atomic64_inc(&per_cpu_ptr(s->pcpu, cpu)->migrated[false]);
	}
}

/* A request that was posted on this path moved to another path, or was parked. */
static inline void ibtrs_clt_stats_failover(struct ibtrs_clt_stats *s)
{
	this_cpu_inc(s->pcpu->n[IBTRS_CLT_FAILOVERS]);
}

/* What was counted since the path was made; not exact. Any context. */
void ibtrs_clt_stats_sum(const struct ibtrs_clt_stats *s, u64 n[IBTRS_CLT_COUNTS]);

#endif
