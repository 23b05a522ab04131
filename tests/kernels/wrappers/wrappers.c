// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every name that compat.h promises, used once, the way a driver uses it. Only
 * compiled and linked, on each kernel of the matrix; never loaded.
 */
static struct blk_mq_tag_set set;
static struct cx_limits limits;
static DEFINE_MUTEX(lock);
static DEFINE_SPINLOCK(spin);

DEF_MQ_TIMEOUT(w_timeout, rq)
{
	return rq->timeout ? BLK_EH_RESET_TIMER : BLK_EH_DONE;
}

DEF_MQ_MAP_QUEUES(w_map_queues, s)
{
	blk_mq_map_queues(&s->map[0]);
	MQ_MAP_QUEUES_END
}

DEF_MQ_POLL(w_poll, hctx)
{
	return hctx->queue_num;
}

DEF_MQ_QUEUE_RQS(w_queue_rqs, list)
{
	cx_rq_list_t later = CX_RQ_LIST_INIT;
	struct request *rq;

	while ((rq = cx_rq_list_pop(list)))
		cx_rq_list_add_tail(&later, rq);
	*list = later;
}

static blk_status_t w_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct scatterlist sg[4];

	return blk_rq_map_sg(bd->rq, sg) > 3 ? BLK_STS_IOERR : BLK_STS_OK;
}

static const struct blk_mq_ops w_mq_ops = {
	.queue_rq	= w_queue_rq,
	MQ_QUEUE_RQS(w_queue_rqs)
	.timeout	= w_timeout,
	.map_queues	= w_map_queues,
	.poll		= w_poll,
};

DEF_BD_OPEN(w_open, disk, mode)
{
	return mode & BLK_OPEN_WRITE ? -EROFS : disk->major;
}

DEF_BD_RELEASE(w_release, disk)
{
}

DEF_BD_GETGEO(w_getgeo, disk, geo)
{
	geo->cylinders = disk->major;
	return 0;
}

static void w_free_disk(struct gendisk *disk)
{
}

static const struct block_device_operations w_fops = {
	.open		= w_open,
	.release	= w_release,
	.getgeo		= w_getgeo,
	BD_FREE_DISK(w_free_disk)
};

static int client(void)
{
	struct gendisk *disk = cx_alloc_disk(&set, &limits, NULL);
	struct request_queue *q;

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	set.ops = &w_mq_ops;
	set.flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_NO_SCHED_BY_DEFAULT |
		    BLK_MQ_F_TAG_HCTX_SHARED | BLK_MQ_F_STACKING;
	disk->fops = &w_fops;
	if (cx_add_disk(NULL, disk, NULL, w_free_disk) || cx_update_limits(disk, &limits))
		cx_free_disk(disk);
	set_capacity_and_notify(disk, 4);
	cx_set_capacity(disk, 8);
	cx_set_ro(disk, true);
	cx_tell_ro(disk, true);
	cx_disable_op(NULL);
	blk_mark_disk_dead(disk);
	q = cx_alloc_queue(&set);
	blk_mq_quiesce_queue_nowait(q);
	cx_wait_quiesce_done(&set, q);
	cx_free_queue(q);
	return 0;
}

DEF_KI_COMPLETE(w_ki_complete, iocb, ret)
{
	if (ret)
		cx_write_done(iocb);
}

static void server_file(void)
{
	struct iov_iter iter = {};
	struct file *file = NULL;
	struct kiocb iocb = {};
	struct path path;

	scoped_with_init_fs() {
		if (!vfs_path_lookup(NULL, NULL, "x", LOOKUP_FOLLOW, &path))
			file = dentry_open(&path, O_RDWR, current_cred());
	}
	iocb.ki_filp = file;
	iocb.ki_complete = w_ki_complete;
	iov_iter_bvec(&iter, ITER_SOURCE, NULL, 0, 0);
	iov_iter_bvec(&iter, ITER_DEST, NULL, 0, 0);
	if (cx_read_iter(&iocb, &iter) + cx_write_iter(&iocb, &iter) + cx_dio_align(file))
		cx_fput(file);
}

static void server_bdev(void)
{
	cx_bdev_t b = cx_bdev_open(MKDEV(1, 1), BLK_OPEN_READ | BLK_OPEN_WRITE, &limits);
	struct block_device *bdev = cx_bdev(b);
	struct bio bio;

	pr_info("%llu %u %u %u\n", (u64)bdev_nr_sectors(bdev), bdev_max_discard_sectors(bdev),
		bdev_discard_granularity(bdev), bdev_max_secure_erase_sectors(bdev));
	pr_info("%d %d %d %d %d %s\n", bdev_write_cache(bdev), bdev_fua(bdev), bdev_rot(bdev),
		bdev_stable_writes(bdev), bdev_nowait(bdev), cx_part_uuid(bdev));
	pr_info("%llu\n", cx_diskseq(bdev->bd_disk));
	if (bdev_get_integrity(bdev))
		blkdev_issue_flush(bdev);
	cx_bio_init(&bio, bdev, NULL, 0, REQ_OP_WRITE | REQ_POLLED);
	bio_add_virt_nofail(&bio, &limits, sizeof(limits));
	cx_bdev_close(b, BLK_OPEN_READ | BLK_OPEN_WRITE, &limits);
}

static const_ktype struct kobj_type w_ktype;
static struct kobject w_kobj;

static int guards(void)
{
	struct cx_limits *l __free(kfree) = kzalloc_obj(*l, GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	scoped_guard(mutex, &lock) {
		if (l->fua)
			return -EIO;
	}
	scoped_guard(spinlock_irq, &spin)
		l->fua = true;
	scoped_guard(spinlock_irqsave, &spin)
		l->fua = true;
	guard(rcu)();
	guard(spinlock)(&spin);
	return l->fua;
}

static int __init wrappers_init(void)
{
	int ret = client() + guards();

	server_file();
	server_bdev();
	kobject_init(&w_kobj, &w_ktype);
	queue_work(system_percpu_wq, NULL);
	if (rdma_set_min_rnr_timer(NULL, 1))
		ret = 1;
	if (!alloc_workqueue("x", WQ_UNBOUND | WQ_MEM_RECLAIM, secs_to_jiffies(1)))
		return ret;
	return PTR_ERR_OR_ZERO(class_create("x"));
}
module_init(wrappers_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("compile test of the compatibility layer");
