/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server's decision about a request that arrives for a slot (spec F.2, laws L6, L7): execute,
 * park, or refuse as stale. Pure: the caller holds the slot's lock and owns the two facts below.
 */
#ifndef IBTRS_LOGIC_FENCE_H
#define IBTRS_LOGIC_FENCE_H

#include <ibtrs/pure.h>

enum ibtrs_fence_verdict {
	IBTRS_FENCE_RUN,	/* nobody executes this slot: go */
	/* an earlier execution is still running: wait for it; a request parked before is dropped */
	IBTRS_FENCE_PARK,
	IBTRS_FENCE_STALE,	/* token is not newer: reply -ESTALE, execute nothing */
	/* no client counts so far: execute nothing, remember nothing, close the path */
	IBTRS_FENCE_FAR,
};

/*
 * The next token is at most that much ahead of the last one: a client counts by one, and of the
 * numbers in between each was a submission that was lost. Without a bound one request with the
 * largest number there is would make all others of its slot stale for ever.
 */
#define IBTRS_FENCE_AHEAD	(1ull << 32)
/* The first one that a server sees may have been counted for years. */
#define IBTRS_FENCE_FIRST	(1ull << 56)

struct ibtrs_fence_slot {
	u64 last;		/* newest token seen; stays 0 for peers without FENCE */
	bool running;		/* an op of this slot is executing on some path */
};

/* A request with @token arrives; updates @s. @fence false: no tokens, only the waiting half. */
enum ibtrs_fence_verdict ibtrs_fence_arrive(struct ibtrs_fence_slot *s, bool fence, u64 token);
/*
 * The running op ended. Return true if the parked request (@parked, its @token, @path_up: its path
 * is still CONNECTED) must now execute; the slot then stays running. False: the slot is idle, a
 * parked request is dropped.
 */
bool ibtrs_fence_end(struct ibtrs_fence_slot *s, bool fence, bool parked, u64 token, bool path_up);

#endif
