// SPDX-License-Identifier: GPL-2.0-only
/* When a path is tried again, how patiently, and what it has to live down first (decision 11). */
#include "ibtrs/logic/retry.h"
#include "unit.h"

#define EV(x)	IBTRS_RETRY_EV_##x

static struct ibtrs_backoff plain(void)
{
	struct ibtrs_backoff b = ibtrs_backoff_default;

	b.jitter_pct = 0;
	return b;
}

static void tell(struct ibtrs_retry *r, enum ibtrs_retry_event ev, int err, u64 ms)
{
	struct ibtrs_retry_now now = { .ms = ms, .err = err };

	ibtrs_retry_event(r, ev, &now);
}

static bool marginal(const struct ibtrs_retry *r, u64 ms)
{
	struct ibtrs_retry_now now = { .ms = ms };

	return ibtrs_retry_marginal(r, &now);
}

#define FIRST	.state = IBTRS_RETRY_FIRST
#define DOWN	.state = IBTRS_RETRY_DOWN
#define HURRY	.urge = IBTRS_RETRY_HURRY
#define BY_HAND	.urge = IBTRS_RETRY_BY_HAND

/* Each event in each state: what it changes, and that it changes nothing else. */
UNIT_TEST(retry_every_event)
{
#define CELLS(first, down, up)	{ IBTRS_RETRY_##first, IBTRS_RETRY_##down, IBTRS_RETRY_##up }
	static const struct {
		const char *what;
		enum ibtrs_retry_event ev;
		int err;
		enum ibtrs_retry_state to[IBTRS_RETRY_STATES];	/* from FIRST, DOWN, UP */
		u32 attempt, marks, answer_ms, asked_ms;
		bool trial_failed;
		enum ibtrs_retry_urge urge;
	} rows[] = {
		{ "begins", EV(BEGIN), 0, CELLS(FIRST, DOWN, UP), 1, 3, 40, 900 },
		{ "asked", EV(ASKED), 0, CELLS(FIRST, DOWN, UP), 1, 3, 40, 1000 },
		{ "answered", EV(ANSWERED), 0, CELLS(FIRST, DOWN, UP), 1, 3, 80, 900 },
		{ "trial passed", EV(TRIAL_PASSED), 0, CELLS(FIRST, DOWN, UP), 1, 3, 40, 900 },
		{ "trial failed", EV(TRIAL_FAILED), 0, CELLS(FIRST, DOWN, UP), 1, 3, 40, 900, true },
		{ "up", EV(UP), 0, CELLS(UP, UP, UP), 0, 3, 40, 900 },
		{ "no answer", EV(FAILED), -ETIMEDOUT, CELLS(FIRST, DOWN, UP), 2, 3, 40, 900 },
		{ "busy", EV(FAILED), -EBUSY, CELLS(FIRST, DOWN, UP), 1, 3, 40, 900 },
		{ "refused", EV(FAILED), -EACCES, CELLS(DOWN, DOWN, DOWN), 2, 3, 40, 900 },
		{ "large is lost", EV(FAILED), -EMSGSIZE, CELLS(DOWN, DOWN, DOWN), 2, 5, 40, 900 },
		{ "lost, silent", EV(LOST), -ETIMEDOUT, CELLS(FIRST, DOWN, DOWN), 1, 5, 40, 900 },
		{ "lost, known", EV(LOST), -ENETDOWN, CELLS(FIRST, DOWN, DOWN), 1, 4, 40, 900 },
		{ "ended", EV(LOST), -ECONNABORTED, CELLS(FIRST, DOWN, DOWN), 1, 3, 40, 900 },
		{ "closed", EV(CLOSED), 0, CELLS(DOWN, DOWN, DOWN), 1, 3, 40, 900 },
		{ "hurry", EV(HURRY), 0, CELLS(FIRST, DOWN, UP), 1, 3, 40, 900, false,
		  IBTRS_RETRY_HURRY },
		{ "by hand", EV(BY_HAND), 0, CELLS(FIRST, DOWN, UP), 1, 3, 40, 900, false,
		  IBTRS_RETRY_BY_HAND },
	};
	unsigned int seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (unsigned int s = 0; s < IBTRS_RETRY_STATES; s++) {
			struct ibtrs_retry r = { .state = s, .attempt = 1, .marks = 3, .gen = 7,
						 .answer_ms = 40, .asked_ms = 900, .up_ms = 1000,
						 .first_end_ms = 2000, .due_ms = 950 };
			struct ibtrs_retry_now now = { .ms = 1000, .err = rows[i].err, .gen = 7 };

			UNIT_ROW("%s in state %u", rows[i].what, s);
			ibtrs_retry_event(&r, rows[i].ev, &now);
			CHECK_EQ(r.state, rows[i].to[s]);
			CHECK_EQ(r.attempt, rows[i].attempt);
			CHECK_EQ(r.marks, rows[i].marks);
			CHECK_EQ(r.answer_ms, rows[i].answer_ms);
			CHECK_EQ(r.asked_ms, rows[i].asked_ms);
			CHECK_EQ(r.trial_failed, rows[i].trial_failed);
			CHECK_EQ(r.urge, rows[i].urge);
			CHECK(r.gen == 7 && r.up_ms == 1000 && r.first_end_ms == 2000 &&
			      r.due_ms == 950 && !r.wait);
		}
		seen |= 1u << rows[i].ev;
	}
	CHECK_EQ(seen, (1u << IBTRS_RETRY_EVENTS) - 1);
}

