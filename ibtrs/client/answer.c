// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a request that was answered: wait until the adapter is done with its pages, unmap
 * them, end it.
 *
 * Called by: rx.c (answer), post.c and req.c (posted), the walk of req.c (finish). The record's
 * `state` says who owns it, see req.h.
 */
#include "ibtrs/client/answer.h"
#include "ibtrs/client/mr.h"
#include "ibtrs/client/trace.h"
#include "ibtrs/logic/fence.h"

static void answer_copy_bounce(struct ibtrs_clt_req *req)
{
	struct ibtrs_clt_io *io = req->io;
#ifdef CONFIG_HIGHMEM
	sg_copy_from_buffer(io->sgl, io->nents, req->bounce, io->len);
#else
	const void *from = req->bounce;
	struct scatterlist *sg;
	u32 left = io->len, n;
	int i;

	for_each_sg(io->sgl, sg, io->nents, i) {
		n = min(left, sg->length);
		memcpy(sg_virt(sg), from, n);
		from += n;
		left -= n;
	}
#endif
}

/*
 * Another client has used this session's name and a higher token, and @err says how much higher.
 * The request is parked, like a lost one, but it has certainly not been executed. If the server
 * answers so again and again, the path fails every IBTRS_FENCE_BEHIND_MAX answers, and then hold=
 * counts.
 */
static noinline void answer_again(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path, int err)
{
	struct ibtrs_clt *clt = path->clt;

	pr_warn_ratelimited("ibtrs %s: %s: slot %u: another host is using this session's uuid (token is behind)\n",
			    clt->name, path->name, req->slot);
	req->token = ibtrs_fence_catch_up(req->token, err);
	if (!(++req->behind % IBTRS_FENCE_BEHIND_MAX)) {
		ibtrs_clt_req_note_loss(req->io);
		ibtrs_clt_path_fail(path, -EPROTO, IBTRS_FENCE_BEHIND_WHY);
	}
	req->io->poll = 0;
	WRITE_ONCE(req->conn, NULL);
	atomic_inc(&clt->nr_parked);
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_PARKED);
	queue_work(clt->wq, &clt->again);
}

void ibtrs_clt_answer_finish(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_path *path = ibtrs_clt_req_leave(req);

	if (req->bounced && !err) {
		ib_dma_sync_single_for_cpu(path->dev->ib, path->mrs.bounce_dma[req->slot],
					   req->io->len, DMA_FROM_DEVICE);
		if (likely(req->io->nents))
			answer_copy_bounce(req);
	}
	ibtrs_clt_mr_unmap_pages(req, path);
	trace_ibtrs_clt_answer(path, req->slot, err);
	if (unlikely(ibtrs_fence_is_behind(err) && path->limits.fence))
		answer_again(req, path, err);
	else
		ibtrs_clt_req_end(req, err);
}

/*
 * With acked_writes the pages of a write are given back only when the adapter needs them no more.
 * The answer does not prove that: until the server has acknowledged the packets of a write, the
 * adapter may send them again, out of memory that has become another owner's, and a server that
 * withholds its acknowledgements would read it. So a write ends with the later of its answer and
 * the completion of its last work request; a work request completes after those before it.
 *
 * Both happen on one CQ, mostly in the other order, but the answer that was early is handled by the
 * poster. The second of the two takes the request, the first does not touch it any more.
 */
static void answer_await_less(struct ibtrs_clt_req *req)
{
	if (atomic_dec_and_test(&req->awaits) && ibtrs_clt_req_take(req, IBTRS_CLT_REQ_ANSWERED))
		ibtrs_clt_answer_finish(req, req->err);
}

void ibtrs_clt_answer_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_req *req = container_of(wc->wr_cqe, struct ibtrs_clt_req, cqe);
	struct ibtrs_clt_conn *conn = req->conn;

	/* The walk ends the request when the QP, and with it the key, is gone. */
	if (unlikely(ibtrs_clt_wc_failed(conn, wc)))
		return;
	ibtrs_conn_credit(&conn->c, 1);
	answer_await_less(req);
}

