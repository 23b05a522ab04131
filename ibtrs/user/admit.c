// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Who may come in (protocol 2.2 to 2.5): the CONN_REQ of each connection of a path, then INFO_REQ.
 * A session is found by its uuid and the key that was proved, or by its uuid alone among those
 * without a key (8.6; srvauth.c has the exchange).
 *
 * A refusal has an errno of protocol 2.3, and words for a client that offered WORDS. A path with a
 * higher recon_cnt from the same address supersedes its earlier life (law L9): that is closed at
 * once, and the client told EBUSY as long as the user has ops of it.
 */
#include <stdarg.h>
#include <stdlib.h>
#include "ibtrs/user/srv.h"

void ibtrs_srv_refused(const struct ibtrs_srv *srv, const char *peer, const char *fmt, ...)
{
	char what[2 * IBTRS_WHY_LEN];
	va_list ap;

	if (!srv->opts.refused)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	srv->opts.refused(srv->opts.priv, peer, what);
}

static struct ibtrs_srv_session *admit_session(struct ibtrs_srv *srv, const u8 *uuid,
					       const char *key)
{
	struct ibtrs_srv_session *s = srv->sessions;

	while (s && (memcmp(s->uuid, uuid, sizeof(s->uuid)) || strcmp(s->key, key)))
		s = s->next;
	return s;
}

/* A closed path of which nothing is awaited is none any more. */
static struct ibtrs_srv_path *admit_path(struct ibtrs_srv_session *s, const u8 *uuid)
{
	struct ibtrs_srv_path *path = s ? s->paths : NULL;

	while (path && (ibtrs_srv_path_lingers(path) ||
			memcmp(path->uuid, uuid, sizeof(path->uuid))))
		path = path->next;
	return path;
}

/*
 * The path of a CONN_REQ with AUTH that is not the first one: it names no key, but its proof is
 * made with the session key of its path. Sessions of several keys may have this uuid, and each of
 * them a path with that one. NULL: the proof is of none of them.
 */
static struct ibtrs_srv_path *admit_proved_path(struct ibtrs_srv *srv,
						const struct ibtrs_conn_req *req, const void *wire)
{
	struct ibtrs_srv_session *s;
	struct ibtrs_srv_path *path;

	for (s = srv->sessions; s; s = s->next) {
		if (!s->key[0] || memcmp(s->uuid, req->session_uuid, sizeof(s->uuid)))
			continue;
		path = admit_path(s, req->path_uuid);
		/* A path that is complete has no session key any more. */
		if (path && path->state == IBTRS_SRV_PATH_CONNECTING &&
		    ibtrs_auth_req_good(&ibtrs_auth_user, path->proof.ks, wire))
			return path;
	}
	return NULL;
}

/* cid 0 of a path that exists. 0: its earlier life is over, and nothing is left of it. */
static int admit_again(struct ibtrs_srv *srv, struct ibtrs_srv_path *path,
		       const struct ibtrs_conn_req *req, const char *peer, const char **why)
{
	*why = "the path belongs to another client address";
	if (strcmp(path->peer, peer))
		return -ECONNRESET;
	*why = "connection id in use";
	if (path->state != IBTRS_SRV_PATH_CLOSED && !ibtrs_msg_conn_req_newer(req, path->recon_cnt))
		return -ECONNRESET;
	ibtrs_srv_path_close(srv, path);
	*why = "the path's old incarnation is still draining";
	return path->awaited ? -EBUSY : 0;
}

static int admit_other(const struct ibtrs_srv_conn *conn, struct ibtrs_srv_path *path,
		       const struct ibtrs_conn_req *req, const char **why)
{
	*why = "the first connection of a path must be cid 0";
	if (!path)
		return -ECONNRESET;
	*why = "the path is being closed";
	if (path->state == IBTRS_SRV_PATH_CLOSED)
		return -EBUSY;
	*why = "another kind of connection than cid 0";
	if (path->verbs != conn->qp->verbs)
		return -ECONNRESET;
	*why = "the path is complete";
	if (path->state != IBTRS_SRV_PATH_CONNECTING)
		return -ECONNRESET;
	*why = "another client address, number of connections, incarnation or set of extensions than cid 0";
	if (strcmp(path->peer, conn->peer) || req->cid_num != path->nr_conns ||
	    req->recon_cnt != path->recon_cnt ||
	    (req->ext & IBTRS_USER_EXT) != path->session->ext)
		return -ECONNRESET;
	*why = "connection id in use";
	return path->conns[req->cid] ? -ECONNRESET : 0;
}

static u32 admit_count(const struct ibtrs_srv_session *s)
{
	const struct ibtrs_srv_path *path;
	u32 n = 0;

	for (path = s->paths; path; path = path->next)
		n += !ibtrs_srv_path_lingers(path);
	return n;
}

