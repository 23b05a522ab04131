// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disk of a device, /dev/ibnbdN: its limits, its number N, and its openers.
 *
 * An open is refused only when the disk is being removed. A disk that is read-only can be opened
 * for writing, too, and refuses the write, as sd and nvme do.
 *
 * A number outlives its device (docs/design.md 8.2); it is freed when the block layer releases the
 * disk. The memory of the number has its own references: of the device, of the disk, and of each
 * task that waits for the removal. Module exit waits for the last one, since the block layer drops
 * an opener's reference to the module before its reference to the disk.
 *
 * Locking: dev->disk, the limits, the size and the read-only flag change under dev->lock. Uevents
 * are sent by a work, without the lock (see ibnbd_clt_disk_uevent()). n->dev is cleared under
 * n->lock, and an open reads it under n->lock: on older kernels an open that is already on its way
 * may arrive after del_gendisk().
 *
 * Limits are changed on a quiesced queue without freezing it (L2), and only when they differ. A
 * task that writes to queue/... in sysfs while I/O is held freezes the queue with the limits
 * locked, and waits there until the I/O has ended.
 */
#include <linux/blkdev.h>
#include <linux/hdreg.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include "ibnbd/client/disk.h"
#include "ibnbd/client/unflushed.h"

/*
 * 64 KiB pages may be read and written as well: a scatterlist entry is any run of whole 4 KiB
 * blocks of the wire.
 */
#define DISK_SEGMENT_MASK	(4096UL - 1)
#define DISK_DMA_MASK		3	/* RDMA does not care where a segment begins */

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

/* ---- the number ---- */

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

int ibnbd_clt_number_openers(const struct ibnbd_clt_number *n)
{
	return atomic_read(&n->openers);
}

bool ibnbd_clt_number_claim(struct ibnbd_clt_number *n)
{
	return !atomic_cmpxchg(&n->openers, 0, -1);
}

/* The disk was released, or there was none. */
static void number_free(struct ibnbd_clt_number *n)
{
	ida_free(&number_ida, n->index);
	WRITE_ONCE(n->taken, false);
	wake_up_all(&number_waiters);
}

/*
 * Waits until the number is free, and wakes whatever waits for that. Bounded: an opener that has
 * the disk open for a moment only (udev) gets a second to close it. The number of a disk that stays
 * open stays taken.
 */
static void number_settle(struct ibnbd_clt_number *n)
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

/* ---- limits ---- */

static void disk_limits(const struct ibnbd_clt_grant *g, struct cx_limits *cx)
{
	const struct ibnbd_limits *l = &g->lim;

	*cx = (struct cx_limits){
		.logical_block_size		= l->logical_block_size,
		.physical_block_size		= l->physical_block_size,
		.io_min				= l->io_min,
		.io_opt				= l->io_opt >= l->io_min ? l->io_opt : 0,
		.max_hw_sectors			= l->max_hw_sectors,
		.max_segments			= l->max_segments,
		.max_hw_discard_sectors		= l->max_discard_sectors,
		.discard_granularity		= l->discard_granularity,
		.discard_alignment		= l->discard_alignment,
		.max_secure_erase_sectors	= l->max_secure_erase_sectors,
		.max_write_zeroes_sectors	= l->max_write_zeroes_sectors,
		.virt_boundary_mask		= DISK_SEGMENT_MASK,
		.dma_alignment			= DISK_DMA_MASK,
		.write_cache			= l->write_cache,
		.fua				= l->fua,
		.rotational			= l->rotational,
		.stable_writes			= l->stable_pages,
	};
	/* NOUNMAP is only understood by servers that say so. */
	if (g->features & IBNBD_FEAT_ZEROES)
		cx->max_hw_wzeroes_unmap_sectors = l->max_write_zeroes_sectors;
}

static bool disk_read_only(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	return dev->map.access_mode == IBNBD_ACCESS_RO ||
	       g->rsp.identity.flags & IBNBD_ID_F_READ_ONLY;
}

