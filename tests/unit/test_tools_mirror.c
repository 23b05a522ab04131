// SPDX-License-Identifier: GPL-2.0-only
/* tools/conf/mirror_rule.c: the whole table of what is done with a leg, the record, the start. */
#include <ibtrs/pure.h>
#include "unit.h"
#include "tools/conf/mirror_rule.h"

#define REST	MIRROR_REST
#define READD	MIRROR_READD
#define COPY	MIRROR_COPY
#define ASK	MIRROR_ASK
#define BAD	MIRROR_BAD

/*
 * For each disk and what md says of it: without another leg, then with another leg if its server
 * tells nothing and it is unknown, if it is known, if its server tells all, and with both.
 */
static const enum mirror_act table[MIRROR_DISKS][MIRROR_MDS][5] = {
	[MIRROR_GONE] = {
		[MIRROR_NONE]	    = { REST, REST, REST, REST, REST },
		[MIRROR_FAULTY]	    = { REST, REST, REST, REST, REST },
		[MIRROR_REBUILDING] = { REST, REST, REST, REST, REST },
		[MIRROR_DOUBTED]    = { REST, REST, REST, REST, REST },
		[MIRROR_IN_SYNC]    = { REST, REST, REST, REST, REST },
	},
	[MIRROR_AWAY] = {
		[MIRROR_NONE]	    = { REST, REST, REST, REST, REST },
		[MIRROR_FAULTY]	    = { REST, REST, REST, REST, REST },
		[MIRROR_REBUILDING] = { REST, REST, REST, REST, REST },
		[MIRROR_DOUBTED]    = { REST, REST, REST, REST, REST },
		[MIRROR_IN_SYNC]    = { REST, REST, REST, REST, REST },
	},
	[MIRROR_FENCED] = {
		[MIRROR_NONE]	    = { BAD, COPY, COPY, COPY, COPY },
		[MIRROR_FAULTY]	    = { BAD, COPY, COPY, COPY, COPY },
		[MIRROR_REBUILDING] = { BAD, COPY, COPY, COPY, COPY },
		[MIRROR_DOUBTED]    = { BAD, COPY, COPY, COPY, COPY },
		[MIRROR_IN_SYNC]    = { BAD, COPY, COPY, COPY, COPY },
	},
	[MIRROR_OPEN] = {
		[MIRROR_NONE]	    = { REST, ASK,  COPY, ASK,	 COPY },
		[MIRROR_FAULTY]	    = { REST, COPY, COPY, READD, READD },
		[MIRROR_REBUILDING] = { REST, REST, REST, REST,  REST },
		[MIRROR_DOUBTED]    = { REST, COPY, COPY, COPY,	 COPY },
		[MIRROR_IN_SYNC]    = { REST, REST, REST, REST,  REST },
	},
};

UNIT_TEST(each_leg)
{
	unsigned int disk, md, bits;

	for (disk = 0; disk < MIRROR_DISKS; disk++)
		for (md = 0; md < MIRROR_MDS; md++)
			for (bits = 0; bits < 8; bits++) {
				struct mirror_facts f = {
					.disk = disk, .md = md, .another = bits & 4,
					.tells = bits & 2, .known = bits & 1,
				};

				UNIT_ROW("disk %u md %u bits %u", disk, md, bits);
				CHECK_EQ(mirror_decide(&f),
					 table[disk][md][bits & 4 ? 1 + (bits & 3) : 0]);
				CHECK(mirror_why(&f)[0]);
			}
}

/*
 * Of all pairs and triples: never is a leg recorded that md has dropped while another one went on;
 * never is the last one taken out; none comes back before md and the driver agree.
 */
static void record_check(struct mirror_seen *legs, unsigned int nr)
{
	unsigned int healthy = mirror_healthy(legs, nr), before = 0, i, j;

	for (i = 0; i < nr; i++)
		before |= (unsigned int)legs[i].recorded << i;
	if (before)
		CHECK(healthy);
	for (i = 0; i < nr; i++) {
		bool whole = legs[i].disk == MIRROR_OPEN && legs[i].md == MIRROR_IN_SYNC,
		     goes_on = false;

		for (j = 0; j < nr; j++)
			goes_on |= j != i && legs[j].disk == MIRROR_OPEN &&
				   legs[j].md == MIRROR_IN_SYNC &&
				   (legs[j].recorded || legs[j].noted);
		if (!(healthy & 1u << i) && legs[i].recorded)
			CHECK(goes_on && !whole);
		if (healthy & 1u << i && !legs[i].recorded)
			CHECK(whole && legs[i].noted);
		if (healthy & 1u << i && !whole)
			CHECK(!goes_on);
	}
}

