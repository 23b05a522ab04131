// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/fence.h"

/*
 * A request has arrived for a slot.
 * @fence: the request carries a token; a peer without FENCE sends none, and requests only wait for
 *	each other
 *
 * Return: what to do with the request. @s then holds the token, unless the token is stale or too
 * far ahead. For %IBTRS_FENCE_RUN the slot is marked as running.
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

/*
 * The op that ran on a slot is done.
 * @parked: a request waits for this moment; @fence and @token are those of it
 * @path_up: the parked request's path can still carry its reply
 *
 * A parked request whose token is no longer the newest was overtaken by a later request. That later
 * request took the parking place, or was refused there because its own path went away. The
 * overtaken request must not run (docs/design.md, law L7).
 *
 * Return: true if the parked request runs now, and the slot stays running. False: the slot is idle,
 * and a parked request is dropped.
 */
bool ibtrs_fence_end(struct ibtrs_fence_slot *s, bool fence, bool parked, u64 token, bool path_up)
{
	s->running = parked && path_up && (!fence || token == s->last);
	return s->running;
}

/*
 * What to answer a request that is not executed because of its token.
 *
 * A client that counts by one is never behind, unless another host sends requests in its name.
 * Then the client must learn how far it is behind, or it could not use the slot any more
 * (ibtrs_fence_catch_up()).
 *
 * Return: -ESTALE without @fence, else a negative number that is no errno
 * (ibtrs_fence_is_behind()).
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
 * @err: the answer, which may be that of ibtrs_fence_behind()
 *
 * If @token was behind by n, the answer gives b with 2^(b-1) < n <= 2^b. The counter is raised by
 * 2^(b-1) plus the largest step that a server accepts. So the next token is never too far ahead,
 * and each answer at least halves the distance that is left. The client therefore catches up after
 * a few answers, however many requests another host has sent. The counter only grows, so a request
 * that was overtaken stays overtaken.
 *
 * Return: the counter; the token of the next submission is larger by one.
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
