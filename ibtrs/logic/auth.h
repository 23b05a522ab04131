/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Authentication (protocol.md 8.6): both sides of the exchange, what it is about (the transcript),
 * and the proofs that each connection of a path carries afterwards. Pure: HMAC-SHA-256, comparing
 * in constant time and wiping are given by the caller, randomness is an argument.
 */
#ifndef IBTRS_LOGIC_AUTH_H
#define IBTRS_LOGIC_AUTH_H

#include <ibtrs/key.h>
#include "ibtrs/proto/wire.h"

/**
 * struct ibtrs_auth_ops - what pure code can not do
 * @hmac: HMAC-SHA-256 with a key of %IBTRS_KEY_LEN bytes; 0, or an errno
 * @differ: are @len bytes different? In a time that does not depend on where
 * @wipe: forget them, whatever the compiler thinks of it
 */
struct ibtrs_auth_ops {
	int (*hmac)(const u8 *key, const void *data, size_t len, u8 *mac);
	bool (*differ)(const void *a, const void *b, size_t len);
	void (*wipe)(void *data, size_t len);
};

/* The keys of one name: key[0] is the present one, key[1] the next. */
struct ibtrs_keys {
	u32 nr;				/* that are there, from key[0] */
	u8 key[IBTRS_KEYS_PER_NAME][IBTRS_KEY_LEN];
};

/* Nothing but bytes: this is what the MACs are about. */
struct ibtrs_auth_transcript {
	u8 req[sizeof(struct ibtrs_wire_auth_req) - 2];	/* without what the CM overwrites */
	u8 rsp[sizeof(struct ibtrs_wire_auth_rsp)];
	u8 name[IBTRS_KEY_NAME_LEN];
	u8 nonce_c[IBTRS_NONCE_LEN];
	u8 nonce_s[IBTRS_NONCE_LEN];
};
static_assert(sizeof(struct ibtrs_auth_transcript) == 238, "transcript");

enum ibtrs_auth_state {
	IBTRS_AUTH_NEW,
	IBTRS_AUTH_ASKED,	/* client: HELLO is made; server: it was good, keys are due */
	IBTRS_AUTH_PROVED,	/* client: PROOF is made; server: CHALLENGE is made */
	IBTRS_AUTH_IN,		/* both have proved that they have the key */
	IBTRS_AUTH_FAILED,
};

/**
 * struct ibtrs_auth - one attempt, seen by one side
 * @keys: of the name; wiped when the attempt has ended
 * @ks: the session key, good in state IN (client: from PROVED on); ibtrs_auth_end() wipes it
 */
struct ibtrs_auth {
	enum ibtrs_auth_state state;
	struct ibtrs_auth_transcript t;
	struct ibtrs_keys keys;
	u8 ks[IBTRS_KEY_LEN];
};

void ibtrs_auth_end(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops);

/* The client, in this order. */
void ibtrs_auth_clt_init(struct ibtrs_auth *a, const struct ibtrs_wire_auth_req *req,
			 const char *name, const struct ibtrs_keys *keys);
int ibtrs_auth_clt_hello(struct ibtrs_auth *a, const void *rsp, size_t len, const u8 *nonce,
			 struct ibtrs_wire_auth_hello *out, const char **why);
int ibtrs_auth_clt_challenge(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops,
			     const void *buf, size_t len, struct ibtrs_wire_auth_proof *out,
			     const char **why);
int ibtrs_auth_clt_verdict(struct ibtrs_auth *a, const void *buf, size_t len, char *text);

/* The server, in this order. */
void ibtrs_auth_srv_init(struct ibtrs_auth *a, const void *req,
			 const struct ibtrs_wire_auth_rsp *rsp);
int ibtrs_auth_srv_hello(struct ibtrs_auth *a, const void *buf, size_t len, const char **why);
int ibtrs_auth_srv_challenge(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops,
			     const struct ibtrs_keys *keys, const u8 *nonce,
			     struct ibtrs_wire_auth_challenge *out);
int ibtrs_auth_srv_proof(struct ibtrs_auth *a, const struct ibtrs_auth_ops *ops, const void *buf,
			 size_t len, const char **why);

/* Each connection of the path. Errors are those of ops->hmac. */
int ibtrs_auth_req_sign(const struct ibtrs_auth_ops *ops, const u8 *ks,
			struct ibtrs_wire_conn_req *req);
bool ibtrs_auth_req_good(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req);
int ibtrs_auth_rsp_sign(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			struct ibtrs_wire_conn_rsp *rsp);
bool ibtrs_auth_rsp_good(const struct ibtrs_auth_ops *ops, const u8 *ks, const void *req,
			 const void *rsp);

#endif
