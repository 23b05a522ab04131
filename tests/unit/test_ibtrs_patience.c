// SPDX-License-Identifier: GPL-2.0-only
/* How long one step of connecting may wait for the server (decision 11). */
#include "ibtrs/logic/retry.h"
#include "unit.h"

UNIT_TEST(patience_doubles_twice)
{
	static const u32 later[] = { 2000, 4000, 8000, 8000, 8000 };
	struct ibtrs_patience p = { .first_done = true };

	for (p.attempt = 0; p.attempt < ARRAY_SIZE(later); p.attempt++)
		CHECK_EQ(ibtrs_patience_ms(&p), later[p.attempt]);
	p = (struct ibtrs_patience){ .first_done = false };
	CHECK_EQ(ibtrs_patience_ms(&p), 4000);
	p.attempt = 0xffffffff;
	CHECK(ibtrs_patience_ms(&p) >= 2000);
	/* the first word of a server that nobody has timed */
	p = (struct ibtrs_patience){ .attempt = 1, .first_done = true };
	CHECK_EQ(ibtrs_patience_first_ms(&p), 4000);
}

UNIT_TEST(patience_for_the_first_word)
{
	static const struct {
		struct ibtrs_patience p;
		u32 ms;
	} rows[] = {
		/* four times as long as it took, within one and eight seconds */
		{ { .attempt = 1, .connect_ms = 1 }, 1000 },
		{ { .attempt = 1, .connect_ms = 600 }, 2400 },
		{ { .attempt = 1, .connect_ms = 9000 }, 8000 },
		{ { .attempt = 1, .connect_ms = 0xffffffff }, 8000 },
		/* one attempt in four of those after the eighth has the longest time */
		{ { .attempt = 7, .connect_ms = 1 }, 1000 },
		{ { .attempt = 8, .connect_ms = 1 }, 8000 },
		{ { .attempt = 9, .connect_ms = 1 }, 1000 },
		{ { .attempt = 12, .connect_ms = 1 }, 8000 },
		/* a server of ours: one in sixteen */
		{ { .attempt = 8, .connect_ms = 1, .ours = true }, 2500 },
		{ { .attempt = 12, .connect_ms = 900, .ours = true }, 3600 },
		{ { .attempt = 16, .connect_ms = 1, .ours = true }, 8000 },
		{ { .attempt = 17, .connect_ms = 1, .ours = true }, 1000 },
		/* while another path is up: no longer than a path that returns may take */
		{ { .attempt = 9, .connect_ms = 1500, .others = true }, 2500 },
		{ { .attempt = 8, .connect_ms = 1500, .others = true }, 6000 },
		{ { .attempt = 9, .connect_ms = 10, .others = true }, 1000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("attempt %u, %u ms", rows[i].p.attempt, rows[i].p.connect_ms);
		CHECK_EQ(ibtrs_patience_first_ms(&rows[i].p), rows[i].ms);
	}
}
