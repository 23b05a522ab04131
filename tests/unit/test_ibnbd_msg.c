// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block messages but OPEN and CLOSE (test_ibnbd_msg_open.c), byte for byte against protocol
 * 10.1, protocol 10.1, and every refusal of E-20 .. E-30 and E-43 that the codec owns. Buffers come
 * from unit_exact(), so that reading one byte too many ends the run.
 */
#include "unit.h"
#include "ibnbd/proto/msg_io.h"

static const char *why;

/* ---- SESS_INFO ---- */

static const u8 sess_info_plain[36] = { 0, 0, 0, 0, 2 };
static const u8 sess_info_ext[36] = { 0, 0, 0, 0, 2, 0, 0, 0, 'I', 'B', 'N', 'X', 0, 0, 0, 0, 0xf };
static const u8 sess_info_rsp_ext[36] = { 1, 0, 0, 0, 2, 0, 0, 0, 'I', 'B', 'N', 'X', 0,
					  0, 0, 0, 2 };

UNIT_TEST(sess_info_bytes)
{
	struct ibnbd_wire_sess_info w;
	struct ibnbd_sess_info m = { .version = 2 };

	memset(&w, 0xa5, sizeof(w));
	ibnbd_msg_sess_info_encode(&w, IBNBD_MSG_SESS_INFO, &m);
	CHECK_MEM(&w, sess_info_plain, sizeof(w));
	m.features = ~0ull;	/* unknown bits are never sent */
	memset(&w, 0xa5, sizeof(w));
	ibnbd_msg_sess_info_encode(&w, IBNBD_MSG_SESS_INFO, &m);
	CHECK_MEM(&w, sess_info_ext, sizeof(w));
	m.features = IBNBD_FEAT_IDENTITY;
	ibnbd_msg_sess_info_encode(&w, IBNBD_MSG_SESS_INFO_RSP, &m);
	CHECK_MEM(&w, sess_info_rsp_ext, sizeof(w));
	m.features = IBNBD_FEAT_DURABILITY;	/* nothing without IDENTITY */
	ibnbd_msg_sess_info_encode(&w, IBNBD_MSG_SESS_INFO, &m);
	CHECK_MEM(&w, sess_info_plain, sizeof(w));
}

