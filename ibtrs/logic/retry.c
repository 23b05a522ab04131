// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The client keeps one record for each path and tells it what happens to the path, as events.
 * Nothing here can fail.
 */
#include "ibtrs/logic/beat.h"
#include "ibtrs/logic/retry.h"

const struct ibtrs_backoff ibtrs_backoff_default = {
	.first_ms	= 100,
	.max_ms		= 1000,
	.jitter_pct	= 20,
};

static u32 retry_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u32 retry_clamp(u64 ms, u32 min, u32 max)
{
	return ms < min ? min : retry_min(ms, max);
}

/* The delay before an attempt, at least 1. @attempt: 0 for the first after a loss. */
static u32 retry_backoff_ms(const struct ibtrs_backoff *b, u32 attempt, bool held, u32 rnd)
{
	u64 max = retry_min(held ? b->max_ms : 8 * (u64)b->max_ms, U32_MAX);
	u64 ms = retry_min(b->first_ms, max);
	u64 spread;

	while (attempt-- && ms && ms < max)
		ms = retry_min(2 * ms, max);

	/*
	 * Jitter in 1/65536 of the delay: a shift instead of a division, which
	 * 32-bit kernels do not have for 64-bit numbers. ms < 2^32 and a
	 * percentage capped at 100 keep every product below 2^64.
	 */
	spread = ms * retry_min(b->jitter_pct, 100) * 1310 >> 17;
	ms = ms - spread + (2 * spread * (rnd >> 16) >> 16);
	return retry_clamp(ms, 1, U32_MAX);
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

/*
 * There are few marks, so a loop that subtracts is cheaper than a division of 64-bit numbers, which
 * 32-bit kernels do not have.
 */
static u32 retry_marks(const struct ibtrs_retry *r, u64 now_ms)
{
	u64 at = r->up_ms + IBTRS_RETRY_CLEAN_MS;
	u32 marks = r->marks;

	if (r->state != IBTRS_RETRY_UP)
		return marks;
	while (marks && at <= now_ms) {
		marks--;
		at += IBTRS_RETRY_CLEAN_MS;
	}
	return marks;
}

static void retry_up(struct ibtrs_retry *r, u64 now_ms)
{
	r->attempt = 0;
	r->urge = IBTRS_RETRY_NO_URGE;
	r->state = IBTRS_RETRY_UP;
	r->up_ms = now_ms;
}

static void retry_lost(struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	r->marks = retry_min(retry_marks(r, now->ms) + retry_marks_for(now->err),
			     IBTRS_RETRY_MAX_MARKS);
	if (r->state == IBTRS_RETRY_UP)
		r->state = IBTRS_RETRY_DOWN;
}

/*
 * Should who waits for the first attempt wait for another one? -ECONNRESET means that an in-kernel
 * server is still tearing down the previous attempt.
 */
static bool retry_first_again(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	return r->attempt < IBTRS_RETRY_FIRST_TRIES && now->ms < r->first_end_ms &&
	       (now->err == -ETIMEDOUT || now->err == -EBUSY || now->err == -EAGAIN ||
		now->err == -ECONNRESET);
}

/*
 * If a server cannot be reached, this says nothing about how the path behaves under load. So only a
 * failed probe of full size adds marks. A server that is still busy with the last incarnation is no
 * failure (law L9).
 */
static void retry_failed(struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	if (now->err != -EBUSY && r->attempt < U32_MAX)
		r->attempt++;
	if (now->err == -EMSGSIZE)
		r->marks = retry_min(r->marks + retry_marks_for(now->err), IBTRS_RETRY_MAX_MARKS);
	if (!retry_first_again(r, now))
		r->state = IBTRS_RETRY_DOWN;
}

/*
 * An answer may be late only because the request was lost and repeated, which says little about the
 * server. So one late answer at most doubles the time that is expected.
 */
static void retry_answered(struct ibtrs_retry *r, u64 now_ms)
{
	u32 ms = retry_clamp(now_ms - r->asked_ms, 1, U32_MAX);

	r->answer_ms = r->answer_ms ? retry_min(ms, 2 * (u64)r->answer_ms) : ms;
}

/*
 * FAILED and LOST heed the errno of @now. Marks compare a path with the other paths of the session.
 * If all paths were lost, no single path is to blame: the marks of an older generation are removed.
 */
void ibtrs_retry_event(struct ibtrs_retry *r, enum ibtrs_retry_event ev,
		       const struct ibtrs_retry_now *now)
{
	if ((ev == IBTRS_RETRY_EV_UP || ev == IBTRS_RETRY_EV_FAILED || ev == IBTRS_RETRY_EV_LOST) &&
	    r->gen != now->gen) {
		r->gen = now->gen;
		r->marks = 0;
	}
	switch (ev) {
	case IBTRS_RETRY_EV_BEGIN:
		if (!r->first_end_ms)
			r->first_end_ms = now->ms + IBTRS_RETRY_FIRST_MS;
		break;
	case IBTRS_RETRY_EV_ASKED:
		r->asked_ms = now->ms;
		break;
	case IBTRS_RETRY_EV_ANSWERED:
		retry_answered(r, now->ms);
		break;
	case IBTRS_RETRY_EV_TRIAL_PASSED:
	case IBTRS_RETRY_EV_TRIAL_FAILED:
		r->trial_failed = ev == IBTRS_RETRY_EV_TRIAL_FAILED;
		break;
	case IBTRS_RETRY_EV_UP:
		retry_up(r, now->ms);
		break;
	case IBTRS_RETRY_EV_FAILED:
		retry_failed(r, now);
		break;
	case IBTRS_RETRY_EV_LOST:
		retry_lost(r, now);
		break;
	case IBTRS_RETRY_EV_CLOSED:
		r->state = IBTRS_RETRY_DOWN;
		break;
	case IBTRS_RETRY_EV_HURRY:
		if (r->urge < IBTRS_RETRY_HURRY)
			r->urge = IBTRS_RETRY_HURRY;
		break;
	case IBTRS_RETRY_EV_BY_HAND:
		r->urge = IBTRS_RETRY_BY_HAND;
		break;
	default:
		break;
	}
}

bool ibtrs_retry_marginal(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	bool trusted = r->state == IBTRS_RETRY_UP && now->ms - r->up_ms >= IBTRS_RETRY_DOUBT_MS;

	return (r->gen == now->gen && retry_marks(r, now->ms) >= IBTRS_RETRY_MARGINAL) ||
	       (r->trial_failed && !trusted);
}

/*
 * If the last attempt failed in its trial and no other path is up, small requests may still come
 * through: the path is used without a trial.
 */
bool ibtrs_retry_skips_trial(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	return r->trial_failed && now->err == -EMSGSIZE && !now->others;
}

static u32 retry_rest_ms(const struct ibtrs_backoff *b, u32 marks, u32 rnd)
{
	struct ibtrs_backoff rest = { .first_ms = IBTRS_RETRY_REST_MS,
				      .max_ms = IBTRS_RETRY_REST_MAX_MS,
				      .jitter_pct = b->jitter_pct };

	return retry_backoff_ms(&rest, marks - IBTRS_RETRY_MARGINAL, true, rnd);
}

/*
 * A path rests only right after a loss or a failed probe of full size, since only these say
 * something new about it. Attempts that fail while the link is down follow each other with the
 * usual delays, so that the path is used soon after the link is back. The last path never rests.
 */
u32 ibtrs_retry_wait(struct ibtrs_retry *r, const struct ibtrs_backoff *b,
		     const struct ibtrs_retry_now *now, u32 rnd)
{
	bool news = !r->attempt || now->err == -EMSGSIZE;
	bool by_hand = r->urge == IBTRS_RETRY_BY_HAND;
	bool hurry = r->urge == IBTRS_RETRY_HURRY;
	u32 ms = IBTRS_RETRY_SOON_MS;

	r->urge = IBTRS_RETRY_NO_URGE;
	r->wait = now->wanted ? IBTRS_RETRY_USUAL : IBTRS_RETRY_IDLE;
	/*
	 * The limit does not apply to the attempts of a first connect, nor while the server is
	 * still tearing down the last incarnation (law L9), nor if an administrator reconnects the
	 * path.
	 */
	if (now->max >= 0 && r->attempt >= (u32)now->max && r->state != IBTRS_RETRY_FIRST &&
	    now->err != -EBUSY && !by_hand)
		return 0;
	if (now->err == -EBUSY) {
		/* as soon as it may have ended that */
	} else if (now->others && news && !by_hand && r->marks >= IBTRS_RETRY_MARGINAL) {
		r->wait = IBTRS_RETRY_REST;
		ms = retry_rest_ms(b, r->marks, rnd);
	} else if (!hurry && !(now->err == -ETIMEDOUT && now->wanted)) {
		/* An attempt that timed out has waited long enough already. */
		ms = retry_backoff_ms(b, r->attempt ? r->attempt - 1 : 0, now->wanted, rnd);
	}
	r->due_ms = now->ms + ms;
	return r->wait == IBTRS_RETRY_IDLE ? retry_min(ms, IBTRS_RETRY_LOOK_MS) : ms;
}

u32 ibtrs_retry_left(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	if (now->ms >= r->due_ms)
		return 0;
	if (r->wait == IBTRS_RETRY_IDLE)
		return now->wanted ? 0 : retry_min(r->due_ms - now->ms, IBTRS_RETRY_LOOK_MS);
	/* a timer of coarse ticks was a little early */
	return r->wait == IBTRS_RETRY_REST ? r->due_ms - now->ms : 0;
}

bool ibtrs_retry_rests(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now)
{
	return r->wait == IBTRS_RETRY_REST && now->ms < r->due_ms && now->others;
}

#define PATIENCE_MS	2000u	/* for one step */
#define PATIENCE_DOUBLE	2u	/* doublings at most: 8 s */
#define PATIENCE_LONGEST_MS	(PATIENCE_MS << PATIENCE_DOUBLE)
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

/*
 * The wait of any step. An in-kernel server allocates and registers all its chunks before its first
 * answer, and that may take long. So each failed attempt doubles the wait, and the attempts of the
 * first connect begin with twice the wait.
 */
static u32 patience_step_ms(const struct ibtrs_retry *r)
{
	u64 doubled = (u64)r->attempt + (r->state == IBTRS_RETRY_FIRST);

	return PATIENCE_MS << retry_min(doubled, PATIENCE_DOUBLE);
}

/*
 * An attempt that began while the link was down must end soon, so that the next attempt can use the
 * link when it is back. Until the neighbour table notices that the link is down, the link looks
 * like a server that has become slow. So some attempts wait long enough for a slow server.
 */
static u32 patience_first_word_ms(const struct ibtrs_retry *r, bool others, bool ours)
{
	bool slow = r->attempt % PATIENCE_SLOW == 0;
	u32 usual = retry_clamp(4 * (u64)r->answer_ms, PATIENCE_MS / 2, PATIENCE_LONGEST_MS);

	if (!r->answer_ms)
		return patience_step_ms(r);
	if (others)
		return slow ? usual : retry_min(usual, PATIENCE_DOUBT_MS);
	if (r->attempt < PATIENCE_DARK || !slow)
		return usual;
	if (ours && r->attempt % PATIENCE_OURS)
		return retry_clamp(usual, PATIENCE_DOUBT_MS, PATIENCE_LONGEST_MS);
	return PATIENCE_LONGEST_MS;
}

#define TRIAL_MS	2000u
#define TRIAL_DOUBT_MS	500u

u32 ibtrs_retry_patience_ms(const struct ibtrs_retry *r, enum ibtrs_retry_phase phase, bool others,
			    bool ours, u64 bytes)
{
	switch (phase) {
	case IBTRS_RETRY_RESOLVE:
		return 2 * IBTRS_RETRY_RESOLVE_MS;
	case IBTRS_RETRY_FIRST_WORD:
		return patience_first_word_ms(r, others, ours);
	case IBTRS_RETRY_CONNECT:
		return IBTRS_RETRY_RESOLVE_MS + patience_step_ms(r);
	case IBTRS_RETRY_TRIAL:
		/* as in an interval of heartbeats: less than 4 MiB in a second is no link */
		return TRIAL_MS + (u32)(bytes >> IBTRS_SQWATCH_FLOOR_SHIFT) * 1000;
	case IBTRS_RETRY_DOUBT:
		return TRIAL_DOUBT_MS;
	default:
		return patience_step_ms(r);
	}
}

/*
 * An attempt that began while the link was down may have lost a message, which the connection
 * manager repeats only after 4 s.
 */
u32 ibtrs_retry_alive_ms(const struct ibtrs_retry *r)
{
	return r->answer_ms ? retry_clamp(r->answer_ms, 500, 1000) : 1000;
}

/*
 * At least the time for a server to make a session: it allocates all chunks before it answers. At
 * most so much that a link that returned is used within 3 s (decision 11).
 */
u32 ibtrs_retry_turn_ms(const struct ibtrs_retry *r)
{
	return retry_clamp(4 * (u64)r->answer_ms, 1500, 2500);
}
