/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of one path, per CPU (spec C.3). */
#ifndef IBTRS_CLIENT_STATS_H
#define IBTRS_CLIENT_STATS_H

#include <linux/percpu.h>
#include <ibtrs/dir.h>

struct ibtrs_clt_pcpu {
	u64 cnt[2];		/* by enum ibtrs_dir */
	u64 bytes[2];
	s64 inflight;		/* only the sum over all CPUs means something */
	u64 failovers;
	u64 migr_from;
	u64 migr_to;
};

struct ibtrs_clt_stats {
	struct ibtrs_clt_pcpu __percpu *pcpu;
	int reconnects_ok;	/* starts at -1: the first connect shows 0 */
	int reconnects_bad;
};

int ibtrs_clt_stats_init(struct ibtrs_clt_stats *s);
void ibtrs_clt_stats_free(struct ibtrs_clt_stats *s);

/* A request of @bytes (user header included) was posted. */
static inline void ibtrs_clt_stats_posted(struct ibtrs_clt_stats *s, enum ibtrs_dir dir, u32 bytes)
{
	struct ibtrs_clt_pcpu *p = get_cpu_ptr(s->pcpu);

	p->cnt[dir]++;
	p->bytes[dir] += bytes;
	p->inflight++;
	put_cpu_ptr(s->pcpu);
}

/* A request left the path: answered, or taken off. @cpu: where it was submitted. */
static inline void ibtrs_clt_stats_ended(struct ibtrs_clt_stats *s, unsigned int cpu)
{
	struct ibtrs_clt_pcpu *p = get_cpu_ptr(s->pcpu);

	p->inflight--;
	if (unlikely(cpu != smp_processor_id())) {
		p->migr_to++;
		per_cpu_ptr(s->pcpu, cpu)->migr_from++;
	}
	put_cpu_ptr(s->pcpu);
}

void ibtrs_clt_stats_failover(struct ibtrs_clt_stats *s);
s64 ibtrs_clt_stats_inflight(const struct ibtrs_clt_stats *s);

#endif
