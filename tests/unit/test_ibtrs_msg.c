// SPDX-License-Identifier: GPL-2.0-only
/*
 * The codec against protocol 2 to 5, 8.1, 8.2 and E-1 to E-45: golden bytes, round trips, and for
 * each check the last value it accepts and the first it refuses. Messages are decoded from buffers
 * of exactly their length, so that ASan sees a byte read too many.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "patch.h"
#include "unit.h"

static const u8 golden_req[56] = {
	0, 0, 0xbd, 0x1b, 0x00, 0x02, 3, 0, 9, 0, 0x34, 0x12,
	0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
	0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27,
	0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
	1, 0x03, 'I', 'X', 0, 0, 0, 0, 0, 0, 0, 0,
};

static struct ibtrs_conn_req req_sample(void)
{
	struct ibtrs_conn_req m = { .cid = 3, .cid_num = 9, .recon_cnt = 0x1234,
				    .first_conn = true, .ext = 3 };

	for (int i = 0; i < 16; i++) {
		m.path_uuid[i] = (u8)(0x10 + i);
		m.session_uuid[i] = (u8)(0x20 + i);
	}
	return m;
}

UNIT_TEST(conn_req_bytes)
{
	struct ibtrs_conn_req m = req_sample();
	struct ibtrs_wire_conn_req w;
	u8 want[56];

	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_conn_req_encode(&w, &m);
	CHECK_MEM(&w, golden_req, 56);

	UNIT_ROW("nothing offered: RTRS 2.0 to the byte");
	m.ext = 0;
	m.first_conn = false;
	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_conn_req_encode(&w, &m);
	memcpy(want, golden_req, 44);
	memset(want + 44, 0, 12);
	CHECK_MEM(&w, want, 56);

	UNIT_ROW("unknown features are never sent");
	m.ext = 0xe0;
	ibtrs_msg_conn_req_encode(&w, &m);
	CHECK_MEM(&w, want, 56);
	m.ext = 0xe1;
	ibtrs_msg_conn_req_encode(&w, &m);
	CHECK_EQ(w.ext_features, IBTRS_EXT_FENCE);
}

UNIT_TEST(conn_req_decode_table)
{
	static const struct {
		const char *what;
		size_t len;
		u32 max_cons;
		struct patch p[2];
		const char *why;
		u16 cid, cid_num;
		bool first;
		u8 ext;
	} rows[] = {
		{ "golden", 56, 4096, { { 0 } }, NULL, 3, 9, true, 3 },
		{ "AF_IB pads to 92", 92, 4096, { { 0 } }, NULL, 3, 9, true, 3 },
		{ "one byte short", 55, 4096, { { 0 } }, "too short" },
		{ "nothing", 0, 4096, { { 0 } }, "too short" },
		{ "bytes 0 and 1 are the CM's",
		  56, 4096, { { 0, 2, 0x40ff } }, NULL, 3, 9, true, 3 },
		{ "magic", 56, 4096, { { 2, 2, 0x1bbe } }, "magic" },
		{ "magic big endian", 56, 4096, { { 2, 2, 0xbd1b } }, "magic" },
		{ "major 1", 56, 4096, { { 4, 2, 0x0100 } }, "major version" },
		{ "major 3", 56, 4096, { { 4, 2, 0x0300 } }, "major version" },
		{ "minor does not matter", 56, 4096, { { 4, 2, 0x02ff } }, NULL, 3, 9, true, 3 },
		{ "cid is the last", 56, 4096, { { 6, 2, 8 } }, NULL, 8, 9, true, 3 },
		{ "cid = cid_num", 56, 4096, { { 6, 2, 9 } }, "not below" },
		{ "cid_num 0", 56, 4096, { { 6, 2, 0 }, { 8, 2, 0 } }, "not below" },
		{ "cid_num 1", 56, 4096, { { 6, 2, 0 }, { 8, 2, 1 } }, NULL, 0, 1, true, 3 },
		{ "cid_num at the protocol's limit",
		  56, 65535, { { 8, 2, 4096 } }, NULL, 3, 4096, true, 3 },
		{ "cid_num beyond it", 56, 65535, { { 8, 2, 4097 } }, "more connections" },
		{ "cid_num at the caller's limit", 56, 9, { { 0 } }, NULL, 3, 9, true, 3 },
		{ "cid_num beyond it", 56, 8, { { 0 } }, "more connections" },
		{ "first_conn is one bit", 56, 4096, { { 44, 1, 0xfe } }, NULL, 3, 9, false, 3 },
		{ "no ext magic: no extensions", 56, 4096, { { 46, 2, 0 } }, NULL, 3, 9, true, 0 },
		{ "half an ext magic", 56, 4096, { { 47, 1, 'x' } }, NULL, 3, 9, true, 0 },
		{ "all that is known", 56, 4096, { { 45, 1, 0xff } }, NULL, 3, 9, true, 0x1f },
		{ "unknown features are ignored",
		  56, 4096, { { 45, 1, 0xe2 } }, NULL, 3, 9, true, 2 },
		{ "reserved bytes are ignored",
		  56, 4096, { { 48, 8, ~0ull } }, NULL, 3, 9, true, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *buf = patched(golden_req, 56, rows[i].len, rows[i].p, 2);
		struct ibtrs_conn_req m, want = req_sample();
		const char *why = NULL;
		int err = ibtrs_msg_conn_req_decode(buf, rows[i].len, rows[i].max_cons, &m, &why);

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(err, rows[i].why ? -ECONNRESET : 0);
		reason_ok(why, rows[i].why);
		if (!err) {
			CHECK_EQ(m.cid, rows[i].cid);
			CHECK_EQ(m.cid_num, rows[i].cid_num);
			CHECK_EQ(m.recon_cnt, 0x1234);
			CHECK_EQ(m.first_conn, rows[i].first);
			CHECK_EQ(m.ext, rows[i].ext);
			CHECK_MEM(m.path_uuid, want.path_uuid, 16);
			CHECK_MEM(m.session_uuid, want.session_uuid, 16);
		}
		free(buf);
	}
	CHECK_EQ(ibtrs_msg_conn_req_decode(golden_req, 55, 4096, &(struct ibtrs_conn_req){ 0 },
					   NULL), -ECONNRESET);
}

/* ---- CONN_RSP ---- */

