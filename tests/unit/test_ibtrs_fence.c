// SPDX-License-Identifier: GPL-2.0-only
/* The server's decision per slot: tokens, parking, staleness (laws L6, L7). */
#include "ibtrs/logic/fence.h"
#include "unit.h"

UNIT_TEST(fence_arrive_table)
{
	static const struct {
		const char *what;
		u64 last;
		bool running, fence;
		u64 token;
		enum ibtrs_fence_verdict want;
		u64 last_after;
		bool running_after;
	} rows[] = {
		{ "first request", 0, false, true, 1, IBTRS_FENCE_RUN, 1, true },
		{ "token 0 is never valid", 0, false, true, 0, IBTRS_FENCE_STALE, 0, false },
		{ "next token", 7, false, true, 8, IBTRS_FENCE_RUN, 8, true },
		{ "a gap is allowed", 7, false, true, 900, IBTRS_FENCE_RUN, 900, true },
		{ "repetition of the same token", 7, false, true, 7, IBTRS_FENCE_STALE, 7, false },
		{ "older token", 7, false, true, 6, IBTRS_FENCE_STALE, 7, false },
		{ "newer while one runs", 7, true, true, 8, IBTRS_FENCE_PARK, 8, true },
		{ "stale while one runs", 7, true, true, 7, IBTRS_FENCE_STALE, 7, true },
		{ "largest token", ~0ull - 1, false, true, ~0ull, IBTRS_FENCE_RUN, ~0ull, true },
		{ "nothing follows the largest",
		  ~0ull, false, true, 0, IBTRS_FENCE_STALE, ~0ull, false },
		{ "as far ahead as may be",
		  7, false, true, 7 + (1ull << 32), IBTRS_FENCE_RUN, 7 + (1ull << 32), true },
		{ "too far ahead", 7, false, true, 8 + (1ull << 32), IBTRS_FENCE_FAR, 7, false },
		{ "too far ahead while one runs", 7, true, true, ~0ull, IBTRS_FENCE_FAR, 7, true },
		{ "first one of a client that has counted for years",
		  0, false, true, 1ull << 50, IBTRS_FENCE_RUN, 1ull << 50, true },
		{ "first one of nobody", 0, false, true, ~0ull, IBTRS_FENCE_FAR, 0, false },
		{ "no tokens, idle", 0, false, false, 0, IBTRS_FENCE_RUN, 0, true },
		{ "no tokens, busy", 0, true, false, 0, IBTRS_FENCE_PARK, 0, true },
		{ "no tokens: the number is not looked at",
		  0, false, false, 5, IBTRS_FENCE_RUN, 0, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_fence_slot s = { rows[i].last, rows[i].running };

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_fence_arrive(&s, rows[i].fence, rows[i].token), rows[i].want);
		CHECK_EQ(s.last, rows[i].last_after);
		CHECK_EQ(s.running, rows[i].running_after);
	}
}

UNIT_TEST(fence_end_table)
{
	static const struct {
		const char *what;
		u64 last;
		bool fence, parked;
		u64 token;
		bool path_up, want;
	} rows[] = {
		{ "nothing parked", 4, true, false, 0, true, false },
		{ "parked is the newest", 4, true, true, 4, true, true },
		{ "parked was overtaken", 5, true, true, 4, true, false },
		{ "its path is gone", 4, true, true, 4, false, false },
		{ "overtaken and gone", 5, true, true, 4, false, false },
		{ "no tokens, parked", 0, false, true, 0, true, true },
		{ "no tokens, path gone", 0, false, true, 0, false, false },
		{ "no tokens, nothing parked", 0, false, false, 0, true, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_fence_slot s = { rows[i].last, true };

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_fence_end(&s, rows[i].fence, rows[i].parked, rows[i].token,
					 rows[i].path_up), rows[i].want);
		CHECK_EQ(s.running, rows[i].want);
		CHECK_EQ(s.last, rows[i].last);
	}
}

/*
 * One slot, five submissions (tokens 1..5) delivered in every order, duplicates and drops included,
 * with ends in between: at most one op runs, and the tokens that run only ever grow.
 */
static unsigned long orders;

static void deliver(struct ibtrs_fence_slot s, u64 running, u64 parked, u64 ran_max,
		    unsigned int depth)
{
	orders++;
	CHECK_EQ(s.running, running != 0);
	CHECK(running <= ran_max);
	if (!depth)
		return;
	for (u64 t = 1; t <= 5; t++) {
		struct ibtrs_fence_slot n = s;

		switch (ibtrs_fence_arrive(&n, true, t)) {
		case IBTRS_FENCE_RUN:
			CHECK_EQ(running, 0);
			CHECK(t > ran_max);
			deliver(n, t, 0, t, depth - 1);
			break;
		case IBTRS_FENCE_PARK:
			CHECK(running != 0);
			CHECK(t > running && t > parked);
			deliver(n, running, t, ran_max, depth - 1);
			break;
		case IBTRS_FENCE_STALE:
			CHECK(t <= s.last);
			CHECK(n.last == s.last && n.running == s.running);
			break;
		case IBTRS_FENCE_FAR:
			CHECK(0);
			break;
		}
	}
	for (int up = 0; running && up <= 1; up++) {
		struct ibtrs_fence_slot n = s;

		if (ibtrs_fence_end(&n, true, parked != 0, parked, up)) {
			CHECK(up && parked > ran_max);
			deliver(n, parked, 0, parked, depth - 1);
		} else {
			deliver(n, 0, 0, ran_max, depth - 1);
		}
	}
}

UNIT_TEST(fence_never_runs_backwards)
{
	deliver((struct ibtrs_fence_slot){ 0 }, 0, 0, 0, 12);
	CHECK(orders > 1000);
}
