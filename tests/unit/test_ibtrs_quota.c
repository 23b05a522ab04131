// SPDX-License-Identifier: GPL-2.0-only
/* What a client may have of a server before and after it is let in. */
#include "ibtrs/logic/quota.h"
#include "unit.h"

#define MB	(1ull << 20)

static const struct ibtrs_quota_max max = {
	.half_open = 8, .half_open_per_peer = 4, .sessions = 10, .sessions_per_peer = 3,
	.ending_per_peer = 5, .half_bytes = 16 * MB, .bytes = 400 * MB,
	.bytes_per_peer = 100 * MB,
};
static const char *why;

/* One question about a client of which only what counts here is given. */
#define ASK(_max, _what, _n, ...)						\
	ibtrs_quota_check(_max, &(struct ibtrs_quota_client){ __VA_ARGS__ },	\
			  IBTRS_QUOTA_##_what, _n, &why)

UNIT_TEST(a_path)
{
	static const struct {
		const char *what;
		u32 strangers, mine, ending;
		bool known;
		int rc;
	} rows[] = {
		{ "the first one", 0, 0, 0, false, 0 },
		{ "the last one of a stranger", 3, 3, 0, false, 0 },
		{ "one more", 4, 4, 0, false, -ENOSPC },
		{ "the last one of all", 7, 0, 0, false, 0 },
		{ "strangers have taken all", 8, 0, 0, false, -ENOSPC },
		{ "who was in comes back all the same", 8, 0, 0, true, 0 },
		{ "with as many as he may", 8, 3, 0, true, 0 },
		{ "and no more", 0, 4, 0, true, -ENOSPC },
		{ "what ends counts", 0, 0, 4, true, 0 },
		{ "and is waited for", 0, 0, 5, true, -EBUSY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_quota_use all = { .half_open = rows[i].strangers };
		struct ibtrs_quota_use mine = { .half_open = rows[i].mine,
						.ending = rows[i].ending };

		UNIT_ROW("%s", rows[i].what);
		why = NULL;
		CHECK_EQ(ASK(&max, PATH, 1, .known = rows[i].known, .alike = all, .peer = mine),
			 rows[i].rc);
		CHECK_EQ(!!why, !!rows[i].rc);
	}
}

UNIT_TEST(a_connection)
{
	static const struct {
		const char *what;
		u64 alike, mine, bytes;
		bool known;
		int rc;
	} rows[] = {
		{ "a small one", 0, 0, MB, false, 0 },
		{ "a quarter", 3 * MB, 3 * MB, MB, false, 0 },
		{ "more than a quarter", 3 * MB, 3 * MB, MB + 1, false, -ENOMEM },
		{ "the last there is", 15 * MB, 0, MB, false, 0 },
		{ "strangers have taken all", 16 * MB, 0, 1, false, -ENOMEM },
		{ "more than they may", 17 * MB, 0, 1, false, -ENOMEM },
		{ "those who were in have their own", 16 * MB, 0, MB, true, 0 },
		{ "a quarter of that", 7 * MB, 7 * MB, MB, true, 0 },
		{ "and no more", 7 * MB, 7 * MB, MB + 1, true, -ENOMEM },
		{ "the last there is of them", 31 * MB, 0, MB, true, 0 },
		{ "they have taken all", 31 * MB, 0, MB + 1, true, -ENOMEM },
		{ "a number that wraps", 0, 0, ~0ull, false, -ENOMEM },
		{ "and one for him", 0, MB, ~0ull, true, -ENOMEM },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_quota_use all = { .half_bytes = rows[i].alike };
		struct ibtrs_quota_use mine = { .half_bytes = rows[i].mine };

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ASK(&max, CONN, rows[i].bytes, .known = rows[i].known, .alike = all,
			     .peer = mine),
			 rows[i].rc);
	}
}

UNIT_TEST(a_session_and_its_memory)
{
	struct ibtrs_quota_use mine = { .sessions = 2, .bytes = 60 * MB };

	CHECK_EQ(ASK(&max, SESSION, 1, .all.sessions = 9, .peer = mine), 0);
	CHECK_EQ(ASK(&max, SESSION, 1, .all.sessions = 10, .peer = mine), -ENOSPC);
	CHECK(strstr(why, "max_sessions allows"));
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB, .peer = mine), 0);
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB + 1, .peer = mine), -ENOMEM);
	CHECK_EQ(ASK(&max, LET_IN, ~0ull, .peer = mine), -ENOMEM);
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB, .all.bytes = 360 * MB), 0);
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB, .all.bytes = 360 * MB + 1), -ENOMEM);
	CHECK(strstr(why, "max_memory_mb allows"));
	mine.sessions = 3;
	CHECK_EQ(ASK(&max, SESSION, 1, .all.sessions = 3, .peer = mine), -ENOSPC);
	CHECK(strstr(why, "max_sessions_per_peer"));
}

