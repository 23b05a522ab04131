/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the slots of a session are at home (docs/design.md, decision 4): each belongs to one home,
 * and each CPU begins to look for a free one at its own. Pure: the free ones are the caller's.
 */
#ifndef IBTRS_LOGIC_HOMES_H
#define IBTRS_LOGIC_HOMES_H

#include <ibtrs/pure.h>

/* Home h has the slots from h * per on: @per of them, the last home perhaps less. */
struct ibtrs_homes {
	u32 nr;
	u32 per;
	u32 step;		/* from a home to the next one to look at; coprime to nr */
	u32 sharers;		/* CPUs of one home, at most */
};

/* @slots and @cpus are not 0. */
void ibtrs_homes_plan(struct ibtrs_homes *h, u32 slots, u32 cpus);

static inline u32 ibtrs_homes_of(const struct ibtrs_homes *h, u32 cpu)
{
	return cpu < h->nr ? cpu : cpu % h->nr;
}

/* Where in its home a CPU begins to look: CPUs that share one do not begin at the same place. */
static inline u32 ibtrs_homes_first(const struct ibtrs_homes *h, u32 cpu)
{
	return cpu < h->nr ? 0 : cpu / h->nr * h->per / h->sharers;
}

/* After @home; back at the first one after nr steps, and at no other one twice. */
static inline u32 ibtrs_homes_next(const struct ibtrs_homes *h, u32 home)
{
	u32 next = home + h->step;

	return next < h->nr ? next : next - h->nr;
}

#endif