UNIT_TEST(the_record)
{
	const unsigned int one = MIRROR_DISKS * MIRROR_MDS * 4;
	struct mirror_seen legs[3];
	unsigned int nr, n, i, all;

	for (nr = 2; nr <= 3; nr++) {
		for (all = 1, i = 0; i < nr; i++)
			all *= one;
		for (n = 0; n < all; n++) {
			unsigned int rest = n;

			for (i = 0; i < nr; i++, rest /= one)
				legs[i] = (struct mirror_seen){
					.disk = rest % MIRROR_DISKS,
					.md = rest / MIRROR_DISKS % MIRROR_MDS,
					.recorded = rest % one / (MIRROR_DISKS * MIRROR_MDS) & 1,
					.noted = rest % one / (MIRROR_DISKS * MIRROR_MDS) & 2,
				};
			UNIT_ROW("%u legs, %u", nr, n);
			record_check(legs, nr);
		}
	}
}

/* What md takes for in sync: + is recorded, n noted, c copied, ? none of them; - md does not. */
UNIT_TEST(the_doubt)
{
	static const struct {
		const char *legs;
		unsigned int doubted;
	} rows[] = {
		{ "+?", 2 }, { "?+", 1 }, { "+n", 0 }, { "+c", 0 }, { "++", 0 }, { "??", 0 },
		{ "-?", 0 }, { "+-", 0 }, { "n?", 0 }, { "+??", 6 }, { "+c?", 4 }, { "?-+", 1 },
	};
	struct mirror_seen legs[3];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (j = 0; rows[i].legs[j]; j++)
			legs[j] = (struct mirror_seen){
				.md = rows[i].legs[j] == '-' ? MIRROR_REBUILDING : MIRROR_IN_SYNC,
				.recorded = strchr("+-", rows[i].legs[j]) != NULL,
				.noted = rows[i].legs[j] == 'n',
				.copied = rows[i].legs[j] == 'c',
			};
		UNIT_ROW("%s", rows[i].legs);
		CHECK_EQ(mirror_doubted(legs, j), rows[i].doubted);
	}
}

/* What is there of the record: O is recorded and there, R recorded, o there and not recorded. */
UNIT_TEST(the_start)
{
	static const struct {
		const char *legs;
		unsigned int now, late;
	} rows[] = {
		{ "OO", 3, 3 }, { "OR", 0, 1 }, { "RO", 0, 2 }, { "RR", 0, 0 },
		{ "Oo", 1, 1 }, { "O.", 1, 1 }, { "oR", 0, 0 }, { "R.", 0, 0 },
		{ "oo", 0, 0 }, { "..", 0, 0 }, { "OOO", 7, 7 }, { "OOR", 0, 3 },
		{ "OOo", 3, 3 }, { "oOR", 0, 2 }, { "ooR", 0, 0 },
	};
	struct mirror_seen legs[3];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (j = 0; rows[i].legs[j]; j++)
			legs[j] = (struct mirror_seen){
				.disk = strchr("Oo", rows[i].legs[j]) ? MIRROR_OPEN : MIRROR_AWAY,
				.recorded = strchr("OR", rows[i].legs[j]) != NULL,
			};
		UNIT_ROW("%s", rows[i].legs);
		CHECK_EQ(mirror_start(legs, j, false), rows[i].now);
		CHECK_EQ(mirror_start(legs, j, true), rows[i].late);
	}
}

/* A disk that fails is dropped as soon as it is taken back; a link is not lost each minute. */
UNIT_TEST(a_leg_that_fails_again)
{
	static const unsigned int pauses[] = { 10, 20, 40, 80, 160, 320, 320 };
	unsigned int pause = 0, i;

	for (i = 0; i < ARRAY_SIZE(pauses); i++) {
		UNIT_ROW("attempt %u", i);
		pause = mirror_pause(pause, pause + 3);
		CHECK_EQ(pause, pauses[i]);
	}
	CHECK_EQ(mirror_pause(pause, pause + 59), 320);
	CHECK_EQ(mirror_pause(pause, pause + 60), 0);
	CHECK_EQ(mirror_pause(0, 59), 10);
	CHECK_EQ(mirror_pause(0, 60), 0);
}
