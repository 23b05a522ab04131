// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>
#include "ibtrs/client/stats.h"

int ibtrs_clt_stats_init(struct ibtrs_clt_stats *s)
{
	spin_lock_init(&s->lock);
	s->reconnects_ok = -1;
	s->reconnects_bad = 0;
	s->pcpu = alloc_percpu(struct ibtrs_clt_pcpu);
	s->migrated_base = kcalloc(nr_cpu_ids, sizeof(*s->migrated_base), GFP_KERNEL);
	if (s->pcpu && s->migrated_base)
		return 0;
	ibtrs_clt_stats_free(s);
	return -ENOMEM;
}

void ibtrs_clt_stats_free(struct ibtrs_clt_stats *s)
{
	free_percpu(s->pcpu);
	s->pcpu = NULL;
	kfree(s->migrated_base);
	s->migrated_base = NULL;
}

static void stats_sum(const struct ibtrs_clt_stats *s, u64 n[IBTRS_CLT_COUNTS])
{
	unsigned int cpu, i;

	memset(n, 0, IBTRS_CLT_COUNTS * sizeof(*n));
	for_each_possible_cpu(cpu)
		for (i = 0; i < IBTRS_CLT_COUNTS; i++)
			n[i] += READ_ONCE(per_cpu_ptr(s->pcpu, cpu)->n[i]);
}

u64 ibtrs_clt_stats_posted_ever(const struct ibtrs_clt_stats *s)
{
	u64 n[IBTRS_CLT_COUNTS];

	stats_sum(s, n);
	return n[IBTRS_CLT_REQUESTS + IBTRS_READ] + n[IBTRS_CLT_REQUESTS + IBTRS_WRITE];
}

void ibtrs_clt_stats_traffic(struct ibtrs_clt_stats *s, u64 n[IBTRS_CLT_COUNTS])
{
	unsigned int i;

	guard(spinlock)(&s->lock);
	stats_sum(s, n);
	for (i = 0; i < IBTRS_CLT_COUNTS; i++)
		n[i] -= s->base[i];
}

void ibtrs_clt_stats_reconnects(struct ibtrs_clt_stats *s, int *ok, int *bad)
{
	guard(spinlock)(&s->lock);
	*ok = READ_ONCE(s->reconnects_ok) - s->ok_base;
	*bad = READ_ONCE(s->reconnects_bad) - s->bad_base;
}

static u64 stats_migrated(const struct ibtrs_clt_stats *s, unsigned int cpu, bool to)
{
	return atomic64_read(&per_cpu_ptr(s->pcpu, cpu)->migrated[to]);
}

u64 ibtrs_clt_stats_migrated(struct ibtrs_clt_stats *s, unsigned int cpu, bool to)
{
	guard(spinlock)(&s->lock);
	return stats_migrated(s, cpu, to) - s->migrated_base[cpu][to];
}

/* The number in flight is not reset: those requests are still in flight. */
void ibtrs_clt_stats_reset(struct ibtrs_clt_stats *s, unsigned int what)
{
	unsigned int cpu;

	guard(spinlock)(&s->lock);
	if (what & IBTRS_CLT_STATS_TRAFFIC)
		stats_sum(s, s->base);
	if (what & IBTRS_CLT_STATS_RECONNECTS) {
		/* The value stays -1 before the first connect, which is no reconnect. */
		s->ok_base = max(READ_ONCE(s->reconnects_ok), 0);
		s->bad_base = READ_ONCE(s->reconnects_bad);
	}
	for_each_possible_cpu(cpu) {
		if (what & IBTRS_CLT_STATS_MIGRATED_FROM)
			s->migrated_base[cpu][false] = stats_migrated(s, cpu, false);
		if (what & IBTRS_CLT_STATS_MIGRATED_TO)
			s->migrated_base[cpu][true] = stats_migrated(s, cpu, true);
	}
}
