// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-testdisk: a RAM disk that tells what reached it. For the tests alone, never installed.
 *
 * /dev/testdisk0 .. with every ability a disk may have (volatile cache, FUA, discard, write zeroes,
 * secure erase), each of which can be switched off at load time. It counts each kind of request;
 * the counters are read in /sys/module/ibnbd_testdisk/parameters/counts as one line of name=number,
 * and reset by writing to it. `delay_ms` holds writes back and executes them at the END of the
 * delay, `read_ms` reads, `open_ms` is what opening a disk takes, opens wait while `shut` is set,
 * `fail` answers requests of one kind with an error, the next `fail_times` of them if that is not
 * 0, those of disk number `fail_disk` if that is not negative, without `inserted` the disks have
 * size 0: all can be changed at any time. `bad` is a list of sectors, of any of the disks, that
 * cannot be read until they are written.
 *
 * `power_cut=1` loses what a volatile cache would lose: writes since the last flush go back to what
 * they were. Each write keeps the old content in an undo list until a flush or FUA; cutting the
 * power, or a flush that fails with `fail_loses`, walks it backwards. A flush covers what had been
 * written when it began. `remember=0` spares that, and nothing is lost.
 *
 * `backing=/dev/vda` makes it forget as a real disk does: it begins with what that disk has, and
 * keeps everything in the machine's memory until a flush or FUA carries it there. When the machine
 * is killed, what was not flushed is gone. `flush_ms` is what a flush takes beside that; with
 * `flush_stalls` writes wait for it.
 *
 * `serial` gives the disks an identity, as a virtio disk has one.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

enum { TD_READ, TD_WRITE, TD_FLUSH, TD_FUA, TD_DISCARD, TD_ZEROES, TD_NOUNMAP, TD_ERASE,
       TD_ERRORS, TD_KINDS };

static const char * const td_names[TD_KINDS] = {
	"read", "write", "flush", "fua", "discard", "zeroes", "nounmap", "erase", "errors",
};

static unsigned int nr_disks = 1, size_mb = 64, lbs = 512, pbs;
static bool cache = true, fua = true, discard = true, zeroes = true, erase = true,
	stable, read_only;
static char *backing = "", *serial = "";
static unsigned int delay_ms, read_ms, flush_ms, open_ms, fail_kind = TD_KINDS, fail_errno = EIO;
static atomic_t fail_left;
static int fail_disk = -1;
static bool fail_loses, shut, remember = true, flush_stalls, inserted = true;
module_param(nr_disks, uint, 0444);
module_param(size_mb, uint, 0444);
module_param(lbs, uint, 0444);
module_param(pbs, uint, 0444);
module_param(cache, bool, 0444);
module_param(fua, bool, 0444);
module_param(discard, bool, 0444);
module_param(zeroes, bool, 0444);
module_param(erase, bool, 0444);
module_param(stable, bool, 0444);
module_param(read_only, bool, 0444);
module_param(backing, charp, 0444);
module_param(serial, charp, 0444);
module_param(delay_ms, uint, 0644);
module_param(read_ms, uint, 0644);
module_param(flush_ms, uint, 0644);
module_param(open_ms, uint, 0644);
module_param(shut, bool, 0644);
module_param(remember, bool, 0444);
module_param(flush_stalls, bool, 0644);
module_param(fail_errno, uint, 0644);
module_param(fail_disk, int, 0644);
module_param(fail_loses, bool, 0644);

static unsigned long bad[8];
static unsigned int nr_bad;
module_param_array(bad, ulong, &nr_bad, 0644);

static atomic64_t td_counts[TD_KINDS];

static int counts_get(char *buf, const struct kernel_param *kp)
{
	int i, n = 0;

	for (i = 0; i < TD_KINDS; i++)
		n += scnprintf(buf + n, PAGE_SIZE - n, "%s%s=%lld", i ? " " : "", td_names[i],
			       (long long)atomic64_read(&td_counts[i]));
	return n + scnprintf(buf + n, PAGE_SIZE - n, "\n");
}

static int counts_set(const char *val, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < TD_KINDS; i++)
		atomic64_set(&td_counts[i], 0);
	return 0;
}

static const struct kernel_param_ops counts_ops = { .get = counts_get, .set = counts_set };
module_param_cb(counts, &counts_ops, NULL, 0644);

