// SPDX-License-Identifier: GPL-2.0-only
/*
 * A path as an object: its events, its reason, and the functions that wait for its state.
 * path_run.c acts upon the events.
 */
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"
#include "ibtrs/logic/retry.h"

#define PATH_RECONNECT_WAIT	(10 * HZ)
/* time that is left for the request on cid 0 of a running attempt when another path comes up */
#define PATH_HURRY_MIN_MS	500
#define PATH_HURRY_MAX_MS	1000

static bool path_connected(const struct ibtrs_clt_path *path)
{
	enum ibtrs_path_state s = ibtrs_clt_path_state(path);

	return s == IBTRS_PATH_CONNECTING || s == IBTRS_PATH_UP;
}

void ibtrs_clt_path_post(struct ibtrs_clt_path *path, enum ibtrs_path_event ev, int err,
			 const char *why)
{
	unsigned long flags;

	if (err) {
		spin_lock_irqsave(&path->reason_lock, flags);
		/* The first reason explains the others. */
		if (!test_bit(ev, &path->events) &&
		    (ev == IBTRS_PATH_EV_CLOSE || path_connected(path))) {
			path->err = err;
			strscpy(path->reason, why ?: "", sizeof(path->reason));
		}
		set_bit(ev, &path->events);
		spin_unlock_irqrestore(&path->reason_lock, flags);
	} else {
		set_bit(ev, &path->events);
	}
	queue_work(path->clt->wq, &path->work);
}

int ibtrs_clt_path_reason(struct ibtrs_clt_path *path, char *buf, size_t size)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&path->reason_lock, flags);
	err = path->err;
	strscpy(buf, path->reason, size);
	spin_unlock_irqrestore(&path->reason_lock, flags);
	return err;
}

int ibtrs_clt_path_error(struct ibtrs_clt_path *path)
{
	unsigned long flags;
	int err;

	spin_lock_irqsave(&path->reason_lock, flags);
	err = path->err;
	spin_unlock_irqrestore(&path->reason_lock, flags);
	return err ?: -ECONNABORTED;
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

bool ibtrs_clt_path_marginal(struct ibtrs_clt_path *path)
{
	u32 gen = ibtrs_clt_gen(path->clt);
	unsigned long flags;
	u64 now = ibtrs_clt_path_now_ms();
	bool marginal;

	spin_lock_irqsave(&path->reason_lock, flags);
	marginal = gen == path->retry_gen && ibtrs_retry_marginal(&path->retry, now);
	marginal |= READ_ONCE(path->trial.failed) &&
		    !(path->retry.up && now - path->retry.up_ms >= IBTRS_RETRY_DOUBT_MS);
	spin_unlock_irqrestore(&path->reason_lock, flags);
	return marginal;
}

int ibtrs_clt_path_wait_first(struct ibtrs_clt_path *path)
{
	/* A drain that hangs (law L10) keeps the attempt from ending. */
	if (wait_event_killable_timeout(path->wait, READ_ONCE(path->first_done),
					IBTRS_CLT_FIRST_WAIT + PATH_RECONNECT_WAIT) < 0)
		return -EINTR;
	return ibtrs_clt_path_state(path) == IBTRS_PATH_UP ? 0 : ibtrs_clt_path_error(path);
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

	if (READ_ONCE(path->dying))
		return -ENODEV;
	switch (s) {
	case IBTRS_PATH_UP:
		WRITE_ONCE(path->by_hand, true);
		ibtrs_clt_path_fail(path, -ECONNABORTED, "reconnect on request");
		left = wait_event_killable_timeout(path->wait, ibtrs_clt_path_state(path) != s,
						   PATH_RECONNECT_WAIT);
		if (left < 0)
			return -EINTR;
		break;
	case IBTRS_PATH_WAITING:
	case IBTRS_PATH_CLOSED:
	case IBTRS_PATH_IDLE:
		ibtrs_clt_path_kick(path);
		/*
		 * reconnects_bad: an attempt may have failed and be back in the same state by now.
		 */
		left = wait_event_killable_timeout(path->wait,
						   ibtrs_clt_path_state(path) != s ||
							   READ_ONCE(path->stats.reconnects_bad) !=
								   bad,
						   PATH_RECONNECT_WAIT);
		if (left < 0)
			return -EINTR;
		break;
	case IBTRS_PATH_CONNECTING:
		break;
	default:
		return -EBUSY;
	}
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

void ibtrs_clt_path_hurry(struct ibtrs_clt_path *path, bool alive)
{
	WRITE_ONCE(path->hurry, true);
	/*
	 * An attempt that began while the link was down may have lost a message. The connection
	 * manager repeats it only after 4 s.
	 */
	if (alive)
		ibtrs_clt_deadline_hasten(
			path, clamp_t(u32, READ_ONCE(path->connect_ms) ?: PATH_HURRY_MAX_MS,
				      PATH_HURRY_MIN_MS, PATH_HURRY_MAX_MS));
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
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

static struct ibtrs_patience deadline_patience(const struct ibtrs_clt_path *path)
{
	return (struct ibtrs_patience){
		.attempt	= READ_ONCE(path->retry.attempt),
		.connect_ms	= READ_ONCE(path->connect_ms),
		.first_done	= path->first_done,
		.others		= ibtrs_clt_is_up(path->clt),
		.ours		= path->ext,
	};
}

unsigned int ibtrs_clt_deadline_patience_ms(const struct ibtrs_clt_path *path)
{
	struct ibtrs_patience p = deadline_patience(path);

	return ibtrs_patience_ms(&p);
}

unsigned int ibtrs_clt_deadline_first_ms(const struct ibtrs_clt_path *path)
{
	struct ibtrs_patience p = deadline_patience(path);

	return ibtrs_patience_first_ms(&p);
}

void ibtrs_clt_deadline_phase(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_phase phase,
			      unsigned int ms)
{
	unsigned long flags;

	spin_lock_irqsave(&path->hs.lock, flags);
	if (!path->hs.stopped) {
		WRITE_ONCE(path->hs.phase, phase);
		mod_delayed_work(path->clt->wq, &path->hs.deadline, msecs_to_jiffies(ms));
	}
	spin_unlock_irqrestore(&path->hs.lock, flags);
}

void ibtrs_clt_deadline_hasten(struct ibtrs_clt_path *path, unsigned int ms)
{
	struct delayed_work *deadline = &path->hs.deadline;
	unsigned long flags;

	spin_lock_irqsave(&path->hs.lock, flags);
	if (!path->hs.stopped && path->hs.phase == IBTRS_CLT_HS_FIRST_WORD &&
	    delayed_work_pending(deadline) &&
	    time_after(deadline->timer.expires, jiffies + msecs_to_jiffies(ms)))
		mod_delayed_work(path->clt->wq, deadline, msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&path->hs.lock, flags);
}

void ibtrs_clt_deadline_step(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_step step)
{
	unsigned long flags;

	spin_lock_irqsave(&path->hs.lock, flags);
	if (!path->hs.stopped) {
		cancel_delayed_work(&path->hs.deadline);
		set_bit(step, &path->hs.todo);
		queue_work(path->clt->wq, &path->hs.work);
	}
	spin_unlock_irqrestore(&path->hs.lock, flags);
}
