/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * A connection as client and server see it: what a reliable QP does, and who provides it.
 *
 * Owners post work requests and poll completions of what the peer sent. Work requests take effect
 * in the order in which they were posted. A WRITE goes to the memory that its key names; anything
 * else breaks the connection. There are two providers: the stream (stream.c) does it in software
 * over a socket, rdma (rdma.c) leaves it to an adapter.
 *
 * No locking: the owner of a connection calls with its own lock held.
 */
#ifndef IBTRS_USER_VERBS_H
#define IBTRS_USER_VERBS_H

#include <sys/uio.h>
#include <ibtrs/addr.h>
#include "ibtrs/proto/msg.h"
#include "ibtrs/user/frame.h"

/* Extensions that both ends have; AUTH is one only for a client that has proved a key. */
#define IBTRS_USER_EXT		(IBTRS_EXT_FENCE | IBTRS_EXT_EVENTS | IBTRS_EXT_TRIAL | \
				 IBTRS_EXT_WORDS | IBTRS_EXT_AUTH)
#define IBTRS_USER_IO_MIN	4096u	/* of max_io_size, protocol 2.3 */

/**
 * struct ibtrs_region - memory that a peer may write to
 * @addr: the address that the peer knows @base by; not its own, so a peer learns no pointers
 * @key: 0: none
 * @mr: the provider's own
 */
struct ibtrs_region {
	u8 *base;
	u32 len;
	u32 key;
	u64 addr;
	u16 gen;
	void *mr;
};

struct ibtrs_regions {
	struct ibtrs_region *v;
	bool locked;			/* the provider keeps their pages where they are */
	u32 nr;				/* at most 65536: half of a stream's key is the index */
};

#define IBTRS_WR_OPS	3		/* of an answer with NEED_INVAL */
#define IBTRS_WR_IOVS	4		/* frame, data, two headers; or three frames, data */
/* A frame and a verdict with words; an answer has three frames, a request one and its header. */
#define IBTRS_WR_ROOM	(IBTRS_FRAME_LEN + sizeof(struct ibtrs_wire_verdict))
static_assert(sizeof(struct ibtrs_wire_verdict) >=
	      IBTRS_WHERE_MAX * sizeof(struct ibtrs_wire_where), "room of an answer to WHERE");
static_assert(IBTRS_WR_ROOM >= 3 * IBTRS_FRAME_LEN + IBTRS_IO_HDR_MAX, "room of a work request");
#define IBTRS_RECV_LEN	512		/* INFO_REQ 272, INFO_REFUSED 192, CM private data 148 */

struct ibtrs_wr_op {
	struct ibtrs_frame f;
	u32 iov;			/* which one begins with its frame */
};

/**
 * struct ibtrs_wr - a work request: a chain of operations
 * @posted: the provider still needs it; until then it, and what it refers to, must stay as they are
 * @slot: which of the connection's slots (ibtrs_verbs.slots) it belongs to, + 1; 0: to none
 * @slot_at: where in the slot's memory its payload stands, if the provider copies it there
 * @room: for frames and headers
 */
struct ibtrs_wr {
	struct ibtrs_wr *next;
	struct ibtrs_wr_op op[IBTRS_WR_OPS];
	struct iovec iov[IBTRS_WR_IOVS];
	u32 nr_ops;
	u32 nr;
	u32 at;
	u32 used;
	u32 slot;
	u32 slot_at;
	bool posted;
	u8 room[IBTRS_WR_ROOM];
};

void ibtrs_wr_init(struct ibtrs_wr *wr);
/* Appends an operation, without the payload that follows its frame. */
void ibtrs_wr_frame(struct ibtrs_wr *wr, const struct ibtrs_frame *f);
/* Appends bytes that stay where they are, or a copy of a few. */
void ibtrs_wr_ref(struct ibtrs_wr *wr, const void *data, size_t len);
void ibtrs_wr_copy(struct ibtrs_wr *wr, const void *data, size_t len);

/* What arrived. */
struct ibtrs_wc {
	u16 op;				/* enum ibtrs_frame_op; a plain WRITE completes nothing */
	u32 imm;
	u32 len;			/* of the payload */
	const void *data;		/* of a SEND or a CM message; valid until the next poll */
};

struct ibtrs_verbs;

/**
 * struct ibtrs_qp - a connection
 * @err: not 0: broken, for the reason @why
 * @regions: what the peer may write to; NULL: nothing yet
 * @out: work requests that the provider has not taken yet
 * @bare: others may read and change what it carries: TCP without TLS. Known with the first message,
 *	and to servers alone
 * @feigned: the peer claims an address that is not the one packets go to; known as @bare is
 * @beside: of cid 0 of its path: the peer writes to the same memory. Set before the CONN_REQ or its
 *	answer is posted; NULL: it is the first
 * @talks: it carries the messages of authentication and nothing else; set before the CONN_REQ or
 *	its answer is posted
 */
