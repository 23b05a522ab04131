/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * A connection: what a reliable QP does, done in software over a stream socket (protocol 12).
 *
 * Owners post work requests, whose memory stays theirs, and poll completions of what the peer sent.
 * Frames arrive in the order in which they were posted. A WRITE goes to the memory that its key
 * names, if address and length are within it; anything else breaks the connection. This is the
 * interface that another provider of connections has to offer.
 *
 * No locking: the owner of a stream calls with its own lock held.
 */
#ifndef IBTRS_USER_STREAM_H
#define IBTRS_USER_STREAM_H

#include <sys/uio.h>
#include "ibtrs/proto/msg.h"
#include "ibtrs/user/frame.h"

/*
 * Extensions that both ends have over a stream. TRIAL looks for packets that are too large, which
 * TCP finds by itself; there is no code for EVENTS and AUTH.
 */
#define IBTRS_STREAM_EXT	(IBTRS_EXT_FENCE | IBTRS_EXT_WORDS)
#define IBTRS_STREAM_IO_MIN	4096u	/* of max_io_size, protocol 2.3 */

/* Memory that a peer may write to. Its addresses begin at 0: a peer learns no pointers. */
struct ibtrs_region {
	u8 *base;
	u32 len;
	u32 key;			/* 0: none */
	u16 gen;
};

struct ibtrs_regions {
	struct ibtrs_region *v;
	u32 nr;				/* at most 65536: the low half of a key is the index */
};

/* Return: the key. The last one for @i is void. */
u32 ibtrs_region_set(struct ibtrs_regions *r, u32 i, void *base, u32 len);
void ibtrs_region_clear(struct ibtrs_regions *r, u32 i);

#define IBTRS_WR_IOVS	4
/* A frame and a refusal with words; an answer has three frames, a request one and its header. */
#define IBTRS_WR_ROOM	(IBTRS_FRAME_LEN + sizeof(struct ibtrs_wire_conn_refused))
static_assert(IBTRS_WR_ROOM >= 3 * IBTRS_FRAME_LEN + IBTRS_IO_HDR_MAX, "room of a work request");
#define IBTRS_RECV_LEN	512		/* INFO_REQ 272, INFO_REFUSED 192, CM private data 148 */

/**
 * struct ibtrs_wr - a work request: bytes to be sent
 * @posted: not all of it has been handed to the socket; until then it, and what it refers to, must
 *	stay as they are
 * @room: for frames and headers
 */
struct ibtrs_wr {
	struct ibtrs_wr *next;
	struct iovec iov[IBTRS_WR_IOVS];
	u32 nr;
	u32 at;
	u32 used;
	bool posted;
	u8 room[IBTRS_WR_ROOM];
};

void ibtrs_wr_init(struct ibtrs_wr *wr);
/* Appends a frame, without what follows it. */
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

struct ibtrs_stream {
	int fd;				/* -1: closed */
	int err;			/* not 0: broken */
	const char *why;
	int ep;
	void *ep_ptr;
	bool ep_out;
	const struct ibtrs_regions *regions;	/* NULL: the peer may not write yet */
	void *recv;			/* for a SEND; its length is recv_max */
	u32 recv_max;
	struct ibtrs_frame f;
	u8 *into;			/* where the rest of the payload goes */
	u32 left;
	bool in_frame;
	u32 in_at;
	u32 in_len;
	u32 turn;			/* reads of the socket that are left in this turn */
	struct ibtrs_wr *out;
	struct ibtrs_wr **out_end;
	u8 recv_room[IBTRS_RECV_LEN];
	u8 in[4096];
};

/* Takes over @fd, which becomes non-blocking. */
void ibtrs_stream_init(struct ibtrs_stream *s, int fd);
/* Reports in the epoll set @ep, as @ptr, when there is something to do; leaves the one before. */
int ibtrs_stream_watch(struct ibtrs_stream *s, int ep, void *ptr);
/* Posts; ibtrs_stream_flush() is the doorbell. */
void ibtrs_stream_post(struct ibtrs_stream *s, struct ibtrs_wr *wr);
/* Posts an immediate alone, as @wr; not if that still waits to be sent. */
void ibtrs_stream_post_imm(struct ibtrs_stream *s, struct ibtrs_wr *wr, u32 imm);
/* Return: 0, or why the stream is broken. */
int ibtrs_stream_flush(struct ibtrs_stream *s);
/*
 * Begins a turn: then poll until it returns 0. A turn reads a bounded number of times, so that a
 * peer which never stops sending does not keep the thread from others; epoll reports the rest.
 */
static inline void ibtrs_stream_turn(struct ibtrs_stream *s)
{
	s->turn = 256;
}
/* Return: 1: @wc is filled; 0: nothing has arrived; or why the stream is broken. */
int ibtrs_stream_poll(struct ibtrs_stream *s, struct ibtrs_wc *wc);
/* After this nothing is sent, and nothing written to anybody's memory. Idempotent. */
void ibtrs_stream_close(struct ibtrs_stream *s);
static inline int ibtrs_stream_break(struct ibtrs_stream *s, int err, const char *why)
{
	if (!s->err) {
		s->err = err;
		s->why = why;
	}
	return s->err;
}

#endif
