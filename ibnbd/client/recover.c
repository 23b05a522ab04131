// SPDX-License-Identifier: GPL-2.0-only
/*
 * The works of a device, the last of which removes it, and what an administrator may do to it.
 *
 * Messages are never exchanged under dev->lock (see open.c), so that the timers and `unmap force`
 * never wait for a slow server. Works other than the removal allocate NOIO; those that only post an
 * event leave that to ibnbd_clt_dev_post().
 *
 * The removal drains, sends CLOSE, deletes the disk and frees. It is queued once, by the step to
 * "unmapped" in dev_state.c. Only this work frees a device that has got its number, and only after
 * map_device has finished with it. A task that unmaps may wait until disk and number are gone; it
 * waits outside of the attributes, which are deleted with the disk (L5). The work waits for nothing
 * that a dead server could withhold: parked requests end at once; requests in flight get some time,
 * then their paths are broken (L3). A CLOSE is sent before that, so that the server lets a path
 * come back although the disk has not answered. Without a link the session keeps the id, and sends
 * the CLOSE on the next link before it opens anything.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/recover.h"
#include "ibnbd/client/unflushed.h"

/* ---- timers ---- */

void ibnbd_clt_recover_hold_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev =
		container_of(to_delayed_work(work), struct ibnbd_clt_dev, hold_work);
	char why[IBNBD_CLT_REASON_LEN];
	int hold;

	guard(mutex)(&dev->lock);
	hold = ibnbd_clt_dev_hold_seconds(dev);
	if (hold >= 0 && ibnbd_dev_sm_waits(dev->state) &&
	    time_after_eq(jiffies, dev->held_since + secs_to_jiffies(hold))) {
		strscpy(why, dev->reason, sizeof(why));
		ibnbd_clt_dev_say(dev, "hold=%d is over: %s", hold, why);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_HOLD_EXPIRED, NULL);
	}
}

/* ---- the group rule (decision 21) ---- */

static void recover_group(struct ibnbd_clt_dev *dev)
{
	unsigned long wait = secs_to_jiffies(READ_ONCE(dev->map.failfast));

	lockdep_assert_held(&dev->lock);
	switch (ibnbd_dev_sm_group(dev->state, ibnbd_clt_group_another(dev))) {
	case IBNBD_DEV_GROUP_WAIT:
		/* A timer that runs keeps its time: the other leg has been there since then. */
		if (queue_delayed_work(ibnbd_clt_dev_wq, &dev->group_work, wait))
			dev->let_go_at = jiffies + wait;
		return;
	case IBNBD_DEV_GROUP_TAKE_BACK:
		ibnbd_clt_dev_say(dev, "no path to the server is up, and no other leg is there");
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_TAKE_BACK, NULL);
		break;
	case IBNBD_DEV_GROUP_NOTHING:
		break;
	}
	cancel_delayed_work(&dev->group_work);
}

void ibnbd_clt_recover_group_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev =
		container_of(to_delayed_work(work), struct ibnbd_clt_dev, group_work);

	guard(mutex)(&dev->lock);
	/* The time may have been stopped while this work waited for the lock. */
	if (ibnbd_dev_sm_group(dev->state, ibnbd_clt_group_another(dev)) == IBNBD_DEV_GROUP_WAIT &&
	    time_after_eq(jiffies, dev->let_go_at)) {
		ibnbd_clt_dev_say(dev,
				  "failfast=%d is over and another leg of %s is there: the mirror goes on without this one",
				  dev->map.failfast, dev->map.group);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_LET_GO, NULL);
	}
}

/* ---- news ---- */

#define RECOVER_STRAY	"the server does not know the device any more"

static void recover_reopen(struct ibnbd_clt_dev *dev, const char *why)
{
	lockdep_assert_held(&dev->lock);
	ibnbd_clt_dev_lose(dev, why);
	ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_OPEN);
}

/*
 * The writes that a failed flush should have covered may be lost. The disk is opened again, and the
 * loss is judged as after a loss of power (judge.c).
 */
static void recover_flush(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (!dev->disk || dev->state != IBNBD_DEV_OPEN)
		return;
	recover_reopen(dev, READ_ONCE(dev->flush_failed) ? "a flush has failed on the server" :
							   RECOVER_STRAY);
}

