// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: submit, complete, fail over, park.
 *
 * Called by: the user (submit, replay, abort, count, break), rx.c (answer), the drain work of a path (walk). No lock is taken on the way of a
 * request; the record's `state` says who owns it (see req.h) and RCU keeps the connection while something is being posted on it.
 *
 * post.c makes work requests of a request.
 *
 * Failure: what could not be posted at all is given back to the caller. After a post that failed half way the path is broken, and its drain
 * brings the request to another path or parks it; a request that was ever posted is never given back (law L1).
 */
#include <linux/slab.h>
#include "ibtrs/client/post.h"
#include "ibtrs/client/rx.h"
#include "ibtrs/client/session.h"
#include "ibtrs/client/trace.h"

static bool req_take(struct ibtrs_clt_req *req, enum ibtrs_clt_req_state from)
{
	return atomic_cmpxchg(&req->state, from, IBTRS_CLT_REQ_BUSY) == from;
}

static void req_give(struct ibtrs_clt_req *req, enum ibtrs_clt_req_state to)
{
	atomic_set_release(&req->state, to);
}

/* 0: post it. 1: say that it was posted. Else what posting it is to return. */
static int req_fault(struct ibtrs_clt_path *path, struct ibtrs_clt_conn *conn)
{
	struct ibtrs_fault f = ibtrs_fault_spin(IBTRS_FAULT_CLT_SUBMIT, path->clt->name, path->name);

	if (f.action == IBTRS_FAULT_STUCK)
		WRITE_ONCE(conn->c.stuck, true);
	return f.action == IBTRS_FAULT_DROP ? 1 : f.err;
}

static struct ibtrs_clt_conn *req_conn(const struct ibtrs_clt_req *req, struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	u32 cpu = req->cpu, poll = req->io->poll;

	if (unlikely(req->slot >= clt->slots.nr_user))
		return &path->conns[0];
	if (unlikely(poll && poll <= clt->opts.nr_poll_queues))
		return &path->conns[clt->nr_irq_conns + poll];
	return &path->conns[1 + (cpu < clt->nr_irq_conns ? cpu : cpu % clt->nr_irq_conns)];
}

/*
 * Post a BUSY request on @path, which RCU keeps. 0: it is POSTED, or the path was told that it is broken. Else nothing was posted, and it
 * is still ours.
 */
static int req_post(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path, u32 gen, struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_io *io = req->io;
	struct ibtrs_clt_conn *conn;
	int err;

	err = ibtrs_clt_post_map(req, path);
	if (unlikely(err))
		return err;
	req->cpu = raw_smp_processor_id();
	req->gen = gen;
	req->token++;
	conn = req_conn(req, path);
	WRITE_ONCE(req->conn, conn);
	ibtrs_clt_stats_posted(&path->stats, io->dir, io->len + io->usr_len);
	trace_ibtrs_clt_req(conn, io);
	req_give(req, IBTRS_CLT_REQ_POSTING);

	err = req_fault(path, conn) ?: ibtrs_clt_post(req, path, conn, plug);
	if (likely(!err && plug))
		return 0;
	if (unlikely(err < 0 && err != -EAGAIN))
		/* Something may be on its way: the drain will tell. */
		ibtrs_clt_path_fail(path, err, "a request can not be posted");
	if (likely(err != -EAGAIN)) {
		ibtrs_clt_req_posted(req, conn);
		return 0;
	}
	if (unlikely(!req_take(req, IBTRS_CLT_REQ_POSTING))) {
		ibtrs_clt_path_fail(path, -EPROTO, "an answer came to a request that was not sent");
		req_give(req, IBTRS_CLT_REQ_BUSY);
	}
	ibtrs_clt_stats_ended(&path->stats, req->cpu);
	ibtrs_clt_post_unmap(req, path);
	WRITE_ONCE(req->conn, NULL);
	return err;
}

/*
 * Try the paths that are up. @gen: only in this session generation (0 = any). 0 posted, -ENOTCONN, -EAGAIN, -EMSGSIZE.
 */
