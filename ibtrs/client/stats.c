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

void ibtrs_clt_stats_sum(const struct ibtrs_clt_stats *s, u64 n[IBTRS_CLT_COUNTS])
{
	unsigned int cpu, i;

	memset(n, 0, IBTRS_CLT_COUNTS * sizeof(*n));
	for_each_possible_cpu(cpu)
		for (i = 0; i < IBTRS_CLT_COUNTS; i++)
			n[i] += READ_ONCE(per_cpu_ptr(s->pcpu, cpu)->n[i]);
}
