/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Authentication (protocol.md 8.6): both sides of the exchange, the transcript that its MACs cover,
 * and the proofs that each connection of a path carries afterwards. Pure: the caller provides
 * HMAC-SHA-256, the comparison in constant time and the wiping; random bytes are arguments.
 */
#ifndef IBTRS_LOGIC_AUTH_H
#define IBTRS_LOGIC_AUTH_H

#include <ibtrs/addr.h>
#include <ibtrs/key.h>
#include "ibtrs/proto/wire.h"

/**
 * struct ibtrs_auth_ops - what the caller does for this pure code
 * @hmac: HMAC-SHA-256 with a key of %IBTRS_KEY_LEN bytes; 0, or an errno
 * @differ: do @len bytes differ? The time it takes does not depend on where they differ
 * @wipe: overwrite @len bytes in a way that the compiler cannot optimize away
 */
struct ibtrs_auth_ops {
	int (*hmac)(const u8 *key, const void *data, size_t len, u8 *mac);
	bool (*differ)(const void *a, const void *b, size_t len);
	void (*wipe)(void *data, size_t len);
};

/* The keys of one name: key[0] is the present one, key[1] the next. */
struct ibtrs_keys {
	u32 nr;				/* keys that exist, from key[0] on */
	u8 key[IBTRS_KEYS_PER_NAME][IBTRS_KEY_LEN];
};

/* Only bytes, so without padding: the MACs are made over this struct. */
struct ibtrs_auth_transcript {
	u8 req[sizeof(struct ibtrs_wire_auth_req) - 2];	/* without what the CM overwrites */
	u8 rsp[sizeof(struct ibtrs_wire_auth_rsp)];
	u8 name[IBTRS_KEY_NAME_LEN];
	u8 nonce_c[IBTRS_NONCE_LEN];
	u8 nonce_s[IBTRS_NONCE_LEN];
	/* GIDs of both ends, which each side sets behind its init */
	u8 client[IBTRS_GID_LEN];
	u8 server[IBTRS_GID_LEN];
};
static_assert(sizeof(struct ibtrs_auth_transcript) == 270, "transcript");

enum ibtrs_auth_state {
	IBTRS_AUTH_NEW,
	IBTRS_AUTH_ASKED,	/* client: HELLO is made; server: HELLO was good, needs keys */
	IBTRS_AUTH_PROVED,	/* client: PROOF is made; server: CHALLENGE is made */
	IBTRS_AUTH_IN,		/* both have proved that they have the key */
	IBTRS_AUTH_FAILED,
};

/**
 * struct ibtrs_auth - one attempt, seen by one side
 * @keys: keys of the name; wiped when no step needs them any more
 * @ks: the session key, valid in state IN (client: from PROVED on); ibtrs_auth_end() wipes it
 * @mark: server, state IN: of the key that the client has proved, see ibtrs_auth_has_mark()
 */
struct ibtrs_auth {
	enum ibtrs_auth_state state;
	struct ibtrs_auth_transcript t;
	struct ibtrs_keys keys;
	u8 ks[IBTRS_KEY_LEN];
	u8 mark[IBTRS_MAC_LEN];
};

/*
 * What returns an int returns 0, -EKEYREJECTED with a reason in @why, or an errno of ops->hmac.
 * Each step but the first needs the state that the step before it has left.
 */

/* Forgets all keys of an attempt, in any state. */
void ibtrs_auth_end(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops);

/* The client calls these in this order. */

/* @req: what the client says in the CM REQ. @keys: those of @name, at least one. */
void ibtrs_auth_clt_init(struct ibtrs_auth *a, const struct ibtrs_wire_auth_req *req,
			 const char *name, const struct ibtrs_keys *keys);
/* The server accepted the connection, with @rsp in the CM REP. @nonce: random bytes. */
int ibtrs_auth_clt_hello(struct ibtrs_auth *a, const void *rsp, size_t len, const u8 *nonce,
			 struct ibtrs_wire_auth_hello *out, const char **why);
/* Checks the server's proof, then makes ours. */
int ibtrs_auth_clt_challenge(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops,
			     const void *buf, size_t len, struct ibtrs_wire_auth_proof *out,
			     const char **why);
/*
 * Does the server let us in? @text: its words, %IBTRS_WORDS_LEN bytes. A server that has found that
 * its keys do not match ours also sends this message. 0, or a negative errno.
 */
int ibtrs_auth_clt_verdict(struct ibtrs_auth *a, const void *buf, size_t len, char *text);

/* The server calls these in this order. */

/* @req: AUTH_REQ, which its decoder has accepted. @rsp: what the server says in the CM REP. */
void ibtrs_auth_srv_init(struct ibtrs_auth *a, const void *req,
			 const struct ibtrs_wire_auth_rsp *rsp);
/* Which key does the client name? On success a->t.name is its name. */
int ibtrs_auth_srv_hello(struct ibtrs_auth *a, const void *buf, size_t len, const char **why);
/*
 * Proves that we have the key. @keys: of its name; missing ones are random bytes, so that no client
 * can find out which names exist. @nonce: random bytes.
 */
int ibtrs_auth_srv_challenge(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops,
			     const struct ibtrs_keys *keys, const u8 *nonce,
			     struct ibtrs_wire_auth_challenge *out);
/* Checks the client's proof. On success a->ks is the session key, a->mark that of the key. */
int ibtrs_auth_srv_proof(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops, const void *buf,
			 size_t len, const char **why);

/*
 * Is the key that was proved, which has @mark, still one of its name? A key that was removed, or
 * replaced, is worth nothing from then on, also if its proof is older.
 */
bool ibtrs_auth_has_mark(const struct ibtrs_auth_ops *ops, const struct ibtrs_keys *keys,
			 const u8 *mark);

/*
 * Each connection of the path: a proof made with @ks, key of the session, is put into a CONN_REQ
 * that offers AUTH, or into the answer to it, and checked in one that its decoder has accepted.
 */
int ibtrs_auth_req_sign(const struct ibtrs_auth_ops *ops, const u8 *ks,
			struct ibtrs_wire_conn_req *req);
bool ibtrs_auth_req_good(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req);
int ibtrs_auth_rsp_sign(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			struct ibtrs_wire_conn_rsp *rsp);
bool ibtrs_auth_rsp_good(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			 const void *rsp);

/* Which client it is. @uuid: of its session. @key: name of the key that it has proved, or "". */
int ibtrs_auth_identity(const struct ibtrs_auth_ops *ops, const u8 *uuid, const char *key,
			u8 *identity);

#endif
