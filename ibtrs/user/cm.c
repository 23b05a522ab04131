// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * An attempt to connect a path (protocol 2): cid 0, then the others at the same time, then INFO,
 * then a trial of the connections (trial.c). It ends with READY or with FAIL, and each step has its
 * deadline (ibtrs/logic/retry.c). With a key, a connection of authentication comes before all that,
 * in the place of cid 0 (auth.c).
 *
 * Runs under ctx->lock. Until a connection is attached to its queue, the context watches it; the
 * service connection is watched by the context always.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibtrs/user/clt.h"
#include "ibtrs/user/rdma.h"
#include "ibtrs/user/sock.h"
#include "ibtrs/user/stream.h"

#define CM_TURN_MS	20

static void cm_deadline(struct ibtrs_clt_path *path, enum ibtrs_retry_phase phase)
{
	path->due = ibtrs_ctx_now(path->clt->ctx) +
		    ibtrs_retry_patience_ms(&path->retry, phase, path->clt->nr_up, path->ext, 0);
}

/* With a key, whatever leaves the host is encrypted. */
static struct ibtrs_qp *cm_stream(struct ibtrs_clt_path *path, int fd)
{
	const struct ibtrs_clt *clt = path->clt;
	struct ibtrs_tls *tls = NULL;

	path->tls = clt->keys.nr && (clt->opts.flags & IBTRS_CLT_TLS || !ibtrs_sock_is_local(fd));
	if (path->tls) {
		tls = ibtrs_tls_clt(fd, clt->key_name, clt->keys.key[path->tls_key]);
		if (!tls) {
			close(fd);
			return NULL;
		}
	}
	return ibtrs_stream_new(fd, tls);
}

/* A connection that has begun to connect; NULL: @err and @why say what is wrong. */
static struct ibtrs_qp *cm_dial(struct ibtrs_clt_path *path, u16 cid, int *err, const char **why)
{
	const struct ibtrs_clt_opts *o = &path->clt->opts;
	int fd;

	/* Before cid 0 is answered it is not known how many requests there will be. */
	if (path->place.rdma)
		return path->clt->rdma->connect(&path->place,
						cid ? path->clt->qs[cid].nr : 0, err, why);
	fd = o->dial ? o->dial(o->priv, path->text, cid) : ibtrs_place_connect(&path->place);
	*err = fd < 0 ? fd : -ENOMEM;
	*why = ibtrs_place_words(*err, false);
	if (fd < 0)
		return NULL;
	*why = "no memory, or gnutls is not allowed the ciphers of TLS here";
	ibtrs_sock_patience(fd, o->hb_ms, o->hb_misses);
	return cm_stream(path, fd);
}

/* Begins connection @cid of the path; NULL: the attempt has failed. */
static struct ibtrs_clt_conn *cm_conn(struct ibtrs_clt_path *path, u16 cid)
{
	const char *why = "no memory for its connections";
	struct ibtrs_clt_conn *conn;
	int err = -ENOMEM;

	conn = calloc(1, sizeof(*conn));
	if (conn)
		conn->qp = cm_dial(path, cid, &err, &why);
	if (!conn || !conn->qp) {
		free(conn);
		ibtrs_clt_path_fail(path, err, why);
		return NULL;
	}
	conn->qp->beside = cid ? path->conns[0]->qp : NULL;
	conn->path = path;
	conn->cid = cid;
	path->conns[cid] = conn;
	return conn;
}

/* Its CM REQ has @data as private data. */
static void cm_ask(struct ibtrs_clt_conn *conn, const void *data, size_t len)
{
	struct ibtrs_frame f = { .op = IBTRS_FRAME_REQ, .len = (u32)len };

	ibtrs_wr_init(&conn->cm);
	ibtrs_wr_frame(&conn->cm, &f);
	ibtrs_wr_copy(&conn->cm, data, len);
	ibtrs_qp_post(conn->qp, &conn->cm);
	/* A socket that still connects takes nothing yet: epoll tells when it does. */
	if (conn->qp->verbs->watch(conn->qp, conn->path->clt->ctx->ep, conn))
		ibtrs_clt_path_fail(conn->path, conn->qp->err, conn->qp->why);
}

