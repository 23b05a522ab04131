// SPDX-License-Identifier: GPL-2.0-only
#include "ibtrs/logic/homes.h"

/*
 * With less than so many slots a home is shared. A CPU that needs more than its home has looks at
 * one home after the other, so there are not many.
 */
#define HOMES_SLOTS_MIN	8

static u32 homes_gcd(u32 a, u32 b)
{
	u32 rest;

	while (b) {
		rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/*
 * About the golden ratio: CPUs that are busy are often neighbours, so a borrower looks far away
 * first, and each CPU somewhere else.
 */
static u32 homes_step(u32 nr)
{
	u32 step = nr - nr / 8 * 3 - nr % 8 * 3 / 8;

	while (step > 1 && homes_gcd(nr, step) != 1)
		step--;
	return nr == 1 ? 0 : step;
}

/**
 * ibtrs_homes_plan() - divide the slots among the CPUs
 * @h: set
 * @slots: how many, not 0
 * @cpus: how many may ask for one, not 0
 *
 * One home for each CPU if there are enough slots, else as many as have HOMES_SLOTS_MIN slots each.
 * None is empty.
 */
void ibtrs_homes_plan(struct ibtrs_homes *h, u32 slots, u32 cpus)
{
	u32 nr = slots / HOMES_SLOTS_MIN;

	if (nr > cpus)
		nr = cpus;
	if (!nr)
		nr = 1;
	h->per = (slots + nr - 1) / nr;
	h->nr = (slots + h->per - 1) / h->per;
	h->step = homes_step(h->nr);
	h->sharers = (cpus + h->nr - 1) / h->nr;
}