static int req_send(struct ibtrs_clt *clt, struct ibtrs_clt_req *req, u32 gen, struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_pathset *set;
	struct ibtrs_clt_path *path;
	int err = -ENOTCONN;
	u64 tried[2] = {};

	rcu_read_lock();
	set = rcu_dereference(clt->up);
	if (likely(!gen || set->gen == gen)) {
		while ((path = ibtrs_clt_pathset_pick(clt, set, tried))) {
			err = req_post(req, path, set->gen, plug);
			if (likely(!err))
				break;
		}
	}
	rcu_read_unlock();
	return err;
}

/* The end of a BUSY request: the slot is free for the user before done() runs. */
static void req_end(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_io *io = req->io;

	WRITE_ONCE(req->conn, NULL);
	req_give(req, IBTRS_CLT_REQ_IDLE);
	io->done(io, err);
}

/* A BUSY request leaves its path. */
static struct ibtrs_clt_path *req_leave(struct ibtrs_clt_req *req)
{
	struct ibtrs_clt_path *path = req->conn->path;

	ibtrs_clt_stats_ended(&path->stats, req->cpu);
	return path;
}

static void req_copy_bounce(struct ibtrs_clt_req *req)
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

/* A BUSY request was answered and nothing of the peer can reach its pages any more. */
static void req_finish(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_path *path = req_leave(req);

	if (req->bounced && !err) {
		ibtrs_clt_mr_bounce_sync(path, req->slot, req->io->len);
		if (likely(req->io->nents))
			req_copy_bounce(req);
	}
	ibtrs_clt_post_unmap(req, path);
	trace_ibtrs_clt_answer(path, req->slot, err);
	req_end(req, err);
}

static void req_inval_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_req *req = container_of(wc->wr_cqe, struct ibtrs_clt_req, inv_cqe);
	struct ibtrs_clt_conn *conn = req->conn;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* The walk ends it when the QP is gone, and the key with it. */
		if (wc->status != IB_WC_WR_FLUSH_ERR)
			ibtrs_clt_path_fail(conn->path, -ECONNRESET, "a read key can not be invalidated");
		return;
	}
	ibtrs_clt_conn_seen(conn);
	ibtrs_conn_credit(&conn->c, 1);
	if (req_take(req, IBTRS_CLT_REQ_INVAL))
		req_finish(req, req->err);
}

/*
 * Takes the read key back before the pages go back. The slot is not free before this has completed, and completions come in order: nothing of
 * this request is in the send queue any more then, for a retransmission to repeat. soft-RoCE repeats REG_MR too, and with the key in use it would fail.
 */
static void req_invalidate(struct ibtrs_clt_req *req, int err)
{
	struct ibtrs_clt_conn *conn = req->conn;
	struct ib_send_wr wr = {
		.wr_cqe			= &req->inv_cqe,
		.opcode			= IB_WR_LOCAL_INV,
		.ex.invalidate_rkey	= conn->path->mrs.slot[req->slot]->rkey,
	};

	req->inv_cqe.done = req_inval_done;
	req->err = err;
	req_give(req, IBTRS_CLT_REQ_INVAL);
	err = ibtrs_conn_send_reserved(&conn->c, &wr, &wr, 1, true);
	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "a read key can not be invalidated");
}

/* A BUSY request and its answer. @inv: the server has taken the read key back. */
static void req_answered(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn, int err, bool inv, u32 byte_len)
{
	struct ibtrs_clt_path *path = conn->path;

	/* L17: our own server sends the data with the answer, unless it must bring a new key. */
	if (unlikely((req->bounced || req->mr) && !err && path->limits.fence && !path->new_rkey && byte_len != req->io->len))
		err = -EIO;
	if (req->mr) {
		if (!inv) {
			req_invalidate(req, err);
			return;
		}
		ibtrs_conn_credit(&conn->c, 1);
	}
	req_finish(req, err);
}