/*
 * When keeping begins, earlier writes are missing from the log: the device has a gap until a flush
 * covers them. When keeping ends, the log is of no use. The log is also dropped when another client
 * has written, because a replay would overwrite newer data; a loss is then reported instead (L26).
 */
static void disk_set_account(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	enum ibnbd_clt_keeps old = dev->keeps, keeps = ibnbd_clt_unflushed_keeps(dev, g);

	if (keeps == IBNBD_CLT_KEEPS_DATA && !dev->sess->pool)
		keeps = IBNBD_CLT_KEEPS_ACCOUNT;
	/* The writes up to now were not counted: the account assumes that there are some. */
	if (keeps && !old && dev->disk)
		ibnbd_unflushed_wrote(&dev->unflushed);
	WRITE_ONCE(dev->keeps, keeps);
	if ((keeps == IBNBD_CLT_KEEPS_DATA) != (old == IBNBD_CLT_KEEPS_DATA) ||
	    ibnbd_remap_other_writer(&dev->grant.rsp, &g->rsp))
		ibnbd_clt_kept_forget(dev, keeps == IBNBD_CLT_KEEPS_DATA &&
					   ibnbd_unflushed_any(&dev->unflushed));
}

/* Sets what queue_rq reads. No task is in queue_rq. */
static void disk_set_hot(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	struct ibnbd_clt_session *s = dev->sess;

	disk_set_account(dev, g);
	dev->grant = *g;
	dev->version = g->version;
	dev->link_gen = g->link_gen;
	dev->io_flags = IBNBD_F_KNOWN;
	if (!(g->features & IBNBD_FEAT_ZEROES))
		dev->io_flags &= ~(IBNBD_F_PREFLUSH | IBNBD_F_NOUNMAP);
	dev->nr_irq = s->nr_irq;
	dev->op_stride = s->op_stride;
	dev->ops = s->ops;
	dev->clt = s->clt;
	WRITE_ONCE(dev->device_id, g->rsp.device_id);
}

/* How long a new size is not told yet: a server may change it as often as it likes. */
static unsigned long disk_resize_wait(const struct ibnbd_clt_dev *dev)
{
	return ibnbd_clt_dev_left(dev->resize_tell, IBNBD_CLT_UEVENT_EVERY);
}

/* The work does what is due when it runs, also a state that was to wait for longer. */
static void disk_due(struct ibnbd_clt_dev *dev, unsigned int what, unsigned long delay)
{
	dev->uevent_due |= what;
	if (delay)
		queue_delayed_work(ibnbd_clt_remove_wq, &dev->uevent_work, delay);
	else
		mod_delayed_work(ibnbd_clt_remove_wq, &dev->uevent_work, 0);
}

int ibnbd_clt_disk_commit(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	bool was_ro = disk_read_only(dev, &dev->grant);
	struct cx_limits old, new;
	int err;

	lockdep_assert_held(&dev->lock);
	if (dev->disk) {
		disk_limits(&dev->grant, &old);
		disk_limits(g, &new);
		if (READ_ONCE(dev->limits) != IBNBD_CLT_LIMITS_FIT ||
		    memcmp(&old, &new, sizeof(new))) {
			WRITE_ONCE(dev->limits, IBNBD_CLT_LIMITS_FIT);
			err = cx_update_limits(dev->disk, &new);
			/*
			 * A task is writing a limit in sysfs and waits, with the queue frozen, for
			 * requests that we hold: these must be sent now. No new request comes
			 * before that task is done, and soon after we try again to set the limits.
			 */
			if (err == -EBUSY)
				WRITE_ONCE(dev->limits, IBNBD_CLT_LIMITS_DUE);
			else if (err)
				return err;
		}
	}
	disk_set_hot(dev, g);
	if (dev->disk) {
		/*
		 * Only on a change: what an administrator has set by BLKROSET stays. Older kernels
		 * cannot tell it from our setting.
		 */
		if (was_ro != disk_read_only(dev, g)) {
			cx_set_ro(dev->disk, disk_read_only(dev, g));
			disk_due(dev, IBNBD_CLT_DUE_RO, 0);
		}
		ibnbd_clt_disk_set_capacity(dev, g->lim.nsectors);
	}
	return 0;
}