/* What hurries a path does not take back what an administrator wants; an attempt ends both. */
UNIT_TEST(retry_urge)
{
	struct ibtrs_retry r = { DOWN, BY_HAND };

	tell(&r, EV(HURRY), 0, 1);
	CHECK_EQ(r.urge, IBTRS_RETRY_BY_HAND);
	tell(&r, EV(UP), 0, 2);
	CHECK_EQ(r.urge, IBTRS_RETRY_NO_URGE);
}

UNIT_TEST(retry_marks_by_reason)
{
	static const struct {
		int err;
		u32 lost, failed;
	} rows[] = {
		{ -ETIMEDOUT, 2, 0 }, { -EMSGSIZE, 2, 2 },
		{ -ENETDOWN, 1, 0 }, { -ECONNRESET, 1, 0 }, { -EPROTO, 1, 0 },
		{ -ECONNABORTED, 0, 0 }, { -EHOSTUNREACH, 1, 0 }, { -EBUSY, 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry lost = { 0 }, failed = { 0 };

		UNIT_ROW("errno %d", rows[i].err);
		tell(&lost, EV(UP), 0, 5);
		tell(&lost, EV(LOST), rows[i].err, 6);
		CHECK_EQ(lost.marks, rows[i].lost);
		CHECK_EQ(lost.state, IBTRS_RETRY_DOWN);
		tell(&failed, EV(FAILED), rows[i].err, 6);
		CHECK_EQ(failed.marks, rows[i].failed);
		CHECK_EQ(failed.attempt, rows[i].err != -EBUSY);
	}
}

UNIT_TEST(retry_marks_outlive_a_short_success)
{
	struct ibtrs_retry r = { 0 };
	u64 now = 1000;

	for (u32 n = 1; n < 20; n++) {
		tell(&r, EV(UP), 0, now);
		CHECK_EQ(r.attempt, 0);
		tell(&r, EV(LOST), -ETIMEDOUT, now += 6000);
		UNIT_ROW("loss %u", n);
		CHECK_EQ(r.marks, 2 * n < IBTRS_RETRY_MAX_MARKS ? 2 * n : IBTRS_RETRY_MAX_MARKS);
		CHECK_EQ(marginal(&r, now), n > 1);
		now += 60000;	/* time without a connection cleans nothing */
		CHECK_EQ(marginal(&r, now), n > 1);
	}
	/* and a clean period does */
	tell(&r, EV(UP), 0, now);
	CHECK(marginal(&r, now + IBTRS_RETRY_DOUBT_MS - 1));
	CHECK(!marginal(&r, now + IBTRS_RETRY_DOUBT_MS));
	tell(&r, EV(LOST), -ENETDOWN, now + IBTRS_RETRY_MAX_MARKS * IBTRS_RETRY_CLEAN_MS);
	CHECK_EQ(r.marks, 1);
	tell(&r, EV(UP), 0, now);
	tell(&r, EV(LOST), -ETIMEDOUT, U64_MAX);
	CHECK_EQ(r.marks, 2);
}

/* When all paths were lost, the marks say nothing: they count in one generation of the session. */
UNIT_TEST(retry_marks_count_in_one_generation)
{
	static const enum ibtrs_retry_event evs[] = { EV(UP), EV(FAILED), EV(LOST) };

	for (size_t i = 0; i < ARRAY_SIZE(evs); i++) {
		struct ibtrs_retry r = { .gen = 1, .marks = 8, .state = IBTRS_RETRY_DOWN };
		struct ibtrs_retry_now now = { .ms = 9, .gen = 1 };

		CHECK(ibtrs_retry_marginal(&r, &now));
		now.gen = 2;
		CHECK(!ibtrs_retry_marginal(&r, &now));
		ibtrs_retry_event(&r, EV(HURRY), &now);
		CHECK_EQ(r.marks, 8);
		ibtrs_retry_event(&r, evs[i], &now);
		CHECK_EQ(r.gen, 2);
		CHECK_EQ(r.marks, evs[i] == EV(LOST));
	}
}

UNIT_TEST(retry_losses_far_apart_make_nobody_marginal)
{
	struct ibtrs_retry r = { 0 };
	u64 now = 0;

	for (u32 n = 0; n < 50; n++) {
		tell(&r, EV(UP), 0, now);
		tell(&r, EV(LOST), n & 1 ? -ETIMEDOUT : -ENETDOWN, now += 2 * IBTRS_RETRY_CLEAN_MS);
		CHECK(!marginal(&r, now));
	}
}

/* A path whose trial failed is marginal until another one passes, or it is up for long enough. */
UNIT_TEST(retry_trial)
{
	struct ibtrs_retry_now now = { .ms = 1000, .err = -EMSGSIZE };
	struct ibtrs_retry r = { 0 };

	CHECK(!ibtrs_retry_skips_trial(&r, &now));
	tell(&r, EV(TRIAL_FAILED), 0, 1000);
	CHECK(ibtrs_retry_skips_trial(&r, &now));
	now.others = true;
	CHECK(!ibtrs_retry_skips_trial(&r, &now));
	now.others = false;
	now.err = -ETIMEDOUT;
	CHECK(!ibtrs_retry_skips_trial(&r, &now));
	CHECK(marginal(&r, 1000 + IBTRS_RETRY_DOUBT_MS));
	tell(&r, EV(UP), 0, 1000);
	CHECK(marginal(&r, 999 + IBTRS_RETRY_DOUBT_MS));
	CHECK(!marginal(&r, 1000 + IBTRS_RETRY_DOUBT_MS));
	tell(&r, EV(TRIAL_PASSED), 0, 1000);
	CHECK(!marginal(&r, 1000));
}

UNIT_TEST(retry_wait)
{
	static const struct {
		const char *what;
		struct ibtrs_retry r;
		struct ibtrs_retry_now now;
		u32 ms;		/* 0: given up */
		bool rest;
	} rows[] = {
		{ "an ordinary loss", { DOWN, .marks = 2 },
		  { .err = -ETIMEDOUT, .max = -1, .wanted = true, .others = true }, 100 },
		{ "the same, nobody waits",
		  { DOWN, .marks = 2 }, { .err = -ETIMEDOUT, .max = -1, .others = true }, 100 },
		{ "three marks", { DOWN, .marks = 3 },
		  { .err = -ENETDOWN, .max = -1, .wanted = true, .others = true }, 100 },
		{ "marginal", { DOWN, .marks = 4 },
		  { .err = -ENETDOWN, .max = -1, .wanted = true, .others = true }, 10000, true },
		{ "more so", { DOWN, .marks = 5 },
		  { .err = -ENETDOWN, .max = -1, .others = true }, 20000, true },
		{ "and more", { DOWN, .marks = 6 },
		  { .err = -ETIMEDOUT, .max = -1, .others = true }, 40000, true },
		{ "at most", { DOWN, .marks = 7 },
		  { .err = -ETIMEDOUT, .max = -1, .others = true }, 60000, true },
		{ "whatever", { DOWN, .marks = 8 },
		  { .err = -ETIMEDOUT, .max = -1, .others = true }, 60000, true },
		{ "the last path", { DOWN, .marks = 8 },
		  { .err = -ETIMEDOUT, .max = -1, .wanted = true }, 100 },
		{ "a port came up", { DOWN, HURRY, .marks = 8 },
		  { .err = -ENETDOWN, .max = -1, .others = true }, 60000, true },
		{ "a port came up for a path of repute", { DOWN, HURRY, .marks = 3 },
		  { .err = -ENETDOWN, .max = -1, .others = true }, 100 },
		{ "by hand", { DOWN, BY_HAND, .marks = 8 },
		  { .err = -ECONNABORTED, .max = -1, .others = true }, 100 },
		{ "the server is busy", { DOWN, .marks = 8 },
		  { .err = -EBUSY, .max = -1, .others = true }, 100 },
		{ "dark after its rest", { DOWN, .attempt = 1, .marks = 8 },
		  { .err = -ETIMEDOUT, .max = -1, .wanted = true, .others = true }, 100 },
		{ "unreachable after its rest", { DOWN, .attempt = 3, .marks = 8 },
		  { .err = -EHOSTUNREACH, .max = -1, .wanted = true, .others = true }, 400 },
		{ "its trial failed again", { DOWN, .attempt = 9, .marks = 6 },
		  { .err = -EMSGSIZE, .max = -1, .wanted = true, .others = true }, 40000, true },
		{ "idle and dark", { DOWN, .attempt = 9 }, { .err = -ETIMEDOUT, .max = -1 }, 8000 },
		{ "wanted and dark", { DOWN, .attempt = 9 },
		  { .err = -ETIMEDOUT, .max = -1, .wanted = true }, 100 },
		{ "wanted and refused", { DOWN, .attempt = 9 },
		  { .err = -ECONNREFUSED, .max = -1, .wanted = true }, 1000 },
		{ "hurry", { DOWN, HURRY, .attempt = 9 }, { .err = -ECONNREFUSED, .max = -1 },
		  100 },
		{ "given up", { DOWN, .attempt = 5 }, { .err = -ETIMEDOUT, .max = 5 }, 0 },
		{ "one left", { DOWN, .attempt = 4 }, { .err = -ECONNREFUSED, .max = 5 }, 800 },
		{ "tries of a first connect", { FIRST, .attempt = 1 }, { .err = -ECONNREFUSED },
		  100 },
		{ "never reconnect", { DOWN }, { .err = -ETIMEDOUT }, 0 },
		{ "but by hand", { DOWN, BY_HAND }, { .err = -ECONNABORTED }, 100 },
		{ "but busy", { DOWN }, { .err = -EBUSY }, 100 },
	};
	struct ibtrs_backoff b = plain();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry_now now = rows[i].now;
		struct ibtrs_retry r = rows[i].r;
		bool idle = !rows[i].rest && !now.wanted;
		u32 ms = ibtrs_retry_wait(&r, &b, &now, 7);

		UNIT_ROW("%s", rows[i].what);
		/* who is idle looks each second whether it still is */
		CHECK_EQ(ms, idle && rows[i].ms > 1000 ? 1000 : rows[i].ms);
		CHECK_EQ(r.due_ms, rows[i].ms);
		CHECK_EQ(r.urge, IBTRS_RETRY_NO_URGE);
		if (!ms)
			continue;
		CHECK_EQ(r.wait, rows[i].rest ? IBTRS_RETRY_REST :
				 idle ? IBTRS_RETRY_IDLE : IBTRS_RETRY_USUAL);
	}
}

