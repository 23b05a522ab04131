/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The server's decision about a request that arrives for a slot (protocol 8.2, laws L6, L7):
 * execute, park, or refuse as stale or too far ahead. Pure: the caller holds the slot's lock and
 * keeps struct ibtrs_fence_slot.
 */
#ifndef IBTRS_LOGIC_FENCE_H
#define IBTRS_LOGIC_FENCE_H

#include <ibtrs/pure.h>

enum ibtrs_fence_verdict {
	IBTRS_FENCE_RUN,	/* no op of this slot is executing: execute the request */
	/* an earlier op still executes: the request waits, one parked before it is not executed */
	IBTRS_FENCE_PARK,
	IBTRS_FENCE_STALE,	/* the token is not newer: execute nothing, answer how far behind */
	/* no client can have counted this far: execute nothing, keep @last, close the path */
	IBTRS_FENCE_FAR,
};

/*
 * The next token may be at most this much ahead of the last one. The last one is 0 when the server
 * has just made the session. A client counts by one, so each number that the server did not see was
 * a submission that was lost. Without a bound, one request with the largest possible token would
 * make all other requests of its slot stale for ever. With this bound it takes 2^40 requests for
 * one slot, one after the other, to do that in another client's name.
 */
#define IBTRS_FENCE_AHEAD	(1ull << 24)
/* A stale request is answered with -IBTRS_FENCE_BEHIND - bits(last - token), which is no errno. */
#define IBTRS_FENCE_BEHIND	384

struct ibtrs_fence_slot {
	u64 last;		/* newest token seen; stays 0 for peers without FENCE */
	bool running;		/* an op of this slot is executing on some path */
};

enum ibtrs_fence_verdict ibtrs_fence_arrive(struct ibtrs_fence_slot *s, bool fence, u64 token);
bool ibtrs_fence_end(struct ibtrs_fence_slot *s, bool fence, bool parked, u64 token, bool path_up);
int ibtrs_fence_behind(const struct ibtrs_fence_slot *s, bool fence, u64 token);
u64 ibtrs_fence_catch_up(u64 token, int err);

/**
 * ibtrs_fence_next() - the client: the number of a slot's next submission
 * @token: the slot's counter
 * @life: of the session, when the slot was used last
 * @path_life: of the session, as the path that is used now was told
 * @session_life: what the latest path was told
 *
 * If the server has made a new session, everything that was sent to the old one has ended. The new
 * session counts from 0, and would refuse a number that continues the old count as too high. A path
 * of the old session is dead even if that was not noticed yet, so the life of a path counts only if
 * it is the session's latest.
 */
static inline void ibtrs_fence_next(u64 *token, u32 *life, u32 path_life, u32 session_life)
{
	if (*life != path_life && path_life == session_life) {
		*life = path_life;
		*token = 0;
	}
	(*token)++;
}

/* Is @err the answer to a request that was not executed because of its token? */
static inline bool ibtrs_fence_is_behind(int err)
{
	return err <= -IBTRS_FENCE_BEHIND && err >= -IBTRS_FENCE_BEHIND - 64;
}

/*
 * The path fails after each so many such answers to one request, and then hold= counts. Far more
 * than it takes to catch up.
 */
#define IBTRS_FENCE_BEHIND_MAX	64
#define IBTRS_FENCE_BEHIND_WHY	"the server treats each request of a slot as stale"

/* What becomes of a request whose path broke before the answer; the server may execute it. */
enum ibtrs_fate {
	IBTRS_FATE_MOVE,	/* post it on another path; park it if there is none */
	IBTRS_FATE_PARK,	/* keep it until its owner replays or aborts it */
	IBTRS_FATE_END,		/* it fails with -ECONNRESET: who waits for it asks again */
};

/* @service: it is in a slot of the transport's own. @stay: its owner will decide. */
static inline enum ibtrs_fate ibtrs_fate(bool service, bool stay)
{
	return service ? IBTRS_FATE_END : stay ? IBTRS_FATE_PARK : IBTRS_FATE_MOVE;
}

/* Is it at large then: may the server change the disk by it later? */
static inline bool ibtrs_fate_loose(bool write, bool message)
{
	return write && !message;
}

#endif
