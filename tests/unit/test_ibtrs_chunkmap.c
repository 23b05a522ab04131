// SPDX-License-Identifier: GPL-2.0-only
/* Slot -> chunk from INFO_RSP (protocol 2.4, E-36), and the server's choice of MRs. */
#include "ibtrs/logic/chunkmap.h"
#include "unit.h"

#define CHUNK	131072u

struct row {
	const char *what;
	u32 qd, chunk, sg_cnt;
	struct ibtrs_desc d[4];
	const char *why;	/* NULL: accepted */
};

static int build(const struct row *r, struct ibtrs_chunk *map, const char **why)
{
	struct ibtrs_limits l = { .queue_depth = r->qd, .chunk_size = r->chunk };
	struct ibtrs_wire_desc *w = malloc(r->sg_cnt * sizeof(*w));
	int err;

	for (u32 i = 0; i < r->sg_cnt; i++) {
		w[i].addr = cpu_to_le64(r->d[i % 4].addr);
		w[i].rkey = cpu_to_le32(r->d[i % 4].rkey);
		w[i].len = cpu_to_le32(r->d[i % 4].len);
	}
	err = ibtrs_chunkmap_build(w, r->sg_cnt, &l, map, why);
	free(w);
	return err;
}

UNIT_TEST(chunkmap_build_table)
{
	static const struct row rows[] = {
		{ "one MR for all", 4, CHUNK, 1, { { 0x1000, 1, 4 * CHUNK } }, NULL },
		{ "two MRs",
		  4, CHUNK, 2, { { 0x1000, 1, 2 * CHUNK }, { 0x900000, 2, 2 * CHUNK } }, NULL },
		{ "one MR per chunk", 4, CHUNK, 4,
		  { { 0, 1, CHUNK }, { 1, 2, CHUNK }, { 2, 3, CHUNK }, { 3, 4, CHUNK } }, NULL },
		{ "unequal, sum is right",
		  4, CHUNK, 2, { { 0, 1, CHUNK }, { 0, 2, 3 * CHUNK } }, NULL },
		{ "chunk is no power of two",
		  3, 12288 + 288, 1, { { 64, 7, 3 * (12288 + 288) } }, NULL },
		{ "ends at the last byte but one",
		  1, CHUNK, 1, { { ~0ull - CHUNK, 1, CHUNK } }, NULL },
		{ "depth 1", 1, CHUNK, 1, { { 0, 1, CHUNK } }, NULL },
		{ "depth 0", 0, CHUNK, 1, { { 0, 1, CHUNK } }, "is 0" },
		{ "chunk 0", 4, 0, 1, { { 0, 1, CHUNK } }, "is 0" },
		{ "no descriptor", 4, CHUNK, 0, { { 0 } }, "no chunk descriptors" },
		{ "count does not divide", 4, CHUNK, 3,
		  { { 0, 1, CHUNK }, { 0, 1, CHUNK }, { 0, 1, 2 * CHUNK } }, "does not divide" },
		{ "more descriptors than chunks",
		  2, CHUNK, 4, { { 0, 1, CHUNK } }, "does not divide" },
		{ "length 0", 4, CHUNK, 2, { { 0, 1, 4 * CHUNK }, { 0, 1, 0 } }, "whole number" },
		{ "length one more", 4, CHUNK, 1, { { 0, 1, 4 * CHUNK + 1 } }, "whole number" },
		{ "length one less", 4, CHUNK, 1, { { 0, 1, 4 * CHUNK - 1 } }, "whole number" },
		{ "one chunk short", 4, CHUNK, 1, { { 0, 1, 3 * CHUNK } }, "fewer" },
		{ "one chunk too many", 4, CHUNK, 1, { { 0, 1, 5 * CHUNK } }, "more chunks" },
		{ "too many in the second",
		  4, CHUNK, 2, { { 0, 1, 2 * CHUNK }, { 0, 1, 3 * CHUNK } }, "more chunks" },
		{ "address wraps", 1, CHUNK, 1, { { ~0ull - CHUNK + 1, 1, CHUNK } }, "wraps" },
		{ "address wraps in the second",
		  2, CHUNK, 2, { { 0, 1, CHUNK }, { ~0ull, 1, CHUNK } }, "wraps" },
		{ "28 bits: 4096 x 64 KiB", 4096, 65536, 1, { { 0, 1, 4096u * 65536 } }, NULL },
		{ "29 bits: 4097 x 64 KiB", 4097, 65536, 1, { { 0, 1, 0 } }, "do not fit" },
		{ "29 bits: 4096 x 64 KiB + 1", 4096, 65537, 1, { { 0, 1, 0 } }, "do not fit" },
	};
	struct ibtrs_chunk *map = calloc(4097, sizeof(*map));

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *why = NULL;
		int err = build(&rows[i], map, &why);

		UNIT_ROW("%s (%s)", rows[i].what, why ? why : "accepted");
		CHECK_EQ(err, rows[i].why ? -EPROTO : 0);
		CHECK_EQ(!!why, !!rows[i].why);
		if (rows[i].why && why)
			CHECK(strstr(why, rows[i].why));
	}
	free(map);
	UNIT_ROW("the reason may be left out");
	CHECK_EQ(build(&rows[7], NULL, NULL), -EPROTO);
}

UNIT_TEST(chunkmap_places)
{
	static const struct row r = {
		"", 6, 8192, 3, { { 0x10000, 0x11, 8192 }, { 0xf00000000, 0x22, 3 * 8192 },
				  { 0x50, 0x33, 2 * 8192 } }, NULL
	};
	static const struct ibtrs_chunk want[] = {
		{ 0x10000, 0x11 }, { 0xf00000000, 0x22 }, { 0xf00002000, 0x22 },
		{ 0xf00004000, 0x22 }, { 0x50, 0x33 }, { 0x2050, 0x33 },
	};
	struct ibtrs_chunk *map = malloc(sizeof(want));

	CHECK_EQ(build(&r, map, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		UNIT_ROW("slot %zu", i);
		CHECK_EQ(map[i].addr, want[i].addr);
		CHECK_EQ(map[i].rkey, want[i].rkey);
	}
	free(map);
}

UNIT_TEST(chunkmap_mr_count_table)
{
	static const struct {
		u32 qd, max, want;
	} rows[] = {
		{ 512, 512, 1 }, { 512, 511, 2 }, { 512, 513, 1 },
		{ 512, 256, 2 }, { 512, 255, 4 }, { 512, 1, 512 },
		{ 1000, 512, 2 }, { 1000, 300, 4 }, { 997, 512, 997 },
		{ 65535, 512, 255 }, { 1, 1, 1 }, { 1, UINT32_MAX, 1 },
		{ 0, 512, 0 }, { 512, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("depth %u, %u per MR", rows[i].qd, rows[i].max);
		CHECK_EQ(ibtrs_chunkmap_mr_count(rows[i].qd, rows[i].max), rows[i].want);
	}
}

/*
 * Any count that the server chooses is one that its own client accepts, and no
 * smaller one would do.
 */
UNIT_TEST(chunkmap_mr_count_is_least)
{
	bool ok = true;

	for (u32 qd = 1; qd <= 700 && ok; qd++) {
		for (u32 max = 1; max <= 40 && ok; max++) {
			u32 n = ibtrs_chunkmap_mr_count(qd, max);

			UNIT_ROW("depth %u, %u per MR", qd, max);
			ok = CHECK(n && qd % n == 0 && qd / n <= max);
			for (u32 k = 1; k < n && ok; k++)
				ok = CHECK(qd % k || qd / k > max);
		}
	}
}
