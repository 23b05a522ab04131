// SPDX-License-Identifier: GPL-2.0-only
/* Which path carries a request (docs/sysfs.md), and the words of mpath_policy (docs/sysfs.md). */
#include "ibtrs/logic/mpath.h"
#include "unit.h"

static u64 equal(const void *priv, unsigned int i)
{
	return 0;
}

static int next(unsigned int cursor, unsigned int n, const u64 tried[2])
{
	return ibtrs_mpath_least(cursor + 1, n, tried, equal, NULL);
}

UNIT_TEST(mpath_next_table)
{
	static const struct {
		const char *what;
		unsigned int cursor, n;
		u64 tried;
		int want;
	} rows[] = {
		{ "no path", 0, 0, 0, -1 },
		{ "one path", 0, 1, 0, 0 },
		{ "one path, tried", 0, 1, 1, -1 },
		{ "the next", 0, 3, 0, 1 },
		{ "wraps", 2, 3, 0, 0 },
		{ "skips the tried", 0, 3, 2, 2 },
		{ "comes back to the cursor last", 1, 3, 5, 1 },
		{ "all tried", 1, 3, 7, -1 },
		{ "cursor outside a set that shrank", 7, 2, 0, 0 },
		{ "largest cursor", UINT_MAX, 3, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 tried[2] = { rows[i].tried, 0 };

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(next(rows[i].cursor, rows[i].n, tried), rows[i].want);
	}
}

/* Marking each answer as tried visits every path once and then ends, for every size of set. */
UNIT_TEST(mpath_visits_every_path_once)
{
	for (unsigned int n = 1; n <= 128; n++) {
		u64 tried[2] = { 0, 0 };
		unsigned int cursor = n / 3;
		int i;

		UNIT_ROW("%u paths", n);
		for (unsigned int k = 0; k < n; k++) {
			i = next(cursor, n, tried);
			if (!CHECK(i >= 0 && (unsigned int)i < n && !ibtrs_mpath_tried(tried, i)))
				return;
			ibtrs_mpath_mark(tried, i);
			cursor = i;
		}
		CHECK_EQ(next(cursor, n, tried), -1);
	}
}

UNIT_TEST(mpath_never_leaves_the_mask)
{
	u64 tried[2] = { ~0ull, ~0ull };

	CHECK_EQ(next(150, 200, tried), -1);
	CHECK_EQ(next(127, 200, (u64[2]){ 0, 0 }), 0);
}

UNIT_TEST(mpath_parse_table)
{
	static const struct {
		const char *s;
		int want;
	} rows[] = {
		{ "0", 0 }, { "1", 1 }, { "2", 2 }, { "0\n", 0 }, { "2\n", 2 },
		{ "rr", 0 }, { "mi", 1 }, { "ml", 2 }, { "RR", 0 }, { "Mi\n", 1 },
		{ "round-robin", 0 }, { "min-inflight", 1 },
		{ "min-latency", 2 }, { "MIN-LATENCY\n", 2 },
		{ "round-robin (RR: 0)", 0 }, { "min-inflight (MI: 1)\n", 1 },
		{ "", -EINVAL }, { "\n", -EINVAL }, { "3", -EINVAL },
		{ "00", -EINVAL }, { "01", -EINVAL }, { " 1", -EINVAL },
		{ "1 ", -EINVAL }, { "1\n\n", -EINVAL },
		{ "r", -EINVAL }, { "rrr", -EINVAL }, { "mix", -EINVAL },
		{ "round-robi", -EINVAL }, { "round-robins", -EINVAL },
		{ "min-", -EINVAL }, { "-1", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].s);
		char *exact = unit_exact(rows[i].s, len);

		UNIT_ROW("\"%s\"", rows[i].s);
		CHECK_EQ(ibtrs_mpath_parse(exact, len), rows[i].want);
		free(exact);
	}
	UNIT_ROW("a NUL inside is no end");
	CHECK_EQ(ibtrs_mpath_parse("rr\0", 3), -EINVAL);
}

UNIT_TEST(mpath_names_round_trip)
{
	static const char * const sysfs[] = { "round-robin (RR: 0)", "min-inflight (MI: 1)",
					      "min-latency (ML: 2)" };

	for (int p = 0; p <= 2; p++) {
		CHECK_EQ(ibtrs_mpath_parse(ibtrs_mpath_sysfs(p), strlen(ibtrs_mpath_sysfs(p))), p);
		CHECK_STR(ibtrs_mpath_sysfs(p), sysfs[p]);
	}
	CHECK_STR(ibtrs_mpath_sysfs(-1), "?");
}
