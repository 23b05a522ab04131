// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block messages, byte for byte against spec B.1, B.4, F.4, and every refusal of E-20 .. E-30
 * and E-43 that the codec owns. Buffers come from unit_exact(), so that reading one byte too many
 * ends the run.
 */
#include "unit.h"
#include "ibnbd/proto/msg.h"

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

/* ---- OPEN ---- */

UNIT_TEST(open_bytes)
{
	static const u8 want[264] = { 2, 0, 0, 0, 1, 1, 'v', 'o', 'l', '/', '1' };
	struct ibnbd_open m = { .access = IBNBD_ACCESS_RW, .name = "vol/1" };
	struct ibnbd_wire_open w;
	char name[256];

	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_open_encode(&w, &m), 0);
	CHECK_MEM(&w, want, sizeof(w));
	memset(name, 'x', sizeof(name));
	name[255] = 0;
	m.name = name;
	CHECK_EQ(ibnbd_msg_open_encode(&w, &m), -ENAMETOOLONG);
	name[254] = 0;
	CHECK_EQ(ibnbd_msg_open_encode(&w, &m), 0);
	CHECK_EQ(w.name[253], 'x');
	CHECK_EQ(w.name[254], 0);
	m.name = "";
	CHECK_EQ(ibnbd_msg_open_encode(&w, &m), -ENAMETOOLONG);
}

UNIT_TEST(open_decode)
{
	static const struct {
		const char *label;
		const char *name;
		u8 access;
		size_t len;
		bool read;
		u32 data_len;
		u64 features;
		int rc;
		u32 reply_len;
		bool words;
	} rows[] = {
		{ "mainline", "ram0", 1, 264, true, 56, 0, 0, 56 },
		{ "ro", "ram0", 0, 264, true, 56, 0, 0, 56 },
		{ "migration", "ram0", 2, 264, true, 56, 0, 0, 56 },
		{ "without the reserved bytes", "ram0", 1, 261, true, 56, 0, 0, 56 },
		{ "one byte less", "ram0", 1, 260, true, 56, 0, -EINVAL, 0 },
		{ "header only", "ram0", 1, 4, true, 56, 0, -EINVAL, 0 },
		{ "empty", "ram0", 1, 0, true, 56, 0, -EINVAL, 0 },
		{ "mode 3", "ram0", 3, 264, true, 56, 0, -EINVAL, 0 },
		{ "mode 255", "ram0", 255, 264, true, 56, 0, -EINVAL, 0 },
		{ "a write", "ram0", 1, 264, false, 56, 0, -EINVAL, 0 },
		{ "D too small", "ram0", 1, 264, true, 55, 0, -EINVAL, 0 },
		{ "D = 0", "ram0", 1, 264, true, 0, 0, -EINVAL, 0 },
		{ "with identity", "ram0", 1, 264, true, 96, IBNBD_FEAT_IDENTITY, 0, 96 },
		{ "identity, but no room for it",
		  "ram0", 1, 264, true, 95, IBNBD_FEAT_IDENTITY, 0, 56 },
		{ "words", "ram0", 1, 264, true, 192, IBNBD_FEAT_WORDS, 0, 56, true },
		{ "words and identity", "ram0", 1, 264, true, 192, 0xb, 0, 96, true },
		{ "words, but no room for them", "ram0", 1, 264, true, 191, 0xb, 0, 96 },
		{ "durability", "ram0", 1, 264, true, 128, 0x6, 0, 128 },
		{ "durability, but no room for it", "ram0", 1, 264, true, 127, 0x6, 0, 96 },
		{ "nor for identity", "ram0", 1, 264, true, 95, 0x6, 0, 56 },
		{ "durability without identity", "ram0", 1, 264, true, 192, 0x4, 0, 56 },
		{ "all of it", "ram0", 1, 264, true, 192, IBNBD_FEAT_KNOWN, 0, 128, true },
		{ "room, but no words", "ram0", 1, 264, true, 4096, IBNBD_FEAT_IDENTITY, 0, 96 },
		{ "room, but no identity", "ram0", 1, 264, true, 96, IBNBD_FEAT_ZEROES, 0, 56 },
		{ "empty name", "", 1, 264, true, 56, 0, -EINVAL, 0 },
		{ "newline in the name", "ram0\n", 1, 264, true, 56, 0, -EINVAL, 0 },
		{ "escape in the name", "\x1b[2J", 1, 264, true, 56, 0, -EINVAL, 0 },
		{ "DEL in the name", "a\x7f", 1, 264, true, 56, 0, -EINVAL, 0 },
		{ "UTF-8 in the name", "pl\xc3\xa4tte", 1, 264, true, 56, 0, 0, 56 },
		{ "blank in the name", "a b", 1, 264, true, 56, 0, 0, 56 },
	};
	struct ibnbd_wire_open w;
	struct ibnbd_open m;
	size_t i;
	void *buf;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].label);
		memset(&w, 0, sizeof(w));
		w.hdr.type = cpu_to_le16(2);
		w.access_mode = rows[i].access;
		w.io_mode = 0xee;	/* mainline leaves garbage here */
		memcpy(w.name, rows[i].name, strlen(rows[i].name));
		buf = unit_exact(&w, rows[i].len);
		CHECK_EQ(ibnbd_msg_open_decode(buf, rows[i].len, rows[i].read, rows[i].data_len,
					       rows[i].features, &m, &why), rows[i].rc);
		if (!rows[i].rc) {
			CHECK_STR(m.name, rows[i].name);
			CHECK_EQ(m.access, rows[i].access);
			CHECK_EQ(m.durability ? 128 : m.identity ? 96 : 56, rows[i].reply_len);
			CHECK_EQ(m.words, rows[i].words);
		}
		free(buf);
	}
	UNIT_ROW("unterminated name");
	memset(&w, 'x', sizeof(w));
	w.access_mode = 1;
	buf = unit_exact(&w, 261);
	CHECK_EQ(ibnbd_msg_open_decode(buf, 261, true, 56, 0, &m, &why), -EINVAL);
	CHECK_STR(why, "device name is not terminated");
	free(buf);
}

