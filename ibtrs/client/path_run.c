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
#include <linux/slab.h>
#include <linux/uuid.h>
#include "ibtrs/client/answer.h"
#include "ibtrs/client/dirs.h"
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"
#include "ibtrs/client/trace.h"

/* ---- when to try again: logic/retry.c ---- */

static void path_attempt_ended(struct ibtrs_clt_path *path, bool ok)
{
	u32 failed = path->retry.attempt;

	ibtrs_clt_path_note(path, ok ? IBTRS_RETRY_EV_UP : IBTRS_RETRY_EV_FAILED);
	if (ok)
		path->stats.reconnects_ok++;
	else
		path->stats.reconnects_bad += path->retry.attempt != failed;
}

static struct ibtrs_retry_now path_now_wanted(struct ibtrs_clt_path *path)
{
	struct ibtrs_retry_now now = ibtrs_clt_path_now(path);

	ibtrs_clt_link_look(path->clt);
	now.wanted = ibtrs_clt_link_wanted(path->clt);
	return now;
}

static void path_arm(struct ibtrs_clt_path *path)
{
	struct ibtrs_retry_now now = path_now_wanted(path);
	u32 ms = 0, rnd = get_random_u32();

	scoped_guard(spinlock_irqsave, &path->reason_lock)
		ms = ibtrs_retry_wait(&path->retry, &path->clt->backoff, &now, rnd);
	if (ms)
		mod_delayed_work(path->clt->wq, &path->timer, msecs_to_jiffies(ms));
	else
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_GIVE_UP, 0, NULL);
}

static void path_timer(struct work_struct *work)
{
	struct ibtrs_clt_path *path =
		container_of(to_delayed_work(work), struct ibtrs_clt_path, timer);
	struct ibtrs_retry_now now = path_now_wanted(path);
	u32 ms = 0;

	scoped_guard(spinlock_irqsave, &path->reason_lock)
		ms = ibtrs_retry_left(&path->retry, &now);
	if (ms)
		queue_delayed_work(path->clt->wq, &path->timer, msecs_to_jiffies(ms));
	else
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
}

static void path_drain(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, drain);

	guard(noio)();
	ibtrs_clt_handshake_stop(path);
	ibtrs_hb_stop(&path->hb);
	cancel_delayed_work_sync(&path->probe);
	ibtrs_clt_cm_disconnect(path);
	ibtrs_clt_req_walk(path);
	ibtrs_clt_port_settle(path);
	ibtrs_clt_cm_destroy(path);
	ibtrs_clt_trial_free(path);
	ibtrs_clt_mr_free(path);
	ibtrs_clt_handshake_free(path);
	ibtrs_clt_cm_release(path);
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_DRAINED, 0, NULL);
}

/* ---- probes ---- */

/*
 * Decision 16: a send queue can die without a completion (soft-RoCE after a retransmitted REG_MR),
 * and the heartbeat does not detect it, because it uses the service connection. To the client a
 * dead queue looks like a slow disk, for ever.
 *
 * So once per heartbeat interval each connection with requests in flight, whose send queue has
 * completed nothing since the last check, gets a probe: a signalled zero-byte RDMA write, which the
 * peer's software never sees. If the probe completes, the disk is slow. If it does not complete
 * within hb_misses intervals plus the time that the data in flight need, the path fails; its drain
 * then moves the requests. At most one probe per connection is in flight. A send queue that has no
 * room for a probe counts as silent.
 *
 * The completions of a polled connection are seen only when a task polls, and no task has to: the
 * check polls first.
 *
 * The same work detects that a path has become marginal, or is not marginal any more.
 *
 * The completion of a probe comes before the drain ends or not at all. The check is stopped before
 * the drain, so no probe is posted after the drain has begun.
 */

static void probe_check(struct ibtrs_clt_path *path, struct ibtrs_clt_conn *conn)
{
	u32 out = ibtrs_clt_conn_inflight(conn);
	u32 patience = ibtrs_sqwatch_patience(path->clt->opts.hb_misses,
					      (u64)out * path->limits.max_io_size);
	const char *why;
	int err;

	err = ibtrs_probe_look(&conn->probe, &conn->c, out, false, patience, &why);
	if (err < 0)
		ibtrs_clt_path_fail(path, err, why);
}

static void probe_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path =
		container_of(to_delayed_work(work), struct ibtrs_clt_path, probe);
	bool wary = ibtrs_clt_path_ask(path, ibtrs_retry_marginal);
	u32 cid;

	/* Write only a change: requests read `wary`, and a write takes the line from their CPUs. */
	if (wary != READ_ONCE(path->stats.wary))
		WRITE_ONCE(path->stats.wary, wary);
	for (cid = 0; cid < path->nr_conns; cid++) {
		if (path->conns[cid].polled) {
			guard(rcu)();
			ibtrs_clt_conn_poll(&path->conns[cid]);
		}
		probe_check(path, &path->conns[cid]);
	}
	queue_delayed_work(path->clt->wq, &path->probe,
			   msecs_to_jiffies(path->clt->opts.hb_interval_ms));
}