static const u8 golden_rsp[56] = {
	0xbd, 0x1b, 0x00, 0x02, 0, 0, 0x00, 0x02,	/* depth 512 */
	0x00, 0xf0, 0x01, 0x00,				/* 126976 */
	0x00, 0x10, 0x00, 0x00,				/* 4096 */
	0x02, 0, 0, 0, 'I', 'B', 'T', 'X', 0x03, 0, 0, 0,
};

UNIT_TEST(conn_rsp_bytes)
{
	static const struct {
		int err;
		u16 want;
	} errs[] = { { -104, 0xff98 }, { -6, 0xfffa }, { -511, 0xfe01 }, { -512, 0xff98 },
		     { 7, 0xff98 }, { -100000, 0xff98 } };
	struct ibtrs_conn_rsp m = {
		.ext = 3,
		.limits = { .queue_depth = 512, .max_io_size = 126976, .max_hdr_size = 4096,
			    .new_rkey = true },
	};
	struct ibtrs_wire_conn_rsp w;
	u8 want[56];

	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_conn_rsp_encode(&w, &m);
	CHECK_MEM(&w, golden_rsp, 56);

	UNIT_ROW("nothing accepted: RTRS 2.0 to the byte");
	m.ext = 0xffffffe0;
	m.limits.new_rkey = false;
	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_conn_rsp_encode(&w, &m);
	memcpy(want, golden_rsp, 16);
	memset(want + 16, 0, 40);
	CHECK_MEM(&w, want, 56);

	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		UNIT_ROW("reject with %d says nothing else", errs[i].err);
		m.ext = 3;
		m.limits.new_rkey = true;
		m.err = errs[i].err;
		memset(&w, 0xff, sizeof(w));
		ibtrs_msg_conn_rsp_encode(&w, &m);
		memset(want + 4, 0, 52);
		want[4] = (u8)errs[i].want;
		want[5] = (u8)(errs[i].want >> 8);
		CHECK_MEM(&w, want, 56);
	}
}

