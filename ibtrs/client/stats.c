// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>
#include "ibtrs/client/stats.h"

int ibtrs_clt_stats_init(struct ibtrs_clt_stats *s)
{
	spin_lock_init(&s->lock);
	s->reconnects_ok = -1;
	s->reconnects_bad = 0;
	s->pcpu = alloc_percpu(struct ibtrs_clt_pcpu);
	s->migr_base = kcalloc(nr_cpu_ids, sizeof(*s->migr_base), GFP_KERNEL);
	if (s->pcpu && s->migr_base)
		return 0;
	ibtrs_clt_stats_free(s);
	return -ENOMEM;
}

void ibtrs_clt_stats_free(struct ibtrs_clt_stats *s)
{
	free_percpu(s->pcpu);
	s->pcpu = NULL;
	kfree(s->migr_base);
	s->migr_base = NULL;
}

static void stats_sum(const struct ibtrs_clt_stats *s, struct ibtrs_clt_traffic *t)
{
	unsigned int cpu, d;

	memset(t, 0, sizeof(*t));
	for_each_possible_cpu(cpu) {
		const struct ibtrs_clt_pcpu *p = per_cpu_ptr(s->pcpu, cpu);

		for (d = 0; d < ARRAY_SIZE(t->cnt); d++) {
			t->cnt[d] += READ_ONCE(p->cnt[d]);
			t->bytes[d] += READ_ONCE(p->bytes[d]);
		}
		t->failovers += READ_ONCE(p->failovers);
	}
}

u64 ibtrs_clt_stats_posted_ever(const struct ibtrs_clt_stats *s)
{
	struct ibtrs_clt_traffic t;

	stats_sum(s, &t);
	return t.cnt[IBTRS_READ] + t.cnt[IBTRS_WRITE];
}

void ibtrs_clt_stats_traffic(struct ibtrs_clt_stats *s, struct ibtrs_clt_traffic *t)
{
	const struct ibtrs_clt_traffic *base = &s->traffic_base;
	unsigned int d;

	spin_lock(&s->lock);
	stats_sum(s, t);
	for (d = 0; d < ARRAY_SIZE(t->cnt); d++) {
		t->cnt[d] -= base->cnt[d];
		t->bytes[d] -= base->bytes[d];
	}
	t->failovers -= base->failovers;
	spin_unlock(&s->lock);
}

void ibtrs_clt_stats_reconnects(struct ibtrs_clt_stats *s, int *ok, int *bad)
{
	spin_lock(&s->lock);
	*ok = READ_ONCE(s->reconnects_ok) - s->ok_base;
	*bad = READ_ONCE(s->reconnects_bad) - s->bad_base;
	spin_unlock(&s->lock);
}

static u64 stats_from(const struct ibtrs_clt_stats *s, unsigned int cpu)
{
	return atomic64_read(&per_cpu_ptr(s->pcpu, cpu)->migr_from);
}

static u64 stats_to(const struct ibtrs_clt_stats *s, unsigned int cpu)
{
	return READ_ONCE(per_cpu_ptr(s->pcpu, cpu)->migr_to);
}

/*
 * How many requests that @cpu submitted were answered on another one; with @to, how many requests
 * of other CPUs were answered on @cpu.
 */
u64 ibtrs_clt_stats_migrated(struct ibtrs_clt_stats *s, unsigned int cpu, bool to)
{
	const struct ibtrs_clt_migr_base *base = &s->migr_base[cpu];
	u64 n;

	spin_lock(&s->lock);
	n = to ? stats_to(s, cpu) - base->to : stats_from(s, cpu) - base->from;
	spin_unlock(&s->lock);
	return n;
}

/* The number in flight is not reset: those requests are still in flight. */
void ibtrs_clt_stats_reset(struct ibtrs_clt_stats *s, unsigned int what)
{
	unsigned int cpu;

	spin_lock(&s->lock);
	if (what & IBTRS_CLT_STATS_TRAFFIC)
		stats_sum(s, &s->traffic_base);
	if (what & IBTRS_CLT_STATS_RECONNECTS) {
		/* The value stays -1 before the first connect, which is no reconnect. */
		s->ok_base = max(READ_ONCE(s->reconnects_ok), 0);
		s->bad_base = READ_ONCE(s->reconnects_bad);
	}
	for_each_possible_cpu(cpu) {
		if (what & IBTRS_CLT_STATS_MIGR_FROM)
			s->migr_base[cpu].from = stats_from(s, cpu);
		if (what & IBTRS_CLT_STATS_MIGR_TO)
			s->migr_base[cpu].to = stats_to(s, cpu);
	}
	spin_unlock(&s->lock);
}
