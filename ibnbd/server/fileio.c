// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports that are regular files: open, describe, and kiocbs (law L11).
 *
 * The block size is the exporter's choice (the parameter file_block), not that of the disk on which
 * the file lies: partition tables count in blocks, and a file may move to another disk. A transfer
 * that fits the alignment of the file system is direct. Any other one, and one that the file system
 * refuses to do directly (-EINVAL), goes through the page cache. The kernel keeps the two coherent,
 * but for one case: while a direct write is under way, a buffered one of a neighbour block in the
 * same page must not begin. The page would hold what the disk held before the direct write, and
 * could not be dropped behind it, as it is dirty. So a buffered write waits for the direct ones of
 * its file, and keeps others from beginning (@mixed of the export).
 *
 * Either way what was written is only safe after a fsync (an extent may still be in the journal,
 * the data in the disk's cache), so a write cache is announced, FLUSH is a fsync and FUA is
 * O_DSYNC.
 *
 * A file system may sleep, so each request starts from the export's own workqueue: a file system
 * that hangs delays no other export. Transfers are asynchronous: a worker is free again while the
 * disk works. The completion may run in an interrupt, and queues the work again for the next piece.
 * Data passes through private pages unless the export says copy=never: file systems compress,
 * checksum and mirror, and the client can still write to its chunk.
 *
 * A file system may look at the kiocb after it has queued the I/O, when the completion may have run
 * already. So a piece has two ends, the completion and the return of the submission. Only the later
 * one continues with the op, whose memory is gone once it is answered.
 *
 * Freeze protection is taken by cx_write_iter() and dropped by cx_write_done() in the completion:
 * one without the other would leave the file system unfreezable.
 */
#include <linux/cred.h>
#include <linux/falloc.h>
#include <linux/file.h>
#include <linux/log2.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/uio.h>
#include "ibnbd/server/backing.h"
#include "ibnbd/server/params.h"

#define FILEIO_MAX_RANGE	(U32_MAX >> SECTOR_SHIFT)
#define FILEIO_MAX_PHYSICAL	32768u

/* Direct if the file system lets us and its alignment is sane, else buffered. */
static struct file *fileio_open_file(struct ibnbd_srv_open *open, const struct path *path)
{
	int flags = O_LARGEFILE | (ibnbd_access_writes(open->access) ? O_RDWR : O_RDONLY);
	struct file *file = dentry_open(path, flags | O_DIRECT, current_cred());

	if (!IS_ERR(file)) {
		u32 align = cx_dio_align(file);

		if (align && align <= PAGE_SIZE && is_power_of_2(align)) {
			open->align = max_t(u32, align, SECTOR_SIZE);
			return file;
		}
		cx_fput(file);
	} else if (PTR_ERR(file) == -EINVAL) {
		/*
		 * A file that was opened, and then rejected for O_DIRECT alone, counts as a writer
		 * until the kernel's delayed fput has run.
		 */
		flush_delayed_fput();
	} else {
		return file;
	}
	open->align = 0;
	return dentry_open(path, flags, current_cred());
}

static int fileio_check(struct ibnbd_srv_open *open, const char **why)
{
	struct inode *inode = file_inode(open->file);

	if (!open->file->f_op->read_iter || !open->file->f_op->write_iter)
		return ibnbd_refuse(-EOPNOTSUPP, why, "its file system cannot do this kind of I/O");
	if (ibnbd_access_writes(open->access) && (IS_IMMUTABLE(inode) || IS_APPEND(inode)))
		return ibnbd_refuse(-EACCES, why,
				    "the file is immutable or append-only; see lsattr");
	/* An empty file is a disk without a size, which may get one later. */
	if (i_size_read(inode) && !ibnbd_srv_fileio_nsectors(open))
		return ibnbd_refuse(-EINVAL, why,
				    "the file is smaller than one block; see truncate -s");
	return 0;
}

int ibnbd_srv_fileio_open(struct ibnbd_srv_open *open, const struct path *path, const char **why)
{
	struct file *file;
	int err;

	open->block = ibnbd_srv_file_block();
	ibnbd_srv_claim_file_begin(open, d_backing_inode(path->dentry));
	file = fileio_open_file(open, path);
	if (IS_ERR(file)) {
		ibnbd_srv_claim_end(open);
		return PTR_ERR(file);
	}
	open->file = file;
	open->wb_err = filemap_sample_wb_err(file->f_mapping);
	err = fileio_check(open, why);
	if (!err)
		err = ibnbd_srv_claim_file_check(open, why);
	if (err)
		ibnbd_srv_fileio_close(open);
	return err;
}

void ibnbd_srv_fileio_close(struct ibnbd_srv_open *open)
{
	ibnbd_srv_claim_file_begin(open, file_inode(open->file));
	cx_fput(open->file);
	ibnbd_srv_claim_end(open);
	open->file = NULL;
}

/* Capacity, whole blocks only. */
u64 ibnbd_srv_fileio_nsectors(struct ibnbd_srv_open *open)
{
	u64 size = i_size_read(file_inode(open->file));

	return (size & ~(u64)(open->block - 1)) >> SECTOR_SHIFT;
}

/* The file's part of OPEN_RSP, as it is now. */
void ibnbd_srv_fileio_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp)
{
	struct inode *inode = file_inode(open->file);
	struct super_block *sb = inode->i_sb;
	u32 block = open->block, physical = max(block, open->align);

	if (sb->s_blocksize > physical && is_power_of_2(sb->s_blocksize))
		physical = min_t(u32, sb->s_blocksize, FILEIO_MAX_PHYSICAL);
	rsp->nsectors = ibnbd_srv_fileio_nsectors(open);
	rsp->logical_block_size = block;
	rsp->physical_block_size = physical;
	rsp->max_hw_sectors = FILEIO_MAX_RANGE;
	rsp->max_segments = U16_MAX;
	rsp->writeback = true;
	rsp->fua = true;
	rsp->identity.io_min = physical;
	if (sb_rdonly(sb) || IS_IMMUTABLE(inode))
		rsp->identity.flags |= IBNBD_ID_F_READ_ONLY;
	if (sb->s_bdev && bdev_rot(sb->s_bdev))
		rsp->identity.flags |= IBNBD_ID_F_ROTATIONAL;
	if (open->file->f_op->fallocate && !READ_ONCE(open->export->no_punch)) {
		rsp->max_discard_sectors = FILEIO_MAX_RANGE & ~((block >> SECTOR_SHIFT) - 1);
		rsp->max_write_zeroes_sectors = rsp->max_discard_sectors;
		rsp->discard_granularity = physical;
	}
}