UNIT_TEST(conn_rsp_accept_table)
{
	static const struct {
		const char *what;
		size_t len;
		bool other_cid;
		struct patch p[4];
		int err;
		const char *why;
		bool new_rkey;
		u32 ext;
	} rows[] = {
		{ "golden", 56, false, { { 0 } }, 0, NULL, true, 3 },
		{ "padded by the CM", 196, false, { { 0 } }, 0, NULL, true, 3 },
		{ "one byte short", 55, false, { { 0 } }, -ECONNRESET, "too short" },
		{ "nothing", 0, false, { { 0 } }, -ECONNRESET, "too short" },
		{ "magic", 56, false, { { 0, 2, 0x1bbc } }, -ECONNRESET, "magic" },
		{ "major 1", 56, false, { { 2, 2, 0x0100 } }, -ECONNRESET, "major version" },
		{ "minor does not matter", 56, false, { { 2, 1, 9 } }, 0, NULL, true, 3 },
		{ "errno in an accept",
		  56, false, { { 4, 2, 0xff98 } }, -ECONNRESET, "error at once" },
		{ "positive errno in an accept",
		  56, true, { { 4, 2, 1 } }, -ECONNRESET, "error at once" },
		{ "depth 0", 56, false, { { 6, 2, 0 } }, -EPROTO, "depth of 0" },
		{ "depth 1", 56, false, { { 6, 2, 1 } }, 0, NULL, true, 3 },
		{ "depth 65535 with chunk 4096", 56, false,
		  { { 6, 2, 65535 }, { 8, 4, 4096 }, { 12, 4, 4096 } }, -EPROTO, "do not fit" },
		{ "header 288", 56, false, { { 12, 4, 288 } }, 0, NULL, true, 3 },
		{ "header 287", 56, false, { { 12, 4, 287 } }, -EPROTO, "header size" },
		{ "header 0", 56, false, { { 12, 4, 0 } }, -EPROTO, "header size" },
		{ "header 1 MiB", 56, false,
		  { { 6, 2, 128 }, { 8, 4, 1 << 20 }, { 12, 4, 1 << 20 } }, 0, NULL, true, 3 },
		{ "header 1 MiB + 1",
		  56, false, { { 6, 2, 1 }, { 12, 4, (1 << 20) + 1 } }, -EPROTO, "header size" },
		{ "64 KiB pages at the server",
		  56, false, { { 8, 4, 65536 }, { 12, 4, 65536 } }, 0, NULL, true, 3 },
		{ "io 4096", 56, false, { { 8, 4, 4096 } }, 0, NULL, true, 3 },
		{ "io 4095", 56, false, { { 8, 4, 4095 } }, -EPROTO, "below 4096" },
		{ "sum overflows", 56, false,
		  { { 6, 2, 1 }, { 8, 4, 0xfffff000 }, { 12, 4, 4096 } }, -EPROTO, "impossible" },
		{ "sum just does not", 56, false,
		  { { 6, 2, 1 }, { 8, 4, 0xffffefff }, { 12, 4, 4096 } }, -EPROTO, "do not fit" },
		{ "28 bits: depth 512, 512 KiB",
		  56, false, { { 8, 4, (1 << 19) - 4096 } }, 0, NULL, true, 3 },
		{ "29 bits: one byte more",
		  56, false, { { 8, 4, (1 << 19) - 4095 } }, -EPROTO, "do not fit" },
		{ "29 bits: one slot more",
		  56, false, { { 6, 2, 513 }, { 8, 4, (1 << 19) - 4096 } }, -EPROTO, "do not fit" },
		{ "28 bits: depth 1, 256 MiB",
		  56, false, { { 6, 2, 1 }, { 8, 4, (1 << 28) - 4096 } }, 0, NULL, true, 3 },
		{ "29 bits: depth 1, 256 MiB + 1",
		  56, false, { { 6, 2, 1 }, { 8, 4, (1 << 28) - 4095 } }, -EPROTO, "do not fit" },
		{ "no flags", 56, false, { { 16, 4, 0 } }, 0, NULL, false, 3 },
		{ "unknown flag 0", 56, false, { { 16, 4, 1 } }, -EPROTO, "mode" },
		{ "unknown flag 31", 56, false, { { 16, 4, 0x80000002 } }, -EPROTO, "mode" },
		{ "no ext magic", 56, false, { { 20, 4, 0 } }, 0, NULL, true, 0 },
		{ "ext magic of something else", 56, false, { { 23, 1, 'x' } }, 0, NULL, true, 0 },
		{ "unknown features are ignored",
		  56, false, { { 24, 4, 0xffffffe1 } }, 0, NULL, true, 1 },
		{ "reserved bytes are ignored",
		  56, false, { { 28, 8, ~0ull }, { 48, 8, ~0ull } }, 0, NULL, true, 3 },
		{ "another cid: numbers are not looked at",
		  56, true, { { 6, 2, 0 }, { 8, 4, 0 }, { 12, 4, 0 }, { 16, 4, 5 } },
		  0, NULL, false, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *buf = patched(golden_rsp, 56, rows[i].len, rows[i].p, 4);
		struct ibtrs_conn_rsp m;
		const char *why = NULL;

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_msg_conn_rsp_decode(buf, rows[i].len, false, !rows[i].other_cid, &m,
						   &why), rows[i].err);
		reason_ok(why, rows[i].why);
		if (!rows[i].err) {
			__le16 qd;
			__le32 io, hdr;

			memcpy(&qd, buf + 6, 2);
			memcpy(&io, buf + 8, 4);
			memcpy(&hdr, buf + 12, 4);
			CHECK_EQ(m.err, 0);
			CHECK_EQ(m.limits.queue_depth, le16_to_cpu(qd));
			CHECK_EQ(m.limits.max_io_size, le32_to_cpu(io));
			CHECK_EQ(m.limits.max_hdr_size, le32_to_cpu(hdr));
			CHECK_EQ(m.limits.new_rkey, rows[i].new_rkey);
			CHECK_EQ(m.ext, rows[i].ext);
		}
		free(buf);
	}
}

