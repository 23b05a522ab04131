/* SPDX-License-Identifier: GPL-2.0-only */
/* The disk of a device, its number and its openers. */
#ifndef IBNBD_CLIENT_DISK_H
#define IBNBD_CLIENT_DISK_H

#include "ibnbd/client/dev.h"

/*
 * When a link flaps, udev must not run all its rules each time: at most BURST uevents (offline and
 * online) are sent at once within SPAN, then one per EVERY.
 */
#define IBNBD_CLT_UEVENT_SPAN	(10 * HZ)
#define IBNBD_CLT_UEVENT_BURST	10
#define IBNBD_CLT_UEVENT_EVERY	HZ

/* sysfs.c: the directory ibnbd/ of each disk, for device_add_disk(). */
extern const struct attribute_group *ibnbd_clt_sysfs_groups[];

/* The work of dev->uevent_work. */
void ibnbd_clt_disk_uevent_work(struct work_struct *work);
/* Under dev->lock: allocates the disk with the limits of dev->grant; it is not shown yet. */
int ibnbd_clt_disk_alloc(struct ibnbd_clt_dev *dev);
/* Shows the disk. This reads the partition table, so it is called without dev->lock. */
int ibnbd_clt_disk_add(struct ibnbd_clt_dev *dev);
/*
 * For the removal only: all requests have ended. The number is freed when no opener has the disk
 * any more; waits for that, for a limited time.
 */
void ibnbd_clt_disk_del(struct ibnbd_clt_dev *dev);

/*
 * Under dev->lock, queue quiesced: the disk uses @g from now on. 0, or the error of the block
 * layer; nothing has changed then.
 */
int ibnbd_clt_disk_commit(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/* Under dev->lock. The uevent RESIZE=1 follows when the lock is free. */
void ibnbd_clt_disk_set_capacity(struct ibnbd_clt_dev *dev, u64 sectors);
/*
 * Queues KOBJ_ONLINE or KOBJ_OFFLINE, with IBNBD_STATE and IBNBD_REASON; before the disk is shown
 * notes it for ibnbd_clt_dev_added(). dev->lock is held. A work sends the uevent, and only the last
 * if several are due: a sender of uevents waits for memory, and for other senders that wait for
 * memory, and so perhaps for this disk. For the same reason that work tells of a new size or
 * read-only flag.
 */
void ibnbd_clt_disk_uevent(struct ibnbd_clt_dev *dev, enum kobject_action action);
/*
 * Under dev->lock: the server has answered OPEN with @g. If another client has written since the
 * answer that the disk uses, and this was not counted yet: counts it, and tells it in the same way,
 * by KOBJ_CHANGE with IBNBD_OTHER_WRITERS.
 */
void ibnbd_clt_disk_other_writer(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);

/* Module exit: waits until the last disk has been released. */
void ibnbd_clt_number_exit(void);

/**
 * ibnbd_clt_number_take() - give a device the lowest free number
 * @dev: gets dev->number and dev->index
 *
 * Return: 0 or a negative errno.
 */
int ibnbd_clt_number_take(struct ibnbd_clt_dev *dev);

/* References to the memory; they do not keep the number taken. */
struct ibnbd_clt_number *ibnbd_clt_number_get(struct ibnbd_clt_number *n);
void ibnbd_clt_number_put(struct ibnbd_clt_number *n);

/* The device. For the attributes of its disk: they are deleted before the device is. */
struct ibnbd_clt_dev *ibnbd_clt_number_dev(const struct ibnbd_clt_number *n);

int ibnbd_clt_number_openers(const struct ibnbd_clt_number *n);
/* True: the disk is not open, and cannot be opened from now on. False: it is open. */
bool ibnbd_clt_number_claim(struct ibnbd_clt_number *n);

/*
 * Wait, killable, until the disk is deleted, and for the end of ibnbd_clt_disk_del(). Return: 0 or
 * -EINTR.
 */
int ibnbd_clt_number_wait_deleted(struct ibnbd_clt_number *n);
int ibnbd_clt_number_wait_settled(struct ibnbd_clt_number *n);

#endif