static u32 cm_offer(const struct ibtrs_clt *clt)
{
	u32 ext = IBTRS_USER_EXT;

	if (!clt->keys.nr)
		ext &= ~IBTRS_EXT_AUTH;
	/* A server that can send an event does not expect the client to ask. */
	if (!clt->opts.event)
		ext &= ~IBTRS_EXT_EVENTS;
	return ext;
}

static void cm_connect(struct ibtrs_clt_path *path, u16 cid)
{
	struct ibtrs_clt *clt = path->clt;
	struct ibtrs_conn_req m = {
		.cid		= cid,
		.cid_num	= (u16)clt->nr_qs,
		.recon_cnt	= path->recon_cnt,
		/* While a path is up, the server has the session: see protocol 2.2. */
		.first_conn	= !clt->nr_up,
		.ext		= cm_offer(clt),
	};
	struct ibtrs_clt_conn *conn = cm_conn(path, cid);

	if (!conn)
		return;
	memcpy(m.path_uuid, path->uuid, sizeof(m.path_uuid));
	memcpy(m.session_uuid, clt->uuid, sizeof(m.session_uuid));
	ibtrs_msg_conn_req_encode(&conn->req, &m);
	if (clt->keys.nr && ibtrs_auth_req_sign(&ibtrs_auth_user, path->auth.ks, &conn->req))
		ibtrs_clt_path_fail(path, -EKEYREJECTED, "the proof cannot be made");
	else
		cm_ask(conn, &conn->req, sizeof(conn->req));
}

static void cm_first_conn(struct ibtrs_clt_path *path)
{
	ibtrs_clt_path_await(path, IBTRS_HS_FIRST);
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_ASKED);
	cm_deadline(path, IBTRS_RETRY_FIRST_WORD);
	cm_connect(path, 0);
}

static void cm_knock(struct ibtrs_clt_path *path)
{
	struct ibtrs_wire_auth_req w;
	struct ibtrs_clt_conn *conn;

	ibtrs_clt_path_await(path, IBTRS_HS_AUTH);
	cm_deadline(path, IBTRS_RETRY_FIRST_WORD);
	conn = cm_conn(path, 0);
	if (!conn)
		return;
	conn->qp->talks = true;
	ibtrs_clt_auth_begin(path, &w);
	cm_ask(conn, &w, sizeof(w));
}

/*
 * Law L21: while no path is up, one at a time asks the server to make the session, until that has
 * answered or the attempt has ended; authentication is a part of that. Streams need no turns: only
 * our server speaks them, and it finds and makes a session in one step. That of an auto: path waits
 * for no attempt of RDMA, either, which may lead nowhere.
 */
static bool cm_others_turn(const struct ibtrs_clt_path *path)
{
	const struct ibtrs_clt *clt = path->clt;
	u32 i;

	for (i = 0; clt->one_asks && !clt->nr_up && !path->behind && i < clt->nr_paths; i++) {
		const struct ibtrs_clt_path *p = &clt->paths[i];

		if (p != path && !p->behind && p->state == IBTRS_PATH_CONNECTING &&
		    (p->hs == IBTRS_HS_FIRST || p->hs == IBTRS_HS_AUTH))
			return true;
	}
	return false;
}

void ibtrs_clt_cm_start(struct ibtrs_clt_path *path)
{
	if (cm_others_turn(path)) {
		ibtrs_clt_path_await(path, IBTRS_HS_TURN);
		path->due = ibtrs_ctx_now(path->clt->ctx) + CM_TURN_MS;
		return;
	}
	path->recon_cnt++;
	path->tls_again = false;
	path->conns = calloc(path->clt->nr_qs, sizeof(*path->conns));
	if (!path->conns)
		ibtrs_clt_path_fail(path, -ENOMEM, "no memory for its connections");
	else if (path->clt->keys.nr)
		cm_knock(path);
	else
		cm_first_conn(path);
}

