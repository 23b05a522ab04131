// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a device: the driver of logic/dev_sm.
 *
 * The state is written by ibnbd_clt_dev_post() alone, under dev->lock: state and event give the
 * next state and a set of actions. What a request meets in queue_rq is the *gate*, which follows
 * from the state. The queue is quiesced while I/O is held, and while device id and limits change.
 *
 *	link down	held; after hold= seconds failed: what is parked ends, new I/O ends at once.
 *			A request that was held before and has not been completed since counts as
 *			held all the time
 *	another leg	of the same group= is open and in sync: after failfast= seconds, what it
 *			can do in place of this one ends (dev.c)
 *	link up		re-OPEN; limits and identity are compared; the same disk: device id into the
 *			parked requests, replay. Another disk, or a server that says no for good:
 *			fenced. No answer, or "not yet": still held, hold= goes on, and OPEN is sent
 *			again (L4).
 *	unmap		ends what is held, then the removal work (recover.c)
 *
 * Locking: open_lock is taken before lock, and session->lock before lock. Under dev->lock memory is
 * allocated NOIO, because memory may be reclaimed by writing to this very disk.
 */
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/trace.h"

#define DEV_REPLAY_RETRY	(HZ / 50 ?: 1)
#define DEV_LIMITS		(HZ / 5)	/* a write to sysfs is changing limits */

static u8 dev_gate(const struct ibnbd_clt_dev *dev)
{
	if (ibnbd_dev_sm_submits(dev->state))
		return ibnbd_clt_dev_takes_writes(dev) ? IBNBD_CLT_GATE_OPEN :
							 IBNBD_CLT_GATE_NO_WRITES;
	if (dev->state == IBNBD_DEV_FAILFAST)
		return IBNBD_CLT_GATE_FAILFAST;
	return ibnbd_dev_sm_holds(dev->state) ? IBNBD_CLT_GATE_HOLD : IBNBD_CLT_GATE_FAIL;
}

static void dev_stop(struct ibnbd_clt_dev *dev)
{
	if (!dev->disk || dev->stopped)
		return;
	dev->stopped = true;
	blk_mq_quiesce_queue_nowait(dev->disk->queue);
}

/* No task is in queue_rq any more. */
static void dev_stop_wait(struct ibnbd_clt_dev *dev)
{
	if (dev->stopped)
		cx_wait_quiesce_done(&dev->sess->set, dev->disk->queue);
}

static void dev_start(struct ibnbd_clt_dev *dev)
{
	if (!dev->stopped)
		return;
	dev->stopped = false;
	blk_mq_unquiesce_queue(dev->disk->queue);
	/*
	 * Law L29: up to Linux 6.12 a sender that has seen the queue quiesced puts its request on
	 * a list and leaves it to the unquiescing to run that list, which it may just have done.
	 * The sender does both in one read section.
	 */
	synchronize_rcu();
	blk_mq_run_hw_queues(dev->disk->queue, true);
	/* what queue_failfast() has put aside */
	blk_mq_kick_requeue_list(dev->disk->queue);
}

/*
 * The gate is shut: waits for the callers that passed it before, ends what is parked, and starts
 * the queue again, so that new requests fail at the gate. A request in flight on a path that dies
 * is parked later: sweep until nothing is left.
 */
static void dev_fail(struct ibnbd_clt_dev *dev)
{
	if (!dev->disk)
		return;
	dev_stop(dev);
	dev_stop_wait(dev);
	if (ibnbd_clt_inflight_abort(dev))
		queue_delayed_work(ibnbd_clt_dev_wq, &dev->sweep_work, IBNBD_CLT_SWEEP);
	dev_start(dev);
}

void ibnbd_clt_dev_let_go(struct ibnbd_clt_dev *dev)
{
	if (!dev->disk)
		return;
	dev_stop_wait(dev);
	ibnbd_clt_inflight_let_go(dev);
	if (ibnbd_clt_inflight_posted(dev))
		queue_delayed_work(ibnbd_clt_dev_wq, &dev->sweep_work, IBNBD_CLT_SWEEP);
	dev_start(dev);
}

void ibnbd_clt_dev_replay(struct ibnbd_clt_dev *dev)
{
	if (dev->disk && ibnbd_clt_inflight_replay(dev))
		queue_delayed_work(ibnbd_clt_dev_wq, &dev->sweep_work, DEV_REPLAY_RETRY);
}

