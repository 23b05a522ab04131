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
	IBTRS_FENCE_STALE,	/* token is not newer: say how far behind, execute nothing */
	/* no client counts so far: execute nothing, remember nothing, close the path */
	IBTRS_FENCE_FAR,
};

/*
 * The next token is at most that much ahead of the last one, which is 0 in a session's new life: a
 * client counts by one, and of the numbers in between each was a submission that was lost. Without
 * a bound one request with the largest number there is would make all others of its slot stale for
 * ever. With this one whoever counts in another's name needs 2^40 requests of one slot for that,
 * one after the other.
 */
#define IBTRS_FENCE_AHEAD	(1ull << 24)
/* -that less bits(last - token) is what a stale request is answered: no errno has these numbers. */
#define IBTRS_FENCE_BEHIND	384

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
/* The answer to a request that is not executed for its token. */
int ibtrs_fence_behind(const struct ibtrs_fence_slot *s, bool fence, u64 token);
/* The client: its slot's counter after an answer, which may be that one. */
u64 ibtrs_fence_catch_up(u64 token, int err);

/* Is @err the answer to a request that was not executed for its token? */
static inline bool ibtrs_fence_is_behind(int err)
{
	return err <= -IBTRS_FENCE_BEHIND && err >= -IBTRS_FENCE_BEHIND - 64;
}

#endif
