// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: submit, fail over, park.
 *
 * Called by: the user (submit, replay, abort, count, break), the drain work of a path (walk).
 * Submitting and completing a request take no lock: the record's `state` says who owns it (see
 * req.h), and RCU keeps the connection while a request is being posted on it.
 *
 * post.c turns a request into work requests, answer.c ends a request.
 *
 * Failure: a request of which nothing was posted is given back to the caller. If a post fails after
 * a part was posted, the path fails, and its drain moves the request to another path or parks it. A
 * request that was ever posted is never given back (law L1).
 */
#include <linux/slab.h>
#include "ibtrs/client/answer.h"
#include "ibtrs/client/mr.h"
#include "ibtrs/client/session.h"
#include "ibtrs/client/trace.h"
#include "ibtrs/logic/fence.h"

/*
 * Return: 0: post the request. 1: do not post it, but report it as posted. Else the error that
 * posting it must return.
 */
static int req_fault(struct ibtrs_clt_path *path, struct ibtrs_clt_conn *conn)
{
	struct ibtrs_fault f =
		ibtrs_fault_spin(IBTRS_FAULT_CLT_SUBMIT, path->clt->name, path->name);

	if (f.action == IBTRS_FAULT_STUCK)
		WRITE_ONCE(conn->c.stuck, true);
	return f.action == IBTRS_FAULT_DROP ? 1 : f.err;
}

/* The connection (cid) for a request; the same one on every path. */
static u32 req_cid(const struct ibtrs_clt_req *req, const struct ibtrs_clt *clt)
{
	u32 cpu = ibtrs_clt_cpu(clt, req->cpu), poll = req->io->poll;

	if (unlikely(req->slot >= clt->slots.nr_user))
		return 0;
	if (unlikely(poll && poll <= clt->opts.nr_poll_queues))
		return clt->nr_irq_conns + poll;
	return 1 + (cpu < clt->nr_irq_conns ? cpu : cpu % clt->nr_irq_conns);
}

/*
 * Post a BUSY request on connection @cid of @path, which RCU keeps. Return: 0: the request is
 * POSTED, or POSTING until @plug is pulled, or the path was told to fail. Else nothing was posted,
 * and the caller still owns the request.
 */
static int req_post(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path, u32 cid, u32 gen,
		    struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_conn *conn = &path->conns[cid];
	struct ibtrs_clt_io *io = req->io;
	int err;

	err = ibtrs_clt_mr_map_pages(req, path);
	if (unlikely(err))
		return err;
	req->gen = gen;
	ibtrs_fence_next(&req->token, &req->life, path->life, READ_ONCE(path->clt->life));
	WRITE_ONCE(req->conn, conn);
	atomic_inc(&conn->inflight);
	ibtrs_clt_stats_posted(&path->stats, io->dir, io->len + io->usr_len);
	trace_ibtrs_clt_req(conn, io);
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_POSTING);

	err = req_fault(path, conn) ?: ibtrs_clt_post(req, path, conn, plug);
	if (likely(!err && plug))
		return 0;
	if (unlikely(err < 0 && err != -EAGAIN))
		/* A part may have been posted: the drain decides. */
		ibtrs_clt_path_fail(path, err, "a request cannot be posted");
	if (likely(err != -EAGAIN)) {
		ibtrs_clt_answer_posted(req, conn);
		return 0;
	}
	if (unlikely(!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_POSTING))) {
		ibtrs_clt_path_fail(path, -EPROTO, "an answer came to a request that was not sent");
		ibtrs_clt_req_give(req, IBTRS_CLT_REQ_BUSY);
	}
	ibtrs_clt_req_leave(req);
	ibtrs_clt_mr_unmap_pages(req, path);
	WRITE_ONCE(req->conn, NULL);
	return err;
}

/*
 * Try the paths that are up. @gen: only in this session generation (0 = any). Return: 0: posted;
 * -ENOTCONN, -EAGAIN, -EMSGSIZE.
 */
