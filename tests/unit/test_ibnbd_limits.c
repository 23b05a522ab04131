// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue limits from OPEN_RSP (protocol 10.1, M9, M10) and the question "is it still the
 * same disk" (decision 12).
 */
#include "unit.h"
#include "ibnbd/logic/limits.h"

static const char *why;

static struct ibnbd_open_rsp rsp_of(u32 logical, u32 physical, u64 nsectors)
{
	struct ibnbd_open_rsp r = { .logical_block_size = logical, .physical_block_size = physical,
				    .nsectors = nsectors };

	return r;
}

static struct ibnbd_limits_in in_of(u32 max_io)
{
	struct ibnbd_limits_in in = { .max_io_bytes = max_io, .max_segments = 31 };

	return in;
}

UNIT_TEST(sizes)
{
	static const struct {
		const char *name;
		u32 logical, physical;
		u64 nsectors;
		u32 max_io;
		int rc;
		u64 want_sectors;
		u32 want_max, want_io_opt;
	} rows[] = {
		{ "the default session", 512, 4096, 1000, 126976, 0, 1000, 248, 126976 },
		{ "4Kn", 4096, 4096, 1000, 126976, 0, 1000, 248, 126976 },
		{ "capacity rounded to blocks", 4096, 4096, 1007, 126976, 0, 1000, 248, 126976 },
		{ "smaller than a block", 4096, 4096, 7, 126976, -EPROTO, 0, 0, 0 },
		{ "no size yet", 512, 512, 0, 126976, 0, 0, 248, 126976 },
		{ "I/O size rounded to blocks", 4096, 4096, 1000, 8191, 0, 1000, 8, 4096 },
		{ "I/O smaller than a block", 8192, 8192, 1000, 4096, -EPROTO, 0, 0, 0 },
		{ "I/O size 0", 512, 512, 1000, 0, -EPROTO, 0, 0, 0 },
		{ "optimum is whole physical blocks",
		  512, 65536, 1000, 126976, 0, 1000, 248, 65536 },
		{ "no optimum below a physical block", 512, 65536, 1000, 32768, 0, 1000, 64, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp r = rsp_of(rows[i].logical, rows[i].physical,
						 rows[i].nsectors);
		struct ibnbd_limits_in in = in_of(rows[i].max_io);
		struct ibnbd_limits l;

		UNIT_ROW("%s", rows[i].name);
		CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), rows[i].rc);
		if (rows[i].rc)
			continue;
		CHECK_EQ(l.nsectors, rows[i].want_sectors);
		CHECK_EQ(l.max_hw_sectors, rows[i].want_max);
		CHECK_EQ(ibnbd_limits_most(&l, IBNBD_OP_WRITE), rows[i].want_max * 512);
		CHECK_EQ(l.io_opt, rows[i].want_io_opt);
		CHECK_EQ(l.io_min, rows[i].physical);
		CHECK_EQ(l.logical_block_size, rows[i].logical);
		CHECK_EQ(l.physical_block_size, rows[i].physical);
		CHECK_EQ(l.max_segments, 31);
		CHECK(!l.rotational);
	}
}

/* What the kernel would read ahead is not the server's to say. */
UNIT_TEST(sizes_that_are_not_believed)
{
	static const struct {
		const char *name;
		u32 io_min, io_opt, want_min, want_opt;
		bool capped;
	} rows[] = {
		{ "an array", 65536, 1 << 20, 65536, 1 << 20, false },
		{ "the largest", 4096, 16 << 20, 4096, 16 << 20, false },
		{ "a little more", 4096, (16 << 20) + 4096, 4096, 126976, true },
		{ "the largest there is", 4096, 0xfffff000, 4096, 126976, true },
		{ "the smallest that is larger", 0x80000000, 0x80000000, 4096, 126976, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp r = rsp_of(512, 4096, 1000);
		struct ibnbd_limits_in in = in_of(126976);
		struct ibnbd_limits l;

		UNIT_ROW("%s", rows[i].name);
		r.has_identity = true;
		r.identity.io_min = rows[i].io_min;
		r.identity.io_opt = rows[i].io_opt;
		r.identity.flags = IBNBD_ID_F_STABLE_PAGES;
		CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), 0);
		CHECK_EQ(l.io_min, rows[i].want_min);
		CHECK_EQ(l.io_opt, rows[i].want_opt);
		CHECK_EQ(!!l.capped, rows[i].capped);
		CHECK(l.stable_pages);
	}
}