UNIT_TEST(open_every_access_byte)
{
	struct ibnbd_wire_open w = { .name = "a" };
	struct ibnbd_open m;
	unsigned int mode;

	for (mode = 0; mode < 256; mode++) {
		UNIT_ROW("mode %u", mode);
		w.access_mode = (u8)mode;
		CHECK_EQ(ibnbd_msg_open_decode(&w, sizeof(w), true, 56, 0, &m, &why),
			 mode < 3 ? 0 : -EINVAL);
	}
}

static const struct ibnbd_open_rsp rsp_sample = {
	.device_id = 0x01020304, .nsectors = 0x1122334455667, .max_hw_sectors = 248,
	.max_write_zeroes_sectors = 0xa1b2c3d4,
	.max_discard_sectors = 0x800000, .discard_granularity = 4096, .discard_alignment = 512,
	.physical_block_size = 4096,
	.logical_block_size = 512, .max_segments = 31, .secure_discard = 1, .fua = true,
	.writeback = true,
};

static const u8 rsp_bytes[56] = {
	3, 0, 0, 0, 4, 3, 2, 1, 0x67, 0x56, 0x45, 0x34, 0x23, 0x12,
	1, 0, 248, 0, 0, 0, 0xd4, 0xc3, 0xb2, 0xa1, 0, 0, 0x80, 0,
	0, 0x10, 0, 0, 0, 2, 0, 0, 0, 0x10, 0, 2, 31, 0, 1, 0, 0, 3,
};