static int fail_set(const char *val, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < TD_KINDS; i++)
		if (sysfs_streq(val, td_names[i]))
			break;
	if (i == TD_KINDS && !sysfs_streq(val, "none"))
		return -EINVAL;
	WRITE_ONCE(fail_kind, i);
	return 0;
}

static int fail_get(char *buf, const struct kernel_param *kp)
{
	return scnprintf(buf, PAGE_SIZE, "%s\n",
			 fail_kind < TD_KINDS ? td_names[fail_kind] : "none");
}

static const struct kernel_param_ops fail_ops = { .get = fail_get, .set = fail_set };
module_param_cb(fail, &fail_ops, NULL, 0644);

static int fail_times_set(const char *val, const struct kernel_param *kp)
{
	unsigned int n;
	int err = kstrtouint(val, 0, &n);

	if (!err)
		atomic_set(&fail_left, n);
	return err;
}

static const struct kernel_param_ops fail_times_ops = { .set = fail_times_set };
module_param_cb(fail_times, &fail_times_ops, NULL, 0200);

/* Is it one of those that fail? The last of a number ends it. */
static bool td_fails(int kind, int disk)
{
	int only = READ_ONCE(fail_disk);

	if (READ_ONCE(fail_kind) != kind || (only >= 0 && only != disk))
		return false;
	if (!atomic_dec_if_positive(&fail_left))
		WRITE_ONCE(fail_kind, TD_KINDS);
	return true;
}

struct td_undo {
	struct list_head entry;
	u64 nr;				/* of the write */
	u64 pos;
	u32 len;
	u8 old[];
};

struct td_disk {
	int nr;
	u8 *data;
	struct file *backing;		/* or NULL */
	struct mutex carrying;		/* one flush at a time */
	unsigned long *dirty;		/* of each page: it is not there yet */
	spinlock_t lock;		/* data against power cuts, undo */
	struct list_head undo;
	u64 wrote;			/* number of the last write */
	unsigned long flush_end;	/* jiffies */
	struct gendisk *disk;
	struct blk_mq_tag_set set;
};

struct td_cmd {
	u64 covers;			/* a flush: the last write before it */
	struct delayed_work work;
};

static struct td_disk *td_disks;
static struct workqueue_struct *td_wq;

#define TD_PAGES	((unsigned long)size_mb << (20 - PAGE_SHIFT))

/* What the cache holds, to the disk that outlives it. Sleeps. */
static int td_carry(struct td_disk *td)
{
	u8 *buf = kmalloc(PAGE_SIZE, GFP_NOIO);
	unsigned long i;
	int err = buf ? 0 : -ENOMEM;

	mutex_lock(&td->carrying);
	for_each_set_bit(i, td->dirty, TD_PAGES) {
		loff_t pos = (loff_t)i << PAGE_SHIFT;

		if (err)
			break;
		spin_lock_bh(&td->lock);
		clear_bit(i, td->dirty);
		memcpy(buf, td->data + pos, PAGE_SIZE);
		spin_unlock_bh(&td->lock);
		if (kernel_write(td->backing, buf, PAGE_SIZE, &pos) != PAGE_SIZE) {
			set_bit(i, td->dirty);
			err = -EIO;
		}
	}
	err = err ?: vfs_fsync(td->backing, 0);
	mutex_unlock(&td->carrying);
	kfree(buf);
	return err;
}

static void td_soil(struct td_disk *td, u64 pos, u32 len)
{
	u64 i;

	if (!td->backing)
		return;
	for (i = pos >> PAGE_SHIFT; i <= (pos + len - 1) >> PAGE_SHIFT; i++)
		set_bit(i, td->dirty);
}

/* The disk begins with what the backing one has. */
static int td_back(struct td_disk *td)
{
	size_t size = (size_t)size_mb << 20;
	loff_t pos = 0;
	ssize_t n;

	mutex_init(&td->carrying);
	if (!*backing)
		return 0;
	if (!cache || nr_disks != 1)
		return -EINVAL;
	td->dirty = bitmap_zalloc(TD_PAGES, GFP_KERNEL);
	if (!td->dirty)
		return -ENOMEM;
	td->backing = filp_open(backing, O_RDWR | O_LARGEFILE, 0);
	if (IS_ERR(td->backing)) {
		n = PTR_ERR(td->backing);
		td->backing = NULL;
		return n;
	}
	while (pos < size) {
		n = kernel_read(td->backing, td->data + pos, size - pos, &pos);
		if (n <= 0)
			return n ? n : -ENOSPC;
	}
	return 0;
}