/* A disk in use counts on in the blocks it was mapped with. */
UNIT_TEST(block_size_is_kept)
{
	static const struct {
		const char *name;
		u64 old_size;
		u32 old, new, granularity;
		u64 size, want_size;
		u32 want, want_physical, want_granularity;
	} rows[] = {
		{ "the same", 1000, 512, 512, 512, 1003, 1003, 512, 512, 512 },
		{ "larger blocks", 1000, 512, 4096, 4096, 1000, 1000, 4096, 4096, 4096 },
		{ "smaller blocks", 1000, 4096, 512, 512, 1003, 1000, 4096, 4096, 4096 },
		{ "no discard", 1000, 4096, 512, 0, 1000, 1000, 4096, 4096, 0 },
		{ "a large hole", 1000, 4096, 512, 65536, 1000, 1000, 4096, 4096, 65536 },
		{ "grew", 1000, 2048, 1024, 1024, 1010, 1008, 2048, 2048, 2048 },
		{ "had no size", 0, 4096, 512, 512, 1003, 1003, 512, 512, 512 },
		{ "not mapped yet", 0, 0, 512, 512, 1003, 1003, 512, 512, 512 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp old = rsp_of(rows[i].old, rows[i].old, rows[i].old_size);
		struct ibnbd_open_rsp r = rsp_of(rows[i].new, rows[i].new, rows[i].size);
		enum ibnbd_remap verdict;

		UNIT_ROW("%s", rows[i].name);
		r.discard_granularity = rows[i].granularity;
		ibnbd_limits_keep_block(&old, &r);
		CHECK_EQ(r.nsectors, rows[i].want_size);
		CHECK_EQ(r.logical_block_size, rows[i].want);
		CHECK_EQ(r.physical_block_size, rows[i].want_physical);
		CHECK_EQ(r.discard_granularity, rows[i].want_granularity);
		verdict = ibnbd_remap_compare(&old, &r, IBNBD_ACCESS_RW, false, &why);
		CHECK_EQ(verdict == IBNBD_REMAP_FENCE,
			 rows[i].old_size && rows[i].new > rows[i].old);
	}
}

UNIT_TEST(no_segments)
{
	struct ibnbd_open_rsp r = rsp_of(512, 512, 1000);
	struct ibnbd_limits_in in = in_of(4096);
	struct ibnbd_limits l;

	in.max_segments = 0;
	CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), -EPROTO);
}

