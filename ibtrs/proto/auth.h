/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The messages of a connection on which client and server prove that they have a key (protocol.md
 * 8.6). Decoders return true, or false and a reason. logic/auth decides what the messages mean.
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

/* Is the private data of a CM REQ an AUTH_REQ? If not, it is a CONN_REQ, or not ours. */
bool ibtrs_auth_req_is(const void *buf, size_t len);
void ibtrs_auth_req_encode(struct ibtrs_wire_auth_req *w, const struct ibtrs_auth_req *m);
/* @m->ext is valid after a refusal, too. */
bool ibtrs_auth_req_decode(const void *buf, size_t len, struct ibtrs_auth_req *m,
			   const char **why);
void ibtrs_auth_rsp_encode(struct ibtrs_wire_auth_rsp *w);
bool ibtrs_auth_rsp_decode(const void *buf, size_t len, const char **why);

void ibtrs_auth_hello_encode(struct ibtrs_wire_auth_hello *w, const char *name, const u8 *nonce);
/* After true, @w->name is a valid name and ends with a NUL. */
bool ibtrs_auth_hello_decode(const void *buf, size_t len, struct ibtrs_wire_auth_hello *w,
			     const char **why);
/* @macs: the two MACs, one behind the other. */
void ibtrs_auth_challenge_encode(struct ibtrs_wire_auth_challenge *w, const u8 *nonce,
				 const void *macs);
bool ibtrs_auth_challenge_decode(const void *buf, size_t len, struct ibtrs_wire_auth_challenge *w,
				 const char **why);
void ibtrs_auth_proof_encode(struct ibtrs_wire_auth_proof *w, u16 which, const u8 *mac);
/* @w->which is 0 or 1. */
bool ibtrs_auth_proof_decode(const void *buf, size_t len, struct ibtrs_wire_auth_proof *w,
			     const char **why);
/* Is the message a verdict? ibtrs_auth_verdict_decode() returns what it says. */
bool ibtrs_auth_verdict_is(const void *buf, size_t len);
/*
 * Return: 0 or a negative errno. @text: result, the words of the server, %IBTRS_WORDS_LEN bytes,
 * printable and terminated.
 */
int ibtrs_auth_verdict_decode(const void *buf, size_t len, char *text);

#endif
