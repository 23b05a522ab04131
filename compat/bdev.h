/* SPDX-License-Identifier: GPL-2.0-only */
/* Block devices and files as the server uses them: open, ask, submit. See compat.h. */
#ifndef IBNBD_COMPAT_BDEV_H
#define IBNBD_COMPAT_BDEV_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/namei.h>
#include <linux/sched.h>
#include <linux/stat.h>
#include <linux/uio.h>
#if HAVE_H_BLK_INTEGRITY
#include <linux/blk-integrity.h>
#endif
#if HAVE_H_GENHD
#include <linux/genhd.h>
#endif

/* ---- names --------------------------------------------------------------- */
#if !HAVE_SCOPED_WITH_INIT_FS	/* 7.3: kthreads no longer share init's fs_struct */
#define scoped_with_init_fs()	if (1)
#endif
#if !HAVE_VFS_PATH_LOOKUP	/* exported since 2.6, declared in a public header since 6.4 */
int vfs_path_lookup(struct dentry *dentry, struct vfsmount *mnt, const char *name,
		    unsigned int flags, struct path *path);
#endif

/*
 * The kernel hands the last fput() of a kernel thread to a work item. So close
 * the file here: it is really closed when the owner of the export reads
 * "closed". (To run that work item would close files of others too, each of
 * which may hang.)
 */
static inline void cx_fput(struct file *file)
{
	if (current->flags & PF_KTHREAD)
		__fput_sync(file);
	else
		fput(file);
}

/* ---- disks --------------------------------------------------------------- */
static inline u64 cx_diskseq(const struct gendisk *disk)
{
#if HAVE_DISKSEQ		/* 5.15 */
	return disk->diskseq;
#else
	return 0;
#endif
}

/* ---- opening a block device by number ------------------------------------ */
/*
 * A holder claims the block device. As long as the claim lasts, no other holder
 * can claim it, and no holder at all can claim a partition of it or, if it is a
 * partition, its whole disk. All opens with the same holder share the claim. A
 * holder of NULL claims nothing.
 */
#if !HAVE_BLK_MODE_T		/* 6.5 */
typedef fmode_t blk_mode_t;
#define BLK_OPEN_READ		FMODE_READ
#define BLK_OPEN_WRITE		FMODE_WRITE
#endif

#if HAVE_BDEV_FILE_OPEN		/* 6.9, EL9.5 */
typedef struct file *cx_bdev_t;

static inline cx_bdev_t cx_bdev_open(dev_t dev, blk_mode_t mode, void *holder)
{
	return bdev_file_open_by_dev(dev, mode, holder, NULL);
}

static inline struct block_device *cx_bdev(cx_bdev_t b)
{
	return file_bdev(b);
}

static inline void cx_bdev_close(cx_bdev_t b, blk_mode_t mode, void *holder)
{
#if HAVE_BDEV_FPUT
	get_file(b);		/* the last reference is for cx_fput() */
	bdev_fput(b);
#endif
	cx_fput(b);
}
#elif HAVE_BDEV_HANDLE		/* 6.7, 6.8 */
typedef struct bdev_handle *cx_bdev_t;

static inline cx_bdev_t cx_bdev_open(dev_t dev, blk_mode_t mode, void *holder)
{
	return bdev_open_by_dev(dev, mode, holder, NULL);
}

static inline struct block_device *cx_bdev(cx_bdev_t b)
{
	return b->bdev;
}

static inline void cx_bdev_close(cx_bdev_t b, blk_mode_t mode, void *holder)
{
	bdev_release(b);
}
#else
typedef struct block_device *cx_bdev_t;

static inline struct block_device *cx_bdev(cx_bdev_t b)
{
	return b;
}

static inline cx_bdev_t cx_bdev_open(dev_t dev, blk_mode_t mode, void *holder)
{
#if HAVE_BLKDEV_GET_HOPS	/* 6.5, 6.6; EL9.4 */
	return blkdev_get_by_dev(dev, mode, holder, NULL);
#else				/* until 6.4 */
	return blkdev_get_by_dev(dev, holder ? mode | FMODE_EXCL : mode, holder);
#endif
}