/* A quarter is for those who have a key. */
UNIT_TEST(who_has_no_key)
{
	struct ibtrs_quota_use keyless = { .sessions = 7, .bytes = 260 * MB };

	CHECK_EQ(ASK(&max, SESSION, 1, .leaves = true, .key = keyless), 0);
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB, .leaves = true, .key = keyless), 0);
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB + 1, .leaves = true, .key = keyless), -ENOMEM);
	CHECK(strstr(why, "max_memory_mb leaves"));
	CHECK_EQ(ASK(&max, LET_IN, 40 * MB + 1, .key = keyless), 0);
	CHECK_EQ(ASK(&max, LET_IN, ~0ull, .leaves = true, .key = keyless), -ENOMEM);
	keyless.sessions = 8;	/* of 10: a quarter is 2 */
	CHECK_EQ(ASK(&max, SESSION, 1, .leaves = true, .key = keyless), -ENOSPC);
	CHECK(strstr(why, "max_sessions leaves"));
}

/* One host with one key takes no more by having many addresses. */
UNIT_TEST(who_has_a_key)
{
	struct ibtrs_quota_use key = { .sessions = 7, .bytes = 260 * MB, .half_bytes = 15 * MB };
	struct ibtrs_quota_max m = max;

	CHECK_EQ(ASK(&m, CONN, MB, .keyed = true, .known = true, .key = key), 0);
	CHECK_EQ(ASK(&m, CONN, MB + 1, .keyed = true, .known = true, .key = key), -ENOMEM);
	CHECK_EQ(ASK(&m, CONN, ~0ull, .keyed = true, .known = true, .key = key), -ENOMEM);
	CHECK_EQ(ASK(&m, SESSION, 1, .keyed = true, .key = key), 0);
	CHECK_EQ(ASK(&m, LET_IN, 40 * MB, .keyed = true, .key = key), 0);
	CHECK_EQ(ASK(&m, LET_IN, 40 * MB + 1, .keyed = true, .key = key), -ENOMEM);
	CHECK(strstr(why, "max_memory_per_key_mb"));
	CHECK_EQ(ASK(&m, LET_IN, ~0ull, .keyed = true, .key = key), -ENOMEM);
	m.bytes_per_peer = U64_MAX;	/* max_memory_mb was set: no limit per client */
	CHECK_EQ(ASK(&m, LET_IN, 140 * MB, .keyed = true, .key = key), 0);
	CHECK_EQ(ASK(&m, LET_IN, 140 * MB + 1, .keyed = true, .key = key), -ENOMEM);
	m.bytes_per_key = 270 * MB;
	CHECK_EQ(ASK(&m, LET_IN, 10 * MB, .keyed = true, .key = key), 0);
	CHECK_EQ(ASK(&m, LET_IN, 10 * MB + 1, .keyed = true, .key = key), -ENOMEM);
	key.sessions = 8;		/* of 10: a quarter is 2 */
	CHECK_EQ(ASK(&m, SESSION, 1, .keyed = true, .key = key), -ENOSPC);
	CHECK(strstr(why, "max_sessions_per_key"));
	m.sessions_per_key = 9;
	CHECK_EQ(ASK(&m, SESSION, 1, .keyed = true, .key = key), 0);
	key.sessions = 9;
	CHECK_EQ(ASK(&m, SESSION, 1, .keyed = true, .key = key), -ENOSPC);
}

/* What is kept for clients that were lost goes for one that has little, whatever it may have. */
UNIT_TEST(what_is_kept_for_others)
{
	struct ibtrs_quota_use mine = { .bytes = 60 * MB };

	CHECK(ibtrs_quota_is_modest(&max, &mine, 40 * MB));
	CHECK(!ibtrs_quota_is_modest(&max, &mine, 40 * MB + 1));
	CHECK(!ibtrs_quota_is_modest(&max, &mine, ~0ull));
	mine.bytes = 0;
	CHECK(ibtrs_quota_is_modest(&max, &mine, 66 * MB));
}
