// SPDX-License-Identifier: GPL-2.0-only
/*
 * The block shims that are too long for a header. Linked into ibnbd-client,
 * the only module with disks; see mq.h and compat.h for what each promises.
 */
#if HAVE_BLK_FEATURES		/* 6.11, EL9.6: every fact is a member of the limits */
static void limits_fill(struct queue_limits *l, const struct cx_limits *c)
{
	l->logical_block_size = c->logical_block_size;
	l->physical_block_size = c->physical_block_size;
	l->io_min = c->io_min;
	l->io_opt = c->io_opt;
	l->max_hw_sectors = c->max_hw_sectors;
	l->max_segments = c->max_segments;
	l->max_hw_discard_sectors = c->max_hw_discard_sectors;
	l->discard_granularity = c->discard_granularity;
	l->discard_alignment = c->discard_alignment;
	l->max_discard_segments = 1;
	l->max_secure_erase_sectors = c->max_secure_erase_sectors;
	l->max_write_zeroes_sectors = c->max_write_zeroes_sectors;
#if HAVE_LIMITS_HW_WZEROES_UNMAP	/* 6.17: all write zeroes may unmap, or none */
	l->max_hw_wzeroes_unmap_sectors =
		c->max_hw_wzeroes_unmap_sectors ? c->max_write_zeroes_sectors : 0;
#endif
	l->virt_boundary_mask = c->virt_boundary_mask;
	l->dma_alignment = c->dma_alignment;
	l->features &= ~(BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA | BLK_FEAT_ROTATIONAL |
			 BLK_FEAT_STABLE_WRITES);
	if (c->write_cache)
		l->features |= BLK_FEAT_WRITE_CACHE | (c->fua ? BLK_FEAT_FUA : 0);
	if (c->rotational)
		l->features |= BLK_FEAT_ROTATIONAL;
	if (c->stable_writes)
		l->features |= BLK_FEAT_STABLE_WRITES;
}
#else				/* setters, in the order the block core wants them */
static void queue_flag_assign(struct request_queue *q, unsigned int flag, bool on)
{
	if (on)
		blk_queue_flag_set(flag, q);
	else
		blk_queue_flag_clear(flag, q);
}

static void limits_set(struct request_queue *q, const struct cx_limits *c)
{
	blk_queue_logical_block_size(q, c->logical_block_size);
	blk_queue_physical_block_size(q, c->physical_block_size);
	blk_queue_io_min(q, c->io_min ?: c->physical_block_size);
	blk_queue_io_opt(q, c->io_opt);
	blk_queue_max_hw_sectors(q, c->max_hw_sectors);
	blk_queue_max_segments(q, c->max_segments);
	blk_queue_virt_boundary(q, c->virt_boundary_mask);
	if (c->dma_alignment)
		blk_queue_dma_alignment(q, c->dma_alignment);

	q->limits.discard_granularity = c->discard_granularity;
	q->limits.discard_alignment = c->discard_alignment;
	blk_queue_max_discard_sectors(q, c->max_hw_discard_sectors);
	blk_queue_max_discard_segments(q, 1);
#if HAVE_QUEUE_FLAG_DISCARD	/* until 5.18 */
	queue_flag_assign(q, QUEUE_FLAG_DISCARD, c->max_hw_discard_sectors);
#endif
#if HAVE_LIMITS_SECURE_ERASE	/* 5.19 */
	blk_queue_max_secure_erase_sectors(q, c->max_secure_erase_sectors);
#elif HAVE_QUEUE_FLAG_SECERASE
	queue_flag_assign(q, QUEUE_FLAG_SECERASE, c->max_secure_erase_sectors);
#endif
	blk_queue_max_write_zeroes_sectors(q, c->max_write_zeroes_sectors);
	blk_queue_write_cache(q, c->write_cache, c->write_cache && c->fua);
	queue_flag_assign(q, QUEUE_FLAG_NONROT, !c->rotational);
	queue_flag_assign(q, QUEUE_FLAG_STABLE_WRITES, c->stable_writes);
}
#endif

/**
 * cx_alloc_disk() - a disk and its queue on a tag set
 * @set: tag set
 * @c: limits, applied before anybody can see the disk
 * @data: queue->queuedata
 *
 * Return: the disk (free it with cx_free_disk()), or an ERR_PTR.
 */
#if HAVE_ALLOC_DISK_LIMITS && HAVE_BLK_FEATURES
struct gendisk *cx_alloc_disk(struct blk_mq_tag_set *set, const struct cx_limits *c, void *data)
{
	struct queue_limits lim = {};

