/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kernels that we do not know. Where a shim has a body for each shape that a thing ever had, "none of the newer ones" means the oldest. That
 * is wrong on a kernel that is newer than the newest shape, and would end in errors which name everything but the cause. So here the build
 * stops with one line, if an answer says "old" although another one, younger than the change, says "new".
 */
#ifndef IBNBD_COMPAT_SHAPES_H
#define IBNBD_COMPAT_SHAPES_H

#if HAVE_BLK_MODE_T		/* 6.5, EL9.4 */
#if !HAVE_ALLOC_DISK_LIMITS && !HAVE_ALLOC_DISK
#error "blk_mq_alloc_disk() has a shape that compat/blk.c does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_ADD_DISK_RET
#error "add_disk() has a shape that compat/blk.c does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_BDOPS_GENDISK
#error "block_device_operations.open has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_TIMEOUT_1ARG
#error "blk_mq_ops.timeout has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_MAP_QUEUES_VOID
#error "blk_mq_ops.map_queues has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_POLL_BATCH
#error "blk_mq_ops.poll has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_QUEUE_RQS
#error "blk_mq_ops.queue_rqs has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_TAG_ITER_2ARG
#error "blk_mq_tagset_busy_iter() has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_WAIT_QUIESCE_SET && !HAVE_MQ_WAIT_QUIESCE_Q
#error "blk_mq_wait_quiesce_done() has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_QUEUE_DISK
#error "request_queue.disk is not what compat/mq.h knows; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_BIO_ALLOC_BDEV
#error "bio_alloc_bioset() has a shape that compat/bdev.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_BIO_INIT_BDEV
#error "bio_init() has a shape that compat/bdev.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_KI_COMPLETE_2ARG
#error "kiocb.ki_complete has a shape that compat/bdev.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_ISSUE_FLUSH_1ARG
#error "blkdev_issue_flush() has a shape that compat/bdev.h does not know; see docs/kernels.md and compat/config.h.log"
#endif
#endif

#if HAVE_BLK_FEATURES && !HAVE_LIMITS_COMMIT	/* 6.11; 6.9 */
#error "queue_limits_commit_update() has a shape that compat/blk.c does not know; see docs/kernels.md and compat/config.h.log"
#endif

#if HAVE_RQ_MAP_SG_2ARG		/* 6.15 */
#if !HAVE_BLK_FEATURES
#error "queue_limits.features is not what compat/blk.c knows; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_FREEZE_MEMFLAGS
#error "blk_mq_freeze_queue() has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_MQ_QUEUE_RQS_LIST
#error "struct rq_list is not what compat/mq.h knows; see docs/kernels.md and compat/config.h.log"
#elif !HAVE_ASSIGN_STR_1ARG
#error "__assign_str() has a shape that compat/core.h does not know; see docs/kernels.md and compat/config.h.log"
#endif
#endif

#if HAVE_INIT_REQUEST_INT_NODE && !HAVE_RQ_MAP_SG_2ARG	/* 7.1; 6.15 */
#error "blk_rq_map_sg() has a shape that compat/mq.h does not know; see docs/kernels.md and compat/config.h.log"
#endif

#endif
