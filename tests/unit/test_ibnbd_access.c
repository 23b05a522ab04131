// SPDX-License-Identifier: GPL-2.0-only
/* Who may open (protocol 10.4, E-30) and which request may run (E-22, E-24, E-26, E-27). */
#include "unit.h"
#include "ibnbd/logic/access.h"

#define RO	IBNBD_ACCESS_RO
#define RW	IBNBD_ACCESS_RW
#define MIG	IBNBD_ACCESS_MIGRATION

static const char *why;

UNIT_TEST(open_arbitration)
{
	static const struct { u32 writers; bool alone; int mode, rc; } rows[] = {
		{ 0, false, RO, 0 }, { 1, true, RO, 0 }, { 1, false, RO, 0 },
		{ 2, false, RO, 0 }, { 1000, true, RO, 0 },
		{ 0, false, RW, 0 }, { 1, true, RW, -EPERM },
		{ 1, false, RW, -EPERM }, { 2, false, RW, -EPERM },
		{ U32_MAX, true, RW, -EPERM },
		/* a second writer beside one who agreed to it, and not beside one who did not */
		{ 0, false, MIG, 0 }, { 1, false, MIG, 0 }, { 1, true, MIG, -EPERM },
		{ 2, false, MIG, -EPERM }, { 2, true, MIG, -EPERM }, { 3, false, MIG, -EPERM },
		{ 0, false, 3, -EINVAL }, { 0, true, 255, -EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%u writers, alone %d, mode %d", rows[i].writers, rows[i].alone,
			 rows[i].mode);
		why = NULL;
		CHECK_EQ(ibnbd_access_open(rows[i].writers, rows[i].alone, rows[i].mode, &why),
			 rows[i].rc);
		CHECK_EQ(!!why, !!rows[i].rc);
	}
	CHECK(!ibnbd_access_writes(RO));
	CHECK(ibnbd_access_writes(RW));
	CHECK(ibnbd_access_writes(MIG));
}

/*
 * A machine moves: both hosts hold the disk by migration, a third does not get in, and nobody
 * becomes exclusive before both left.
 */
UNIT_TEST(a_migration)
{
	u32 w = 0;

	CHECK_EQ(ibnbd_access_open(w, false, MIG, &why), 0);
	w++;
	CHECK_EQ(ibnbd_access_open(w, false, MIG, &why), 0);
	w++;
	CHECK_EQ(ibnbd_access_open(w, false, MIG, &why), -EPERM);
	CHECK_EQ(ibnbd_access_open(w, false, RW, &why), -EPERM);
	CHECK_EQ(ibnbd_access_open(w, false, RO, &why), 0);
	w--;
	CHECK_EQ(ibnbd_access_open(w, false, RW, &why), -EPERM);
	w--;
	CHECK_EQ(ibnbd_access_open(w, false, RW, &why), 0);
}

UNIT_TEST(reopen)
{
	static const int rc[3][3] = {	/* [granted][wanted] */
		[RO] = { 0, -EPERM, -EPERM },
		[RW] = { 0, 0, 0 },
		[MIG] = { 0, -EPERM, 0 },
	};
	struct ibnbd_open m = { .name = "/a" };
	int granted, wanted;

	for (granted = 0; granted < 3; granted++) {
		for (wanted = 0; wanted < 3; wanted++) {
			UNIT_ROW("granted %d, wanted %d", granted, wanted);
			m.access = wanted;
			CHECK_EQ(ibnbd_access_reopen("/a", granted, &m, &why), rc[granted][wanted]);
		}
	}
	UNIT_ROW("other slashes");
	CHECK_EQ(ibnbd_access_reopen("a", RW, &m, &why), -EEXIST);
}

static const struct ibnbd_facts disk = {
	.nsectors = 2048, .logical_block_size = 4096, .max_discard_sectors = 1024,
	.max_write_zeroes_sectors = 512, .secure_erase = true,
};
static const struct ibnbd_facts plain = { .nsectors = 2048, .logical_block_size = 512 };
static const struct ibnbd_facts huge = {
	.nsectors = IBNBD_MAX_SECTORS - 1, .logical_block_size = 512,
	.max_discard_sectors = U32_MAX, .max_write_zeroes_sectors = U32_MAX,
};