static int admit_new(struct ibtrs_srv *srv, struct ibtrs_srv_session *s,
		     const struct ibtrs_conn_req *req, const char *peer,
		     const struct ibtrs_srv_proof *proof, struct ibtrs_srv_path **out,
		     const char **why)
{
	u32 ext = req->ext & IBTRS_USER_EXT;
	bool known;
	int err;

	*why = "no such session";
	if (!s && !req->first_conn)
		return -ENXIO;
	err = ibtrs_srv_quota_path(srv, peer, proof->key, !s, &known, why);
	if (err)
		return err;
	*why = "the session has as many paths as it may";
	if (s && admit_count(s) >= IBTRS_MAX_PATHS)
		return -ECONNRESET;
	/* A path without tokens would bypass the fences of the other paths. */
	*why = "another set of extensions than the session's other paths";
	if (s && s->ext != ext)
		return -ECONNRESET;
	*why = "out of memory";
	s = s ?: ibtrs_srv_session_new(srv, req->session_uuid, peer, proof->key, ext);
	*out = s ? ibtrs_srv_path_new(srv, s, req, peer, proof) : NULL;
	if (!*out)
		return -ENOMEM;
	(*out)->known = known;
	return 0;
}

static int admit_find(struct ibtrs_srv_conn *conn, const struct ibtrs_conn_req *req,
		      const struct ibtrs_srv_proof *proof, struct ibtrs_srv_path **path,
		      const char **why)
{
	struct ibtrs_srv *srv = conn->srv;
	struct ibtrs_srv_session *s = admit_session(srv, req->session_uuid, proof->key);
	int err;

	*path = admit_path(s, req->path_uuid);
	if (req->cid)
		return admit_other(conn, *path, req, why);
	if (*path) {
		err = admit_again(srv, *path, req, conn->peer, why);
		if (err)
			return err;
	}
	return admit_new(srv, s, req, conn->peer, proof, path, why);
}

/* Of session and path nothing is looked at before the proof was found good. */
static int admit_judge(struct ibtrs_srv_conn *conn, const struct ibtrs_conn_req *req,
		       const void *wire, struct ibtrs_srv_path **path, const char **why)
{
	struct ibtrs_srv_proof proof = {};
	int err;

	*why = IBTRS_SRV_FEIGNED;
	if (conn->qp->feigned)
		return -EACCES;
	if (req->ext & IBTRS_EXT_AUTH && ibtrs_srv_auth_bare(conn, why))
		return -EKEYREJECTED;
	if (req->cid && req->ext & IBTRS_EXT_AUTH) {
		*path = admit_proved_path(conn->srv, req, wire);
		/* The answer is the same whether the path exists or not. */
		*why = "the connection has no good proof of its path";
		return *path ? admit_other(conn, *path, req, why) : -EKEYREJECTED;
	}
	err = ibtrs_srv_auth_first(conn, req, wire, &proof, why);
	if (!err)
		err = admit_find(conn, req, &proof, path, why);
	explicit_bzero(&proof, sizeof(proof));
	return err;
}

static void admit_answer(struct ibtrs_srv_conn *conn, u16 op, const void *w, size_t len)
{
	const struct ibtrs_frame f = { .op = op, .len = (u32)len };

	ibtrs_wr_init(&conn->cm);
	ibtrs_wr_frame(&conn->cm, &f);
	ibtrs_wr_copy(&conn->cm, w, len);
	ibtrs_qp_post(conn->qp, &conn->cm);
	conn->qp->verbs->flush(conn->qp);
}

static void admit_refuse(struct ibtrs_srv_conn *conn, int err, u32 ext, const char *why)
{
	struct ibtrs_wire_conn_refused w;

	/* Who waits for an old path to drain, or for its session, asks ten times a second. */
	if (err != -EBUSY && err != -ENXIO)
		ibtrs_srv_refused(conn->srv, conn->peer, "connection refused: %s (%d)", why, err);
	admit_answer(conn, IBTRS_FRAME_REJ, &w, ibtrs_msg_conn_refused_encode(&w, err, ext, why));
	ibtrs_srv_conn_kill(conn);
}

static void admit_accept(struct ibtrs_srv_conn *conn, const struct ibtrs_srv_path *path,
			 const void *req)
{
	const struct ibtrs_conn_rsp rsp = { .ext = path->session->ext, .limits = path->limits };
	struct ibtrs_wire_conn_rsp w;

	ibtrs_msg_conn_rsp_encode(&w, &rsp);
	if (rsp.ext & IBTRS_EXT_AUTH &&
	    ibtrs_auth_rsp_sign(&ibtrs_auth_user, path->proof.ks, req, &w))
		ibtrs_srv_conn_kill(conn);
	else
		admit_answer(conn, IBTRS_FRAME_REP, &w, sizeof(w));
}

static void admit_knock(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	const char *why;
	u8 ext;
	int err = ibtrs_srv_knock(conn, wc, &ext, &why);

	if (err)
		admit_refuse(conn, err, ext, why);
}