static inline void cx_bdev_close(cx_bdev_t b, blk_mode_t mode, void *holder)
{
#if HAVE_BLKDEV_GET_HOPS
	blkdev_put(b, holder);
#else
	blkdev_put(b, holder ? mode | FMODE_EXCL : mode);
#endif
}
#endif

/* ---- what a block device can do ------------------------------------------ */
#if !HAVE_BDEV_NR_SECTORS	/* 5.16 */
#define bdev_nr_sectors(b)	((sector_t)(i_size_read((b)->bd_inode) >> SECTOR_SHIFT))
#endif
#if !HAVE_BDEV_MAX_DISCARD	/* 5.19 */
static inline unsigned int bdev_max_discard_sectors(struct block_device *b)
{
	struct request_queue *q = bdev_get_queue(b);

	return blk_queue_discard(q) ? q->limits.max_discard_sectors : 0;
}
#endif
#if !HAVE_BDEV_DISCARD_GRANULARITY	/* 5.19 */
static inline unsigned int bdev_discard_granularity(struct block_device *b)
{
	return bdev_get_queue(b)->limits.discard_granularity;
}
#endif
#if !HAVE_BDEV_MAX_SECURE_ERASE	/* 5.19 */
static inline unsigned int bdev_max_secure_erase_sectors(struct block_device *b)
{
	return blk_queue_secure_erase(bdev_get_queue(b)) ? bdev_max_discard_sectors(b) : 0;
}
#endif
#if !HAVE_BDEV_WRITE_CACHE	/* 5.19 */
#define bdev_write_cache(b)	test_bit(QUEUE_FLAG_WC, &bdev_get_queue(b)->queue_flags)
#endif
#if !HAVE_BDEV_FUA		/* 5.19 */
#define bdev_fua(b)		test_bit(QUEUE_FLAG_FUA, &bdev_get_queue(b)->queue_flags)
#endif
#if !HAVE_BDEV_ROT		/* 7.x */
#if HAVE_BDEV_NONROT
#define bdev_rot(b)		(!bdev_nonrot(b))
#else
#define bdev_rot(b)		(!blk_queue_nonrot(bdev_get_queue(b)))
#endif
#endif
#if !HAVE_BDEV_STABLE_WRITES	/* 5.19 */
#define bdev_stable_writes(b)	\
	test_bit(QUEUE_FLAG_STABLE_WRITES, &bdev_get_queue(b)->queue_flags)
#endif
#if !HAVE_BDEV_NOWAIT		/* 6.1 */
#define bdev_nowait(b)		blk_queue_nowait(bdev_get_queue(b))
#endif
#if HAVE_BD_META_INFO		/* 5.11: a partition is a block_device of its own */
static inline const char *cx_part_uuid(struct block_device *b)
{
	return b->bd_meta_info ? b->bd_meta_info->uuid : NULL;
}
#else
#ifndef bdev_kobj		/* 5.11; EL8.10, which has the rest of 5.10's partitions */
#define bdev_kobj(b)		(&part_to_dev((b)->bd_part)->kobj)
#endif
static inline const char *cx_part_uuid(struct block_device *b)
{
	return b->bd_part->info ? b->bd_part->info->uuid : NULL;
}
#endif
#if HAVE_ISSUE_FLUSH_1ARG	/* 5.12 */
#elif HAVE_ISSUE_FLUSH_3ARG
#define blkdev_issue_flush(b)	blkdev_issue_flush(b, GFP_KERNEL, NULL)
#else
#define blkdev_issue_flush(b)	blkdev_issue_flush(b, GFP_KERNEL)
#endif

/* ---- bio ----------------------------------------------------------------- */
#if !HAVE_BLK_OPF_T		/* 6.0 */
typedef unsigned int blk_opf_t;
#endif
#ifndef REQ_POLLED		/* 5.16 */
#define REQ_POLLED		REQ_HIPRI
#endif