static void cm_conn_free(struct ibtrs_clt_path *path, u32 cid)
{
	struct ibtrs_clt_conn *conn = path->conns[cid];

	if (!conn)
		return;
	conn->qp->verbs->close(conn->qp);
	conn->qp->verbs->free(conn->qp);
	free(conn);
	path->conns[cid] = NULL;
}

void ibtrs_clt_cm_free(struct ibtrs_clt_path *path)
{
	u32 i;

	for (i = 0; path->conns && i < path->clt->nr_qs; i++)
		if (path->conns[i])
			path->conns[i]->qp->verbs->close(path->conns[i]->qp);
	ibtrs_clt_mem_end(path);
	for (i = 0; path->conns && i < path->clt->nr_qs; i++)
		cm_conn_free(path, i);
	free(path->conns);
	path->conns = NULL;
	free(path->info);
	path->info = NULL;
	free(path->map);
	path->map = NULL;
	free(path->trial);
	path->trial = NULL;
	ibtrs_auth_end(&path->auth, &ibtrs_auth_user);
}

/* A refusal in the server's words. */
static void cm_said(struct ibtrs_clt_path *path, int err, const char *words)
{
	char why[IBTRS_WHY_LEN];

	snprintf(why, sizeof(why), "the server says: %s", words);
	ibtrs_clt_path_fail(path, err, why);
}

/* ---- INFO --------------------------------------------------------------- */

static int cm_info(struct ibtrs_clt_path *path, const char **why)
{
	const struct ibtrs_frame f = {
		.op	= IBTRS_FRAME_SEND,
		.len	= sizeof(struct ibtrs_wire_info_req),
	};
	struct ibtrs_clt_conn *conn = path->conns[0];
	size_t len = ibtrs_msg_info_rsp_size(path->limits.queue_depth);
	int err;

	if (len < sizeof(struct ibtrs_wire_verdict))
		len = sizeof(struct ibtrs_wire_verdict);
	ibtrs_clt_path_await(path, IBTRS_HS_INFO);
	ibtrs_auth_end(&path->auth, &ibtrs_auth_user);	/* all connections are there */
	*why = "no memory for the answer of the server";
	path->info = calloc(1, sizeof(struct ibtrs_wire_info_req) + len);
	path->map = calloc(path->limits.queue_depth, sizeof(*path->map));
	if (!path->info || !path->map)
		return -ENOMEM;
	/* The answer may be long; the request stands behind it. */
	if (conn->qp->verbs->expect(conn->qp, path->info, (u32)len)) {
		*why = conn->qp->why;
		return conn->qp->err;
	}
	ibtrs_msg_info_req_encode((void *)(path->info + len), path->clt->name);
	ibtrs_wr_init(&conn->cm);
	ibtrs_wr_frame(&conn->cm, &f);
	ibtrs_wr_ref(&conn->cm, path->info + len, sizeof(struct ibtrs_wire_info_req));
	ibtrs_qp_post(conn->qp, &conn->cm);
	cm_deadline(path, IBTRS_RETRY_INFO);
	err = conn->qp->verbs->flush(conn->qp);
	*why = conn->qp->why;
	return err;
}

/* From here on requests can be posted. */
static int cm_slots(struct ibtrs_clt_path *path, const char **why)
{
	u32 i;

	for (i = 0; i < path->clt->nr_qs; i++) {
		struct ibtrs_qp *qp = path->conns[i]->qp;

		if (qp->verbs->slots(qp, path->clt->qs[i].nr, path->limits.chunk_size)) {
			*why = qp->why;
			return qp->err;
		}
	}
	return ibtrs_clt_mem_start(path, why);
}

