// SPDX-License-Identifier: GPL-2.0-only
/*
 * Heartbeat of one path, the same on both sides.
 *
 * A tick looks whether anything arrived since the last tick, and ibtrs/logic/beat.h says what that
 * means: an HB_MSG, nothing, or a dead path, which is reported once. The receive path sets `seen`
 * on each arrival; ibtrs_hb_msg() also writes `last_ack` and `ack_due`, ibtrs_hb_ack() the latency
 * and `awaited`. Only the tick writes `missed` and `sent_at`.
 *
 * A peer that floods HB_MSGs gets one answer per HB_ACK_GAP (E-33); the tick answers the last
 * HB_MSG of a burst.
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
	/*
	 * A full send queue is no error: the requests in it will complete, or the path will be
	 * found dead.
	 */
	return err == -EAGAIN ? 0 : err;
}

/*
 * Notes the time at which an HB_MSG is sent. If an older HB_MSG still waits for its ack, its time
 * stays, because the latency must be measured from the older one. The time that it has waited then
 * counts as latency at once, so that the choice of a path by latency knows of it.
 */
static void hb_clock(struct ibtrs_hb *hb)
{
	ktime_t now = ktime_get();
	u64 waits;

	if (!smp_load_acquire(&hb->awaited)) {	/* ibtrs_hb_ack() has read sent_at */
		hb->sent_at = now;
		/* Pairs with ibtrs_hb_ack(): if it sees awaited, it sees sent_at, too. */
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
	enum ibtrs_beat_verdict verdict;
	bool seen = READ_ONCE(hb->seen);
	int err = 0;

	if (seen)
		WRITE_ONCE(hb->seen, false);
	verdict = ibtrs_beat_tick(&hb->missed, seen, hb->misses_max);
	if (verdict == IBTRS_BEAT_DEAD) {
		hb->fail(hb, -ETIMEDOUT, "no sign of life from the peer");
		return;
	}
	if (verdict == IBTRS_BEAT_SEND) {
		hb_clock(hb);
		err = hb_send(hb, IBTRS_IMM_HB_MSG);
	}
	if (!err && test_and_clear_bit(0, &hb->ack_due))
		err = hb_send(hb, IBTRS_IMM_HB_ACK);
	if (err) {
		hb->fail(hb, err, "heartbeat cannot be posted");
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
	/* Pairs with ibtrs_hb_msg(): if it sees running, it sees conn, too. */
	smp_store_release(&hb->running, true);
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

	/*
	 * Not running: the peer is ahead of us in the handshake. Then, and when the last answer is
	 * too young, the next tick answers.
	 */
	if (!smp_load_acquire(&hb->running) ||
	    time_before(jiffies, READ_ONCE(hb->last_ack) + HB_ACK_GAP)) {
		set_bit(0, &hb->ack_due);
		return;
	}
	WRITE_ONCE(hb->last_ack, jiffies);
	err = hb_send(hb, IBTRS_IMM_HB_ACK);
	if (err)
		hb->fail(hb, err, "heartbeat cannot be answered");
}
EXPORT_SYMBOL_GPL(ibtrs_hb_msg);

void ibtrs_hb_ack(struct ibtrs_hb *hb)
{
	/* Pairs with hb_clock(). */
	if (!READ_ONCE(hb->running) || !smp_load_acquire(&hb->awaited))
		return;
	WRITE_ONCE(hb->latency_ns, ktime_to_ns(ktime_sub(ktime_get(), hb->sent_at)));
	/* Pairs with hb_clock(), which sets sent_at anew from here on. */
	smp_store_release(&hb->awaited, false);
}
EXPORT_SYMBOL_GPL(ibtrs_hb_ack);
