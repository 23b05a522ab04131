// SPDX-License-Identifier: GPL-2.0-only
/*
 * A mapped device: its state, its timers, what an administrator may do to it.
 *
 * Called by: ctl.c (alloc, show, unmap), open.c (post), session.c (link news), queue.c (tell), sysfs.c (unmap, resize, hold).
 *
 * The state is written by ibnbd_clt_dev_post() alone, under dev->lock, as logic/dev_sm.h says: state and event give the next state and a set of actions.
 * What a request meets in queue_rq is the *gate*, which follows from the state. The queue is quiesced while I/O is held, and while
 * device id and limits change.
 *
 * News that need a message, or come from where nothing may sleep, are bits in dev->news; one work per device does them. Messages are never
 * exchanged under dev->lock (see open.c), so that the timers and `unmap force` are not behind a slow server.
 *
 *	link down	held; after hold= seconds failed: what is parked ends, new I/O ends at once. What was held before, and has not been completed in
 *			between, has been held all the time
 *	link up		re-OPEN; limits and identity are compared; the same disk: device id into the parked requests, replay. Another disk, or
 *			a server that says no for good: fenced. No answer for 10 s while the session is up: failed (L4), and asked again.
 *	unmap		ends what is held, then the removal work (remove.c)
 *
 * L8: when a write was given up that the server may still execute, the device takes no writes until it can not (asked with each OPEN, every half
 * second), or an administrator remaps it. Our server can be told: see open.c.
 *
 * Locking: open_lock > lock; session->lock > lock. Under dev->lock, and in the works, memory is allocated NOIO: it may be reclaimed by writing to
 * this very disk.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "ibnbd/client/ctl.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/number.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/queue.h"
#include "ibnbd/client/remove.h"
#include "ibnbd/client/trace.h"
#include "ibnbd/logic/linkname.h"

#define DEV_LATE		(10 * HZ)	/* L4 */
#define DEV_REPLAY_RETRY	(HZ / 50 ?: 1)
#define DEV_SWEEP		(HZ / 10 ?: 1)
#define DEV_SETTLE		(HZ / 2)	/* L8 */
#define DEV_LIMITS		(HZ / 5)	/* somebody is changing limits in sysfs */

static struct workqueue_struct *dev_wq;		/* news and timers */

int ibnbd_clt_dev_init(void)
{
	dev_wq = alloc_workqueue("ibnbd-clt-dev", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return dev_wq ? 0 : -ENOMEM;
}

void ibnbd_clt_dev_exit(void)
{
	destroy_workqueue(dev_wq);
}

void ibnbd_clt_dev_tell(struct ibnbd_clt_dev *dev, enum ibnbd_clt_news news)
{
	set_bit(news, &dev->news);
	mod_delayed_work(dev_wq, &dev->work, 0);
}

/* Sooner, when the work runs for another reason. */
void ibnbd_clt_dev_ask_later(struct ibnbd_clt_dev *dev, unsigned long delay)
{
	set_bit(IBNBD_CLT_NEWS_OPEN, &dev->news);
	queue_delayed_work(dev_wq, &dev->work, delay);
}

/* ---- state ---- */

void ibnbd_clt_dev_say(struct ibnbd_clt_dev *dev, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vscnprintf(dev->reason, sizeof(dev->reason), fmt, args);
	va_end(args);
}

static u8 dev_gate(const struct ibnbd_clt_dev *dev)
{
	if (ibnbd_dev_sm_submits(dev->state))
		return dev->no_writes ? IBNBD_CLT_GATE_NO_WRITES : IBNBD_CLT_GATE_OPEN;
	return ibnbd_dev_sm_holds(dev->state) ? IBNBD_CLT_GATE_HOLD : IBNBD_CLT_GATE_FAIL;
}

static void dev_stop(struct ibnbd_clt_dev *dev)
{
	if (!dev->disk || dev->stopped)
		return;
	dev->stopped = true;
	blk_mq_quiesce_queue_nowait(dev->disk->queue);
}

/* Nobody is in queue_rq any more. */
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
}