UNIT_TEST(discard)
{
	static const struct {
		const char *name;
		u32 max, granularity, alignment;
		u16 secure;
		u32 logical, want_max, want_granularity, want_alignment, want_secure;
	} rows[] = {
		{ "none", 0, 4096, 512, 1, 512, 0, 0, 0, 0 },
		{ "plain", 1024, 4096, 0, 0, 512, 1024, 4096, 0, 0 },
		{ "granularity not told", 1024, 0, 0, 0, 4096, 1024, 4096, 0, 0 },
		{ "with secure erase", 1024, 4096, 0, 7, 512, 1024, 4096, 0, 1024 },
		{ "alignment", 1024, 4096, 512, 0, 512, 1024, 4096, 512, 0 },
		{ "alignment beyond the granularity",
		  1024, 4096, 4608, 0, 512, 1024, 4096, 512, 0 },
		{ "misaligned partition", 1024, 4096, U32_MAX, 0, 512, 1024, 4096, 0, 0 },
		{ "max is no whole block", 1025, 4096, 0, 0, 4096, 1024, 4096, 0, 0 },
		{ "less than a block", 7, 4096, 0, 0, 4096, 0, 0, 0, 0 },
		{ "more than 32 bits of bytes",
		  U32_MAX, 4096, 0, 1, 512, 8388607, 4096, 0, 8388607 },
		{ "the same on 4Kn", U32_MAX, 4096, 0, 1, 4096, 8388600, 4096, 0, 8388600 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp r = rsp_of(rows[i].logical, 4096, 1 << 20);
		struct ibnbd_limits_in in = in_of(126976);
		struct ibnbd_limits l;

		UNIT_ROW("%s", rows[i].name);
		r.max_discard_sectors = rows[i].max;
		r.discard_granularity = rows[i].granularity;
		r.discard_alignment = rows[i].alignment;
		r.secure_discard = rows[i].secure;
		CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), 0);
		CHECK_EQ(l.max_discard_sectors, rows[i].want_max);
		CHECK_EQ(l.discard_granularity, rows[i].want_granularity);
		CHECK_EQ(l.discard_alignment, rows[i].want_alignment);
		CHECK_EQ(l.max_secure_erase_sectors, rows[i].want_secure);
		CHECK_EQ(ibnbd_limits_most(&l, IBNBD_OP_DISCARD), rows[i].want_max * 512);
		CHECK_EQ(ibnbd_limits_most(&l, IBNBD_OP_SECURE_ERASE), rows[i].want_secure * 512);
	}
}

/* M10: offset 20 is believed only where it is known what it means. */
UNIT_TEST(write_zeroes)
{
	static const struct {
		enum ibnbd_write_zeroes opt;
		u64 features;
		u32 announced, want;
	} rows[] = {
		{ IBNBD_ZEROES_AUTO, 0, 1024, 0 },
		{ IBNBD_ZEROES_AUTO, IBNBD_FEAT_ZEROES, 1024, 1024 },
		{ IBNBD_ZEROES_AUTO, IBNBD_FEAT_IDENTITY, 1024, 0 },
		{ IBNBD_ZEROES_AUTO, IBNBD_FEAT_ZEROES, 0, 0 },
		{ IBNBD_ZEROES_ON, 0, 1024, 1024 },
		{ IBNBD_ZEROES_ON, 0, U32_MAX, 8388607 },
		{ IBNBD_ZEROES_OFF, IBNBD_FEAT_ZEROES, 1024, 0 },
		{ IBNBD_ZEROES_OFF, 0, 1024, 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp r = rsp_of(512, 512, 1 << 20);
		struct ibnbd_limits_in in = in_of(126976);
		struct ibnbd_limits l;

		UNIT_ROW("option %d, features %llu, %u", rows[i].opt,
			 (unsigned long long)rows[i].features, rows[i].announced);
		r.max_write_zeroes_sectors = rows[i].announced;
		in.write_zeroes = rows[i].opt;
		in.features = rows[i].features;
		CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), 0);
		CHECK_EQ(l.max_write_zeroes_sectors, rows[i].want);
		CHECK_EQ(ibnbd_limits_most(&l, IBNBD_OP_WRITE_ZEROES), rows[i].want * 512);
	}
}

/*
 * M9: a missing WRITEBACK bit is no promise, unless the server is ours or the
 * administrator says so.
 */