static void td_unback(struct td_disk *td)
{
	if (td->backing)
		filp_close(td->backing, NULL);
	bitmap_free(td->dirty);
}

/* The writes up to this one are safe. */
static void td_forget(struct td_disk *td, u64 nr)
{
	struct td_undo *u, *tmp;

	spin_lock_bh(&td->lock);
	list_for_each_entry_safe(u, tmp, &td->undo, entry) {
		if (u->nr > nr)
			continue;
		list_del(&u->entry);
		kfree(u);
	}
	spin_unlock_bh(&td->lock);
}

static void td_lose(struct td_disk *td)
{
	struct td_undo *u, *tmp;

	spin_lock_bh(&td->lock);
	list_for_each_entry_safe(u, tmp, &td->undo, entry) {
		memcpy(td->data + u->pos, u->old, u->len);
		list_del(&u->entry);
		kfree(u);
	}
	spin_unlock_bh(&td->lock);
}

static int power_cut_set(const char *val, const struct kernel_param *kp)
{
	unsigned int i;

	for (i = 0; td_disks && i < nr_disks; i++)
		td_lose(&td_disks[i]);
	return 0;
}

static const struct kernel_param_ops power_cut_ops = { .set = power_cut_set };
module_param_cb(power_cut, &power_cut_ops, NULL, 0200);

/*
 * Newest first, so that undoing in list order ends with the oldest content. Called under td->lock.
 */
static bool td_remember(struct td_disk *td, u64 pos, u32 len)
{
	struct td_undo *u;

	if (!cache || !remember || td->backing)
		return true;
	u = kmalloc(sizeof(*u) + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!u)
		return false;
	u->nr = ++td->wrote;
	u->pos = pos;
	u->len = len;
	memcpy(u->old, td->data + pos, len);
	list_add(&u->entry, &td->undo);
	return true;
}

static blk_status_t td_copy(struct td_disk *td, struct request *rq)
{
	u64 pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	bool write = op_is_write(req_op(rq));
	struct req_iterator iter;
	struct bio_vec bv;
	void *p;

	rq_for_each_segment(bv, rq, iter) {
		p = kmap_atomic(bv.bv_page) + bv.bv_offset;
		spin_lock_bh(&td->lock);
		if (write && !td_remember(td, pos, bv.bv_len)) {
			spin_unlock_bh(&td->lock);
			kunmap_atomic(p);
			return BLK_STS_RESOURCE;
		}
		if (write) {
			memcpy(td->data + pos, p, bv.bv_len);
			td_soil(td, pos, bv.bv_len);
		} else {
			memcpy(p, td->data + pos, bv.bv_len);
		}
		spin_unlock_bh(&td->lock);
		kunmap_atomic(p);
		pos += bv.bv_len;
	}
	return BLK_STS_OK;
}

static int td_kind(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:		return TD_READ;
	case REQ_OP_WRITE:		return TD_WRITE;
	case REQ_OP_FLUSH:		return TD_FLUSH;
	case REQ_OP_DISCARD:		return TD_DISCARD;
	case REQ_OP_WRITE_ZEROES:	return TD_ZEROES;
	case REQ_OP_SECURE_ERASE:	return TD_ERASE;
	default:			return TD_ERRORS;
	}
}

/* Writing makes a sector good. */
static bool td_is_bad(struct request *rq, bool write)
{
	bool found = false;
	unsigned int i;

	for (i = 0; i < READ_ONCE(nr_bad); i++) {
		if (READ_ONCE(bad[i]) - blk_rq_pos(rq) >= blk_rq_sectors(rq))
			continue;
		found = true;
		if (write)
			WRITE_ONCE(bad[i], ULONG_MAX);
	}
	return found && !write;
}

