// SPDX-License-Identifier: GPL-2.0-only
/*
 * The works of a path.
 *
 * Any code posts events (path.c). One work item per path looks them up in the table of
 * logic/path_sm.h and runs the actions; it is the only writer of `state`. The drain may take long,
 * so it runs in a work of its own and posts DRAINED (law L10). Connect and reconnect are the same
 * function, and so are all teardowns.
 *
 * These works allocate NOIO, as do those of cm.c and handshake.c: memory may be reclaimed by
 * writing to the very disk that waits for this path.
 *
 * paths.c creates a path object and destroys it when it is closed. The memory of connections
 * (conns) lives as long as the object; QPs, keys and buffers live from DO_CONNECT to the end of the
 * drain.
 */
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uuid.h>
#include "ibtrs/client/dirs.h"
#include "ibtrs/client/link.h"
#include "ibtrs/client/path_run.h"
#include "ibtrs/client/port.h"
#include "ibtrs/client/rx.h"
#include "ibtrs/client/session.h"
#include "ibtrs/client/trace.h"

/* period in which an idle path checks whether I/O needs it now */
#define PATH_LOOK		HZ

/* ---- when to try again: logic/retry.c ---- */

/*
 * Marks compare a path with the other paths of the session. When all paths were lost, the marks say
 * nothing: forgive them.
 */
static void path_refresh_marks(struct ibtrs_clt_path *path)
{
	u32 gen = ibtrs_clt_gen(path->clt);

	if (gen == path->retry_gen)
		return;
	path->retry_gen = gen;
	ibtrs_retry_forgive(&path->retry);
}

/* A path that was up is lost. */
static void path_lost(struct ibtrs_clt_path *path)
{
	int err = ibtrs_clt_path_error(path);
	unsigned long flags;

	spin_lock_irqsave(&path->reason_lock, flags);
	path_refresh_marks(path);
	ibtrs_retry_lost(&path->retry, err, ibtrs_clt_path_now_ms());
	spin_unlock_irqrestore(&path->reason_lock, flags);
}

static void path_attempt_ended(struct ibtrs_clt_path *path, bool ok)
{
	int err = ibtrs_clt_path_error(path);
	unsigned long flags;
	bool counts = false;

	spin_lock_irqsave(&path->reason_lock, flags);
	path_refresh_marks(path);
	if (ok)
		ibtrs_retry_up(&path->retry, ibtrs_clt_path_now_ms());
	else
		counts = ibtrs_retry_failed(&path->retry, err);
	spin_unlock_irqrestore(&path->reason_lock, flags);
	if (ok) {
		WRITE_ONCE(path->hurry, false);
		path->stats.reconnects_ok++;
	} else {
		path->stats.reconnects_bad += counts;
		if (ibtrs_retry_first_again(&path->retry, err) &&
		    time_before(jiffies, path->first_end))
			return;
	}
	WRITE_ONCE(path->first_done, true);
}

static void path_arm(struct ibtrs_clt_path *path)
{
	struct ibtrs_retry_ask ask = {
		.err		= ibtrs_clt_path_error(path),
		.max		= READ_ONCE(path->clt->max_reconnects),
		.first_done	= path->first_done,
		.by_hand	= READ_ONCE(path->by_hand),
		.hurry		= READ_ONCE(path->hurry),
		.others		= ibtrs_clt_is_up(path->clt),
	};
	struct ibtrs_retry_answer answer;
	unsigned long wait;

	ibtrs_clt_want_look(path->clt);
	ask.wanted = ibtrs_clt_wanted(path->clt);
	answer = ibtrs_retry_next(&path->retry, &path->clt->backoff, &ask, get_random_u32());
	WRITE_ONCE(path->by_hand, false);
	WRITE_ONCE(path->hurry, false);
	if (answer.give_up) {
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_GIVE_UP, 0, NULL);
		return;
	}
	wait = msecs_to_jiffies(answer.wait_ms);
	WRITE_ONCE(path->retry_at, jiffies + wait);
	WRITE_ONCE(path->resting, answer.rest);
	WRITE_ONCE(path->idle, !answer.rest && !ask.wanted);
	mod_delayed_work(path->clt->wq, &path->timer,
			 READ_ONCE(path->idle) ? min_t(unsigned long, wait, PATH_LOOK) : wait);
}

/* Only an administrator ends the rest of a path early while another path is up. */
static bool path_rests(const struct ibtrs_clt_path *path)
{
	return READ_ONCE(path->resting) && time_before(jiffies, READ_ONCE(path->retry_at)) &&
	       ibtrs_clt_is_up(path->clt);
}

