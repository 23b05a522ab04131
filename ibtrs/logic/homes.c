// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/homes.h"

/*
 * CPUs share a home if a home of their own would have fewer slots than this. A CPU whose home is
 * empty searches the other homes one after the other, so there must not be too many homes.
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
 * About @nr divided by the golden ratio (5/8). Busy CPUs are often neighbours, so a CPU that
 * borrows a slot looks far away first, and each CPU looks somewhere else.
 */
static u32 homes_step(u32 nr)
{
	u32 step = nr - nr / 8 * 3 - nr % 8 * 3 / 8;

	while (step > 1 && homes_gcd(nr, step) != 1)
		step--;
	return nr == 1 ? 0 : step;
}

/* There is at most one home for each CPU, and no home is empty. */
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
