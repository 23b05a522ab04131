// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heartbeat of one path, the same on both sides.
 *
 * A tick looks whether anything arrived since the last one. If so the count of misses starts over
 * and a new HB_MSG goes out; if not, it grows, and past the limit the path is reported dead, once.
 * An HB_MSG is sent only at count 0: the QP is reliable, a second one could not arrive where the
 * first did not. Arrivals are noted by the receive path in `seen`; the tick alone writes the rest,
 * but for the latency, which the ack sets.
 *
 * A peer that floods HB_MSGs gets one answer per HB_ACK_GAP (E-33); the last one of a burst is
 * answered by the tick.
 */
#include "ibtrs/core/hb.h"
#include "ibtrs/proto/imm.h"

#define HB_ACK_GAP	msecs_to_jiffies(20)

static void hb_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_hb *hb = container_of(wc->wr_cqe, struct ibtrs_hb, cqe);

	if (likely(wc->status == IB_WC_SUCCESS))
		ibtrs_conn_credit(hb->conn, hb->conn->sig_every);
	else if (wc->status != IB_WC_WR_FLUSH_ERR)
		hb->fail(hb, ibtrs_conn_wc_err(wc), ib_wc_status_msg(wc->status));
}

static int hb_send(struct ibtrs_hb *hb, enum ibtrs_imm_type type)
{
	struct ibtrs_fault fault = ibtrs_fault_at(hb->fault, hb->session, hb->path);
	int err;

	if (unlikely(fault.action))
		return fault.err;
	err = ibtrs_conn_send_imm(hb->conn, &hb->cqe, ibtrs_imm_hb(type));
	/* A full send queue is no news: what fills it will complete or be found dead. */
	return err == -EAGAIN ? 0 : err;
}

/*
 * An ack that takes longer than the interval must not be measured from a later message; and the
 * choice of a path by latency should know of it now.
 */
static void hb_clock(struct ibtrs_hb *hb)
{
	ktime_t now = ktime_get();
	u64 waits;

	if (!smp_load_acquire(&hb->awaited)) {	/* the ack has read sent_at */
		hb->sent_at = now;
		/* With ibtrs_hb_ack(): a reader that sees it awaited sees since when. */
		smp_store_release(&hb->awaited, true);
		return;
	}
	waits = ktime_to_ns(ktime_sub(now, hb->sent_at));
	if (waits > READ_ONCE(hb->latency_ns))
		WRITE_ONCE(hb->latency_ns, waits);
}

static void hb_tick(struct work_struct *work)
{
	struct ibtrs_hb *hb = container_of(to_delayed_work(work), struct ibtrs_hb, work);
	int err = 0;

	if (READ_ONCE(hb->seen)) {
		WRITE_ONCE(hb->seen, false);
		hb->missed = 0;
	}
	if (hb->missed > hb->misses_max) {
		hb->fail(hb, -ETIMEDOUT, "no sign of life from the peer");
		return;
	}
	if (hb->missed++ == 0) {
		hb_clock(hb);
		err = hb_send(hb, IBTRS_IMM_HB_MSG);
	}
	if (!err && test_and_clear_bit(0, &hb->ack_due))
		err = hb_send(hb, IBTRS_IMM_HB_ACK);
	if (err) {
		hb->fail(hb, err, "heartbeat can not be posted");
		return;
	}
	queue_delayed_work(hb->wq, &hb->work, msecs_to_jiffies(hb->interval_ms));
}

void ibtrs_hb_init(struct ibtrs_hb *hb, struct workqueue_struct *wq,
		   void (*fail)(struct ibtrs_hb *hb, int err, const char *why))
{
	INIT_DELAYED_WORK(&hb->work, hb_tick);
	hb->wq = wq;
	hb->fail = fail;
	hb->cqe.done = hb_sent;
}
EXPORT_SYMBOL_GPL(ibtrs_hb_init);

void ibtrs_hb_start(struct ibtrs_hb *hb, struct ibtrs_conn *service, u32 interval_ms, u32 misses)
{
	hb->conn = service;
	hb->interval_ms = max(interval_ms, 10u);
	hb->misses_max = misses;
	hb->missed = 0;
	hb->seen = true;
	hb->last_ack = jiffies - HB_ACK_GAP;
	hb->latency_ns = 0;
	hb->awaited = false;
	hb->running = true;
	queue_delayed_work(hb->wq, &hb->work, 0);
}
EXPORT_SYMBOL_GPL(ibtrs_hb_start);

void ibtrs_hb_stop(struct ibtrs_hb *hb)
{
	WRITE_ONCE(hb->running, false);
	cancel_delayed_work_sync(&hb->work);
	clear_bit(0, &hb->ack_due);
}
EXPORT_SYMBOL_GPL(ibtrs_hb_stop);

void ibtrs_hb_msg(struct ibtrs_hb *hb)
{
	int err;

	/* The peer may be ahead of us in the handshake: the first tick answers. */
	if (!READ_ONCE(hb->running) || time_before(jiffies, READ_ONCE(hb->last_ack) + HB_ACK_GAP)) {
		set_bit(0, &hb->ack_due);
		return;
	}
	WRITE_ONCE(hb->last_ack, jiffies);
	err = hb_send(hb, IBTRS_IMM_HB_ACK);
	if (err)
		hb->fail(hb, err, "heartbeat can not be answered");
}
EXPORT_SYMBOL_GPL(ibtrs_hb_msg);

void ibtrs_hb_ack(struct ibtrs_hb *hb)
{
	/* With hb_clock(). */
	if (!READ_ONCE(hb->running) || !smp_load_acquire(&hb->awaited))
		return;
	WRITE_ONCE(hb->latency_ns, ktime_to_ns(ktime_sub(ktime_get(), hb->sent_at)));
	/* With hb_clock(), which sets sent_at anew from here on. */
	smp_store_release(&hb->awaited, false);
}
EXPORT_SYMBOL_GPL(ibtrs_hb_ack);
