// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receives on a client connection: answers, heartbeats, events (protocol 3, 5-7, 8.3).
 *
 * Runs in the completion context of one connection (softirq, or the only poller that is let in), so
 * recv_due needs no lock. Consumed receives are posted again in batches: RX_SLACK more are posted
 * than protocol 7 requires. With NEW_RKEY every receive has 8 bytes of its own and is posted at
 * once.
 *
 * An invalid message makes the path fail, with a reason, and does no other harm. An unknown
 * immediate is ignored.
 */
#include <linux/slab.h>
#include "ibtrs/client/answer.h"
#include "ibtrs/client/session.h"
#include "ibtrs/proto/imm.h"

#define RX_SLACK	16
#define RX_SERVICE	(128 + RX_SLACK)	/* two per own slot, heartbeats both ways, events */

u32 ibtrs_clt_rx_depth(const struct ibtrs_clt_conn *conn)
{
	return conn->c.cid ? 2 * conn->path->limits.queue_depth + RX_SLACK : RX_SERVICE;
}

static void rx_give_back(struct ibtrs_clt_conn *conn)
{
	int err;

	if (++conn->recv_due < RX_SLACK)
		return;
	err = ibtrs_conn_post_empty(&conn->c, &conn->recv_cqe, conn->recv_due);
	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "receives cannot be posted");
	conn->recv_due = 0;
}

/* @payload: eight bytes with a new key for the slot's chunk, or NULL. */
static const char *rx_imm(struct ibtrs_clt_conn *conn, struct ib_wc *wc, const void *payload)
{
	struct ibtrs_clt_path *path = conn->path;
	u32 imm = be32_to_cpu(wc->ex.imm_data), slot = ibtrs_imm_rsp_slot(imm), rkey;
	struct ibtrs_fault fault;
	const char *why;

	ibtrs_hb_alive(&path->hb);
	switch (ibtrs_imm_type(imm)) {
	case IBTRS_IMM_IO_RSP:
		fault = ibtrs_fault_spin(IBTRS_FAULT_CLT_COMPLETION, path->clt->name, path->name);
		if (unlikely(fault.action == IBTRS_FAULT_DROP || fault.action == IBTRS_FAULT_ERROR))
			return fault.err ? "a completion failed on demand" : NULL;
		if (payload) {
			if (slot >= path->limits.queue_depth)
				return "answer for a slot that does not exist";
			if (ibtrs_msg_rkey_decode(payload, wc->byte_len, slot, &rkey, &why))
				return why;
			WRITE_ONCE(path->hs.chunks[slot].rkey, rkey);
		}
		return ibtrs_clt_answer(conn, slot, ibtrs_imm_rsp_err(imm), wc->byte_len);
	case IBTRS_IMM_IO_RSP_INV:
		return "the server has invalidated a key without a request to do so";
	case IBTRS_IMM_HB_MSG:
		if (!conn->c.cid)
			ibtrs_hb_msg(&path->hb);
		return NULL;
	case IBTRS_IMM_HB_ACK:
		if (!conn->c.cid)
			ibtrs_hb_ack(&path->hb);
		return NULL;
	case IBTRS_IMM_EVENT:
		if (!conn->c.cid && path->ext & IBTRS_EXT_EVENTS && path->clt->ops->event)
			path->clt->ops->event(path->clt->priv, ibtrs_imm_event_kind(imm),
					      ibtrs_imm_event_dev(imm));
		return NULL;
	case IBTRS_IMM_TRIAL:
		ibtrs_clt_trial_answered(conn);
		return NULL;
	default:
		pr_debug_ratelimited("ibtrs %s: %s: unknown immediate %#x\n", path->clt->name,
				     path->name, imm);
		return NULL;
	}
}

void ibtrs_clt_rx_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(wc->wr_cqe, struct ibtrs_clt_conn, recv_cqe);
	const char *why = NULL;

	if (ibtrs_clt_wc_failed(conn, wc))
		return;
	if (likely(wc->opcode == IB_WC_RECV_RDMA_WITH_IMM))
		why = rx_imm(conn, wc, NULL);
	else
		why = "unexpected message";
	if (unlikely(why))
		ibtrs_clt_path_fail(conn->path, -EPROTO, why);
	rx_give_back(conn);
}

static void rx_buf_post(struct ibtrs_clt_conn *conn, struct ibtrs_iu *iu)
{
	int err = ibtrs_iu_post_recv(iu, &conn->c, conn->path->dev);

	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "receives cannot be posted");
}

static void rx_buf_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(cq->cq_context, struct ibtrs_clt_conn, c);
	struct ibtrs_iu *iu = container_of(wc->wr_cqe, struct ibtrs_iu, cqe);
	const char *why = NULL;

	if (ibtrs_clt_wc_failed(conn, wc))
		return;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM) {
		/* Heartbeats stay zero-byte writes in this mode; an answer may not (protocol 5). */
		why = ibtrs_imm_type(be32_to_cpu(wc->ex.imm_data)) >= IBTRS_IMM_HB_MSG ?
			      rx_imm(conn, wc, NULL) :
			      "answer without the new key of its chunk";
	} else if (wc->wc_flags & IB_WC_WITH_IMM) {
		ibtrs_iu_sync_cpu(iu);
		why = rx_imm(conn, wc, iu->buf);
	} else {
		why = "unexpected message";
	}
	if (unlikely(why))
		ibtrs_clt_path_fail(conn->path, -EPROTO, why);
	rx_buf_post(conn, iu);
}

void ibtrs_clt_rx_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(wc->wr_cqe, struct ibtrs_clt_conn, send_cqe);

	if (!ibtrs_clt_wc_failed(conn, wc))
		ibtrs_conn_credit(&conn->c, conn->c.sig_every);
}

int ibtrs_clt_rx_start(struct ibtrs_clt_conn *conn)
{
	u32 nr = ibtrs_clt_rx_depth(conn), i;
	int err;

	conn->recv_due = 0;
	if (!conn->path->limits.new_rkey)
		return ibtrs_conn_post_empty(&conn->c, &conn->recv_cqe, nr);
	conn->rxbufs = kvcalloc(nr, sizeof(*conn->rxbufs), GFP_KERNEL);
	if (!conn->rxbufs)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		err = ibtrs_iu_init(&conn->rxbufs[i], conn->path->dev->ib,
				    sizeof(struct ibtrs_wire_rkey_rsp), DMA_FROM_DEVICE,
				    rx_buf_done);
		if (err)
			return err;
		rx_buf_post(conn, &conn->rxbufs[i]);
	}
	return 0;
}

void ibtrs_clt_rx_stop(struct ibtrs_clt_conn *conn)
{
	u32 i;

	for (i = 0; conn->rxbufs && i < ibtrs_clt_rx_depth(conn); i++)
		ibtrs_iu_free(&conn->rxbufs[i]);
	kvfree(conn->rxbufs);
	conn->rxbufs = NULL;
}
