// SPDX-License-Identifier: GPL-2.0-only
#include "ibtrs/logic/fence.h"

/**
 * ibtrs_fence_arrive() - a request has arrived for a slot
 * @s: the slot, under the caller's lock
 * @fence: the request carries a token
 * @token: counts only with @fence
 *
 * Return: what to do with it; @s then holds the token, unless it is stale or too far ahead, and,
 * for %IBTRS_FENCE_RUN, runs.
 */
enum ibtrs_fence_verdict ibtrs_fence_arrive(struct ibtrs_fence_slot *s, bool fence, u64 token)
{
	if (fence) {
		if (token <= s->last)
			return IBTRS_FENCE_STALE;
		if (token - s->last > (s->last ? IBTRS_FENCE_AHEAD : IBTRS_FENCE_FIRST))
			return IBTRS_FENCE_FAR;
		s->last = token;
	}
	if (s->running)
		return IBTRS_FENCE_PARK;
	s->running = true;
	return IBTRS_FENCE_RUN;
}

/**
 * ibtrs_fence_end() - the op that ran on a slot is done
 * @s: the slot, under the caller's lock
 * @fence: the parked request carries a token
 * @parked: a request waits for this moment
 * @token: the parked request's
 * @path_up: the parked request's path can still carry its reply
 *
 * A parked request whose token is no longer the newest was overtaken: a later one replaced it in
 * the parking place, or was refused there because its own path went away. It must not run
 * (docs/design.md, law L7).
 *
 * Return: true if the parked request runs now.
 */
bool ibtrs_fence_end(struct ibtrs_fence_slot *s, bool fence, bool parked, u64 token, bool path_up)
{
	s->running = parked && path_up && (!fence || token == s->last);
	return s->running;
}
