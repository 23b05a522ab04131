// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Queues: the way of a request from its submission to its end.
 *
 * A queue has slots of its own and one connection per path, and is used by one thread at a time.
 * Its lock is nearly always free: only the context takes it too, to attach the connections of a
 * path that came up, and to take them away when the path is lost. Without it, a queue whose thread
 * sleeps would keep a lost path from being connected again.
 *
 * A slot is free after the server's answer, or when its connection is closed and the request was
 * moved (law L3). When a connection breaks, whoever notices takes it away and walks the slots: each
 * request that was on it is sent over another path, in the same slot with a new token, or parked
 * (laws L1, L7). The service queue ends them instead: a message that makes something happen must
 * not happen twice.
 *
 * An answer is believed only on the connection that the request is on, and only when all of the
 * request has been sent: before, its memory is still being read. The window of a read is open from
 * the post to the answer, on that connection alone.
 */
#include "ibtrs/logic/fence.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/user/clt.h"

/* The lock is held. */
static void q_wake(struct ibtrs_q *q)
{
	if (!q->woken)
		ibtrs_user_signal(q->wake);
	q->woken = true;
}

static void q_end(struct ibtrs_q *q, struct ibtrs_req *req, int err)
{
	struct ibtrs_io *io = req->io;

	req->io = NULL;
	req->conn = NULL;
	req->state = IBTRS_REQ_FREE;
	req->next_free = q->free;
	q->free = (u32)(req - q->reqs) + 1;
	io->err = err;
	io->next = NULL;
	*q->done_end = io;
	q->done_end = &io->next;
}

static void q_park(struct ibtrs_q *q, struct ibtrs_req *req)
{
	req->conn = NULL;
	req->state = IBTRS_REQ_PARKED;
	__atomic_store_n(&q->parked, q->parked + 1, __ATOMIC_RELAXED);
	if (q->parked > 1)
		return;
	__atomic_store_n(&q->clt->want, 1, __ATOMIC_RELEASE);
	ibtrs_ctx_wake(q->clt->ctx);
}

/* ---- posting ------------------------------------------------------------ */

/* One that is not trusted gets one request at a time, as long as there are others. */
static bool q_is_taken(const struct ibtrs_clt_conn *conn)
{
	return conn->inflight && READ_ONCE(conn->path->wary);
}

static u64 q_load(const void *priv, unsigned int i)
{
	const struct ibtrs_q *q = priv;
	const struct ibtrs_clt_conn *conn = q->conns[i];
	u64 avoid = q_is_taken(conn) ? IBTRS_MPATH_AVOID : 0;

	if (q->clt->policy == IBTRS_MPATH_RR)
		return avoid;
	if (q->clt->policy == IBTRS_MPATH_MIN_LATENCY)
		return READ_ONCE(conn->path->latency_us) | avoid;
	return conn->inflight | avoid;
}

/* By the session's policy; while a path of RDMA is up, streams are none. */
static struct ibtrs_clt_conn *q_pick(struct ibtrs_q *q)
{
	bool rr = q->clt->policy == IBTRS_MPATH_RR;
	u64 gone[2] = {};
	int i;

	for (i = 0; i < (int)q->clt->max_paths; i++)
		if (!q->conns[i] || (q->rdma && !q->conns[i]->path->place.rdma))
			ibtrs_mpath_mark(gone, (u32)i);
	i = ibtrs_mpath_least(rr ? q->cursor + 1 : q->idx, q->clt->max_paths, gone, q_load, q);
	if (i < 0)
		return NULL;
	q->cursor = (u32)i;
	return q->conns[i];
}