/* The ends of a wait: its timer, which may be early or has to look, and others' news. */
UNIT_TEST(retry_wait_ends)
{
	static const struct {
		enum ibtrs_retry_wait wait;
		u64 ms;		/* it is due at 60000 */
		bool wanted, others;
		u32 left;
		bool rests;
	} rows[] = {
		{ IBTRS_RETRY_USUAL, 60000, false, true, 0, false },
		{ IBTRS_RETRY_USUAL, 59999, false, true, 0, false },
		{ IBTRS_RETRY_IDLE, 60000, false, true, 0, false },
		{ IBTRS_RETRY_IDLE, 59001, false, true, 999, false },
		{ IBTRS_RETRY_IDLE, 53000, false, true, 1000, false },
		{ IBTRS_RETRY_IDLE, 53000, true, true, 0, false },
		{ IBTRS_RETRY_REST, 60000, true, true, 0, false },
		{ IBTRS_RETRY_REST, 59997, true, true, 3, true },
		{ IBTRS_RETRY_REST, 10000, true, true, 50000, true },
		{ IBTRS_RETRY_REST, 10000, true, false, 50000, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry r = { .wait = rows[i].wait, .due_ms = 60000 };
		struct ibtrs_retry_now now = { .ms = rows[i].ms, .wanted = rows[i].wanted,
					       .others = rows[i].others };

		UNIT_ROW("row %zu", i);
		CHECK_EQ(ibtrs_retry_left(&r, &now), rows[i].left);
		CHECK_EQ(ibtrs_retry_rests(&r, &now), rows[i].rests);
	}
}

/*
 * Whatever the circumstances: nobody waits for longer than a minute and a jitter, the last path
 * never rests, and a rest is never cut by jitter to nothing.
 */
UNIT_TEST(retry_wait_in_all_circumstances)
{
	static const int errs[] = { -ETIMEDOUT, -EMSGSIZE, -ENETDOWN, -EBUSY, -ECONNABORTED,
				    -ECONNRESET };
	unsigned long bad = 0;

	for (u32 marks = 0; marks <= IBTRS_RETRY_MAX_MARKS; marks++)
		for (u32 attempt = 0; attempt < 12; attempt++)
			for (size_t e = 0; e < ARRAY_SIZE(errs); e++)
				for (u32 bits = 0; bits < 48; bits++) {
					struct ibtrs_retry r = { .attempt = attempt, .marks = marks,
								 .state = bits & 1,
								 .urge = bits >> 4 };
					struct ibtrs_retry_now now = {
						.err = errs[e], .max = bits & 2 ? 3 : -1,
						.wanted = bits & 4, .others = bits & 8,
					};
					u32 ms = ibtrs_retry_wait(&r, &ibtrs_backoff_default, &now,
								  0x12345678u * (bits + 1));
					bool rest = r.wait == IBTRS_RETRY_REST;

					bad += r.due_ms > IBTRS_RETRY_REST_MAX_MS * 12 / 10;
					bad += ms > r.due_ms;
					bad += rest && !now.others;
					bad += rest && marks < IBTRS_RETRY_MARGINAL;
					bad += rest && ms < IBTRS_RETRY_REST_MS * 8 / 10;
					bad += !ms && now.max < 0;
					bad += now.wanted && !rest && ms > 1200;
				}
	CHECK_EQ(bad, 0);
}

UNIT_TEST(retry_first_attempts)
{
	static const struct {
		int err;
		u32 attempt;
		u64 ms;
		bool again;
	} rows[] = {
		{ -ETIMEDOUT, 1, 0, true }, { -ECONNRESET, 1, 0, true }, { -EAGAIN, 1, 0, true },
		{ -EBUSY, 2, 0, true }, { -ECONNREFUSED, 0, 0, false }, { -EMSGSIZE, 0, 0, false },
		{ -ETIMEDOUT, 2, 0, false }, { -EBUSY, 3, 0, false },
		/* a server that is busy for ever */
		{ -EBUSY, 0, IBTRS_RETRY_FIRST_MS - 1, true },
		{ -EBUSY, 0, IBTRS_RETRY_FIRST_MS, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry r = { .attempt = rows[i].attempt };

		UNIT_ROW("errno %d after %u attempts", rows[i].err, rows[i].attempt);
		tell(&r, EV(BEGIN), 0, 1000);
		tell(&r, EV(BEGIN), 0, 5000);
		tell(&r, EV(FAILED), rows[i].err, 1000 + rows[i].ms);
		CHECK_EQ(r.state, rows[i].again ? IBTRS_RETRY_FIRST : IBTRS_RETRY_DOWN);
	}
}

/* ---- the delays ---- */

/* How long the wait is after @attempt failed ones. */
static u64 delay(const struct ibtrs_backoff *b, u32 attempt, bool held, u32 rnd)
{
	struct ibtrs_retry_now now = { .err = -ECONNREFUSED, .max = -1, .wanted = held };
	struct ibtrs_retry r = { .attempt = attempt };
	u32 ms = ibtrs_retry_wait(&r, b, &now, rnd);

	CHECK(ms && ms <= r.due_ms);
	return r.due_ms;
}

UNIT_TEST(backoff_doubles_to_its_ceiling)
{
	static const struct {
		u32 attempt;
		bool held;
		u32 want;
	} rows[] = {
		{ 1, true, 100 }, { 2, true, 200 }, { 3, true, 400 },
		{ 4, true, 800 }, { 5, true, 1000 }, { 6, true, 1000 },
		{ 1, false, 100 }, { 4, false, 800 }, { 5, false, 1600 },
		{ 7, false, 6400 }, { 8, false, 8000 }, { 9, false, 8000 },
		{ 64, true, 1000 }, { 64, false, 8000 },
		{ UINT32_MAX, true, 1000 }, { UINT32_MAX, false, 8000 },
	};
	struct ibtrs_backoff b = plain();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("attempt %u %s", rows[i].attempt, rows[i].held ? "held" : "idle");
		CHECK_EQ(delay(&b, rows[i].attempt, rows[i].held, 0), rows[i].want);
		CHECK_EQ(delay(&b, rows[i].attempt, rows[i].held, UINT32_MAX), rows[i].want);
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
		u64 ms = delay(&ibtrs_backoff_default, 10, true, rows[i].rnd);

		UNIT_ROW("rnd 0x%x gave %u", rows[i].rnd, (u32)ms);
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
			.max_ms = edge[unit_random(&seed) % ARRAY_SIZE(edge)],
			.jitter_pct = edge[unit_random(&seed) % ARRAY_SIZE(edge)],
		};
		bool held = unit_random(&seed) & 1;
		u64 max = held ? b.max_ms : 8ull * b.max_ms;
		u64 pct = b.jitter_pct < 100 ? b.jitter_pct : 100;
		u64 ms = delay(&b, (u32)unit_random(&seed) % 40, held, (u32)unit_random(&seed));

		if (ms < 1 || (ms > 1 && ms > max * (100 + pct) / 100)) {
			UNIT_ROW("first %u max %llu jitter %u: %llu", b.first_ms,
				 (unsigned long long)max, b.jitter_pct, (unsigned long long)ms);
			CHECK(ms >= 1);
			CHECK(ms <= max * (100 + pct) / 100);
			return;
		}
	}
}

