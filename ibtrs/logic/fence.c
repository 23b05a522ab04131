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
		if (token - s->last > IBTRS_FENCE_AHEAD)
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

/**
 * ibtrs_fence_behind() - what to answer a request that is not executed
 * @s: the slot, under the caller's lock
 * @fence: it carries a token
 * @token: counts only with @fence
 *
 * A client that counts by one is never behind, unless somebody else counts in its name. It has to
 * learn how far, else that would keep its slot from it (ibtrs_fence_catch_up()).
 *
 * Return: a negative number, of the errnos or below them.
 */
int ibtrs_fence_behind(const struct ibtrs_fence_slot *s, bool fence, u64 token)
{
	if (!fence)
		return -ESTALE;
	return -IBTRS_FENCE_BEHIND - (int)ibtrs_bits(token < s->last ? s->last - token : 0);
}

/**
 * ibtrs_fence_catch_up() - the counter of a slot, after an answer
 * @token: of the request that was answered, the latest of its slot
 * @err: the answer
 *
 * A number that was too small by n, with 2^(b-1) < n <= 2^b, is raised by 2^(b-1) and by as much as
 * a server takes. So the next one is never too far ahead, and what it is still behind by halves
 * each time: the number of answers that it takes is not that of requests which somebody else has
 * sent. The counter only grows: what was overtaken stays so.
 *
 * Return: the counter; the next submission has one more.
 */
u64 ibtrs_fence_catch_up(u64 token, int err)
{
	unsigned int b = -err - IBTRS_FENCE_BEHIND;
	u64 by = IBTRS_FENCE_AHEAD - 1;

	if (!ibtrs_fence_is_behind(err))
		return token;
	if (b && check_add_overflow(by, (u64)1 << (b - 1), &by))
		return token;
	return check_add_overflow(token, by, &by) ? token : by;
}
