// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Ops: from the arrival of a request to its answer.
 *
 * The headers in the chunk are copied once, decoded there, and never read in the chunk again
 * (E-18). The slot's fence (ibtrs/logic/fence.c) says whether the request runs now, waits for an
 * earlier one of its slot, or is answered how far it is behind. A request that runs is put on the
 * list that ibtrs_srv_poll() takes from. Its op is free for another request when the answer has
 * been handed to the socket as a whole: until then the data of a read is sent from the chunk.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/user/srv.h"

static bool path_is_up(const struct ibtrs_srv_path *path)
{
	return path->state == IBTRS_SRV_PATH_UP;
}

static struct ibtrs_srv_slot *op_slot(const struct ibtrs_srv_op *x)
{
	return &x->path->session->slots[x->slot];
}

static bool op_is_busy(const struct ibtrs_srv_op *x)
{
	return x->state != IBTRS_OP_FREE && (x->state != IBTRS_OP_ANSWERED || x->wr.posted);
}

static void op_make_ready(struct ibtrs_srv *srv, struct ibtrs_srv_op *x)
{
	x->state = IBTRS_OP_READY;
	x->next = NULL;
	*srv->ready_end = x;
	srv->ready_end = &x->next;
}

/* ---- answers ------------------------------------------------------------ */

static void op_frame(struct ibtrs_srv_op *x, u16 op, u32 imm, u32 key, u64 addr, u32 len)
{
	const struct ibtrs_frame f = {
		.op = op, .imm = imm, .key = key, .addr = addr, .len = len,
	};

	ibtrs_wr_frame(&x->wr, &f);
	if (len)
		ibtrs_wr_ref(&x->wr, x->op.data, len);
}

/* The chain of protocol 5, without NEW_RKEY. */
static void op_answer(struct ibtrs_srv_op *x, int err)
{
	u32 len = !err && x->op.dir == IBTRS_IO_READ ? x->op.len : 0;
	struct ibtrs_srv_conn *conn = x->conn;

	if (!path_is_up(x->path)) {
		x->state = IBTRS_OP_FREE;
		return;
	}
	x->state = IBTRS_OP_ANSWERED;
	ibtrs_wr_init(&x->wr);
	if (x->need_inval) {
		if (len)
			op_frame(x, IBTRS_FRAME_WRITE, 0, x->desc.rkey, x->desc.addr, len);
		op_frame(x, IBTRS_FRAME_SEND_INV, 0, x->desc.rkey, 0, 0);
		op_frame(x, IBTRS_FRAME_WRITE_IMM,
			 ibtrs_imm_rsp(IBTRS_IMM_IO_RSP_INV, x->slot, err), 0, 0, 0);
	} else {
		op_frame(x, IBTRS_FRAME_WRITE_IMM, ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, x->slot, err),
			 len ? x->desc.rkey : 0, len ? x->desc.addr : 0, len);
	}
	ibtrs_qp_post(conn->qp, &x->wr);
	if (conn->qp->verbs->flush(conn->qp))
		ibtrs_srv_path_close(conn->srv, x->path);
}

/* @x leaves its slot: the request that was parked there runs, or is answered. */
static void op_leave(struct ibtrs_srv *srv, struct ibtrs_srv_op *x)
{
	struct ibtrs_srv_slot *s = op_slot(x);
	struct ibtrs_srv_op *next = s->parked;
	bool fence = next && next->path->limits.fence;

	if (!x->admitted)
		return;
	x->admitted = false;
	s->parked = NULL;
	if (ibtrs_fence_end(&s->fence, fence, next, next ? next->token : 0,
			    next && path_is_up(next->path))) {
		next->admitted = true;
		op_make_ready(srv, next);
		ibtrs_user_signal(srv->wake);
	} else if (next) {
		op_answer(next, ibtrs_fence_behind(&s->fence, fence, next->token));
	}
}

/* Neither its slot nor the next life of its path waits for @x. */
static void op_let_go(struct ibtrs_srv *srv, struct ibtrs_srv_op *x)
{
	if (!x->awaited)
		return;
	x->awaited = false;
	x->path->awaited--;
	op_leave(srv, x);
}

void ibtrs_op_may_forget(struct ibtrs_op *op)
{
	struct ibtrs_srv_op *x = (struct ibtrs_srv_op *)op;
	struct ibtrs_srv *srv = x->path->srv;

	pthread_mutex_lock(&srv->lock);
	x->forgettable = true;
	if (x->path->state == IBTRS_SRV_PATH_CLOSED)
		op_let_go(srv, x);
	pthread_mutex_unlock(&srv->lock);
}

