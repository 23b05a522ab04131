// SPDX-License-Identifier: GPL-2.0-only
/*
 * The account of unflushed writes, against a model of client and server that knows what each flush
 * really covered: every interleaving of writers, flushes that overlap, flushes that fail and
 * flushes that nobody answers.
 */
#include "unit.h"
#include "ibnbd/logic/unflushed.h"

#define WRITES	2
#define FLUSHES	2
#define ACTORS	(WRITES + FLUSHES)

/*
 * A write: executed by the server, answered, noted (in two steps), completed. A flush: sent,
 * executed, answered.
 */
enum { STEPS = 3 };

struct world {
	struct ibnbd_unflushed u;
	unsigned char at[ACTORS];		/* steps done */
	unsigned long read[WRITES];		/* what a write that was held up had read */
	unsigned long number[FLUSHES];
	unsigned int executed, completed;	/* writes, as bits */
	unsigned int took[FLUSHES];		/* writes on the disk when the server executed it */
	unsigned int owed[FLUSHES];		/* writes that were complete when it was sent */
	unsigned int safe, promised;		/* by flushes that succeeded: really, and by P1 */
};

static unsigned long worlds;

/* With @whole the noting of a write is one step, which is the function itself. */
static void step(struct world *w, unsigned int actor, bool fails, bool whole)
{
	unsigned int f = actor - WRITES, at = w->at[actor]++;

	if (actor < WRITES) {
		if (at == 0) {
			w->executed |= 1u << actor;
		} else if (at == 1) {
			w->read[actor] = w->u.sent + 1;
		} else {
			if (whole)
				ibnbd_unflushed_wrote(&w->u);
			else
				ibnbd_unflushed_raise(&w->u.needs, w->read[actor]);
			w->completed |= 1u << actor;
		}
	} else if (at == 0) {
		w->owed[f] = w->completed;
		w->number[f] = ibnbd_unflushed_send(&w->u);
	} else if (at == 1) {
		w->took[f] = w->executed;
	} else if (!fails) {
		ibnbd_unflushed_done(&w->u, w->number[f]);
		w->safe |= w->took[f];
		w->promised |= w->owed[f];
	}
}

/* Asked when no write is between its answer and its completion, as it is when the link is down. */
static bool quiet(const struct world *w)
{
	unsigned int i;

	for (i = 0; i < WRITES; i++)
		if (w->at[i] == 2)
			return false;
	return true;
}

static void walk(const struct world *before, unsigned int fails, bool whole)
{
	unsigned int actor;

	for (actor = 0; actor < ACTORS; actor++) {
		struct world w = *before;

		if (w.at[actor] == STEPS)
			continue;
		step(&w, actor, fails >> actor & 1, whole);
		worlds++;
		if (quiet(&w)) {
			/* What it calls covered is safe; what P1 promises it calls covered. */
			if (ibnbd_unflushed_any(&w.u) ? !(w.completed & ~w.promised) :
							w.completed & ~w.safe)
				CHECK(false);
		}
		walk(&w, fails, whole);
	}
}

UNIT_TEST(every_interleaving)
{
	const struct world start = { 0 }, wraps = { .u = { -1ul, -1ul, -1ul } };
	unsigned int fails;

	for (fails = 0; fails < 1u << FLUSHES; fails++) {
		walk(&start, fails << WRITES, false);
		walk(&start, fails << WRITES, true);
	}
	UNIT_ROW("the numbers wrap");
	walk(&wraps, 0, false);
	CHECK(worlds > 1000000);
}

UNIT_TEST(one_after_the_other)
{
	struct ibnbd_unflushed u = { 0 };
	unsigned long a, b;

	CHECK(!ibnbd_unflushed_any(&u));
	ibnbd_unflushed_wrote(&u);
	CHECK(ibnbd_unflushed_any(&u));
	a = ibnbd_unflushed_send(&u);
	CHECK(ibnbd_unflushed_any(&u));
	ibnbd_unflushed_wrote(&u);
	ibnbd_unflushed_done(&u, a);
	UNIT_ROW("the second write came after the flush was sent");
	CHECK(ibnbd_unflushed_any(&u));
	a = ibnbd_unflushed_send(&u);
	b = ibnbd_unflushed_send(&u);
	ibnbd_unflushed_done(&u, b);
	UNIT_ROW("the later of two is answered first, and the other one fails");
	CHECK(!ibnbd_unflushed_any(&u));
	ibnbd_unflushed_wrote(&u);
	ibnbd_unflushed_done(&u, a);
	UNIT_ROW("a late answer takes nothing back, and covers nothing more");
	CHECK(ibnbd_unflushed_any(&u));
	ibnbd_unflushed_forgive(&u);
	CHECK(!ibnbd_unflushed_any(&u));
	ibnbd_unflushed_wrote(&u);
	CHECK(ibnbd_unflushed_any(&u));
}

UNIT_TEST(lost_between_two_answers)
{
	static const struct {
		const char *what;
		struct {
			bool told;
			u64 epoch;
			u32 link;
		} old, new;
		bool lost;
	} rows[] = {
		{ "the same epoch, another link", { true, 7, 1 }, { true, 7, 2 }, false },
		{ "another epoch", { true, 7, 1 }, { true, 8, 2 }, true },
		{ "another epoch, the same link", { true, 7, 1 }, { true, 8, 1 }, true },
		{ "upgraded", { false, 0, 1 }, { true, 7, 2 }, true },
		{ "downgraded", { true, 7, 1 }, { false, 0, 2 }, true },
		{ "tells nothing, the same link", { false, 0, 1 }, { false, 0, 1 }, false },
		{ "tells nothing, another link", { false, 0, 1 }, { false, 0, 2 }, true },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_open_rsp old = {
			.has_durability = rows[i].old.told,
			.durability.cache_epoch = rows[i].old.epoch,
		}, new = {
			.has_durability = rows[i].new.told,
			.durability.cache_epoch = rows[i].new.epoch,
		};

		UNIT_ROW("%s", rows[i].what);
		CHECK_EQ(ibnbd_unflushed_lost_between(&old, rows[i].old.link, &new,
						      rows[i].new.link), rows[i].lost);
	}
}

UNIT_TEST(when_the_account_is_kept)
{
	unsigned int i;

	for (i = 0; i < 32; i++) {
		bool ignore = i & 1, asked = i & 2, told = i & 4;
		bool is_volatile = i & 8, flushes = i & 16;

		UNIT_ROW("ignore %d asked %d told %d volatile %d flushes %d", ignore, asked, told,
			 is_volatile, flushes);
		CHECK_EQ(ibnbd_unflushed_counts(ignore, asked, told, is_volatile, flushes),
			 ignore ? 0 : told ? is_volatile : asked && flushes);
	}
}
