/* SPDX-License-Identifier: GPL-2.0-only */
/* Ops: one for each path and slot, allocated with the path's chunks and reused for each request. */
#ifndef IBTRS_SERVER_OP_H
#define IBTRS_SERVER_OP_H

#include <linux/list.h>
#include <linux/workqueue.h>
#include "ibtrs/server/session.h"

/* longest user header that is served; block messages need 264 */
#define IBTRS_SRV_USR_HDR_MAX	512

/**
 * struct ibtrs_srv_opx - an op, and what only the transport sees of it
 * @op: what the user sees; session, data, priv are constant
 * @path: constant, as are @slot and @dma
 * @conn: connection that the request came over and the reply is sent over
 * @busy: true from the arrival of a request to its reply. Written under the slot's lock. The
 *	context that set it owns all fields below
 * @admitted: the slot's fence counts this op as running, and must be told when the op ends
 * @invalidating: while on conn->wait: the LOCAL_INV is to be posted, not the reply
 * @err: result that the reply carries
 * @off: offset in the chunk, from the immediate
 * @token: of the request (protocol 8.2)
 * @desc: where the data of a read are written to, if @has_desc
 * @wait: entry in conn->wait
 * @mr: of the chunk, with always_invalidate
 */
struct ibtrs_srv_opx {
	struct ibtrs_srv_op op;
	struct ibtrs_srv_path *path;
	struct ibtrs_srv_conn *conn;
	u64 dma;
	u32 slot;
	bool busy;
	bool admitted;
	bool invalidating;
	bool need_inval;
	bool has_desc;
	int err;
	u32 off;
	u64 token;
	struct ibtrs_desc desc;
	struct list_head wait;
	struct ib_mr *mr;
	struct ib_cqe inv_cqe;
	struct work_struct work;
	u8 hdr[IBTRS_SRV_USR_HDR_MAX] __aligned(8);
	u8 priv[] __aligned(8);
};

static inline struct ibtrs_srv_opx *ibtrs_srv_op_at(const struct ibtrs_srv_path *path, u32 slot)
{
	return path->ops + slot * path->op_stride;
}

static inline struct ibtrs_srv_slot *ibtrs_srv_op_slot(const struct ibtrs_srv_opx *x)
{
	return &x->path->session->slots[x->slot];
}

int ibtrs_srv_op_alloc(struct ibtrs_srv_path *path);	/* after ibtrs_srv_chunk_map() */

/* A request arrived; the checks of the immediate are done. Completion context of @conn. */
void ibtrs_srv_op_begin(struct ibtrs_srv_conn *conn, u32 slot, u32 off);
/* With always_invalidate: the client can no longer write to the op's chunk. Decode the request. */
void ibtrs_srv_op_invalidated(struct ibtrs_srv_opx *x);

/*
 * Ends the op for its slot: the client may use the slot again. The op's fields stay as they are
 * until the client does so. Any context.
 */
void ibtrs_srv_op_release(struct ibtrs_srv_opx *x);
/* The same, without an answer, outside an RCU read section: the path of @x is closing. */
void ibtrs_srv_op_drop(struct ibtrs_srv_opx *x);
/*
 * Makes the op busy without asking the fence: for a request that is refused, or whose chunk is
 * invalidated first; or again after a release, because its reply could not be posted. False: it is
 * busy already: the client has used the slot without waiting for the reply, so its path is closed.
 * Any context.
 */
bool ibtrs_srv_op_take(struct ibtrs_srv_opx *x);

/* Injected fault: calls @fn(@x) in @ms milliseconds. False: no memory. Any context. */
bool ibtrs_srv_op_later(struct ibtrs_srv_opx *x, void (*fn)(struct ibtrs_srv_opx *x), u32 ms);

/*
 * @x has been given up, and its path is closing: it leaves its slot, as if it had ended, so that
 * the session's other paths can use the slot.
 */
void ibtrs_srv_op_let_go(struct ibtrs_srv_opx *x);

/* reply.c: posts the reply of an op, and before it the invalidation of its chunk. */

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
