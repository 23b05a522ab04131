/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * How the slots of a session are divided into homes (docs/design.md, decision 4): each slot belongs
 * to one home, and each CPU looks for a free slot in its own home first. Pure: the caller knows
 * which slots are free.
 */
#ifndef IBTRS_LOGIC_HOMES_H
#define IBTRS_LOGIC_HOMES_H

#include <ibtrs/pure.h>

/* Home h has @per slots, from slot h * per on; the last home may have fewer. */
struct ibtrs_homes {
	u32 nr;
	u32 per;
	u32 step;		/* from a home to the next one to look at; coprime to nr */
	u32 sharers;		/* most CPUs that share one home */
};

/* @slots and @cpus are not 0. */
void ibtrs_homes_plan(struct ibtrs_homes *h, u32 slots, u32 cpus);

static inline u32 ibtrs_homes_of(const struct ibtrs_homes *h, u32 cpu)
{
	return cpu < h->nr ? cpu : cpu % h->nr;
}

/* Where in its home a CPU begins to look: CPUs that share a home begin at different places. */
static inline u32 ibtrs_homes_first(const struct ibtrs_homes *h, u32 cpu)
{
	return cpu < h->nr ? 0 : cpu / h->nr * h->per / h->sharers;
}

/* The home to look at after @home. @nr steps visit each home once and end at the first one. */
static inline u32 ibtrs_homes_next(const struct ibtrs_homes *h, u32 home)
{
	u32 next = home + h->step;

	return next < h->nr ? next : next - h->nr;
}

#endif
