// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Authentication: who has the key (protocol.md 8.6).
 *
 * Owns: the order of the four messages on each side, the transcript that their MACs cover, and the
 * MACs that CONN_REQ and CONN_RSP carry afterwards. Called by client/auth.c and server/auth.c.
 *
 * The server proves first: the client sends nothing made with its key to a peer that has not proved
 * that it has the key. Each MAC has its own label, so that a peer cannot send one MAC back as
 * another, and covers everything that both sides have sent so far. It also covers the GIDs of both
 * ends: a server that the client dials cannot pass the exchange on to another server, since that
 * one sees another client. All parts of a transcript have a fixed length, so two different
 * transcripts never have the same bytes.
 *
 * A name may have two keys while its key is being replaced. The server does not know which of them
 * the client has, so it makes a MAC with each, and the client says which key it used. If a name has
 * fewer keys, the caller fills the missing ones with random bytes, which no client can have.
 *
 * Failure: -EKEYREJECTED and a reason. The attempt is then in state FAILED and stays there.
 */
#include <ibtrs/words.h>
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"

#define AUTH_LABEL_SERVER	"ibtrs auth 1 server"
#define AUTH_LABEL_CLIENT	"ibtrs auth 1 client"
#define AUTH_LABEL_SESSION	"ibtrs auth 1 session"
#define AUTH_LABEL_REQ		"ibtrs auth 1 conn"
#define AUTH_LABEL_RSP		"ibtrs auth 1 answer"
#define AUTH_LABEL_MARK		"ibtrs auth 1 mark"
#define AUTH_LABEL_MAX		20
#define AUTH_LABEL_IDENTITY	"ibtrs identity"
#define AUTH_IDENTITY_KEYED	0x80	/* in byte 6; no uuid of RFC 4122 has this bit */
#define AUTH_REQ_FROM		2	/* the CM overwrites the bytes before this offset */

static_assert(sizeof(AUTH_LABEL_SESSION) - 1 == AUTH_LABEL_MAX, "the longest label");
static_assert(IBTRS_KEY_NAME_LEN == sizeof(((struct ibtrs_wire_auth_hello *)0)->name), "name");

static int auth_mac(const struct ibtrs_auth_ops *ops, const u8 *key, const char *label,
		    const struct ibtrs_auth_transcript *t, u8 *mac)
{
	u8 text[AUTH_LABEL_MAX + sizeof(*t)];
	size_t n = strlen(label);

	memcpy(text, label, n);
	memcpy(text + n, t, sizeof(*t));
	return ops->hmac(key, text, n + sizeof(*t), mac);
}

/* The server remembers a mark of a proved key, and does not keep the key itself. */
static int auth_mark(const struct ibtrs_auth_ops *ops, const u8 *key, u8 *mark)
{
	return ops->hmac(key, AUTH_LABEL_MARK, sizeof(AUTH_LABEL_MARK) - 1, mark);
}

static int auth_fail(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops, int err)
{
	ibtrs_auth_end(a, ops);
	a->state = IBTRS_AUTH_FAILED;
	return err;
}

void ibtrs_auth_end(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops)
{
	ops->wipe(&a->keys, sizeof(a->keys));
	ops->wipe(a->ks, sizeof(a->ks));
}

/* ---- the client --------------------------------------------------------- */

void ibtrs_auth_clt_init(struct ibtrs_auth *a, const struct ibtrs_wire_auth_req *req,
			 const char *name, const struct ibtrs_keys *keys)
{
	memset(a, 0, sizeof(*a));
	memcpy(a->t.req, (const u8 *)req + AUTH_REQ_FROM, sizeof(a->t.req));
	memcpy(a->t.name, name, strlen(name));
	a->keys = *keys;
}

int ibtrs_auth_clt_hello(struct ibtrs_auth *a, const void *rsp, size_t len, const u8 *nonce,
			 struct ibtrs_wire_auth_hello *out, const char **why)
{
	*why = "the server answers where nothing was asked";
	if (a->state != IBTRS_AUTH_NEW || !ibtrs_auth_rsp_decode(rsp, len, why)) {
		a->state = IBTRS_AUTH_FAILED;
		return -EKEYREJECTED;
	}
	memcpy(a->t.rsp, rsp, sizeof(a->t.rsp));
	memcpy(a->t.nonce_c, nonce, sizeof(a->t.nonce_c));
	ibtrs_auth_hello_encode(out, (const char *)a->t.name, nonce);
	a->state = IBTRS_AUTH_ASKED;
	return 0;
}

