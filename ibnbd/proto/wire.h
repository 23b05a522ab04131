/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The bytes of IBNBD on the wire: RNBD 2 (protocol 10.1) and our extension of the session start and
 * of OPEN_RSP (protocol 10.1). All fields are little endian. Block messages are sent as the user
 * header of a transport request, replies as the data of a read. Sizes and offsets are asserted in
 * this file and nowhere else. A u64 that would add padding to its message is declared as two 32-bit
 * words.
 */
#ifndef IBNBD_PROTO_WIRE_H
#define IBNBD_PROTO_WIRE_H

#include <ibtrs/pure.h>

#define IBNBD_PROTO_MAJOR	2
#define IBNBD_NAME_LEN		255	/* device and session names, with NUL */
#define IBNBD_SECTOR_SHIFT	9
#define IBNBD_SECTOR_SIZE	(1u << IBNBD_SECTOR_SHIFT)
#define IBNBD_MAX_SECTORS	((u64)1 << (63 - IBNBD_SECTOR_SHIFT))	/* capacity is below this */
#define IBNBD_ID_LEN		16

enum ibnbd_msg_type {
	IBNBD_MSG_SESS_INFO	= 0,
	IBNBD_MSG_SESS_INFO_RSP	= 1,
	IBNBD_MSG_OPEN		= 2,
	IBNBD_MSG_OPEN_RSP	= 3,
	IBNBD_MSG_IO		= 4,
	IBNBD_MSG_CLOSE		= 5,
	IBNBD_MSG_OPEN_REFUSED	= 6,	/* answers OPEN when WORDS was negotiated */
};

enum ibnbd_access {		/* OPEN.access_mode, protocol 10.4 */
	IBNBD_ACCESS_RO		= 0,
	IBNBD_ACCESS_RW		= 1,
	IBNBD_ACCESS_MIGRATION	= 2,
};

enum ibnbd_op {			/* IO.rw bits 7..0, protocol 10.1 */
	IBNBD_OP_READ		= 0,
	IBNBD_OP_WRITE		= 1,
	IBNBD_OP_FLUSH		= 2,
	IBNBD_OP_DISCARD	= 3,
	IBNBD_OP_SECURE_ERASE	= 4,
	IBNBD_OP_WRITE_ZEROES	= 5,
};

#define IBNBD_OP_MASK		0xffu

enum {				/* IO.rw bits 8.., protocol 10.1 */
	IBNBD_F_SYNC		= 0x100,
	IBNBD_F_FUA		= 0x200,
	IBNBD_F_PREFLUSH	= 0x400,
	IBNBD_F_NOUNMAP		= 0x800,	/* with WRITE_ZEROES only */
	IBNBD_F_KNOWN		= IBNBD_F_SYNC | IBNBD_F_FUA | IBNBD_F_PREFLUSH | IBNBD_F_NOUNMAP,
};

enum {				/* CLOSE, protocol 10.1 */
	IBNBD_CLOSE_F_NOWAIT	= 0x1,	/* answer at once, not when the last I/O has ended */
};

enum {				/* OPEN_RSP.cache_policy */
	IBNBD_CACHE_FUA		= 0x1,
	IBNBD_CACHE_WRITEBACK	= 0x2,
};

enum {				/* SESS_INFO.features, protocol 10.1 */
	IBNBD_FEAT_ZEROES	= 0x1,
	IBNBD_FEAT_IDENTITY	= 0x2,
	IBNBD_FEAT_DURABILITY	= 0x4,	/* ignored without IDENTITY */
	IBNBD_FEAT_WORDS	= 0x8,
	IBNBD_FEAT_KNOWN	= IBNBD_FEAT_ZEROES | IBNBD_FEAT_IDENTITY | IBNBD_FEAT_DURABILITY |
				  IBNBD_FEAT_WORDS,
};

