// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The states of a path: the table of ibtrs/logic/path_sm.c, driven by the context. When a path is
 * tried again says ibtrs/logic/retry.c.
 *
 * All of it runs under ctx->lock. A queue that finds a path broken leaves the reason in fail_err,
 * takes the connection away by itself, and wakes the context, which does the rest. Teardown is
 * immediate: a closed socket writes to no memory.
 */
#include <stdlib.h>
#include "ibtrs/logic/beat.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/user/clt.h"

void ibtrs_clt_path_post(struct ibtrs_clt_path *path, enum ibtrs_path_event ev)
{
	/* CLOSE is handled first, and CONNECT would begin the closed path again. */
	if (ev != IBTRS_PATH_EV_CONNECT || !(path->events & 1u << IBTRS_PATH_EV_CLOSE))
		path->events |= 1u << ev;
}

void ibtrs_clt_path_fail(struct ibtrs_clt_path *path, int err, const char *why)
{
	if (path->events & 1u << IBTRS_PATH_EV_FAIL)
		return;
	if (path->state != IBTRS_PATH_CONNECTING && path->state != IBTRS_PATH_UP)
		return;
	path->err = err;
	snprintf(path->why, sizeof(path->why), "%s", why);
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_FAIL);
}

void ibtrs_clt_path_lost(struct ibtrs_clt_path *path, int err, const char *why)
{
	pthread_mutex_lock(&path->fail_lock);
	if (!path->fail_err) {
		path->fail_err = err;
		path->fail_why = why;
	}
	pthread_mutex_unlock(&path->fail_lock);
	ibtrs_ctx_wake(path->clt->ctx);
}

static void path_take_lost(struct ibtrs_clt_path *path)
{
	const char *why;
	int err;

	pthread_mutex_lock(&path->fail_lock);
	err = path->fail_err;
	why = path->fail_why;
	path->fail_err = 0;
	pthread_mutex_unlock(&path->fail_lock);
	if (err && path->state == IBTRS_PATH_UP)
		ibtrs_clt_path_fail(path, err, why);
}

/* ---- heartbeats, events ------------------------------------------------- */

/* These are called by the service queue, with its lock held; it flushes. */
void ibtrs_clt_hb_msg(struct ibtrs_clt_conn *conn)
{
	ibtrs_qp_post_imm(conn->qp, &conn->hb_ack, ibtrs_imm_hb(IBTRS_IMM_HB_ACK));
}

void ibtrs_clt_hb_ack(struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt_path *path = conn->path;

	if (!path->awaited)
		return;
	path->awaited = false;
	__atomic_store_n(&path->latency_us, ibtrs_user_clock_us() - path->sent_at,
			 __ATOMIC_RELAXED);
}

void ibtrs_clt_event(struct ibtrs_clt_conn *conn, u32 imm)
{
	const struct ibtrs_clt_opts *o = &conn->path->clt->opts;

	/* What was not negotiated means nothing. */
	if (conn->path->ext & IBTRS_EXT_EVENTS && o->event)
		o->event(o->priv, ibtrs_imm_event_kind(imm), ibtrs_imm_event_dev(imm));
}

static void hb_send(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_conn *conn = path->conns[0];
	struct ibtrs_q *q = &path->clt->qs[0];

	pthread_mutex_lock(&q->lock);
	if (!path->awaited) {
		path->awaited = true;
		path->sent_at = ibtrs_user_clock_us();
	}
	if (conn->attached) {
		/* If the last one is still to be sent, that one will do. */
		ibtrs_qp_post_imm(conn->qp, &conn->hb_msg, ibtrs_imm_hb(IBTRS_IMM_HB_MSG));
		conn->qp->verbs->flush(conn->qp);
	}
	pthread_mutex_unlock(&q->lock);
}

struct ibtrs_retry_now ibtrs_clt_path_now(const struct ibtrs_clt_path *path)
{
	const struct ibtrs_clt *clt = path->clt;

	return (struct ibtrs_retry_now){
		.ms	= ibtrs_ctx_now(clt->ctx),
		.err	= path->err,
		.gen	= clt->ups,
		.max	= clt->opts.max_attempts ? (int)clt->opts.max_attempts : -1,
		.others	= clt->nr_up,
	};
}

/* For a wait: the same, and whether I/O needs the path, which is asked once. */
static struct ibtrs_retry_now path_now_wanted(const struct ibtrs_clt_path *path)
{
	struct ibtrs_retry_now now = ibtrs_clt_path_now(path);

	now.wanted = !path->clt->opened || ibtrs_clt_flows(path->clt);
	return now;
}

