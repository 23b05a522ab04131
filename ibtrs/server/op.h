/* SPDX-License-Identifier: GPL-2.0-only */
/* Ops: one for each path and slot, made with the path, used again and again. */
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
 * @conn: the request came over; so does its reply
 * @busy: between the arrival of a request and its reply. Written under the slot's lock. The one
 * that set it
 *	owns all below
 * @admitted: the slot's fence says running; to be told when the op ends
 * @invalidating: what it waits for on conn->wait is to post the LOCAL_INV, not the reply
 * @err: of the reply
 * @off: from the immediate
 * @token: of the request (F.2)
 * @desc: where a read's data go, if @has_desc
 * @wait: in conn->wait
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
void ibtrs_srv_op_free(struct ibtrs_srv_path *path);	/* idempotent */

/* A request arrived; the checks of the immediate are done. Completion context of @conn. */
void ibtrs_srv_op_begin(struct ibtrs_srv_conn *conn, u32 slot, u32 off);
/* With always_invalidate: its chunk is ours alone now. */
void ibtrs_srv_op_invalidated(struct ibtrs_srv_opx *x);

/*
 * The op is over as far as its slot is concerned: the client may use the slot again. Its content
 * stays until that happens. Any context.
 */
void ibtrs_srv_op_release(struct ibtrs_srv_opx *x);
/*
 * Take it back after a release, since the reply could not be posted. False: the client did not wait
 * for the reply.
 */
bool ibtrs_srv_op_reclaim(struct ibtrs_srv_opx *x);

/* Call @fn(@x) @ms from now, for a fault on demand. False: no memory. Any context. */
bool ibtrs_srv_op_later(struct ibtrs_srv_opx *x, void (*fn)(struct ibtrs_srv_opx *x), u32 ms);

/* Close work: those that wait for another execution of their slot will not run. */
void ibtrs_srv_op_unpark(struct ibtrs_srv_path *path);
/*
 * Does the user work on ops, and has the client given up what all of them are for? @slot: that of
 * the first one. On a path that is stopped.
 */
bool ibtrs_srv_op_only_given_up(const struct ibtrs_srv_path *path, u32 *slot);
/* The client is to give it up: it has no path to say so. */
void ibtrs_srv_op_give_up(const struct ibtrs_srv_path *path);
/* So it is: their slots are free for the session's other paths, as if they had ended. */
void ibtrs_srv_op_let_go(struct ibtrs_srv_path *path);
/* Is an op at or behind *@from busy? Moves *@from to it. Those before it are idle for good. */
bool ibtrs_srv_op_any_busy(const struct ibtrs_srv_path *path, u32 *from);

#endif
