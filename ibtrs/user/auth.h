/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Who has the key (protocol 8.6): both sides. What the messages mean says ibtrs/logic/auth.h. */
#ifndef IBTRS_USER_AUTH_H
#define IBTRS_USER_AUTH_H

#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/user/libibtrs.h"
#include "ibtrs/user/verbs.h"

struct ibtrs_clt;
struct ibtrs_clt_conn;
struct ibtrs_clt_path;
struct ibtrs_srv;
struct ibtrs_srv_conn;

extern const struct ibtrs_auth_ops ibtrs_auth_user;

/* Sends a message of authentication, or what comes before it, as @wr. 0, or an errno and @why. */
int ibtrs_auth_say(struct ibtrs_qp *qp, struct ibtrs_wr *wr, u16 op, const void *data, size_t len,
		   const char **why);

/* ---- auth.c: a client --------------------------------------------------- */

/* Its keys, from its options. 0, or -EINVAL and @why. */
int ibtrs_clt_auth_init(struct ibtrs_clt *clt, const char **why);
/* Fills in AUTH_REQ. */
void ibtrs_clt_auth_begin(struct ibtrs_clt_path *path, struct ibtrs_wire_auth_req *w);
/*
 * A message on the connection of the exchange. Return: 1: both have proved it, the path may be set
 * up; 0: an answer is under way; an errno and @why, which names the key.
 */
int ibtrs_clt_auth_message(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc,
			   char why[IBTRS_WHY_LEN]);

/* ---- srvauth.c: a server ------------------------------------------------ */

/**
 * struct ibtrs_srv_proof - who a path belongs to
 * @key: name of the key that was proved; empty: nothing has been proved
 * @ks: session key of the exchange; the path's other connections make their proofs with it
 * @mark: of the key, see ibtrs_auth_has_mark()
 */
struct ibtrs_srv_proof {
	char key[IBTRS_KEY_NAME_LEN];
	u8 ks[IBTRS_KEY_LEN];
	u8 mark[IBTRS_MAC_LEN];
};

/* The first message of a connection is AUTH_REQ. Not 0: it is to be refused. */
int ibtrs_srv_knock(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc, u8 *ext,
		    const char **why);
void ibtrs_srv_knock_message(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc);
/* Its time is over: it says what it had to wait with, or ends. */
void ibtrs_srv_knock_timer(struct ibtrs_srv_conn *conn);
void ibtrs_srv_knock_free(struct ibtrs_srv_conn *conn);
/**
 * ibtrs_srv_auth_first() - may this CONN_REQ, of cid 0 or without AUTH, be looked at?
 * @wire: its bytes
 * @proof: result; wipe it after use
 *
 * Return: 0; -EACCES: no client is let in without a proof; -EKEYREJECTED: it has none, or a wrong
 * one.
 */
int ibtrs_srv_auth_first(struct ibtrs_srv_conn *conn, const struct ibtrs_conn_req *req,
			 const void *wire, struct ibtrs_srv_proof *proof, const char **why);
/* Does a proof still count? 0, or -EKEYREJECTED: its key is not there any more. */
int ibtrs_srv_auth_still(const struct ibtrs_srv *srv, const struct ibtrs_srv_proof *proof,
			 const char **why);
/* The keys that TLS of a stream may have (ibtrs_tls_ask); @priv is the server. */
int ibtrs_srv_tls_keys(void *priv, const char *name, struct ibtrs_keys *keys);
/* A proof on a stream that others can read and change is none. 0, or -EKEYREJECTED. */
int ibtrs_srv_auth_bare(const struct ibtrs_srv_conn *conn, const char **why);
/* Drops all grants. */
void ibtrs_srv_auth_forget_all(struct ibtrs_srv *srv);

#endif
