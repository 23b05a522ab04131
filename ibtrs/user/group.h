/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The objects of groups: several sessions, the legs, as one.
 *
 * What the queues of a group share are a few numbers of each leg, which are only read and written
 * as a whole. They answer one question: may a leg be read from? It may not while it has missed a
 * write (`missed` and `whole` differ), nor while it owes the end of one (`owes`). Both are counted
 * when a write is handed back: before the caller sees it, so that no later read gets what was there
 * before the write; and not earlier, so that the caller can make up for what is counted.
 */
#ifndef IBTRS_USER_GROUP_H
#define IBTRS_USER_GROUP_H

#include "ibtrs/user/clt.h"

struct group_leg {
	struct ibtrs_clt *clt;
	bool out;
	u64 missed;			/* writes that were handed back with its error */
	u64 whole;			/* so many of these have been made up for */
	u32 owes;			/* writes that were handed back before its end */
};

/**
 * struct gq_leg - what a queue of a group has of a leg
 * @wait: requests that its queue had no slot for
 * @nr: requests that have not ended, those that wait included
 */
struct gq_leg {
	struct ibtrs_q *q;
	struct ibtrs_io *wait;
	struct ibtrs_io **wait_end;
	u32 nr;
};

/**
 * struct ibtrs_gq
 * @ready: what ibtrs_gq_poll() hands back
 * @more: a leg has got something to flush
 * @under_way: requests of the caller that have not been handed back for good
 * @woken: @wake has been signalled; set behind it
 */
struct ibtrs_gq {
	struct ibtrs_group *g;
	struct gq_leg legs[IBTRS_GROUP_LEGS];
	struct ibtrs_gio *ready;
	struct ibtrs_gio **ready_end;
	u32 under_way;
	u32 cursor;
	bool more;
	int ep;
	int wake;
	bool woken;
};

struct ibtrs_group {
	struct group_leg legs[IBTRS_GROUP_LEGS];
	u32 nr;
	u32 quorum;
	bool early;
	u32 nr_qs;
	struct ibtrs_gq *qs;
};

/* Makes the queue's descriptor readable. From any thread. */
static inline void ibtrs_gq_wake(struct ibtrs_gq *gq)
{
	ibtrs_user_signal(gq->wake);
	__atomic_store_n(&gq->woken, true, __ATOMIC_RELEASE);
}

#endif