	limits_fill(&lim, c);
	return blk_mq_alloc_disk(set, &lim, data);
}
#elif HAVE_ALLOC_DISK_LIMITS || HAVE_ALLOC_DISK
struct gendisk *cx_alloc_disk(struct blk_mq_tag_set *set, const struct cx_limits *c, void *data)
{
#if HAVE_ALLOC_DISK
	struct gendisk *disk = blk_mq_alloc_disk(set, data);
#else
	struct gendisk *disk = blk_mq_alloc_disk(set, NULL, data);
#endif

	if (!IS_ERR(disk))
		limits_set(disk->queue, c);
	return disk;
}
#else				/* until 5.13; extended numbers, so no major and no minors */
struct gendisk *cx_alloc_disk(struct blk_mq_tag_set *set, const struct cx_limits *c, void *data)
{
	struct request_queue *q = blk_mq_init_queue(set);
	struct gendisk *disk;

	if (IS_ERR(q))
		return ERR_CAST(q);
	disk = alloc_disk_node(0, set->numa_node);
	if (!disk) {
		blk_cleanup_queue(q);
		return ERR_PTR(-ENOMEM);
	}
	q->queuedata = data;
	disk->queue = q;
	disk->flags |= GENHD_FL_EXT_DEVT;
	limits_set(q, c);
	return disk;
}
#endif

#if !HAVE_BDOPS_FREE_DISK
static void (*disk_freed)(struct gendisk *disk);	/* only one driver sets it */

/*
 * The driver core calls the release of the device itself, if it has one, instead of the release of
 * its type or class. The block core leaves that of the device unset, so it is free for us.
 */
static void disk_release(struct device *d)
{
	disk_freed(dev_to_disk(d));
	if (d->type && d->type->release)
		d->type->release(d);
	else
		d->class->dev_release(d);
}
#endif

/**
 * cx_add_disk() - make the disk visible, with its attributes
 * @parent: parent device or NULL
 * @disk: from cx_alloc_disk()
 * @groups: attribute groups, there before the first uevent
 * @free_disk: the function in BD_FREE_DISK() of the disk's operations, or NULL;
 *	called when the last reference is dropped, unless adding the disk failed
 *
 * Return: 0, or a negative errno: then call cx_free_disk(), not del_gendisk().
 */
int cx_add_disk(struct device *parent, struct gendisk *disk,
		const struct attribute_group **groups,
		void (*free_disk)(struct gendisk *disk))
{
#if HAVE_ADD_DISK_RET		/* 5.15 */
	int err = device_add_disk(parent, disk, groups);
#else
	int err;

	device_add_disk(parent, disk, groups);
	err = device_is_registered(disk_to_dev(disk)) ? 0 : -EIO;
#endif
#if !HAVE_BDOPS_FREE_DISK
	if (!err && free_disk) {
		disk_freed = free_disk;
		disk_to_dev(disk)->release = disk_release;
	}
#endif
	return err;
}

/**
 * cx_update_limits() - change the limits of a live disk
 * @disk: a disk whose queue is quiesced
 * @lim: all limits, not only those that changed
 *
 * Does not freeze the queue, so held requests do not delay the change. The
 * caller must end requests that do not fit the new limits.
 *
 * Return: 0; -EBUSY if somebody is changing an attribute of the queue (that
 * writer may wait for held requests, so we do not wait for the writer); or
 * another negative errno if the block core refuses the limits. After an error
 * nothing has changed.
 */
int cx_update_limits(struct gendisk *disk, const struct cx_limits *lim)
{
#if HAVE_LIMITS_COMMIT && HAVE_BLK_FEATURES
	struct queue_limits l;

	/*
	 * Not queue_limits_start_update(), because it waits for the lock: a sysfs write of a limit
	 * holds the lock while it freezes the queue.
	 */
	if (!mutex_trylock(&disk->queue->limits_lock))
		return -EBUSY;
	l = disk->queue->limits;
	limits_fill(&l, lim);
	return queue_limits_commit_update(disk->queue, &l);
#else
	struct request_queue *q = disk->queue;
	unsigned int hw = queue_max_hw_sectors(q), max = queue_max_sectors(q);

	limits_set(q, lim);
	/*
	 * Keep max_sectors_kb if an administrator has made it smaller. Newer kernels keep it
	 * themselves.
	 */
	if (max < hw && max < q->limits.max_sectors)
		q->limits.max_sectors = max;
	return 0;
#endif
}

/**
 * cx_disable_op() - the limits offered this kind of op, but it was refused
 * @rq: the request that was refused
 *
 * Sets the limit for this kind of op to 0. The block layer then sends no new
 * ones: it writes zeroes by itself, or returns EOPNOTSUPP. Requests that were
 * made before may still come. cx_update_limits() sets the limit again.
 *
 * Context: any; made for completions.
 *
 * Return: true if this kind of op can be disabled.
 */
