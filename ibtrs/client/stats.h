/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of one path (docs/sysfs.md). */
#ifndef IBTRS_CLIENT_STATS_H
#define IBTRS_CLIENT_STATS_H

#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <ibtrs/dir.h>

/*
 * Counters of one CPU, which only grow. They are changed by this_cpu_*(), because a completion may
 * interrupt a submission.
 */
struct ibtrs_clt_pcpu {
	u64 cnt[2];		/* by enum ibtrs_dir */
	u64 bytes[2];
	u64 failovers;
	u64 migr_to;		/* answered here, submitted elsewhere */
	atomic64_t migr_from;	/* submitted here, answered elsewhere; the answering CPU counts */
};

/* The traffic of a path: what stats/rdma shows. */
struct ibtrs_clt_traffic {
	u64 cnt[2];
	u64 bytes[2];
	u64 failovers;
};

/* Where a CPU's migration counters stood at their last reset. */
struct ibtrs_clt_migr_base {
	u64 from, to;
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
	struct ibtrs_clt_traffic traffic_base;
	struct ibtrs_clt_migr_base *migr_base;	/* by CPU */
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
	this_cpu_inc(s->pcpu->cnt[dir]);
	this_cpu_add(s->pcpu->bytes[dir], bytes);
}

/* A request left the path: answered, or taken off. @cpu: where it was submitted. Any context. */
static inline void ibtrs_clt_stats_ended(struct ibtrs_clt_stats *s, unsigned int cpu)
{
	if (unlikely(cpu != raw_smp_processor_id())) {
		this_cpu_inc(s->pcpu->migr_to);
		atomic64_inc(&per_cpu_ptr(s->pcpu, cpu)->migr_from);
	}
}

/* A request that was posted on this path moved to another path, or was parked. */
static inline void ibtrs_clt_stats_failover(struct ibtrs_clt_stats *s)
{
	this_cpu_inc(s->pcpu->failovers);
}

/* Requests posted since the path was made; not exact. Any context. */
u64 ibtrs_clt_stats_posted_ever(const struct ibtrs_clt_stats *s);

/* The shown values count from the last reset. */
void ibtrs_clt_stats_traffic(struct ibtrs_clt_stats *s, struct ibtrs_clt_traffic *t);
void ibtrs_clt_stats_reconnects(struct ibtrs_clt_stats *s, int *ok, int *bad);
u64 ibtrs_clt_stats_migrated(struct ibtrs_clt_stats *s, unsigned int cpu, bool to);

/* What a reset is for: bits. */
enum {
	IBTRS_CLT_STATS_TRAFFIC		= 1,
	IBTRS_CLT_STATS_RECONNECTS	= 2,
	IBTRS_CLT_STATS_MIGR_FROM	= 4,
	IBTRS_CLT_STATS_MIGR_TO		= 8,
	IBTRS_CLT_STATS_ALL		= 15,
};

void ibtrs_clt_stats_reset(struct ibtrs_clt_stats *s, unsigned int what);

#endif
