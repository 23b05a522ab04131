/* SPDX-License-Identifier: GPL-2.0-only */
/* blk-mq and disks as the client uses them; the long shims live in blk.c. See compat.h. */
#ifndef IBNBD_COMPAT_MQ_H
#define IBNBD_COMPAT_MQ_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/hdreg.h>

/* ---- disk and limits ----------------------------------------------------- */

/**
 * struct cx_limits - what we need of struct queue_limits, in its newest terms
 * @logical_block_size:	power of two, at least 512
 * @physical_block_size: at least @logical_block_size
 * @io_min:		0 or a multiple of @physical_block_size
 * @io_opt:		0 or preferred request size in bytes
 * @max_hw_sectors:	at least one page
 * @max_segments:	entries of a scatter list
 * @max_hw_discard_sectors: 0 = no discard
 * @discard_granularity: bytes
 * @discard_alignment:	bytes
 * @max_secure_erase_sectors: 0 = no secure erase
 * @max_write_zeroes_sectors: 0 = no write zeroes
 * @max_hw_wzeroes_unmap_sectors: 0 = a write of zeroes keeps its blocks allocated
 * @virt_boundary_mask:	0 = gaps are fine
 * @dma_alignment:	mask, 0 = the kernel's default
 * @write_cache:	a volatile cache, flushes wanted
 * @fua:		forced unit access, only with @write_cache
 * @rotational:		a spinning disk
 * @stable_writes:	pages must not change during a write
 */
struct cx_limits {
	unsigned int	logical_block_size;
	unsigned int	physical_block_size;
	unsigned int	io_min;
	unsigned int	io_opt;
	unsigned int	max_hw_sectors;
	unsigned int	max_segments;
	unsigned int	max_hw_discard_sectors;
	unsigned int	discard_granularity;
	unsigned int	discard_alignment;
	unsigned int	max_secure_erase_sectors;
	unsigned int	max_write_zeroes_sectors;
	unsigned int	max_hw_wzeroes_unmap_sectors;
	unsigned long	virt_boundary_mask;
	unsigned int	dma_alignment;
	bool		write_cache;
	bool		fua;
	bool		rotational;
	bool		stable_writes;
};

struct gendisk *cx_alloc_disk(struct blk_mq_tag_set *set, const struct cx_limits *lim, void *data);
int __must_check cx_add_disk(struct device *parent, struct gendisk *disk,
			     const struct attribute_group **groups,
			     void (*free_disk)(struct gendisk *disk));
int __must_check cx_update_limits(struct gendisk *disk, const struct cx_limits *lim);
void cx_free_disk(struct gendisk *disk);
bool cx_disable_op(struct request *rq);

/* ---- a queue without a disk ---------------------------------------------- */
struct request_queue *cx_alloc_queue(struct blk_mq_tag_set *set);
void cx_free_queue(struct request_queue *q);
bool cx_set_unused(struct blk_mq_tag_set *set);

#if !HAVE_SET_CAPACITY_NOTIFY	/* 5.11, 5.10.y */
bool set_capacity_and_notify(struct gendisk *disk, sector_t sectors);
#endif

/*
 * set_capacity_and_notify() and set_disk_ro() in halves, for callers that must
 * not wait for the sender of another uevent: cx_set_* sends no uevent. The
 * caller sends RESIZE=1 itself later, and calls cx_tell_ro(). A kernel before
 * 5.12 sets the read-only flag only in cx_tell_ro().
 */
void cx_set_capacity(struct gendisk *disk, sector_t sectors);
void cx_set_ro(struct gendisk *disk, bool ro);
void cx_tell_ro(struct gendisk *disk, bool ro);

/*
 * The next open of the disk reads its partition table. A kernel before 5.17 does not: there
 * partprobe must do it.
 */
static inline void cx_need_part_scan(struct gendisk *disk)
{
#ifdef GD_NEED_PART_SCAN
	set_bit(GD_NEED_PART_SCAN, &disk->state);
#endif
}
#if !HAVE_MARK_DISK_DEAD	/* 5.16 */
void blk_mark_disk_dead(struct gendisk *disk);
#endif

/* ---- quiesce ------------------------------------------------------------- */
/**
 * cx_wait_quiesce_done() - wait until no queue_rq runs on queues quiesced _nowait
 * @set: the tag set of these queues
 * @q: any of these queues
 */
static inline void cx_wait_quiesce_done(struct blk_mq_tag_set *set, struct request_queue *q)
{
#if HAVE_MQ_WAIT_QUIESCE_SET	/* 6.2 */
	blk_mq_wait_quiesce_done(set);
#elif HAVE_MQ_WAIT_QUIESCE_Q	/* 5.16 */
	blk_mq_wait_quiesce_done(q);
#else
	blk_mq_quiesce_queue(q);	/* keeps no count on these kernels: it only waits */
#endif
}

/* ---- tag set flags -------------------------------------------------------- */
#if !HAVE_MQ_F_SHOULD_MERGE	/* always on since 6.14; must be set before */
#define BLK_MQ_F_SHOULD_MERGE	0
#endif
#if !HAVE_MQ_F_NO_SCHED_BY_DEFAULT	/* 5.14 */
#define BLK_MQ_F_NO_SCHED_BY_DEFAULT BLK_MQ_F_NO_SCHED
#endif