static int req_send(struct ibtrs_clt *clt, struct ibtrs_clt_req *req, u32 gen,
		    struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_pathset *set;
	struct ibtrs_clt_path *path;
	int err = -ENOTCONN;
	u64 tried[2] = {};
	u32 cid;

	req->cpu = raw_smp_processor_id();
	cid = req_cid(req, clt);
	guard(rcu)();
	set = rcu_dereference(clt->up);
	if (likely(!gen || set->gen == gen)) {
		while ((path = ibtrs_clt_pathset_pick(clt, set, cid, tried))) {
			err = req_post(req, path, cid, set->gen, plug);
			if (likely(!err))
				break;
		}
	}
	return err;
}

int ibtrs_clt_submit(struct ibtrs_clt *clt, struct ibtrs_clt_io *io, struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_req *req;
	int err;

	if (unlikely(io->slot >= s->depth || io->usr_len > IBTRS_CLT_USR_HDR_MAX))
		return -EINVAL;
	if (unlikely(io->len > clt->max_io_size || io->nents > clt->max_segments))
		return -EMSGSIZE;
	req = &s->reqs[io->slot];
	if (unlikely(!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_IDLE)))
		return -EBUSY;
	req->io = io;
	err = req_send(clt, req, io->gen, plug);
	if (unlikely(err))
		ibtrs_clt_req_give(req, IBTRS_CLT_REQ_IDLE);
	return err;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_submit);

/*
 * A BUSY request that the server may know: post it on another path of the generation @gen, or park
 * it. Return: true if it was parked.
 */
static bool req_move_or_park(struct ibtrs_clt *clt, struct ibtrs_clt_req *req, u32 gen)
{
	req->io->poll = 0;
	if (ibtrs_fate(false, READ_ONCE(req->io->stay)) == IBTRS_FATE_MOVE &&
	    !req_send(clt, req, gen, NULL))
		return false;
	WRITE_ONCE(req->conn, NULL);
	atomic_inc(&clt->nr_parked);
	ibtrs_clt_req_give(req, IBTRS_CLT_REQ_PARKED);
	return true;
}

void ibtrs_clt_req_walk(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_conn *conn;
	u32 nr_parked = 0, depth, i;
	bool answered, parked;

	/* Pairs with ibtrs_clt_slots_init(), which may run for another path at the same time. */
	depth = smp_load_acquire(&s->depth);
	for (i = 0; i < depth; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		conn = READ_ONCE(req->conn);
		if (conn < path->conns || conn >= path->conns + path->nr_conns)
			continue;
		/*
		 * As every completion does it, in a read section: a waiter for a grace period
		 * after no request is posted any more has waited for done(), too.
		 */
		scoped_guard(rcu) {
			answered = ibtrs_clt_req_take(req, IBTRS_CLT_REQ_ANSWERED);
			if (answered)
				ibtrs_clt_answer_finish(req, req->err);
		}
		if (answered || !ibtrs_clt_req_take(req, IBTRS_CLT_REQ_POSTED))
			continue;
		ibtrs_clt_req_leave(req);
		ibtrs_clt_mr_unmap_pages(req, path);
		ibtrs_clt_req_note_loss(req->io);
		if (ibtrs_fate_loose(req->io->dir == IBTRS_WRITE, req->io->message))
			ibtrs_clt_link_path_loose(path);
		if (ibtrs_fate(i >= s->nr_user, false) == IBTRS_FATE_END) {
			ibtrs_clt_req_end(req, -ECONNRESET);
			continue;
		}
		ibtrs_clt_stats_failover(&path->stats);
		parked = req_move_or_park(clt, req, req->gen);
		trace_ibtrs_clt_failover(path, i, parked);
		nr_parked += parked;
	}
	if (nr_parked)
		ibtrs_clt_link_parked(clt);
}

/*
 * Sends again the requests in ibtrs' own slots that were not executed for their tokens; they are
 * parked for no other reason. The user replays requests in its own slots when it hears of them.
 */
void ibtrs_clt_req_again_work(struct work_struct *work)
{
	struct ibtrs_clt *clt = container_of(work, struct ibtrs_clt, again);
	struct ibtrs_clt_slots *s = &clt->slots;
	u32 i;

	guard(noio)();
	for (i = s->nr_user; i < s->depth; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		if (!ibtrs_clt_req_take(req, IBTRS_CLT_REQ_PARKED))
			continue;
		atomic_dec(&clt->nr_parked);
		if (req_send(clt, req, req->io->gen, NULL)) {
			ibtrs_clt_req_note_loss(req->io);
			ibtrs_clt_req_end(req, -ECONNRESET);
		}
	}
	ibtrs_clt_link_parked(clt);
}