UNIT_TEST(sess_info_decode)
{
	static const struct {
		const char *name;
		u8 version;
		const char *magic;
		u8 feature_byte;
		size_t len;
		bool read;
		u32 data_len;
		int rc;
		u8 want_version;
		u64 want_features;
	} rows[] = {
		{ "mainline", 2, "", 0, 36, true, 36, 0, 2, 0 },
		{ "five bytes are enough", 2, "", 0, 5, true, 36, 0, 2, 0 },
		{ "four are not", 2, "", 0, 4, true, 36, -EINVAL, 0, 0 },
		{ "protocol 1", 1, "", 0, 36, true, 36, 0, 1, 0 },
		{ "protocol 255 is cut to ours", 255, "", 0, 36, true, 36, 0, 2, 0 },
		{ "protocol 0", 0, "", 0, 36, true, 36, -EINVAL, 0, 0 },
		{ "features", 2, "IBNX", 3, 36, true, 36, 0, 2, 3 },
		{ "unknown features are dropped", 2, "IBNX", 0xf5, 36, true, 36, 0, 2, 1 },
		{ "words", 2, "IBNX", 8, 36, true, 36, 0, 2, 8 },
		{ "durability", 2, "IBNX", 6, 36, true, 36, 0, 2, 6 },
		{ "durability without identity", 2, "IBNX", 0xd, 36, true, 36, 0, 2, 9 },
		{ "features without magic", 2, "IBNY", 3, 36, true, 36, 0, 2, 0 },
		{ "features cut off", 2, "IBNX", 3, 35, true, 36, 0, 2, 0 },
		{ "a write", 2, "", 0, 36, false, 36, -EINVAL, 0, 0 },
		{ "no room for the reply", 2, "", 0, 36, true, 35, -EINVAL, 0, 0 },
		{ "more room than needed", 2, "", 0, 36, true, 4096, 0, 2, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_wire_sess_info w = { .version = rows[i].version };
		struct ibnbd_sess_info m;
		void *buf;

		UNIT_ROW("%s", rows[i].name);
		strncpy((char *)w.ext_magic, rows[i].magic, 4);
		((u8 *)w.features)[0] = rows[i].feature_byte;
		buf = unit_exact(&w, rows[i].len);
		CHECK_EQ(ibnbd_msg_sess_info_decode(buf, rows[i].len, rows[i].read,
						    rows[i].data_len, &m, &why), rows[i].rc);
		free(buf);
		if (rows[i].rc)
			continue;
		CHECK_EQ(m.version, rows[i].want_version);
		CHECK_EQ(m.features, rows[i].want_features);
	}
}

UNIT_TEST(sess_info_rsp_decode)
{
	static const struct {
		const char *name;
		u16 type;
		u8 version;
		bool magic;
		u32 features;
		u64 offered;
		size_t len;
		int rc;
		u8 want_version;
		u64 want_features;
	} rows[] = {
		{ "mainline", 1, 2, false, 0, 3, 36, 0, 2, 0 },
		{ "old server", 1, 1, false, 0, 3, 36, 0, 1, 0 },
		{ "ours", 1, 2, true, 3, 3, 36, 0, 2, 3 },
		{ "accepts what was not offered", 1, 2, true, 3, 1, 36, 0, 2, 1 },
		{ "accepts where nothing was offered", 1, 2, true, 3, 0, 36, 0, 2, 0 },
		{ "all of it", 1, 2, true, 0xf, 0xf, 36, 0, 2, 0xf },
		{ "durability that was not offered", 1, 2, true, 0xf, 0xb, 36, 0, 2, 0xb },
		{ "durability without identity", 1, 2, true, 0xd, 0xf, 36, 0, 2, 9 },
		{ "identity that was not offered", 1, 2, true, 6, 0xd, 36, 0, 2, 0 },
		{ "version 0", 1, 0, false, 0, 3, 36, -EPROTO, 0, 0 },
		{ "version 255", 1, 255, false, 0, 3, 36, 0, 2, 0 },
		{ "echoes the request", 0, 2, false, 0, 3, 36, -EPROTO, 0, 0 },
		{ "another reply", 3, 2, false, 0, 3, 36, -EPROTO, 0, 0 },
		{ "short", 1, 2, false, 0, 3, 35, -EPROTO, 0, 0 },
		{ "empty", 1, 2, false, 0, 3, 0, -EPROTO, 0, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_wire_sess_info w = { .version = rows[i].version };
		struct ibnbd_sess_info m;
		void *buf;

		UNIT_ROW("%s", rows[i].name);
		w.hdr.type = cpu_to_le16(rows[i].type);
		if (rows[i].magic)
			memcpy(w.ext_magic, "IBNX", 4);
		w.features[0] = cpu_to_le32(rows[i].features);
		buf = unit_exact(&w, rows[i].len);
		CHECK_EQ(ibnbd_msg_sess_info_rsp_decode(buf, rows[i].len, rows[i].offered, &m,
							&why), rows[i].rc);
		free(buf);
		if (rows[i].rc)
			continue;
		CHECK_EQ(m.version, rows[i].want_version);
		CHECK_EQ(m.features, rows[i].want_features);
	}
}

UNIT_TEST(message_type)
{
	static const struct { u16 type; size_t len; int want; } rows[] = {
		{ 0, 4, 0 }, { 1, 4, -EINVAL }, { 2, 4, 2 },
		{ 3, 4, -EINVAL }, { 4, 4, 4 }, { 5, 4, 5 }, { 6, 4, -EINVAL },
		{ 0xffff, 4, -EINVAL }, { 0x0400, 4, -EINVAL },
		{ 4, 3, -EINVAL }, { 4, 0, -EINVAL }, { 4, 32, 4 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 raw[32] = { rows[i].type & 0xff, rows[i].type >> 8, 0xee, 0xee };
		void *buf = unit_exact(raw, rows[i].len);

		UNIT_ROW("type %u, %zu bytes", rows[i].type, rows[i].len);
		CHECK_EQ(ibnbd_msg_type(buf, rows[i].len, &why), rows[i].want);
		free(buf);
	}
}

/* ---- IO ---- */

/* What our client sends (protocol 10.1). */
UNIT_TEST(io_rw_word)
{
	static const struct { const char *name; enum ibnbd_op op; u32 flags, want; } rows[] = {
		{ "read", IBNBD_OP_READ, 0, 0x100 },
		{ "read with a FUA that means nothing", IBNBD_OP_READ, IBNBD_F_FUA, 0x100 },
		{ "write", IBNBD_OP_WRITE, 0, 0x001 },
		{ "sync write", IBNBD_OP_WRITE, IBNBD_F_SYNC, 0x101 },
		{ "FUA write", IBNBD_OP_WRITE, IBNBD_F_FUA, 0x301 },
		{ "preflush write", IBNBD_OP_WRITE, IBNBD_F_PREFLUSH, 0x701 },
		{ "flush", IBNBD_OP_FLUSH, 0, 0x702 },
		{ "discard", IBNBD_OP_DISCARD, 0, 0x003 },
		{ "discard with nounmap", IBNBD_OP_DISCARD, IBNBD_F_NOUNMAP, 0x003 },
		{ "secure erase", IBNBD_OP_SECURE_ERASE, 0, 0x004 },
		{ "write zeroes", IBNBD_OP_WRITE_ZEROES, 0, 0x005 },
		{ "write zeroes, keep mapped", IBNBD_OP_WRITE_ZEROES, IBNBD_F_NOUNMAP, 0x805 },
		{ "unknown flags", IBNBD_OP_WRITE, 0xfffff000, 0x001 },
	};
	struct ibnbd_wire_io w;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_io m = { .op = rows[i].op, .flags = rows[i].flags };

		UNIT_ROW("%s", rows[i].name);
		CHECK_EQ(ibnbd_msg_io_encode(&w, 2, &m), 32);
		CHECK_EQ(le32_to_cpu(w.rw), rows[i].want);
	}
}

UNIT_TEST(io_bytes)
{
	static const u8 want[32] = {
		4, 0, 0, 0, 7, 0, 0, 0, 0x08, 0x07, 0x06, 0x05, 0x04,
		0x03, 0x02, 0x01, 1, 3, 0, 0, 0, 0x10, 0, 0, 4, 0x40,
	};
	static const u8 zero[8];
	struct ibnbd_io m = {
		.device_id = 7, .sector = 0x0102030405060708, .op = IBNBD_OP_WRITE,
		.flags = IBNBD_F_FUA, .bytes = 4096, .prio = 0x4004,
	};
	struct ibnbd_wire_io w;

	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_io_encode(&w, 2, &m), 32);
	CHECK_MEM(&w, want, 32);
	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_io_encode(&w, 1, &m), 24);
	CHECK_MEM(&w, want, 24);
	CHECK_MEM((u8 *)&w + 24, zero, 8);
}

