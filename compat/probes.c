// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel feature probes: the WHOLE probe phase is one -fsyntax-only compile of
 * this file. Every PROBE() is a function of its own, so an API the target
 * kernel lacks costs exactly the errors inside that function. probes.awk maps
 * "probes.c:LINE: error" back to the PROBE() the line belongs to:
 *
 *	errors inside the PROBE      ->  #define HAVE_<name> 0
 *	no error                     ->  #define HAVE_<name> 1
 *	error anywhere else          ->  the environment is broken: stop, show it
 *
 * The compiler reports a missing function at its first call only, so probes.awk
 * marks every PROBE that calls this function.
 *
 * Rules: one question per PROBE; some shim or shapes.h uses each answer
 * (fixtures.py checks it); a PROBE is true on the NEWEST kernel wherever
 * possible; no top-level declarations between PROBEs; headers that may be
 * missing are guarded by __has_include; things that are macros on the kernels
 * that have them need no PROBE (use #ifdef in the shims).
 */
#include <linux/module.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/fs.h>
#include <linux/file.h>
#include <linux/fs_struct.h>
#include <linux/namei.h>
#include <linux/stat.h>
#include <linux/uio.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#if __has_include(<linux/genhd.h>)
#include <linux/genhd.h>
#endif
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/sysfs.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>
#if __has_include(<linux/cleanup.h>)
#include <linux/cleanup.h>
#endif
#if __has_include(<trace/stages/stage6_event_callback.h>)
#include <trace/stages/stage6_event_callback.h>
#endif

#define PROBE(name) static void __maybe_unused probe_##name(void)

/* expands a macro and drops the result: tests how many arguments the macro takes */
#define STR_(x...) #x
#define STR(x...) STR_(x)

PROBE(SANE_OK) { int x = 0; (void)x; }			/* must be 1 */
PROBE(SANE_BAD) { no_such_symbol_anywhere(); }		/* must be 0 */

/* ---- blk-mq client ------------------------------------------------------ */
PROBE(ALLOC_DISK_LIMITS) {	/* 6.9; EL9.6 */
	struct queue_limits lim = {}; struct gendisk *d;
	d = blk_mq_alloc_disk((struct blk_mq_tag_set *)NULL, &lim, NULL); (void)d;
}
PROBE(ALLOC_DISK) {		/* 5.14 .. 6.8 (2 args); EL9.0..9.5 */
	struct gendisk *d = blk_mq_alloc_disk((struct blk_mq_tag_set *)NULL, NULL); (void)d;
}
PROBE(BLK_CLEANUP_DISK) { blk_cleanup_disk((struct gendisk *)NULL); }	/* 5.14..5.19 */
PROBE(BLK_FEATURES) {
	struct queue_limits l = { .features = BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA }; (void)l;
}
PROBE(LIMITS_COMMIT) {		/* 6.9 */
	struct queue_limits lim = queue_limits_start_update((struct request_queue *)NULL);
	int r = queue_limits_commit_update((struct request_queue *)NULL, &lim); (void)r;
}
PROBE(LIMITS_SECURE_ERASE) {	/* 5.19 */
	struct queue_limits l = { .max_secure_erase_sectors = 1 }; (void)l;
}
PROBE(LIMITS_HW_WZEROES_UNMAP) {	/* 6.17 */
	struct queue_limits l = { .max_hw_wzeroes_unmap_sectors = 1 }; (void)l;
}
PROBE(QUEUE_FLAG_DISCARD) { int x = QUEUE_FLAG_DISCARD; (void)x; }	/* until 5.18 */
PROBE(QUEUE_FLAG_SECERASE) { int x = QUEUE_FLAG_SECERASE; (void)x; }	/* until 5.18 */
PROBE(ADD_DISK_RET) { int r = add_disk((struct gendisk *)NULL); (void)r; }	/* 5.15 */
PROBE(BDOPS_GENDISK) {		/* 6.5: open(disk, blk_mode_t), release(disk) */
	struct block_device_operations o;
	int (*op)(struct gendisk *, blk_mode_t) = o.open;
	void (*re)(struct gendisk *) = o.release; (void)op; (void)re;
}
PROBE(BDOPS_GETGEO_DISK) {	/* 6.18: getgeo(disk, geo) */
	struct block_device_operations o;
	int (*f)(struct gendisk *, struct hd_geometry *) = o.getgeo; (void)f;
}
PROBE(BDOPS_FREE_DISK) {	/* 5.18 */
	struct block_device_operations o; void (*f)(struct gendisk *) = o.free_disk; (void)f;
}
PROBE(MQ_TIMEOUT_1ARG) {	/* 6.1 */
	struct blk_mq_ops o;
	enum blk_eh_timer_return (*f)(struct request *) = o.timeout; (void)f;
}
PROBE(MQ_MAP_QUEUES_VOID) {	/* 6.1 */
	struct blk_mq_ops o;
	void (*f)(struct blk_mq_tag_set *) = o.map_queues; (void)f;
}
PROBE(MQ_POLL_BATCH) {		/* 5.16 */
	struct blk_mq_ops o;
	int (*f)(struct blk_mq_hw_ctx *, struct io_comp_batch *) = o.poll; (void)f;
}
PROBE(RQ_MAP_SG_2ARG) {		/* 6.15 */
	int n = blk_rq_map_sg((struct request *)NULL, (struct scatterlist *)NULL); (void)n;
}
PROBE(MQ_F_SHOULD_MERGE) { int x = BLK_MQ_F_SHOULD_MERGE; (void)x; }	/* until 6.13 */
PROBE(SET_CAPACITY_NOTIFY) {	/* 5.11, 5.10.y */
	set_capacity_and_notify((struct gendisk *)NULL, (sector_t)0);
}
PROBE(SET_CAPACITY_REVALIDATE) {	/* 5.7 .. 5.10; EL8 */
	set_capacity_revalidate_and_notify((struct gendisk *)NULL, (sector_t)0, true);
}
PROBE(MARK_DISK_DEAD) { blk_mark_disk_dead((struct gendisk *)NULL); }	/* 5.16 */
PROBE(MQ_ALLOC_QUEUE) {		/* 6.9 */
	struct request_queue *q = blk_mq_alloc_queue((struct blk_mq_tag_set *)NULL, NULL, NULL);
	(void)q;
}
PROBE(MQ_DESTROY_QUEUE) { blk_mq_destroy_queue((struct request_queue *)NULL); }	/* 6.0 */
PROBE(MQ_WAIT_QUIESCE_SET) { blk_mq_wait_quiesce_done((struct blk_mq_tag_set *)NULL); }	/* 6.2 */
PROBE(MQ_WAIT_QUIESCE_Q) {	/* 5.16, 6.1 */
	blk_mq_wait_quiesce_done((struct request_queue *)NULL);
}
PROBE(MQ_F_NO_SCHED_BY_DEFAULT) { int x = BLK_MQ_F_NO_SCHED_BY_DEFAULT; (void)x; }	/* 5.14 */
PROBE(MQ_F_TAG_HCTX_SHARED) {	/* 5.10: all targets */
	int x = BLK_MQ_F_TAG_HCTX_SHARED; (void)x;
}
PROBE(MQ_F_STACKING) { int x = BLK_MQ_F_STACKING; (void)x; }	/* 5.8: all targets */
PROBE(MQ_QUEUE_RQS) { struct blk_mq_ops o; void *p = o.queue_rqs; (void)p; }	/* 5.16 */
PROBE(MQ_QUEUE_RQS_LIST) {	/* 6.13: struct rq_list with a tail */
	struct blk_mq_ops o;
	void (*f)(struct rq_list *) = o.queue_rqs; (void)f;
}

/* ---- block server ------------------------------------------------------- */
PROBE(BDEV_FILE_OPEN) {		/* 6.9 */
	struct file *f = bdev_file_open_by_path("", BLK_OPEN_READ, NULL, NULL); (void)file_bdev(f);
}
PROBE(BDEV_HANDLE) {		/* 6.7, 6.8 */
	struct bdev_handle *h = bdev_open_by_path("", BLK_OPEN_READ, NULL, NULL); (void)h;
}
PROBE(BLKDEV_GET_HOPS) {	/* 6.5, 6.6 */
	struct block_device *b = blkdev_get_by_path("", BLK_OPEN_READ, NULL, NULL); (void)b;
}
PROBE(BLKDEV_GET) {		/* until 6.4 */
	struct block_device *b = blkdev_get_by_path("", FMODE_READ, NULL); (void)b;
}
PROBE(BDEV_FPUT) { bdev_fput((struct file *)NULL); }	/* 6.9 */
PROBE(BLK_MODE_T) { blk_mode_t m = BLK_OPEN_READ | BLK_OPEN_WRITE; (void)m; }	/* 6.5 */
PROBE(VFS_PATH_LOOKUP) {	/* declared in a public header since 6.4 or so, exported by all */
	int r = vfs_path_lookup(NULL, NULL, "", 0, (struct path *)NULL); (void)r;
}
PROBE(KIOCB_START_WRITE) { kiocb_start_write(NULL); kiocb_end_write(NULL); }	/* 6.5, stable */
PROBE(STATX_DIOALIGN) {		/* 6.1 */
	struct kstat s; u32 x = s.dio_offset_align | s.dio_mem_align | STATX_DIOALIGN; (void)x;
}
PROBE(DISKSEQ) { u64 x = ((struct gendisk *)NULL)->diskseq; (void)x; }	/* 5.15 */
PROBE(FMODE_CAN_ODIRECT) { fmode_t m = FMODE_CAN_ODIRECT; (void)m; }	/* 6.0 */
PROBE(BIO_INIT_BDEV) { struct bio b; bio_init(&b, NULL, NULL, 0, REQ_OP_READ); }	/* 5.18 */
PROBE(BLK_OPF_T) { blk_opf_t x = 0; (void)x; }	/* 6.0 */
PROBE(BIO_ADD_VIRT_NOFAIL) { bio_add_virt_nofail(NULL, NULL, 0); }	/* 6.16, 6.12.y */
PROBE(BDEV_NR_SECTORS) {	/* 5.16 */
	sector_t s = bdev_nr_sectors((struct block_device *)NULL); (void)s;
}
PROBE(BDEV_MAX_DISCARD) {	/* 5.19 */
	unsigned int s = bdev_max_discard_sectors((struct block_device *)NULL); (void)s;
}
PROBE(BDEV_MAX_SECURE_ERASE) {	/* 5.19 */
	unsigned int s = bdev_max_secure_erase_sectors((struct block_device *)NULL); (void)s;
}
PROBE(BDEV_DISCARD_GRANULARITY) {	/* 5.19 */
	unsigned int s = bdev_discard_granularity((struct block_device *)NULL); (void)s;
}
PROBE(BDEV_WRITE_CACHE) {	/* 5.19 */
	bool b = bdev_write_cache((struct block_device *)NULL); (void)b;
}
PROBE(BDEV_FUA) { bool b = bdev_fua((struct block_device *)NULL); (void)b; }	/* 5.19 */
PROBE(BDEV_ROT) { bool b = bdev_rot((struct block_device *)NULL); (void)b; }	/* 7.x */
PROBE(BDEV_NONROT) {		/* 5.19 .. */
	bool b = bdev_nonrot((struct block_device *)NULL); (void)b;
}
PROBE(BDEV_STABLE_WRITES) {	/* 5.19 */
	bool b = bdev_stable_writes((struct block_device *)NULL); (void)b;
}
PROBE(BDEV_NOWAIT) { bool b = bdev_nowait((struct block_device *)NULL); (void)b; }	/* 6.1 */
PROBE(BD_META_INFO) {		/* 5.11 */
	struct partition_meta_info *i = ((struct block_device *)NULL)->bd_meta_info; (void)i;
}
PROBE(ISSUE_FLUSH_1ARG) {	/* 5.12 */
	int r = blkdev_issue_flush((struct block_device *)NULL); (void)r;
}
PROBE(ISSUE_FLUSH_3ARG) {	/* until 5.7; EL8 */
	int r = blkdev_issue_flush((struct block_device *)NULL, GFP_KERNEL, NULL); (void)r;
}
PROBE(KI_COMPLETE_2ARG) {	/* 5.16 */
	struct kiocb k; void (*f)(struct kiocb *, long) = k.ki_complete; (void)f;
}

/* ---- driver model ------------------------------------------------------- */
PROBE(CONST_KTYPE) { const struct kobj_type *t = NULL; kobject_init(NULL, t); }	/* 5.18 or later */
PROBE(BIN_ATTR_CONST) {		/* 6.16 */
	struct bin_attribute a;
	ssize_t (*f)(struct file *, struct kobject *, const struct bin_attribute *, char *, loff_t,
		     size_t) = a.write;
	(void)f;
}
PROBE(DEFAULT_GROUPS) { struct kobj_type t = { .default_groups = NULL }; (void)t; }	/* 5.2 */
PROBE(SYSFS_EMIT) { int n = sysfs_emit(NULL, "x"); (void)n; }	/* 5.10 */

/* ---- RDMA --------------------------------------------------------------- */
PROBE(IB_CLIENT_ADD_INT) {	/* 5.8 */
	struct ib_client c; int (*f)(struct ib_device *) = c.add; (void)f;
}
PROBE(RDMA_REJECT_REASON) { int r = rdma_reject(NULL, NULL, 0, 0); (void)r; }	/* 5.8 */
PROBE(RDMA_CONNECT_LOCKED) { int r = rdma_connect_locked(NULL, NULL); (void)r; }	/* 5.10 */
PROBE(RDMA_MIN_RNR) { int r = rdma_set_min_rnr_timer(NULL, 0); (void)r; }	/* 5.15 */
PROBE(RDMA_ACK_TIMEOUT) { int r = rdma_set_ack_timeout(NULL, 0); (void)r; }	/* 5.2 */
PROBE(POST_SEND_CONST) {	/* 4.19 */
	const struct ib_send_wr **bad;
	int r = ib_post_send(NULL, (const struct ib_send_wr *)NULL, bad); (void)r;
}

/* ---- misc --------------------------------------------------------------- */
PROBE(SYSTEM_PERCPU_WQ) { struct workqueue_struct *w = system_percpu_wq; (void)w; }	/* 6.17 */
PROBE(GUARD_MUTEX) { guard(mutex)((struct mutex *)NULL); }	/* 6.5, 5.10.y */
PROBE(GUARD_SPINLOCK) { guard(spinlock_irqsave)((spinlock_t *)NULL); }
PROBE(GUARD_RCU) { guard(rcu)(); }
PROBE(FREE_KFREE) { void *p __free(kfree) = NULL; (void)p; }
PROBE(ASSIGN_STR_1ARG) {	/* 6.10 */
#ifndef __assign_str
#error "before 5.18 it is defined by define_trace.h alone"
#endif
	const char *s = STR(__assign_str(x)); (void)s;
}
PROBE(SCOPED_WITH_INIT_FS) { scoped_with_init_fs() ; }	/* 7.3 */
PROBE(USERSPACE_INIT_FS) {	/* 7.3: it came with SCOPED_WITH_INIT_FS */
	struct fs_struct *f = userspace_init_fs; (void)f;
}

/* ---- headers (asked here, since sparse does not know __has_include) ------ */
PROBE(H_GENHD) {	/* until 5.17 */
#if !__has_include(<linux/genhd.h>)
#error
#endif
}
PROBE(H_BLK_INTEGRITY) {	/* 5.16 */
#if !__has_include(<linux/blk-integrity.h>)
#error
#endif
}
PROBE(H_UNALIGNED) {	/* 6.12; before, asm/unaligned.h */
#if !__has_include(<linux/unaligned.h>)
#error
#endif
}

PROBE(SANE_END) {		/* must be 0: the compiler reached the end */
	no_such_symbol_at_end();
}