/* Requests were given up that the server may still execute. */
static void dev_left(struct ibnbd_clt_dev *dev, enum ibtrs_clt_left left)
{
	dev->gave_up |= left != IBTRS_LEFT_NOTHING;
	dev->no_writes |= left == IBTRS_LEFT_WRITES;
}

bool ibnbd_clt_dev_abort(struct ibnbd_clt_dev *dev)
{
	dev_left(dev, ibnbd_clt_queue_abort(dev));
	return ibnbd_clt_queue_busy(dev);
}

/*
 * The gate is shut: wait for those who passed it before, end what is parked, and let the queue run into the gate. What is still in flight
 * on a path that dies gets parked later: sweep until nothing is left.
 */
static void dev_fail(struct ibnbd_clt_dev *dev)
{
	if (!dev->disk)
		return;
	dev_stop(dev);
	dev_stop_wait(dev);
	if (ibnbd_clt_dev_abort(dev))
		queue_delayed_work(dev_wq, &dev->sweep_work, DEV_SWEEP);
	dev_start(dev);
}

static void dev_replay(struct ibnbd_clt_dev *dev)
{
	if (dev->disk && ibnbd_clt_queue_replay(dev))
		queue_delayed_work(dev_wq, &dev->sweep_work, DEV_REPLAY_RETRY);
}

/* L15: nothing is held before add_disk() has read the partition table. */
static int dev_hold_seconds(const struct ibnbd_clt_dev *dev)
{
	return dev->added ? READ_ONCE(dev->map.hold) : 0;
}

void ibnbd_clt_dev_arm(struct ibnbd_clt_dev *dev)
{
	unsigned long end = dev->held_since + secs_to_jiffies(max(dev_hold_seconds(dev), 0));

	dev->hold_armed = dev_hold_seconds(dev) >= 0;
	if (dev->hold_armed)
		mod_delayed_work(dev_wq, &dev->hold_work, time_after(end, jiffies) ? end - jiffies : 0);
	else
		cancel_delayed_work(&dev->hold_work);
	/* What is held waits in the block layer, where the transport does not see it. */
	ibtrs_clt_want(dev->sess->clt, dev->hold_armed ? dev_hold_seconds(dev) : INT_MAX);
}

static void dev_settle(struct ibnbd_clt_dev *dev)
{
	dev->no_writes = false;
	if (dev->state == IBNBD_DEV_OPEN)
		pr_info("ibnbd%d: what was given up has ended: takes writes again\n", dev->index);
}

/* Take over the server's answer, in the middle of a step. What does not fit it any more ends (L2). */
static int dev_commit(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	bool anew = ibnbd_clt_open_is_new(dev, g);
	int err;

	dev_stop_wait(dev);
	err = ibnbd_clt_disk_commit(dev, g);
	if (err)
		return err;
	if (anew)
		dev->gave_up = false;
	if (dev->no_writes && (anew || ibtrs_clt_settled(dev->sess->clt)))
		dev_settle(dev);
	if (dev->disk)
		dev_left(dev, ibnbd_clt_queue_abort_larger(dev, g->lim.max_hw_sectors << SECTOR_SHIFT));
	if (dev->no_writes)
		ibnbd_clt_dev_ask_later(dev, DEV_SETTLE);
	if (dev->limits_due)
		ibnbd_clt_dev_ask_later(dev, DEV_LIMITS);
	return 0;
}

