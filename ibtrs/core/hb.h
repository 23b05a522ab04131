/* SPDX-License-Identifier: GPL-2.0-only */
/* Heartbeat of one path, either side (protocol 7, decision 11). */
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
	enum ibtrs_fault_point fault;	/* fault point of its sends; session, path: names for it */
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
	bool awaited;			/* an HB_MSG waits: set by the tick, cleared by the ack */
	/* from the last HB_MSG to its HB_ACK; or how long one waits by now, if that is more */
	u64 latency_ns;
};

/* Once per path object. */
void ibtrs_hb_init(struct ibtrs_hb *hb, struct workqueue_struct *wq,
		   void (*fail)(struct ibtrs_hb *hb, int err, const char *why));
/* After more than @misses intervals in a row without an arrival, fail() is called, once. */
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