static blk_status_t td_execute(struct request *rq)
{
	struct td_disk *td = rq->q->queuedata;
	struct td_cmd *cmd = blk_mq_rq_to_pdu(rq);
	u64 pos = (u64)blk_rq_pos(rq) << SECTOR_SHIFT;
	int kind = td_kind(rq);
	blk_status_t sts;

	atomic64_inc(&td_counts[kind]);
	if (td_fails(kind, td->nr) || kind == TD_ERRORS) {
		atomic64_inc(&td_counts[TD_ERRORS]);
		if (kind == TD_FLUSH && READ_ONCE(fail_loses))
			td_lose(td);
		return errno_to_blk_status(-(int)fail_errno);
	}
	switch (kind) {
	case TD_READ:
	case TD_WRITE:
		if (td_is_bad(rq, kind == TD_WRITE))
			return BLK_STS_MEDIUM;
		sts = td_copy(td, rq);
		if (sts == BLK_STS_OK && kind == TD_WRITE && rq->cmd_flags & REQ_FUA) {
			atomic64_inc(&td_counts[TD_FUA]);
			if (td->backing)
				return errno_to_blk_status(td_carry(td));
			/* simple: FUA makes everything before it durable as well */
			td_forget(td, U64_MAX);
		}
		return sts;
	case TD_FLUSH:
		if (td->backing)
			return errno_to_blk_status(td_carry(td));
		td_forget(td, cmd->covers);
		return BLK_STS_OK;
	case TD_ZEROES:
		if (rq->cmd_flags & REQ_NOUNMAP)
			atomic64_inc(&td_counts[TD_NOUNMAP]);
		fallthrough;
	default:
		spin_lock_bh(&td->lock);
		memset(td->data + pos, kind == TD_ERASE ? 0xee : 0, blk_rq_bytes(rq));
		td_soil(td, pos, blk_rq_bytes(rq));
		spin_unlock_bh(&td->lock);
		return BLK_STS_OK;
	}
}

static void td_work(struct work_struct *work)
{
	struct td_cmd *cmd = container_of(to_delayed_work(work), struct td_cmd, work);
	struct request *rq = blk_mq_rq_from_pdu(cmd);

	blk_mq_end_request(rq, td_execute(rq));
}

/* Has it to go to the backing disk, which sleeps? */
static bool td_carries(struct request *rq)
{
	struct td_disk *td = rq->q->queuedata;

	return td->backing && (req_op(rq) == REQ_OP_FLUSH || rq->cmd_flags & REQ_FUA);
}

static blk_status_t td_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct request *rq = bd->rq;
	struct td_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct td_disk *td = rq->q->queuedata;
	unsigned int ms = READ_ONCE(delay_ms);
	blk_status_t sts;

	blk_mq_start_request(rq);
	if (req_op(rq) == REQ_OP_FLUSH) {
		ms = READ_ONCE(flush_ms);
		cmd->covers = READ_ONCE(td->wrote);
		WRITE_ONCE(td->flush_end, jiffies + msecs_to_jiffies(ms));
	} else if (!op_is_write(req_op(rq))) {
		ms = READ_ONCE(read_ms);
	} else if (READ_ONCE(flush_stalls) && time_before(jiffies, READ_ONCE(td->flush_end))) {
		ms += jiffies_to_msecs(READ_ONCE(td->flush_end) - jiffies);
	}
	if (ms || td_carries(rq)) {
		INIT_DELAYED_WORK(&cmd->work, td_work);
		queue_delayed_work(td_wq, &cmd->work, msecs_to_jiffies(ms));
		return BLK_STS_OK;
	}
	sts = td_execute(rq);
	if (sts == BLK_STS_RESOURCE)
		return sts;
	blk_mq_end_request(rq, sts);
	return BLK_STS_OK;
}

static const struct blk_mq_ops td_mq_ops = { .queue_rq = td_queue_rq };

/* Nobody can kill who waits here, as for a disk whose host recovers from an error. */
DEF_BD_OPEN(td_open, disk, mode)
{
	unsigned int ms = READ_ONCE(open_ms);

	if (ms)
		msleep(ms);
	while (READ_ONCE(shut))
		msleep(5);
	return 0;
}

static const struct block_device_operations td_fops = { .owner = THIS_MODULE, .open = td_open };

static void td_set_size(struct td_disk *td)
{
	set_capacity(td->disk, inserted ? (sector_t)size_mb << (20 - SECTOR_SHIFT) : 0);
}

