/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of one path (docs/sysfs.md). */
#ifndef IBTRS_SERVER_STATS_H
#define IBTRS_SERVER_STATS_H

#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <ibtrs/dir.h>

/*
 * Indexed by enum ibtrs_dir. Bytes count what the client wrote, headers included (docs/sysfs.md),
 * or the data that a read asked for and its headers.
 */
struct ibtrs_srv_traffic {
	u64 cnt[2];
	u64 bytes[2];
};

/**
 * struct ibtrs_srv_stats - of a path
 * @pcpu: counters, never reset
 * @lock: protects @base. Process context
 * @base: what the counters were at the last reset
 */
struct ibtrs_srv_stats {
	struct ibtrs_srv_traffic __percpu *pcpu;
	spinlock_t lock;
	struct ibtrs_srv_traffic base;
};

int ibtrs_srv_stats_init(struct ibtrs_srv_stats *s);
void ibtrs_srv_stats_free(struct ibtrs_srv_stats *s);	/* idempotent */

static inline void ibtrs_srv_stats_request(struct ibtrs_srv_stats *s, enum ibtrs_dir dir, u32 bytes)
{
	this_cpu_inc(s->pcpu->cnt[dir]);
	this_cpu_add(s->pcpu->bytes[dir], bytes);
}

/* since the last reset */
void ibtrs_srv_stats_traffic(struct ibtrs_srv_stats *s, struct ibtrs_srv_traffic *t);
void ibtrs_srv_stats_reset(struct ibtrs_srv_stats *s);

#endif
