/* SPDX-License-Identifier: GPL-2.0-only */
/* Proving to the server that we have a key, and having it prove the same (protocol.md 8.6). */
#ifndef IBTRS_CLIENT_AUTH_H
#define IBTRS_CLIENT_AUTH_H

#include <rdma/rdma_cm.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/iu.h"
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"

struct ibtrs_clt_path;

/**
 * struct ibtrs_clt_auth - of one attempt to connect
 * @a: handshake work, after ibtrs_clt_auth_prepare(); its ks also by CM events of the connections
 *	that follow
 * @rsp: private data of the answer, from a CM event before the step that it makes due
 * @len: of what arrived, likewise
 * @why: words that name the key
 */
struct ibtrs_clt_auth {
	struct ibtrs_auth a;
	u8 rsp[sizeof(struct ibtrs_wire_auth_rsp)];
	struct ibtrs_iu in[IBTRS_AUTH_MSGS];
	struct ibtrs_iu out[IBTRS_AUTH_MSGS];
	u32 len[IBTRS_AUTH_MSGS];
	char why[96 + IBTRS_KEY_NAME_LEN];
};

/* Does this session authenticate? Any context. */
bool ibtrs_clt_auth_wanted(const struct ibtrs_clt_path *path);
/* Is the first connection of this attempt still the one that brings the proof? */
bool ibtrs_clt_auth_due(const struct ibtrs_clt_path *path);
/* An attempt begins. Path work. */
void ibtrs_clt_auth_begin(struct ibtrs_clt_path *path);

/* How large the queues of such a connection are. */
struct ibtrs_conn_caps ibtrs_clt_auth_caps(void);
/* Its QP is there: keys, buffers, what to say in the CM REQ. CM event. 0, or an errno and @why. */
int ibtrs_clt_auth_prepare(struct ibtrs_clt_path *path, struct ibtrs_wire_auth_req *wire,
			   const char **why);
/* The server let it in: a step is due. CM event. */
int ibtrs_clt_auth_established(struct ibtrs_clt_path *path, const struct rdma_conn_param *param,
			       const char **why);
/*
 * Handshake work. Return: 1: both sides have proved it, the path may be set up; 0: wait for the
 * next; an errno and @why. Refused by the server is 0, and the path fails.
 */
int ibtrs_clt_auth_step(struct ibtrs_clt_path *path, const char **why);

/* Put the proof into a CONN_REQ; is there one in the answer? CM events. */
int ibtrs_clt_auth_sign(struct ibtrs_clt_path *path, struct ibtrs_wire_conn_req *wire);
bool ibtrs_clt_auth_good(const struct ibtrs_clt_path *path,
			 const struct ibtrs_wire_conn_req *wire, const void *rsp);

/* Nothing of the exchange can arrive any more: its buffers. Idempotent. */
void ibtrs_clt_auth_free(struct ibtrs_clt_path *path);
/* All connections are there, or the attempt is over: its keys. Idempotent. */
void ibtrs_clt_auth_forget(struct ibtrs_clt_path *path);

#endif
