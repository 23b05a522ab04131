// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the server has open for a device: the whole table, and walks against a model of a server
 * that opens, answers late or never, and forgets its numbers or not.
 */
#include "ibnbd/logic/dev_sm.h"
#include "unit.h"

#define S(x)	IBNBD_OPEN_##x
#define EV(x)	IBNBD_OPEN_EV_##x

UNIT_TEST(the_whole_table)
{
	/* in the order of the events: ASK, LINK, UNIQUE, REFUSED, LOST, CLOSE, CLOSED */
	static const u8 to[IBNBD_OPEN_STATES][IBNBD_OPEN_EVENTS] = {
		[S(NONE)] = { S(ASKED), S(NONE), S(NONE), S(NONE), S(NONE), S(NONE), S(NONE) },
		[S(ASKED)] = { S(ASKED), S(LINK), S(UNIQUE), S(NONE), S(NONE), S(ASKED), S(ASKED) },
		[S(LINK)] = { S(LINK_ASKED), S(LINK), S(LINK), S(LINK), S(NONE), S(NONE), S(LINK) },
		[S(LINK_ASKED)] = { S(LINK_ASKED), S(LINK), S(UNIQUE), S(LINK), S(NONE), S(ASKED),
				    S(LINK_ASKED) },
		[S(UNIQUE)] = { S(UNIQUE_ASKED), S(UNIQUE), S(UNIQUE), S(UNIQUE), S(OWED), S(OWED),
				S(UNIQUE) },
		[S(UNIQUE_ASKED)] = { S(UNIQUE_ASKED), S(LINK), S(UNIQUE), S(UNIQUE), S(OWED),
				      S(OWED_ASKED), S(UNIQUE_ASKED) },
		[S(OWED)] = { S(OWED_ASKED), S(OWED), S(OWED), S(OWED), S(OWED), S(OWED), S(NONE) },
		[S(OWED_ASKED)] = { S(OWED_ASKED), S(LINK), S(UNIQUE), S(OWED), S(OWED),
				    S(OWED_ASKED), S(ASKED) },
	};
	unsigned int s, ev;

	for (s = 0; s < IBNBD_OPEN_STATES; s++) {
		for (ev = 0; ev < IBNBD_OPEN_EVENTS; ev++) {
			UNIT_ROW("state %u, event %u", s, ev);
			CHECK_EQ(ibnbd_open_sm_step(s, ev), to[s][ev]);
		}
	}
	CHECK_EQ(ibnbd_open_sm_step(99, 0), 99);
	CHECK_EQ(ibnbd_open_sm_step(0, 99), 0);
}

/*
 * A server of ours, as far as it matters: one open for each name, a number that never comes again.
 * Whatever is lost on the way, a device that goes with open_sm's advice leaves nothing open there.
 */
UNIT_TEST(nothing_stays_open)
{
	u64 seed = 11;
	int walk, n;

	for (walk = 0; walk < 20000; walk++) {
		enum ibnbd_open_state s = S(NONE);
		u32 there = 0, id = 0, next = 1;	/* 0: not open */

		for (n = 0; n < 40; n++) {
			u32 dice = unit_random(&seed) % 8;

			UNIT_ROW("walk %d.%d: state %u", walk, n, s);
			if (dice < 4) {		/* OPEN: done and answered, done, lost, refused */
				s = ibnbd_open_sm_step(s, EV(ASK));
				if (dice < 2 && !there)
					there = next++;
				if (dice == 0) {
					id = there;
					s = ibnbd_open_sm_step(s, EV(UNIQUE));
				} else if (dice == 3 && !there) {
					s = ibnbd_open_sm_step(s, EV(REFUSED));
				}
			} else if (dice < 6) {	/* CLOSE: answered, or lost before it arrived */
				if (!ibnbd_open_sm_can_close(s, true))
					continue;
				s = ibnbd_open_sm_step(s, EV(CLOSE));
				if (dice == 4) {
					if (there == id)
						there = 0;
					s = ibnbd_open_sm_step(s, EV(CLOSED));
				}
			} else if (dice == 6) {	/* the session ended there, with all it had */
				s = ibnbd_open_sm_step(s, EV(LOST));
				there = 0;
			}
			/* what is open there is known, owed, or in doubt */
			if (there)
				CHECK(ibnbd_open_sm_owes(s) || ibnbd_open_sm_in_doubt(s));
		}
		/* the end of a device: find out, close */
		if (ibnbd_open_sm_in_doubt(s)) {
			s = ibnbd_open_sm_step(s, EV(ASK));
			there = there ?: next++;
			id = there;
			s = ibnbd_open_sm_step(s, EV(UNIQUE));
		}
		if (ibnbd_open_sm_can_close(s, true)) {
			s = ibnbd_open_sm_step(s, EV(CLOSE));
			CHECK(ibnbd_open_sm_owes(s));
			if (there == id)
				there = 0;
			s = ibnbd_open_sm_step(s, EV(CLOSED));
		}
		CHECK_EQ(there, 0);
		CHECK(!ibnbd_open_sm_owes(s));
	}
}

/* Another server's number ends with its link, and is closed on no other. */
UNIT_TEST(numbers_of_a_link)
{
	CHECK(ibnbd_open_sm_can_close(S(LINK), false));
	CHECK(!ibnbd_open_sm_owes(S(LINK)));
	CHECK(!ibnbd_open_sm_can_close(ibnbd_open_sm_step(S(LINK), EV(LOST)), true));
	CHECK(!ibnbd_open_sm_can_close(S(OWED), false));
	CHECK(ibnbd_open_sm_can_close(S(OWED), true));
	CHECK(ibnbd_open_sm_is_open(S(UNIQUE_ASKED)) && !ibnbd_open_sm_is_open(S(OWED)));
}