void ibtrs_clt_path_note(struct ibtrs_clt_path *path, enum ibtrs_retry_event ev)
{
	const struct ibtrs_retry_now now = ibtrs_clt_path_now(path);

	ibtrs_retry_event(&path->retry, ev, &now);
}

const char *ibtrs_phase_name(enum ibtrs_phase phase)
{
	static const char *const name[IBTRS_PHASES] = {
		[IBTRS_PHASE_TURN]	= "turn",
		[IBTRS_PHASE_KEY]	= "key",
		[IBTRS_PHASE_CONNECT]	= "connect",
		[IBTRS_PHASE_OTHERS]	= "others",
		[IBTRS_PHASE_MEMORY]	= "memory",
		[IBTRS_PHASE_TRIAL]	= "trial",
	};

	return phase < IBTRS_PHASES ? name[phase] : "?";
}

void ibtrs_clt_path_await(struct ibtrs_clt_path *path, enum ibtrs_clt_hs hs)
{
	u64 now = ibtrs_user_clock_us();

	path->took[path->hs] += (u32)(now - path->hs_at);
	path->hs_at = now;
	path->hs = hs;
}

static void path_beat(struct ibtrs_clt_path *path, u64 now)
{
	bool seen = __atomic_exchange_n(&path->seen, false, __ATOMIC_RELAXED);
	const struct ibtrs_retry_now rn = ibtrs_clt_path_now(path);
	struct ibtrs_clt *clt = path->clt;
	u32 i;

	path->due = now + clt->opts.hb_ms;
	switch (ibtrs_beat_tick(&path->missed, seen, clt->opts.hb_misses)) {
	case IBTRS_BEAT_DEAD:
		ibtrs_clt_path_fail(path, -ETIMEDOUT, "no sign of life from the server");
		break;
	case IBTRS_BEAT_SEND:
		hb_send(path);
		break;
	case IBTRS_BEAT_QUIET:
		break;
	}
	__atomic_store_n(&path->wary, ibtrs_retry_marginal(&path->retry, &rn), __ATOMIC_RELAXED);
	/* Heartbeats go over the service connection, and say nothing of the others. */
	for (i = 1; i < clt->nr_qs; i++)
		ibtrs_q_check(&clt->qs[i], path->conns[i]);
}

/* ---- actions ------------------------------------------------------------ */

/* Ends the waits of the other paths, but not of one that rests. */
static void path_retry_others(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	struct ibtrs_retry_now now;
	u32 i;

	for (i = 0; i < clt->nr_paths; i++) {
		now = ibtrs_clt_path_now(&clt->paths[i]);
		if (&clt->paths[i] != path && !ibtrs_retry_rests(&clt->paths[i].retry, &now))
			ibtrs_clt_path_post(&clt->paths[i], IBTRS_PATH_EV_RETRY);
	}
}

static void path_down(struct ibtrs_clt_path *path)
{
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_LOST);
	if (--path->clt->nr_up)
		return;
	path_retry_others(path);
	if (path->clt->opts.link)
		path->clt->opts.link(path->clt->opts.link_priv);
}

static void path_teardown(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	u32 i;

	path->due = 0;
	for (i = 0; path->conns && i < clt->nr_qs; i++)
		if (path->conns[i])
			ibtrs_q_detach(&clt->qs[i], path->conns[i]);
	ibtrs_clt_cm_free(path);
	ibtrs_clt_calls_end(clt, ibtrs_q_serve(&clt->qs[0]));
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_DRAINED);
}

static void path_arm(struct ibtrs_clt_path *path)
{
	const struct ibtrs_retry_now now = path_now_wanted(path);
	u32 ms = ibtrs_retry_wait(&path->retry, &ibtrs_backoff_default, &now, ibtrs_user_jitter());

	if (ms)
		path->due = now.ms + ms;
	else
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_GIVE_UP);
}

