/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Decides what to do with the legs of a mirror. Pure: facts in, decisions out.
 * tests/unit/test_tools_mirror.c has the whole table.
 */
#ifndef TOOLS_MIRROR_RULE_H
#define TOOLS_MIRROR_RULE_H

#include <stdbool.h>
#include <stddef.h>

#define MIRROR_LEGS	3

enum mirror_disk {
	MIRROR_GONE,		/* not mapped */
	MIRROR_AWAY,		/* mapped, and not open: it may come back as it was */
	MIRROR_FENCED,
	MIRROR_OPEN,
	MIRROR_DISKS
};

enum mirror_md {		/* what md says of it */
	MIRROR_NONE,		/* no member of the array */
	MIRROR_FAULTY,
	MIRROR_REBUILDING,
	MIRROR_DOUBTED,		/* in sync by its superblock alone: see mirror_doubted() */
	MIRROR_IN_SYNC,
	MIRROR_MDS
};

/**
 * struct mirror_facts - a leg of an array that runs
 * @another: another leg is in sync, and open
 * @tells: its server tells which disk it is, whether its cache was lost and whether another client
 *	has written, and the driver heeds that
 * @known: it is the disk that the mirror was made of, as far as that can be told
 */
struct mirror_facts {
	enum mirror_disk disk;
	enum mirror_md md;
	bool another, tells, known;
};

enum mirror_act {
	MIRROR_REST,		/* nothing is to be done */
	MIRROR_READD,		/* take it back: the bitmap has what was written meanwhile */
	MIRROR_COPY,		/* copy it whole */
	MIRROR_ASK,		/* only an administrator may have it copied: it is another disk */
	MIRROR_BAD,		/* it is fenced, and no leg can stand for it */
};

enum mirror_act mirror_decide(const struct mirror_facts *f);
/*
 * A leg is taken back now, @calm seconds after the last time, with this @pause since then: seconds
 * until it may be taken back once more. A leg whose disk fails is dropped again at its next write;
 * a leg whose link was lost twice is taken back at once, twice.
 */
unsigned int mirror_pause(unsigned int pause, long long calm);
/* Seconds: a leg that was whole for so long is well, and what befalls it next is another fault. */
#define MIRROR_WELL	5
/* Why a leg is copied whole. */
const char *mirror_why(const struct mirror_facts *f);

/**
 * struct mirror_seen - a leg, for the record
 * @recorded: it had everything, when the record was written
 * @noted: the driver knows that it is in sync: no request of it has failed since
 * @copied: it was seen out of this array, or behind, so md has copied to it what it lacked
 */
struct mirror_seen {
	enum mirror_disk disk;
	enum mirror_md md;
	bool recorded, noted, copied;
};

/*
 * Which legs md takes for in sync with nothing to show for it but its superblock, a bit for each:
 * something that does not ask the record has started the array. Without a leg in sync that is in
 * the record there is nothing better to go by, and none is doubted.
 */
unsigned int mirror_doubted(const struct mirror_seen *legs, size_t nr);

/*
 * Which of the @nr legs of an array that runs have everything, a bit for each. A leg that is not
 * open has lost its place as soon as another one can go on without it.
 */
unsigned int mirror_healthy(const struct mirror_seen *legs, size_t nr);

/*
 * Which legs an array that does not run is to be started from, a bit for each; 0: it is to wait.
 * @late: they had their time to come.
 */
unsigned int mirror_start(const struct mirror_seen *legs, size_t nr, bool late);

#endif
