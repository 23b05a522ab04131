// SPDX-License-Identifier: GPL-2.0-only
/*
 * A path as an object: its events, its reason, and the functions that wait for its state.
 * path_run.c acts upon the events.
 */
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"
#include "ibtrs/logic/retry.h"

#define PATH_RECONNECT_WAIT	(10 * HZ)

static bool path_connected(const struct ibtrs_clt_path *path)
{
	enum ibtrs_path_state s = ibtrs_clt_path_state(path);

	return s == IBTRS_PATH_CONNECTING || s == IBTRS_PATH_UP;
}

void ibtrs_clt_path_post(struct ibtrs_clt_path *path, enum ibtrs_path_event ev, int err,
			 const char *why)
{
	scoped_guard(spinlock_irqsave, &path->reason_lock) {
		/* The first reason explains the others. */
		if (err && !test_bit(ev, &path->events) &&
		    (ev == IBTRS_PATH_EV_CLOSE || path_connected(path))) {
			path->err = err;
			strscpy(path->reason, why ?: "", sizeof(path->reason));
		}
		set_bit(ev, &path->events);
	}
	queue_work(path->clt->wq, &path->work);
}

int ibtrs_clt_path_reason(struct ibtrs_clt_path *path, char *buf, size_t size)
{
	guard(spinlock_irqsave)(&path->reason_lock);
	strscpy(buf, path->reason, size);
	return path->err;
}

void ibtrs_clt_path_why(struct ibtrs_clt_path *path, char *buf, size_t size)
{
	char reason[IBTRS_CLT_REASON_LEN];

	ibtrs_clt_path_reason(path, reason, sizeof(reason));
	*buf = 0;
	if (reason[0])
		scnprintf(buf, size, "%s: %s", path->name, reason);
}

static int path_error(struct ibtrs_clt_path *path)
{
	return READ_ONCE(path->err) ?: -ECONNABORTED;
}

/* Words for a refusal that consists of an errno only (protocol 2.3). */
static const char *path_refusal_word(int err)
{
	switch (err) {
	case -ENXIO:
		return "it does not know the session";
	case -EEXIST:
		return "the session has a path between these addresses already";
	case -EBUSY:
		return "it has not ended this host's earlier connection";
	case -EACCES:
	case -EPERM:
		return "it does not let this host in";
	case -EKEYREJECTED:
		return "it does not take the proof";
	case -ENOSPC:
		return "it has as many sessions as it may have";
	case -ENOMEM:
		return "it has no memory for it";
	default:
		return "rejected";
	}
}

void ibtrs_clt_path_refused(struct ibtrs_clt_path *path, int err, const char *text)
{
	char why[IBTRS_CLT_REASON_LEN];

	snprintf(why, sizeof(why), "the server %s: %s", *text ? "says" : "refuses",
		 *text ? text : path_refusal_word(err));
	ibtrs_clt_path_fail(path, err, why);
}

struct ibtrs_retry_now ibtrs_clt_path_now(struct ibtrs_clt_path *path)
{
	return (struct ibtrs_retry_now){
		.ms	= ktime_to_ms(ktime_get()),
		.err	= path_error(path),
		.gen	= ibtrs_clt_gen(path->clt),
		.max	= READ_ONCE(path->clt->opts.max_reconnect_attempts),
		.others	= ibtrs_clt_is_up(path->clt),
	};
}

void ibtrs_clt_path_note(struct ibtrs_clt_path *path, enum ibtrs_retry_event ev)
{
	struct ibtrs_retry_now now = ibtrs_clt_path_now(path);

	scoped_guard(spinlock_irqsave, &path->reason_lock)
		ibtrs_retry_event(&path->retry, ev, &now);
}

bool ibtrs_clt_path_ask(struct ibtrs_clt_path *path,
			bool (*ask)(const struct ibtrs_retry *, const struct ibtrs_retry_now *))
{
	struct ibtrs_retry_now now = ibtrs_clt_path_now(path);

	guard(spinlock_irqsave)(&path->reason_lock);
	return ask(&path->retry, &now);
}

int ibtrs_clt_path_wait_first(struct ibtrs_clt_path *path)
{
	/* A drain that hangs (law L10) keeps the attempt from ending. */
	unsigned long limit = msecs_to_jiffies(IBTRS_RETRY_FIRST_MS) + PATH_RECONNECT_WAIT;

	if (wait_event_killable_timeout(path->wait,
					READ_ONCE(path->retry.state) != IBTRS_RETRY_FIRST,
					limit) < 0)
		return -EINTR;
	return ibtrs_clt_path_state(path) == IBTRS_PATH_UP ? 0 : path_error(path);
}

