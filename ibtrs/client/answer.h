/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of a request, and the steps of its state that req.c and answer.c share. */
#ifndef IBTRS_CLIENT_ANSWER_H
#define IBTRS_CLIENT_ANSWER_H

#include "ibtrs/client/req.h"
#include "ibtrs/client/session.h"

/*
 * An answer for @slot arrived on @conn. @byte_len: length of the completion (L17). Return: NULL, or
 * a static text: the reason to fail the path (E-38).
 */
const char *ibtrs_clt_answer(struct ibtrs_clt_conn *conn, u32 slot, int err, u32 byte_len);
/*
 * The poster of @req on @conn gives it away, whether posting succeeded or the path failed. The
 * answer may have arrived already: then it is handled here. Any context.
 */
void ibtrs_clt_answer_posted(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn);
/* A BUSY request was answered, and the peer cannot reach its pages any more. */
void ibtrs_clt_answer_finish(struct ibtrs_clt_req *req, int err);
/* The last work request of a write with pages has completed, or the LOCAL_INV. CQ context. */
void ibtrs_clt_answer_sent(struct ib_cq *cq, struct ib_wc *wc);

/* Did a work request of @conn fail? Then the path does, too, unless it is being drained. */
static inline bool ibtrs_clt_wc_failed(struct ibtrs_clt_conn *conn, const struct ib_wc *wc)
{
	if (likely(wc->status == IB_WC_SUCCESS)) {
		/* A receive does not show that the send queue moves. */
		if (!(wc->opcode & IB_WC_RECV))
			ibtrs_probe_seen(&conn->probe);
		return false;
	}
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		ibtrs_clt_path_fail(conn->path, ibtrs_conn_wc_err(wc),
				    ib_wc_status_msg(wc->status));
	return true;
}

static inline bool ibtrs_clt_req_take(struct ibtrs_clt_req *req, enum ibtrs_clt_req_state from)
{
	return atomic_cmpxchg(&req->state, from, IBTRS_CLT_REQ_BUSY) == from;
}

static inline void ibtrs_clt_req_give(struct ibtrs_clt_req *req, enum ibtrs_clt_req_state to)
{
	atomic_set_release(&req->state, to);
}

/* The end of a BUSY request: the slot is free for the user before done() runs. */
static inline void ibtrs_clt_req_end(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_io *io = req->io;

	WRITE_ONCE(req->conn, NULL);
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_IDLE);
	io->done(io, err);
}

/* Note that a request had to leave a path. */
static inline void ibtrs_clt_req_note_loss(struct ibtrs_clt_io *io)
{
	if (!io->losses)
		WRITE_ONCE(io->lost_at, (u32)jiffies);
	if (io->losses < U8_MAX)
		WRITE_ONCE(io->losses, io->losses + 1);
}

/* A BUSY request leaves its path. */
static inline struct ibtrs_clt_path *ibtrs_clt_req_leave(struct ibtrs_clt_req *req)
{
	struct ibtrs_clt_path *path = req->conn->path;

	atomic_dec(&req->conn->inflight);
	ibtrs_clt_stats_ended(&path->stats, req->cpu);
	return path;
}

#endif
