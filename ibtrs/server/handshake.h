/* SPDX-License-Identifier: GPL-2.0-only */
/* The listeners, and from a CONN_REQ to a connection. */
#ifndef IBTRS_SERVER_HANDSHAKE_H
#define IBTRS_SERVER_HANDSHAKE_H

#include <rdma/rdma_cm.h>
#include "ibtrs/server/session.h"

struct ibtrs_srv_knock;

int ibtrs_srv_handshake_start(u16 port);
/* When it returns, no connection request is being handled any more. Idempotent. */
void ibtrs_srv_handshake_stop(void);

/* knock.c: a connection that is used only for authentication. */

/*
 * A client at @peer wants to prove that it has a key: @req is what it said, @wire its bytes. *@out
 * is set when @id belongs to the new knock, which can be so after an error, too: the caller then
 * rejects @id and calls ibtrs_srv_knock_end(). CM event. 0, or an errno and words for a refusal.
 */
int ibtrs_srv_knock(struct rdma_cm_id *id, const struct ibtrs_auth_req *req, const void *wire,
		    const struct ibtrs_addr *peer, struct ibtrs_srv_knock **out, const char **why);
/* Begins the end of @k; does not wait. Any context. */
void ibtrs_srv_knock_end(struct ibtrs_srv_knock *k);
/* The listeners are gone: ends all knocks and waits for them. */
void ibtrs_srv_knock_end_all(void);

/* admit.c: admission: the server's decision about a CONN_REQ. */

/*
 * Finds, or makes, the place of a connection. @req is not trusted yet, a proof in it covers @wire.
 * *@out: on success the connection, taken, with its lock held. The first connection of a path makes
 * the path; the first path of a session makes the session. Process context; takes ibtrs_srv.lock.
 * 0, or an errno and words for a refusal; -EBUSY: try again, the old incarnation is draining.
 */
int ibtrs_srv_admit(const struct ibtrs_conn_req *req, const void *wire,
		    const struct ibtrs_addr_pair *addr, struct ibtrs_srv_conn **out,
		    const char **why);

/* path_run.c: the works of a path, and its memory. */

/* A path in state connecting, not yet on a list. NULL: no memory. */
struct ibtrs_srv_path *ibtrs_srv_path_alloc(struct ibtrs_srv_session *session,
					    const struct ibtrs_conn_req *req,
					    const struct ibtrs_addr_pair *addr,
					    const struct ibtrs_srv_proof *proof);

/* info.c: INFO_REQ: a path that has all its connections becomes one that carries requests. */

void ibtrs_srv_info_work(struct work_struct *work);	/* the work @info_work of a path */
/* Post the buffer for INFO_REQ on cid 0, before it is accepted. 0 or an errno. Sleeps. */
int ibtrs_srv_info_expect(struct ibtrs_srv_path *path);

/* rx.c: receives on a connection, after INFO_REQ. */

/* How many empty receives a connection wants. */
u32 ibtrs_srv_rx_depth(const struct ibtrs_srv_conn *conn);
/* Post them. */
int ibtrs_srv_rx_start(struct ibtrs_srv_conn *conn);
void ibtrs_srv_rx_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