/* ---- how long one step of connecting may wait for the server ---- */

UNIT_TEST(patience_of_each_phase)
{
	static const struct {
		enum ibtrs_retry_phase phase;
		u64 bytes;
		u32 later[4], first;	/* after 0, 1, 2, 3 failed attempts; before any, in FIRST */
	} rows[] = {
		{ IBTRS_RETRY_RESOLVE, 0, { 3000, 3000, 3000, 3000 }, 3000 },
		{ IBTRS_RETRY_FIRST_WORD, 0, { 2000, 4000, 8000, 8000 }, 4000 },
		{ IBTRS_RETRY_AUTH, 0, { 2000, 4000, 8000, 8000 }, 4000 },
		{ IBTRS_RETRY_CONNECT, 0, { 3500, 5500, 9500, 9500 }, 5500 },
		{ IBTRS_RETRY_INFO, 0, { 2000, 4000, 8000, 8000 }, 4000 },
		{ IBTRS_RETRY_TRIAL, 4194303, { 2000, 2000, 2000, 2000 }, 2000 },
		{ IBTRS_RETRY_TRIAL, 3 << 22, { 5000, 5000, 5000, 5000 }, 5000 },
		{ IBTRS_RETRY_DOUBT, 3 << 22, { 500, 500, 500, 500 }, 500 },
	};
	unsigned int seen = 1u << IBTRS_RETRY_STOPPED;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry r = { FIRST };

		UNIT_ROW("phase %u", rows[i].phase);
		CHECK_EQ(ibtrs_retry_patience_ms(&r, rows[i].phase, false, false, rows[i].bytes),
			 rows[i].first);
		r.state = IBTRS_RETRY_DOWN;
		for (r.attempt = 0; r.attempt < 4; r.attempt++)
			CHECK_EQ(ibtrs_retry_patience_ms(&r, rows[i].phase, false, false,
							 rows[i].bytes),
				 rows[i].later[r.attempt]);
		r.attempt = UINT32_MAX;
		CHECK_EQ(ibtrs_retry_patience_ms(&r, rows[i].phase, false, false, rows[i].bytes),
			 rows[i].later[3]);
		seen |= 1u << rows[i].phase;
	}
	CHECK_EQ(seen, (1u << IBTRS_RETRY_PHASES) - 1);
}