static void path_timer(struct work_struct *work)
{
	struct ibtrs_clt_path *path =
		container_of(to_delayed_work(work), struct ibtrs_clt_path, timer);
	long left = READ_ONCE(path->retry_at) - jiffies;

	if (left > 0 && READ_ONCE(path->idle)) {
		ibtrs_clt_want_look(path->clt);
		if (!ibtrs_clt_wanted(path->clt)) {
			queue_delayed_work(path->clt->wq, &path->timer,
					   min_t(long, left, PATH_LOOK));
			return;
		}
	}
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
}

static void path_drain(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, drain);
	unsigned int noio = memalloc_noio_save();

	ibtrs_clt_handshake_stop(path);
	ibtrs_hb_stop(&path->hb);
	ibtrs_clt_probe_stop(path);
	ibtrs_clt_cm_disconnect(path);
	ibtrs_clt_req_walk(path);
	ibtrs_clt_port_settle(path);
	ibtrs_clt_cm_destroy(path);
	ibtrs_clt_trial_free(path);
	ibtrs_clt_mr_free(path);
	ibtrs_clt_handshake_free(path);
	ibtrs_clt_port_unwatch(path);
	ibtrs_dev_put(path->dev);
	path->dev = NULL;
	ibtrs_clt_cm_release(path);
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_DRAINED, 0, NULL);
	memalloc_noio_restore(noio);
}

static bool path_no_interface(const struct ibtrs_clt_path *path, int err)
{
	return err == -ENODEV && (path->addr.src.scope[0] || path->addr.dst.scope[0]);
}

static void path_connect(struct ibtrs_clt_path *path)
{
	int err;

	if (!path->first_end)
		path->first_end = (jiffies + IBTRS_CLT_FIRST_WAIT) ?: 1;
	path->recon_cnt++;
	ibtrs_clt_handshake_begin(path);
	err = ibtrs_clt_cm_start(path);
	if (err)
		ibtrs_clt_path_fail(path, err,
				    path_no_interface(path, err) ?
					    "there is no interface of the name behind '%'" :
					    "the address cannot be resolved");
}

/* Attempts go on as long as the server cannot be reached: log each new reason once. */
static bool path_worth_a_word(struct ibtrs_clt_path *path, enum ibtrs_path_state old)
{
	int err = path->err, told = path->told_err;

	if (old != IBTRS_PATH_UP && err == -EBUSY)
		return false;
	path->told_err = err;
	return old == IBTRS_PATH_UP || !path->retry.attempt || err != told;
}

static void path_log(struct ibtrs_clt_path *path, enum ibtrs_path_state old,
		     enum ibtrs_path_event ev)
{
	trace_ibtrs_clt_path_state(path, old, path->state);
	if (path->state == IBTRS_PATH_UP)
		pr_info_ratelimited(
			"ibtrs %s: %s: up, queue depth %u, %u connections, max I/O %u KiB\n",
			path->clt->name, path->name, path->limits.queue_depth, path->nr_conns,
			path->limits.max_io_size >> 10);
	if (path->state == IBTRS_PATH_UP && READ_ONCE(path->trial.failed))
		pr_warn_ratelimited(
			"ibtrs %s: %s: it is used since no other path is up, though full-size packets are lost on it\n",
			path->clt->name, path->name);
	else if (ev == IBTRS_PATH_EV_FAIL && path_worth_a_word(path, old))
		pr_warn_ratelimited("ibtrs %s: %s: %s: %s (%d)\n", path->clt->name, path->name,
				    old == IBTRS_PATH_UP ? "path lost" : "connect failed",
				    path->reason, path->err);
	else if (ev == IBTRS_PATH_EV_GIVE_UP)
		pr_warn("ibtrs %s: %s: gave up after %u attempts; write 1 to its reconnect attribute to try again\n",
			path->clt->name, path->name, path->retry.attempt);
}