/* ---- requests ------------------------------------------------------------ */
#if !HAVE_RQ_MAP_SG_2ARG	/* 6.15 */
#define blk_rq_map_sg(rq, sgl)	blk_rq_map_sg((rq)->q, rq, sgl)
#endif

/* ---- functions of blk_mq_ops --------------------------------------------- */
#if HAVE_MQ_TIMEOUT_1ARG	/* 6.1 */
#define DEF_MQ_TIMEOUT(fn, rq)	static enum blk_eh_timer_return fn(struct request *rq)
#else
#define DEF_MQ_TIMEOUT(fn, rq)	\
	static enum blk_eh_timer_return fn(struct request *rq, bool __always_unused cx_reserved)
#endif
#if HAVE_MQ_MAP_QUEUES_VOID	/* 6.1 */
#define DEF_MQ_MAP_QUEUES(fn, set) static void fn(struct blk_mq_tag_set *set)
#define MQ_MAP_QUEUES_END
#else
#define DEF_MQ_MAP_QUEUES(fn, set) static int fn(struct blk_mq_tag_set *set)
#define MQ_MAP_QUEUES_END	return 0;
#endif
#if HAVE_MQ_POLL_BATCH		/* 5.16 */
#define DEF_MQ_POLL(fn, hctx)	\
	static int fn(struct blk_mq_hw_ctx *hctx, struct io_comp_batch __always_unused *cx_iob)
#else
#define DEF_MQ_POLL(fn, hctx)	static int fn(struct blk_mq_hw_ctx *hctx)
#endif

#if HAVE_MQ_QUEUE_RQS_LIST	/* 6.13 */
#define DEF_MQ_QUEUE_RQS(fn, list)	static void fn(struct rq_list *list)
typedef struct rq_list cx_rq_list_t;
#define CX_RQ_LIST_INIT			{}
#define cx_rq_list_pop(l)		rq_list_pop(l)
#define cx_rq_list_add_tail(l, rq)	rq_list_add_tail(l, rq)
#define MQ_QUEUE_RQS(fn)		.queue_rqs = fn,
#elif HAVE_MQ_QUEUE_RQS		/* 5.16: a bare singly linked list, no tail kept */
#define DEF_MQ_QUEUE_RQS(fn, list)	static void fn(struct request **list)
#define MQ_QUEUE_RQS(fn)		.queue_rqs = fn,
#else
#define DEF_MQ_QUEUE_RQS(fn, list)	static void __maybe_unused fn(struct request **list)
#define MQ_QUEUE_RQS(fn)
#endif
#if !HAVE_MQ_QUEUE_RQS_LIST
typedef struct request *cx_rq_list_t;
#define CX_RQ_LIST_INIT			NULL
#if HAVE_MQ_QUEUE_RQS
#define CX_RQ_NEXT(rq)			((rq)->rq_next)
#else
#define CX_RQ_NEXT(rq)			(*(struct request **)&(rq)->queuelist.next)
#endif
static inline struct request *cx_rq_list_pop(cx_rq_list_t *l)
{
	struct request *rq = *l;

	if (rq) {
		*l = CX_RQ_NEXT(rq);
		CX_RQ_NEXT(rq) = NULL;
	}
	return rq;
}

static inline void cx_rq_list_add_tail(cx_rq_list_t *l, struct request *rq)
{
	while (*l)
		l = &CX_RQ_NEXT(*l);
	CX_RQ_NEXT(rq) = NULL;
	*l = rq;
}
#endif

/* ---- functions of block_device_operations -------------------------------- */
#if HAVE_BDOPS_GENDISK		/* 6.5 */
#define DEF_BD_OPEN(fn, disk, mode) static int fn(struct gendisk *disk, blk_mode_t mode)
#define DEF_BD_RELEASE(fn, disk) static void fn(struct gendisk *disk)
#else
#define DEF_BD_OPEN(fn, disk, mode)					\
	static int fn##_disk(struct gendisk *disk, fmode_t mode);	\
	static int fn(struct block_device *b, fmode_t m)		\
	{								\
		return fn##_disk(b->bd_disk, m);			\
	}								\
	static int fn##_disk(struct gendisk *disk, fmode_t mode)
#define DEF_BD_RELEASE(fn, disk)	\
	static void fn(struct gendisk *disk, fmode_t __always_unused cx_mode)
#endif
#if HAVE_BDOPS_GETGEO_DISK	/* 6.18 */
#define DEF_BD_GETGEO(fn, disk, geo) static int fn(struct gendisk *disk, struct hd_geometry *geo)
#else
#define DEF_BD_GETGEO(fn, disk, geo)						\
	static int fn##_disk(struct gendisk *disk, struct hd_geometry *geo);	\
	static int fn(struct block_device *b, struct hd_geometry *g)		\
	{									\
		return fn##_disk(b->bd_disk, g);				\
	}									\
	static int fn##_disk(struct gendisk *disk, struct hd_geometry *geo)
#endif
#if HAVE_BDOPS_FREE_DISK	/* 5.18; before, cx_add_disk() sets fn up */
#define BD_FREE_DISK(fn)		.free_disk = fn,
#else
#define BD_FREE_DISK(fn)
#endif

#endif
