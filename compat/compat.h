/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one header between the drivers and the kernel. Kbuild forces it into
 * every object (-include), so no file includes it. Drivers are written against
 * the newest kernel. What an older kernel lacks is added here; an interface
 * that has changed its shape is wrapped as cx_*. Which kernel has what is found
 * by compile probes (probes.c -> config.h: HAVE_x is always 0 or 1), never by
 * version numbers. What is a macro on each kernel that has it needs no probe,
 * only #ifndef.
 *
 * SAME NAME AS IN THE NEWEST KERNEL (just use it; older kernels get it here)
 *   time       secs_to_jiffies
 *   workqueue  system_percpu_wq (alloc_workqueue: always WQ_UNBOUND)
 *   memory     kzalloc_obj(*p, gfp)
 *              guard() scoped_guard() __free(): mutex, spinlock[_irq[save]],
 *              rcu; __free(kfree)
 *   strings    sysfs_emit[_at]; strscpy() with all 3 arguments
 *   files      kiocb_start_write kiocb_end_write ITER_SOURCE ITER_DEST
 *              vfs_path_lookup scoped_with_init_fs() (around every lookup or
 *              open of a name outside a user's own system call)
 *   bio        blk_opf_t REQ_POLLED bio_add_virt_nofail
 *   bdev       bdev_nr_sectors bdev_max_discard_sectors
 *              bdev_discard_granularity bdev_max_secure_erase_sectors
 *              bdev_write_cache bdev_fua bdev_rot bdev_stable_writes
 *              blkdev_issue_flush(bdev) bdev_kobj
 *   blk-mq     BLK_MQ_F_SHOULD_MERGE BLK_MQ_F_NO_SCHED_BY_DEFAULT (set both)
 *              blk_rq_map_sg(rq, sgl) blk_mark_disk_dead
 *              set_capacity_and_notify blk_mode_t BLK_OPEN_{READ,WRITE}
 *   rdma       rdma_set_min_rnr_timer
 *              (device attributes are int or u32: use min_t(u32, ...))
 *
 * WRAPPERS (the shape changed; cx_* offers the newest one)
 *  disk, client (mq.h, blk.c)
 *   struct cx_limits                        what we need of queue_limits
 *   struct gendisk *cx_alloc_disk(set, const struct cx_limits *, queuedata)
 *   int  cx_add_disk(parent, disk, groups, free_disk)  5.10: checks that it came up
 *   int  cx_update_limits(disk, lim)        live, does not freeze (law L2)
 *   void cx_need_part_scan(disk)            the disk got its first size
 *   void cx_set_capacity(disk, sectors)     set_capacity_and_notify, no uevent
 *   void cx_set_ro(disk, ro)                set_disk_ro in halves: the flag,
 *   void cx_tell_ro(disk, ro)               then the uevent
 *   void cx_free_disk(disk)                 after del_gendisk, or add failed
 *   bool cx_disable_op(rq)                  its kind is refused: send no more
 *   struct request_queue *cx_alloc_queue(set)  a queue without a disk
 *   void cx_free_queue(q)
 *   bool cx_set_unused(set)                 has the last queue left it?
 *   void cx_wait_quiesce_done(set, q)       after blk_mq_quiesce_queue_nowait
 *   DEF_MQ_TIMEOUT(fn, rq) { }              a function for blk_mq_ops.timeout
 *   DEF_MQ_MAP_QUEUES(fn, set) { ... MQ_MAP_QUEUES_END }
 *   DEF_MQ_POLL(fn, hctx) { }               .poll
 *   DEF_MQ_QUEUE_RQS(fn, list) { }  with cx_rq_list_t l = CX_RQ_LIST_INIT and
 *                                   cx_rq_list_pop/add_tail
 *   in the ops table: MQ_QUEUE_RQS(fn)      ".queue_rqs = fn," or nothing
 *   DEF_BD_OPEN(fn, disk, mode) DEF_BD_RELEASE(fn, disk) DEF_BD_GETGEO(fn, disk, geo)
 *   in the operations of a disk: BD_FREE_DISK(fn)  and pass fn to cx_add_disk, too
 *  block and file, server (bdev.h)
 *   cx_bdev_t cx_bdev_open(dev_t, blk_mode_t, holder or NULL)   ERR_PTR on
 *                                           failure; a holder claims the disk
 *   struct block_device *cx_bdev(cx_bdev_t)
 *   void cx_bdev_close(cx_bdev_t, blk_mode_t, holder)   mode and holder are
 *                                           those of the open; synchronous
 *   void cx_fput(file)                      fput; in a kernel thread the file is
 *                                           closed on return
 *   u64 cx_diskseq(disk)                    0: the kernel does not number disks
 *   const char *cx_part_uuid(bdev)              NULL: not a partition, or no uuid
 *   void cx_bio_init(bio, bdev, vecs, nr_vecs, opf)   an embedded bio
 *   DEF_KI_COMPLETE(fn, iocb, ret) { }      kiocb.ki_complete
 *   ssize_t cx_read_iter(iocb, iter)  ssize_t cx_write_iter(iocb, iter)
 *   void cx_write_done(iocb)                in ki_complete of a queued write,
 *                                           exactly there (law L11)
 *   unsigned int cx_dio_align(file)         direct I/O alignment, 0 = none
 *  driver model, trace (core.h)
 *   const_ktype                             "static const_ktype struct kobj_type"
 *   const_bin_attr                          qualifies the struct bin_attribute that
 *                                           its read and write functions get
 *   class_create(name)                      use it, not a static struct class, whose
 *                                           kobject may outlive the module
 *   cx_assign_str(field, src)               in TP_fast_assign
 */
#ifndef IBNBD_COMPAT_H
#define IBNBD_COMPAT_H

/* printk.h is included below, so a pr_fmt in a driver would come too late */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "config.h"		/* generated by probes.awk */
#include "shapes.h"
#include "core.h"
#include "bdev.h"
#include "mq.h"
#include "rdma.h"

#endif