static void probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(wc->wr_cqe, struct ibtrs_clt_conn, probe.cqe);

	if (unlikely(ibtrs_clt_wc_failed(conn, wc)))
		return;
	ibtrs_conn_credit(&conn->c, 1);
	WRITE_ONCE(conn->probe.out, false);
}

static void probe_start(struct ibtrs_clt_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++) {
		struct ibtrs_probe *probe = &path->conns[cid].probe;

		probe->cqe.done = probe_done;
		probe->seen = true;
		probe->out = false;
		probe->watch.silent = 0;
	}
	queue_delayed_work(path->clt->wq, &path->probe,
			   msecs_to_jiffies(path->clt->opts.hb_interval_ms));
}

/* ---- events ---- */

static bool path_no_interface(const struct ibtrs_clt_path *path, int err)
{
	return err == -ENODEV && (path->addr.src.scope[0] || path->addr.dst.scope[0]);
}

static void path_connect(struct ibtrs_clt_path *path)
{
	int err;

	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_BEGIN);
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
	if (path->state == IBTRS_PATH_UP && path->retry.trial_failed)
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
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_LOST);
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
		probe_start(path);
		WRITE_ONCE(path->stats.wary, ibtrs_clt_path_ask(path, ibtrs_retry_marginal));
		err = ibtrs_clt_link_path_up(path);
		if (err)
			ibtrs_clt_path_fail(path, err, "no memory to publish the path");
		else
			path_attempt_ended(path, true);
		ibtrs_clt_turn_end(path, true);
	}
	if (step.actions & IBTRS_PATH_DO_CLOSED) {
		WRITE_ONCE(path->nr_closed, path->nr_closed + 1);
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_CLOSED);
	}
	wake_up_all(&path->wait);
}

static void path_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, work);
	bool pending = false;
	int ev;

	guard(noio)();
	for (ev = 0; ev < IBTRS_PATH_EVENTS; ev++) {
		scoped_guard(spinlock_irqsave, &path->reason_lock)
			pending = test_and_clear_bit(ev, &path->events);
		if (!pending || (ev == IBTRS_PATH_EV_CONNECT &&
				 READ_ONCE(path->stage) == IBTRS_CLT_PATH_LEAVING))
			continue;
		/* While another path is up, only an administrator ends a rest early. */
		if (ev == IBTRS_PATH_EV_RETRY && ibtrs_clt_path_ask(path, ibtrs_retry_rests))
			continue;
		path_step(path, ev);
		ev = -1;	/* look again from the first event in the order of precedence */
	}
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
	int err;

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return ERR_PTR(-ENOMEM);
	path->clt = clt;
	path->addr = *addr;
	path->nr_conns = 1 + clt->nr_irq_conns + clt->opts.nr_poll_queues;
	path->conns = kvcalloc(path->nr_conns, sizeof(*path->conns), GFP_KERNEL);
	err = path->conns ? ibtrs_clt_stats_init(&path->stats) : -ENOMEM;
	if (err)
		goto free;
	for (cid = 0; cid < path->nr_conns; cid++) {
		mutex_init(&path->conns[cid].lock);
		path->conns[cid].dead = true;
	}
	generate_random_uuid(path->uuid);
	ibtrs_addr_pair_format(addr, path->name, sizeof(path->name));
	path->state = IBTRS_PATH_IDLE;
	spin_lock_init(&path->reason_lock);
	init_waitqueue_head(&path->wait);
	INIT_WORK(&path->work, path_work);
	INIT_WORK(&path->drain, path_drain);
	INIT_DELAYED_WORK(&path->timer, path_timer);
	INIT_DELAYED_WORK(&path->probe, probe_work);
	ibtrs_clt_handshake_init(path);
	path->trial.slot = -1;	/* the first attempt may end before the trial is prepared */
	ibtrs_hb_init(&path->hb, clt->wq, path_hb_fail);
	path->hb.fault = IBTRS_FAULT_CLT_HEARTBEAT;
	path->hb.session = clt->name;
	path->hb.path = path->name;
	err = ibtrs_clt_dirs_path_add(path);
	if (!err)
		return path;
free:
	ibtrs_clt_stats_free(&path->stats);
	kvfree(path->conns);
	kfree(path);
	return ERR_PTR(err);
}

void ibtrs_clt_path_destroy(struct ibtrs_clt_path *path)
{
	/* Ends the stores for which the removal of the sysfs files waits. */
	ibtrs_clt_path_close(path, false);
	ibtrs_clt_dirs_path_del(path);
	/* A reconnect that was requested before may be pending: it comes before the CLOSE. */
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