static int cm_info_rsp(struct ibtrs_clt_path *path, const struct ibtrs_wc *wc, const char **why)
{
	struct ibtrs_clt_conn *conn = path->conns[0];
	char words[IBTRS_WORDS_LEN];
	u16 sg_cnt;
	int err;

	if (path->ext & IBTRS_EXT_WORDS &&
	    ibtrs_msg_info_refused_decode(wc->data, wc->len, &err, words)) {
		cm_said(path, err, words);
		return 0;
	}
	err = ibtrs_msg_info_rsp_decode(wc->data, wc->len, &sg_cnt, &path->life, why);
	if (!err)
		err = ibtrs_chunkmap_build((const void *)((const u8 *)wc->data +
							  ibtrs_msg_info_rsp_size(0)),
					   sg_cnt, &path->limits, path->map, why);
	if (err)
		return err;
	if (!path->limits.fence)
		path->life = 0;
	conn->qp->verbs->expect(conn->qp, NULL, 0);
	return cm_slots(path, why) ?: ibtrs_clt_trial_start(path, why);
}

/* ---- CONN_RSP ----------------------------------------------------------- */

static void cm_refused(struct ibtrs_clt_path *path, const struct ibtrs_wc *wc)
{
	char words[IBTRS_WORDS_LEN];
	struct ibtrs_conn_rsp rsp;
	const char *why = "the server refused the connection and did not say why";

	/* A refusal that makes no sense is one, too. */
	if (ibtrs_msg_conn_rsp_decode(wc->data, wc->len, true, false, &rsp, &why)) {
		rsp.err = -ECONNRESET;
	} else if (ibtrs_msg_conn_refused_words(wc->data, wc->len, words)) {
		cm_said(path, rsp.err, words);
		return;
	} else if (path->hs == IBTRS_HS_AUTH && rsp.err == -ECONNRESET) {
		/* One that gives no reason does not know authentication. */
		rsp.err = -EKEYREJECTED;
		why = "the server cannot authenticate, it is an in-kernel one or an old one: open without a key, or with another server";
	}
	ibtrs_clt_path_fail(path, rsp.err, why);
}

static int cm_first(struct ibtrs_clt_path *path, const struct ibtrs_conn_rsp *rsp, const char **why)
{
	u32 i;
	int err;

	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_ANSWERED);
	path->ext = rsp->ext;
	path->limits = rsp->limits;
	path->limits.fence = path->ext & IBTRS_EXT_FENCE;
	err = ibtrs_clt_grant(path->clt, path, why);
	if (err)
		return err;
	ibtrs_clt_path_await(path, IBTRS_HS_OTHERS);
	cm_deadline(path, IBTRS_RETRY_CONNECT);
	for (i = 1; i < path->clt->nr_qs; i++)
		cm_connect(path, (u16)i);
	return 0;
}

static int cm_accepted(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc, const char **why)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_conn_rsp rsp;
	u32 i;
	int err;

	err = ibtrs_msg_conn_rsp_decode(wc->data, wc->len, false, !conn->cid, &rsp, why);
	if (err)
		return err;
	rsp.ext &= cm_offer(path->clt);
	*why = "the server's answer does not carry the proof that it has the key";
	if (path->clt->keys.nr &&
	    !(rsp.ext & IBTRS_EXT_AUTH &&
	      ibtrs_auth_rsp_good(&ibtrs_auth_user, path->auth.ks, &conn->req, wc->data)))
		return -EKEYREJECTED;
	conn->accepted = true;
	if (!conn->cid) {
		err = cm_first(path, &rsp, why);
		if (err)
			return err;
	}
	*why = "the server's answers to the connections of the path contradict each other";
	if (conn->cid && (rsp.limits.new_rkey != path->limits.new_rkey || rsp.ext != path->ext))
		return -EPROTO;
	for (i = 0; i < path->clt->nr_qs; i++)
		if (!path->conns[i] || !path->conns[i]->accepted)
			return 0;
	return cm_info(path, why);
}