void ibtrs_srv_admit(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_srv_path *path;
	struct ibtrs_conn_req req;
	const char *why;
	int err;

	if (wc->op != IBTRS_FRAME_REQ) {
		ibtrs_srv_conn_kill(conn);
		return;
	}
	if (ibtrs_auth_req_is(wc->data, wc->len)) {
		admit_knock(conn, wc);
		return;
	}
	err = ibtrs_msg_conn_req_decode(wc->data, wc->len, IBTRS_MAX_CONS, &req, &why);
	if (!err)
		err = admit_judge(conn, &req, wc->data, &path, &why);
	if (err) {
		admit_refuse(conn, err, req.ext, why);
		return;
	}
	conn->path = path;
	conn->cid = req.cid;
	conn->due = 0;
	path->conns[req.cid] = conn;
	conn->qp->beside = req.cid ? path->conns[0]->qp : NULL;
	path->verbs = conn->qp->verbs;
	path->nr_accepted++;
	admit_accept(conn, path, wc->data);
}

/* ---- INFO --------------------------------------------------------------- */

static int info_judge(struct ibtrs_srv *srv, struct ibtrs_srv_path *path,
		      const struct ibtrs_wc *wc, char why[IBTRS_WHY_LEN])
{
	const char *name = "", *reason = "";
	char words[IBTRS_WHY_LEN] = "";
	int err;

	/* All connections are there: none will be proved with it. */
	explicit_bzero(path->proof.ks, sizeof(path->proof.ks));
	err = ibtrs_msg_info_req_decode(wc->data, wc->len, &name, &reason);
	if (!err && srv->opts.admit) {
		err = srv->opts.admit(srv->opts.priv, name, path->peer, path->session->key, words);
		if (err && !*words)
			snprintf(words, sizeof(words),
				 "session %s from %s is not admitted: see the server's policy",
				 name, path->peer);
		reason = words;
	}
	if (!err)
		err = ibtrs_srv_quota_let_in(srv, path, &reason);
	if (!err)
		err = ibtrs_srv_name_take(srv, path, name, words, &reason);
	if (!err)
		err = ibtrs_srv_auth_still(srv, &path->proof, &reason);
	if (!err)
		err = ibtrs_srv_path_memory(srv, path, &reason);
	snprintf(why, IBTRS_WHY_LEN, "%s", reason);
	if (err)
		ibtrs_srv_refused(srv, path->peer, "session %s: path refused: %s (%d)", name, why,
				  err);
	return err;
}

static size_t info_rsp(struct ibtrs_srv_path *path)
{
	struct ibtrs_desc d = { 0 };
	u32 i, nr = path->regions.nr;
	struct ibtrs_wire_info_rsp *w;

	path->info = calloc(1, ibtrs_msg_info_rsp_size(nr));
	if (!path->info)
		return 0;
	w = (void *)path->info;
	ibtrs_msg_info_rsp_encode(w, NULL, 0, path->limits.fence ? path->session->life : 0);
	w->sg_cnt = cpu_to_le16((u16)nr);
	for (i = 0; i < nr; i++) {
		d.addr = path->regions.v[i].addr;
		d.rkey = path->regions.v[i].key;
		d.len = path->regions.v[i].len;
		ibtrs_msg_desc_encode(&w->desc[i], &d);
	}
	return ibtrs_msg_info_rsp_size(nr);
}

static size_t info_refused(struct ibtrs_srv_path *path, int err, const char *why)
{
	if (!(path->session->ext & IBTRS_EXT_WORDS))
		return 0;
	path->info = calloc(1, sizeof(struct ibtrs_wire_verdict));
	if (!path->info)
		return 0;
	ibtrs_msg_verdict_encode((void *)path->info, IBTRS_MSG_INFO_REFUSED, err, why);
	return sizeof(struct ibtrs_wire_verdict);
}

void ibtrs_srv_info(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_srv_path *path = conn->path;
	struct ibtrs_srv *srv = conn->srv;
	struct ibtrs_frame f = { .op = IBTRS_FRAME_SEND };
	char why[IBTRS_WHY_LEN];
	u64 now = ibtrs_srv_now(srv);
	u32 i;
	int err;

	if (conn->cid || wc->op != IBTRS_FRAME_SEND || path->nr_accepted != path->nr_conns) {
		ibtrs_srv_path_close(srv, path);
		return;
	}
	err = info_judge(srv, path, wc, why);
	f.len = (u32)(err ? info_refused(path, err, why) : info_rsp(path));
	if (!f.len) {
		ibtrs_srv_path_close(srv, path);
		return;
	}
	path->state = err ? IBTRS_SRV_PATH_REFUSED : IBTRS_SRV_PATH_UP;
	path->due = err ? now + IBTRS_SRV_REFUSED_MS : now;
	path->seen = true;
	for (i = 0; i < path->nr_conns && !err; i++)
		path->conns[i]->qp->regions = &path->regions;
	ibtrs_wr_init(&conn->cm);
	ibtrs_wr_frame(&conn->cm, &f);
	ibtrs_wr_ref(&conn->cm, path->info, f.len);
	ibtrs_qp_post(conn->qp, &conn->cm);
	conn->qp->verbs->flush(conn->qp);
}
