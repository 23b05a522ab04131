/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Codec of the block message IO, by the rules of msg.h.
 */
#ifndef IBNBD_PROTO_MSG_IO_H
#define IBNBD_PROTO_MSG_IO_H

#include "ibnbd/proto/msg.h"

struct ibnbd_io {
	u32 device_id;
	u64 sector;
	enum ibnbd_op op;
	u32 flags;			/* IBNBD_F_* */
	u32 bytes;
	u16 prio;			/* decoded: never above best-effort (E-28) */
};

/* READ and FLUSH are sent as transport reads, all other ops as writes (protocol 10.1). */
static inline bool ibnbd_msg_op_reads(enum ibnbd_op op)
{
	return op == IBNBD_OP_READ || op == IBNBD_OP_FLUSH;
}

/* D of a request: the size of its data area. */
static inline u32 ibnbd_msg_io_data_len(enum ibnbd_op op, u32 bytes)
{
	return op == IBNBD_OP_READ || op == IBNBD_OP_WRITE ? bytes : 0;
}

/*
 * The flags that have a meaning with this op. All others are removed: the block layer warns about
 * FUA or PREFLUSH on anything but a write.
 */
static inline u32 ibnbd_msg_flags_of(enum ibnbd_op op)
{
	switch (op) {
	case IBNBD_OP_WRITE:
	case IBNBD_OP_FLUSH:
		return IBNBD_F_SYNC | IBNBD_F_FUA | IBNBD_F_PREFLUSH;
	case IBNBD_OP_WRITE_ZEROES:
		return IBNBD_F_SYNC | IBNBD_F_NOUNMAP;
	default:
		return IBNBD_F_SYNC;
	}
}

/*
 * ioprio: class in bits 15..13, level in 2..0 (newer kernels use the bits between for hints).
 * Realtime becomes best-effort of the same level, an unknown class becomes none (E-28).
 */
static inline u16 ibnbd_msg_prio_cap(u16 prio)
{
	u16 class = prio >> 13, level = prio & 7;

	if (class == 1)
		class = 2;
	return class == 2 || class == 3 ? (u16)(class << 13 | level) : 0;
}

/*
 * @version: negotiated; 1 gives the 24-byte form. READ always carries SYNC; FUA and PREFLUSH imply
 *	SYNC, and PREFLUSH implies FUA for servers that do not know PREFLUSH (protocol 10.1); a
 *	FLUSH carries all three. Return U, the length of the message.
 */
static inline u32 ibnbd_msg_io_encode(struct ibnbd_wire_io *w, u8 version, const struct ibnbd_io *m)
{
	u32 flags = m->flags & ibnbd_msg_flags_of(m->op);

	if (m->op == IBNBD_OP_FLUSH)
		flags |= IBNBD_F_PREFLUSH;
	if (flags & IBNBD_F_PREFLUSH)
		flags |= IBNBD_F_FUA;
	if (m->op == IBNBD_OP_READ || flags & (IBNBD_F_FUA | IBNBD_F_PREFLUSH))
		flags |= IBNBD_F_SYNC;
	memset(w, 0, sizeof(*w));
	w->hdr.type = cpu_to_le16(IBNBD_MSG_IO);
	w->device_id = cpu_to_le32(m->device_id);
	w->sector = cpu_to_le64(m->sector);
	w->rw = cpu_to_le32((u32)m->op | flags);
	w->bytes = cpu_to_le32(m->bytes);
	if (version < 2)
		return sizeof(struct ibnbd_wire_io_v1);
	w->prio = cpu_to_le16(m->prio);
	return sizeof(*w);
}

/* E-22 and E-23: size, D and direction must fit the op. */
static inline int ibnbd_msg_io_shape(const struct ibnbd_io *m, bool read, u32 data_len,
				     const char **why)
{
	if (read != ibnbd_msg_op_reads(m->op))
		return ibnbd_refuse(-EINVAL, why, "operation does not fit the transport direction");
	if (m->op == IBNBD_OP_WRITE_ZEROES && data_len)
		return ibnbd_refuse(-EOPNOTSUPP, why, "WRITE_SAME is not supported");
	if (data_len != ibnbd_msg_io_data_len(m->op, m->bytes))
		return ibnbd_refuse(-EINVAL, why, "data area and I/O size disagree");
	if (m->op == IBNBD_OP_FLUSH ? m->bytes : !m->bytes)
		return ibnbd_refuse(-EINVAL, why, "I/O size does not fit the operation");
	if (m->bytes & (IBNBD_SECTOR_SIZE - 1))
		return ibnbd_refuse(-EINVAL, why, "I/O size is not a multiple of 512");
	return 0;
}

/**
 * ibnbd_msg_io_decode() - server: E-20, E-22, E-23, E-25, E-28
 * @read: direction of the transport request
 * @data_len: D
 * @version: negotiated by SESS_INFO; the priority is read from version 2 on
 *
 * logic/access does the checks that need the device (E-24, E-26, E-27).
 *
 * Return: 0; -EOPNOTSUPP: unknown operation, or WRITE_SAME of an old client; -EINVAL: all other
 * mistakes.
 */
static inline int ibnbd_msg_io_decode(const void *usr, size_t len, bool read, u32 data_len,
				      u8 version, struct ibnbd_io *m, const char **why)
{
	const struct ibnbd_wire_io *w = usr;
	u32 rw;

	if (len < sizeof(struct ibnbd_wire_io_v1))
		return ibnbd_refuse(-EINVAL, why, "IO too short");
	rw = le32_to_cpu(w->rw);
	if ((rw & IBNBD_OP_MASK) > IBNBD_OP_WRITE_ZEROES)
		return ibnbd_refuse(-EOPNOTSUPP, why, "unknown operation");
	m->device_id = le32_to_cpu(w->device_id);
	m->sector = le64_to_cpu(w->sector);
	m->op = (enum ibnbd_op)(rw & IBNBD_OP_MASK);
	m->flags = rw & ibnbd_msg_flags_of(m->op);
	m->bytes = le32_to_cpu(w->bytes);
	m->prio = 0;
	if (version >= 2 && len >= offsetof(struct ibnbd_wire_io, reserved))
		m->prio = ibnbd_msg_prio_cap(le16_to_cpu(w->prio));
	return ibnbd_msg_io_shape(m, read, data_len, why);
}

#endif