int ibtrs_clt_path_close(struct ibtrs_clt_path *path, bool killable)
{
	u32 nr = READ_ONCE(path->nr_closed);

	ibtrs_clt_path_post(path, IBTRS_PATH_EV_CLOSE, -ECONNABORTED, "closed on request");
	if (!killable) {
		wait_event(path->wait, ibtrs_clt_path_state(path) == IBTRS_PATH_CLOSED);
		return 0;
	}
	/* nr_closed: the path was closed, even if another task has reconnected it since then. */
	if (wait_event_killable(path->wait, ibtrs_clt_path_state(path) == IBTRS_PATH_CLOSED ||
						    READ_ONCE(path->nr_closed) != nr))
		return -EINTR;
	return 0;
}

static bool path_settled(struct ibtrs_clt_path *path, u32 bad)
{
	enum ibtrs_path_state s = ibtrs_clt_path_state(path);

	return s == IBTRS_PATH_UP || s == IBTRS_PATH_CLOSED ||
	       READ_ONCE(path->stats.reconnects_bad) != bad;
}

int ibtrs_clt_path_reconnect(struct ibtrs_clt_path *path)
{
	enum ibtrs_path_state s = ibtrs_clt_path_state(path);
	u32 bad = READ_ONCE(path->stats.reconnects_bad);
	long left;

	if (READ_ONCE(path->stage) == IBTRS_CLT_PATH_LEAVING)
		return -ENODEV;
	switch (s) {
	case IBTRS_PATH_UP:
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_BY_HAND);
		ibtrs_clt_path_fail(path, -ECONNABORTED, "reconnect on request");
		break;
	case IBTRS_PATH_WAITING:
	case IBTRS_PATH_CLOSED:
	case IBTRS_PATH_IDLE:
		ibtrs_clt_path_kick(path);
		break;
	case IBTRS_PATH_CONNECTING:
		break;
	default:
		return -EBUSY;
	}
	/* reconnects_bad: an attempt may have failed and be back in the same state by now. */
	left = wait_event_killable_timeout(path->wait,
					   s == IBTRS_PATH_CONNECTING ||
						   ibtrs_clt_path_state(path) != s ||
						   READ_ONCE(path->stats.reconnects_bad) != bad,
					   PATH_RECONNECT_WAIT);
	if (left < 0)
		return -EINTR;
	/*
	 * The phases bound one attempt. Nothing bounds how often the server answers that it is
	 * still busy with the last incarnation, so this wait has a limit.
	 */
	left = wait_event_killable_timeout(path->wait, path_settled(path, bad),
					   PATH_RECONNECT_WAIT);
	if (left < 0)
		return -EINTR;
	return ibtrs_clt_path_state(path) == IBTRS_PATH_UP ? 0 : -ENOTCONN;
}

void ibtrs_clt_path_kick(struct ibtrs_clt_path *path)
{
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_CONNECT, 0, NULL);
}

/*
 * The steps of a handshake, and how long each wait for the server may take (decision 11).
 *
 * CM events, completions and other paths call these functions, in any context. handshake.c owns the
 * work and the timer and executes the steps.
 */

void ibtrs_clt_path_await(struct ibtrs_clt_path *path, enum ibtrs_retry_phase phase)
{
	u64 bytes = 2 * (u64)path->clt->nr_irq_conns * path->trial.len;
	bool others = ibtrs_clt_is_up(path->clt);
	u32 ms;

	guard(spinlock_irqsave)(&path->reason_lock);
	if (path->hs.phase == IBTRS_RETRY_STOPPED)
		return;
	ms = ibtrs_retry_patience_ms(&path->retry, phase, others, path->ext, bytes);
	WRITE_ONCE(path->hs.phase, phase);
	mod_delayed_work(path->clt->wq, &path->hs.deadline, msecs_to_jiffies(ms));
}

void ibtrs_clt_path_hasten(struct ibtrs_clt_path *path, u32 (*limit)(const struct ibtrs_retry *r))
{
	struct delayed_work *deadline = &path->hs.deadline;
	unsigned long left;

	guard(spinlock_irqsave)(&path->reason_lock);
	left = msecs_to_jiffies(limit(&path->retry));
	if (path->hs.phase == IBTRS_RETRY_FIRST_WORD && delayed_work_pending(deadline) &&
	    time_after(deadline->timer.expires, jiffies + left))
		mod_delayed_work(path->clt->wq, deadline, left);
}

void ibtrs_clt_path_answered(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_step step)
{
	guard(spinlock_irqsave)(&path->reason_lock);
	if (path->hs.phase == IBTRS_RETRY_STOPPED)
		return;
	cancel_delayed_work(&path->hs.deadline);
	set_bit(step, &path->hs.todo);
	queue_work(path->clt->wq, &path->hs.work);
}

void ibtrs_clt_path_hurry(struct ibtrs_clt_path *path, bool alive)
{
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_HURRY);
	if (alive)
		ibtrs_clt_path_hasten(path, ibtrs_retry_alive_ms);
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
}