bool ibtrs_op_reply(struct ibtrs_op *op, int err)
{
	struct ibtrs_srv_op *x = (struct ibtrs_srv_op *)op;
	struct ibtrs_srv *srv = x->path->srv;
	bool up;

	pthread_mutex_lock(&srv->lock);
	x->path->given--;
	op_let_go(srv, x);
	op_answer(x, err > 0 ? -EIO : err);
	up = path_is_up(x->path);
	if (x->path->state == IBTRS_SRV_PATH_CLOSED)
		srv->reap = true;
	ibtrs_srv_reap(srv);
	pthread_mutex_unlock(&srv->lock);
	return up;
}

static void ready_remove(struct ibtrs_srv *srv, const struct ibtrs_srv_op *x)
{
	struct ibtrs_srv_op **at = &srv->ready;

	while (*at && *at != x)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = x->next;
	if (!*at)
		srv->ready_end = at;
}

void ibtrs_srv_ops_end(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv *srv = path->srv;
	struct ibtrs_srv_op *x;
	u32 slot;

	for (slot = 0; path->ops && slot < path->limits.queue_depth; slot++) {
		x = &path->ops[slot];
		if (x->state == IBTRS_OP_READY)
			ready_remove(srv, x);
		if (x->state == IBTRS_OP_PARKED && op_slot(x)->parked == x)
			op_slot(x)->parked = NULL;
		if (x->state == IBTRS_OP_GIVEN) {
			if (x->forgettable)
				op_let_go(srv, x);
			continue;
		}
		x->state = IBTRS_OP_FREE;
		op_leave(srv, x);
	}
}

/* ---- requests ----------------------------------------------------------- */

static void op_fill(struct ibtrs_srv_op *x, struct ibtrs_srv_conn *conn,
		    const struct ibtrs_io_hdr *h)
{
	x->conn = conn;
	x->token = h->token;
	x->need_inval = h->need_inval;
	x->desc = h->desc;
	x->op.dir = h->read ? IBTRS_IO_READ : IBTRS_IO_WRITE;
	x->op.service = !conn->cid;
	x->op.hdr_len = h->usr_len;
	x->op.len = h->data_len;
	x->op.user = NULL;
	memcpy((void *)x->op.hdr, (u8 *)x->op.data + h->data_len, h->usr_len);
}

static void op_begin(struct ibtrs_srv_op *x, struct ibtrs_srv_conn *conn,
		     const struct ibtrs_io_hdr *h)
{
	struct ibtrs_srv_path *path = x->path;
	struct ibtrs_srv_slot *s = op_slot(x);
	struct ibtrs_srv_op *old = s->parked;
	bool fence = path->limits.fence;

	op_fill(x, conn, h);
	switch (ibtrs_fence_arrive(&s->fence, fence, h->token)) {
	case IBTRS_FENCE_RUN:
		x->admitted = true;
		op_make_ready(conn->srv, x);
		break;
	case IBTRS_FENCE_PARK:
		x->state = IBTRS_OP_PARKED;
		s->parked = x;
		if (old)
			op_answer(old, ibtrs_fence_behind(&s->fence, old->path->limits.fence,
							  old->token));
		break;
	case IBTRS_FENCE_STALE:
		op_answer(x, ibtrs_fence_behind(&s->fence, fence, h->token));
		break;
	case IBTRS_FENCE_FAR:
		ibtrs_srv_path_close(conn->srv, path);
		break;
	}
}

/* Each return of false closes the path (protocol 4.4). */
static bool rx_request(struct ibtrs_srv_conn *conn, u32 imm)
{
	struct ibtrs_srv_path *path = conn->path;
	const struct ibtrs_limits *l = &path->limits;
	unsigned int off_bits = ibtrs_imm_off_bits(l->queue_depth);
	u32 slot = ibtrs_imm_req_slot(imm, off_bits), off = ibtrs_imm_req_off(imm, off_bits), len;
	u8 raw[IBTRS_IO_HDR_MAX];
	struct ibtrs_srv_op *x;
	struct ibtrs_io_hdr h;
	const char *why;
	int err;

	if (slot >= l->queue_depth || off >= l->chunk_size)
		return false;
	x = &path->ops[slot];
	if (op_is_busy(x))
		return false;
	len = l->chunk_size - off < sizeof(raw) ? l->chunk_size - off : sizeof(raw);
	memcpy(raw, (u8 *)x->op.data + off, len);
	err = ibtrs_msg_io_decode(raw, len, off, l, &h, &why);
	if (err == -EPROTO)
		return false;
	if (err) {
		op_fill(x, conn, &h);
		op_answer(x, err);
		return true;
	}
	op_begin(x, conn, &h);
	return true;
}

void ibtrs_srv_hb_send(struct ibtrs_srv_conn *conn)
{
	ibtrs_qp_post_imm(conn->qp, &conn->hb_msg, ibtrs_imm_hb(IBTRS_IMM_HB_MSG));
	/* What breaks here is found by the next poll. */
	conn->qp->verbs->flush(conn->qp);
}

static void op_hb_ack(struct ibtrs_srv_conn *conn)
{
	ibtrs_qp_post_imm(conn->qp, &conn->hb_ack, ibtrs_imm_hb(IBTRS_IMM_HB_ACK));
	conn->qp->verbs->flush(conn->qp);
}