void ibtrs_clt_req_posted(struct ibtrs_clt_req *req, struct ibtrs_clt_conn *conn)
{
	if (likely(atomic_cmpxchg(&req->state, IBTRS_CLT_REQ_POSTING, IBTRS_CLT_REQ_POSTED) == IBTRS_CLT_REQ_POSTING))
		return;
	/* A cmpxchg that failed orders nothing: with the one in ibtrs_clt_req_answer(), `early` is read after its state. */
	smp_rmb();
	req_give(req, IBTRS_CLT_REQ_BUSY);
	req_answered(req, conn, req->early.err, req->early.inv, req->early.byte_len);
}

const char *ibtrs_clt_req_answer(struct ibtrs_clt_conn *conn, u32 slot, int err, bool inv, u32 byte_len)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_clt_slots *s = &path->clt->slots;
	struct ibtrs_clt_req *req;

	if (unlikely(slot >= s->depth))
		return "answer for a slot that does not exist";
	req = &s->reqs[slot];
	if (unlikely(READ_ONCE(req->conn) != conn))
		return "answer for a slot that is not in flight on its connection";
	inv = inv && conn->inv_rkey == path->mrs.slot[slot]->rkey;
	conn->inv_rkey = 0;
	if (unlikely(!req_take(req, IBTRS_CLT_REQ_POSTED))) {
		/* Who posts it is still at it: he takes the answer with him. A server that guesses gets no further than that. */
		if (atomic_read_acquire(&req->state) == IBTRS_CLT_REQ_POSTING) {
			req->early.err = err;
			req->early.inv = inv;
			req->early.byte_len = byte_len;
			if (atomic_cmpxchg(&req->state, IBTRS_CLT_REQ_POSTING, IBTRS_CLT_REQ_ANSWERED) == IBTRS_CLT_REQ_POSTING)
				return NULL;
		}
		if (!req_take(req, IBTRS_CLT_REQ_POSTED))
			return "answer for a slot that is not in flight on its connection";
	}
	req_answered(req, conn, err, inv, byte_len);
	return NULL;
}

/*
 * ibtrs_clt_submit_plugged() - see <ibtrs/clt.h>
 */
int ibtrs_clt_submit_plugged(struct ibtrs_clt *clt, struct ibtrs_clt_io *io, struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_req *req;
	int err;

	if (unlikely(io->slot >= s->depth || io->usr_len > IBTRS_CLT_USR_HDR_MAX))
		return -EINVAL;
	if (unlikely(io->len > clt->max_io_size || io->nents > clt->max_segments))
		return -EMSGSIZE;
	req = &s->reqs[io->slot];
	if (unlikely(!req_take(req, IBTRS_CLT_REQ_IDLE)))
		return -EBUSY;
	req->io = io;
	err = req_send(clt, req, io->gen, plug);
	if (unlikely(err))
		req_give(req, IBTRS_CLT_REQ_IDLE);
	return err;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_submit_plugged);

int ibtrs_clt_submit(struct ibtrs_clt *clt, struct ibtrs_clt_io *io)
{
	return ibtrs_clt_submit_plugged(clt, io, NULL);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_submit);

/* A BUSY request that the server may know: to another path of the same generation, or to the parking place. */
static bool req_move_or_park(struct ibtrs_clt *clt, struct ibtrs_clt_req *req, u32 gen)
{
	req->io->poll = 0;
	if (!READ_ONCE(req->io->stay) && !req_send(clt, req, gen, NULL))
		return false;
	WRITE_ONCE(req->conn, NULL);
	atomic_inc(&clt->nr_parked);
	req_give(req, IBTRS_CLT_REQ_PARKED);
	return true;
}

static void req_note_loss(struct ibtrs_clt_io *io)
{
	if (!io->losses)
		WRITE_ONCE(io->lost_at, (u32)jiffies);
	if (io->losses < U8_MAX)
		WRITE_ONCE(io->losses, io->losses + 1);
}