UNIT_TEST(conn_rsp_reject_table)
{
	static const struct {
		const char *what;
		size_t len;
		u16 wire_err;
		int err, m_err;
	} rows[] = {
		{ "-ECONNRESET", 56, 0xff98, 0, -104 },
		{ "-EBUSY", 56, 0xfff0, 0, -16 },
		{ "padded", 148, 0xfffa, 0, -6 },
		{ "largest errno", 56, 0xfe01, 0, -511 },
		{ "ERESTARTSYS, the kernel's own", 56, 0xfe00, 0, -ECONNRESET },
		{ "EIOCBQUEUED, a BUG in a write", 56, 0xfdef, 0, -ECONNRESET },
		{ "-32768", 56, 0x8000, 0, -ECONNRESET },
		{ "0 is no success in a reject", 56, 0, 0, -ECONNRESET },
		{ "positive", 56, 111, 0, -ECONNRESET },
		{ "too short to say why", 55, 0xff98, -ECONNRESET, 0 },
		{ "no private data", 0, 0, -ECONNRESET, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct patch p[2] = { { 4, 2, rows[i].wire_err }, { 6, 2, 0 } };
		u8 *buf = patched(golden_rsp, 56, rows[i].len, p, 2);
		struct ibtrs_conn_rsp m;

		UNIT_ROW("%s", rows[i].what);
		if (CHECK_EQ(ibtrs_msg_conn_rsp_decode(buf, rows[i].len, true, true, &m, NULL),
			     rows[i].err) && !rows[i].err)
			CHECK_EQ(m.err, rows[i].m_err);
		free(buf);
	}
}

/* ---- INFO ---- */

/* Each byte at each place of a name of three: no control, no '/', no '.', no byte beyond ASCII. */
UNIT_TEST(name_every_byte)
{
	unsigned int at, byte;
	const char *why;
	char name[3];

	for (at = 0; at < 3; at++) {
		for (byte = 0; byte < 256; byte++) {
			UNIT_ROW("byte 0x%02x at %u", byte, at);
			memcpy(name, "abc", 3);
			name[at] = (char)byte;
			CHECK_EQ(ibtrs_msg_name_check(name, 3, &why),
				 byte < 0x20 || byte >= 0x7f || byte == '/' || byte == '.' ?
					 -EINVAL : 0);
		}
	}
}

UNIT_TEST(name_table)
{
	char longest[256];
	static const struct {
		const char *name;
		const char *why;
	} rows[] = {
		{ "a", NULL }, { "storage-1", NULL }, { "with space", NULL },
		{ "sch\xc3\xb6n", NULL }, { "a@b:c,d%", NULL },
		{ "", "empty" }, { "a/b", "'/'" },
		{ "/", "'/'" }, { "..", "'.'" }, { "a.b", "'.'" },
		{ "a\nb", "control" }, { "\x1f", "control" },
		{ "a\x7f", "control" }, { "tab\t", "control" },
		{ "\xe7\xa3\x81\xe7\x9b\x98", NULL }, { "\xf0\x9f\x92\xbe", NULL }, { "\xc2\xa0", NULL },
		{ "c1\xc2\x9b" "31m", "control" }, { "c1\x9b" "31m", "UTF-8" },
		{ "rlo\xe2\x80\xaegpj", "direction" }, { "\xe2\x81\xa6x", "direction" },
		{ "\xd8\x9cx", "direction" }, { "latin\xe4", "UTF-8" }, { "cut\xe7\xa3", "UTF-8" },
		{ "\xc0\xaf", "UTF-8" }, { "\xe0\x80\xaf", "UTF-8" }, { "\xed\xa0\x80", "UTF-8" },
		{ "\xf4\x90\x80\x80", "UTF-8" }, { "\xff", "UTF-8" }, { "\x80", "UTF-8" },
		{ "\xc3.", "UTF-8" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].name);
		char *exact = unit_exact(rows[i].name, len);
		const char *why = NULL;

		UNIT_ROW("\"%s\"", rows[i].name);
		CHECK_EQ(ibtrs_msg_name_check(exact, len, &why), rows[i].why ? -EINVAL : 0);
		reason_ok(why, rows[i].why);
		free(exact);
	}
	memset(longest, 'x', sizeof(longest));
	UNIT_ROW("length");
	CHECK_EQ(ibtrs_msg_name_check(longest, 254, NULL), 0);
	CHECK_EQ(ibtrs_msg_name_check(longest, 255, NULL), -EINVAL);
	UNIT_ROW("NUL inside");
	CHECK_EQ(ibtrs_msg_name_check("a\0b", 3, NULL), -EINVAL);
}

