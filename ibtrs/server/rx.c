// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receives on a connection after INFO_REQ: requests and heartbeats, all as immediates (protocol 3).
 * Everything else closes the path (E-9).
 *
 * Runs in the completion work of one connection, so recv_due needs no lock. Receives are posted
 * again before the request is processed, IBTRS_SRV_RX_BATCH at a time: so IBTRS_SRV_RX_BATCH more
 * are posted than the client may have requests outstanding. Requests are processed right here.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/op.h"

/*
 * Trials (protocol.md 8.4): a client asks whether packets of full size come through, before it
 * sends requests over a path.
 *
 * The data of a trial lie in a chunk of the path and are sent back as they are. No other client has
 * written them: the chunks belong to this path alone, and were zeroed when they were allocated. A
 * trial does not become a request, so it waits for no disk, and for no other execution of its slot.
 *
 * If the send queue is full, the trial is not answered: the client asks on an idle path, and waits
 * for the answer only for a limited time.
 */

static void trial_answer(struct ibtrs_srv_conn *conn, u32 slot, const struct ibtrs_desc *desc)
{
	struct ibtrs_srv_path *path = conn->path;
	struct ib_sge sge = {
		.addr	= path->mrs.dma[slot],
		.length	= desc->len,
		.lkey	= path->dev->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &conn->send_cqe,
		.wr.sg_list	= &sge,
		.wr.num_sge	= 1,
		.wr.opcode	= IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data	= cpu_to_be32(ibtrs_imm_trial(0, 0, path->off_bits)),
		.remote_addr	= desc->addr,
		.rkey		= desc->rkey,
	};
	int err;

	err = ibtrs_conn_send(&conn->c, &wr.wr, &wr.wr, 1, false);
	if (err && err != -EAGAIN)
		ibtrs_srv_path_close(path, "a trial cannot be answered");
}

/* NULL, or why the path is closed. */
static const char *trial_take(struct ibtrs_srv_path *path, u32 slot, u32 off,
			      struct ibtrs_desc *desc)
{
	struct ibtrs_wire_trial wire;
	const char *why;

	if (slot >= path->limits.queue_depth)
		return "a trial in a slot that does not exist";
	if (off + sizeof(wire) > path->limits.chunk_size)
		return "a trial with its message beyond the chunk";
	ib_dma_sync_single_for_cpu(path->dev->ib, path->mrs.dma[slot], off + sizeof(wire),
				   DMA_BIDIRECTIONAL);
	memcpy(&wire, path->chunks->mem[slot] + off, sizeof(wire));
	ib_dma_sync_single_for_device(path->dev->ib, path->mrs.dma[slot], off + sizeof(wire),
				      DMA_BIDIRECTIONAL);
	ibtrs_trial_decode(&wire, off, &path->limits, desc, &why);
	return why;
}

/* A trial came on @conn: @imm says where it is. Completion context. */
static void rx_trial(struct ibtrs_srv_conn *conn, u32 imm)
{
	struct ibtrs_srv_path *path = conn->path;
	u32 slot = ibtrs_imm_req_slot(imm, path->off_bits),
	    off = ibtrs_imm_req_off(imm, path->off_bits);
	const char *why = "a trial that was not negotiated";
	struct ibtrs_desc desc;

	/* A trial that sees the path up inside this RCU section posts before the drain begins. */
	rcu_read_lock();
	if (ibtrs_srv_path_up(path)) {
		if (path->ext & IBTRS_EXT_TRIAL)
			why = trial_take(path, slot, off, &desc);
		if (!why)
			trial_answer(conn, slot, &desc);
	} else {
		why = "a trial came before INFO_RSP";
	}
	rcu_read_unlock();
	if (why)
		ibtrs_srv_path_close(path, why);
}

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
		rx_trial(conn, imm);
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