void ibtrs_clt_req_walk(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_conn *conn;
	u32 nr_parked = 0, depth, i;
	bool parked;

	/* Pairs with ibtrs_clt_slots_init(), which another path may be in. */
	depth = smp_load_acquire(&s->depth);
	for (i = 0; i < depth; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		conn = READ_ONCE(req->conn);
		if (conn < path->conns || conn >= path->conns + path->nr_conns)
			continue;
		if (req_take(req, IBTRS_CLT_REQ_INVAL)) {
			req_finish(req, req->err);
			continue;
		}
		if (!req_take(req, IBTRS_CLT_REQ_POSTED))
			continue;
		req_leave(req);
		ibtrs_clt_post_unmap(req, path);
		if (i >= s->nr_user) {
			req_end(req, -ECONNRESET);
			continue;
		}
		ibtrs_clt_stats_failover(&path->stats);
		req_note_loss(req->io);
		if (req->io->dir == IBTRS_WRITE)
			ibtrs_clt_session_path_loose(path);
		parked = req_move_or_park(clt, req, req->gen);
		trace_ibtrs_clt_failover(path, i, parked);
		nr_parked += parked;
	}
	if (nr_parked)
		ibtrs_clt_session_parked(clt);
}

/*
 * Is @req, right now, in flight or parked for somebody whom @match knows? One that is BUSY is on its way from one to the other, or ends: who waits until
 * nothing is left has to look again.
 */
static bool req_matches(struct ibtrs_clt_req *req, ibtrs_clt_match_fn match, void *arg)
{
	struct ibtrs_clt_io *io;

	switch (atomic_read_acquire(&req->state)) {
	case IBTRS_CLT_REQ_BUSY:
		io = READ_ONCE(req->io);	/* none yet, if its slot is used for the first time */
		return io && match(io, arg);
	case IBTRS_CLT_REQ_POSTING:
	case IBTRS_CLT_REQ_ANSWERED:
	case IBTRS_CLT_REQ_POSTED:
	case IBTRS_CLT_REQ_INVAL:
	case IBTRS_CLT_REQ_PARKED:
		return match(req->io, arg);
	default:
		return false;
	}
}

unsigned int ibtrs_clt_replay(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	unsigned int left = 0;
	u32 i;

	for (i = 0; i < s->nr_user; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		if (atomic_read_acquire(&req->state) != IBTRS_CLT_REQ_PARKED || !match(req->io, arg))
			continue;
		if (!req_take(req, IBTRS_CLT_REQ_PARKED))
			continue;
		atomic_dec(&clt->nr_parked);
		left += req_move_or_park(clt, req, req->io->gen);
	}
	return left;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_replay);

enum ibtrs_clt_left ibtrs_clt_abort(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg, int err)
{
	enum ibtrs_clt_left left = IBTRS_LEFT_NOTHING;
	struct ibtrs_clt_slots *s = &clt->slots;
	u32 i;

	for (i = 0; i < s->nr_user; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		if (atomic_read_acquire(&req->state) != IBTRS_CLT_REQ_PARKED || !match(req->io, arg))
			continue;
		if (!req_take(req, IBTRS_CLT_REQ_PARKED))
			continue;
		atomic_dec(&clt->nr_parked);
		/* max() refuses an enum beside its constants, which are int, on 6.6 to 6.10. */
		left = max_t(enum ibtrs_clt_left, left,
			     req->io->dir == IBTRS_WRITE ? IBTRS_LEFT_WRITES : IBTRS_LEFT_READS);
		req_end(req, err);
	}
	return left == IBTRS_LEFT_WRITES && ibtrs_clt_settled(clt) ? IBTRS_LEFT_NOTHING : left;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_abort);

unsigned int ibtrs_clt_count(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	unsigned int n = 0;
	u32 i;

	for (i = 0; i < s->nr_user; i++)
		n += req_matches(&s->reqs[i], match, arg);
	return n;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_count);

void ibtrs_clt_break(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg, const char *why)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_conn *conn;
	u32 i;

	/* A path is freed a grace period after the last request left it. */
	rcu_read_lock();
	for (i = 0; i < s->nr_user; i++) {
		if (!req_matches(&s->reqs[i], match, arg))
			continue;
		conn = READ_ONCE(s->reqs[i].conn);
		if (conn)
			ibtrs_clt_path_fail(conn->path, -ECONNABORTED, why);
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(ibtrs_clt_break);