/*
 * Is @req in flight, or parked and @parked, at this moment, and does @match accept it? A BUSY
 * request is changing between the two, or ends: a caller that waits until no request is left has to
 * look again.
 */
static bool req_matches(struct ibtrs_clt_req *req, bool parked, ibtrs_clt_match_fn match, void *arg)
{
	enum ibtrs_clt_req_state state = atomic_read_acquire(&req->state);
	struct ibtrs_clt_io *io;

	if (state == IBTRS_CLT_REQ_IDLE || (state == IBTRS_CLT_REQ_PARKED && !parked))
		return false;
	/* NULL if the slot is BUSY for the first time */
	io = READ_ONCE(req->io);
	return io && match(io, arg);
}

/*
 * How many slots are looked at for parked requests: none, if no request of the session is parked.
 * Else each of a thousand devices would look at all slots for nothing. A request is counted before
 * it is parked.
 */
static u32 req_parked_nr(struct ibtrs_clt *clt)
{
	return atomic_read_acquire(&clt->nr_parked) ? clt->slots.nr_user : 0;
}

/* Take the request if it is parked and @match accepts it. */
static bool req_unpark(struct ibtrs_clt *clt, struct ibtrs_clt_req *req, ibtrs_clt_match_fn match,
		       void *arg)
{
	if (atomic_read_acquire(&req->state) != IBTRS_CLT_REQ_PARKED || !match(req->io, arg) ||
	    !ibtrs_clt_req_take(req, IBTRS_CLT_REQ_PARKED))
		return false;
	atomic_dec(&clt->nr_parked);
	return true;
}

unsigned int ibtrs_clt_replay(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg)
{
	u32 nr = req_parked_nr(clt), i;
	unsigned int parked = 0;

	for (i = 0; i < nr; i++) {
		struct ibtrs_clt_req *req = &clt->slots.reqs[i];

		if (req_unpark(clt, req, match, arg))
			parked += req_move_or_park(clt, req, req->io->gen);
	}
	return parked;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_replay);

enum ibtrs_clt_at_large ibtrs_clt_abort(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg,
					int err)
{
	enum ibtrs_clt_at_large at_large = IBTRS_AT_LARGE_NOTHING;
	u32 nr = req_parked_nr(clt), i;

	for (i = 0; i < nr; i++) {
		struct ibtrs_clt_req *req = &clt->slots.reqs[i];

		if (!req_unpark(clt, req, match, arg))
			continue;
		/* An enum's constants are int: max() warns until 6.6, fails until 6.10. */
		at_large = max_t(enum ibtrs_clt_at_large, at_large,
				 req->io->dir == IBTRS_WRITE ? IBTRS_AT_LARGE_WRITES :
							       IBTRS_AT_LARGE_READS);
		ibtrs_clt_req_end(req, err);
	}
	if (at_large == IBTRS_AT_LARGE_WRITES && ibtrs_clt_settled(clt))
		return IBTRS_AT_LARGE_NOTHING;
	return at_large;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_abort);

static bool req_any(struct ibtrs_clt *clt, bool parked, ibtrs_clt_match_fn match, void *arg)
{
	u32 i;

	for (i = 0; i < clt->slots.nr_user; i++)
		if (req_matches(&clt->slots.reqs[i], parked, match, arg))
			return true;
	return false;
}

bool ibtrs_clt_any(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg)
{
	return req_any(clt, true, match, arg);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_any);

bool ibtrs_clt_posted(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg)
{
	return req_any(clt, false, match, arg);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_posted);

void ibtrs_clt_break(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg, const char *why)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_conn *conn;
	u32 i;

	/* A path is freed a grace period after the last request left it. */
	guard(rcu)();
	for (i = 0; i < s->nr_user; i++) {
		if (!req_matches(&s->reqs[i], true, match, arg))
			continue;
		conn = READ_ONCE(s->reqs[i].conn);
		if (conn)
			ibtrs_clt_path_fail(conn->path, -ECONNABORTED, why);
	}
}
EXPORT_SYMBOL_GPL(ibtrs_clt_break);