int ibnbd_clt_dev_hold_seconds(const struct ibnbd_clt_dev *dev)
{
	return dev->shown ? READ_ONCE(dev->map.hold) : 0;
}

void ibnbd_clt_dev_arm(struct ibnbd_clt_dev *dev)
{
	int hold = ibnbd_clt_dev_hold_seconds(dev);
	unsigned long end = dev->held_since + secs_to_jiffies(max(hold, 0));

	if (hold >= 0)
		mod_delayed_work(ibnbd_clt_dev_wq, &dev->hold_work,
				 time_after(end, jiffies) ? end - jiffies : 0);
	else
		cancel_delayed_work(&dev->hold_work);
	/* The transport does not see requests that are held in the block layer. */
	ibtrs_clt_want(dev->sess->clt, hold >= 0 ? hold : INT_MAX);
}

/*
 * Takes over the server's answer, in the middle of a step. Requests that do not fit it any more end
 * with an error (L2).
 */
static int dev_commit(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	enum ibnbd_given_up given_up = dev->at_large.given_up;
	bool takes, anew = ibnbd_clt_grant_is_new(dev, g);
	int err;

	dev_stop_wait(dev);
	err = ibnbd_clt_disk_commit(dev, g);
	if (err)
		return err;
	if (anew)
		given_up = IBNBD_GIVEN_UP_NOTHING;
	else if (ibtrs_clt_settled(dev->sess->clt))
		given_up = ibnbd_given_up_ended(given_up);
	takes = !ibnbd_clt_dev_takes_writes(dev) && given_up != IBNBD_GIVEN_UP_WRITES;
	WRITE_ONCE(dev->at_large.given_up, given_up);
	if (takes && dev->state == IBNBD_DEV_OPEN)
		pr_info("ibnbd%d: aborted writes have completed on the server; writes enabled\n",
			dev->index);
	if (dev->disk)
		ibnbd_clt_inflight_abort_larger(dev, g->lim.max_hw_sectors << SECTOR_SHIFT);
	if (!ibnbd_clt_dev_takes_writes(dev))
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_SETTLE);
	if (dev->limits == IBNBD_CLT_LIMITS_DUE)
		ibnbd_clt_dev_ask_later(dev, DEV_LIMITS);
	return 0;
}

bool ibnbd_clt_dev_is_quiet(struct ibnbd_clt_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	dev_stop_wait(dev);
	if (!dev->disk)
		return true;
	if (ibnbd_clt_inflight_posted(dev))
		return false;
	/*
	 * A request stops counting as posted before the block layer hears of it. After a grace
	 * period, the completions that were running have finished.
	 */
	synchronize_rcu();
	return true;
}

/* ---- a step of the table ---- */

/*
 * Runs the actions of @old's step in the order of their bits, up to the first that fails. @g: as of
 * ibnbd_clt_dev_post().
 */
static int dev_do(struct ibnbd_clt_dev *dev, unsigned int actions, enum ibnbd_dev_state old,
		  const struct ibnbd_clt_grant *g)
{
	int err;

	if (actions & IBNBD_DEV_DO_STOP) {
		dev_stop(dev);
		if (old == IBNBD_DEV_FAILED)
			dev->held_since = jiffies;	/* nothing has waited so far */
	}
	if (actions & IBNBD_DEV_DO_COMMIT) {
		err = dev_commit(dev, g);
		if (err)
			return err;
	}
	if (actions & IBNBD_DEV_DO_ARM) {
		/* A replay has answered no request: what waited before it has waited since then. */
		if (old == IBNBD_DEV_OPEN)
			dev->held_since = ibnbd_clt_inflight_held_since(dev);
		ibnbd_clt_dev_arm(dev);
	}
	if (actions & IBNBD_DEV_DO_FAIL)
		dev_fail(dev);
	if (actions & IBNBD_DEV_DO_RESUME) {
		if (old != IBNBD_DEV_OPEN)
			dev->resumed_ns = ktime_get_ns();
		ibnbd_clt_dev_replay(dev);
		dev_start(dev);
	}
	if (actions & IBNBD_DEV_DO_OFFLINE)
		ibnbd_clt_disk_uevent(dev, KOBJ_OFFLINE);
	if (actions & IBNBD_DEV_DO_ONLINE)
		ibnbd_clt_disk_uevent(dev, KOBJ_ONLINE);
	if (actions & IBNBD_DEV_DO_CLOSE)
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_CLOSE);
	if (actions & IBNBD_DEV_DO_REMOVE)
		queue_work(ibnbd_clt_remove_wq, &dev->remove_work);
	if (actions & IBNBD_DEV_DO_LET_GO)
		ibnbd_clt_dev_let_go(dev);
	return 0;
}

