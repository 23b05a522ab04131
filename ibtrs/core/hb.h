/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Heartbeat of one path, either side (spec A.17, architecture decision 11). Each interval without
 * any sign of life counts a miss and sends one HB_MSG; more than `misses` in a row and fail() is
 * called, once. Every arrival on any connection of the path is a sign of life.
 */
#ifndef IBTRS_CORE_HB_H
#define IBTRS_CORE_HB_H

#include <linux/ktime.h>
#include <linux/workqueue.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/fault.h"

struct ibtrs_hb {
	struct delayed_work work;
	struct workqueue_struct *wq;
	struct ibtrs_conn *conn;	/* service connection */
	struct ib_cqe cqe;
	void (*fail)(struct ibtrs_hb *hb, int err, const char *why);
	enum ibtrs_fault_point fault;	/* who may stop it, and the names for that */
	const char *session;
	const char *path;
	u32 interval_ms;
	u32 misses_max;
	u32 missed;
	bool running;
	bool seen;			/* written by every arrival, cleared by the tick */
	unsigned long ack_due;		/* bit 0: an ack waits for the tick (E-33) */
	unsigned long last_ack;		/* jiffies */
	ktime_t sent_at;		/* of the oldest HB_MSG that waits for its ack */
	bool awaited;			/* one does: set by the tick, cleared by the ack */
	/* of the last HB_MSG -> HB_ACK, or how long one waits already if that is more */
	u64 latency_ns;
};

/* Once per path object. */
void ibtrs_hb_init(struct ibtrs_hb *hb, struct workqueue_struct *wq,
		   void (*fail)(struct ibtrs_hb *hb, int err, const char *why));
void ibtrs_hb_start(struct ibtrs_hb *hb, struct ibtrs_conn *service, u32 interval_ms, u32 misses);
/* waits for a running tick; idempotent; not from fail() */
void ibtrs_hb_stop(struct ibtrs_hb *hb);
/* CQ context. */
static inline void ibtrs_hb_alive(struct ibtrs_hb *hb)
{
	if (!READ_ONCE(hb->seen))
		WRITE_ONCE(hb->seen, true);
}
void ibtrs_hb_msg(struct ibtrs_hb *hb);		/* HB_MSG arrived on cid 0: answer it */
void ibtrs_hb_ack(struct ibtrs_hb *hb);		/* HB_ACK arrived on cid 0 */

#endif
