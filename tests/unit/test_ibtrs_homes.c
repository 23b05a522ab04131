// SPDX-License-Identifier: GPL-2.0-only
/* Where slots are at home, and in which order a CPU looks for one (decision 4). */
#include "ibtrs/logic/homes.h"
#include "unit.h"

UNIT_TEST(homes_plan_table)
{
	static const struct {
		u32 slots, cpus, nr, per, sharers;
	} rows[] = {
		{ 1, 1, 1, 1, 1 },	{ 1, 64, 1, 1, 64 },	{ 15, 8, 1, 15, 8 },
		{ 32, 8, 4, 8, 2 },	{ 120, 8, 8, 15, 1 },	{ 480, 1, 1, 480, 1 },
		{ 480, 8, 8, 60, 1 },	{ 480, 64, 60, 8, 2 },	{ 8160, 64, 64, 128, 1 },
		{ 8160, 8192, 1020, 8, 9 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_homes h;

		UNIT_ROW("%u slots, %u CPUs", rows[i].slots, rows[i].cpus);
		ibtrs_homes_plan(&h, rows[i].slots, rows[i].cpus);
		CHECK_EQ(h.nr, rows[i].nr);
		CHECK_EQ(h.per, rows[i].per);
		CHECK_EQ(h.sharers, rows[i].sharers);
	}
}

/* Each home has slots, and who looks comes by each of them once, wherever he begins. */
UNIT_TEST(homes_are_all_visited_once)
{
	static const u32 slots[] = { 1, 2, 15, 16, 17, 31, 64, 120, 480, 481, 1000, 8160 };
	u8 seen[2048];

	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		for (u32 cpus = 1; cpus <= 300; cpus += cpus < 70 ? 1 : 23) {
			struct ibtrs_homes h;
			u32 home, n;

			UNIT_ROW("%u slots, %u CPUs", slots[i], cpus);
			ibtrs_homes_plan(&h, slots[i], cpus);
			CHECK((h.nr - 1) * h.per < slots[i] && h.nr * h.per >= slots[i]);
			for (u32 cpu = 0; cpu < cpus; cpu++) {
				CHECK(ibtrs_homes_of(&h, cpu) < h.nr);
				CHECK(ibtrs_homes_first(&h, cpu) < h.per);
			}
			memset(seen, 0, sizeof(seen));
			home = ibtrs_homes_of(&h, cpus - 1);
			for (n = 0; n < h.nr; n++) {
				CHECK(home < h.nr && !seen[home]);
				seen[home] = 1;
				home = ibtrs_homes_next(&h, home);
			}
			CHECK_EQ(home, ibtrs_homes_of(&h, cpus - 1));
		}
	}
}

/* CPUs that share a home begin at different places of it. */
UNIT_TEST(homes_sharers_begin_apart)
{
	struct ibtrs_homes h;

	ibtrs_homes_plan(&h, 480, 128);
	CHECK_EQ(ibtrs_homes_of(&h, 3), ibtrs_homes_of(&h, 63));
	CHECK_EQ(ibtrs_homes_of(&h, 3), ibtrs_homes_of(&h, 123));
	CHECK_EQ(ibtrs_homes_first(&h, 3), 0);
	CHECK_EQ(ibtrs_homes_first(&h, 63), 2);
	CHECK_EQ(ibtrs_homes_first(&h, 123), 5);
}

/* Two busy neighbours borrow from two homes that are neither's. */
UNIT_TEST(homes_neighbours_borrow_elsewhere)
{
	struct ibtrs_homes h;

	ibtrs_homes_plan(&h, 480, 16);
	CHECK_EQ(h.nr, 16);
	CHECK(ibtrs_homes_next(&h, 0) > 1);
	CHECK(ibtrs_homes_next(&h, 0) != ibtrs_homes_next(&h, 1));
}