int ibtrs_auth_clt_challenge(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops,
			     const void *buf, size_t len, struct ibtrs_wire_auth_proof *out,
			     const char **why)
{
	struct ibtrs_wire_auth_challenge w;
	u8 mac[IBTRS_MAC_LEN];
	u32 mine, which;
	int err;

	*why = "the server sends a challenge where none is due";
	if (a->state != IBTRS_AUTH_ASKED || !ibtrs_auth_challenge_decode(buf, len, &w, why))
		return auth_fail(a, ops, -EKEYREJECTED);
	memcpy(a->t.nonce_s, w.nonce, sizeof(a->t.nonce_s));
	for (mine = 0; mine < a->keys.nr; mine++) {
		err = auth_mac(ops, a->keys.key[mine], AUTH_LABEL_SERVER, &a->t, mac);
		if (err)
			goto no_mac;
		for (which = 0; which < IBTRS_KEYS_PER_NAME; which++)
			if (!ops->differ(mac, w.mac[which], sizeof(mac)))
				goto prove;
	}
	*why = "the server does not prove that it has the key: it has none of that name loaded, or another one, or is not the server";
	return auth_fail(a, ops, -EKEYREJECTED);

prove:
	err = auth_mac(ops, a->keys.key[mine], AUTH_LABEL_CLIENT, &a->t, mac);
	err = err ?: auth_mac(ops, a->keys.key[mine], AUTH_LABEL_SESSION, &a->t, a->ks);
	if (err)
		goto no_mac;
	ibtrs_auth_proof_encode(out, which, mac);
	ops->wipe(&a->keys, sizeof(a->keys));
	a->state = IBTRS_AUTH_PROVED;
	return 0;

no_mac:
	*why = "the kernel cannot compute hmac(sha256)";
	return auth_fail(a, ops, err);
}

int ibtrs_auth_clt_verdict(struct ibtrs_auth *a, const void *buf, size_t len, char *text)
{
	int err = ibtrs_auth_verdict_decode(buf, len, text);

	if (!err && a->state != IBTRS_AUTH_PROVED)
		err = -EKEYREJECTED;
	a->state = err ? IBTRS_AUTH_FAILED : IBTRS_AUTH_IN;
	return err;
}

/* ---- the server --------------------------------------------------------- */

void ibtrs_auth_srv_init(struct ibtrs_auth *a, const void *req,
			 const struct ibtrs_wire_auth_rsp *rsp)
{
	memset(a, 0, sizeof(*a));
	memcpy(a->t.req, (const u8 *)req + AUTH_REQ_FROM, sizeof(a->t.req));
	memcpy(a->t.rsp, rsp, sizeof(a->t.rsp));
}

int ibtrs_auth_srv_hello(struct ibtrs_auth *a, const void *buf, size_t len, const char **why)
{
	struct ibtrs_wire_auth_hello w;

	*why = "a second attempt on one connection";
	if (a->state != IBTRS_AUTH_NEW || !ibtrs_auth_hello_decode(buf, len, &w, why)) {
		a->state = IBTRS_AUTH_FAILED;
		return -EKEYREJECTED;
	}
	memcpy(a->t.name, w.name, sizeof(a->t.name));
	memcpy(a->t.nonce_c, w.nonce, sizeof(a->t.nonce_c));
	a->state = IBTRS_AUTH_ASKED;
	return 0;
}

int ibtrs_auth_srv_challenge(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops,
			     const struct ibtrs_keys *keys, const u8 *nonce,
			     struct ibtrs_wire_auth_challenge *out)
{
	u8 mac[IBTRS_KEYS_PER_NAME][IBTRS_MAC_LEN];
	int err = 0;
	u32 i;

	if (a->state != IBTRS_AUTH_ASKED)
		return auth_fail(a, ops, -EKEYREJECTED);
	a->keys = *keys;
	memcpy(a->t.nonce_s, nonce, sizeof(a->t.nonce_s));
	for (i = 0; i < IBTRS_KEYS_PER_NAME && !err; i++)
		err = auth_mac(ops, a->keys.key[i], AUTH_LABEL_SERVER, &a->t, mac[i]);
	if (err)
		return auth_fail(a, ops, err);
	ibtrs_auth_challenge_encode(out, nonce, mac);
	a->state = IBTRS_AUTH_PROVED;
	return 0;
}

int ibtrs_auth_srv_proof(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops, const void *buf,
			 size_t len, const char **why)
{
	struct ibtrs_wire_auth_proof w;
	u8 mac[IBTRS_MAC_LEN];
	u32 which;
	int err;

	*why = "a proof where none is due";
	if (a->state != IBTRS_AUTH_PROVED || !ibtrs_auth_proof_decode(buf, len, &w, why))
		return auth_fail(a, ops, -EKEYREJECTED);
	which = le16_to_cpu(w.which);
	err = auth_mac(ops, a->keys.key[which], AUTH_LABEL_CLIENT, &a->t, mac);
	if (!err && (ops->differ(mac, w.mac, sizeof(mac)) || which >= a->keys.nr)) {
		*why = "the proof is wrong: the client has another key of that name, or none";
		return auth_fail(a, ops, -EKEYREJECTED);
	}
	err = err ?: auth_mac(ops, a->keys.key[which], AUTH_LABEL_SESSION, &a->t, a->ks);
	err = err ?: auth_mark(ops, a->keys.key[which], a->mark);
	if (err) {
		*why = "the kernel cannot compute hmac(sha256)";
		return auth_fail(a, ops, err);
	}
	ops->wipe(&a->keys, sizeof(a->keys));
	a->state = IBTRS_AUTH_IN;
	return 0;
}