static void path_step(struct ibtrs_clt_path *path, enum ibtrs_path_event ev)
{
	struct ibtrs_path_step step = ibtrs_path_sm_step(path->state, ev);
	enum ibtrs_path_state old = path->state;
	int err;

	if (!step.taken)
		return;
	WRITE_ONCE(path->state, step.state);
	path_log(path, old, ev);
	if (old == IBTRS_PATH_CONNECTING && ev == IBTRS_PATH_EV_FAIL)
		path_attempt_ended(path, false);
	if (old == IBTRS_PATH_UP)
		path_lost(path);
	if (step.actions & IBTRS_PATH_DO_DOWN)
		ibtrs_clt_link_path_down(path);
	if (step.actions & IBTRS_PATH_DO_TEARDOWN)
		queue_work(path->clt->drain_wq, &path->drain);
	if (step.actions & IBTRS_PATH_DO_DISARM)
		cancel_delayed_work(&path->timer);
	if (step.actions & IBTRS_PATH_DO_ARM)
		path_arm(path);
	if (step.actions & IBTRS_PATH_DO_CONNECT)
		path_connect(path);
	if (step.actions & IBTRS_PATH_DO_UP) {
		ibtrs_hb_start(&path->hb, &path->conns[0].c, path->clt->opts.hb_interval_ms,
			       path->clt->opts.hb_misses);
		ibtrs_clt_probe_start(path);
		WRITE_ONCE(path->stats.wary, ibtrs_clt_path_marginal(path));
		err = ibtrs_clt_link_path_up(path);
		if (err)
			ibtrs_clt_path_fail(path, err, "no memory to publish the path");
		else
			path_attempt_ended(path, true);
		ibtrs_clt_turn_up(path);
	}
	if (step.actions & IBTRS_PATH_DO_CLOSED) {
		WRITE_ONCE(path->nr_closed, path->nr_closed + 1);
		WRITE_ONCE(path->first_done, true);
	}
	wake_up_all(&path->wait);
}

static void path_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, work);
	unsigned int noio = memalloc_noio_save();
	unsigned long flags;
	bool pending;
	int ev;

	for (ev = 0; ev < IBTRS_PATH_EVENTS; ev++) {
		spin_lock_irqsave(&path->reason_lock, flags);
		pending = test_and_clear_bit(ev, &path->events);
		spin_unlock_irqrestore(&path->reason_lock, flags);
		if (!pending || (ev == IBTRS_PATH_EV_CONNECT && READ_ONCE(path->dying)))
			continue;
		if (ev == IBTRS_PATH_EV_RETRY && path_rests(path))
			continue;
		path_step(path, ev);
		ev = -1;	/* look again from the first event in the order of precedence */
	}
	memalloc_noio_restore(noio);
}

static void path_hb_fail(struct ibtrs_hb *hb, int err, const char *why)
{
	ibtrs_clt_path_fail(container_of(hb, struct ibtrs_clt_path, hb), err, why);
}

struct ibtrs_clt_path *ibtrs_clt_path_create(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr)
{
	struct ibtrs_clt_path *path;
	u32 cid;
	int err = -ENOMEM;

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->clt = clt;
	path->addr = *addr;
	path->nr_conns = 1 + clt->nr_irq_conns + clt->opts.nr_poll_queues;
	path->conns = kvcalloc(path->nr_conns, sizeof(*path->conns), GFP_KERNEL);
	if (!path->conns)
		goto free_path;
	err = ibtrs_clt_stats_init(&path->stats);
	if (err)
		goto free_conns;
	ibtrs_clt_probe_init(path);
	for (cid = 0; cid < path->nr_conns; cid++) {
		mutex_init(&path->conns[cid].lock);
		path->conns[cid].dead = true;
	}
	generate_random_uuid(path->uuid);
	ibtrs_addr_pair_format(addr, path->name, sizeof(path->name));
	path->state = IBTRS_PATH_IDLE;
	ibtrs_dev_pool_init(&path->devs);
	spin_lock_init(&path->reason_lock);
	init_waitqueue_head(&path->wait);
	INIT_WORK(&path->work, path_work);
	INIT_WORK(&path->drain, path_drain);
	INIT_DELAYED_WORK(&path->timer, path_timer);
	ibtrs_clt_handshake_init(path);
	path->trial.slot = -1;	/* the first attempt may end before the trial is prepared */
	ibtrs_hb_init(&path->hb, clt->wq, path_hb_fail);
	path->hb.fault = IBTRS_FAULT_CLT_HEARTBEAT;
	path->hb.session = clt->name;
	path->hb.path = path->name;
	err = ibtrs_clt_dirs_path_add(path);
	if (err)
		goto free_stats;
	return path;

free_stats:
	ibtrs_clt_stats_free(&path->stats);
free_conns:
	kvfree(path->conns);
free_path:
	kfree(path);
	return ERR_PTR(err);
}

void ibtrs_clt_path_destroy(struct ibtrs_clt_path *path)
{
	/*
	 * Remove the sysfs files first. A reconnect that was requested before may still be pending,
	 * and would otherwise be handled after the CLOSE.
	 */
	ibtrs_clt_dirs_path_del(path);
	WRITE_ONCE(path->dying, true);
	flush_work(&path->work);
	ibtrs_clt_path_close(path, false);
	flush_work(&path->drain);	/* it still runs for a moment after it posted DRAINED */
	/* ibtrs_clt_break() may still use a pointer to a connection of this path */
	synchronize_rcu();
	cancel_delayed_work_sync(&path->timer);
	cancel_work_sync(&path->work);
	ibtrs_clt_stats_free(&path->stats);
	kvfree(path->conns);
	kfree(path);
}