static int inserted_set(const char *val, const struct kernel_param *kp)
{
	int err = param_set_bool(val, kp);
	unsigned int i;

	for (i = 0; td_disks && i < nr_disks && !err; i++)
		td_set_size(&td_disks[i]);
	return err;
}

static const struct kernel_param_ops inserted_ops = { .set = inserted_set, .get = param_get_bool };
module_param_cb(inserted, &inserted_ops, &inserted, 0644);

static ssize_t serial_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s-%s\n", serial, dev_to_disk(dev)->disk_name);
}

static DEVICE_ATTR_RO(serial);
static struct attribute *td_attrs[] = { &dev_attr_serial.attr, NULL };
ATTRIBUTE_GROUPS(td);

static int td_add(struct td_disk *td, unsigned int index)
{
	struct cx_limits lim = {
		.logical_block_size	= lbs,
		.physical_block_size	= pbs ?: lbs,
		.max_hw_sectors		= 2048,
		.max_segments		= 256,
		.max_hw_discard_sectors	= discard ? UINT_MAX >> 10 : 0,
		.discard_granularity	= discard ? lbs : 0,
		.max_secure_erase_sectors = erase ? UINT_MAX >> 10 : 0,
		.max_write_zeroes_sectors = zeroes ? UINT_MAX >> 10 : 0,
		.max_hw_wzeroes_unmap_sectors = zeroes ? UINT_MAX >> 10 : 0,
		.write_cache		= cache,
		.fua			= cache && fua,
		.stable_writes		= stable,
	};
	int err;

	spin_lock_init(&td->lock);
	INIT_LIST_HEAD(&td->undo);
	td->data = vzalloc((size_t)size_mb << 20);
	if (!td->data)
		return -ENOMEM;
	err = td_back(td);
	if (err)
		goto free_data;
	td->set.ops = &td_mq_ops;
	td->set.nr_hw_queues = 1;
	td->set.queue_depth = 128;
	td->set.numa_node = NUMA_NO_NODE;
	td->set.cmd_size = sizeof(struct td_cmd);
	td->set.flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	err = blk_mq_alloc_tag_set(&td->set);
	if (err)
		goto free_data;
	td->disk = cx_alloc_disk(&td->set, &lim, td);
	if (IS_ERR(td->disk)) {
		err = PTR_ERR(td->disk);
		goto free_set;
	}
	td->disk->fops = &td_fops;
	td->disk->private_data = td;
	td->nr = index;
	snprintf(td->disk->disk_name, sizeof(td->disk->disk_name), "testdisk%u", index);
	td_set_size(td);
	set_disk_ro(td->disk, read_only);
	err = cx_add_disk(NULL, td->disk, *serial ? td_groups : NULL, NULL);
	if (!err)
		return 0;
	cx_free_disk(td->disk);
free_set:
	blk_mq_free_tag_set(&td->set);
free_data:
	td_unback(td);
	vfree(td->data);
	td->data = NULL;
	return err;
}

static void td_del(struct td_disk *td)
{
	if (!td->data)
		return;
	del_gendisk(td->disk);
	cx_free_disk(td->disk);
	blk_mq_free_tag_set(&td->set);
	td_forget(td, U64_MAX);
	td_unback(td);
	vfree(td->data);
}

static void td_cleanup(void)
{
	unsigned int i;

	for (i = 0; i < nr_disks; i++)
		td_del(&td_disks[i]);
	destroy_workqueue(td_wq);
	kfree(td_disks);
}

static int __init td_init(void)
{
	unsigned int i;
	int err;

	td_wq = alloc_workqueue("ibnbd-testdisk", WQ_UNBOUND, 0);
	td_disks = kcalloc(nr_disks, sizeof(*td_disks), GFP_KERNEL);
	if (!td_wq || !td_disks)
		return -ENOMEM;
	for (i = 0; i < nr_disks; i++) {
		err = td_add(&td_disks[i], i);
		if (err) {
			td_cleanup();
			return err;
		}
	}
	return 0;
}

static void __exit td_exit(void)
{
	td_cleanup();
	/* It releases disks seconds late, and still looks for their driver then. */
	if (IS_ENABLED(CONFIG_DEBUG_KOBJECT_RELEASE))
		ssleep(9);
}

module_init(td_init);
module_exit(td_exit);
MODULE_DESCRIPTION("A RAM disk that tells what reached it (tests only)");
MODULE_LICENSE("GPL");