/* ---- messages ----------------------------------------------------------- */

/* Return: true: both sides have proved it. Then @conn is gone, and cid 0 connects. */
static bool cm_auth(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_clt_path *path = conn->path;
	char why[IBTRS_WHY_LEN];
	int err;

	if (wc->op == IBTRS_FRAME_REJ && path->auth.state == IBTRS_AUTH_NEW) {
		cm_refused(path, wc);
		return false;
	}
	cm_deadline(path, IBTRS_RETRY_AUTH);
	err = ibtrs_clt_auth_message(conn, wc, why);
	if (err < 0)
		ibtrs_clt_path_fail(path, err, why);
	if (err <= 0)
		return false;
	cm_conn_free(path, 0);
	cm_first_conn(path);
	return true;
}

static int cm_message(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc, const char **why)
{
	struct ibtrs_clt_path *path = conn->path;

	if (wc->op == IBTRS_FRAME_REJ && !conn->accepted) {
		cm_refused(path, wc);
		return 0;
	}
	if (wc->op == IBTRS_FRAME_REP && !conn->accepted)
		return cm_accepted(conn, wc, why);
	if (wc->op == IBTRS_FRAME_SEND && !conn->cid && path->hs == IBTRS_HS_INFO)
		return cm_info_rsp(path, wc, why);
	if (path->hs == IBTRS_HS_TRIAL || path->hs == IBTRS_HS_DOUBT)
		return ibtrs_clt_trial_message(conn, wc, why);
	/* The server is ahead: it takes the path for established, and its heart beats. */
	if (wc->op == IBTRS_FRAME_WRITE_IMM && !conn->cid && path->hs == IBTRS_HS_INFO && !wc->len)
		return 0;
	*why = "the server sent something else than the answer to the connection request";
	return -EPROTO;
}

/*
 * TLS takes one key, and the server may have no other than the next one. Return: true: @conn is
 * gone, and the exchange begins anew.
 */
static bool cm_next_key(struct ibtrs_clt_path *path, int err)
{
	if (err != -EKEYREJECTED || path->hs != IBTRS_HS_AUTH || path->tls_again ||
	    path->clt->keys.nr < 2)
		return false;
	path->tls_again = true;
	path->tls_key = !path->tls_key;
	cm_conn_free(path, 0);
	cm_knock(path);
	return true;
}

static void cm_broken(struct ibtrs_clt_path *path, int err, const char *reason)
{
	char why[IBTRS_WHY_LEN];

	snprintf(why, sizeof(why), "key %s: %s", path->clt->key_name, reason);
	ibtrs_clt_path_fail(path, err, err == -EKEYREJECTED ? why : reason);
}

void ibtrs_clt_cm_event(struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_wc wc;
	const char *why;
	int err;

	conn->qp->verbs->turn(conn->qp, false);
	conn->qp->verbs->flush(conn->qp);
	while (!(path->events & 1u << IBTRS_PATH_EV_READY)) {
		err = conn->qp->verbs->poll(conn->qp, &wc);
		if (!err || cm_next_key(path, err))
			return;
		why = conn->qp->why;
		if (err < 0) {
			cm_broken(path, err, why);
			return;
		}
		err = 0;
		if (path->hs != IBTRS_HS_AUTH)
			err = cm_message(conn, &wc, &why);
		else if (cm_auth(conn, &wc))
			return;
		if (err)
			ibtrs_clt_path_fail(path, err, why);
		if (path->events & 1u << IBTRS_PATH_EV_FAIL)
			return;
	}
}

void ibtrs_clt_conn_event(struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt *clt = conn->path->clt;

	if (conn->attached)
		ibtrs_clt_calls_end(clt, ibtrs_q_serve(&clt->qs[0]));
	else if (conn->path->state == IBTRS_PATH_CONNECTING)
		ibtrs_clt_cm_event(conn);
}