enum ibnbd_id_kind {		/* identity.kind, protocol 10.1 */
	IBNBD_ID_NONE		= 0,
	IBNBD_ID_HARDWARE	= 1,
	IBNBD_ID_UUID		= 2,	/* of a dm, md or partition */
	IBNBD_ID_FILE		= 3,
};

enum {				/* identity.flags, protocol 10.1 */
	IBNBD_ID_F_READ_ONLY	= 0x1,	/* the backing device is read-only */
	IBNBD_ID_F_ROTATIONAL	= 0x2,
	IBNBD_ID_F_STABLE_PAGES	= 0x4,
	IBNBD_ID_F_KNOWN	= 0x7,
};

enum {				/* durability.flags, protocol 10.1 */
	IBNBD_DUR_F_VOLATILE	= 0x1,	/* what no flush has covered may be lost with the power */
	IBNBD_DUR_F_KNOWN	= 0x1,
};

struct ibnbd_wire_hdr {
	__le16	type;
	__le16	pad;
};

struct ibnbd_wire_sess_info {		/* SESS_INFO and SESS_INFO_RSP, protocol 10.1 */
	struct ibnbd_wire_hdr hdr;
	u8	version;
	u8	reserved0[3];
	u8	ext_magic[4];		/* "IBNX" */
	__le32	reserved1;
	__le32	features[2];		/* u64, low word first */
	u8	reserved2[12];
};

struct ibnbd_wire_open {
	struct ibnbd_wire_hdr hdr;
	u8	access_mode;
	u8	io_mode;		/* send 1, never read (protocol 10.1) */
	u8	name[IBNBD_NAME_LEN];
	u8	reserved[3];
};

struct ibnbd_wire_open_rsp {
	struct ibnbd_wire_hdr hdr;
	__le32	device_id;
	__le64	nsectors;
	__le32	max_hw_sectors;
	/* from an old server this may be a write-same limit: hazard M10 */
	__le32	max_write_zeroes_sectors;
	__le32	max_discard_sectors;
	__le32	discard_granularity;
	__le32	discard_alignment;
	__le16	physical_block_size;
	__le16	logical_block_size;
	__le16	max_segments;
	__le16	secure_discard;
	u8	rotational;
	u8	cache_policy;
	u8	reserved[10];
};

struct ibnbd_wire_identity {		/* protocol 10.1 */
	u8	id[IBNBD_ID_LEN];
	u8	kind;
	u8	flags;
	__le16	reserved0;
	__le32	io_min;
	__le32	io_opt;
	__le32	writer_gen[2];		/* u64, low word first */
	__le32	reserved1;
};

struct ibnbd_wire_open_rsp_id {		/* OPEN_RSP when IDENTITY was negotiated */
	struct ibnbd_wire_open_rsp rsp;
	struct ibnbd_wire_identity id;
};

struct ibnbd_wire_durability {		/* protocol 10.1 */
	__le64	cache_epoch;
	__le32	flags;
	u8	reserved[20];
};

struct ibnbd_wire_open_rsp_dur {	/* OPEN_RSP when IDENTITY and DURABILITY were negotiated */
	struct ibnbd_wire_open_rsp_id base;
	struct ibnbd_wire_durability dur;
};

#define IBNBD_WORDS_LEN		184	/* with NUL */

struct ibnbd_wire_open_refused {	/* sent instead of OPEN_RSP, when WORDS was negotiated */
	struct ibnbd_wire_hdr hdr;
	__le32	err;			/* a positive errno */
	u8	text[IBNBD_WORDS_LEN];	/* printable ASCII, ends with a NUL */
};

struct ibnbd_wire_io_v1 {		/* protocol 1: no priority */
	struct ibnbd_wire_hdr hdr;
	__le32	device_id;
	__le64	sector;
	__le32	rw;
	__le32	bytes;
};