static void q_post(struct ibtrs_q *q, struct ibtrs_req *req, struct ibtrs_clt_conn *conn)
{
	const struct ibtrs_clt_path *path = conn->path;
	const struct ibtrs_limits *l = &path->limits;
	const struct ibtrs_chunk *chunk = &path->map[req->slot];
	struct ibtrs_io *io = req->io;
	bool read = io->dir == IBTRS_IO_READ;
	struct ibtrs_desc desc = { .len = io->len };
	u32 i = req->slot - q->first;
	struct ibtrs_frame f = {
		.op	= IBTRS_FRAME_WRITE_IMM,
		.imm	= ibtrs_imm_req(req->slot, io->len + io->hdr_len,
					ibtrs_imm_off_bits(l->queue_depth)),
		.key	= chunk->rkey,
		.addr	= chunk->addr + (read ? io->len : 0),
	};
	u8 hdr[IBTRS_IO_HDR_MAX];
	size_t hdr_len;

	ibtrs_fence_next(&req->token, &req->life, path->life, READ_ONCE(q->clt->life));
	if (read && io->len)
		conn->qp->verbs->expose(conn->qp, i, io->data, &desc);
	hdr_len = read ? ibtrs_msg_read_encode(hdr, l->fence, io->hdr_len, req->token, false,
					       io->len ? &desc : NULL) :
			 ibtrs_msg_write_encode(hdr, l->fence, io->hdr_len, req->token);
	f.len = (read ? 0 : io->len) + io->hdr_len + (u32)hdr_len;
	ibtrs_wr_init(&req->wr);
	req->wr.slot = i + 1;
	req->wr.slot_at = read ? io->len : 0;
	ibtrs_wr_frame(&req->wr, &f);
	if (!read)
		ibtrs_wr_ref(&req->wr, io->data, io->len);
	ibtrs_wr_ref(&req->wr, io->hdr, io->hdr_len);
	ibtrs_wr_copy(&req->wr, hdr, hdr_len);
	req->conn = conn;
	req->state = IBTRS_REQ_POSTED;
	conn->inflight++;
	__atomic_store_n(&q->posted, q->posted + 1, __ATOMIC_RELAXED);
	ibtrs_qp_post(conn->qp, &req->wr);
}

/*
 * Connections are attached after ups was counted, and taken away before: a thread that sees one
 * knows the ups that it belongs to.
 */
static bool q_may_send(const struct ibtrs_q *q)
{
	return !q->idx || READ_ONCE(q->clt->cleared) == READ_ONCE(q->clt->ups);
}

static void q_send(struct ibtrs_q *q, struct ibtrs_req *req)
{
	struct ibtrs_clt_conn *conn = q_may_send(q) ? q_pick(q) : NULL;

	if (conn)
		q_post(q, req, conn);
	else if (q->idx)
		q_park(q, req);
	else
		q_end(q, req, -ENOTCONN);
}

/* The lock is held. Closes @conn and walks what was on it. */
static u32 q_take_away(struct ibtrs_q *q, struct ibtrs_clt_conn *conn)
{
	bool loose = false;
	u32 i, n = 0;

	q->conns[conn->path->idx] = NULL;
	__atomic_store_n(&q->up, q->up - 1, __ATOMIC_RELAXED);
	q->rdma -= conn->path->place.rdma;
	conn->attached = false;
	conn->qp->verbs->close(conn->qp);
	for (i = 0; i < q->nr; i++) {
		struct ibtrs_req *req = &q->reqs[i];

		if (req->state != IBTRS_REQ_POSTED || req->conn != conn)
			continue;
		n++;
		loose |= ibtrs_fate_loose(req->io->dir == IBTRS_IO_WRITE, false);
		if (ibtrs_fate(!q->idx, false) == IBTRS_FATE_MOVE)
			q_send(q, req);
		else
			q_end(q, req, -ECONNRESET);
	}
	if (loose)
		__atomic_store_n(&conn->path->loose, true, __ATOMIC_RELAXED);
	if (n)
		q_wake(q);
	return n;
}

static void q_lose(struct ibtrs_q *q, struct ibtrs_clt_conn *conn, int err, const char *why)
{
	ibtrs_clt_path_lost(conn->path, err, why);
	q_take_away(q, conn);
}

/* Rings the doorbells. What was on a connection that breaks by that is posted on another one. */
static void q_flush(struct ibtrs_q *q)
{
	struct ibtrs_clt_conn *conn;
	u32 i;

	for (i = 0; i < q->clt->max_paths; i++) {
		conn = q->conns[i];
		if (!conn || !conn->qp->out || !conn->qp->verbs->flush(conn->qp))
			continue;
		q_lose(q, conn, conn->qp->err, conn->qp->why);
		i = U32_MAX;		/* from the first one again */
	}
}

/* ---- answers ------------------------------------------------------------ */

static void q_answer(struct ibtrs_q *q, struct ibtrs_req *req, int err, u32 byte_len)
{
	struct ibtrs_clt_conn *conn = req->conn;
	const struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_io *io = req->io;
	bool read = io->dir == IBTRS_IO_READ && io->len;

	conn->inflight--;
	if (read)
		conn->qp->verbs->conceal(conn->qp, req->slot - q->first,
					 err ? NULL : io->data, io->len);
	/* L17: our server sends the data with the answer, unless it must bring a new key. */
	if (read && !err && path->limits.fence && !path->limits.new_rkey && byte_len != io->len)
		err = -EIO;
	if (!path->limits.fence || !ibtrs_fence_is_behind(err)) {
		q_end(q, req, err);
		return;
	}
	/* Another host uses this session's uuid. The walk must not find the request. */
	req->conn = NULL;
	req->token = ibtrs_fence_catch_up(req->token, err);
	if (!(++req->behind % IBTRS_FENCE_BEHIND_MAX))
		q_lose(q, conn, -EPROTO, IBTRS_FENCE_BEHIND_WHY);
	q_send(q, req);
}

