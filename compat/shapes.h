/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stops the build on a kernel that the shims do not know. A shim has one body for each shape that
 * an interface ever had, and uses the oldest body if no probe of a newer shape says yes. That is
 * wrong on a kernel that is newer than the newest known shape: the errors that follow do not name
 * the cause, or there are none. So the build stops here with one line if one probe says "old",
 * although another probe of something younger than the change says "new".
 *
 * Vendors backport parts of newer kernels, most of all the block layer. So the probe that says
 * "new" must belong to the same part of the kernel as the change, or be younger than all vendor
 * kernels that we know. fixtures.py inverts each answer of the newest kernel. probe.mk reads this
 * file, and adds to its line where to read more.
 */
#ifndef IBNBD_COMPAT_SHAPES_H
#define IBNBD_COMPAT_SHAPES_H

/* ---- what all kernels have ----------------------------------------------- */
#if !HAVE_MQ_F_TAG_HCTX_SHARED
#error "BLK_MQ_F_TAG_HCTX_SHARED is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_MQ_F_STACKING
#error "BLK_MQ_F_STACKING is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_DEFAULT_GROUPS
#error "kobj_type.default_groups is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_SYSFS_EMIT
#error "sysfs_emit() is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_IB_CLIENT_ADD_INT
#error "ib_client.add is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_POST_SEND_CONST
#error "ib_post_send() is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_RDMA_REJECT_REASON
#error "rdma_reject() is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_RDMA_CONNECT_LOCKED
#error "rdma_connect_locked() is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_RDMA_ACK_TIMEOUT
#error "rdma_set_ack_timeout() is not what we know: the kernel is older than 5.10, or has changed it"
#elif !HAVE_BDEV_FILE_OPEN && !HAVE_BDEV_HANDLE && !HAVE_BLKDEV_GET_HOPS && !HAVE_BLKDEV_GET
#error "bdev_file_open_by_path() has a shape that compat/bdev.h does not know"
#endif

/* ---- 6.5, EL9.4: the block layer ----------------------------------------- */
#if HAVE_BLK_MODE_T
#if !HAVE_ALLOC_DISK_LIMITS && !HAVE_ALLOC_DISK
#error "blk_mq_alloc_disk() has a shape that compat/blk.c does not know"
#elif !HAVE_ADD_DISK_RET
#error "add_disk() has a shape that compat/blk.c does not know"
#elif !HAVE_BDOPS_GENDISK
#error "block_device_operations.open has a shape that compat/mq.h does not know"
#elif !HAVE_BDOPS_FREE_DISK
#error "block_device_operations.free_disk has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_TIMEOUT_1ARG
#error "blk_mq_ops.timeout has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_MAP_QUEUES_VOID
#error "blk_mq_ops.map_queues has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_POLL_BATCH
#error "blk_mq_ops.poll has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_QUEUE_RQS
#error "blk_mq_ops.queue_rqs has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_WAIT_QUIESCE_SET && !HAVE_MQ_WAIT_QUIESCE_Q
#error "blk_mq_wait_quiesce_done() has a shape that compat/mq.h does not know"
#elif !HAVE_DISKSEQ
#error "gendisk.diskseq is not what compat/bdev.h knows"
#elif !HAVE_BIO_INIT_BDEV
#error "bio_init() has a shape that compat/bdev.h does not know"
#elif !HAVE_KI_COMPLETE_2ARG
#error "kiocb.ki_complete has a shape that compat/bdev.h does not know"
#elif !HAVE_ISSUE_FLUSH_1ARG
#error "blkdev_issue_flush() has a shape that compat/bdev.h does not know"
#endif
#endif

/* ---- 6.9, 6.11, EL9.6 ---------------------------------------------------- */
#if HAVE_BLK_FEATURES && !HAVE_LIMITS_COMMIT
#error "queue_limits_commit_update() has a shape that compat/blk.c does not know"
#endif

/* ---- 6.15 ---------------------------------------------------------------- */
#if HAVE_RQ_MAP_SG_2ARG
#if !HAVE_BLK_FEATURES
#error "queue_limits.features is not what compat/blk.c knows"
#elif !HAVE_MQ_QUEUE_RQS_LIST
#error "struct rq_list is not what compat/mq.h knows"
#elif !HAVE_ASSIGN_STR_1ARG
#error "__assign_str() has a shape that compat/core.h does not know"
#endif
#endif

