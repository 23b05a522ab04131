/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The slots of a session: one request record, one header buffer and one bounce buffer each, in
 * arrays indexed by the slot (laws L14, L1). Also the homes of the user's slots, and the small
 * allocator of ibtrs' own slots, which lie behind them.
 */
#ifndef IBTRS_CLIENT_SLOT_H
#define IBTRS_CLIENT_SLOT_H

#include <linux/wait.h>
#include <ibtrs/clt.h>
#include "ibtrs/client/req.h"
#include "ibtrs/logic/homes.h"

/*
 * One header buffer: user header, then the transport header right behind it. Eight of them to a
 * page.
 */
#define IBTRS_CLT_HDR_SIZE	512
#define IBTRS_CLT_HDRS_PER_PAGE	(PAGE_SIZE / IBTRS_CLT_HDR_SIZE)

static_assert(IBTRS_CLT_HDR_SIZE >= IBTRS_CLT_USR_HDR_MAX + IBTRS_IO_HDR_MAX);

struct ibtrs_clt_slots {
	/* set when the first path knows the depth, then constant */
	u32 depth;
	u32 nr_user;			/* slots 0 .. nr_user-1 are the user's */
	struct ibtrs_clt_req *reqs;
	void **hdrs;			/* pages of IBTRS_CLT_HDRS_PER_PAGE header buffers */
	u32 nr_hdrs;			/* how many pages */
	struct ib_sge *sges;		/* max_segments + 1 for each slot */
	u32 sges_per_slot;
	/* NUMA node of the first path's adapter; the slots' memory is allocated there */
	int node;
	/* user's slots: one bit each, set while the slot is free; home_words longs per home */
	struct ibtrs_homes homes;
	unsigned long *free;
	u32 home_words;			/* a multiple of a cache line */

	spinlock_t lock;		/* own_free */
	unsigned long own_free;		/* bit i: slot nr_user + i is free */
	wait_queue_head_t wait;
};

int ibtrs_clt_slots_init(struct ibtrs_clt_slots *s, u32 depth, u32 max_segments, int node,
			 u32 cpus);
void ibtrs_clt_slots_free(struct ibtrs_clt_slots *s);
/* Take one of ibtrs' own slots; -EAGAIN when no more than @leave are free. Any context. */
int ibtrs_clt_slot_get(struct ibtrs_clt_slots *s, unsigned int leave);
void ibtrs_clt_slot_put(struct ibtrs_clt_slots *s, u32 slot);

#endif
