// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a path is tried again, and how much it is trusted (decision 11; retry.h has the rules).
 *
 * Called by ibtrs/client/path_run.c, whose path work owns the record. Nothing here can fail, and
 * the time is always an argument.
 */
#include "ibtrs/logic/retry.h"

/* How many marks a path gets for a loss, or for a failed attempt, with this errno. */
static u32 retry_marks_for(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		/* no answer: missed heartbeats, a stuck send queue, a message repeated in vain */
	case -EMSGSIZE:		/* the probe of full size failed */
		return 2;
	case -ECONNABORTED:	/* this host ended it */
		return 0;
	default:
		return 1;
	}
}

static void retry_add(struct ibtrs_retry *r, u32 marks)
{
	r->marks = r->marks + marks < IBTRS_RETRY_MAX_MARKS ? r->marks + marks :
							      IBTRS_RETRY_MAX_MARKS;
}

/*
 * There are few marks, so a loop that subtracts is cheaper than a division of 64-bit numbers, which
 * 32-bit kernels do not have.
 */
static u32 retry_marks(const struct ibtrs_retry *r, u64 now_ms)
{
	u64 at = r->up_ms + IBTRS_RETRY_CLEAN_MS;
	u32 marks = r->marks;

	if (!r->up)
		return marks;
	while (marks && at <= now_ms) {
		marks--;
		at += IBTRS_RETRY_CLEAN_MS;
	}
	return marks;
}

/**
 * ibtrs_retry_up() - an attempt succeeded
 * @r: of the path
 * @now_ms: milliseconds
 */
void ibtrs_retry_up(struct ibtrs_retry *r, u64 now_ms)
{
	r->attempt = 0;
	r->up = true;
	r->up_ms = now_ms;
}

/**
 * ibtrs_retry_lost() - a path that was up is lost
 * @r: of the path
 * @err: why, a negative errno
 * @now_ms: milliseconds
 */
void ibtrs_retry_lost(struct ibtrs_retry *r, int err, u64 now_ms)
{
	r->marks = retry_marks(r, now_ms);
	r->up = false;
	retry_add(r, retry_marks_for(err));
}

/**
 * ibtrs_retry_failed() - an attempt failed
 * @r: of the path
 * @err: why
 *
 * If a server cannot be reached, this says nothing about how the path behaves under load. So only a
 * failed probe of full size adds marks.
 *
 * Return: false if the server was still busy with the last incarnation (law L9), which is no
 * failure.
 */
bool ibtrs_retry_failed(struct ibtrs_retry *r, int err)
{
	if (err == -EBUSY)
		return false;
	if (r->attempt < U32_MAX)
		r->attempt++;
	if (err == -EMSGSIZE)
		retry_add(r, retry_marks_for(err));
	return true;
}

/**
 * ibtrs_retry_forgive() - the last path of the session is lost
 * @r: of any of its paths
 *
 * If all paths are lost, no single path is to blame. Marks only compare a path with the others, so
 * the caller removes them from each path.
 */
void ibtrs_retry_forgive(struct ibtrs_retry *r)
{
	r->marks = 0;
}

bool ibtrs_retry_marginal(const struct ibtrs_retry *r, u64 now_ms)
{
	return retry_marks(r, now_ms) >= IBTRS_RETRY_MARGINAL;
}

/**
 * ibtrs_retry_first_again() - should the first connect wait for another attempt?
 * @r: of the path, which has just failed
 * @err: why
 *
 * -ECONNRESET means that an in-kernel server is still tearing down the previous attempt.
 */
bool ibtrs_retry_first_again(const struct ibtrs_retry *r, int err)
{
	return r->attempt < IBTRS_RETRY_FIRST_TRIES &&
	       (err == -ETIMEDOUT || err == -EBUSY || err == -EAGAIN || err == -ECONNRESET);
}

static u32 retry_rest_ms(u32 marks)
{
	u32 ms = IBTRS_RETRY_REST_MS;

	for (; marks > IBTRS_RETRY_MARGINAL && ms < IBTRS_RETRY_REST_MAX_MS; marks--)
		ms *= 2;
	return ms < IBTRS_RETRY_REST_MAX_MS ? ms : IBTRS_RETRY_REST_MAX_MS;
}

/**
 * ibtrs_retry_next() - when is the next attempt?
 * @r: of the path, which is not up
 * @b: delays of an attempt that follows a failed one
 * @ask: the circumstances
 * @rnd: 32 random bits
 *
 * A path rests only right after a loss or a failed probe of full size, since only these say
 * something new about it. Attempts that fail while the link is down follow each other with the
 * usual delays, so that the path is used soon after the link is back. The last path never rests.
 */
struct ibtrs_retry_answer ibtrs_retry_next(const struct ibtrs_retry *r,
					   const struct ibtrs_backoff *b,
					   const struct ibtrs_retry_ask *ask, u32 rnd)
{
	struct ibtrs_retry_answer answer = { .wait_ms = IBTRS_RETRY_SOON_MS };
	bool news = !r->attempt || ask->err == -EMSGSIZE;
	struct ibtrs_backoff rest = *b;

	/*
	 * The limit does not apply to the attempts of a first connect, nor while the server is
	 * still tearing down the last incarnation (law L9), nor if an administrator reconnects the
	 * path.
	 */
	if (ask->max >= 0 && r->attempt >= (u32)ask->max && ask->first_done && ask->err != -EBUSY &&
	    !ask->by_hand) {
		answer.give_up = true;
		return answer;
	}
	if (ask->err == -EBUSY)
		return answer;
	if (ask->others && news && !ask->by_hand && r->marks >= IBTRS_RETRY_MARGINAL) {
		rest.first_ms = retry_rest_ms(r->marks);
		rest.held_max_ms = rest.first_ms;
		answer.wait_ms = ibtrs_backoff_ms(&rest, 0, true, rnd);
		answer.rest = true;
		return answer;
	}
	/* An attempt that timed out has waited long enough already. */
	if (ask->hurry || (ask->err == -ETIMEDOUT && ask->wanted))
		return answer;
	answer.wait_ms = ibtrs_backoff_ms(b, r->attempt ? r->attempt - 1 : 0, ask->wanted, rnd);
	return answer;
}