static void recover_strays(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->disk && dev->state == IBNBD_DEV_OPEN && ibnbd_clt_inflight_unknown(dev))
		recover_reopen(dev, RECOVER_STRAY);
	else
		mod_delayed_work(ibnbd_clt_dev_wq, &dev->sweep_work, 0);
}

/* Handles requests that strayed, or could not be replayed, or were parked on a failed device. */
void ibnbd_clt_recover_sweep_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev =
		container_of(to_delayed_work(work), struct ibnbd_clt_dev, sweep_work);

	guard(noio)();
	guard(mutex)(&dev->lock);
	if (dev->state == IBNBD_DEV_OPEN)
		ibnbd_clt_dev_replay(dev);
	else if (dev->state == IBNBD_DEV_FAILFAST)
		ibnbd_clt_dev_let_go(dev);
	else if (dev->state == IBNBD_DEV_FAILED || dev->state == IBNBD_DEV_FENCED)
		if (ibnbd_clt_inflight_abort(dev))
			queue_delayed_work(ibnbd_clt_dev_wq, &dev->sweep_work, IBNBD_CLT_SWEEP);
}

static void recover_revoked(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN && !ibnbd_dev_sm_holds(dev->state) &&
	    dev->state != IBNBD_DEV_FAILED)
		return;
	ibnbd_clt_dev_say(dev, "the server closed the export");
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
}

static void recover_slow(struct ibnbd_clt_dev *dev)
{
	unsigned int seconds = READ_ONCE(dev->map.io_timeout);

	if (seconds)
		ibnbd_clt_inflight_break(dev, seconds,
					 "a request was not answered within io_timeout");
}

/*
 * Several paths, one after the other, took the request and lost it, while the session always had a
 * path. The device fails, as it does when hold= is over without a path. The server is reachable, so
 * the device is soon opened again; the re-OPEN also deals with what may still be executed (L8).
 */
static void recover_overdue(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN ||
	    !ibnbd_clt_inflight_break_overdue(dev,
					   "a request was lost again and again, for hold= seconds"))
		return;
	ibnbd_clt_dev_lose(dev, "the server was reached, but no path brought an answer");
	ibnbd_clt_dev_say(dev, "no path brought an answer for hold=%d seconds",
			  ibnbd_clt_dev_hold_seconds(dev));
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_HOLD_EXPIRED, NULL);
	ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_SETTLE);
}

/* Until the server hears the CLOSE of a fenced device, it keeps the disk, maybe for writing. */
static void recover_close(struct ibnbd_clt_dev *dev)
{
	ibnbd_clt_open_close(dev, IBNBD_DEV_FENCED);
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_FENCED || !ibnbd_open_sm_owes(dev->remote) ||
	    !ibnbd_clt_link_up(dev->sess))
		return;
	set_bit(IBNBD_CLT_NEWS_CLOSE, &dev->news);
	ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_FAILED);
}

void ibnbd_clt_recover_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(to_delayed_work(work), struct ibnbd_clt_dev, work);
	unsigned long news = xchg(&dev->news, 0);

	guard(noio)();
	/* Too soon after the last one: RESIZED is handled later. */
	if (news & BIT(IBNBD_CLT_NEWS_RESIZED) && !ibnbd_clt_dev_takes_resized(dev)) {
		news &= ~BIT(IBNBD_CLT_NEWS_RESIZED);
		ibnbd_clt_dev_resized(dev);
	}
	if (news & BIT(IBNBD_CLT_NEWS_REVOKED))
		recover_revoked(dev);
	if (news & BIT(IBNBD_CLT_NEWS_FLUSH))
		recover_flush(dev);
	if (news & BIT(IBNBD_CLT_NEWS_STRAY))
		recover_strays(dev);
	if (news & BIT(IBNBD_CLT_NEWS_SLOW))
		recover_slow(dev);
	if (news & BIT(IBNBD_CLT_NEWS_OVERDUE))
		recover_overdue(dev);
	if (news & BIT(IBNBD_CLT_NEWS_CLOSE))
		recover_close(dev);
	if (news & BIT(IBNBD_CLT_NEWS_GROUP)) {
		guard(mutex)(&dev->lock);
		recover_group(dev);
	}
	if (news & BIT(IBNBD_CLT_NEWS_REPLAY))
		mod_delayed_work(ibnbd_clt_dev_wq, &dev->sweep_work, 0);
	if (news & (BIT(IBNBD_CLT_NEWS_OPEN) | BIT(IBNBD_CLT_NEWS_RESIZED)))
		ibnbd_clt_open_again(dev, news & BIT(IBNBD_CLT_NEWS_RESIZED));
}

