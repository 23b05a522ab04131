/* SPDX-License-Identifier: GPL-2.0-only */
/* The disk of a device. */
#ifndef IBNBD_CLIENT_DISK_H
#define IBNBD_CLIENT_DISK_H

#include "ibnbd/client/dev.h"

/*
 * A link that flaps does not make udev run all its rules each time: of offline and online so many
 * come at once in a span, then one a second.
 */
#define IBNBD_CLT_UEVENT_SPAN	(10 * HZ)
#define IBNBD_CLT_UEVENT_BURST	10
#define IBNBD_CLT_UEVENT_EVERY	HZ

/* The work of dev->uevent_work. */
void ibnbd_clt_disk_uevent_work(struct work_struct *work);
/* Under dev->lock: a disk by dev->grant, not shown yet. */
int ibnbd_clt_disk_alloc(struct ibnbd_clt_dev *dev);
/* Show it; reads the partition table, so without dev->lock. */
int ibnbd_clt_disk_add(struct ibnbd_clt_dev *dev);
/*
 * Removal only: all requests have ended. The number is given back when nobody has the disk any
 * more.
 */
void ibnbd_clt_disk_del(struct ibnbd_clt_dev *dev);

/*
 * Under dev->lock, queue quiesced: the disk shall live by @g. 0 or the block layer's refusal;
 * nothing has changed then.
 */
int ibnbd_clt_disk_commit(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
void ibnbd_clt_disk_set_capacity(struct ibnbd_clt_dev *dev, u64 sectors);
/*
 * KOBJ_ONLINE, KOBJ_OFFLINE, with IBNBD_STATE and IBNBD_REASON; nothing before the disk is shown.
 * dev->lock is held. A work sends it, and of several that are due the last: a sender of uevents
 * waits for memory, and for others that do, and so, perhaps, for this disk.
 */
void ibnbd_clt_disk_uevent(struct ibnbd_clt_dev *dev, enum kobject_action action);

#endif