static bool dev_step(struct ibnbd_clt_dev *dev, enum ibnbd_dev_event ev, const struct ibnbd_clt_grant *g)
{
	struct ibnbd_dev_step step = ibnbd_dev_sm_step(dev->state, ev);
	enum ibnbd_dev_state old = dev->state;

	if (!step.taken)
		return false;
	trace_ibnbd_clt_dev_state(dev, ev, &step);
	if (step.actions & IBNBD_DEV_DO_STOP)
		dev_stop(dev);
	if (g && dev_commit(dev, g)) {
		ibnbd_clt_dev_say(dev, "the block layer refuses the disk's new limits");
		dev_step(dev, IBNBD_DEV_EV_FENCE, NULL);
		dev_start(dev);
		return false;
	}
	WRITE_ONCE(dev->state, step.state);
	WRITE_ONCE(dev->gate, dev_gate(dev));
	if (step.state == IBNBD_DEV_OPEN)
		ibnbd_clt_dev_say(dev, "%s", dev->no_writes ? "no writes yet: one was given up that the server may still execute" : "");
	if (step.state != old && old != IBNBD_DEV_INIT)
		pr_info_ratelimited("ibnbd%d: %s of %s: %s -> %s%s%s\n", dev->index, dev->map.device_path,
				    dev->map.sessname, ibnbd_dev_sm_state_name(old),
				    ibnbd_dev_sm_state_name(step.state), dev->reason[0] ? ": " : "",
				    dev->reason);

	if (step.actions & IBNBD_DEV_DO_DISARM)
		dev->hold_armed = false;
	if (step.actions & IBNBD_DEV_DO_ARM) {
		dev->held_since = ibnbd_clt_queue_held_since(dev);
		ibnbd_clt_dev_arm(dev);
	}
	if (step.actions & IBNBD_DEV_DO_FAIL)
		dev_fail(dev);
	if (step.actions & IBNBD_DEV_DO_RESUME) {
		if (old != IBNBD_DEV_OPEN)
			dev->resumed_ns = ktime_get_ns();
		dev_replay(dev);
		dev_start(dev);
	}
	if (step.actions & IBNBD_DEV_DO_OFFLINE)
		ibnbd_clt_disk_uevent(dev, KOBJ_OFFLINE);
	if (step.actions & IBNBD_DEV_DO_ONLINE)
		ibnbd_clt_disk_uevent(dev, KOBJ_ONLINE);
	/* The removal sends its own CLOSE, after the drain; a device that never had a disk is removed too. */
	if (step.state == IBNBD_DEV_UNMAPPED)
		ibnbd_clt_remove_start(dev);
	else if (step.actions & IBNBD_DEV_DO_CLOSE)
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_CLOSE);
	return true;
}

/* Who holds dev->lock must not wait for memory that is reclaimed by writing to this disk: its own recovery waits for the lock. */
bool ibnbd_clt_dev_post(struct ibnbd_clt_dev *dev, enum ibnbd_dev_event ev, const struct ibnbd_clt_grant *g)
{
	unsigned int noio = memalloc_noio_save();
	bool taken;

	lockdep_assert_held(&dev->lock);
	taken = dev_step(dev, ev, g);
	memalloc_noio_restore(noio);
	return taken;
}

/* ---- timers and link news ---- */

static void dev_hold_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(to_delayed_work(work), struct ibnbd_clt_dev, hold_work);
	unsigned int noio = memalloc_noio_save();
	unsigned long end;

	mutex_lock(&dev->lock);
	end = dev->held_since + secs_to_jiffies(max(dev_hold_seconds(dev), 0));
	if (dev->hold_armed && dev->state == IBNBD_DEV_CLOSED && time_after_eq(jiffies, end)) {
		ibnbd_clt_dev_say(dev, "the server was out of reach for hold=%d seconds", dev_hold_seconds(dev));
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_HOLD_EXPIRED, NULL);
	}
	mutex_unlock(&dev->lock);
	memalloc_noio_restore(noio);
}

static void dev_late_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(to_delayed_work(work), struct ibnbd_clt_dev, late_work);
	unsigned int noio = memalloc_noio_save();
	char why[IBNBD_CLT_REASON_LEN];

	mutex_lock(&dev->lock);
	if (dev->state == IBNBD_DEV_CLOSED && ibnbd_clt_link_up(dev->sess) &&
	    time_after_eq(jiffies, dev->late_end)) {
		strscpy(why, dev->reason, sizeof(why));
		ibnbd_clt_dev_say(dev, "%s, for %d seconds", why, DEV_LATE / HZ);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_OPEN_LATE, NULL);
	}
	mutex_unlock(&dev->lock);
	memalloc_noio_restore(noio);
}