bool ibtrs_auth_has_mark(const struct ibtrs_auth_ops *ops, const struct ibtrs_keys *keys,
			 const u8 *mark)
{
	u8 mac[IBTRS_MAC_LEN];
	u32 i;

	for (i = 0; i < keys->nr; i++)
		if (!auth_mark(ops, keys->key[i], mac) && !ops->differ(mac, mark, sizeof(mac)))
			return true;
	return false;
}

/* ---- each connection ---------------------------------------------------- */

/* The MAC of a CONN_REQ, or of the answer @rsp to it. Neither covers the MAC that it goes into. */
static int auth_conn_mac(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			 const void *rsp, u8 *mac)
{
	size_t end = rsp ? sizeof(struct ibtrs_wire_conn_req) :
			   offsetof(struct ibtrs_wire_conn_req, mac);
	const char *label = rsp ? AUTH_LABEL_RSP : AUTH_LABEL_REQ;
	const size_t l = strlen(label), n = end - AUTH_REQ_FROM;
	const size_t m = offsetof(struct ibtrs_wire_conn_rsp, mac);
	u8 text[AUTH_LABEL_MAX + sizeof(struct ibtrs_wire_conn_req) +
		offsetof(struct ibtrs_wire_conn_rsp, mac)];

	memcpy(text, label, l);
	memcpy(text + l, (const u8 *)req + AUTH_REQ_FROM, n);
	if (rsp)
		memcpy(text + l + n, rsp, m);
	return ops->hmac(ks, text, l + n + (rsp ? m : 0), mac);
}

int ibtrs_auth_req_sign(const struct ibtrs_auth_ops *ops, const u8 *ks,
			struct ibtrs_wire_conn_req *req)
{
	u8 mac[IBTRS_MAC_LEN];
	int err = auth_conn_mac(ops, ks, req, NULL, mac);

	if (!err)
		memcpy(req->mac, mac, sizeof(req->mac));
	return err;
}

bool ibtrs_auth_req_good(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req)
{
	u8 mac[IBTRS_MAC_LEN];

	return !auth_conn_mac(ops, ks, req, NULL, mac) &&
	       !ops->differ(mac, (const u8 *)req + offsetof(struct ibtrs_wire_conn_req, mac),
			    IBTRS_REQ_MAC_LEN);
}

int ibtrs_auth_rsp_sign(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			struct ibtrs_wire_conn_rsp *rsp)
{
	u8 mac[IBTRS_MAC_LEN];
	int err = auth_conn_mac(ops, ks, req, rsp, mac);

	if (!err)
		memcpy(rsp->mac, mac, sizeof(rsp->mac));
	return err;
}

bool ibtrs_auth_rsp_good(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			 const void *rsp)
{
	u8 mac[IBTRS_MAC_LEN];

	return !auth_conn_mac(ops, ks, req, rsp, mac) &&
	       !ops->differ(mac, (const u8 *)rsp + offsetof(struct ibtrs_wire_conn_rsp, mac),
			    IBTRS_RSP_MAC_LEN);
}

/* ---- each session ------------------------------------------------------- */

/*
 * A client without a key is its uuid. With a key it is a hash of uuid and name of the key, so two
 * clients with one uuid and different keys are not the same one. One bit says whether there is a
 * key: a client without one may choose any uuid, but never gets the identity of one with a key. If
 * it chooses a uuid with that bit, it is a hash of it, too: not the client whose uuid is the same
 * but for the bit. Nobody is the uuid of zeros, which stands for "nobody" where the last writer is
 * kept.
 */
int ibtrs_auth_identity(const struct ibtrs_auth_ops *ops, const u8 *uuid, const char *key,
			u8 *identity)
{
	static const u8 none[IBTRS_KEY_LEN];
	const size_t l = sizeof(AUTH_LABEL_IDENTITY) - 1;
	u8 text[sizeof(AUTH_LABEL_IDENTITY) - 1 + IBTRS_UUID_LEN + IBTRS_KEY_NAME_LEN] = {};
	u8 mac[IBTRS_MAC_LEN];
	int err;

	memcpy(identity, uuid, IBTRS_UUID_LEN);
	if (!key[0] && !(uuid[6] & AUTH_IDENTITY_KEYED)) {
		if (!memcmp(identity, none, IBTRS_UUID_LEN))
			identity[IBTRS_UUID_LEN - 1] = 1;
		return 0;
	}
	memcpy(text, AUTH_LABEL_IDENTITY, l);
	memcpy(text + l, uuid, IBTRS_UUID_LEN);
	memcpy(text + l + IBTRS_UUID_LEN, key, strlen(key));
	err = ops->hmac(none, text, sizeof(text), mac);
	if (err)
		return err;
	memcpy(identity, mac, IBTRS_UUID_LEN);
	identity[6] &= ~AUTH_IDENTITY_KEYED;
	if (key[0])
		identity[6] |= AUTH_IDENTITY_KEYED;
	return 0;
}
