// SPDX-License-Identifier: GPL-2.0-only
#include "ibtrs/logic/beat.h"
#include "unit.h"

UNIT_TEST(beat)
{
	static const struct {
		bool seen;
		enum ibtrs_beat_verdict want;
	} rows[] = {
		{ true, IBTRS_BEAT_SEND }, { true, IBTRS_BEAT_SEND }, { false, IBTRS_BEAT_QUIET },
		{ true, IBTRS_BEAT_SEND }, { false, IBTRS_BEAT_QUIET }, { false, IBTRS_BEAT_QUIET },
		{ false, IBTRS_BEAT_QUIET }, { false, IBTRS_BEAT_DEAD }, { false, IBTRS_BEAT_DEAD },
		{ true, IBTRS_BEAT_SEND },
	};
	unsigned int i;
	u32 missed = 0;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("tick %u", i);
		CHECK_EQ(ibtrs_beat_tick(&missed, rows[i].seen, 3), rows[i].want);
	}
	missed = 0;
	CHECK_EQ(ibtrs_beat_tick(&missed, false, 0), IBTRS_BEAT_SEND);
	CHECK_EQ(ibtrs_beat_tick(&missed, false, 0), IBTRS_BEAT_DEAD);
}
