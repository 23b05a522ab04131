// SPDX-License-Identifier: GPL-2.0-only
/*
 * The legs of a mirror, which know of each other (docs/design.md, decision 21).
 *
 * `logic/dev_sm` decides, and recover.c has the timer. `in_sync` is what the mirror says of its
 * leg, through sysfs; the driver clears it when the leg has let a request fail.
 *
 * Locking: group_lock protects the list of legs and is the innermost lock. A leg reads state and
 * in_sync of another one without its lock: the news of each change comes after the change.
 */
#include "ibnbd/client/dev_state.h"

static DEFINE_SPINLOCK(group_lock);
static LIST_HEAD(group_legs);

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
