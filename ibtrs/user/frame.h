/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The frame of the stream: what verbs hand to an adapter, as bytes (protocol 12). */
#ifndef IBTRS_USER_FRAME_H
#define IBTRS_USER_FRAME_H

#include <ibtrs/pure.h>

enum ibtrs_frame_op {
	IBTRS_FRAME_REQ		= 1,	/* private data of a CM REQ: the client's first frame */
	IBTRS_FRAME_REP		= 2,	/* of a CM REP: the server's first frame .. */
	IBTRS_FRAME_REJ		= 3,	/* .. or of a CM REJ, its only one */
	IBTRS_FRAME_SEND	= 4,
	IBTRS_FRAME_SEND_IMM	= 5,
	IBTRS_FRAME_SEND_INV	= 6,	/* with invalidate; @key is the one */
	IBTRS_FRAME_WRITE	= 7,
	IBTRS_FRAME_WRITE_IMM	= 8,
	IBTRS_FRAME_WHERE	= 9,	/* where has the server RDMA? and its answer (12.2) */
};

struct ibtrs_wire_frame {
	__le32	len;			/* of what follows */
	__le16	op;
	__le16	reserved;
	__be32	imm;			/* big endian, as in a packet of RDMA */
	__le32	key;
	__le64	addr;
};

static_assert(sizeof(struct ibtrs_wire_frame) == 24, "frame");

#define IBTRS_FRAME_LEN	sizeof(struct ibtrs_wire_frame)

struct ibtrs_frame {
	u32 len;
	u16 op;
	u32 imm;
	u32 key;
	u64 addr;
};

static inline void ibtrs_frame_encode(void *to, const struct ibtrs_frame *f)
{
	const struct ibtrs_wire_frame w = {
		.len	= cpu_to_le32(f->len),
		.op	= cpu_to_le16(f->op),
		.imm	= (__be32)htobe32(f->imm),
		.key	= cpu_to_le32(f->key),
		.addr	= cpu_to_le64(f->addr),
	};

	memcpy(to, &w, sizeof(w));
}

static inline void ibtrs_frame_decode(const void *from, struct ibtrs_frame *f)
{
	struct ibtrs_wire_frame w;

	memcpy(&w, from, sizeof(w));
	f->len = le32_to_cpu(w.len);
	f->op = le16_to_cpu(w.op);
	f->imm = be32toh((uint32_t)w.imm);
	f->key = le32_to_cpu(w.key);
	f->addr = le64_to_cpu(w.addr);
}

/* An entry of the answer to WHERE. IPv4 is mapped into IPv6, as in a GID of RoCE. */
struct ibtrs_wire_where {
	u8	gid[16];
	__le16	port;
	u8	reserved[6];
};

static_assert(sizeof(struct ibtrs_wire_where) == 24, "where");

#define IBTRS_WHERE_MAX	8

#endif