UNIT_TEST(write_cache)
{
	static const struct {
		enum ibnbd_write_cache opt;
		u64 features;
		bool wb, fua, want, want_fua;
	} rows[] = {
		{ IBNBD_CACHE_AUTO, 0, true, true, true, true },
		{ IBNBD_CACHE_AUTO, 0, true, false, true, false },
		{ IBNBD_CACHE_AUTO, 0, false, false, true, false },
		/* io_mode=blockio of an old server looks like FUA */
		{ IBNBD_CACHE_AUTO, 0, false, true, true, false },
		{ IBNBD_CACHE_AUTO, 3, false, false, false, false },
		{ IBNBD_CACHE_AUTO, 3, true, true, true, true },
		{ IBNBD_CACHE_ON, 3, false, false, true, false },
		{ IBNBD_CACHE_ON, 0, false, true, true, false },
		{ IBNBD_CACHE_OFF, 0, false, false, false, false },
		{ IBNBD_CACHE_OFF, 0, false, true, false, false },
		/* off believes the server, it does not lose data */
		{ IBNBD_CACHE_OFF, 0, true, true, true, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp r = rsp_of(512, 512, 1 << 20);
		struct ibnbd_limits_in in = in_of(126976);
		struct ibnbd_limits l;

		UNIT_ROW("row %zu", i);
		r.writeback = rows[i].wb;
		r.fua = rows[i].fua;
		in.write_cache = rows[i].opt;
		in.features = rows[i].features;
		CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), 0);
		CHECK_EQ(l.write_cache, rows[i].want);
		CHECK_EQ(l.fua, rows[i].want_fua);
	}
}