UNIT_TEST(open_rsp_bytes)
{
	struct ibnbd_open_rsp m = rsp_sample, back;
	struct ibnbd_wire_open_rsp_dur w;
	u8 zero[72] = { 0 };

	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_open_rsp_encode(&w, &m), 56);
	CHECK_MEM(&w, rsp_bytes, 56);
	CHECK_MEM((u8 *)&w + 56, zero, 72);
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 56, 0, 4096, &back, &why), 0);
	CHECK_MEM(&back, &m, sizeof(m));
	m.physical_block_size = 65536;
	ibnbd_msg_open_rsp_encode(&w, &m);
	CHECK_EQ(le16_to_cpu(w.base.rsp.physical_block_size), 32768);
}

UNIT_TEST(open_rsp_identity_bytes)
{
	static const u8 want[40] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
		15, 16, 1, 6, 0, 0, 0, 0x10, 0, 0, 0, 0, 1, 0,
		8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0,
	};
	static const u8 zero[32];
	struct ibnbd_open_rsp m = rsp_sample, back;
	struct ibnbd_wire_open_rsp_dur w;
	unsigned int i;

	m.has_identity = true;
	for (i = 0; i < 16; i++)
		m.identity.id[i] = (u8)(i + 1);
	m.identity.kind = IBNBD_ID_HARDWARE;
	m.identity.flags = IBNBD_ID_F_ROTATIONAL | IBNBD_ID_F_STABLE_PAGES;
	m.identity.io_min = 4096;
	m.identity.io_opt = 65536;
	m.identity.writer_gen = 0x0102030405060708;
	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_open_rsp_encode(&w, &m), 96);
	CHECK_MEM(&w, rsp_bytes, 56);
	CHECK_MEM(&w.base.id, want, 40);
	CHECK_MEM(&w.dur, zero, 32);
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 96, IBNBD_FEAT_IDENTITY, 4096, &back, &why), 0);
	CHECK_MEM(&back, &m, sizeof(m));
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 95, IBNBD_FEAT_IDENTITY, 4096, &back, &why),
		 -EPROTO);
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 96, IBNBD_FEAT_WORDS, 4096, &back, &why), 0);
	CHECK(!back.has_identity);
	w.base.id.flags = 0xff;
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 96, IBNBD_FEAT_IDENTITY, 4096, &back, &why), 0);
	CHECK_EQ(back.identity.flags, IBNBD_ID_F_KNOWN);
}

