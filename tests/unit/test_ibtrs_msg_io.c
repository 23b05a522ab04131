// SPDX-License-Identifier: GPL-2.0-only
/*
 * The headers of requests and the new key of a chunk, against protocol 3 to 5, E-12 .. E-17,
 * E-37 and protocol 8.2. See test_ibtrs_msg.c for the messages of the handshake.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "patch.h"
#include "unit.h"

/* ---- request headers ---- */

static const struct ibtrs_limits plain = {
	.queue_depth = 512, .max_io_size = 126976, .max_hdr_size = 4096, .chunk_size = 131072,
};
static const struct ibtrs_limits fenced = {
	.queue_depth = 512, .max_io_size = 126976, .max_hdr_size = 4096, .chunk_size = 131072,
	.fence = true,
};
static const struct ibtrs_desc desc = { 0x0102030405060708, 0x11121314, 4096 };

UNIT_TEST(io_header_bytes)
{
	static const u8 write_[] = { 2, 0, 32, 0 };
	static const u8 write_f[] = { 5, 0, 32, 0, 0, 0, 0, 0, 0xf8, 0xf7, 0xf6, 0xf5, 0xf4, 0xf3,
				      0xf2, 0xf1 };
	static const u8 flush[] = { 3, 0, 32, 0, 0, 0, 0, 0 };
	static const u8 read_[] = { 3, 0, 32, 0, 1, 0, 1, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13,
				    0x12, 0x11, 0, 0x10, 0, 0 };
	static const u8 bounce[] = { 3, 0, 32, 0, 0, 0, 1, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13,
				     0x12, 0x11, 0, 0x10, 0, 0 };
	static const u8 read_f[] = {
		6, 0, 32, 0, 1, 0, 1, 0, 0xf8, 0xf7, 0xf6, 0xf5, 0xf4, 0xf3, 0xf2, 0xf1,
		8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0, 0x10, 0, 0
	};
	static const u8 flush_f[] = { 6, 0, 32, 0, 0, 0, 0, 0, 0xf8, 0xf7, 0xf6, 0xf5, 0xf4, 0xf3,
				      0xf2, 0xf1 };
	static const struct {
		const char *what;
		bool read, fence, inval, desc;
		const u8 *want;
		size_t len;
	} rows[] = {
		{ "write", false, false, false, false, write_, 4 },
		{ "write, fenced", false, true, false, false, write_f, 16 },
		{ "read", true, false, true, true, read_, 24 },
		{ "read, no invalidation", true, false, false, true, bounce, 24 },
		{ "read, fenced", true, true, true, true, read_f, 32 },
		{ "read without data", true, false, false, false, flush, 8 },
		{ "NEED_INVAL needs a descriptor", true, false, true, false, flush, 8 },
		{ "read without data, fenced", true, true, false, false, flush_f, 16 },
	};

	CHECK_EQ(IBTRS_IO_HDR_MAX, 32);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *mem = malloc(rows[i].len + 1), *buf = mem + 1;	/* odd on purpose */
		u64 token = 0xf1f2f3f4f5f6f7f8;
		size_t n;

		memset(buf, 0xff, rows[i].len);
		if (rows[i].read)
			n = ibtrs_msg_read_encode(buf, rows[i].fence, 32, token, rows[i].inval,
						  rows[i].desc ? &desc : NULL);
		else
			n = ibtrs_msg_write_encode(buf, rows[i].fence, 32, token);
		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(n, rows[i].len);
		CHECK_MEM(buf, rows[i].want, rows[i].len);
		free(mem);
	}
}