static inline void cx_bio_init(struct bio *bio, struct block_device *bdev, struct bio_vec *vecs,
			       unsigned short nr_vecs, blk_opf_t opf)
{
#if HAVE_BIO_INIT_BDEV		/* 5.18 */
	bio_init(bio, bdev, vecs, nr_vecs, opf);
#else
	bio_init(bio, vecs, nr_vecs);
	bio_set_dev(bio, bdev);
	bio->bi_opf = opf;
#endif
}

#if !HAVE_BIO_ADD_VIRT_NOFAIL	/* 6.16, 6.12.y */
static inline void bio_add_virt_nofail(struct bio *bio, void *vaddr, unsigned int len)
{
	__bio_add_page(bio, virt_to_page(vaddr), len, offset_in_page(vaddr));
}
#endif

/* ---- asynchronous file I/O ----------------------------------------------- */
#if HAVE_KI_COMPLETE_2ARG	/* 5.16 */
#define DEF_KI_COMPLETE(fn, iocb, ret) static void fn(struct kiocb *iocb, long ret)
#else
#define DEF_KI_COMPLETE(fn, iocb, ret) \
	static void fn(struct kiocb *iocb, long ret, long __always_unused cx_ret2)
#endif
#ifndef ITER_SOURCE		/* 6.2 and stable */
#define ITER_SOURCE		WRITE
#define ITER_DEST		READ
#endif
#if !HAVE_KIOCB_START_WRITE	/* 6.5 and stable */
static inline void kiocb_start_write(struct kiocb *iocb)
{
	struct super_block *sb = file_inode(iocb->ki_filp)->i_sb;

	sb_start_write(sb);
	__sb_writers_release(sb, SB_FREEZE_WRITE);
}

static inline void kiocb_end_write(struct kiocb *iocb)
{
	struct super_block *sb = file_inode(iocb->ki_filp)->i_sb;

	__sb_writers_acquired(sb, SB_FREEZE_WRITE);
	sb_end_write(sb);
}
#endif

static inline ssize_t cx_read_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	return iocb->ki_filp->f_op->read_iter(iocb, iter);
}

/*
 * On some kernels vfs_iocb_iter_write() takes the freeze protection itself, on
 * others the caller must take it, and no header shows which. So this calls
 * write_iter of the file directly, as loop and nvmet do. It takes the
 * protection, and drops it unless the write was queued; then cx_write_done()
 * must drop it.
 */
static inline ssize_t cx_write_iter(struct kiocb *iocb, struct iov_iter *iter)
{
	ssize_t ret;

	kiocb_start_write(iocb);
	ret = iocb->ki_filp->f_op->write_iter(iocb, iter);
	if (ret != -EIOCBQUEUED)
		kiocb_end_write(iocb);
	return ret;
}

static inline void cx_write_done(struct kiocb *iocb)
{
	kiocb_end_write(iocb);
}

/* offset, length and memory of a direct transfer must be multiples of this; 0: no direct I/O */
static inline unsigned int cx_dio_align(struct file *file)
{
	struct block_device *bdev = file_inode(file)->i_sb->s_bdev;
#if HAVE_STATX_DIOALIGN		/* 6.1; file systems that do not report it fall through */
	struct kstat st;

	if (!vfs_getattr(&file->f_path, &st, STATX_DIOALIGN, AT_STATX_SYNC_AS_STAT) &&
	    (st.result_mask & STATX_DIOALIGN))
		return max(st.dio_offset_align, st.dio_mem_align);
#endif
#if HAVE_FMODE_CAN_ODIRECT	/* 6.0 */
	if (!(file->f_mode & FMODE_CAN_ODIRECT))
		return 0;
#else
	if (!file->f_mapping->a_ops || !file->f_mapping->a_ops->direct_IO)
		return 0;
#endif
	return bdev ? bdev_logical_block_size(bdev) : SECTOR_SIZE;
}

#endif
