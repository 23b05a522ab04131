// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Authentication: what ibtrs/logic/auth.c needs from this host, and the exchange of a client.
 *
 * The exchange has a connection of its own, before cid 0 and in its place (cm.c). The server proves
 * first: one that has not the key receives nothing that was made with ours. The client keeps its
 * key as long as the session is open, for the next attempt; each attempt wipes its copy as soon as
 * the proof is made, and the session key when all connections are there.
 */
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <unistd.h>
#include "ibtrs/user/auth.h"
#include "ibtrs/user/clt.h"

static_assert(IBTRS_SECRET_LEN == IBTRS_KEY_LEN && IBTRS_SECRETS == IBTRS_KEYS_PER_NAME, "keys");

int ibtrs_key_read(const char *file, uint8_t key[IBTRS_SECRET_LEN], const char **name,
		   char why[IBTRS_WHY_LEN])
{
	char text[IBTRS_KEY_TEXT_LEN + 1];
	const char *slash = strrchr(file, '/'), *wrong = NULL;
	int fd = open(file, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (n < 0) {
		err = -errno;
		wrong = strerror(errno);
	} else if (n == IBTRS_SECRET_LEN) {
		memcpy(key, text, IBTRS_SECRET_LEN);
	} else {
		wrong = ibtrs_key_parse(text, (size_t)n, key);
		err = wrong ? -EINVAL : 0;
	}
	if (wrong)
		snprintf(why, IBTRS_WHY_LEN, "%s", wrong);
	else
		*name = slash ? slash + 1 : file;
	explicit_bzero(text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return err;
}

static int auth_hmac(const u8 *key, const void *data, size_t len, u8 *mac)
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, IBTRS_KEY_LEN, key);
	hmac_sha256_update(&h, len, data);
	hmac_sha256_digest(&h, IBTRS_MAC_LEN, mac);
	explicit_bzero(&h, sizeof(h));
	return 0;
}

static bool auth_differ(const void *a, const void *b, size_t len)
{
	return !memeql_sec(a, b, len);
}

const struct ibtrs_auth_ops ibtrs_auth_user = {
	.hmac	= auth_hmac,
	.differ	= auth_differ,
	.wipe	= explicit_bzero,
};

int ibtrs_auth_say(struct ibtrs_qp *qp, struct ibtrs_wr *wr, u16 op, const void *data, size_t len,
		   const char **why)
{
	const struct ibtrs_frame f = { .op = op, .len = (u32)len };
	int err;

	/* A peer that answers has read all of what was sent before. */
	*why = "the peer answers what it has not received yet";
	if (wr->posted)
		return -EPROTO;
	ibtrs_wr_init(wr);
	ibtrs_wr_frame(wr, &f);
	ibtrs_wr_copy(wr, data, len);
	ibtrs_qp_post(qp, wr);
	err = qp->verbs->flush(qp);
	*why = qp->why;
	return err;
}

/* ---- a client ----------------------------------------------------------- */

int ibtrs_clt_auth_init(struct ibtrs_clt *clt, const char **why)
{
	struct ibtrs_clt_opts *o = &clt->opts;
	const u8 *const from[IBTRS_SECRETS] = { o->key, o->next_key };
	u32 i;

	*why = "TLS needs a key";
	if (o->flags & IBTRS_CLT_TLS && !o->key)
		return -EINVAL;
	*why = "a key has a name, and a name a key";
	if (!o->key_name != !o->key || (o->next_key && !o->key))
		return -EINVAL;
	*why = "the name of a key is 1 to 63 of A-Z a-z 0-9 _ -";
	if (o->key_name && !ibtrs_key_name_ok(o->key_name, strlen(o->key_name)))
		return -EINVAL;
	if (o->key_name)
		memcpy(clt->key_name, o->key_name, strlen(o->key_name));
	for (i = 0; i < IBTRS_SECRETS && from[i]; i++)
		memcpy(clt->keys.key[clt->keys.nr++], from[i], IBTRS_KEY_LEN);
	return 0;
}

void ibtrs_clt_auth_begin(struct ibtrs_clt_path *path, struct ibtrs_wire_auth_req *w)
{
	struct ibtrs_auth_req req = { .recon_cnt = path->recon_cnt, .ext = IBTRS_EXT_WORDS };
	const struct ibtrs_clt *clt = path->clt;

	memcpy(req.path_uuid, path->uuid, sizeof(req.path_uuid));
	memcpy(req.session_uuid, clt->uuid, sizeof(req.session_uuid));
	ibtrs_auth_req_encode(w, &req);
	ibtrs_auth_clt_init(&path->auth, w, clt->key_name, &clt->keys);
}

static int auth_hello(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc, const char **why)
{
	struct ibtrs_auth *a = &conn->path->auth;
	struct ibtrs_wire_auth_hello w;
	u8 nonce[IBTRS_NONCE_LEN];
	int err;

	*why = "the RDMA device has no GIDs, to which a proof would be bound";
	if (!conn->qp->verbs->ends(conn->qp, a->t.client, a->t.server))
		return -EOPNOTSUPP;
	*why = "the kernel gives no randomness";
	err = ibtrs_user_random(nonce, sizeof(nonce));
	err = err ?: ibtrs_auth_clt_hello(a, wc->data, wc->len, nonce, &w, why);
	return err ?: ibtrs_auth_say(conn->qp, &conn->cm, IBTRS_FRAME_SEND, &w, sizeof(w), why);
}

/* Return: 1: the server accepted the proof. */
static int auth_verdict(struct ibtrs_auth *a, const struct ibtrs_wc *wc, char *text)
{
	return ibtrs_auth_clt_verdict(a, wc->data, wc->len, text) ?: 1;
}

static int auth_challenge(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc, const char **why)
{
	struct ibtrs_wire_auth_proof w;
	int err;

	err = ibtrs_auth_clt_challenge(&conn->path->auth, &ibtrs_auth_user, wc->data, wc->len, &w,
				       why);
	return err ?: ibtrs_auth_say(conn->qp, &conn->cm, IBTRS_FRAME_SEND, &w, sizeof(w), why);
}

int ibtrs_clt_auth_message(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc,
			   char why[IBTRS_WHY_LEN])
{
	struct ibtrs_auth *a = &conn->path->auth;
	const char *reason = "the server sent something else than a message of authentication";
	char text[IBTRS_WORDS_LEN];
	int err = -EPROTO;

	if (a->state == IBTRS_AUTH_NEW && wc->op == IBTRS_FRAME_REP) {
		err = auth_hello(conn, wc, &reason);
	} else if (a->state >= IBTRS_AUTH_ASKED && wc->op == IBTRS_FRAME_SEND) {
		/* A server that refuses the first message answers with a verdict at once. */
		if (a->state == IBTRS_AUTH_ASKED && !ibtrs_auth_verdict_is(wc->data, wc->len)) {
			err = auth_challenge(conn, wc, &reason);
		} else {
			err = auth_verdict(a, wc, text);
			reason = text[0] ? text :
				 "the server refused the proof, and did not say why";
		}
	}
	if (err < 0)
		snprintf(why, IBTRS_WHY_LEN, "key %s: %s", conn->path->clt->key_name, reason);
	return err;
}