/* ---- events ------------------------------------------------------------- */

/* Return: 0, or why this path does not take it. */
static int event_post(struct ibtrs_srv *srv, struct ibtrs_srv_path *path, u32 imm)
{
	struct ibtrs_qp *qp = path->conns[0]->qp;
	u32 i;

	for (i = 0; i < IBTRS_SRV_EVENTS && path->events[i].posted; i++)
		;
	if (i == IBTRS_SRV_EVENTS)
		return -EAGAIN;
	ibtrs_qp_post_imm(qp, &path->events[i], imm);
	if (!qp->verbs->flush(qp))
		return 0;
	ibtrs_srv_path_close(srv, path);
	return -ENOTCONN;
}

static int event_send(struct ibtrs_srv *srv, u64 session, u32 imm)
{
	struct ibtrs_srv_session *s = ibtrs_srv_session_of(srv, session);
	struct ibtrs_srv_path *path;
	int err = -ENOTCONN, now;

	if (!s)
		return -ENOENT;
	if (!(s->ext & IBTRS_EXT_EVENTS))
		return -EOPNOTSUPP;
	for (path = s->paths; path && err; path = path->next) {
		now = path_is_up(path) ? event_post(srv, path, imm) : -ENOTCONN;
		if (!now || now == -EAGAIN)
			err = now;
	}
	return err;
}

int ibtrs_srv_event(struct ibtrs_srv *srv, uint64_t session, uint32_t kind, uint32_t id)
{
	int err;

	if (kind > IBTRS_EVENT_KIND_MAX || id > IBTRS_EVENT_ID_MAX)
		return -EINVAL;
	pthread_mutex_lock(&srv->lock);
	err = event_send(srv, session, ibtrs_imm_event(kind, id));
	ibtrs_srv_reap(srv);
	pthread_mutex_unlock(&srv->lock);
	return err;
}

/* ---- trials ------------------------------------------------------------- */

/*
 * The data of a trial are sent back as they are: no other client has written to the chunk. It takes
 * no slot, so it waits for nothing. Each return of false closes the path (protocol 8.4).
 */
static bool rx_trial(struct ibtrs_srv_conn *conn, u32 imm)
{
	struct ibtrs_srv_path *path = conn->path;
	const struct ibtrs_limits *l = &path->limits;
	unsigned int off_bits = ibtrs_imm_off_bits(l->queue_depth);
	u32 slot = ibtrs_imm_req_slot(imm, off_bits), off = ibtrs_imm_req_off(imm, off_bits);
	struct ibtrs_frame f = {
		.op = IBTRS_FRAME_WRITE_IMM, .imm = ibtrs_imm_trial(0, 0, off_bits),
	};
	struct ibtrs_wire_trial w;
	struct ibtrs_desc desc;
	const char *why;
	const u8 *chunk;

	if (!(path->session->ext & IBTRS_EXT_TRIAL) || slot >= l->queue_depth ||
	    off > l->chunk_size - sizeof(w))
		return false;
	chunk = path->ops[slot].op.data;
	memcpy(&w, chunk + off, sizeof(w));
	if (ibtrs_trial_decode(&w, off, l, &desc, &why))
		return false;
	/* The client asks once, and waits. */
	if (conn->trial.posted)
		return true;
	f.key = desc.rkey;
	f.addr = desc.addr;
	f.len = desc.len;
	ibtrs_wr_init(&conn->trial);
	ibtrs_wr_frame(&conn->trial, &f);
	ibtrs_wr_ref(&conn->trial, chunk, desc.len);
	ibtrs_qp_post(conn->qp, &conn->trial);
	return !conn->qp->verbs->flush(conn->qp);
}

/* ---- what arrives ------------------------------------------------------- */

void ibtrs_srv_rx(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_srv_path *path = conn->path;
	bool ok = true;

	if (path->state == IBTRS_SRV_PATH_CONNECTING) {
		ibtrs_srv_info(conn, wc);
		return;
	}
	path->seen = true;
	if (path->state != IBTRS_SRV_PATH_UP)
		ok = false;
	else if (wc->op == IBTRS_FRAME_WHERE)
		ok = ibtrs_srv_where(conn, wc);
	else if (wc->op != IBTRS_FRAME_WRITE_IMM)
		ok = false;
	else if (ibtrs_imm_type(wc->imm) == IBTRS_IMM_IO_REQ)
		ok = rx_request(conn, wc->imm);
	else if (ibtrs_imm_type(wc->imm) == IBTRS_IMM_TRIAL)
		ok = rx_trial(conn, wc->imm);
	else if (ibtrs_imm_type(wc->imm) == IBTRS_IMM_HB_MSG && !conn->cid)
		op_hb_ack(conn);
	if (!ok)
		ibtrs_srv_path_close(conn->srv, path);
}