UNIT_TEST(io_decode)
{
	enum { R = true, W = false };
	static const struct {
		const char *name;
		u32 rw, bytes, data_len;
		bool read;
		int rc;
		u32 flags;
	} rows[] = {
		{ "read", 0x100, 4096, 4096, R, 0, 0x100 },
		{ "write", 0x001, 4096, 4096, W, 0, 0 },
		{ "one sector", 0x001, 512, 512, W, 0, 0 },
		{ "FUA write", 0x301, 4096, 4096, W, 0, 0x300 },
		{ "preflush write", 0x701, 4096, 4096, W, 0, 0x700 },
		{ "flush of 5.10", 0x302, 0, 0, R, 0, 0x300 },
		{ "flush of 7.2", 0x702, 0, 0, R, 0, 0x700 },
		{ "discard", 0x003, 1 << 20, 0, W, 0, 0 },
		{ "secure erase", 0x004, 1 << 20, 0, W, 0, 0 },
		{ "write zeroes", 0x805, 1 << 20, 0, W, 0, 0x800 },
		{ "discard of 4 GiB - 512", 0x003, 0xfffffe00, 0, W, 0, 0 },
		{ "read as a write", 0x100, 4096, 4096, W, -EINVAL, 0 },
		{ "write as a read", 0x001, 4096, 4096, R, -EINVAL, 0 },
		{ "flush as a write", 0x302, 0, 0, W, -EINVAL, 0 },
		{ "discard as a read", 0x003, 4096, 0, R, -EINVAL, 0 },
		{ "erase as a read", 0x004, 4096, 0, R, -EINVAL, 0 },
		{ "zeroes as a read", 0x005, 4096, 0, R, -EINVAL, 0 },
		{ "read, more asked than reserved", 0x100, 8192, 4096, R, -EINVAL, 0 },
		{ "read, less asked than reserved", 0x100, 512, 4096, R, -EINVAL, 0 },
		{ "read without data", 0x100, 4096, 0, R, -EINVAL, 0 },
		{ "read of nothing", 0x100, 0, 0, R, -EINVAL, 0 },
		{ "write of nothing", 0x001, 0, 0, W, -EINVAL, 0 },
		{ "write, size without data", 0x001, 4096, 0, W, -EINVAL, 0 },
		{ "write, data without size", 0x001, 0, 4096, W, -EINVAL, 0 },
		{ "flush with data", 0x302, 0, 4096, R, -EINVAL, 0 },
		{ "flush with size", 0x302, 4096, 0, R, -EINVAL, 0 },
		{ "discard with data", 0x003, 4096, 4096, W, -EINVAL, 0 },
		{ "discard of nothing", 0x003, 0, 0, W, -EINVAL, 0 },
		{ "erase with data", 0x004, 4096, 4096, W, -EINVAL, 0 },
		{ "erase of nothing", 0x004, 0, 0, W, -EINVAL, 0 },
		{ "write same of 5.10", 0x005, 1 << 20, 512, W, -EOPNOTSUPP, 0 },
		{ "zeroes of nothing", 0x005, 0, 0, W, -EINVAL, 0 },
		{ "half a sector", 0x001, 256, 256, W, -EINVAL, 0 },
		{ "513 bytes", 0x100, 513, 513, R, -EINVAL, 0 },
		{ "discard of 511 bytes", 0x003, 511, 0, W, -EINVAL, 0 },
		{ "op 6", 0x006, 4096, 4096, W, -EOPNOTSUPP, 0 },
		{ "op 255", 0x0ff, 0, 0, R, -EOPNOTSUPP, 0 },
		{ "read, all flags", 0xffffff00, 4096, 4096, R, 0, 0x100 },
		{ "write, all flags", 0xffffff01, 4096, 4096, W, 0, 0x700 },
		{ "discard, all flags", 0xffffff03, 4096, 0, W, 0, 0x100 },
		{ "zeroes, all flags", 0xffffff05, 4096, 0, W, 0, 0x900 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_wire_io w = { .hdr.type = cpu_to_le16(4) };
		struct ibnbd_io m;
		void *buf;

		UNIT_ROW("%s", rows[i].name);
		w.device_id = cpu_to_le32(9);
		w.sector = cpu_to_le64(~0ull);
		w.rw = cpu_to_le32(rows[i].rw);
		w.bytes = cpu_to_le32(rows[i].bytes);
		buf = unit_exact(&w, sizeof(w));
		CHECK_EQ(ibnbd_msg_io_decode(buf, sizeof(w), rows[i].read, rows[i].data_len, 2, &m,
					     &why), rows[i].rc);
		free(buf);
		if (rows[i].rc)
			continue;
		CHECK_EQ(m.device_id, 9);
		CHECK_EQ(m.sector, ~0ull);
		CHECK_EQ(m.op, rows[i].rw & 0xff);
		CHECK_EQ(m.flags, rows[i].flags);
		CHECK_EQ(m.bytes, rows[i].bytes);
	}
}

UNIT_TEST(io_every_op)
{
	unsigned int op, read;

	for (op = 0; op < 256; op++) {
		for (read = 0; read < 2; read++) {
			struct ibnbd_wire_io w = { .rw = cpu_to_le32(op) };
			struct ibnbd_io m;
			int rc = ibnbd_msg_io_decode(&w, sizeof(w), read, 0, 2, &m, &why);

			UNIT_ROW("op %u, %s", op, read ? "read" : "write");
			if (op > 5)
				CHECK_EQ(rc, -EOPNOTSUPP);
			else
				CHECK_EQ(rc, op == 2 && read ? 0 : -EINVAL);
		}
	}
}

UNIT_TEST(io_prio)
{
	static const struct {
		const char *name;
		u16 prio;
		size_t len;
		u8 version;
		u16 want;
	} rows[] = {
		{ "none", 0, 32, 2, 0 },
		{ "best effort 4", 0x4004, 32, 2, 0x4004 },
		{ "idle", 0x6000, 32, 2, 0x6000 },
		{ "realtime becomes best effort", 0x2003, 32, 2, 0x4003 },
		{ "class 4", 0x8000, 32, 2, 0 },
		{ "class 7, all ones", 0xffff, 32, 2, 0 },
		{ "hints are dropped", 0x4ffc, 32, 2, 0x4004 },
		{ "none with a level", 0x0007, 32, 2, 0 },
		{ "26 bytes are enough", 0x4004, 26, 2, 0x4004 },
		{ "25 are not", 0x4004, 25, 2, 0 },
		{ "protocol 1", 0x4004, 32, 1, 0 },
		{ "24 bytes", 0x4004, 24, 1, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_wire_io w = { .rw = cpu_to_le32(1), .bytes = cpu_to_le32(512) };
		struct ibnbd_io m;
		void *buf;

		UNIT_ROW("%s", rows[i].name);
		w.prio = cpu_to_le16(rows[i].prio);
		buf = unit_exact(&w, rows[i].len);
		CHECK_EQ(ibnbd_msg_io_decode(buf, rows[i].len, false, 512, rows[i].version,
					     &m, &why), 0);
		CHECK_EQ(m.prio, rows[i].want);
		free(buf);
	}
}

UNIT_TEST(io_short)
{
	static const u8 zero[24];
	struct ibnbd_io m;
	size_t len;

	for (len = 0; len < 24; len++) {
		void *buf = unit_exact(zero, len);

		UNIT_ROW("%zu bytes", len);
		CHECK_EQ(ibnbd_msg_io_decode(buf, len, true, 0, 2, &m, &why), -EINVAL);
		free(buf);
	}
}

/* What our client encodes, our server decodes to the same thing. */
UNIT_TEST(io_round_trip)
{
	u64 seed = 1;
	int i;

	for (i = 0; i < 20000; i++) {
		enum ibnbd_op op = unit_random(&seed) % 6;
		struct ibnbd_io in = { .op = op }, out;
		struct ibnbd_wire_io w;
		u32 len;

		in.flags = (u32)unit_random(&seed) & ibnbd_msg_flags_of(op) & ~IBNBD_F_PREFLUSH &
			   ~IBNBD_F_FUA;
		if (op == IBNBD_OP_READ)
			in.flags = IBNBD_F_SYNC;
		if (op == IBNBD_OP_FLUSH)
			in.flags = IBNBD_F_SYNC | IBNBD_F_FUA | IBNBD_F_PREFLUSH;
		in.device_id = (u32)unit_random(&seed);
		in.sector = unit_random(&seed);
		in.bytes = op == IBNBD_OP_FLUSH ? 0 :
			   ((u32)unit_random(&seed) & 0x1ffff) * 512 + 512;
		in.prio = ibnbd_msg_prio_cap((u16)unit_random(&seed));
		len = ibnbd_msg_io_encode(&w, 2, &in);
		if (!CHECK_EQ(ibnbd_msg_io_decode(&w, len, ibnbd_msg_op_reads(op),
						  ibnbd_msg_io_data_len(op, in.bytes), 2, &out,
						  &why), 0))
			return;
		CHECK_EQ(out.device_id, in.device_id);
		CHECK_EQ(out.sector, in.sector);
		CHECK_EQ(out.op, in.op);
		CHECK_EQ(out.flags, in.flags);
		CHECK_EQ(out.bytes, in.bytes);
		CHECK_EQ(out.prio, in.prio);
	}
}