UNIT_TEST(topology_of_identity)
{
	static const struct {
		const char *name;
		u32 io_min, io_opt, want_min, want_opt;
		u8 flags;
		bool rotational, stable;
	} rows[] = {
		{ "nothing said", 0, 0, 4096, 126976, 0, false, false },
		{ "a RAID", 65536, 262144, 65536, 262144, IBNBD_ID_F_ROTATIONAL, true, false },
		{ "nonsense is ignored",
		  1000, 1001, 4096, 126976, IBNBD_ID_F_STABLE_PAGES, false, true },
		{ "minimum below a block", 512, 4096, 4096, 4096, 0, false, false },
		{ "optimum below the minimum", 65536, 4096, 65536, 126976, 6, true, true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp r = rsp_of(512, 4096, 1 << 20);
		struct ibnbd_limits_in in = in_of(126976);
		struct ibnbd_limits l;

		UNIT_ROW("%s", rows[i].name);
		r.has_identity = true;
		r.identity.io_min = rows[i].io_min;
		r.identity.io_opt = rows[i].io_opt;
		r.identity.flags = rows[i].flags;
		CHECK_EQ(ibnbd_limits_build(&r, &in, &l, &why), 0);
		CHECK_EQ(l.io_min, rows[i].want_min);
		CHECK_EQ(l.io_opt, rows[i].want_opt);
		CHECK_EQ(l.rotational, rows[i].rotational);
		CHECK_EQ(l.stable_pages, rows[i].stable);
	}
}

/* ---- remap ---- */

struct disk {
	u64 nsectors;
	u32 logical;
	bool has_identity;
	u8 kind, id, flags;
	u64 gen;
};

static struct ibnbd_open_rsp answer(const struct disk *d)
{
	struct ibnbd_open_rsp r = rsp_of(d->logical, 4096, d->nsectors);

	r.has_identity = d->has_identity;
	r.identity.kind = d->kind;
	r.identity.id[15] = d->id;
	r.identity.flags = d->flags;
	r.identity.writer_gen = d->gen;
	return r;
}

#define FORGETS	"the server has no record of whether another client wrote meanwhile " \
	"(see its writer_file=): remap_device accepts the disk as it is"

UNIT_TEST(remap)
{
	enum { OK, FENCE, RETRY };	/* as enum ibnbd_remap */
	enum { RO, RW, MIG };		/* the wire's numbers */
	static const struct {
		const char *name;
		struct disk old, new;
		int access;
		bool held;
		int want;
		const char *reason;
	} rows[] = {
		{ "same, plain server", { 100, 512, 0, 0, 0, 0, 0 },
		  { 100, 512, 0, 0, 0, 0, 0 }, RW, true, OK, NULL },
		{ "same, our server", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 1, 5, 0, 9 }, RW, true, OK, NULL },
		{ "grew", { 100, 512, 1, 1, 5, 0, 9 },
		  { 108, 512, 1, 1, 5, 0, 9 }, RW, true, OK, NULL },
		{ "grew, plain server", { 100, 512, 0, 0, 0, 0, 0 },
		  { 101, 512, 0, 0, 0, 0, 0 }, RO, false, OK, NULL },
		{ "shrank", { 100, 512, 1, 1, 5, 0, 9 },
		  { 99, 512, 1, 1, 5, 0, 9 }, RW, false, FENCE, "the disk shrank" },
		{ "shrank, read-only", { 100, 512, 0, 0, 0, 0, 0 },
		  { 99, 512, 0, 0, 0, 0, 0 }, RO, false, FENCE, "the disk shrank" },
		{ "block size", { 100, 512, 0, 0, 0, 0, 0 },
		  { 100, 4096, 0, 0, 0, 0, 0 }, RW, false, FENCE,
		  "the logical block size changed" },
		{ "another disk", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 1, 6, 0, 9 }, RW, false, FENCE,
		  "another disk is behind this name now" },
		{ "another disk, read-only",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 100, 512, 1, 1, 6, 0, 9 }, RO, false, FENCE,
		  "another disk is behind this name now" },
		{ "another kind", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 3, 5, 0, 9 }, RW, false, FENCE,
		  "another disk is behind this name now" },
		{ "kind lost", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 0, 0, 0, 9 }, RW, false, FENCE,
		  "the disk behind this name has lost its identity" },
		{ "identity vanished", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 0, 0, 0, 0, 0 }, RW, false, FENCE,
		  "the server no longer tells which disk this is" },
		{ "feature vanished, identity was none",
		  { 100, 512, 1, 0, 0, 0, 9 }, { 100, 512, 0, 0, 0, 0, 0 }, RW, false, FENCE,
		  "the server no longer tells which disk this is" },
		{ "identity appeared", { 100, 512, 0, 0, 0, 0, 0 },
		  { 100, 512, 1, 1, 5, 0, 9 }, RW, true, OK, NULL },
		{ "identity became known", { 100, 512, 1, 0, 0, 0, 9 },
		  { 100, 512, 1, 1, 5, 0, 9 }, RW, false, OK, NULL },
		{ "became read-only", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 1, 5, 1, 9 }, RW, false, FENCE, "the disk became read-only" },
		{ "became read-only, migration", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 1, 5, 1, 9 }, MIG, false, FENCE, "the disk became read-only" },
		{ "became read-only, mapped so",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 100, 512, 1, 1, 5, 1, 9 }, RO, false, OK, NULL },
		{ "was read-only all along",
		  { 100, 512, 1, 1, 5, 1, 9 }, { 100, 512, 1, 1, 5, 1, 9 }, RW, false, OK, NULL },
		{ "generation, writes held",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 100, 512, 1, 1, 5, 0, 10 }, RW, true, FENCE,
		  "another client may have written meanwhile" },
		{ "generation, nothing held",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 100, 512, 1, 1, 5, 0, 10 }, RW, false, OK, NULL },
		{ "generation and growth", { 100, 512, 1, 1, 5, 0, 9 },
		  { 108, 512, 1, 1, 5, 0, 10 }, RW, true, FENCE,
		  "another client may have written meanwhile" },
		{ "server promises nothing, nobody came first", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 1, 5, 0, 7ull << 32 }, RW, true, OK, NULL },
		{ "server forgot",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 100, 512, 1, 1, 5, 0, 7ull << 32 | 1 }, RW, true,
		  FENCE, FORGETS },
		{ "server forgot, and counts as before",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 100, 512, 1, 1, 5, 0, 7ull << 32 | 9 }, RW, true,
		  FENCE, FORGETS },
		{ "server forgot, nothing held", { 100, 512, 1, 1, 5, 0, 9 },
		  { 100, 512, 1, 1, 5, 0, 7ull << 32 | 1 }, RW, false, OK, NULL },
		{ "still no size", { 0, 512, 1, 0, 0, 0, 9 },
		  { 0, 512, 1, 0, 0, 0, 9 }, RW, true, OK, NULL },
		{ "its first size", { 0, 512, 1, 0, 0, 0, 9 },
		  { 100, 512, 1, 0, 0, 0, 9 }, RW, true, OK, NULL },
		{ "its first size, and all else with it",
		  { 0, 512, 1, 1, 5, 0, 9 }, { 104, 4096, 1, 3, 6, 1, 10 }, RW, true, OK, NULL },
		{ "its first size, plain server",
		  { 0, 512, 0, 0, 0, 0, 0 }, { 100, 4096, 0, 0, 0, 0, 0 }, RO, false, OK, NULL },
		{ "no medium", { 100, 512, 1, 1, 5, 0, 9 },
		  { 0, 512, 1, 1, 5, 0, 9 }, RW, true, RETRY,
		  "the disk has no size at the moment: no medium, or not set up" },
		{ "not set up after a boot",
		  { 100, 4096, 1, 0, 0, 0, 9 }, { 0, 512, 1, 0, 0, 0, 7ull << 32 }, RW, true, RETRY,
		  "the disk has no size at the moment: no medium, or not set up" },
		{ "another disk and smaller",
		  { 100, 512, 1, 1, 5, 0, 9 }, { 50, 4096, 1, 1, 6, 1, 10 }, RW, true, FENCE,
		  "another disk is behind this name now" },
	};
	size_t i;

	CHECK(OK == (int)IBNBD_REMAP_OK && FENCE == (int)IBNBD_REMAP_FENCE &&
	      RETRY == (int)IBNBD_REMAP_RETRY);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp old = answer(&rows[i].old), new = answer(&rows[i].new);

		UNIT_ROW("%s", rows[i].name);
		why = "left over";
		CHECK_EQ(ibnbd_remap_compare(&old, &new, rows[i].access, rows[i].held, &why),
			 rows[i].want);
		CHECK_STR(why, rows[i].reason);
	}
}