/* L4; dev->lock is held. */
static void dev_arm_late(struct ibnbd_clt_dev *dev)
{
	dev->late_end = jiffies + DEV_LATE;
	mod_delayed_work(dev_wq, &dev->late_work, DEV_LATE);
}

/* I/O waits from now on; dev->lock is held. With hold=0 the timer expires at once. */
static void dev_lose(struct ibnbd_clt_dev *dev, const char *why)
{
	WRITE_ONCE(dev->served, false);
	dev->asked = false;
	if (dev->state != IBNBD_DEV_OPEN)
		return;
	ibnbd_clt_dev_say(dev, "%s", why);
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_LINK_DOWN, NULL);
}

void ibnbd_clt_dev_link_down(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	cancel_delayed_work(&dev->late_work);
	dev_lose(dev, "no path to the server is up");
}

void ibnbd_clt_dev_link_up(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_CLOSED && dev->state != IBNBD_DEV_FAILED)
		return;
	ibnbd_clt_dev_say(dev, "waiting for the server to open the disk again");
	dev_arm_late(dev);
}

/* ---- news ---- */

static void dev_take_strays(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (!dev->disk)
		return;
	if (dev->state == IBNBD_DEV_OPEN && !ibnbd_clt_queue_unknown(dev)) {
		dev_replay(dev);
	} else if (dev->state == IBNBD_DEV_OPEN) {
		dev_lose(dev, "the server does not know the device any more");
		dev_arm_late(dev);
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_OPEN);
	} else if (dev->state != IBNBD_DEV_CLOSED) {
		ibnbd_clt_dev_abort(dev);
	}
}

/* What could not be replayed, or was parked after its device had failed. */
static void dev_sweep_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(to_delayed_work(work), struct ibnbd_clt_dev, sweep_work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&dev->lock);
	if (dev->state == IBNBD_DEV_OPEN)
		dev_replay(dev);
	else if (dev->state == IBNBD_DEV_FAILED || dev->state == IBNBD_DEV_FENCED)
		if (ibnbd_clt_dev_abort(dev))
			queue_delayed_work(dev_wq, &dev->sweep_work, DEV_SWEEP);
	mutex_unlock(&dev->lock);
	memalloc_noio_restore(noio);
}

static void dev_revoke(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN && dev->state != IBNBD_DEV_CLOSED && dev->state != IBNBD_DEV_FAILED)
		return;
	ibnbd_clt_dev_say(dev, "the server closed the export");
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
}

static void dev_break_slow(struct ibnbd_clt_dev *dev)
{
	unsigned int seconds = READ_ONCE(dev->map.io_timeout);

	if (seconds)
		ibnbd_clt_queue_break(dev, seconds, "a request was not answered within io_timeout");
}

/*
 * Path after path took the request and lost it, and the session was never without one. The same happens as when hold= is over without a path; the server
 * is there, so the device is soon opened again, which sees to what may still be executed (L8).
 */
static void dev_end_overdue(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN || !ibnbd_clt_queue_break_overdue(dev, "a request was lost again and again, for hold= seconds"))
		return;
	dev_lose(dev, "the server was reached, but no path brought an answer");
	ibnbd_clt_dev_say(dev, "no path brought an answer for hold=%d seconds", dev_hold_seconds(dev));
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_HOLD_EXPIRED, NULL);
	ibnbd_clt_dev_ask_later(dev, DEV_SETTLE);
}

