// SPDX-License-Identifier: GPL-2.0-only
/* A send queue that died without a word, told from a slow disk (decision 16). */
#include "ibtrs/logic/beat.h"
#include "unit.h"

UNIT_TEST(sqwatch_one_look)
{
	static const struct {
		const char *what;
		u32 silent;
		bool out, seen, probing;
		enum ibtrs_sqwatch_verdict want;
		u32 after;
	} rows[] = {
		{ "nothing out", 0, false, false, false, IBTRS_SQWATCH_FINE, 0 },
		{ "nothing out any more", 3, false, false, false, IBTRS_SQWATCH_FINE, 0 },
		{ "completions flow", 0, true, true, false, IBTRS_SQWATCH_FINE, 0 },
		{ "the probe came back", 4, true, true, false, IBTRS_SQWATCH_FINE, 0 },
		{ "first silence", 0, true, false, false, IBTRS_SQWATCH_PROBE, 1 },
		{ "one probe at a time", 1, true, false, true, IBTRS_SQWATCH_FINE, 2 },
		{ "the queue was too full for one", 1, true, false, false, IBTRS_SQWATCH_PROBE, 2 },
		{ "the last look it is given", 3, true, false, true, IBTRS_SQWATCH_FINE, 4 },
		{ "dead", 4, true, false, true, IBTRS_SQWATCH_DEAD, 5 },
		{ "dead, and full since ever", 4, true, false, false, IBTRS_SQWATCH_DEAD, 5 },
		{ "life in the last moment", 4, true, true, true, IBTRS_SQWATCH_FINE, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_sqwatch w = { rows[i].silent };

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibtrs_sqwatch_look(&w, rows[i].out, rows[i].seen, rows[i].probing, 3),
			 rows[i].want);
		CHECK_EQ(w.silent, rows[i].after);
	}
}

/*
 * A disk that needs an hour answers each probe: the path stays, and there is
 * never more than one probe for two looks.
 */
UNIT_TEST(sqwatch_slow_disk)
{
	struct ibtrs_sqwatch w = {};
	bool seen = false;
	u32 probes = 0;

	for (int i = 0; i < 3600; i++) {
		enum ibtrs_sqwatch_verdict v = ibtrs_sqwatch_look(&w, true, seen, false, 0);

		CHECK(v != IBTRS_SQWATCH_DEAD);
		seen = v == IBTRS_SQWATCH_PROBE;
		probes += seen;
	}
	CHECK_EQ(probes, 1800);
}

/* With the defaults of a client a queue with little in it is dead at the fifth silent look. */
UNIT_TEST(sqwatch_dead_queue)
{
	struct ibtrs_sqwatch w = {};
	u32 patience = ibtrs_sqwatch_patience(3, 16 << 10), looks = 0;
	bool probing = false;

	for (;;) {
		enum ibtrs_sqwatch_verdict v = ibtrs_sqwatch_look(&w, true, false,
								  probing, patience);

		CHECK(++looks <= 10);
		if (v == IBTRS_SQWATCH_DEAD || looks > 10)
			break;
		CHECK_EQ(v == IBTRS_SQWATCH_PROBE, !probing);
		probing = true;
	}
	CHECK_EQ(looks, 5);
}

UNIT_TEST(sqwatch_patience)
{
	CHECK_EQ(ibtrs_sqwatch_patience(3, 0), 3);
	CHECK_EQ(ibtrs_sqwatch_patience(3, (4 << 20) - 1), 3);
	CHECK_EQ(ibtrs_sqwatch_patience(3, 4 << 20), 4);
	CHECK_EQ(ibtrs_sqwatch_patience(5, 64ull << 20), 21);
	CHECK_EQ(ibtrs_sqwatch_patience(5, ~0ull), 35);
}