static void path_up(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	bool first = !clt->nr_up;
	u32 i;
	int err;

	if (first)
		__atomic_store_n(&clt->ups, clt->ups + 1, __ATOMIC_RELAXED);
	if (!clt->opened || !(clt->opts.flags & IBTRS_CLT_ASK_REPLAY))
		__atomic_store_n(&clt->cleared, clt->ups, __ATOMIC_RELAXED);
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_UP);
	ibtrs_clt_path_await(path, path->hs);	/* no longer: the last phase is over */
	path->established++;
	__atomic_store_n(&path->loose, false, __ATOMIC_RELAXED);
	clt->opened = true;
	clt->nr_up++;
	__atomic_store_n(&clt->life, path->life, __ATOMIC_RELAXED);
	path->missed = 0;
	path->awaited = false;
	__atomic_store_n(&path->seen, true, __ATOMIC_RELAXED);
	path->due = ibtrs_ctx_now(clt->ctx);
	for (i = 0; i < clt->nr_qs; i++) {
		err = ibtrs_q_attach(&clt->qs[i], path->conns[i]);
		if (err) {
			ibtrs_clt_path_fail(path, err, path->conns[i]->qp->why);
			return;
		}
	}
	/* What has come in behind INFO_RSP. */
	ibtrs_clt_calls_end(clt, ibtrs_q_serve(&clt->qs[0]));
	for (i = 1; i < clt->nr_qs; i++)
		ibtrs_q_resume(&clt->qs[i]);
	/* The server can be reached again: the other paths, too, most likely. */
	if (first) {
		if (clt->opts.link)
			clt->opts.link(clt->opts.link_priv);
		for (i = 0; i < clt->nr_paths; i++)
			if (&clt->paths[i] != path)
				ibtrs_clt_path_note(&clt->paths[i], IBTRS_RETRY_EV_HURRY);
		path_retry_others(path);
	}
	ibtrs_auto_ask(path);
}

static void path_do(struct ibtrs_clt_path *path, u32 actions)
{
	if (actions & IBTRS_PATH_DO_DOWN)
		path_down(path);
	if (actions & IBTRS_PATH_DO_TEARDOWN)
		path_teardown(path);
	if (actions & IBTRS_PATH_DO_DISARM)
		path->due = 0;
	if (actions & IBTRS_PATH_DO_ARM)
		path_arm(path);
	if (actions & IBTRS_PATH_DO_CONNECT) {
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_BEGIN);
		pthread_mutex_lock(&path->fail_lock);
		path->fail_err = 0;	/* of the last incarnation */
		pthread_mutex_unlock(&path->fail_lock);
		path->hs = IBTRS_HS_TURN;	/* of the last incarnation */
		path->hs_at = ibtrs_user_clock_us();
		memset(path->took, 0, sizeof(path->took));
		ibtrs_clt_cm_start(path);
	}
	if (actions & IBTRS_PATH_DO_UP)
		path_up(path);
	if (actions & IBTRS_PATH_DO_CLOSED)
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_CLOSED);
}

static void path_timer(struct ibtrs_clt_path *path, u64 now)
{
	struct ibtrs_retry_now rn;
	u32 ms;

	switch (path->state) {
	case IBTRS_PATH_IDLE:
		path->due = 0;
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_CONNECT);
		break;
	case IBTRS_PATH_UP:
		path_beat(path, now);
		break;
	case IBTRS_PATH_CONNECTING:
		path->due = 0;
		if (path->hs == IBTRS_HS_TURN) {
			ibtrs_clt_cm_start(path);
			break;
		}
		if (path->hs == IBTRS_HS_TRIAL) {
			ibtrs_clt_trial_late(path);
			break;
		}
		if (path->hs == IBTRS_HS_DOUBT && ibtrs_clt_trial_in_vain(path))
			break;
		ibtrs_clt_path_fail(path, -ETIMEDOUT, path->hs == IBTRS_HS_INFO ?
				    "the server did not say where its memory is in time" :
				    "the server did not answer in time");
		break;
	default:
		rn = path_now_wanted(path);
		ms = ibtrs_retry_left(&path->retry, &rn);
		path->due = ms ? now + ms : 0;
		if (!ms)
			ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY);
	}
}

/* Return: number of events and timers that were handled. */
int ibtrs_clt_path_work(struct ibtrs_clt_path *path)
{
	u64 now = ibtrs_ctx_now(path->clt->ctx);
	struct ibtrs_path_step step;
	int n = 0;
	u32 ev;

	path_take_lost(path);
	if (path->due && path->due <= now) {
		path_timer(path, now);
		n++;
	}
	while (path->events) {
		ev = (u32)__builtin_ctz(path->events);
		path->events &= ~(1u << ev);
		step = ibtrs_path_sm_step(path->state, ev);
		if (!step.taken)
			continue;
		n++;
		/* An attempt that failed: a path that was up is path_down()'s. */
		if (path->state == IBTRS_PATH_CONNECTING && ev == IBTRS_PATH_EV_FAIL) {
			ibtrs_clt_path_note(path, IBTRS_RETRY_EV_FAILED);
			ibtrs_auto_hurry(path->clt);
		}
		path->state = step.state;
		path_do(path, step.actions);
	}
	return n;
}
