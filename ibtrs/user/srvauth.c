// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Authentication of a server (protocol 8.6): the exchange, on a connection of its own, and what it
 * is worth.
 *
 * A client that has proved its key gets a grant: it may set up this path, in this incarnation, from
 * this address, once, within half a minute. Its CONN_REQ of cid 0 must carry a proof made with the
 * session key. A good proof uses the grant up, however the CONN_REQ is answered then; a wrong one
 * does not, or any stranger could keep a client out. The key has to be there still: then, and when
 * the path is let in.
 *
 * A refusal is sent a second late: that limits how often a client that guesses keys can try, since
 * its connection counts as one of its address until then.
 */
#include <stdlib.h>
#include "ibtrs/user/srv.h"

#define AUTH_GRANTS_MAX		256
#define AUTH_GRANTS_PER_KEY	128	/* so that one key does not keep others out */
#define AUTH_GRANT_MS		30000
#define AUTH_LATE_MS		1000
#define AUTH_LEAVE_MS		2000	/* the client ends the connection when it has the verdict */

enum knock_step {
	KNOCK_HELLO,
	KNOCK_PROOF,
	KNOCK_LATE,			/* the refusal is made */
	KNOCK_SAID,
};

struct ibtrs_srv_knock {
	enum knock_step step;
	bool known;			/* there is a key of that name */
	struct ibtrs_auth auth;
	struct ibtrs_auth_req req;
	struct ibtrs_wire_verdict verdict;
};

struct ibtrs_srv_grant {
	struct ibtrs_srv_grant *next;	/* the oldest first */
	u64 end;
	struct ibtrs_auth_req req;
	char peer[IBTRS_ADDR_STR_MAX];
	struct ibtrs_srv_proof proof;
};

/* ---- keys --------------------------------------------------------------- */

/* The place of a key that does not exist is filled with random bytes. */
static int auth_keys(const struct ibtrs_srv *srv, const char *name, struct ibtrs_keys *keys)
{
	u8 key[IBTRS_SECRETS][IBTRS_SECRET_LEN] = {};
	unsigned int nr;

	if (ibtrs_user_random(keys->key, sizeof(keys->key)))
		return -EIO;
	nr = srv->opts.key ? srv->opts.key(srv->opts.priv, name, key) : 0;
	keys->nr = nr < IBTRS_SECRETS ? nr : IBTRS_SECRETS;
	memcpy(keys->key, key, keys->nr * sizeof(key[0]));
	explicit_bzero(key, sizeof(key));
	return 0;
}

int ibtrs_srv_tls_keys(void *priv, const char *name, struct ibtrs_keys *keys)
{
	const struct ibtrs_srv *srv = priv;

	keys->nr = 0;
	return srv->opts.auth == IBTRS_SRV_AUTH_OFF ? 0 : auth_keys(srv, name, keys);
}

int ibtrs_srv_auth_bare(const struct ibtrs_srv_conn *conn, const char **why)
{
	*why = "over TCP a key is proved in TLS alone: the client is another one, or somebody is between";
	return conn->qp->bare ? -EKEYREJECTED : 0;
}

int ibtrs_srv_auth_still(const struct ibtrs_srv *srv, const struct ibtrs_srv_proof *proof,
			 const char **why)
{
	struct ibtrs_keys keys;
	bool there;

	if (!proof->key[0])
		return 0;
	*why = "the key that was proved is not loaded here any more";
	there = !auth_keys(srv, proof->key, &keys) &&
		ibtrs_auth_has_mark(&ibtrs_auth_user, &keys, proof->mark);
	explicit_bzero(&keys, sizeof(keys));
	return there ? 0 : -EKEYREJECTED;
}

/* ---- grants ------------------------------------------------------------- */

static void grant_free(struct ibtrs_srv_grant **at)
{
	struct ibtrs_srv_grant *g = *at;

	*at = g->next;
	explicit_bzero(g, sizeof(*g));
	free(g);
}

void ibtrs_srv_auth_forget_all(struct ibtrs_srv *srv)
{
	while (srv->grants)
		grant_free(&srv->grants);
}

/* Frees the grants whose time is over. */
static void grants_expire(struct ibtrs_srv *srv)
{
	u64 now = ibtrs_srv_now(srv);

	while (srv->grants && srv->grants->end <= now)
		grant_free(&srv->grants);
}