static void dev_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(to_delayed_work(work), struct ibnbd_clt_dev, work);
	unsigned int noio = memalloc_noio_save();
	unsigned long news = xchg(&dev->news, 0);

	if (news & BIT(IBNBD_CLT_NEWS_REVOKED))
		dev_revoke(dev);
	if (news & BIT(IBNBD_CLT_NEWS_STRAY))
		dev_take_strays(dev);
	if (news & BIT(IBNBD_CLT_NEWS_SLOW))
		dev_break_slow(dev);
	if (news & BIT(IBNBD_CLT_NEWS_OVERDUE))
		dev_end_overdue(dev);
	if (news & BIT(IBNBD_CLT_NEWS_CLOSE))
		ibnbd_clt_open_close(dev, IBNBD_DEV_FENCED);
	if (news & BIT(IBNBD_CLT_NEWS_REPLAY))
		mod_delayed_work(dev_wq, &dev->sweep_work, 0);
	if (news & (BIT(IBNBD_CLT_NEWS_OPEN) | BIT(IBNBD_CLT_NEWS_RESIZED)))
		ibnbd_clt_open_again(dev, news & BIT(IBNBD_CLT_NEWS_RESIZED));
	memalloc_noio_restore(noio);
}

/* ---- what an administrator may do ---- */

void ibnbd_clt_dev_show(struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&dev->lock);
	pr_info("ibnbd%d: %s of %s, %llu sectors of 512 bytes\n", dev->index, dev->map.device_path,
		dev->map.sessname, dev->grant.lim.nsectors);
	if (dev->state == IBNBD_DEV_OPEN)
		ibnbd_clt_disk_uevent(dev, KOBJ_ONLINE);
}

int ibnbd_clt_dev_resize(struct ibnbd_clt_dev *dev, u64 sectors)
{
	unsigned int noio;

	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_OPEN || !dev->added)
		return -ENOENT;
	if (!sectors || sectors >= IBNBD_MAX_SECTORS ||
	    sectors & ((dev->grant.lim.logical_block_size >> SECTOR_SHIFT) - 1))
		return ibnbd_clt_ctl_refuse(-EINVAL, "ibnbd%d: resize: not a number of whole logical blocks of %u bytes",
					    dev->index, dev->grant.lim.logical_block_size);
	/* From now on it may hold data: it does not become just any disk any more. */
	if (!dev->grant.rsp.nsectors)
		dev->grant.rsp.nsectors = sectors;
	noio = memalloc_noio_save();
	ibnbd_clt_disk_set_capacity(dev, sectors);
	memalloc_noio_restore(noio);
	return 0;
}

void ibnbd_clt_dev_set_hold(struct ibnbd_clt_dev *dev, int seconds)
{
	guard(mutex)(&dev->lock);
	WRITE_ONCE(dev->map.hold, seconds);
	if (dev->state == IBNBD_DEV_CLOSED)
		ibnbd_clt_dev_arm(dev);
}

int ibnbd_clt_dev_unmap(struct ibnbd_clt_dev *dev, bool force)
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

/* ---- life ---- */

struct ibnbd_clt_dev *ibnbd_clt_dev_alloc(const struct ibnbd_map *m)
{
	struct ibnbd_clt_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->leaves = kzalloc(sizeof(*dev->leaves), GFP_KERNEL);
	if (!dev->leaves) {
		kfree(dev);
		return ERR_PTR(-ENOMEM);
	}
	dev->index = -1;
	dev->map = *m;
	ibnbd_linkname_dev(dev->map.device_path, dev->map.sessname, dev->link, sizeof(dev->link));
	dev->state = IBNBD_DEV_INIT;
	dev->gate = IBNBD_CLT_GATE_FAIL;
	mutex_init(&dev->open_lock);
	mutex_init(&dev->lock);
	INIT_DELAYED_WORK(&dev->work, dev_work);
	INIT_DELAYED_WORK(&dev->hold_work, dev_hold_work);
	INIT_DELAYED_WORK(&dev->late_work, dev_late_work);
	INIT_DELAYED_WORK(&dev->sweep_work, dev_sweep_work);
	ibnbd_clt_disk_init(dev);
	ibnbd_clt_remove_init(dev);
	init_completion(&dev->mapped);
	INIT_LIST_HEAD(&dev->sess_entry);
	return dev;
}

void ibnbd_clt_dev_free(struct ibnbd_clt_dev *dev)
{
	if (dev->number)
		ibnbd_clt_number_put(dev->number);
	mutex_destroy(&dev->open_lock);
	mutex_destroy(&dev->lock);
	kfree(dev->leaves);
	kfree(dev);
}
