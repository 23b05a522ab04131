// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's state table: every transition there is, and no other; plus
 * properties that must hold along any walk.
 */
#include "unit.h"
#include "ibnbd/logic/dev_sm.h"

#define DO(x)	IBNBD_DEV_DO_##x
#define S(x)	IBNBD_DEV_##x
#define EV(x)	IBNBD_DEV_EV_##x

static const struct {
	enum ibnbd_dev_state from;
	enum ibnbd_dev_event ev;
	enum ibnbd_dev_state to;
	unsigned int actions;
} taken[] = {
	{ S(INIT), EV(OPENED), S(OPEN), DO(COMMIT) },
	{ S(INIT), EV(UNMAP), S(UNMAPPED), DO(REMOVE) },
	{ S(OPEN), EV(OPENED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) },
	{ S(OPEN), EV(REMAPPED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) },
	{ S(OPEN), EV(LINK_DOWN), S(HELD), DO(STOP) | DO(ARM) | DO(OFFLINE) },
	{ S(OPEN), EV(FENCE), S(FENCED), DO(STOP) | DO(FAIL) | DO(OFFLINE) | DO(CLOSE) },
	{ S(OPEN), EV(UNMAP), S(UNMAPPED), DO(FAIL) | DO(REMOVE) },
	{ S(HELD), EV(OPENED), S(OPEN), DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(HELD), EV(REMAPPED), S(OPEN), DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(HELD), EV(HOLD_EXPIRED), S(FAILED), DO(FAIL) },
	{ S(HELD), EV(LET_GO), S(FAILFAST), DO(LET_GO) },
	{ S(HELD), EV(REPLAY), S(REPLAYING), 0 },
	{ S(FAILFAST), EV(OPENED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(FAILFAST), EV(REMAPPED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(FAILFAST), EV(HOLD_EXPIRED), S(FAILED), DO(FAIL) },
	{ S(FAILFAST), EV(TAKE_BACK), S(HELD), DO(STOP) },
	{ S(FAILFAST), EV(REPLAY), S(REPLAYING), DO(STOP) },
	{ S(FAILFAST), EV(FENCE), S(FENCED), DO(FAIL) | DO(OFFLINE) | DO(CLOSE) },
	{ S(FAILFAST), EV(UNMAP), S(UNMAPPED), DO(FAIL) | DO(REMOVE) },
	{ S(REPLAYING), EV(OPENED), S(OPEN), DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(REPLAYING), EV(REMAPPED), S(OPEN), DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(REPLAYING), EV(LINK_DOWN), S(HELD), DO(ARM) },
	{ S(REPLAYING), EV(FENCE), S(FENCED), DO(FAIL) | DO(OFFLINE) | DO(CLOSE) },
	{ S(REPLAYING), EV(UNMAP), S(UNMAPPED), DO(FAIL) | DO(REMOVE) },
	{ S(HELD), EV(FENCE), S(FENCED), DO(FAIL) | DO(OFFLINE) | DO(CLOSE) },
	{ S(HELD), EV(UNMAP), S(UNMAPPED), DO(FAIL) | DO(REMOVE) },
	{ S(FAILED), EV(OPENED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(FAILED), EV(REMAPPED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(FAILED), EV(REPLAY), S(REPLAYING), DO(STOP) },
	{ S(FAILED), EV(FENCE), S(FENCED), DO(OFFLINE) | DO(CLOSE) },
	{ S(FAILED), EV(UNMAP), S(UNMAPPED), DO(FAIL) | DO(REMOVE) },
	{ S(FENCED), EV(REMAPPED), S(OPEN), DO(STOP) | DO(COMMIT) | DO(RESUME) | DO(ONLINE) },
	{ S(FENCED), EV(UNMAP), S(UNMAPPED), DO(FAIL) | DO(REMOVE) },
};

UNIT_TEST(the_whole_table)
{
	unsigned int s, ev, i, hits = 0;

	for (s = 0; s < IBNBD_DEV_STATES; s++) {
		for (ev = 0; ev < IBNBD_DEV_EVENTS; ev++) {
			struct ibnbd_dev_step step = ibnbd_dev_sm_step(s, ev);

			UNIT_ROW("%s, %s", ibnbd_dev_sm_state_name(s), ibnbd_dev_sm_event_name(ev));
			for (i = 0; i < ARRAY_SIZE(taken); i++)
				if (taken[i].from == s && taken[i].ev == ev)
					break;
			if (i == ARRAY_SIZE(taken)) {
				CHECK(!step.taken);
				CHECK_EQ(step.state, s);
				CHECK_EQ(step.actions, 0);
				continue;
			}
			hits++;
			CHECK(step.taken);
			CHECK_EQ(step.state, taken[i].to);
			CHECK_EQ(step.actions, taken[i].actions);
		}
	}
	CHECK_EQ(hits, ARRAY_SIZE(taken));
}

/*
 * A random walk of a million events against a model of the machine that carries the actions out:
 * the timer runs only while the device holds, nothing stays stopped that does not hold, uevents
 * alternate, UNMAPPED is final, the disk is removed once.
 */
UNIT_TEST(properties_of_any_walk)
{
	u64 seed = 7;
	int walk, n;

	for (walk = 0; walk < 2000; walk++) {
		enum ibnbd_dev_state s = IBNBD_DEV_INIT;
		bool armed = false, stopped = false, online = true, removed = false;

		for (n = 0; n < 500; n++) {
			enum ibnbd_dev_event ev =
				unit_random(&seed) %
				(n < 400 ? IBNBD_DEV_EVENTS * 4 : IBNBD_DEV_EVENTS);
			struct ibnbd_dev_step step;

			if (ev >= IBNBD_DEV_EVENTS)
				ev = IBNBD_DEV_EV_LINK_DOWN +
				     ev % (IBNBD_DEV_EVENTS - IBNBD_DEV_EV_LINK_DOWN);
			step = ibnbd_dev_sm_step(s, ev);
			UNIT_ROW("walk %d.%d: %s, %s", walk, n, ibnbd_dev_sm_state_name(s),
				 ibnbd_dev_sm_event_name(ev));
			if (s == IBNBD_DEV_UNMAPPED)
				CHECK(!step.taken);
			if (ev == IBNBD_DEV_EV_HOLD_EXPIRED && step.taken)
				CHECK(armed);
			if (step.actions & DO(STOP)) {
				CHECK(!stopped);
				stopped = true;
			}
			if (step.actions & DO(ARM)) {
				CHECK(!armed);
				armed = true;
			}
			if (step.actions & DO(LET_GO))
				CHECK(stopped);
			if (step.actions & (DO(FAIL) | DO(LET_GO)))
				stopped = false;
			if (step.actions & DO(COMMIT))
				CHECK(stopped || s == S(INIT));
			if (step.actions & DO(RESUME)) {
				CHECK(stopped);
				stopped = false;
			}
			if (step.actions & DO(OFFLINE)) {
				/* that it is fenced is told again */
				CHECK(online || step.state == S(FENCED));
				online = false;
			}
			if (step.actions & DO(ONLINE)) {
				CHECK(!online);
				online = true;
			}
			if (step.actions & DO(REMOVE)) {
				CHECK(!removed);
				removed = true;
			}
			s = step.state;
			armed &= ibnbd_dev_sm_waits(s);
			CHECK_EQ(stopped, ibnbd_dev_sm_holds(s) && s != S(FAILFAST));
			CHECK_EQ(armed, ibnbd_dev_sm_waits(s));
			/* one that never had a disk, too */
			CHECK_EQ(removed, s == IBNBD_DEV_UNMAPPED);
		}
	}
}

#define UP(x)	IBNBD_GIVEN_UP_##x

/* Which answers to OPEN may not be used yet. */
UNIT_TEST(what_is_at_large)
{
	struct ibnbd_at_large a = { .resent_id = 7 };
	unsigned int s, up, same;

	CHECK_EQ(ibnbd_given_up_ended(UP(NOTHING)), UP(NOTHING));
	CHECK_EQ(ibnbd_given_up_ended(UP(READS)), UP(READS));
	CHECK_EQ(ibnbd_given_up_ended(UP(WRITES)), UP(READS));
	for (s = 0; s < IBNBD_DEV_STATES; s++)
		for (up = UP(NOTHING); up <= UP(WRITES); up++)
			for (same = 0; same < 2; same++) {
				UNIT_ROW("%s, %u, %u", ibnbd_dev_sm_state_name(s), up, same);
				a.given_up = up;
				CHECK_EQ(ibnbd_at_large_given_up(&a, s, same),
					 up != UP(NOTHING) && same &&
						 (s == S(FAILED) || s == S(FAILFAST)));
			}
	CHECK(!ibnbd_at_large_resent(&a, true, 7, false));
	CHECK(!ibnbd_at_large_resent(&a, false, 7, false));
	a.resent = true;
	CHECK(ibnbd_at_large_resent(&a, true, 7, true));
	CHECK(!ibnbd_at_large_resent(&a, true, 8, false));
	CHECK(ibnbd_at_large_resent(&a, false, 8, false));
	CHECK(!ibnbd_at_large_resent(&a, false, 7, true));
}

/* Without another leg nothing is let go, whatever the state. */
UNIT_TEST(the_group_rule)
{
	unsigned int s;

	for (s = 0; s < IBNBD_DEV_STATES; s++) {
		UNIT_ROW("%s", ibnbd_dev_sm_state_name(s));
		CHECK_EQ(ibnbd_dev_sm_group(s, true), s == S(HELD) ? IBNBD_DEV_GROUP_WAIT :
						      IBNBD_DEV_GROUP_NOTHING);
		CHECK_EQ(ibnbd_dev_sm_group(s, false), s == S(FAILFAST) ?
			 IBNBD_DEV_GROUP_TAKE_BACK : IBNBD_DEV_GROUP_NOTHING);
	}
}

UNIT_TEST(names)
{
	static const char * const words[] = { "init", "open", "closed", "closed", "closed",
					      "closed", "closed", "unmapped" };
	static const char * const exact[] = { "init", "open", "held", "failfast", "replaying",
					      "failed", "fenced", "unmapped" };
	unsigned int s;

	for (s = 0; s < IBNBD_DEV_STATES; s++) {
		CHECK_STR(ibnbd_dev_sm_word(s), words[s]);
		CHECK_STR(ibnbd_dev_sm_state_name(s), exact[s]);
		CHECK_EQ(ibnbd_dev_sm_submits(s), s == IBNBD_DEV_OPEN);
	}
	CHECK_STR(ibnbd_dev_sm_word(99), "unknown");
	CHECK_STR(ibnbd_dev_sm_state_name(99), "unknown");
	CHECK_STR(ibnbd_dev_sm_event_name(99), "unknown");
	CHECK(!ibnbd_dev_sm_step(99, 0).taken);
	CHECK(!ibnbd_dev_sm_step(0, 99).taken);
}