/* ---- requests ------------------------------------------------------------ */

/* @ret: bytes of this piece, or an errno. Any context; nothing accesses the kiocb any more. */
static void fileio_end_piece(struct ibnbd_srv_io *io, long ret)
{
	bool again = ret == -EINVAL && io->direct;

	ibnbd_srv_bounce_put(io, ret > 0 ? ret : 0);
	if (io->direct && io->msg.op == IBNBD_OP_WRITE)
		up_read_non_owner(&io->open->export->mixed);
	io->buffered |= again;
	if (ret > 0)
		io->done += ret;
	if (again || (ret > 0 && io->done < io->msg.bytes))
		queue_work(io->open->export->wq, &io->work);
	else
		ibnbd_srv_io_answered(io, ret > 0 ? 0 : ret ?: -EIO);
}

DEF_KI_COMPLETE(fileio_complete, iocb, ret)
{
	struct ibnbd_srv_io *io = container_of(iocb, struct ibnbd_srv_io, iocb);

	if (io->msg.op == IBNBD_OP_WRITE)
		cx_write_done(iocb);
	io->ret = ret;
	if (atomic_dec_and_test(&io->ends))
		fileio_end_piece(io, ret);
}

/* The memory of the next piece, and its length. */
static void *fileio_piece(struct ibnbd_srv_io *io, u32 *len)
{
	*len = io->msg.bytes - io->done;
	if (READ_ONCE(io->open->export->copy) == IBNBD_SRV_COPY_NEVER)
		return io->op->data + io->done;
	*len = min(*len, IBNBD_SRV_BOUNCE_MAX);
	return ibnbd_srv_bounce_get(io, *len, GFP_NOIO);
}

static bool fileio_fits(const struct ibnbd_srv_open *open, u64 pos, u32 len)
{
	return open->align && !((pos | len) & (open->align - 1));
}

static ssize_t fileio_write(struct ibnbd_srv_io *io, struct iov_iter *iter)
{
	struct rw_semaphore *mixed = &io->open->export->mixed;
	ssize_t ret;

	if (!io->open->align)
		return cx_write_iter(&io->iocb, iter);	/* no write of the file is direct */
	if (io->direct) {
		down_read_non_owner(mixed);
		return cx_write_iter(&io->iocb, iter);
	}
	down_write(mixed);
	ret = cx_write_iter(&io->iocb, iter);
	up_write(mixed);
	return ret;
}