struct ibnbd_wire_io {
	struct ibnbd_wire_hdr hdr;
	__le32	device_id;
	__le64	sector;
	__le32	rw;
	__le32	bytes;
	__le16	prio;
	u8	reserved[6];
};

struct ibnbd_wire_close {
	struct ibnbd_wire_hdr hdr;	/* pad: IBNBD_CLOSE_F_* when IDENTITY was negotiated */
	__le32	device_id;
};

#define IBNBD_ASSERT_OFF(s, f, off) static_assert(offsetof(struct s, f) == (off), #s "." #f)

static_assert(sizeof(struct ibnbd_wire_hdr) == 4, "header");
static_assert(sizeof(struct ibnbd_wire_sess_info) == 36, "SESS_INFO");
IBNBD_ASSERT_OFF(ibnbd_wire_sess_info, version, 4);
IBNBD_ASSERT_OFF(ibnbd_wire_sess_info, ext_magic, 8);
IBNBD_ASSERT_OFF(ibnbd_wire_sess_info, features, 16);
static_assert(sizeof(struct ibnbd_wire_open) == 264, "OPEN");
IBNBD_ASSERT_OFF(ibnbd_wire_open, access_mode, 4);
IBNBD_ASSERT_OFF(ibnbd_wire_open, name, 6);
IBNBD_ASSERT_OFF(ibnbd_wire_open, reserved, 261);
static_assert(sizeof(struct ibnbd_wire_open_rsp) == 56, "OPEN_RSP");
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, device_id, 4);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, nsectors, 8);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, max_hw_sectors, 16);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, max_write_zeroes_sectors, 20);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, max_discard_sectors, 24);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, discard_granularity, 28);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, discard_alignment, 32);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, physical_block_size, 36);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, logical_block_size, 38);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, max_segments, 40);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, secure_discard, 42);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, rotational, 44);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp, cache_policy, 45);
static_assert(sizeof(struct ibnbd_wire_open_rsp_id) == 96, "OPEN_RSP with identity");
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.id, 56);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.kind, 72);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.flags, 73);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.io_min, 76);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.io_opt, 80);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.writer_gen, 84);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_id, id.reserved1, 92);
static_assert(sizeof(struct ibnbd_wire_open_rsp_dur) == 128, "OPEN_RSP with durability");
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_dur, dur.cache_epoch, 96);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_dur, dur.flags, 104);
IBNBD_ASSERT_OFF(ibnbd_wire_open_rsp_dur, dur.reserved, 108);
static_assert(sizeof(struct ibnbd_wire_open_refused) == 192, "OPEN_REFUSED");
IBNBD_ASSERT_OFF(ibnbd_wire_open_refused, err, 4);
IBNBD_ASSERT_OFF(ibnbd_wire_open_refused, text, 8);
static_assert(sizeof(struct ibnbd_wire_io_v1) == 24, "IO of protocol 1");
static_assert(sizeof(struct ibnbd_wire_io) == 32, "IO");
IBNBD_ASSERT_OFF(ibnbd_wire_io, device_id, 4);
IBNBD_ASSERT_OFF(ibnbd_wire_io, sector, 8);
IBNBD_ASSERT_OFF(ibnbd_wire_io, rw, 16);
IBNBD_ASSERT_OFF(ibnbd_wire_io, bytes, 20);
IBNBD_ASSERT_OFF(ibnbd_wire_io, prio, 24);
static_assert(sizeof(struct ibnbd_wire_close) == 8, "CLOSE");

enum {				/* kinds of events, protocol 8.3 */
	IBNBD_EVENT_RESIZED	= 1,
	IBNBD_EVENT_REVOKED	= 2,
};

/* Sets the reason of a refusal. Return: @err. */
static inline int ibnbd_refuse(int err, const char **why, const char *reason)
{
	*why = reason;
	return err;
}

/* An event of the transport carries the low 24 bits of a device id (protocol 8.3). */
#define IBNBD_EVENT_ID_MASK	0xffffffu

#endif