/* ---- the removal ---- */

#define RECOVER_DRAIN		(5 * HZ)	/* what in-flight requests get on a healthy path */
#define RECOVER_DRAIN_AGAIN	HZ
#define RECOVER_DRAIN_POLL_MS	20

static void recover_drain(struct ibnbd_clt_dev *dev)
{
	unsigned long end = jiffies + RECOVER_DRAIN;
	bool busy = false;

	for (;;) {
		scoped_guard(mutex, &dev->lock)
			busy = ibnbd_clt_inflight_abort(dev);
		if (!busy)
			return;
		if (time_after(jiffies, end)) {
			pr_warn("ibnbd%d: unmap: requests are not answered, breaking their paths\n",
				dev->index);
			ibnbd_clt_open_give_up(dev);
			ibnbd_clt_inflight_break(dev, 0,
					      "a device with unanswered requests is unmapped");
			end = jiffies + RECOVER_DRAIN_AGAIN;
		}
		msleep(RECOVER_DRAIN_POLL_MS);
	}
}

void ibnbd_clt_recover_remove_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(work, struct ibnbd_clt_dev, remove_work);
	struct ibnbd_clt_session *s = dev->sess;

	if (dev->disk)
		recover_drain(dev);
	wait_for_completion(&dev->mapped);
	if (dev->shown == IBNBD_CLT_SHOWN_LINK)
		ibnbd_clt_names_unlink(dev);
	if (s)
		ibnbd_clt_open_close(dev, IBNBD_DEV_UNMAPPED);
	/*
	 * A task that sees the disk gone may unload the module: module exit waits for the rest of
	 * the work.
	 */
	module_put(THIS_MODULE);
	ibnbd_clt_disk_del(dev);
	/*
	 * No request, no attribute and, after the next call, no session queues a work of the
	 * device.
	 */
	if (s)
		ibnbd_clt_link_leave(s, dev);
	ibnbd_clt_group_leave(dev);
	cancel_delayed_work_sync(&dev->work);
	cancel_delayed_work_sync(&dev->group_work);
	cancel_delayed_work_sync(&dev->hold_work);
	cancel_delayed_work_sync(&dev->sweep_work);
	cancel_delayed_work_sync(&dev->flush_work);
	ibnbd_clt_kept_forget(dev, false);
	if (s && ibnbd_open_sm_owes(dev->remote))
		ibnbd_clt_link_unclosed(s, dev);
	if (s)
		ibnbd_clt_session_put(s);
	if (dev->disk)
		pr_info("ibnbd%d: removed\n", dev->index);
	ibnbd_clt_names_forget(dev);
	ibnbd_clt_dev_free(dev);
}

/* ---- what an administrator may do ---- */

void ibnbd_clt_recover_set_failfast(struct ibnbd_clt_dev *dev, int seconds)
{
	guard(mutex)(&dev->lock);
	WRITE_ONCE(dev->map.failfast, seconds);
	cancel_delayed_work(&dev->group_work);
	recover_group(dev);
}

int ibnbd_clt_recover_unmap(struct ibnbd_clt_dev *dev, bool force)
{
	guard(mutex)(&dev->lock);
	if (dev->state == IBNBD_DEV_UNMAPPED)
		return -EALREADY;
	/* While it is being mapped only the block layer itself has it open. */
	if (!force && !ibnbd_clt_number_claim(dev->number))
		return -EBUSY;
	ibnbd_clt_dev_say(dev, force ? "unmapped by force" : "unmapped");
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_UNMAP, NULL);
	return 0;
}