static void fileio_transfer(struct ibnbd_srv_io *io)
{
	bool write = io->msg.op == IBNBD_OP_WRITE;
	struct iov_iter iter;
	ssize_t ret;
	u32 len;
	void *buf = fileio_piece(io, &len);

	io->vec = (struct bio_vec) {
		.bv_page = virt_to_page(buf),
		.bv_len = len,
		.bv_offset = offset_in_page(buf),
	};
	iov_iter_bvec(&iter, write ? ITER_SOURCE : ITER_DEST, &io->vec, 1, len);
	init_sync_kiocb(&io->iocb, io->open->file);
	io->iocb.ki_pos = ((loff_t)io->msg.sector << SECTOR_SHIFT) + io->done;
	io->iocb.ki_complete = fileio_complete;
	io->iocb.ki_ioprio = io->msg.prio;
	io->direct = !io->buffered && fileio_fits(io->open, io->iocb.ki_pos, len);
	if (!io->direct)
		io->iocb.ki_flags &= ~IOCB_DIRECT;
	if (write)
		io->iocb.ki_flags |= IOCB_WRITE;
	if (io->msg.flags & IBNBD_F_FUA)
		io->iocb.ki_flags |= IOCB_DSYNC;
	atomic_set(&io->ends, 2);
	ret = write ? fileio_write(io, &iter) : cx_read_iter(&io->iocb, &iter);
	if (ret != -EIOCBQUEUED)
		fileio_end_piece(io, ret);
	else if (atomic_dec_and_test(&io->ends))
		fileio_end_piece(io, io->ret);
}

static int fileio_fallocate(struct ibnbd_srv_io *io, int mode)
{
	int err = vfs_fallocate(io->open->file, mode | FALLOC_FL_KEEP_SIZE,
				(loff_t)io->msg.sector << SECTOR_SHIFT, io->msg.bytes);

	if (err == -EOPNOTSUPP && mode & FALLOC_FL_PUNCH_HOLE)
		WRITE_ONCE(io->open->export->no_punch, true);
	return err;
}

/* Without NOUNMAP a hole is welcome: it reads as zeroes. */
static int fileio_zero(struct ibnbd_srv_io *io)
{
	int err = -EOPNOTSUPP;

	if (!(io->msg.flags & IBNBD_F_NOUNMAP))
		err = fileio_fallocate(io, FALLOC_FL_PUNCH_HOLE);
	if (err == -EOPNOTSUPP)
		err = fileio_fallocate(io, FALLOC_FL_ZERO_RANGE);
	return err;
}

static void fileio_run(struct ibnbd_srv_io *io)
{
	int err = 0;

	switch (io->msg.op) {
	case IBNBD_OP_READ:
	case IBNBD_OP_WRITE:
		if (io->msg.flags & IBNBD_F_PREFLUSH && !io->flushed)
			err = vfs_fsync(io->open->file, 1);
		io->flushed = true;
		if (!err) {
			fileio_transfer(io);
			return;
		}
		break;
	case IBNBD_OP_FLUSH:
		err = vfs_fsync(io->open->file, 1);
		break;
	case IBNBD_OP_DISCARD:
		err = fileio_fallocate(io, FALLOC_FL_PUNCH_HOLE);
		break;
	case IBNBD_OP_WRITE_ZEROES:
		err = fileio_zero(io);
		break;
	default:
		err = -EOPNOTSUPP;
	}
	ibnbd_srv_io_answered(io, err);
}

/* NOIO: on a server that maps its own disks, memory reclaim here must not wait for our own I/O. */
static void fileio_work(struct work_struct *work)
{
	unsigned int noio = memalloc_noio_save();

	fileio_run(container_of(work, struct ibnbd_srv_io, work));
	memalloc_noio_restore(noio);
}

/* Start a request that logic/access has allowed. @op and @open of @io are set. */
void ibnbd_srv_fileio_submit(struct ibnbd_srv_io *io, const struct ibnbd_io *m)
{
	io->msg = *m;
	io->done = 0;
	io->buffered = false;
	io->flushed = false;
	io->bounce = NULL;
	INIT_WORK(&io->work, fileio_work);
	queue_work(io->open->export->wq, &io->work);
}
