// SPDX-License-Identifier: GPL-2.0-only
/* The server's decision per slot: tokens, parking, staleness (laws L6, L7). */
#include "ibtrs/logic/fence.h"
#include "unit.h"

#define AHEAD IBTRS_FENCE_AHEAD

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
		  7, false, true, 7 + AHEAD, IBTRS_FENCE_RUN, 7 + AHEAD, true },
		{ "too far ahead", 7, false, true, 8 + AHEAD, IBTRS_FENCE_FAR, 7, false },
		{ "too far ahead while one runs", 7, true, true, ~0ull, IBTRS_FENCE_FAR, 7, true },
		{ "first one, as far ahead as may be",
		  0, false, true, AHEAD, IBTRS_FENCE_RUN, AHEAD, true },
		{ "first one, too far ahead", 0, false, true, 1 + AHEAD, IBTRS_FENCE_FAR, 0, false },
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

UNIT_TEST(fence_behind_table)
{
	static const struct {
		u64 last, token;
		bool fence;
		int err;
		u64 next;	/* what the client's next request carries */
	} rows[] = {
		{ 9, 9, false, -ESTALE, 10 },
		{ 9, 10, true, -384, 10 + AHEAD },	/* newest, and its path is gone */
		{ 9, 9, true, -384, 9 + AHEAD },
		{ 9, 8, true, -384, 8 + AHEAD },
		{ 9, 7, true, -385, 8 + AHEAD },
		{ 9, 6, true, -386, 8 + AHEAD },
		{ 9, 5, true, -386, 7 + AHEAD },
		{ 9, 4, true, -387, 8 + AHEAD },
		{ 1ull << 40, 1, true, -384 - 40, 1 + (1ull << 39) + AHEAD },
		{ ~0ull, 1, true, -384 - 64, 1 + (1ull << 63) + AHEAD },
		/* nothing is left, and nothing wraps into it */
		{ ~0ull, ~0ull, true, -384, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_fence_slot s = { rows[i].last, false };
		int err = ibtrs_fence_behind(&s, rows[i].fence, rows[i].token);

		UNIT_ROW("%llu of %llu", (unsigned long long)rows[i].token,
			 (unsigned long long)rows[i].last);
		CHECK_EQ(err, rows[i].err);
		CHECK_EQ(ibtrs_fence_is_behind(err), rows[i].fence);
		CHECK_EQ(ibtrs_fence_catch_up(rows[i].token, err) + 1, rows[i].next);
	}
	/* Any other answer changes nothing. */
	for (int err = 0; err >= -511; err--)
		if (err > -384 || err < -384 - 64)
			CHECK(!ibtrs_fence_is_behind(err) && ibtrs_fence_catch_up(5, err) == 5);
}

/* Whatever somebody else has counted to, the owner of a slot gets by, in a few answers. */
UNIT_TEST(fence_owner_catches_up)
{
	for (unsigned int bit = 0; bit < 63; bit++) {
		for (int more = -1; more <= 1; more++) {
			struct ibtrs_fence_slot s = { (1ull << bit) + (u64)more, false };
			enum ibtrs_fence_verdict v;
			u64 token = 0, before;
			int tries = 0;

			UNIT_ROW("2^%u%+d", bit, more);
			for (;;) {
				v = ibtrs_fence_arrive(&s, true, ++token);
				if (v != IBTRS_FENCE_STALE || ++tries > 64)
					break;
				before = token;
				token = ibtrs_fence_catch_up(token,
							     ibtrs_fence_behind(&s, true, token));
				CHECK(token >= before);
			}
			CHECK_EQ(v, IBTRS_FENCE_RUN);
			CHECK(tries <= 41);
		}
	}
}

UNIT_TEST(next)
{
	u64 token = 0;
	u32 life = 0;

	ibtrs_fence_next(&token, &life, 7, 7);
	CHECK_EQ(token, 1);
	CHECK_EQ(life, 7);
	ibtrs_fence_next(&token, &life, 7, 7);
	CHECK_EQ(token, 2);
	/* the session was made anew: the first path that knows begins again */
	ibtrs_fence_next(&token, &life, 7, 8);
	CHECK_EQ(token, 3);
	ibtrs_fence_next(&token, &life, 8, 8);
	CHECK_EQ(token, 1);
	CHECK_EQ(life, 8);
	/* and one of the old one, used late, does not bring its count back */
	ibtrs_fence_next(&token, &life, 7, 8);
	CHECK_EQ(token, 2);
	CHECK_EQ(life, 8);
}

UNIT_TEST(fate)
{
	static const struct { bool service, stay; enum ibtrs_fate fate; } rows[] = {
		{ false, false, IBTRS_FATE_MOVE },
		{ false, true, IBTRS_FATE_PARK },
		{ true, false, IBTRS_FATE_END },
		{ true, true, IBTRS_FATE_END },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("service %d, stay %d", rows[i].service, rows[i].stay);
		CHECK_EQ(ibtrs_fate(rows[i].service, rows[i].stay), rows[i].fate);
	}
	/* a read changes nothing, nor does a message of the transport's user about the disk */
	CHECK_EQ(ibtrs_fate_loose(true, false), true);
	CHECK_EQ(ibtrs_fate_loose(true, true), false);
	CHECK_EQ(ibtrs_fate_loose(false, false), false);
	CHECK_EQ(ibtrs_fate_loose(false, true), false);
}