UNIT_TEST(requests)
{
	enum { R, W, F, D, E, Z };	/* the wire's numbers, protocol 10.1 */
	static const struct {
		const char *name;
		const struct ibnbd_facts *f;
		int mode, op;
		u64 sector;
		u32 bytes;
		int rc;
	} rows[] = {
		{ "read at the start", &disk, RW, R, 0, 4096, 0 },
		{ "read to the end", &disk, RW, R, 2040, 4096, 0 },
		{ "read of it all", &disk, RW, R, 0, 1 << 20, 0 },
		{ "one block beyond", &disk, RW, R, 2048, 4096, -EIO },
		{ "across the end", &disk, RW, R, 2040, 8192, -EIO },
		{ "far beyond", &disk, RW, R, 1ull << 60, 4096, -EIO },
		{ "sum wraps", &disk, RW, R, ~0ull - 7, 4096, -EIO },
		{ "last sector number there is", &plain, RW, R, ~0ull, 512, -EIO },
		{ "sector not aligned", &disk, RW, R, 1, 4096, -EINVAL },
		{ "sector 7", &disk, RW, W, 7, 4096, -EINVAL },
		{ "size not aligned", &disk, RW, W, 0, 512, -EINVAL },
		{ "512 on a 512 disk", &plain, RW, W, 1, 512, 0 },
		{ "write on ro", &disk, RO, W, 0, 4096, -EROFS },
		{ "discard on ro", &disk, RO, D, 0, 4096, -EROFS },
		{ "erase on ro", &disk, RO, E, 0, 4096, -EROFS },
		{ "zeroes on ro", &disk, RO, Z, 0, 4096, -EROFS },
		{ "read on ro", &disk, RO, R, 0, 4096, 0 },
		{ "flush on ro", &disk, RO, F, ~0ull, 0, 0 },
		{ "write under migration", &disk, MIG, W, 0, 4096, 0 },
		{ "flush, sector all ones", &disk, RW, F, ~0ull, 0, 0 },
		{ "discard", &disk, RW, D, 8, 512 << 10, 0 },
		{ "discard, one block too large", &disk, RW, D, 8, (512 << 10) + 4096, -EINVAL },
		{ "discard beyond the end", &disk, RW, D, 2040, 8192, -EIO },
		{ "discard not aligned", &disk, RW, D, 4, 4096, -EINVAL },
		{ "discard where there is none", &plain, RW, D, 0, 512, -EOPNOTSUPP },
		{ "erase", &disk, RW, E, 0, 512 << 10, 0 },
		{ "erase too large", &disk, RW, E, 0, 1 << 20, -EINVAL },
		{ "erase where there is none", &huge, RW, E, 0, 4096, -EOPNOTSUPP },
		{ "zeroes", &disk, RW, Z, 0, 256 << 10, 0 },
		{ "zeroes too large", &disk, RW, Z, 0, 512 << 10, -EINVAL },
		{ "zeroes where there are none", &plain, RW, Z, 0, 512, -EOPNOTSUPP },
		{ "largest discard", &huge, RW, D, 0, 0xfffffe00, 0 },
		{ "largest device, last sector", &huge, RW, R, IBNBD_MAX_SECTORS - 2, 512, 0 },
		{ "largest device, one more", &huge, RW, R, IBNBD_MAX_SECTORS - 1, 512, -EIO },
		{ "an op nobody decoded", &disk, RO, 77, 0, 4096, -EROFS },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_io io = { .op = rows[i].op, .sector = rows[i].sector,
				       .bytes = rows[i].bytes };

		UNIT_ROW("%s", rows[i].name);
		why = NULL;
		CHECK_EQ(ibnbd_access_io(rows[i].f, rows[i].mode, &io, &why), rows[i].rc);
		CHECK_EQ(!!why, !!rows[i].rc);
	}
}