UNIT_TEST(open_rsp_decode)
{
	static const struct {
		const char *name;
		unsigned int logical, physical;
		u64 nsectors;
		u32 discard, granularity, page;
		u16 type;
		size_t len;
		int rc;
	} rows[] = {
		{ "512e", 512, 4096, 100, 0, 0, 4096, 3, 56, 0 },
		{ "4Kn", 4096, 4096, 100, 0, 0, 4096, 3, 56, 0 },
		{ "logical 0", 0, 4096, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical 1", 1, 4096, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical 256", 256, 4096, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical 511", 511, 4096, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical 520", 520, 4096, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical 1536", 1536, 4096, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical above the page", 8192, 8192, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "logical of a big page", 8192, 8192, 100, 0, 0, 65536, 3, 56, 0 },
		{ "logical 65535", 65535, 65535, 100, 0, 0, 65536, 3, 56, -EPROTO },
		{ "physical below logical", 4096, 512, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "physical no power of two", 512, 1000, 100, 0, 0, 4096, 3, 56, -EPROTO },
		{ "physical 65536, cut to 0", 512, 0, 100, 0, 0, 4096, 3, 56, 0 },
		{ "no capacity yet", 512, 512, 0, 0, 0, 4096, 3, 56, 0 },
		{ "one sector", 512, 512, 1, 0, 0, 4096, 3, 56, 0 },
		{ "largest capacity", 512, 512, (1ull << 54) - 1, 0, 0, 4096, 3, 56, 0 },
		{ "capacity 2^54", 512, 512, 1ull << 54, 0, 0, 4096, 3, 56, -EPROTO },
		{ "capacity 2^64-1", 512, 512, ~0ull, 0, 0, 4096, 3, 56, -EPROTO },
		{ "discard without granularity", 512, 512, 100, 8, 0, 4096, 3, 56, 0 },
		{ "discard of 192 KiB", 512, 512, 100, 8, 196608, 4096, 3, 56, 0 },
		{ "discard granularity 100", 512, 512, 100, 8, 100, 4096, 3, 56, -EPROTO },
		{ "discard granularity below the block",
		  4096, 4096, 100, 8, 512, 4096, 3, 56, -EPROTO },
		{ "granularity without discard", 512, 512, 100, 0, 100, 4096, 3, 56, 0 },
		{ "another type", 512, 512, 100, 0, 0, 4096, 1, 56, -EPROTO },
		{ "the request's type", 512, 512, 100, 0, 0, 4096, 2, 56, -EPROTO },
		{ "short", 512, 512, 100, 0, 0, 4096, 3, 55, -EPROTO },
		{ "empty", 512, 512, 100, 0, 0, 4096, 3, 0, -EPROTO },
		{ "longer", 512, 512, 100, 0, 0, 4096, 3, 96, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_wire_open_rsp_id w;
		struct ibnbd_open_rsp m;
		void *buf;

		UNIT_ROW("%s", rows[i].name);
		memset(&w, 0, sizeof(w));
		w.rsp.hdr.type = cpu_to_le16(rows[i].type);
		w.rsp.logical_block_size = cpu_to_le16(rows[i].logical);
		w.rsp.physical_block_size = cpu_to_le16(rows[i].physical);
		w.rsp.nsectors = cpu_to_le64(rows[i].nsectors);
		w.rsp.max_discard_sectors = cpu_to_le32(rows[i].discard);
		w.rsp.discard_granularity = cpu_to_le32(rows[i].granularity);
		/* stale bytes of old servers */
		memset(w.rsp.reserved, 0xee, sizeof(w.rsp.reserved));
		buf = unit_exact(&w, rows[i].len);
		why = NULL;
		CHECK_EQ(ibnbd_msg_open_rsp_decode(buf, rows[i].len, 0, rows[i].page, &m, &why),
			 rows[i].rc);
		CHECK_EQ(!!why, !!rows[i].rc);
		if (!rows[i].rc && !rows[i].physical)
			CHECK_EQ(m.physical_block_size, rows[i].logical);
		free(buf);
	}
}

/* ---- CLOSE ---- */

UNIT_TEST(close)
{
	static const u8 want[8] = { 5, 0, 0, 0, 0xef, 0xbe, 0xad, 0xde },
		want_nowait[8] = { 5, 0, 1, 0, 0xef, 0xbe, 0xad, 0xde };
	struct ibnbd_wire_close w;
	bool nowait = true;
	u32 id = 0;
	void *buf;

	memset(&w, 0xa5, sizeof(w));
	ibnbd_msg_close_encode(&w, 0xdeadbeef, false);
	CHECK_MEM(&w, want, 8);
	buf = unit_exact(&w, 8);
	CHECK_EQ(ibnbd_msg_close_decode(buf, 8, IBNBD_FEAT_KNOWN, &id, &nowait, &why), 0);
	CHECK_EQ(id, 0xdeadbeef);
	CHECK(!nowait);
	CHECK_EQ(ibnbd_msg_close_decode(buf, 7, IBNBD_FEAT_KNOWN, &id, &nowait, &why), -EINVAL);
	free(buf);

	memset(&w, 0xa5, sizeof(w));
	ibnbd_msg_close_encode(&w, 0xdeadbeef, true);
	CHECK_MEM(&w, want_nowait, 8);
	buf = unit_exact(&w, 8);
	CHECK_EQ(ibnbd_msg_close_decode(buf, 8, IBNBD_FEAT_IDENTITY, &id, &nowait, &why), 0);
	CHECK(nowait);
	/* a client that does not know of it may leave anything there */
	CHECK_EQ(ibnbd_msg_close_decode(buf, 8, IBNBD_FEAT_ZEROES, &id, &nowait, &why), 0);
	CHECK(!nowait);
	free(buf);
}

/* ---- IO ---- */

/* B.4, "typical values", in the current form. */
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