/* ---- 7.3: all that the newest kernel has; either of these came with 7.3 -- */
#if HAVE_SCOPED_WITH_INIT_FS || HAVE_USERSPACE_INIT_FS
#if !HAVE_SCOPED_WITH_INIT_FS
#error "scoped_with_init_fs() has a shape that compat/bdev.h does not know"
#elif !HAVE_BLK_MODE_T
#error "blk_mode_t is not what compat/bdev.h knows"
#elif !HAVE_RQ_MAP_SG_2ARG
#error "blk_rq_map_sg() has a shape that compat/mq.h does not know"
#elif !HAVE_BDOPS_GETGEO_DISK
#error "block_device_operations.getgeo has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_WAIT_QUIESCE_SET
#error "blk_mq_wait_quiesce_done() has a shape that compat/mq.h does not know"
#elif !HAVE_MQ_F_NO_SCHED_BY_DEFAULT
#error "BLK_MQ_F_NO_SCHED_BY_DEFAULT is not what compat/mq.h knows"
#elif !HAVE_ALLOC_DISK_LIMITS
#error "blk_mq_alloc_disk() has a shape that compat/blk.c does not know"
#elif !HAVE_MQ_ALLOC_QUEUE
#error "blk_mq_alloc_queue() has a shape that compat/blk.c does not know"
#elif !HAVE_MQ_DESTROY_QUEUE
#error "blk_mq_destroy_queue() has a shape that compat/blk.c does not know"
#elif !HAVE_SET_CAPACITY_NOTIFY
#error "set_capacity_and_notify() has a shape that compat/blk.c does not know"
#elif !HAVE_MARK_DISK_DEAD
#error "blk_mark_disk_dead() has a shape that compat/blk.c does not know"
#elif !HAVE_LIMITS_SECURE_ERASE
#error "queue_limits.max_secure_erase_sectors is not what compat/blk.c knows"
#elif !HAVE_LIMITS_HW_WZEROES_UNMAP
#error "queue_limits.max_hw_wzeroes_unmap_sectors is not what compat/blk.c knows"
#elif !HAVE_BDEV_FILE_OPEN
#error "bdev_file_open_by_path() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_FPUT
#error "bdev_fput() has a shape that compat/bdev.h does not know"
#elif !HAVE_VFS_PATH_LOOKUP
#error "vfs_path_lookup() has a shape that compat/bdev.h does not know"
#elif !HAVE_KIOCB_START_WRITE
#error "kiocb_start_write() has a shape that compat/bdev.h does not know"
#elif !HAVE_STATX_DIOALIGN
#error "kstat.dio_offset_align is not what compat/bdev.h knows"
#elif !HAVE_FMODE_CAN_ODIRECT
#error "FMODE_CAN_ODIRECT is not what compat/bdev.h knows"
#elif !HAVE_BLK_OPF_T
#error "blk_opf_t is not what compat/bdev.h knows"
#elif !HAVE_BIO_ADD_VIRT_NOFAIL
#error "bio_add_virt_nofail() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_NR_SECTORS
#error "bdev_nr_sectors() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_MAX_DISCARD
#error "bdev_max_discard_sectors() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_MAX_SECURE_ERASE
#error "bdev_max_secure_erase_sectors() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_DISCARD_GRANULARITY
#error "bdev_discard_granularity() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_WRITE_CACHE
#error "bdev_write_cache() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_FUA
#error "bdev_fua() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_ROT
#error "bdev_rot() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_STABLE_WRITES
#error "bdev_stable_writes() has a shape that compat/bdev.h does not know"
#elif !HAVE_BDEV_NOWAIT
#error "bdev_nowait() has a shape that compat/bdev.h does not know"
#elif !HAVE_BD_META_INFO
#error "block_device.bd_meta_info is not what compat/bdev.h knows"
#elif !HAVE_H_BLK_INTEGRITY
#error "<linux/blk-integrity.h> is not what compat/bdev.h knows"
#elif !HAVE_CONST_KTYPE
#error "kobject_init() has a shape that compat/core.h does not know"
#elif !HAVE_BIN_ATTR_CONST
#error "bin_attribute.write has a shape that compat/core.h does not know"
#elif !HAVE_SYSTEM_PERCPU_WQ
#error "system_percpu_wq is not what compat/core.h knows"
#elif !HAVE_GUARD_MUTEX
#error "guard(mutex) is not what compat/core.h knows"
#elif !HAVE_GUARD_SPINLOCK
#error "guard(spinlock_irqsave) is not what compat/core.h knows"
#elif !HAVE_GUARD_RCU
#error "guard(rcu) is not what compat/core.h knows"
#elif !HAVE_FREE_KFREE
#error "__free(kfree) is not what compat/core.h knows"
#elif !HAVE_H_UNALIGNED
#error "<linux/unaligned.h> is not what compat/core.h knows"
#elif !HAVE_RDMA_MIN_RNR
#error "rdma_set_min_rnr_timer() has a shape that compat/rdma.h does not know"
#endif
#endif

#endif