/*
 * A new size is told as by set_capacity_and_notify(), and also when the size was 0: udev, and
 * a task that waits for the disk, must hear of the first size.
 */
void ibnbd_clt_disk_set_capacity(struct ibnbd_clt_dev *dev, u64 sectors)
{
	u64 old = get_capacity(dev->disk);

	if (old == sectors)
		return;
	if (!dev->shown) {
		set_capacity(dev->disk, sectors);
		return;
	}
	cx_set_capacity(dev->disk, sectors);
	if (!old)
		cx_need_part_scan(dev->disk);
	if (sectors)
		disk_due(dev, IBNBD_CLT_DUE_RESIZE, disk_resize_wait(dev));
}

void ibnbd_clt_disk_uevent_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev =
		container_of(to_delayed_work(work), struct ibnbd_clt_dev, uevent_work);
	char state[32], writers[32], reason[sizeof("IBNBD_REASON=") + IBNBD_CLT_REASON_LEN],
		*env[] = { state, reason, NULL }, *resize[] = { "RESIZE=1", NULL },
		*writer[] = { writers, NULL };
	struct kobject *kobj;
	enum kobject_action action;
	unsigned int due;
	bool ro;

	guard(noio)();
	mutex_lock(&dev->lock);
	kobj = &disk_to_dev(dev->disk)->kobj;
	due = dev->uevent_due;
	if (due & IBNBD_CLT_DUE_RESIZE && disk_resize_wait(dev)) {
		due &= ~IBNBD_CLT_DUE_RESIZE;
		queue_delayed_work(ibnbd_clt_remove_wq, &dev->uevent_work, disk_resize_wait(dev));
	}
	if (due & IBNBD_CLT_DUE_RESIZE)
		dev->resize_tell = jiffies + IBNBD_CLT_UEVENT_EVERY;
	dev->uevent_due &= ~due;
	ro = disk_read_only(dev, &dev->grant);
	action = dev->uevent;
	snprintf(state, sizeof(state), "IBNBD_STATE=%s",
		 ibnbd_dev_sm_state_name(dev->uevent_state));
	snprintf(reason, sizeof(reason), "IBNBD_REASON=%s", dev->uevent_reason);
	snprintf(writers, sizeof(writers), "IBNBD_OTHER_WRITERS=%u", dev->other_writers);
	mutex_unlock(&dev->lock);
	/* A change after the unlock queues this work again, so the newest flag is the last. */
	if (due & IBNBD_CLT_DUE_RO)
		cx_tell_ro(dev->disk, ro);
	if (due & IBNBD_CLT_DUE_RESIZE)
		kobject_uevent_env(kobj, KOBJ_CHANGE, resize);
	/* Before ONLINE: who takes the disk back by that shall know. */
	if (due & IBNBD_CLT_DUE_WRITER)
		kobject_uevent_env(kobj, KOBJ_CHANGE, writer);
	if (due & IBNBD_CLT_DUE_STATE)
		kobject_uevent_env(kobj, action, env);
}

void ibnbd_clt_disk_uevent(struct ibnbd_clt_dev *dev, enum kobject_action action)
{
	lockdep_assert_held(&dev->lock);
	dev->uevent = action;
	if (!dev->shown)
		return;
	dev->uevent_state = dev->state;
	strscpy(dev->uevent_reason, dev->reason, sizeof(dev->uevent_reason));
	/* A uevent that already waits for its turn will report the newest state. */
	disk_due(dev, IBNBD_CLT_DUE_STATE,
		 __ratelimit(&dev->uevent_limit) ? 0 : IBNBD_CLT_UEVENT_EVERY);
}

