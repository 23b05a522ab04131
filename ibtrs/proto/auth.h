/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The messages of a connection that brings a proof (protocol.md 8.6). Decoders return true, or a
 * reason; what they are about is logic/auth's.
 */
#ifndef IBTRS_PROTO_AUTH_H
#define IBTRS_PROTO_AUTH_H

#include "ibtrs/proto/wire.h"

#define IBTRS_AUTH_MSGS		2	/* in each direction */
#define IBTRS_AUTH_MSG_MAX	256	/* bytes; a longer one breaks the connection */

struct ibtrs_auth_req {
	u16 recon_cnt;
	u8 ext;				/* WORDS, or 0 */
	u8 path_uuid[IBTRS_UUID_LEN];
	u8 session_uuid[IBTRS_UUID_LEN];
};

/* Does a CM REQ bring AUTH_REQ? Else it is a CONN_REQ, or nothing. */
bool ibtrs_auth_req_is(const void *buf, size_t len);
void ibtrs_auth_req_encode(struct ibtrs_wire_auth_req *w, const struct ibtrs_auth_req *m);
/* @m->ext counts after a refusal, too. */
bool ibtrs_auth_req_decode(const void *buf, size_t len, struct ibtrs_auth_req *m,
			   const char **why);
void ibtrs_auth_rsp_encode(struct ibtrs_wire_auth_rsp *w);
bool ibtrs_auth_rsp_decode(const void *buf, size_t len, const char **why);

void ibtrs_auth_hello_encode(struct ibtrs_wire_auth_hello *w, const char *name, const u8 *nonce);
/* @w->name ends with a NUL and holds nothing but a name. */
bool ibtrs_auth_hello_decode(const void *buf, size_t len, struct ibtrs_wire_auth_hello *w,
			     const char **why);
/* @macs: both, one behind the other. */
void ibtrs_auth_challenge_encode(struct ibtrs_wire_auth_challenge *w, const u8 *nonce,
				 const void *macs);
bool ibtrs_auth_challenge_decode(const void *buf, size_t len, struct ibtrs_wire_auth_challenge *w,
				 const char **why);
void ibtrs_auth_proof_encode(struct ibtrs_wire_auth_proof *w, u16 which, const u8 *mac);
/* @w->which is 0 or 1. */
bool ibtrs_auth_proof_decode(const void *buf, size_t len, struct ibtrs_wire_auth_proof *w,
			     const char **why);
void ibtrs_auth_verdict_encode(struct ibtrs_wire_auth_verdict *w, int err, const char *text);
/* Is it one? What it says, ibtrs_auth_verdict_decode() tells. */
bool ibtrs_auth_verdict_is(const void *buf, size_t len);
/* 0, or a negative errno and words, %IBTRS_WORDS_LEN bytes, printable and terminated. */
int ibtrs_auth_verdict_decode(const void *buf, size_t len, char *text);

#endif
