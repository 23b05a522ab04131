// SPDX-License-Identifier: GPL-2.0-only
#include <linux/string.h>
#include "ibtrs/server/stats.h"

int ibtrs_srv_stats_init(struct ibtrs_srv_stats *s)
{
	spin_lock_init(&s->lock);
	s->pcpu = alloc_percpu(struct ibtrs_srv_traffic);
	return s->pcpu ? 0 : -ENOMEM;
}

void ibtrs_srv_stats_free(struct ibtrs_srv_stats *s)
{
	free_percpu(s->pcpu);
	s->pcpu = NULL;
}

static void stats_sum(const struct ibtrs_srv_stats *s, struct ibtrs_srv_traffic *t)
{
	unsigned int cpu, d;

	memset(t, 0, sizeof(*t));
	for_each_possible_cpu(cpu) {
		const struct ibtrs_srv_traffic *p = per_cpu_ptr(s->pcpu, cpu);

		for (d = 0; d < ARRAY_SIZE(t->cnt); d++) {
			t->cnt[d] += READ_ONCE(p->cnt[d]);
			t->bytes[d] += READ_ONCE(p->bytes[d]);
		}
	}
}

void ibtrs_srv_stats_traffic(struct ibtrs_srv_stats *s, struct ibtrs_srv_traffic *t)
{
	unsigned int d;

	spin_lock(&s->lock);
	stats_sum(s, t);
	for (d = 0; d < ARRAY_SIZE(t->cnt); d++) {
		t->cnt[d] -= s->base.cnt[d];
		t->bytes[d] -= s->base.bytes[d];
	}
	spin_unlock(&s->lock);
}

void ibtrs_srv_stats_reset(struct ibtrs_srv_stats *s)
{
	spin_lock(&s->lock);
	stats_sum(s, &s->base);
	spin_unlock(&s->lock);
}
