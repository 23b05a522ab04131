// SPDX-License-Identifier: GPL-2.0-only
/*
 * The number of a disk, the N of /dev/ibnbdN: how long it is taken, and the openers of the disk. A
 * number outlives its device (docs/design.md 8.2); it is freed when the block layer releases the
 * disk.
 *
 * The memory has its own references: of the device, of the disk, and of each task that waits for
 * the removal. Module exit waits for the last one, since the block layer drops an opener's
 * reference to the module before its reference to the disk.
 *
 * Locking: n->dev is cleared under n->lock, and an open reads it under n->lock: on older kernels an
 * open that is already on its way may arrive after del_gendisk().
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include "ibnbd/client/dev.h"
#include "ibnbd/client/number.h"

#define NUMBER_RELEASE	(10 * HZ)	/* longer than a kernel that releases objects late takes */
#define NUMBER_CLOSE	HZ		/* udev has each disk open for a moment */

struct ibnbd_clt_number {
	refcount_t ref;
	int index;
	bool taken;			/* READ_ONCE */
	atomic_t openers;		/* negative: it may not be opened any more */
	struct completion deleted;	/* of the disk */
	struct completion settled;
	spinlock_t lock;		/* dev */
	struct ibnbd_clt_dev *dev;	/* NULL: removed */
};

static DEFINE_IDA(number_ida);
static DECLARE_WAIT_QUEUE_HEAD(number_waiters);
static atomic_t number_count = ATOMIC_INIT(0);

int ibnbd_clt_number_take(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_number *n __free(kfree) = kzalloc(sizeof(*n), GFP_KERNEL);

	if (!n)
		return -ENOMEM;
	n->index = ida_alloc(&number_ida, GFP_KERNEL);
	if (n->index < 0)
		return n->index;
	n->taken = true;
	n->dev = dev;
	refcount_set(&n->ref, 1);
	spin_lock_init(&n->lock);
	init_completion(&n->deleted);
	init_completion(&n->settled);
	atomic_inc(&number_count);
	WRITE_ONCE(dev->index, n->index);
	dev->number = no_free_ptr(n);
	return 0;
}

struct ibnbd_clt_number *ibnbd_clt_number_get(struct ibnbd_clt_number *n)
{
	refcount_inc(&n->ref);
	return n;
}

void ibnbd_clt_number_put(struct ibnbd_clt_number *n)
{
	if (!refcount_dec_and_test(&n->ref))
		return;
	kfree(n);
	if (atomic_dec_and_test(&number_count))
		wake_up_all(&number_waiters);
}

struct ibnbd_clt_dev *ibnbd_clt_number_dev(const struct ibnbd_clt_number *n)
{
	return n->dev;
}

int ibnbd_clt_number_open(struct ibnbd_clt_number *n)
{
	guard(spinlock)(&n->lock);
	if (!n->dev || READ_ONCE(n->dev->state) == IBNBD_DEV_UNMAPPED ||
	    !atomic_inc_unless_negative(&n->openers))
		return -ENXIO;
	return 0;
}

void ibnbd_clt_number_close(struct ibnbd_clt_number *n)
{
	atomic_dec(&n->openers);
}

int ibnbd_clt_number_openers(const struct ibnbd_clt_number *n)
{
	return atomic_read(&n->openers);
}

bool ibnbd_clt_number_claim(struct ibnbd_clt_number *n)
{
	return !atomic_cmpxchg(&n->openers, 0, -1);
}

void ibnbd_clt_number_leave(struct ibnbd_clt_number *n)
{
	scoped_guard(spinlock, &n->lock)
		n->dev = NULL;
	complete_all(&n->deleted);
}

void ibnbd_clt_number_free(struct ibnbd_clt_number *n)
{
	ida_free(&number_ida, n->index);
	WRITE_ONCE(n->taken, false);
	wake_up_all(&number_waiters);
}

void ibnbd_clt_number_settle(struct ibnbd_clt_number *n)
{
	wait_event_timeout(number_waiters, !READ_ONCE(n->taken) || atomic_read(&n->openers) > 0,
			   NUMBER_RELEASE);
	if (!wait_event_timeout(number_waiters, !READ_ONCE(n->taken), NUMBER_CLOSE))
		pr_info("ibnbd%d: still open; its number is released on last close\n",
			n->index);
	complete_all(&n->settled);
}

int ibnbd_clt_number_wait_deleted(struct ibnbd_clt_number *n)
{
	return wait_for_completion_killable(&n->deleted) ? -EINTR : 0;
}

int ibnbd_clt_number_wait_settled(struct ibnbd_clt_number *n)
{
	return wait_for_completion_killable(&n->settled) ? -EINTR : 0;
}

void ibnbd_clt_number_exit(void)
{
	wait_event(number_waiters, !atomic_read(&number_count));
	/*
	 * The task that dropped the last reference, and a store of unmap_device, which runs outside
	 * of its attribute, may still execute some code of this module.
	 */
	synchronize_rcu_tasks();
	ida_destroy(&number_ida);
}