UNIT_TEST(info_req)
{
	static const struct {
		const char *what;
		size_t len;
		struct patch p[2];
		int err;
		const char *why;
		const char *name;
	} rows[] = {
		{ "golden", 272, { { 0 } }, 0, NULL, "node7" },
		{ "longer", 512, { { 0 } }, 0, NULL, "node7" },
		{ "one byte short", 271, { { 0 } }, -EPROTO, "too short" },
		{ "nothing", 0, { { 0 } }, -EPROTO, "too short" },
		{ "type 1", 272, { { 0, 2, 1 } }, -EPROTO, "another message" },
		{ "type 0x100", 272, { { 1, 1, 1 } }, -EPROTO, "another message" },
		{ "empty name", 272, { { 2, 1, 0 } }, -EINVAL, "empty" },
		{ "name with a dot", 272, { { 3, 1, '.' } }, -EINVAL, "'.'" },
		{ "bytes after the name are ignored",
		  272, { { 8, 8, ~0ull }, { 257, 8, ~0ull } }, 0, NULL, "node7" },
	};
	struct ibtrs_wire_info_req w;
	u8 golden[272] = { 0, 0, 'n', 'o', 'd', 'e', '7' };
	char longest[300];

	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_info_req_encode(&w, "node7");
	CHECK_MEM(&w, golden, 272);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *buf = patched(golden, 272, rows[i].len, rows[i].p, 2);
		const char *why = NULL, *name = NULL;

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_msg_info_req_decode(buf, rows[i].len, &name, &why), rows[i].err);
		reason_ok(why, rows[i].why);
		CHECK_STR(name, rows[i].name);
		if (name)
			CHECK_EQ(name - (char *)buf, 2);
		free(buf);
	}

	UNIT_ROW("longest name");
	memset(longest, 'n', sizeof(longest));
	longest[299] = 0;
	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_info_req_encode(&w, longest);
	const char *name = NULL;

	CHECK_EQ(ibtrs_msg_info_req_decode(&w, sizeof(w), &name, NULL), 0);
	CHECK_EQ(name ? strlen(name) : 0, 254);
	UNIT_ROW("no end within 255 bytes");
	w.name[254] = 'n';
	w.reserved[0] = 0;
	CHECK_EQ(ibtrs_msg_info_req_decode(&w, sizeof(w), &name, NULL), -EPROTO);
}

