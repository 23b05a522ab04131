/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's side of authentication, except the exchange of messages (knock.c). */
#ifndef IBTRS_SERVER_AUTH_H
#define IBTRS_SERVER_AUTH_H

#include <ibtrs/key.h>
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/server/server.h"

struct ibtrs_auth;
struct ibtrs_srv_path;
struct ibtrs_srv_session;

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

/* Adds one to auth_failures. Any context. */
void ibtrs_srv_auth_failed(void);
/* Counts what became of who has @key, or says that it has; empty: nobody. Sleeps. */
void ibtrs_srv_auth_count(const char *key, bool let_in);

/* Kinds of lines, each with limits of its own. */
enum ibtrs_srv_line {
	IBTRS_SRV_LINE_REFUSED,		/* a connection was */
	IBTRS_SRV_LINE_AUTH,		/* authentication failed */
	IBTRS_SRV_LINE_PATH,		/* a path is up, or was refused by its name */
	IBTRS_SRV_LINES
};

/* May the log have another line about @peer? */
bool ibtrs_srv_auth_may_log(enum ibtrs_srv_line line, const struct ibtrs_addr *peer);

/*
 * A client at @peer has proved its key in @a, and is about to set up the path of @req. The grant is
 * good once, for half a minute. Sleeps. 0 or -ENOMEM.
 */
int ibtrs_srv_auth_grant(const struct ibtrs_auth_req *req, const struct ibtrs_addr *peer,
			 const struct ibtrs_auth *a);
/*
 * May this CONN_REQ, of cid 0 or without AUTH, be looked at? Called before its session or path is
 * looked up. Wipe @proof after use. Sleeps. 0; -EACCES: no client is let in without a proof;
 * -EKEYREJECTED: it has none, or a wrong one.
 */
int ibtrs_srv_auth_first(const struct ibtrs_conn_req *req, const void *wire,
			 const struct ibtrs_addr *peer, struct ibtrs_srv_proof *proof,
			 const char **why);
/*
 * Does the proof of a path that is about to be let in still count? Nothing reports that a key was
 * removed or replaced, so its name is looked up again. Sleeps. 0: nothing was proved, or the key is
 * loaded; -EKEYREJECTED.
 */
int ibtrs_srv_auth_still(const struct ibtrs_srv_proof *proof, const char **why);
/* Is this CONN_REQ, of another cid and with AUTH, from the client that has set up @path? */
bool ibtrs_srv_auth_next(const struct ibtrs_srv_path *path, const void *wire);
/* The server closes: drops all grants. */
void ibtrs_srv_auth_forget_all(void);

#endif
