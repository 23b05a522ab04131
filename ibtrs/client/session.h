/* SPDX-License-Identifier: GPL-2.0-only */
/* A session: the paths to one server under one name, and the slots they share. */
#ifndef IBTRS_CLIENT_SESSION_H
#define IBTRS_CLIENT_SESSION_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <ibtrs/clt.h>
#include "ibtrs/client/link.h"
#include "ibtrs/client/path.h"
#include "ibtrs/client/pathset.h"
#include "ibtrs/client/slot.h"
#include "ibtrs/client/turn.h"
#include "ibtrs/logic/retry.h"

struct ibtrs_clt {
	/* hot, read only while the session is open */
	struct ibtrs_clt_pathset __rcu *up;
	u8 policy;			/* READ_ONCE; enum ibtrs_mpath_policy */
	bool acked;			/* the pages of a write wait for the adapter (answer.c) */
	struct ibtrs_clt_slots slots;
	unsigned int __percpu *cursor;	/* round robin */
	u32 max_io_size;
	u32 max_segments;
	u32 nr_irq_conns;
	u32 nr_cpus;			/* online when the session was created */
	u16 *cpu_number;		/* NULL: their numbers are 0 to nr_cpus - 1 */
	atomic_t nr_parked;

	/* set before publish */
	char name[IBTRS_NAME_LEN];
	u8 uuid[IBTRS_UUID_LEN];
	struct ibtrs_clt_opts opts;	/* READ_ONCE: max_reconnect_attempts, which sysfs changes */
	struct ibtrs_backoff backoff;
	const struct ibtrs_clt_ops *ops;
	void *priv;
	/* path works; WQ_MEM_RECLAIM: writeback may wait for a reconnect */
	struct workqueue_struct *wq;
	struct workqueue_struct *drain_wq;
	struct list_head entry;		/* all sessions, under the module's lock */

	/* paths, up, gen, opened, closing, limits; link events are delivered under it */
	struct mutex lock;
	struct list_head paths;
	u32 nr_paths;
	char last_error[IBTRS_CLT_WHY_LEN];	/* why the last add_path failed */
	bool loose;			/* a path was removed while it was loose */
	u32 gen;
	bool opened;
	/* READ_ONCE; the server knows our extensions, or did when last seen */
	bool ours;
	bool closing;
	u32 max_hdr_size;
	atomic_t removing;		/* tasks and works that are removing a path */

	struct work_struct again;	/* req.c */
	/* READ_ONCE; the latest life of the session at the server (protocol 8.2) */
	u32 life;
	struct ibtrs_clt_want want;
	struct ibtrs_clt_turn turn;
	struct ibtrs_clt_sysfs sysfs;
};

/* The number of a CPU among those of the session; it may be any without a table. */
static inline u32 ibtrs_clt_cpu(const struct ibtrs_clt *clt, u32 cpu)
{
	return unlikely(clt->cpu_number) ? clt->cpu_number[cpu] : cpu;
}

#endif
