// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a request that was answered: its read key is taken back, its pages, its slot.
 *
 * Called by: rx.c (answer), post.c and req.c (posted), the walk of req.c (finish). The record's
 * `state` says who owns it, see req.h.
 */
#include "ibtrs/client/answer.h"
#include "ibtrs/client/dma.h"
#include "ibtrs/client/trace.h"
#include "ibtrs/logic/fence.h"

/* Far more than it takes to catch up with somebody who has stopped (ibtrs_fence_catch_up()). */
#define ANSWER_BEHIND_MAX	64

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
 * Somebody else has counted further, and @err says how far. Parked, as if it had been lost, but
 * that it certainly has not been executed. A server that says so for ever costs a path now and
 * then, and then hold= counts.
 */
static noinline void answer_again(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path, int err)
{
	struct ibtrs_clt *clt = path->clt;

	pr_warn_ratelimited("ibtrs %s: %s: slot %u: somebody else counts in this session's name\n",
			    clt->name, path->name, req->slot);
	req->token = ibtrs_fence_catch_up(req->token, err);
	if (!(++req->behind % ANSWER_BEHIND_MAX)) {
		ibtrs_clt_req_note_loss(req->io);
		ibtrs_clt_path_fail(path, -EPROTO,
				    "the server takes each request of a slot for an old one");
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
		ibtrs_clt_mr_bounce_sync(path, req->slot, req->io->len);
		if (likely(req->io->nents))
			answer_copy_bounce(req);
	}
	ibtrs_clt_dma_unmap(req, path);
	trace_ibtrs_clt_answer(path, req->slot, err);
	if (unlikely(ibtrs_fence_is_behind(err) && path->limits.fence))
		answer_again(req, path, err);
	else
		ibtrs_clt_req_end(req, err);
}

static void answer_inval_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_req *req = container_of(wc->wr_cqe, struct ibtrs_clt_req, inv_cqe);
	struct ibtrs_clt_conn *conn = req->conn;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* The walk ends it when the QP is gone, and the key with it. */
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			ibtrs_clt_path_fail(conn->path, -ECONNRESET,
					    "a read key can not be invalidated");
		return;
	}
	ibtrs_clt_conn_seen(conn);
	ibtrs_conn_credit(&conn->c, 1);
	if (ibtrs_clt_req_take(req, IBTRS_CLT_REQ_INVAL))
		ibtrs_clt_answer_finish(req, req->err);
}

/*
 * Takes the read key back before the pages go back. The slot is not free before this has completed,
 * and completions come in order: nothing of this request is in the send queue any more then, for a
 * retransmission to repeat. soft-RoCE repeats REG_MR too, and with the key in use it would fail.
 */
static void answer_invalidate(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_conn *conn = req->conn;
	struct ib_send_wr wr = {
		.wr_cqe			= &req->inv_cqe,
		.opcode			= IB_WR_LOCAL_INV,
		.ex.invalidate_rkey	= conn->path->mrs.slot[req->slot]->rkey,
	};

	req->inv_cqe.done = answer_inval_done;
	req->err = err;
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_INVAL);
	err = ibtrs_conn_send_reserved(&conn->c, &wr, &wr, 1, true);
	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "a read key can not be invalidated");
}

/*
 * A BUSY request and its answer. @inv: the server has taken the read key back. Inline: each request
 * comes by, nearly all from one caller.
 */
static __always_inline void answer_take(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn,
					int err, bool inv, u32 byte_len)
{
	struct ibtrs_clt_path *path = conn->path;

	/* L17: our own server sends the data with the answer, unless it must bring a new key. */
	if (unlikely((req->bounced || req->mr) && !err && path->limits.fence && !path->new_rkey &&
		     byte_len != req->io->len))
		err = -EIO;
	if (req->mr) {
		if (!inv) {
			answer_invalidate(req, err);
			return;
		}
		ibtrs_conn_credit(&conn->c, 1);
	}
	ibtrs_clt_answer_finish(req, err);
}

void ibtrs_clt_answer_posted(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn)
{
	if (likely(atomic_cmpxchg(&req->state, IBTRS_CLT_REQ_POSTING, IBTRS_CLT_REQ_POSTED) ==
		   IBTRS_CLT_REQ_POSTING))
		return;
	/*
	 * A cmpxchg that failed orders nothing: with the one in ibtrs_clt_answer(), `early` is read
	 * after its state.
	 */
	smp_rmb();
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_BUSY);
	answer_take(req, conn, req->early.err, req->early.inv, req->early.byte_len);
}

const char *ibtrs_clt_answer(struct ibtrs_clt_conn *conn, u32 slot, int err, bool inv, u32 byte_len)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_clt_slots *s = &path->clt->slots;
	struct ibtrs_clt_req *req;

	if (unlikely(slot >= s->depth))
		return "answer for a slot that does not exist";
	/*
	 * A request that is answered on its own connection is the latest of its slot, and one that
	 * is not executed for its token is answered otherwise (ibtrs_fence_behind()). The request
	 * stays ours, and the walk takes it from here to another path, or keeps it.
	 */
	if (unlikely(err == -ESTALE && path->limits.fence))
		return "the server takes a current request for an old one";
	req = &s->reqs[slot];
	if (unlikely(READ_ONCE(req->conn) != conn))
		return "answer for a slot that is not in flight on its connection";
	inv = inv && conn->inv_rkey == path->mrs.slot[slot]->rkey;
	conn->inv_rkey = 0;
	if (unlikely(!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_POSTED))) {
		/*
		 * It is still being posted, and the poster takes the answer along. A server that
		 * guesses gets no further than that.
		 */
		if (atomic_read_acquire(&req->state) == IBTRS_CLT_REQ_POSTING) {
			req->early.err = err;
			req->early.inv = inv;
			req->early.byte_len = byte_len;
			if (atomic_cmpxchg(&req->state, IBTRS_CLT_REQ_POSTING,
					   IBTRS_CLT_REQ_ANSWERED) == IBTRS_CLT_REQ_POSTING)
				return NULL;
		}
		if (!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_POSTED))
			return "answer for a slot that is not in flight on its connection";
	}
	answer_take(req, conn, err, inv, byte_len);
	return NULL;
}
