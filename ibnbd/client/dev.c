// SPDX-License-Identifier: GPL-2.0-only
/*
 * A mapped device as an object: its memory, its news, its reason, the other legs of its mirror.
 * dev_state.c has its state, recover.c its works.
 *
 * News that requires a message, or that comes from a context which may not sleep, is a bit in
 * dev->news; one work per device acts on it.
 *
 * The legs of a mirror know of each other (docs/design.md, decision 21). `logic/dev_sm` decides,
 * and recover.c has the timer. `in_sync` is what the mirror says of its leg, through sysfs; the
 * driver clears it when the leg has let a request fail.
 *
 * Locking: group_lock protects the list of legs and is the innermost lock. A leg reads state and
 * in_sync of another one without its lock: the news of each change comes after the change.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include "ibnbd/client/dev.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/recover.h"
#include "ibnbd/logic/text.h"

/*
 * However often a server reports a new size, it is asked once a second at most: each answer may
 * cause a uevent, a line in the log and a scan for partitions.
 */
#define DEV_RESIZE_EVERY	HZ

static DEFINE_SPINLOCK(group_lock);
static LIST_HEAD(group_legs);

void ibnbd_clt_dev_tell(struct ibnbd_clt_dev *dev, enum ibnbd_clt_news news)
{
	set_bit(news, &dev->news);
	mod_delayed_work(ibnbd_clt_dev_wq, &dev->work, 0);
}

void ibnbd_clt_dev_resized(struct ibnbd_clt_dev *dev)
{
	unsigned long left = ibnbd_clt_dev_left(READ_ONCE(dev->resize_next), DEV_RESIZE_EVERY);

	set_bit(IBNBD_CLT_NEWS_RESIZED, &dev->news);
	if (left)	/* a work that is already queued keeps its time */
		queue_delayed_work(ibnbd_clt_dev_wq, &dev->work, left);
	else
		mod_delayed_work(ibnbd_clt_dev_wq, &dev->work, 0);
}

bool ibnbd_clt_dev_takes_resized(struct ibnbd_clt_dev *dev)
{
	if (ibnbd_clt_dev_left(dev->resize_next, DEV_RESIZE_EVERY))
		return false;
	WRITE_ONCE(dev->resize_next, jiffies + DEV_RESIZE_EVERY);
	return true;
}

/* OPEN is sent sooner if the work runs sooner for another reason. */
void ibnbd_clt_dev_ask_later(struct ibnbd_clt_dev *dev, unsigned long delay)
{
	set_bit(IBNBD_CLT_NEWS_OPEN, &dev->news);
	queue_delayed_work(ibnbd_clt_dev_wq, &dev->work, delay);
}

void ibnbd_clt_dev_say(struct ibnbd_clt_dev *dev, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vscnprintf(dev->reason, sizeof(dev->reason), fmt, args);
	va_end(args);
}

struct ibnbd_clt_dev *ibnbd_clt_dev_alloc(const struct ibnbd_map *m)
{
	struct ibnbd_clt_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	mutex_init(&dev->open_lock);
	mutex_init(&dev->lock);
	dev->unclosed = kzalloc(sizeof(*dev->unclosed), GFP_KERNEL);
	dev->wrote = alloc_percpu(u64);
	if (!dev->unclosed || !dev->wrote) {
		ibnbd_clt_dev_free(dev);
		return NULL;
	}
	dev->index = -1;
	dev->map = *m;
	ibnbd_linkname_dev(dev->map.device_path, dev->map.sessname, dev->link, sizeof(dev->link));
	dev->state = IBNBD_DEV_INIT;
	dev->gate = IBNBD_CLT_GATE_FAIL;
	INIT_DELAYED_WORK(&dev->work, ibnbd_clt_recover_work);
	INIT_DELAYED_WORK(&dev->hold_work, ibnbd_clt_recover_hold_work);
	INIT_DELAYED_WORK(&dev->group_work, ibnbd_clt_recover_group_work);
	INIT_DELAYED_WORK(&dev->sweep_work, ibnbd_clt_recover_sweep_work);
	INIT_DELAYED_WORK(&dev->flush_work, ibnbd_clt_replay_flush_work);
	dev->resize_next = jiffies;
	ratelimit_state_init(&dev->uevent_limit, IBNBD_CLT_UEVENT_SPAN, IBNBD_CLT_UEVENT_BURST);
	ratelimit_set_flags(&dev->uevent_limit, RATELIMIT_MSG_ON_RELEASE);	/* no messages */
	dev->resize_tell = jiffies;
	INIT_DELAYED_WORK(&dev->uevent_work, ibnbd_clt_disk_uevent_work);
	INIT_WORK(&dev->remove_work, ibnbd_clt_recover_remove_work);
	init_completion(&dev->mapped);
	spin_lock_init(&dev->kept_lock);
	rwlock_init(&dev->kept_copying);
	ibnbd_kept_init(&dev->kept);
	INIT_LIST_HEAD(&dev->sess_entry);
	INIT_LIST_HEAD(&dev->group_entry);
	return dev;
}

void ibnbd_clt_dev_remote(struct ibnbd_clt_dev *dev, enum ibnbd_open_event ev)
{
	lockdep_assert_held(&dev->lock);
	WRITE_ONCE(dev->remote, ibnbd_open_sm_step(dev->remote, ev));
}

void ibnbd_clt_dev_free(struct ibnbd_clt_dev *dev)
{
	if (dev->number)
		ibnbd_clt_number_put(dev->number);
	mutex_destroy(&dev->open_lock);
	mutex_destroy(&dev->lock);
	free_percpu(dev->wrote);
	kfree(dev->unclosed);
	kfree(dev);
}

void ibnbd_clt_group_join(struct ibnbd_clt_dev *dev)
{
	if (!dev->map.group[0])
		return;
	guard(spinlock_irqsave)(&group_lock);
	list_add_tail(&dev->group_entry, &group_legs);
}

void ibnbd_clt_group_leave(struct ibnbd_clt_dev *dev)
{
	guard(spinlock_irqsave)(&group_lock);
	list_del_init(&dev->group_entry);
}

void ibnbd_clt_group_changed(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_dev *leg;

	if (!dev->map.group[0])
		return;
	guard(spinlock_irqsave)(&group_lock);
	list_for_each_entry(leg, &group_legs, group_entry)
		if (!strcmp(leg->map.group, dev->map.group))
			ibnbd_clt_dev_tell(leg, IBNBD_CLT_NEWS_GROUP);
}

bool ibnbd_clt_group_another(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_dev *leg;

	guard(spinlock_irqsave)(&group_lock);
	list_for_each_entry(leg, &group_legs, group_entry)
		if (leg != dev && !strcmp(leg->map.group, dev->map.group) &&
		    READ_ONCE(leg->state) == IBNBD_DEV_OPEN && READ_ONCE(leg->in_sync))
			return true;
	return false;
}
