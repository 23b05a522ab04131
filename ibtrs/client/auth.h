/* SPDX-License-Identifier: GPL-2.0-only */
/* Proving to the server that we have a key, and checking its proof in return (protocol.md 8.6). */
#ifndef IBTRS_CLIENT_AUTH_H
#define IBTRS_CLIENT_AUTH_H

#include <rdma/rdma_cm.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"

struct ibtrs_clt_path;

/**
 * struct ibtrs_clt_auth - the authentication of one attempt to connect
 * @a: used by handshake work, after ibtrs_clt_auth_prepare(); its ks also by CM events of the
 *	connections that follow
 * @rsp: private data of the answer; a CM event writes it, then queues the step that reads it
 * @len: length of each message that arrived; the completion writes it, then queues the step
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
/* Must the first connection of this attempt still authenticate? */
bool ibtrs_clt_auth_due(const struct ibtrs_clt_path *path);
/*
 * The route is resolved: create the QP, get the keys, post buffers, fill in the CM REQ @wire. CM
 * event. 0, or an errno and @why.
 */
int ibtrs_clt_auth_prepare(struct ibtrs_clt_path *path, struct ibtrs_wire_auth_req *wire,
			   const char **why);
/* The server accepted the connection: queue a step. CM event. */
int ibtrs_clt_auth_established(struct ibtrs_clt_path *path, const struct rdma_conn_param *param,
			       const char **why);
/*
 * Handshake work. Return: 1: both sides have proved that they have the key, the path may be set up;
 * 0: wait for the next step; an errno and @why. If the server refused, it returns 0, and the path
 * fails.
 */
int ibtrs_clt_auth_step(struct ibtrs_clt_path *path, const char **why);

/* Free the buffers of the exchange, when no message of it can arrive any more. Idempotent. */
void ibtrs_clt_auth_free(struct ibtrs_clt_path *path);
/* Wipe the keys, when all connections are established or the attempt has ended. Idempotent. */
void ibtrs_clt_auth_forget(struct ibtrs_clt_path *path);

#endif
