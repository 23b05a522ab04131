// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * When a path is tried again, and how much it is trusted (decision 11; retry.h has the rules).
 *
 * Called by ibtrs/client/path_run.c, whose path work owns the record. Nothing here can fail, and
 * the time is always an argument.
 */
#include <ibtrs/pure.h>
#include "ibtrs/logic/retry.h"

const struct ibtrs_backoff ibtrs_backoff_default = {
	.first_ms	= 100,
	.held_max_ms	= 1000,
	.idle_max_ms	= 8000,
	.jitter_pct	= 20,
};

/**
 * ibtrs_backoff_ms() - how long to wait before an attempt
 * @b: the numbers
 * @attempt: 0 for the first attempt after the loss
 * @held: requests wait for the path
 * @rnd: 32 random bits
 *
 * Return: milliseconds, at least 1.
 */
u32 ibtrs_backoff_ms(const struct ibtrs_backoff *b, u32 attempt, bool held, u32 rnd)
{
	u64 max = held ? b->held_max_ms : b->idle_max_ms;
	u64 ms = b->first_ms < max ? b->first_ms : max;
	u64 spread;

	while (attempt-- && ms && ms < max) {
		ms *= 2;
		if (ms > max)
			ms = max;
	}

	/*
	 * Jitter in 1/65536 of the delay: a shift instead of a division, which
	 * 32-bit kernels do not have for 64-bit numbers. ms < 2^32 and a
	 * percentage capped at 100 keep every product below 2^64.
	 */
	spread = ms * (b->jitter_pct < 100 ? b->jitter_pct : 100) * 1310 >> 17;
	ms = ms - spread + (2 * spread * (rnd >> 16) >> 16);
	if (ms > U32_MAX)
		ms = U32_MAX;
	return ms ? (u32)ms : 1;
}

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

/* How long one step of connecting may wait for the server (decision 11). */
#define PATIENCE_MS	2000u	/* for one step */
#define PATIENCE_DOUBLE	2u	/* doublings at most: 8 s */
/* With the steps that follow, less than the 3 s after which a path must be in use again. */
#define PATIENCE_DOUBT_MS	2500u
/* For so many attempts the neighbour table may not have noticed that the link is down. */
#define PATIENCE_DARK	8u	/* attempts */
/* One attempt in so many waits long enough for a server that has become slow. */
#define PATIENCE_SLOW	4u
/*
 * A server of this project does nothing slow before its first answer: it gets the longest wait only
 * in one attempt of so many.
 */
#define PATIENCE_OURS	16u

#define PATIENCE_LONGEST_MS	(PATIENCE_MS << PATIENCE_DOUBLE)

static u32 patience_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 patience_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

u32 ibtrs_patience_ms(const struct ibtrs_patience *p)
{
	return PATIENCE_MS << patience_min(p->attempt + !p->first_done, PATIENCE_DOUBLE);
}

/*
 * An attempt that began while the link was down must end soon, so that the next attempt can use the
 * link when it is back. Until the neighbour table notices that the link is down, the link looks
 * like a server that has become slow. So some attempts wait long enough for a slow server.
 */
u32 ibtrs_patience_first_ms(const struct ibtrs_patience *p)
{
	bool slow = p->attempt % PATIENCE_SLOW == 0;
	u32 usual;

	if (!p->connect_ms)
		return ibtrs_patience_ms(p);
	usual = patience_min(p->connect_ms, PATIENCE_LONGEST_MS / 4) * 4;
	usual = patience_max(usual, PATIENCE_MS / 2);
	if (p->others)
		return slow ? usual : patience_min(usual, PATIENCE_DOUBT_MS);
	if (p->attempt < PATIENCE_DARK || !slow)
		return usual;
	if (p->ours && p->attempt % PATIENCE_OURS)
		return patience_max(usual, PATIENCE_DOUBT_MS);
	return PATIENCE_LONGEST_MS;
}