static void dev_enter(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state state)
{
	enum ibnbd_dev_state old = dev->state;

	WRITE_ONCE(dev->state, state);
	WRITE_ONCE(dev->gate, dev_gate(dev));
	/* The mirror has had errors, or will have them. */
	if (state == IBNBD_DEV_FAILED || state == IBNBD_DEV_FENCED)
		WRITE_ONCE(dev->in_sync, false);
	ibnbd_clt_group_changed(dev);
	if (state == IBNBD_DEV_OPEN) {
		dev->refusal = 0;
		ibnbd_clt_dev_say(
			dev, "%s",
			ibnbd_clt_dev_takes_writes(dev) ?
				"" :
				"writes disabled: the server may still execute an aborted one");
	}
	if (state != old && old != IBNBD_DEV_INIT)
		pr_info_ratelimited("ibnbd%d: %s of %s: %s -> %s%s%s\n", dev->index,
				    dev->map.device_path, dev->map.sessname,
				    ibnbd_dev_sm_state_name(old), ibnbd_dev_sm_state_name(state),
				    dev->reason[0] ? ": " : "", dev->reason);
}

static bool dev_step(struct ibnbd_clt_dev *dev, enum ibnbd_dev_event ev,
		     const struct ibnbd_clt_grant *g)
{
	struct ibnbd_dev_step step = ibnbd_dev_sm_step(dev->state, ev);
	enum ibnbd_dev_state old = dev->state;

	if (!step.taken)
		return false;
	trace_ibnbd_clt_dev_state(dev, ev, &step);
	if (dev_do(dev, step.actions & IBNBD_DEV_DO_BEFORE, old, g)) {
		ibnbd_clt_dev_say(dev, "the block layer refuses the disk's new limits");
		dev_step(dev, IBNBD_DEV_EV_FENCE, NULL);
		dev_start(dev);
		return false;
	}
	dev_enter(dev, step.state);
	dev_do(dev, step.actions & ~IBNBD_DEV_DO_BEFORE, old, g);
	return true;
}

/*
 * A holder of dev->lock must not wait for memory that is reclaimed by writing to this disk, because
 * the recovery of this disk needs the lock.
 */
bool ibnbd_clt_dev_post(struct ibnbd_clt_dev *dev, enum ibnbd_dev_event ev,
			const struct ibnbd_clt_grant *g)
{
	lockdep_assert_held(&dev->lock);
	guard(noio)();
	return dev_step(dev, ev, g);
}

/*
 * The disk is shown. hold= counts from here on, also if the link went down before. udev stops
 * watching a disk while it handles a uevent of it, so ADD, which finds the disk open, is the only
 * one: what the administrator writes next is noticed.
 */
void ibnbd_clt_dev_added(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	dev->shown = IBNBD_CLT_SHOWN_DISK;
	if (dev->uevent != KOBJ_ADD)
		ibnbd_clt_disk_uevent(dev, dev->uevent);
	if (ibnbd_dev_sm_waits(dev->state))
		ibnbd_clt_dev_arm(dev);
}

/* ---- link news ---- */

void ibnbd_clt_dev_lose(struct ibnbd_clt_dev *dev, const char *why)
{
	ibnbd_clt_dev_remote(dev, IBNBD_OPEN_EV_LOST);
	if (dev->state != IBNBD_DEV_OPEN && dev->state != IBNBD_DEV_REPLAYING)
		return;
	ibnbd_clt_dev_say(dev, "%s", why);
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_LINK_DOWN, NULL);
}

void ibnbd_clt_dev_link_down(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	ibnbd_clt_dev_lose(dev, "no path to the server is up");
}

void ibnbd_clt_dev_link_up(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->state == IBNBD_DEV_FENCED && ibnbd_open_sm_owes(dev->remote))
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_CLOSE);
	if (!ibnbd_dev_sm_waits(dev->state) && dev->state != IBNBD_DEV_FAILED)
		return;
	ibnbd_clt_dev_say(dev, "waiting for the server to open the disk again");
}