/* Makes room for one of @key, and returns where it goes. */
static struct ibtrs_srv_grant **grants_room(struct ibtrs_srv *srv, const char *key)
{
	struct ibtrs_srv_grant **at, **oldest = NULL;
	u32 nr = 0, alike = 0;

	grants_expire(srv);
	for (at = &srv->grants; *at; at = &(*at)->next) {
		nr++;
		if (strcmp((*at)->proof.key, key))
			continue;
		oldest = oldest ?: at;
		alike++;
	}
	if (alike >= AUTH_GRANTS_PER_KEY)
		grant_free(oldest);
	else if (nr >= AUTH_GRANTS_MAX)
		grant_free(&srv->grants);
	for (at = &srv->grants; *at; at = &(*at)->next)
		;
	return at;
}

static int grant_new(struct ibtrs_srv_conn *conn, struct ibtrs_srv_knock *k)
{
	struct ibtrs_srv_grant *g = calloc(1, sizeof(*g));
	const struct ibtrs_auth *a = &k->auth;

	if (!g)
		return -ENOMEM;
	g->end = ibtrs_srv_now(conn->srv) + AUTH_GRANT_MS;
	g->req = k->req;
	memcpy(g->peer, conn->peer, sizeof(g->peer));
	memcpy(g->proof.key, a->t.name, sizeof(g->proof.key));
	memcpy(g->proof.ks, a->ks, sizeof(g->proof.ks));
	memcpy(g->proof.mark, a->mark, sizeof(g->proof.mark));
	*grants_room(conn->srv, g->proof.key) = g;
	return 0;
}

static bool grant_is_for(const struct ibtrs_srv_grant *g, const struct ibtrs_conn_req *req,
			 const char *peer)
{
	return g->req.recon_cnt == req->recon_cnt && !strcmp(g->peer, peer) &&
	       !memcmp(g->req.path_uuid, req->path_uuid, sizeof(g->req.path_uuid)) &&
	       !memcmp(g->req.session_uuid, req->session_uuid, sizeof(g->req.session_uuid));
}

int ibtrs_srv_auth_first(struct ibtrs_srv_conn *conn, const struct ibtrs_conn_req *req,
			 const void *wire, struct ibtrs_srv_proof *proof, const char **why)
{
	struct ibtrs_srv *srv = conn->srv;
	struct ibtrs_srv_grant **at;

	if (!(req->ext & IBTRS_EXT_AUTH)) {
		*why = "authentication is required here: open with a key (map with auth=KEY)";
		return srv->opts.auth == IBTRS_SRV_AUTH_REQUIRED ? -EACCES : 0;
	}
	grants_expire(srv);
	for (at = &srv->grants; *at; at = &(*at)->next) {
		if (!grant_is_for(*at, req, conn->peer) ||
		    !ibtrs_auth_req_good(&ibtrs_auth_user, (*at)->proof.ks, wire))
			continue;
		*proof = (*at)->proof;
		grant_free(at);
		return ibtrs_srv_auth_still(srv, proof, why);
	}
	*why = "the first connection of the path has no good proof";
	return -EKEYREJECTED;
}

/* ---- the exchange ------------------------------------------------------- */

static void knock_say(struct ibtrs_srv_conn *conn, u16 op, const void *data, size_t len)
{
	const char *why;

	if (ibtrs_auth_say(conn->qp, &conn->cm, op, data, len, &why))
		ibtrs_srv_conn_kill(conn);
}

static void knock_verdict(struct ibtrs_srv_conn *conn)
{
	struct ibtrs_srv_knock *k = conn->knock;

	k->step = KNOCK_SAID;
	conn->due = ibtrs_srv_now(conn->srv) + AUTH_LEAVE_MS;
	knock_say(conn, IBTRS_FRAME_SEND, &k->verdict, sizeof(k->verdict));
}

static void knock_failed(const struct ibtrs_srv_conn *conn, const char *why)
{
	const struct ibtrs_srv_knock *k = conn->knock;
	const char *name = (const char *)k->auth.t.name;

	ibtrs_srv_refused(conn->srv, conn->peer, "key %s: authentication failed: %s",
			  *name ? name : "(none)",
			  *name && !k->known ? "there is no key of that name here" : why);
}