/* Return: NULL, or why the connection breaks. */
static const char *q_rx_rsp(struct ibtrs_q *q, struct ibtrs_clt_conn *conn,
			    const struct ibtrs_wc *wc)
{
	struct ibtrs_clt_path *path = conn->path;
	u32 slot = ibtrs_imm_rsp_slot(wc->imm);
	int err = ibtrs_imm_rsp_err(wc->imm);
	bool new_rkey = path->limits.new_rkey;
	struct ibtrs_req *req;
	const char *why;

	if (slot < q->first || slot - q->first >= q->nr)
		return "an answer for a slot that is not this queue's";
	req = &q->reqs[slot - q->first];
	if (req->state != IBTRS_REQ_POSTED || req->conn != conn)
		return "an answer for a slot that is not in flight on its connection";
	if (req->wr.posted)
		return "an answer came to a request that was not sent";
	if (err == -ESTALE && path->limits.fence)
		return "the server treats a current request as stale";
	if (new_rkey != (wc->op == IBTRS_FRAME_SEND_IMM))
		return new_rkey ? "an answer without a new key" : "an answer with a payload";
	if (new_rkey &&
	    ibtrs_msg_rkey_decode(wc->data, wc->len, slot, &path->map[slot].rkey, &why))
		return why;
	q_answer(q, req, err, wc->op == IBTRS_FRAME_WRITE_IMM ? wc->len : 0);
	return NULL;
}

static const char *q_rx(struct ibtrs_q *q, struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc)
{
	__atomic_store_n(&conn->path->seen, true, __ATOMIC_RELAXED);
	if (wc->op == IBTRS_FRAME_WHERE && !conn->cid)
		return ibtrs_auto_told(conn->path, wc);
	if (wc->op != IBTRS_FRAME_WRITE_IMM && wc->op != IBTRS_FRAME_SEND_IMM)
		return "a message that means nothing here";
	switch (ibtrs_imm_type(wc->imm)) {
	case IBTRS_IMM_IO_RSP:
		return q_rx_rsp(q, conn, wc);
	case IBTRS_IMM_IO_RSP_INV:
		return "an invalidation that was not asked for";
	case IBTRS_IMM_HB_MSG:
		if (!conn->cid)
			ibtrs_clt_hb_msg(conn);
		break;
	case IBTRS_IMM_HB_ACK:
		if (!conn->cid)
			ibtrs_clt_hb_ack(conn);
		break;
	case IBTRS_IMM_EVENT:
		if (!conn->cid)
			ibtrs_clt_event(conn, wc->imm);
		break;
	}
	return NULL;
}

static void q_receive(struct ibtrs_q *q)
{
	struct ibtrs_clt_conn *conn;
	struct ibtrs_wc wc;
	const char *why;
	u32 i;
	int n;

	for (i = 0; i < q->clt->max_paths; i++) {
		conn = q->conns[i];
		if (!conn)
			continue;
		conn->qp->verbs->turn(conn->qp, q->idx);
		while ((n = conn->qp->verbs->poll(conn->qp, &wc)) > 0) {
			why = q_rx(q, conn, &wc);
			if (why)
				n = ibtrs_qp_break(conn->qp, -EPROTO, why);
			if (!conn->attached)
				break;
		}
		if (n < 0 && conn->attached)
			q_lose(q, conn, conn->qp->err, conn->qp->why);
	}
}

/* ---- the owner's side --------------------------------------------------- */

static bool q_valid(const struct ibtrs_clt *clt, const struct ibtrs_io *io)
{
	size_t hdr = (size_t)io->hdr_len + IBTRS_IO_HDR_MAX;

	return io->dir <= IBTRS_IO_WRITE && io->hdr && io->hdr_len >= 4 &&
	       hdr <= clt->max_hdr_size && io->len <= clt->max_io_size && (!io->len || io->data);
}

int ibtrs_q_submit(struct ibtrs_q *q, struct ibtrs_io *const *io, unsigned int nr)
{
	unsigned int n;
	int err = 0;

	pthread_mutex_lock(&q->lock);
	for (n = 0; n < nr && q->free; n++) {
		struct ibtrs_req *req = &q->reqs[q->free - 1];

		if (!q_valid(q->clt, io[n])) {
			err = -EINVAL;
			break;
		}
		q->free = req->next_free;
		req->io = io[n];
		req->behind = 0;
		q_send(q, req);
	}
	q_flush(q);
	pthread_mutex_unlock(&q->lock);
	return n ? (int)n : err;
}

