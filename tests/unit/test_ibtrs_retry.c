// SPDX-License-Identifier: GPL-2.0-only
/* When a path is tried again, and what it has to live down first (decision 11). */
#include "ibtrs/logic/retry.h"
#include "ibtrs/proto/msg.h"
#include "unit.h"

static struct ibtrs_backoff plain(void)
{
	struct ibtrs_backoff b = ibtrs_backoff_default;

	b.jitter_pct = 0;
	return b;
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
		ibtrs_retry_up(&lost, 5);
		ibtrs_retry_lost(&lost, rows[i].err, 6);
		CHECK_EQ(lost.marks, rows[i].lost);
		CHECK(!lost.up);
		CHECK_EQ(ibtrs_retry_failed(&failed, rows[i].err), rows[i].err != -EBUSY);
		CHECK_EQ(failed.marks, rows[i].failed);
		CHECK_EQ(failed.attempt, rows[i].err != -EBUSY);
	}
}

UNIT_TEST(retry_marks_outlive_a_short_success)
{
	struct ibtrs_retry r = { 0 };
	u64 now = 1000;

	for (u32 n = 1; n < 20; n++) {
		ibtrs_retry_up(&r, now);
		CHECK_EQ(r.attempt, 0);
		ibtrs_retry_lost(&r, -ETIMEDOUT, now += 6000);
		UNIT_ROW("loss %u", n);
		CHECK_EQ(r.marks, 2 * n < IBTRS_RETRY_MAX_MARKS ? 2 * n : IBTRS_RETRY_MAX_MARKS);
		CHECK_EQ(ibtrs_retry_marginal(&r, now), n > 1);
		now += 60000;	/* time without a connection cleans nothing */
		CHECK_EQ(ibtrs_retry_marginal(&r, now), n > 1);
	}
	/* and a clean period does */
	ibtrs_retry_up(&r, now);
	CHECK(ibtrs_retry_marginal(&r, now + IBTRS_RETRY_DOUBT_MS - 1));
	CHECK(!ibtrs_retry_marginal(&r, now + IBTRS_RETRY_DOUBT_MS));
	ibtrs_retry_lost(&r, -ENETDOWN, now + IBTRS_RETRY_MAX_MARKS * IBTRS_RETRY_CLEAN_MS);
	CHECK_EQ(r.marks, 1);
	ibtrs_retry_up(&r, now);
	ibtrs_retry_lost(&r, -ETIMEDOUT, U64_MAX);
	CHECK_EQ(r.marks, 2);
	ibtrs_retry_forgive(&r);
	CHECK_EQ(r.marks, 0);
}

UNIT_TEST(retry_losses_far_apart_make_nobody_marginal)
{
	struct ibtrs_retry r = { 0 };
	u64 now = 0;

	for (u32 n = 0; n < 50; n++) {
		ibtrs_retry_up(&r, now);
		ibtrs_retry_lost(&r, n & 1 ? -ETIMEDOUT : -ENETDOWN,
				 now += 2 * IBTRS_RETRY_CLEAN_MS);
		CHECK(!ibtrs_retry_marginal(&r, now));
	}
}