struct ibtrs_qp {
	const struct ibtrs_verbs *verbs;
	int err;
	const char *why;
	const struct ibtrs_regions *regions;
	struct ibtrs_wr *out;
	struct ibtrs_wr **out_end;
	struct ibtrs_qp *beside;
	bool bare;
	bool feigned;
	bool talks;
};

/**
 * struct ibtrs_verbs - a provider of connections
 * @packets: it sends packets of one size, and does not find out that the network loses those
 * @watch: reports in the epoll set @ep, as @ptr, when there is something to do; leaves the one
 *	before
 * @flush: the doorbell. Return: 0, or why the connection is broken
 * @turn: begins a turn: then poll until it returns 0. A turn is bounded, so that a peer which never
 *	stops sending does not keep the thread from others; epoll reports the rest. @again: if there
 *	is something, the owner comes again before it sleeps
 * @poll: Return: 1: @wc is filled; 0: nothing has arrived; or why the connection is broken
 * @expect: a SEND may have @len bytes from now on, and may be put into @room, which stays until the
 *	connection is closed; NULL: IBTRS_RECV_LEN again
 * @slots: the client has @nr requests at a time on this connection, with headers and data of up to
 *	@size bytes each; the one of slot i posts with wr->slot = i + 1
 * @expose: the peer may write to @data, as the answer to slot @i: until @conceal
 * @conceal: it may not any more; @data has what it wrote. NULL: that is of no interest
 * @own: memory of a client's that this provider would copy else: @g has where it is, and gets its
 *	keys for all connections of the path. @remote: the peer may write to it. NULL: it does not
 *	copy
 * @check: once in a heartbeat interval: does what is posted, up to @size bytes each time, get
 *	anywhere? It may not for @misses intervals. NULL: the provider notices by itself
 * @reg: makes @base region @i of the server, for all connections of the path
 * @dereg: the opposite of both, when all connections of the path are closed
 * @ends: the addresses of both ends that a proof is bound to: GIDs, of a stream IP addresses.
 *	Return: false: there are none
 * @close: after this nothing is sent, and nothing written to memory. Idempotent
 * @free: frees a closed connection
 */
struct ibtrs_verbs {
	bool packets;
	int (*watch)(struct ibtrs_qp *qp, int ep, void *ptr);
	int (*flush)(struct ibtrs_qp *qp);
	void (*turn)(struct ibtrs_qp *qp, bool again);
	int (*poll)(struct ibtrs_qp *qp, struct ibtrs_wc *wc);
	int (*expect)(struct ibtrs_qp *qp, void *room, u32 len);
	int (*slots)(struct ibtrs_qp *qp, u32 nr, u32 size);
	void (*expose)(struct ibtrs_qp *qp, u32 i, void *data, struct ibtrs_desc *desc);
	void (*conceal)(struct ibtrs_qp *qp, u32 i, void *data, u32 len);
	int (*own)(struct ibtrs_qp *qp, struct ibtrs_region *g, bool remote, const char **why);
	int (*check)(struct ibtrs_qp *qp, u32 misses, u32 size);
	int (*reg)(struct ibtrs_qp *qp, struct ibtrs_regions *r, u32 i, void *base, u32 len);
	void (*dereg)(struct ibtrs_region *g);
	bool (*ends)(struct ibtrs_qp *qp, u8 own[IBTRS_GID_LEN], u8 peer[IBTRS_GID_LEN]);
	void (*close)(struct ibtrs_qp *qp);
	void (*free)(struct ibtrs_qp *qp);
};

void ibtrs_qp_init(struct ibtrs_qp *qp, const struct ibtrs_verbs *verbs);
/* Posts; flush is the doorbell. */
void ibtrs_qp_post(struct ibtrs_qp *qp, struct ibtrs_wr *wr);
/* Posts an immediate alone, as @wr; not if that still waits to be sent. */
void ibtrs_qp_post_imm(struct ibtrs_qp *qp, struct ibtrs_wr *wr, u32 imm);
/* The provider has taken the first of @qp->out. */
void ibtrs_qp_taken(struct ibtrs_qp *qp);
/* For the provider's close: nothing is sent any more. */
void ibtrs_qp_end(struct ibtrs_qp *qp);
/* The provider's check, if it has one. Return: 0, or why the connection is broken. */
int ibtrs_qp_check(struct ibtrs_qp *qp, u32 misses, u32 size);
/* The first reason counts. Return: it. */
int ibtrs_qp_break(struct ibtrs_qp *qp, int err, const char *why);

#endif