static struct ibtrs_io *q_take_done(struct ibtrs_q *q)
{
	struct ibtrs_io *io = q->done;

	if (!io)
		return NULL;
	q->done = io->next;
	if (!q->done)
		q->done_end = &q->done;
	return io;
}

int ibtrs_q_poll(struct ibtrs_q *q, struct ibtrs_io **done, unsigned int max, int timeout_ms)
{
	u64 end = ibtrs_user_end(timeout_ms);
	unsigned int n = 0;
	int err;

	for (;;) {
		pthread_mutex_lock(&q->lock);
		q_receive(q);
		q_flush(q);
		while (n < max && (done[n] = q_take_done(q)))
			n++;
		if (q->woken && !q->done) {
			ibtrs_user_settle(q->wake);
			q->woken = false;
		}
		pthread_mutex_unlock(&q->lock);
		if (n || !timeout_ms || !max)
			return (int)n;
		err = ibtrs_user_sleep(q->ep, end, -1);
		if (err <= 0)
			return err;
	}
}

int ibtrs_q_fd(const struct ibtrs_q *q)
{
	return q->ep;
}

int ibtrs_q_abort_if(struct ibtrs_q *q, int err,
		     bool (*pick)(const struct ibtrs_io *io, void *priv), void *priv)
{
	u32 i;
	int n = 0;

	pthread_mutex_lock(&q->lock);
	for (i = 0; i < q->nr; i++) {
		if (q->reqs[i].state != IBTRS_REQ_PARKED ||
		    (pick && !pick(q->reqs[i].io, priv)))
			continue;
		q_end(q, &q->reqs[i], err < 0 ? err : -ECANCELED);
		n++;
	}
	__atomic_store_n(&q->parked, q->parked - n, __ATOMIC_RELAXED);
	if (n)
		q_wake(q);
	pthread_mutex_unlock(&q->lock);
	return n;
}

int ibtrs_q_abort(struct ibtrs_q *q, int err)
{
	return ibtrs_q_abort_if(q, err, NULL, NULL);
}

/* ---- the context's side ------------------------------------------------- */

int ibtrs_q_attach(struct ibtrs_q *q, struct ibtrs_clt_conn *conn)
{
	int err;

	pthread_mutex_lock(&q->lock);
	err = q->idx ? conn->qp->verbs->watch(conn->qp, q->ep, conn) : 0;
	if (!err) {
		q->conns[conn->path->idx] = conn;
		__atomic_store_n(&q->up, q->up + 1, __ATOMIC_RELAXED);
		q->rdma += conn->path->place.rdma;
		conn->attached = true;
		/* Its owner may wait for a path, or for slots. */
		q_wake(q);
	}
	pthread_mutex_unlock(&q->lock);
	return err;
}

u32 ibtrs_q_detach(struct ibtrs_q *q, struct ibtrs_clt_conn *conn)
{
	u32 n = 0;

	pthread_mutex_lock(&q->lock);
	if (conn->attached)
		n = q_take_away(q, conn);
	q_flush(q);
	pthread_mutex_unlock(&q->lock);
	return n;
}

void ibtrs_q_check(struct ibtrs_q *q, struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt *clt = q->clt;

	pthread_mutex_lock(&q->lock);
	/* Only who polls sees that something was sent, and the queue's owner need not. */
	q_receive(q);
	if (conn->attached && ibtrs_qp_check(conn->qp, clt->opts.hb_misses, clt->max_io_size))
		q_lose(q, conn, conn->qp->err, conn->qp->why);
	q_flush(q);
	if (q->done)
		q_wake(q);
	pthread_mutex_unlock(&q->lock);
}

void ibtrs_q_resume(struct ibtrs_q *q)
{
	u32 i, nr;

	pthread_mutex_lock(&q->lock);
	nr = q_may_send(q) && q->up ? q->parked : 0;
	for (i = 0; i < q->nr && nr; i++) {
		struct ibtrs_req *req = &q->reqs[i];

		if (req->state != IBTRS_REQ_PARKED)
			continue;
		nr--;
		__atomic_store_n(&q->parked, q->parked - 1, __ATOMIC_RELAXED);
		q_send(q, req);
	}
	q_flush(q);
	pthread_mutex_unlock(&q->lock);
}

struct ibtrs_io *ibtrs_q_serve(struct ibtrs_q *q)
{
	struct ibtrs_io *done;

	pthread_mutex_lock(&q->lock);
	q_receive(q);
	q_flush(q);
	done = q->done;
	q->done = NULL;
	q->done_end = &q->done;
	pthread_mutex_unlock(&q->lock);
	return done;
}
