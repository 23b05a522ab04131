// SPDX-License-Identifier: GPL-2.0-only
#include "tools/conf/mirror_rule.h"

/*
 * A leg that md has dropped, and that has been open for md ever since, is taken back by the bitmap
 * if the driver would have fenced it otherwise. Any other leg may lack what the bitmap does not
 * know of. One that is no member was removed, or was not there at the boot: no watch saw it. It
 * is written over only if it is the mirror's own disk.
 */
enum mirror_act mirror_decide(const struct mirror_facts *f)
{
	if (f->disk == MIRROR_GONE || f->disk == MIRROR_AWAY)
		return MIRROR_REST;
	if (f->disk == MIRROR_FENCED)
		return f->another ? MIRROR_COPY : MIRROR_BAD;
	if (f->md == MIRROR_IN_SYNC || f->md == MIRROR_REBUILDING || !f->another)
		return MIRROR_REST;
	if (f->md == MIRROR_DOUBTED)
		return MIRROR_COPY;
	if (f->md == MIRROR_FAULTY)
		return f->tells ? MIRROR_READD : MIRROR_COPY;
	return f->known ? MIRROR_COPY : MIRROR_ASK;
}

unsigned int mirror_pause(unsigned int pause, long long calm)
{
	const unsigned int first = 10, most = 320, quiet = 60;

	if (calm >= quiet + pause)
		return 0;
	if (!pause)
		return first;
	return pause * 2 > most ? most : pause * 2;
}

const char *mirror_why(const struct mirror_facts *f)
{
	if (f->disk == MIRROR_FENCED)
		return "it is fenced";
	if (f->md == MIRROR_NONE)
		return "it is not in the array";
	if (f->md == MIRROR_DOUBTED)
		return "it is not in the record, and md took it for in sync";
	return f->tells ? "md does not take it back by its bitmap" :
			  "its server does not tell what was lost, or it is mapped with unflushed=ignore";
}

unsigned int mirror_doubted(const struct mirror_seen *legs, size_t nr)
{
	unsigned int doubted = 0;
	bool good = false;

	for (size_t i = 0; i < nr; i++) {
		good |= legs[i].md == MIRROR_IN_SYNC && legs[i].recorded;
		if (legs[i].md == MIRROR_IN_SYNC && !legs[i].recorded && !legs[i].noted &&
		    !legs[i].copied)
			doubted |= 1u << i;
	}
	return good ? doubted : 0;
}

/* A leg that was out of the record comes back at the next look, when the driver was told. */
static bool rule_whole(const struct mirror_seen *leg)
{
	return leg->disk == MIRROR_OPEN && leg->md == MIRROR_IN_SYNC &&
	       (leg->recorded || leg->noted);
}

unsigned int mirror_healthy(const struct mirror_seen *legs, size_t nr)
{
	unsigned int healthy = 0;

	for (size_t i = 0; i < nr; i++) {
		bool another = false;

		for (size_t j = 0; j < nr; j++)
			another |= j != i && rule_whole(&legs[j]);
		if (rule_whole(&legs[i]) || (legs[i].recorded && !another))
			healthy |= 1u << i;
	}
	return healthy;
}

unsigned int mirror_start(const struct mirror_seen *legs, size_t nr, bool late)
{
	unsigned int healthy = 0, there = 0;

	for (size_t i = 0; i < nr; i++) {
		healthy |= (unsigned int)legs[i].recorded << i;
		there |= (unsigned int)(legs[i].recorded && legs[i].disk == MIRROR_OPEN) << i;
	}
	return late || there == healthy ? there : 0;
}
