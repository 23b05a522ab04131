/* SPDX-License-Identifier: GPL-2.0-only */
/* Posts the reply of an op, and before it the invalidation of its chunk. */
#ifndef IBTRS_SERVER_REPLY_H
#define IBTRS_SERVER_REPLY_H

#include "ibtrs/server/op.h"

#define IBTRS_SRV_REPLY_WR	4	/* the longest chain */

/*
 * Posts the reply with x->err, now or when there is room; if the path is not connected, the op ends
 * without a reply. Any context.
 */
void ibtrs_srv_reply(struct ibtrs_srv_opx *x);
/* Post the LOCAL_INV of the chunk of @x, now or when there is room. Completion context. */
void ibtrs_srv_reply_invalidate(struct ibtrs_srv_opx *x);
/* There is room again: posts what waits on @conn. Any context. */
void ibtrs_srv_reply_kick(struct ibtrs_srv_conn *conn);
/* Close work: ends the ops that wait for room on @conn. */
void ibtrs_srv_reply_drop(struct ibtrs_srv_conn *conn);
/*
 * Does the send queue of @conn move? Called once per heartbeat interval. If the queue does not move
 * for hb_misses intervals, plus the least time that its data need, the path is closed.
 */
void ibtrs_srv_reply_check(struct ibtrs_srv_conn *conn);
void ibtrs_srv_reply_probe_done(struct ib_cq *cq, struct ib_wc *wc);
void ibtrs_srv_reply_send_done(struct ib_cq *cq, struct ib_wc *wc);
void ibtrs_srv_reply_inv_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