UNIT_TEST(info_rsp)
{
	static const struct ibtrs_desc d[2] = { { 0x1122334455667788, 0xaabbccdd, 0x20000 },
						{ 0x10, 1, 2 } };
	static const u8 golden[40] = {
		1, 0, 2, 0, 0x78, 0x56, 0x34, 0x12,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0xdd, 0xcc, 0xbb, 0xaa, 0, 0, 2, 0,
		0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,
	};
	static const struct {
		const char *what;
		size_t len;
		struct patch p[2];
		const char *why;
		u16 sg_cnt;
		u32 life;
	} rows[] = {
		{ "golden", 40, { { 0 } }, NULL, 2 },
		{ "longer than it says", 48, { { 0 } }, NULL, 2 },
		{ "one byte short of a descriptor", 39, { { 0 } }, "last descriptor" },
		{ "head only", 8, { { 0 } }, "last descriptor" },
		{ "head only, no descriptors", 8, { { 2, 2, 0 } }, NULL, 0 },
		{ "head incomplete", 7, { { 2, 2, 0 } }, "too short" },
		{ "nothing", 0, { { 0 } }, "too short" },
		{ "type 0", 40, { { 0, 2, 0 } }, "another message" },
		{ "65535 descriptors", 40, { { 2, 2, 65535 } }, "last descriptor" },
		{ "another life", 40, { { 4, 4, 9 } }, NULL, 2, 9 },
	};
	struct ibtrs_wire_info_rsp *w = malloc(ibtrs_msg_info_rsp_size(2));
	struct ibtrs_desc back;

	CHECK_EQ(ibtrs_msg_info_rsp_size(0), 8);
	CHECK_EQ(ibtrs_msg_info_rsp_size(2), 40);
	CHECK_EQ(ibtrs_msg_info_rsp_size(65535), 8 + 16 * 65535);
	memset(w, 0xff, 40);
	ibtrs_msg_info_rsp_encode(w, d, 2, 0x12345678);
	CHECK_MEM(w, golden, 40);
	for (int i = 0; i < 2; i++) {
		ibtrs_msg_desc_decode(&w->desc[i], &back);
		CHECK(back.addr == d[i].addr && back.rkey == d[i].rkey && back.len == d[i].len);
	}
	free(w);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *buf = patched(golden, 40, rows[i].len, rows[i].p, 2);
		const char *why = NULL;
		u16 sg_cnt = 77;
		u32 life = 77;

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_msg_info_rsp_decode(buf, rows[i].len, &sg_cnt, &life, &why),
			 rows[i].why ? -EPROTO : 0);
		reason_ok(why, rows[i].why);
		CHECK_EQ(sg_cnt, rows[i].why ? 77 : rows[i].sg_cnt);
		CHECK_EQ(life, rows[i].why ? 77 : rows[i].life ?: 0x12345678);
		free(buf);
	}
}

UNIT_TEST(a_later_life_of_a_path)
{
	struct ibtrs_conn_req m = { .recon_cnt = 5 };

	CHECK(ibtrs_msg_conn_req_newer(&m, 4));
	CHECK(!ibtrs_msg_conn_req_newer(&m, 5));
	CHECK(!ibtrs_msg_conn_req_newer(&m, 6));
	CHECK(ibtrs_msg_conn_req_newer(&m, 65535));
	m.recon_cnt = 65535;
	CHECK(!ibtrs_msg_conn_req_newer(&m, 2));
}