UNIT_TEST(patience_for_the_first_word)
{
	static const struct {
		u32 attempt, answer_ms;
		bool others, ours;
		u32 ms;
	} rows[] = {
		/* four times as long as it took, within one and eight seconds */
		{ 1, 1, false, false, 1000 },
		{ 1, 600, false, false, 2400 },
		{ 1, 9000, false, false, 8000 },
		{ 1, 0xffffffff, false, false, 8000 },
		/* one attempt in four of those after the eighth has the longest time */
		{ 7, 1, false, false, 1000 },
		{ 8, 1, false, false, 8000 },
		{ 9, 1, false, false, 1000 },
		{ 12, 1, false, false, 8000 },
		/* a server of ours: one in sixteen */
		{ 8, 1, false, true, 2500 },
		{ 12, 900, false, true, 3600 },
		{ 16, 1, false, true, 8000 },
		{ 17, 1, false, true, 1000 },
		/* while another path is up: no longer than a path that returns may take */
		{ 9, 1500, true, false, 2500 },
		{ 8, 1500, true, false, 6000 },
		{ 9, 10, true, false, 1000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry r = { DOWN, .attempt = rows[i].attempt,
					 .answer_ms = rows[i].answer_ms };

		UNIT_ROW("attempt %u, %u ms", rows[i].attempt, rows[i].answer_ms);
		CHECK_EQ(ibtrs_retry_patience_ms(&r, IBTRS_RETRY_FIRST_WORD, rows[i].others,
						 rows[i].ours, 0),
			 rows[i].ms);
	}
}

UNIT_TEST(patience_is_cut_short)
{
	static const struct {
		u32 answer_ms, alive, turn;
	} rows[] = {
		{ 0, 1000, 1500 }, { 1, 500, 1500 }, { 499, 500, 1996 }, { 600, 600, 2400 },
		{ 626, 626, 2500 }, { 2000, 1000, 2500 }, { UINT32_MAX, 1000, 2500 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry r = { .answer_ms = rows[i].answer_ms };

		UNIT_ROW("%u ms", rows[i].answer_ms);
		CHECK_EQ(ibtrs_retry_alive_ms(&r), rows[i].alive);
		CHECK_EQ(ibtrs_retry_turn_ms(&r), rows[i].turn);
	}
}

/* A late answer at most doubles what is expected; an early one is believed. */
UNIT_TEST(patience_learns)
{
	static const u32 took[] = { 0, 300, 5, 5000, 5000, 3 }, knows[] = { 1, 2, 4, 8, 16, 3 };
	struct ibtrs_retry r = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(took); i++) {
		tell(&r, EV(ASKED), 0, 10000);
		tell(&r, EV(ANSWERED), 0, 10000 + took[i]);
		CHECK_EQ(r.answer_ms, knows[i]);
	}
	r.answer_ms = UINT32_MAX;
	tell(&r, EV(ANSWERED), 0, U64_MAX);
	CHECK_EQ(r.answer_ms, UINT32_MAX);
}
