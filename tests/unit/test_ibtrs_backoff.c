// SPDX-License-Identifier: GPL-2.0-only
/* Reconnect delays: the doubling, its two ceilings, the jitter (decision 11). */
#include "ibtrs/logic/retry.h"
#include "unit.h"

UNIT_TEST(backoff_doubles_to_its_ceiling)
{
	static const struct {
		u32 attempt;
		bool held;
		u32 want;
	} rows[] = {
		{ 0, true, 100 }, { 1, true, 200 }, { 2, true, 400 },
		{ 3, true, 800 }, { 4, true, 1000 }, { 5, true, 1000 },
		{ 0, false, 100 }, { 3, false, 800 }, { 4, false, 1600 },
		{ 6, false, 6400 }, { 7, false, 8000 }, { 8, false, 8000 },
		{ 64, true, 1000 }, { 64, false, 8000 },
		{ UINT32_MAX, true, 1000 }, { UINT32_MAX, false, 8000 },
	};
	struct ibtrs_backoff b = ibtrs_backoff_default;

	b.jitter_pct = 0;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("attempt %u %s", rows[i].attempt, rows[i].held ? "held" : "idle");
		CHECK_EQ(ibtrs_backoff_ms(&b, rows[i].attempt, rows[i].held, 0), rows[i].want);
		CHECK_EQ(ibtrs_backoff_ms(&b, rows[i].attempt, rows[i].held, UINT32_MAX),
			 rows[i].want);
	}
}

UNIT_TEST(backoff_jitter_spans_both_sides)
{
	static const struct {
		u32 rnd, lo, hi;
	} rows[] = {
		{ 0, 800, 802 }, { 0x80000000, 999, 1001 }, { UINT32_MAX, 1198, 1200 },
		{ 0x40000000, 899, 902 }, { 0xc0000000, 1098, 1101 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 ms = ibtrs_backoff_ms(&ibtrs_backoff_default, 9, true, rows[i].rnd);

		UNIT_ROW("rnd 0x%x gave %u", rows[i].rnd, ms);
		CHECK(ms >= rows[i].lo && ms <= rows[i].hi);
	}
}

UNIT_TEST(backoff_stays_in_bounds)
{
	static const u32 edge[] = { 0, 1, 2, 7, 99, 100, 101, 1000, 50000, 0x7fffffff, UINT32_MAX };
	uint64_t seed = 1;

	for (unsigned int n = 0; n < 200000; n++) {
		struct ibtrs_backoff b = {
			.first_ms = edge[unit_random(&seed) % ARRAY_SIZE(edge)],
			.held_max_ms = edge[unit_random(&seed) % ARRAY_SIZE(edge)],
			.idle_max_ms = edge[unit_random(&seed) % ARRAY_SIZE(edge)],
			.jitter_pct = edge[unit_random(&seed) % ARRAY_SIZE(edge)],
		};
		bool held = unit_random(&seed) & 1;
		u64 max = held ? b.held_max_ms : b.idle_max_ms;
		u64 pct = b.jitter_pct < 100 ? b.jitter_pct : 100;
		u32 ms = ibtrs_backoff_ms(&b, (u32)unit_random(&seed) % 40, held,
					  (u32)unit_random(&seed));

		if (ms < 1 || (ms > 1 && ms > max * (100 + pct) / 100)) {
			UNIT_ROW("first %u max %llu jitter %u: %u", b.first_ms,
				 (unsigned long long)max, b.jitter_pct, ms);
			CHECK(ms >= 1);
			CHECK(ms <= max * (100 + pct) / 100);
			return;
		}
	}
	CHECK(true);
}
