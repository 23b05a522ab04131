// SPDX-License-Identifier: GPL-2.0-only
/*
 * OPEN and CLOSE, byte for byte against protocol 10.1, and every refusal of theirs that the
 * codec owns. Buffers come from unit_exact(), so that reading one byte too many ends the run.
 */
#include "unit.h"
#include "ibnbd/proto/msg.h"

static const char *why;

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

/* Each byte at each place of a name of three; 0 ends it. */
UNIT_TEST(open_every_byte_of_a_name)
{
	struct ibnbd_wire_open w = { .access_mode = IBNBD_ACCESS_RO };
	unsigned int at, byte;
	struct ibnbd_open m;
	bool good;

	for (at = 0; at < 3; at++) {
		for (byte = 0; byte < 256; byte++) {
			UNIT_ROW("byte 0x%02x at %u", byte, at);
			memcpy(w.name, "abc", 3);
			w.name[at] = (u8)byte;
			good = byte ? byte >= 0x20 && byte != 0x7f : at > 0;
			CHECK_EQ(ibnbd_msg_open_decode(&w, sizeof(w), true, 56, 0, &m, &why),
				 good ? 0 : -EINVAL);
			CHECK(!good || strlen(m.name) == (byte ? 3 : at));
		}
	}
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