/* Protocol 4 and 10.1: what is posted for each operation, and where. */
UNIT_TEST(worked_sequences)
{
	static const struct {
		const char *what;
		bool read;
		u16 usr_len;
		u32 data_len;
		u32 bytes, at, imm_off;
	} rows[] = {
		{ "SESS_INFO", true, 36, 36, 60, 36, 72 },
		{ "OPEN", true, 264, 56, 288, 56, 320 },
		{ "CLOSE", false, 8, 0, 12, 0, 8 },
		{ "read 4 KiB", true, 32, 4096, 56, 4096, 4128 },
		{ "write 4 KiB", false, 32, 4096, 4132, 0, 4128 },
		{ "flush", true, 32, 0, 40, 0, 32 },
		{ "discard", false, 32, 0, 36, 0, 32 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_desc d = { 0x1000, 7, rows[i].data_len };
		u8 buf[IBTRS_IO_HDR_MAX];
		struct ibtrs_io_hdr h;
		const char *why = NULL;
		u32 off = rows[i].data_len + rows[i].usr_len;
		size_t n;

		UNIT_ROW("%s", rows[i].what);
		if (rows[i].read)
			n = ibtrs_msg_read_encode(buf, false, rows[i].usr_len, 0, true,
						  rows[i].data_len ? &d : NULL);
		else
			n = ibtrs_msg_write_encode(buf, false, rows[i].usr_len, 0);
		/* a write carries its data, a read leaves room for it */
		CHECK_EQ(rows[i].usr_len + n + (rows[i].read ? 0 : rows[i].data_len),
			 rows[i].bytes);
		CHECK_EQ(rows[i].read ? rows[i].data_len : 0, rows[i].at);
		CHECK_EQ(off, rows[i].imm_off);

		CHECK_EQ(ibtrs_msg_io_decode(buf, n, off, &plain, &h, &why), 0);
		CHECK_EQ(h.read, rows[i].read);
		CHECK_EQ(h.usr_len, rows[i].usr_len);
		CHECK_EQ(h.data_len, rows[i].data_len);
		CHECK_EQ(h.has_desc, rows[i].read && rows[i].data_len);
		CHECK_EQ(h.need_inval, h.has_desc);
		CHECK_EQ(h.token, 0);
		CHECK_EQ(ibtrs_imm_req(5, off, 19), 5u << 19 | rows[i].imm_off);
	}
}

/*
 * Golden read of 4096 bytes with U = 32: off 4128. Fields are patched, then
 * decoded with as many bytes as the row says.
 */
UNIT_TEST(io_decode_table)
{
	enum { W, R, WF, RF };
	static const struct {
		const char *what;
		int type;
		u32 off;
		size_t len;
		struct patch p[3];
		int err;
		const char *why;
		bool has_desc, inval;
	} rows[] = {
		{ "write", W, 4128, 32, { { 0 } }, 0, NULL, false, false },
		{ "read", R, 4128, 32, { { 0 } }, 0, NULL, true, true },
		{ "fenced write", WF, 4128, 32, { { 0 } }, 0, NULL, false, false },
		{ "fenced read", RF, 4128, 32, { { 0 } }, 0, NULL, true, true },
		/* E-12: the header ends within the chunk, for each shape */
		{ "write header fits to the byte", W, 4128, 4, { { 0 } }, 0, NULL, false, false },
		{ "write header cut", W, 4128, 3, { { 0 } }, -EPROTO, "crosses", false, false },
		{ "no byte at all", W, 4128, 0, { { 0 } }, -EPROTO, "crosses", false, false },
		{ "read header fits to the byte", R, 4128, 24, { { 0 } }, 0, NULL, true, true },
		{ "read descriptor cut",
		  R, 4128, 23, { { 0 } }, -EPROTO, "descriptor of a read crosses", false, false },
		{ "read header cut", R, 4128, 7, { { 0 } }, -EPROTO, "crosses", false, false },
		{ "read without data fits to the byte",
		  R, 32, 8, { { 4, 4, 0 } }, 0, NULL, false, false },
		{ "fenced write fits to the byte", WF, 4128, 16, { { 0 } }, 0, NULL, false, false },
		{ "fenced write cut", WF, 4128, 15, { { 0 } }, -EPROTO, "crosses", false, false },
		{ "fenced read fits to the byte", RF, 4128, 32, { { 0 } }, 0, NULL, true, true },
		{ "fenced read descriptor cut",
		  RF, 4128, 31, { { 0 } }, -EPROTO, "descriptor of a read crosses", false, false },
		{ "fenced read cut", RF, 4128, 15, { { 0 } }, -EPROTO, "crosses", false, false },
		{ "offset at the chunk's end",
		  W, 131072, 32, { { 0 } }, -EPROTO, "beyond the chunk", false, false },
		{ "offset far beyond",
		  W, UINT32_MAX, 32, { { 0 } }, -EPROTO, "beyond the chunk", false, false },
		{ "last place of a write",
		  W, 131068, 32, { { 2, 2, 4096 } }, 0, NULL, false, false },
		{ "one byte later",
		  W, 131069, 32, { { 2, 2, 4096 } }, -EPROTO, "crosses", false, false },
		/* E-14: type, flags, sg_cnt */
		{ "type 0", W, 4128, 32, { { 0, 2, 0 } }, -EPROTO, "unknown type", false, false },
		{ "type 1", W, 4128, 32, { { 0, 2, 1 } }, -EPROTO, "unknown type", false, false },
		{ "type 4", W, 4128, 32, { { 0, 2, 4 } }, -EPROTO, "unknown type", false, false },
		{ "type 7", WF, 4128, 32, { { 0, 2, 7 } }, -EPROTO, "unknown type", false, false },
		{ "type 0x102",
		  W, 4128, 32, { { 0, 2, 0x102 } }, -EPROTO, "unknown type", false, false },
		{ "write on a fenced path",
		  WF, 4128, 32, { { 0, 2, 2 } }, -EPROTO, "without a token", false, false },
		{ "read on a fenced path",
		  RF, 4128, 32, { { 0, 2, 3 } }, -EPROTO, "without a token", false, false },
		{ "fenced write on a plain path",
		  W, 4128, 32, { { 0, 2, 5 } }, -EPROTO, "without FENCE", false, false },
		{ "fenced read on a plain path",
		  R, 4128, 32, { { 0, 2, 6 } }, -EPROTO, "without FENCE", false, false },
		{ "two descriptors",
		  R, 4128, 32, { { 6, 2, 2 } }, -EINVAL, "more than one", false, false },
		{ "sg_cnt 0x100",
		  R, 4128, 32, { { 6, 2, 0x100 } }, -EINVAL, "more than one", false, false },
		{ "no NEED_INVAL", R, 4128, 32, { { 4, 2, 0 } }, 0, NULL, true, false },
		{ "unknown flags are ignored",
		  R, 4128, 32, { { 4, 2, 0xfffe } }, 0, NULL, true, false },
		{ "NEED_INVAL without descriptor",
		  R, 32, 32, { { 6, 2, 0 } }, 0, NULL, false, false },
		/* E-15: usr_len */
		{ "usr_len 4", W, 4128, 32, { { 2, 2, 4 } }, 0, NULL, false, false },
		{ "usr_len 3",
		  W, 4128, 32, { { 2, 2, 3 } }, -EPROTO, "shorter than 4", false, false },
		{ "usr_len 0",
		  W, 4128, 32, { { 2, 2, 0 } }, -EPROTO, "shorter than 4", false, false },
		{ "usr_len = max_hdr_size",
		  W, 4128, 32, { { 2, 2, 4096 } }, 0, NULL, false, false },
		{ "usr_len = max_hdr_size + 1",
		  W, 4128, 32, { { 2, 2, 4097 } }, -EPROTO, "longer than", false, false },
		{ "usr_len = off", W, 32, 32, { { 0 } }, 0, NULL, false, false },
		{ "usr_len = off + 1", W, 31, 32, { { 0 } }, -EPROTO, "longer than", false, false },
		{ "offset 0", W, 0, 32, { { 0 } }, -EPROTO, "longer than", false, false },
		/* E-16: D */
		{ "D = max_io_size", W, 126976 + 32, 32, { { 0 } }, 0, NULL, false, false },
		{ "D = max_io_size + 1",
		  W, 126977 + 32, 32, { { 0 } }, -EINVAL, "maximum I/O", false, false },
		{ "read, D = max_io_size + 1",
		  R, 126977 + 32, 32, { { 20, 4, 126977 } }, -EINVAL, "maximum I/O", true, true },
		/* E-17: the descriptor's length */
		{ "longer than D", R, 4128, 32, { { 20, 4, UINT32_MAX } }, 0, NULL, true, true },
		{ "one shorter than D",
		  R, 4128, 32, { { 20, 4, 4095 } }, -EINVAL, "shorter than its data", true, true },
		{ "length 0", R, 4128, 32, { { 20, 4, 0 } }, -EINVAL, "no data", true, true },
		{ "length 0, D = 0", R, 32, 32, { { 20, 4, 0 } }, -EINVAL, "no data", true, true },
		{ "descriptor, but D = 0", R, 32, 32, { { 0 } }, -EINVAL, "no data", true, true },
		{ "D, but no descriptor",
		  R, 4128, 32, { { 6, 2, 0 } }, -EINVAL, "no descriptor", false, false },
		{ "fenced, one shorter than D",
		  RF, 4128, 32, { { 28, 4, 4095 } }, -EINVAL, "shorter than its data", true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool read = rows[i].type == R || rows[i].type == RF, fence = rows[i].type >= WF;
		struct ibtrs_io_hdr h;
		const char *why = NULL;
		u8 golden[IBTRS_IO_HDR_MAX] = { 0 }, *buf;
		int err;

		if (read)
			ibtrs_msg_read_encode(golden, fence, 32, 0x123456789a, true, &desc);
		else
			ibtrs_msg_write_encode(golden, fence, 32, 0x123456789a);
		buf = patched(golden, sizeof(golden), rows[i].len, rows[i].p, 3);
		err = ibtrs_msg_io_decode(buf, rows[i].len, rows[i].off,
					  fence ? &fenced : &plain, &h, &why);

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(err, rows[i].err);
		reason_ok(why, rows[i].why);
		CHECK_EQ(h.has_desc, rows[i].has_desc);
		CHECK_EQ(h.need_inval, rows[i].inval);
		if (err != -EPROTO) {
			CHECK_EQ(h.read, read);
			CHECK_EQ(h.data_len, rows[i].off - h.usr_len);
			CHECK_EQ(h.token, fence ? 0x123456789a : 0);
			if (h.has_desc)
				CHECK(h.desc.addr == desc.addr && h.desc.rkey == desc.rkey);
		}
		free(buf);
	}
}

/*
 * What a client may send, a server with the same numbers understands, at every
 * size around the limits.
 */
UNIT_TEST(what_fits_is_understood)
{
	static const u32 sizes[] = { 0, 1, 512, 4095, 4096, 65536, 126975, 126976, 126977 };
	static const u32 usr[] = { 3, 4, 5, 32, 264, 4063, 4064, 4065, 4071, 4072, 4073, 4079, 4080,
				   4081, 4091, 4092, 4093 };
	unsigned int fit = 0;

	for (int mode = 0; mode < 4; mode++) {
		const struct ibtrs_limits *l = mode & 1 ? &fenced : &plain;
		bool read = mode & 2;

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			for (size_t j = 0; j < ARRAY_SIZE(usr); j++) {
				struct ibtrs_desc d = { 1, 2, sizes[i] };
				u32 off = sizes[i] + usr[j];
				u8 hdr[IBTRS_IO_HDR_MAX], *buf;
				struct ibtrs_io_hdr h;
				size_t n;

				UNIT_ROW("mode %d, D %u, U %u", mode, sizes[i], usr[j]);
				n = read ? ibtrs_msg_read_encode(hdr, l->fence, usr[j], 9, true,
								 sizes[i] ? &d : NULL) :
					   ibtrs_msg_write_encode(hdr, l->fence, usr[j], 9);
				if (usr[j] < 4 || usr[j] + n > l->max_hdr_size ||
				    sizes[i] > l->max_io_size)
					continue;
				fit++;
				buf = unit_exact(hdr, n);
				CHECK_EQ(ibtrs_msg_io_decode(buf, n, off, l, &h, NULL), 0);
				CHECK_EQ(h.data_len, sizes[i]);
				CHECK_EQ(h.usr_len, usr[j]);
				free(buf);
			}
		}
	}
	UNIT_ROW("combinations");
	CHECK(fit > 300);
}

UNIT_TEST(rkey_rsp)
{
	static const u8 golden[8] = { 4, 0, 0xff, 0x01, 0x78, 0x56, 0x34, 0x12 };
	static const struct {
		const char *what;
		size_t len;
		u32 slot;
		struct patch p;
		const char *why;
	} rows[] = {
		{ "golden", 8, 511, { 0 }, NULL },
		{ "longer", 16, 511, { 0 }, NULL },
		{ "one byte short", 7, 511, { 0 }, "too short" },
		{ "nothing", 0, 511, { 0 }, "too short" },
		{ "type 3", 8, 511, { 0, 2, 3 }, "another message" },
		{ "another slot", 8, 510, { 0 }, "another slot" },
		{ "slot beyond 16 bits", 8, 0x101ff, { 0 }, "another slot" },
	};
	struct ibtrs_wire_rkey_rsp w;

	memset(&w, 0xff, sizeof(w));
	ibtrs_msg_rkey_encode(&w, 511, 0x12345678);
	CHECK_MEM(&w, golden, 8);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u8 *buf = patched(golden, 8, rows[i].len, &rows[i].p, 1);
		const char *why = NULL;
		u32 rkey = 1;

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_msg_rkey_decode(buf, rows[i].len, rows[i].slot, &rkey, &why),
			 rows[i].why ? -EPROTO : 0);
		CHECK_EQ(rkey, rows[i].why ? 1 : 0x12345678);
		reason_ok(why, rows[i].why);
		free(buf);
	}
}