void ibnbd_clt_disk_other_writer(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	u64 gen = g->rsp.identity.writer_gen;

	lockdep_assert_held(&dev->lock);
	if (!ibnbd_remap_other_writer(&dev->grant.rsp, &g->rsp) || dev->other_gen == gen)
		return;
	dev->other_gen = gen;
	WRITE_ONCE(dev->other_writers, dev->other_writers + 1);
	if (dev->shown)
		disk_due(dev, IBNBD_CLT_DUE_WRITER, 0);
}

DEF_BD_OPEN(disk_open, disk, mode)
{
	struct ibnbd_clt_number *n = disk->private_data;

	guard(spinlock)(&n->lock);
	if (!n->dev || READ_ONCE(n->dev->state) == IBNBD_DEV_UNMAPPED ||
	    !atomic_inc_unless_negative(&n->openers))
		return -ENXIO;
	return 0;
}

DEF_BD_RELEASE(disk_release, disk)
{
	struct ibnbd_clt_number *n = disk->private_data;

	atomic_dec(&n->openers);
}

/*
 * The last reference to a disk that was added is dropped. The number is freed: no task can take
 * another disk of this name for the old one any more.
 */
static void disk_free(struct gendisk *disk)
{
	struct ibnbd_clt_number *n = disk->private_data;

	number_free(n);
	ibnbd_clt_number_put(n);
}

/*
 * The disk has no heads. It reports the geometry that nvme reports, for tools that align partitions
 * by it. The block layer fills in the start.
 */
DEF_BD_GETGEO(disk_getgeo, disk, geo)
{
	geo->heads = 64;
	geo->sectors = 32;
	geo->cylinders = min_t(sector_t, get_capacity(disk) >> 11, U16_MAX);
	return 0;
}

static const struct block_device_operations disk_ops = {
	.owner		= THIS_MODULE,
	.open		= disk_open,
	.release	= disk_release,
	.getgeo		= disk_getgeo,
	BD_FREE_DISK(disk_free)
};

int ibnbd_clt_disk_alloc(struct ibnbd_clt_dev *dev)
{
	const struct ibnbd_clt_grant *g = &dev->grant;
	struct cx_limits cx;
	struct gendisk *disk;

	lockdep_assert_held(&dev->lock);
	disk_limits(g, &cx);
	guard(noio)();
	disk = cx_alloc_disk(&dev->sess->set, &cx, dev);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	set_disk_ro(disk, disk_read_only(dev, g));
	disk->fops = &disk_ops;
	disk->private_data = dev->number;
	snprintf(disk->disk_name, sizeof(disk->disk_name), "ibnbd%d", dev->index);
	set_capacity(disk, g->lim.nsectors);
	dev->disk = disk;
	return 0;
}

int ibnbd_clt_disk_add(struct ibnbd_clt_dev *dev)
{
	int err;

	/* The reference of the disk, which keeps the number taken until disk_free(). */
	ibnbd_clt_number_get(dev->number);
	err = cx_add_disk(NULL, dev->disk, ibnbd_clt_sysfs_groups, disk_free);
	if (err)
		ibnbd_clt_number_put(dev->number);
	return err;
}

void ibnbd_clt_disk_del(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_number *n = dev->number;

	if (dev->disk) {
		/*
		 * A uevent that is due is cancelled: the removal sends its own. To wait until a
		 * queued uevent is sent would be to wait for a place in the work queue that runs
		 * this removal.
		 */
		cancel_delayed_work_sync(&dev->uevent_work);
		if (dev->shown) {
			blk_mark_disk_dead(dev->disk);
			del_gendisk(dev->disk);
		}
		scoped_guard(spinlock, &n->lock)
			n->dev = NULL;
		complete_all(&n->deleted);
		cx_free_disk(dev->disk);
	}
	if (!dev->shown)
		number_free(n);
	number_settle(n);
}
