// SPDX-License-Identifier: GPL-2.0-only
/*
 * What arrives on a connection once INFO_REQ was seen: requests and heartbeats, all as immediates
 * (protocol 3); everything else closes the path (E-9).
 *
 * Runs in the completion work of one connection, so recv_due needs no lock. Receives are posted
 * again before the request is processed, IBTRS_SRV_RX_BATCH at a time: so IBTRS_SRV_RX_BATCH more
 * are posted than the client may have requests outstanding. Requests are processed right here.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/server/reply.h"
#include "ibtrs/server/rx.h"
#include "ibtrs/server/trial.h"

u32 ibtrs_srv_rx_depth(const struct ibtrs_srv_conn *conn)
{
	const struct ibtrs_srv_path *path = conn->path;
	u32 want = conn->c.cid ? path->limits.queue_depth + IBTRS_SRV_RX_BATCH :
				 IBTRS_SRV_RX_SERVICE;

	/*
	 * Fewer are not wrong: the client's requests then wait (RNR). 2 are left for INFO_REQ and
	 * the drain.
	 */
	return min_t(u32, want, path->dev->ib->attrs.max_qp_wr - 2);
}

int ibtrs_srv_rx_start(struct ibtrs_srv_conn *conn)
{
	conn->recv_due = 0;
	return ibtrs_conn_post_empty(&conn->c, &conn->recv_cqe, ibtrs_srv_rx_depth(conn));
}

static noinline void rx_give_back(struct ibtrs_srv_conn *conn)
{
	int err;

	err = ibtrs_conn_post_empty(&conn->c, &conn->recv_cqe, conn->recv_due);
	conn->recv_due = 0;
	if (unlikely(err))
		ibtrs_srv_path_close(conn->path, "receives cannot be posted");
}

/*
 * Counts the requests in a row that came alone. One poll of the CQ fills cq->wc. A request in any
 * entry but the first came with others (if a send completion is in the first entry, the second one
 * counts as first). A request in the first entry may have come alone or not, so only several polls
 * in a row tell.
 */
static void rx_count(struct ibtrs_srv_conn *conn, const struct ib_cq *cq, const struct ib_wc *wc)
{
	bool first = wc == cq->wc + conn->after_send || wc == cq->wc;

	conn->after_send = false;
	WRITE_ONCE(conn->alone, first ? conn->alone + 1 : 0);
}

static void rx_serve(struct ibtrs_srv_conn *conn, u32 slot, u32 off)
{
	WRITE_ONCE(conn->serving, true);
	ibtrs_srv_op_begin(conn, slot, off);
	WRITE_ONCE(conn->serving, false);
}

static void rx_request(struct ibtrs_srv_conn *conn, u32 imm)
{
	struct ibtrs_srv_path *path = conn->path;
	u32 slot = ibtrs_imm_req_slot(imm, path->off_bits),
	    off = ibtrs_imm_req_off(imm, path->off_bits);

	if (unlikely(!ibtrs_srv_path_up(path)))
		ibtrs_srv_path_close(path, "a request came before INFO_RSP");
	else if (unlikely(slot >= path->limits.queue_depth))
		ibtrs_srv_path_close(path, "a request for a slot that does not exist");
	else if (unlikely(off + sizeof(struct ibtrs_wire_write) > path->limits.chunk_size))
		ibtrs_srv_path_close(path, "a request with its header beyond the chunk");
	else
		rx_serve(conn, slot, off);
}

static noinline void rx_other(struct ibtrs_srv_conn *conn, u32 imm)
{
	struct ibtrs_srv_path *path = conn->path;

	switch (ibtrs_imm_type(imm)) {
	case IBTRS_IMM_HB_MSG:
		if (!conn->c.cid)
			ibtrs_hb_msg(&path->hb);
		break;
	case IBTRS_IMM_HB_ACK:
		if (!conn->c.cid)
			ibtrs_hb_ack(&path->hb);
		break;
	case IBTRS_IMM_TRIAL:
		ibtrs_srv_trial(conn, imm);
		break;
	default:
		pr_debug_ratelimited("session %s: %s: unknown immediate %#x\n",
				     ibtrs_srv_session_label(path->session), path->name, imm);
	}
}

void ibtrs_srv_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_conn *conn = container_of(wc->wr_cqe, struct ibtrs_srv_conn, recv_cqe);
	u32 imm;

	if (unlikely(ibtrs_srv_path_failed(conn->path, wc)))
		return;
	if (unlikely(wc->opcode != IB_WC_RECV_RDMA_WITH_IMM)) {
		ibtrs_srv_path_close(conn->path, "an unexpected message");
		return;
	}
	imm = be32_to_cpu(wc->ex.imm_data);
	ibtrs_hb_alive(&conn->path->hb);
	if (++conn->recv_due >= IBTRS_SRV_RX_BATCH)
		rx_give_back(conn);
	rx_count(conn, cq, wc);
	if (likely(ibtrs_imm_type(imm) == IBTRS_IMM_IO_REQ))
		rx_request(conn, imm);
	else
		rx_other(conn, imm);
	/* A heartbeat's completion may have given credit back; it does not look at conn->wait. */
	if (unlikely(!list_empty_careful(&conn->wait)))
		ibtrs_srv_reply_kick(conn);
}