bool cx_disable_op(struct request *rq)
{
	struct request_queue *q = rq->q;

	switch (req_op(rq)) {
	case REQ_OP_WRITE_ZEROES:
		q->limits.max_write_zeroes_sectors = 0;
#if HAVE_LIMITS_HW_WZEROES_UNMAP
		q->limits.max_wzeroes_unmap_sectors = 0;
#endif
		return true;
	case REQ_OP_DISCARD:
		q->limits.max_discard_sectors = 0;
#if HAVE_QUEUE_FLAG_DISCARD
		blk_queue_flag_clear(QUEUE_FLAG_DISCARD, q);
#endif
		return true;
	case REQ_OP_SECURE_ERASE:
#if HAVE_LIMITS_SECURE_ERASE
		q->limits.max_secure_erase_sectors = 0;
#elif HAVE_QUEUE_FLAG_SECERASE
		blk_queue_flag_clear(QUEUE_FLAG_SECERASE, q);
#endif
		return true;
	default:
		return false;
	}
}

/**
 * cx_free_disk() - the opposite of cx_alloc_disk()
 * @disk: after del_gendisk(), or never added
 */
void cx_free_disk(struct gendisk *disk)
{
#if HAVE_BLK_CLEANUP_DISK	/* 5.14 .. 5.19 */
	blk_cleanup_disk(disk);
#elif HAVE_ALLOC_DISK || HAVE_ALLOC_DISK_LIMITS
	put_disk(disk);
#else
	blk_cleanup_queue(disk->queue);
	if (!disk->major)	/* never added: the release would drop a reference never taken */
		disk->queue = NULL;
	put_disk(disk);
#endif
}

/**
 * cx_alloc_queue() - a queue without a disk
 * @set: tag set
 *
 * Return: the queue (free it with cx_free_queue()), or an ERR_PTR.
 */
struct request_queue *cx_alloc_queue(struct blk_mq_tag_set *set)
{
#if HAVE_MQ_ALLOC_QUEUE		/* 6.9 */
	return blk_mq_alloc_queue(set, NULL, NULL);
#else
	return blk_mq_init_queue(set);
#endif
}

/**
 * cx_free_queue() - the opposite of cx_alloc_queue()
 * @q: without requests
 */
void cx_free_queue(struct request_queue *q)
{
#if HAVE_MQ_DESTROY_QUEUE	/* 6.0 */
	blk_mq_destroy_queue(q);
	blk_put_queue(q);
#else
	blk_cleanup_queue(q);
#endif
}

/**
 * cx_set_unused() - has the last queue left a tag set?
 * @set: tag set to which nobody adds a queue any more
 *
 * The queue of a disk that could not be added leaves the set when the last reference to the disk is
 * dropped, and a reader of /proc/partitions may hold one. The set must live until then. This only
 * tries the lock. So the task that releases the lock has no waiter to wake, and does not touch the
 * lock any more when we get it.
 */
bool cx_set_unused(struct blk_mq_tag_set *set)
{
	bool unused;

	if (!mutex_trylock(&set->tag_list_lock))
		return false;
	unused = list_empty(&set->tag_list);
	mutex_unlock(&set->tag_list_lock);
	return unused;
}

#if !HAVE_SET_CAPACITY_NOTIFY
bool set_capacity_and_notify(struct gendisk *disk, sector_t sectors)
{
#if HAVE_SET_CAPACITY_REVALIDATE	/* 5.7 .. 5.10, EL8 */
	set_capacity_revalidate_and_notify(disk, sectors, true);
#else
	set_capacity(disk, sectors);
	revalidate_disk(disk);
#endif
	return true;
}
#endif

void cx_set_capacity(struct gendisk *disk, sector_t sectors)
{
#ifdef GD_READ_ONLY
	/* older kernels say so below */
	pr_info_ratelimited("%s: detected capacity change from %llu to %llu\n", disk->disk_name,
			    (u64)get_capacity(disk), (u64)sectors);
#endif
	set_capacity(disk, sectors);
	/*
	 * Before 5.11 an open block device has a copy of the size, which this
	 * renews. The size does not change here any more: no uevent.
	 */
	set_capacity_and_notify(disk, sectors);
}

void cx_set_ro(struct gendisk *disk, bool ro)
{
#ifdef GD_READ_ONLY	/* 5.12 */
	assign_bit(GD_READ_ONLY, &disk->state, ro);
#endif
}

void cx_tell_ro(struct gendisk *disk, bool ro)
{
#ifdef GD_READ_ONLY
	char *env[] = { ro ? "DISK_RO=1" : "DISK_RO=0", NULL };

	kobject_uevent_env(&disk_to_dev(disk)->kobj, KOBJ_CHANGE, env);
#else
	set_disk_ro(disk, ro);	/* sends the uevent, too */
#endif
}

#if !HAVE_MARK_DISK_DEAD
void blk_mark_disk_dead(struct gendisk *disk)
{
	blk_set_queue_dying(disk->queue);
	set_capacity(disk, 0);
}
#endif