/*
 * Invalidate the read key before the pages are given back. The slot is not free before this work
 * request has completed. Send completions come in order, so the send queue then holds nothing of
 * this request that a retransmission could repeat. soft-RoCE repeats REG_MR, too, and that would
 * fail while the key is in use.
 */
static void answer_invalidate(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_conn *conn = req->conn;
	struct ib_send_wr wr = {
		.wr_cqe			= &req->cqe,
		.opcode			= IB_WR_LOCAL_INV,
		.ex.invalidate_rkey	= conn->path->mrs.slot[req->slot]->rkey,
	};

	req->cqe.done = ibtrs_clt_answer_sent;
	atomic_set(&req->awaits, 1);
	req->err = err;
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_ANSWERED);
	err = ibtrs_conn_send_reserved(&conn->c, &wr, &wr, 1, true);
	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "a read key cannot be invalidated");
}

static void answer_await_sent(struct ibtrs_clt_req *req, int err)
{
	if (likely(atomic_read_acquire(&req->awaits) == 1)) {
		ibtrs_clt_answer_finish(req, err);
		return;
	}
	req->err = err;
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_ANSWERED);
	answer_await_less(req);
}

/*
 * Handle the answer to a BUSY request. Inline, because every request passes here, nearly all from
 * one caller.
 */
static __always_inline void answer_take(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn,
					int err, u32 byte_len)
{
	struct ibtrs_clt_path *path = conn->path;

	/* L17: our server sends the data with the answer, unless it must bring a new key. */
	if (unlikely((req->bounced || req->mr) && !err && path->limits.fence &&
		     !path->limits.new_rkey &&
		     byte_len != req->io->len))
		err = -EIO;
	if (req->mr)
		answer_invalidate(req, err);
	else if (unlikely(path->clt->acked) && req->nr_dma)
		answer_await_sent(req, err);
	else
		ibtrs_clt_answer_finish(req, err);
}

void ibtrs_clt_answer_posted(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn)
{
	if (likely(atomic_cmpxchg(&req->state, IBTRS_CLT_REQ_POSTING, IBTRS_CLT_REQ_POSTED) ==
		   IBTRS_CLT_REQ_POSTING))
		return;
	/*
	 * A failed cmpxchg orders nothing. This barrier pairs with the cmpxchg to EARLY in
	 * ibtrs_clt_answer(): `early` is read after the state.
	 */
	smp_rmb();
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_BUSY);
	answer_take(req, conn, req->early.err, req->early.byte_len);
}

const char *ibtrs_clt_answer(struct ibtrs_clt_conn *conn, u32 slot, int err, u32 byte_len)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_clt_slots *s = &path->clt->slots;
	struct ibtrs_clt_req *req;

	if (unlikely(slot >= s->depth))
		return "answer for a slot that does not exist";
	/*
	 * An answer that arrives on the connection of a request belongs to the latest submission of
	 * the slot, so -ESTALE cannot be right: a request that is not executed because of its
	 * token gets a different answer (ibtrs_fence_behind()). The request keeps its state: the
	 * walk then moves it to another path, or parks it.
	 */
	if (unlikely(err == -ESTALE && path->limits.fence))
		return "the server treats a current request as stale";
	req = &s->reqs[slot];
	if (unlikely(READ_ONCE(req->conn) != conn))
		return "answer for a slot that is not in flight on its connection";
	if (unlikely(!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_POSTED))) {
		/*
		 * The request is still being posted: leave the answer in `early`, where the poster
		 * finds it. A server that answers a request before it was sent achieves nothing
		 * else.
		 */
		if (atomic_read_acquire(&req->state) == IBTRS_CLT_REQ_POSTING) {
			req->early.err = err;
			req->early.byte_len = byte_len;
			if (atomic_cmpxchg(&req->state, IBTRS_CLT_REQ_POSTING,
					   IBTRS_CLT_REQ_EARLY) == IBTRS_CLT_REQ_POSTING)
				return NULL;
		}
		if (!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_POSTED))
			return "answer for a slot that is not in flight on its connection";
	}
	answer_take(req, conn, err, byte_len);
	return NULL;
}