/* Three refusals are final. Whatever else a server of any kind says, the disk may be late. */
UNIT_TEST(remap_refused)
{
	static const struct { int err; const char *why; } rows[] = {
		{ EPERM, "another client has opened the disk for writing" },
		{ EACCES, "the server no longer lets us write" },
		{ EROFS, "the server no longer lets us write" },
		{ EPROTO, "the server's answer to OPEN is invalid" },
		{ ENOENT, "the server does not have the disk yet" },
		{ ENOTDIR, "the server does not have the disk yet" },
		{ ENXIO, "the server does not have the disk yet" },
		{ ENODEV, "the server does not have the disk yet" },
		{ ENOTBLK, "the server does not have the disk yet" },
		{ EISDIR, "the server does not have the disk yet" },
		{ ESTALE, "the server does not have the disk yet" },
		{ ENOMEDIUM, "the server's disk is not ready yet" },
		{ EMEDIUMTYPE, "the server's disk is not ready yet" },
		{ EBUSY, "the server's disk is still in use" },
		{ ETXTBSY, "the server's disk is still in use" },
		{ EEXIST, "the server's disk is still in use" },
		{ ETIMEDOUT, "the server has not opened the disk yet" },
		{ ECONNRESET, "the server has not opened the disk yet" },
		{ ENOTCONN, "the server has not opened the disk yet" },
		{ EINTR, "the server has not opened the disk yet" },
	};
	size_t i;
	int err;

	for (err = 1; err < 4096; err++) {
		bool final = err == EPERM || err == EACCES || err == EROFS ||
			     err == EPROTO;

		UNIT_ROW("errno %d", err);
		why = NULL;
		CHECK_EQ(ibnbd_remap_refused(-err, &why),
			 final ? IBNBD_REMAP_FENCE : IBNBD_REMAP_RETRY);
		for (i = 0; i < ARRAY_SIZE(rows) && rows[i].err != err; i++)
			;
		CHECK_STR(why, i < ARRAY_SIZE(rows) ? rows[i].why :
						      "the server cannot open the disk yet");
	}
}