UNIT_TEST(retry_next)
{
	static const struct {
		const char *what;
		struct ibtrs_retry r;
		struct ibtrs_retry_ask ask;
		u32 ms;
		bool rest, give_up;
	} rows[] = {
		{ "an ordinary loss", { .marks = 2 },
		  { .err = -ETIMEDOUT, .max = -1, .wanted = true, .others = true }, 100 },
		{ "the same, nobody waits",
		  { .marks = 2 }, { .err = -ETIMEDOUT, .max = -1, .others = true }, 100 },
		{ "three marks", { .marks = 3 },
		  { .err = -ENETDOWN, .max = -1, .wanted = true, .others = true }, 100 },
		{ "marginal", { .marks = 4 },
		  { .err = -ENETDOWN, .max = -1, .wanted = true, .others = true }, 10000, true },
		{ "more so",
		  { .marks = 5 }, { .err = -ENETDOWN, .max = -1, .others = true }, 20000, true },
		{ "and more",
		  { .marks = 6 }, { .err = -ETIMEDOUT, .max = -1, .others = true }, 40000, true },
		{ "at most",
		  { .marks = 7 }, { .err = -ETIMEDOUT, .max = -1, .others = true }, 60000, true },
		{ "whatever",
		  { .marks = 8 }, { .err = -ETIMEDOUT, .max = -1, .others = true }, 60000, true },
		{ "the last path",
		  { .marks = 8 }, { .err = -ETIMEDOUT, .max = -1, .wanted = true }, 100 },
		{ "a port came up", { .marks = 8 },
		  { .err = -ENETDOWN, .max = -1, .hurry = true, .others = true }, 60000, true },
		{ "a port came up for a path of repute", { .marks = 3 },
		  { .err = -ENETDOWN, .max = -1, .hurry = true, .others = true }, 100 },
		{ "by hand", { .marks = 8 },
		  { .err = -ECONNABORTED, .max = -1, .by_hand = true, .others = true }, 100 },
		{ "the server is busy",
		  { .marks = 8 }, { .err = -EBUSY, .max = -1, .others = true }, 100 },
		{ "dark after its rest", { .attempt = 1, .marks = 8 },
		  { .err = -ETIMEDOUT, .max = -1, .wanted = true, .others = true }, 100 },
		{ "unreachable after its rest", { .attempt = 3, .marks = 8 },
		  { .err = -EHOSTUNREACH, .max = -1, .wanted = true, .others = true }, 400 },
		{ "its trial failed again", { .attempt = 9, .marks = 6 },
		  { .err = -EMSGSIZE, .max = -1, .wanted = true, .others = true }, 40000, true },
		{ "idle and dark", { .attempt = 9 }, { .err = -ETIMEDOUT, .max = -1 }, 8000 },
		{ "wanted and dark",
		  { .attempt = 9 }, { .err = -ETIMEDOUT, .max = -1, .wanted = true }, 100 },
		{ "wanted and refused",
		  { .attempt = 9 }, { .err = -ECONNREFUSED, .max = -1, .wanted = true }, 1000 },
		{ "hurry",
		  { .attempt = 9 }, { .err = -ECONNREFUSED, .max = -1, .hurry = true }, 100 },
		{ "given up", { .attempt = 5 },
		  { .err = -ETIMEDOUT, .max = 5, .first_done = true }, 100, false, true },
		{ "one left",
		  { .attempt = 4 }, { .err = -ECONNREFUSED, .max = 5, .first_done = true }, 800 },
		{ "tries of a first connect",
		  { .attempt = 1 }, { .err = -ECONNREFUSED, .max = 0 }, 100 },
		{ "never reconnect",
		  { 0 }, { .err = -ETIMEDOUT, .first_done = true }, 100, false, true },
		{ "but by hand",
		  { 0 }, { .err = -ECONNABORTED, .first_done = true, .by_hand = true }, 100 },
		{ "but busy", { 0 }, { .err = -EBUSY, .first_done = true }, 100 },
	};
	struct ibtrs_backoff b = plain();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_retry_answer a = ibtrs_retry_next(&rows[i].r, &b, &rows[i].ask, 7);

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(a.wait_ms, rows[i].ms);
		CHECK_EQ(a.rest, rows[i].rest);
		CHECK_EQ(a.give_up, rows[i].give_up);
	}
}

/*
 * Whatever is asked: nobody waits for longer than a minute and a jitter, the last path never rests,
 * and a rest is never cut by jitter to nothing.
 */
UNIT_TEST(retry_next_in_all_circumstances)
{
	static const int errs[] = { -ETIMEDOUT, -EMSGSIZE, -ENETDOWN, -EBUSY, -ECONNABORTED,
				    -ECONNRESET };
	unsigned long bad = 0;

	for (u32 marks = 0; marks <= IBTRS_RETRY_MAX_MARKS; marks++)
		for (u32 attempt = 0; attempt < 12; attempt++)
			for (size_t e = 0; e < ARRAY_SIZE(errs); e++)
				for (u32 bits = 0; bits < 64; bits++) {
					struct ibtrs_retry r = { .attempt = attempt,
								 .marks = marks };
					struct ibtrs_retry_ask ask = {
						.err = errs[e], .max = bits & 1 ? 3 : -1,
						.first_done = bits & 2, .by_hand = bits & 4,
						.hurry = bits & 8, .wanted = bits & 16,
						.others = bits & 32,
					};
					struct ibtrs_retry_answer a = ibtrs_retry_next(
						&r, &ibtrs_backoff_default, &ask,
						0x12345678u * (bits + 1));

					bad += !a.wait_ms ||
					       a.wait_ms > IBTRS_RETRY_REST_MAX_MS * 12 / 10;
					bad += a.rest &&
					       (!ask.others || marks < IBTRS_RETRY_MARGINAL ||
						a.wait_ms < IBTRS_RETRY_REST_MS * 8 / 10);
					bad += a.give_up && ask.max < 0;
					bad += ask.wanted && !a.rest && a.wait_ms > 1200;
				}
	CHECK_EQ(bad, 0);
}

UNIT_TEST(retry_first_again)
{
	struct ibtrs_retry r = { .attempt = IBTRS_RETRY_FIRST_TRIES - 1 };

	CHECK(ibtrs_retry_first_again(&r, -ETIMEDOUT));
	CHECK(ibtrs_retry_first_again(&r, -ECONNRESET));
	CHECK(ibtrs_retry_first_again(&r, -EBUSY));
	CHECK(!ibtrs_retry_first_again(&r, -ECONNREFUSED));
	CHECK(!ibtrs_retry_first_again(&r, -EMSGSIZE));
	r.attempt++;
	CHECK(!ibtrs_retry_first_again(&r, -ETIMEDOUT));
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