UNIT_TEST(trial_message)
{
	static const u8 golden[24] = { 7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0x44, 0x33,
				       0x22, 0x11, 0, 0, 2, 0 };
	static const struct {
		const char *what;
		u16 type;
		u32 off, len;
		int want;
	} rows[] = {
		{ "as it should be", 7, 131072, 131072, 0 }, { "short", 7, 1, 1, 0 },
		{ "another type", 6, 131072, 131072, -EPROTO },
		{ "no data", 7, 0, 0, -EPROTO },
		{ "more data than the largest request", 7, 131073, 131073, -EPROTO },
		{ "a longer descriptor", 7, 4096, 4097, -EPROTO },
		{ "a shorter one", 7, 4096, 4095, -EPROTO },
	};
	const struct ibtrs_limits l = { .queue_depth = 512, .max_io_size = 131072,
					.max_hdr_size = 4096, .chunk_size = 135168, .fence = true };
	struct ibtrs_desc d = { .addr = 0x0102030405060708ull, .rkey = 0x11223344, .len = 131072 },
		got;
	struct ibtrs_wire_trial w;
	const char *why;

	ibtrs_trial_encode(&w, &d);
	CHECK(!memcmp(&w, golden, sizeof(golden)));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].what);
		d.len = rows[i].len;
		ibtrs_trial_encode(&w, &d);
		w.type = cpu_to_le16(rows[i].type);
		CHECK_EQ(ibtrs_trial_decode(&w, rows[i].off, &l, &got, &why), rows[i].want);
		CHECK_EQ(!why, !rows[i].want);
		if (!rows[i].want)
			CHECK(got.addr == d.addr && got.rkey == d.rkey && got.len == d.len);
	}
}
