/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The 32-bit RDMA immediate (protocol 3, 8.3): bits 31..28 type, 27..0 payload. Values here are
 * host order; the one byte swap (the immediate is big endian on the wire) happens where a work
 * request is built or a completion is read.
 */
#ifndef IBTRS_PROTO_IMM_H
#define IBTRS_PROTO_IMM_H

#include <ibtrs/pure.h>

enum ibtrs_imm_type {
	IBTRS_IMM_IO_REQ	= 0,	/* C->S: slot, offset of the transport header */
	IBTRS_IMM_IO_RSP	= 1,	/* S->C: errno, slot */
	IBTRS_IMM_IO_RSP_INV	= 2,	/* S->C: same, the read key was invalidated remotely */
	IBTRS_IMM_HB_MSG	= 8,
	IBTRS_IMM_HB_ACK	= 9,
	IBTRS_IMM_EVENT		= 10,	/* S->C, cid 0: kind, device id (protocol 8.3) */
	IBTRS_IMM_TRIAL		= 11,	/* C->S: as IO_REQ; S->C: 0 (protocol.md 8.4) */
};

#define IBTRS_IMM_PAYLOAD_BITS	28
#define IBTRS_IMM_ERR_MAX	511
#define IBTRS_IMM_RSP_SLOT_MASK	0x7ffffu

static inline unsigned int ibtrs_imm_type(u32 imm)
{
	return imm >> IBTRS_IMM_PAYLOAD_BITS;
}

/* Width of the offset field for a session of that depth: M = 28 - bits(QD). */
static inline unsigned int ibtrs_imm_off_bits(u32 queue_depth)
{
	return IBTRS_IMM_PAYLOAD_BITS - ibtrs_bits(queue_depth);
}

static inline u32 ibtrs_imm_req(u32 slot, u32 off, unsigned int off_bits)
{
	return (slot << off_bits) | off;
}

static inline u32 ibtrs_imm_trial(u32 slot, u32 off, unsigned int off_bits)
{
	return (u32)IBTRS_IMM_TRIAL << IBTRS_IMM_PAYLOAD_BITS | ibtrs_imm_req(slot, off, off_bits);
}

static inline u32 ibtrs_imm_req_slot(u32 imm, unsigned int off_bits)
{
	return (imm & ((1u << IBTRS_IMM_PAYLOAD_BITS) - 1)) >> off_bits;
}

static inline u32 ibtrs_imm_req_off(u32 imm, unsigned int off_bits)
{
	return imm & ((1u << off_bits) - 1);
}

/*
 * @err: 0 or negative errno; a positive number, or one that needs more than 9 bits, becomes -EIO.
 */
static inline u32 ibtrs_imm_rsp(enum ibtrs_imm_type type, u32 slot, int err)
{
	u32 e = err > 0 ? EIO : 0u - (u32)err;

	if (e > IBTRS_IMM_ERR_MAX)
		e = EIO;
	return ((u32)type << IBTRS_IMM_PAYLOAD_BITS) | e << 19 | (slot & IBTRS_IMM_RSP_SLOT_MASK);
}

static inline u32 ibtrs_imm_rsp_slot(u32 imm)
{
	return imm & IBTRS_IMM_RSP_SLOT_MASK;
}

/* Returns 0 or a negative errno in 1..511. */
static inline int ibtrs_imm_rsp_err(u32 imm)
{
	return -(int)((imm >> 19) & IBTRS_IMM_ERR_MAX);
}

static inline u32 ibtrs_imm_hb(enum ibtrs_imm_type type)
{
	return (u32)type << IBTRS_IMM_PAYLOAD_BITS;
}

static inline u32 ibtrs_imm_event(u32 kind, u32 device_id)
{
	return (u32)IBTRS_IMM_EVENT << IBTRS_IMM_PAYLOAD_BITS | (kind & 0xf) << 24 |
	       (device_id & 0xffffff);
}

static inline u32 ibtrs_imm_event_kind(u32 imm)
{
	return (imm >> 24) & 0xf;
}

static inline u32 ibtrs_imm_event_dev(u32 imm)
{
	return imm & 0xffffff;
}

#endif