static void knock_refuse(struct ibtrs_srv_conn *conn, int err, const char *why)
{
	struct ibtrs_srv_knock *k = conn->knock;

	knock_failed(conn, why);
	ibtrs_auth_end(&k->auth, &ibtrs_auth_user);
	ibtrs_msg_verdict_encode(&k->verdict, IBTRS_MSG_AUTH_VERDICT, err, why);
	k->step = KNOCK_LATE;
	conn->due = ibtrs_srv_now(conn->srv) + AUTH_LATE_MS;
}

void ibtrs_srv_knock_timer(struct ibtrs_srv_conn *conn)
{
	if (conn->knock && conn->knock->step == KNOCK_LATE)
		knock_verdict(conn);
	else
		ibtrs_srv_conn_kill(conn);
}

static void knock_hello(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_srv_knock *k = conn->knock;
	struct ibtrs_wire_auth_challenge w;
	u8 nonce[IBTRS_NONCE_LEN];
	struct ibtrs_keys keys;
	const char *why;
	int err;

	err = ibtrs_auth_srv_hello(&k->auth, wc->data, wc->len, &why);
	if (!err) {
		why = "the server has no randomness";
		err = ibtrs_user_random(nonce, sizeof(nonce));
		/* Without a key of that name: a challenge that has no answer. */
		err = err ?: auth_keys(conn->srv, (const char *)k->auth.t.name, &keys);
		k->known = !err && keys.nr;
		err = err ?: ibtrs_auth_srv_challenge(&k->auth, &ibtrs_auth_user, &keys, nonce, &w);
		explicit_bzero(&keys, sizeof(keys));
	}
	if (err) {
		knock_refuse(conn, err, why);
		return;
	}
	k->step = KNOCK_PROOF;
	knock_say(conn, IBTRS_FRAME_SEND, &w, sizeof(w));
}

static void knock_proof(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_srv_knock *k = conn->knock;
	const char *why;
	int err;

	err = ibtrs_auth_srv_proof(&k->auth, &ibtrs_auth_user, wc->data, wc->len, &why);
	if (!err) {
		why = "out of memory";
		err = grant_new(conn, k);
	}
	if (err) {
		knock_refuse(conn, err, why);
		return;
	}
	ibtrs_auth_end(&k->auth, &ibtrs_auth_user);
	ibtrs_msg_verdict_encode(&k->verdict, IBTRS_MSG_AUTH_VERDICT, 0, "");
	knock_verdict(conn);
}

void ibtrs_srv_knock_message(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	/* What a client says while its refusal waits is ignored. */
	if (wc->op != IBTRS_FRAME_SEND || conn->knock->step == KNOCK_SAID)
		ibtrs_srv_conn_kill(conn);
	else if (conn->knock->step == KNOCK_HELLO)
		knock_hello(conn, wc);
	else if (conn->knock->step == KNOCK_PROOF)
		knock_proof(conn, wc);
}

int ibtrs_srv_knock(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc, u8 *ext,
		    const char **why)
{
	struct ibtrs_wire_auth_rsp rsp;
	struct ibtrs_srv_knock *k;
	struct ibtrs_auth_req req;
	bool good;

	good = ibtrs_auth_req_decode(wc->data, wc->len, &req, why);
	*ext = req.ext;
	if (!good)
		return -ECONNRESET;
	*why = IBTRS_SRV_FEIGNED;
	if (conn->qp->feigned)
		return -EACCES;
	*why = "authentication is disabled here: open without a key (map without auth=)";
	if (conn->srv->opts.auth == IBTRS_SRV_AUTH_OFF)
		return -EKEYREJECTED;
	if (ibtrs_srv_auth_bare(conn, why))
		return -EKEYREJECTED;
	*why = "out of memory";
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	conn->knock = k;
	k->req = req;
	ibtrs_auth_rsp_encode(&rsp);
	ibtrs_auth_srv_init(&k->auth, wc->data, &rsp);
	*why = "the RDMA device has no GIDs, to which a proof would be bound";
	if (!conn->qp->verbs->ends(conn->qp, k->auth.t.server, k->auth.t.client))
		return -EOPNOTSUPP;
	conn->qp->talks = true;
	knock_say(conn, IBTRS_FRAME_REP, &rsp, sizeof(rsp));
	return 0;
}

void ibtrs_srv_knock_free(struct ibtrs_srv_conn *conn)
{
	if (!conn->knock)
		return;
	if (conn->knock->step == KNOCK_PROOF)
		knock_failed(conn, "the client left without a proof: it has another key of that name");
	explicit_bzero(conn->knock, sizeof(*conn->knock));
	free(conn->knock);
	conn->knock = NULL;
}
