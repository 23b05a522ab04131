// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports that are block devices: open, describe, and one bio for each request.
 *
 * The chunk is physically contiguous, so a request is one bio with one bio_vec, both inside the op:
 * nothing is allocated, and the block core splits a bio that a device cannot take in one piece. The
 * bio is submitted in the completion context of the transport, and the request is answered from the
 * bio's end, which may be an interrupt.
 *
 * All disks of the session share that completion context, and so does the teardown of its path:
 * nothing may wait there for a device that is full, or frozen. So a bio is marked NOWAIT, if the
 * device supports it. A bio that comes back for that reason is submitted again by a worker, which
 * may wait. Each export has one worker, which submits the requests in their order; while the device
 * is full, new requests queue up behind them. The block layer may hold up discards even with
 * NOWAIT, so they are given to the worker at once.
 *
 * The client can still write to its chunk while the device works on it. A device that computes
 * checksums over the data (integrity profile) or needs it stable (parity RAID) therefore gets
 * private pages: copied before a write, after a read; in pieces of at most 128 KiB. If no memory is
 * free at once, and from the second piece on, the request continues in a worker, which may wait.
 *
 * The error of a device is passed on to the client; no failed request is retried here.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include "ibnbd/server/backing.h"

/* The wire has 16 bits for the size of a logical block (protocol 10.1). */
#define BLOCKIO_MAX_BLOCK	32768u
/* The wire has 32 bits for the size of a request in bytes. */
#define BLOCKIO_MAX_RANGE	(U32_MAX >> SECTOR_SHIFT)

static int blockio_check(const struct ibnbd_srv_open *open, const char **why)
{
	struct block_device *bdev = open->bdev;

	if (ibnbd_access_writes(open->access) && bdev_read_only(bdev))
		return ibnbd_refuse(-EACCES, why,
				    "the device is read-only; map it with access_mode=ro");
	if (bdev_is_zoned(bdev))
		return ibnbd_refuse(-EOPNOTSUPP, why, "zoned devices cannot be exported");
	if (!ibnbd_msg_block_size_ok(bdev_logical_block_size(bdev), BLOCKIO_MAX_BLOCK))
		return ibnbd_refuse(-EINVAL, why, "its logical block size is above 32768");
	return 0;
}

/* Open the device with the holder and the mode of @open, and list the claim. */
static int blockio_take(struct ibnbd_srv_open *open, dev_t dev)
{
	open->handle = cx_bdev_open(dev, open->mode, open->holder);
	if (IS_ERR(open->handle))
		return PTR_ERR(open->handle);
	open->bdev = cx_bdev(open->handle);
	if (open->holder)
		ibnbd_srv_claim_disk(open);
	return 0;
}

void ibnbd_srv_blockio_close(struct ibnbd_srv_open *open)
{
	ibnbd_srv_claim_end(open);
	cx_bdev_close(open->handle, open->mode, open->holder);
	open->bdev = NULL;
}

/* Take hold of a block device (protocol 10.2), and claim it for a writer (law L23). */
int ibnbd_srv_blockio_open(struct ibnbd_srv_open *open, dev_t dev, const char **why)
{
	int err;

	open->mode = BLK_OPEN_READ;
	if (ibnbd_access_writes(open->access))
		open->mode |= BLK_OPEN_WRITE;
	open->holder = ibnbd_srv_claim_holder(open);
	err = blockio_take(open, dev);
	if (err == -EBUSY)
		*why = ibnbd_srv_claim_taken(dev);
	if (err)
		return err;
	if (open->holder && !bdev_nr_sectors(open->bdev)) {
		ibnbd_srv_blockio_close(open);
		open->holder = NULL;
		open->claim_due = true;
		err = blockio_take(open, dev);
		if (err)
			return err;
	}
	open->verifies = bdev_get_integrity(open->bdev);
	err = blockio_check(open, why);
	if (err)
		ibnbd_srv_blockio_close(open);
	return err;
}

/*
 * Has a disk that had no size when it was opened got one? Under the export lock, or in the work
 * that makes the claim: no other one ends @claim_due.
 */
bool ibnbd_srv_blockio_claim_is_due(const struct ibnbd_srv_open *open)
{
	return open->claim_due && bdev_nr_sectors(open->bdev);
}

/**
 * ibnbd_srv_blockio_claim() - open a disk again, which had no size before, to claim it
 * @open: pinned by an I/O reference
 * @holder: of ibnbd_srv_claim_holder()
 *
 * The program that gives such a disk its size (losetup) claims the disk while it does so. So the
 * server does not claim it before it has a size. Until the claim is made, the client sees a disk
 * without a size: this machine itself may have begun to use the disk.
 *
 * Sleeps as long as the disk takes. Return: a handle for ibnbd_srv_blockio_claimed(), or an errno.
 */
cx_bdev_t ibnbd_srv_blockio_claim(const struct ibnbd_srv_open *open, void *holder)
{
	cx_bdev_t handle = cx_bdev_open(open->bdev->bd_dev, open->mode, holder);

	if (IS_ERR(handle) || cx_bdev(handle) == open->bdev)
		return handle;
	cx_bdev_close(handle, open->mode, holder);	/* its number is another disk's now */
	return ERR_PTR(-ENXIO);
}

/**
 * ibnbd_srv_blockio_claimed() - @open goes on with the handle that has the claim
 * @open: of an export, whose lock is held
 * @handle: of ibnbd_srv_blockio_claim()
 * @holder: the same
 *
 * Return: the handle without a claim, for cx_bdev_close() without the lock.
 */
cx_bdev_t ibnbd_srv_blockio_claimed(struct ibnbd_srv_open *open, cx_bdev_t handle, void *holder)
{
	cx_bdev_t unclaimed = open->handle;

	open->handle = handle;
	open->holder = holder;
	open->claim_due = false;
	if (holder)
		ibnbd_srv_claim_disk(open);
	return unclaimed;
}

/* Capacity in whole logical blocks; 0 as long as the disk still has to be claimed for @open. */
u64 ibnbd_srv_blockio_nsectors(struct ibnbd_srv_open *open)
{
	u64 mask = (bdev_logical_block_size(open->bdev) >> SECTOR_SHIFT) - 1;

	return open->claim_due ? 0 : bdev_nr_sectors(open->bdev) & ~mask;
}

static bool blockio_copies(const struct ibnbd_srv_open *open)
{
	switch (READ_ONCE(open->export->copy)) {
	case IBNBD_SRV_COPY_ALWAYS:
		return true;
	case IBNBD_SRV_COPY_NEVER:
		return false;
	default:
		return open->verifies || bdev_stable_writes(open->bdev);
	}
}

static u32 blockio_range(u32 sectors, u32 block)
{
	return min(sectors, BLOCKIO_MAX_RANGE) & ~((block >> SECTOR_SHIFT) - 1);
}

/* Clients use one limit for both discard and secure erase. */
static void blockio_describe_discard(struct block_device *bdev, struct ibnbd_open_rsp *rsp)
{
	u32 block = rsp->logical_block_size;
	u32 discard = blockio_range(bdev_max_discard_sectors(bdev), block);
	u32 erase = blockio_range(bdev_max_secure_erase_sectors(bdev), block);

	if (!discard)
		return;
	rsp->secure_discard = erase > 0;
	rsp->max_discard_sectors = erase ? min(discard, erase) : discard;
	rsp->discard_granularity = roundup(max(bdev_discard_granularity(bdev), block), block);
	rsp->discard_alignment = bdev_discard_alignment(bdev);
}

/* The device's part of OPEN_RSP, as it is now. */
void ibnbd_srv_blockio_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp)
{
	struct block_device *bdev = open->bdev;
	struct request_queue *q = bdev_get_queue(bdev);
	u32 block = bdev_logical_block_size(bdev);

	rsp->nsectors = ibnbd_srv_blockio_nsectors(open);
	rsp->logical_block_size = block;
	rsp->physical_block_size = max_t(u32, block, bdev_physical_block_size(bdev));
	rsp->max_hw_sectors = queue_max_hw_sectors(q);
	rsp->max_segments = min_t(u32, queue_max_segments(q), U16_MAX);
	rsp->max_write_zeroes_sectors = blockio_range(bdev_write_zeroes_sectors(bdev), block);
	rsp->writeback = bdev_write_cache(bdev);
	rsp->fua = bdev_fua(bdev);
	rsp->identity.io_min = bdev_io_min(bdev);
	rsp->identity.io_opt = max_t(int, bdev_io_opt(bdev), 0);
	if (bdev_read_only(bdev))
		rsp->identity.flags |= IBNBD_ID_F_READ_ONLY;
	if (bdev_rot(bdev))
		rsp->identity.flags |= IBNBD_ID_F_ROTATIONAL;
	if ((open->verifies || bdev_stable_writes(bdev)) && !blockio_copies(open))
		rsp->identity.flags |= IBNBD_ID_F_STABLE_PAGES;
	blockio_describe_discard(bdev, rsp);
}

/* ---- requests ------------------------------------------------------------ */

/*
 * Only request-based devices (blk-mq). On some kernels md counts NOWAIT bios that it refuses, or
 * takes a member that was full for a failed one, or for one that has written the data; and the
 * device mapper passes NOWAIT bios on to such devices.
 */
static bool blockio_knows_nowait(struct block_device *bdev)
{
	return queue_is_mq(bdev_get_queue(bdev)) && bdev_nowait(bdev);
}

/*
 * Writes and flushes carry the flags of direct writes of a local process. Other writes are
 * throttled, with NOWAIT or without, and waiting here would stop the I/O of all disks. Inline,
 * because every request passes here.
 */
static __always_inline blk_opf_t blockio_opf(const struct ibnbd_srv_io *io, bool may_wait)
{
	static const blk_opf_t op[] = {
		[IBNBD_OP_READ]		= REQ_OP_READ,
		[IBNBD_OP_WRITE]	= REQ_OP_WRITE | REQ_SYNC | REQ_IDLE,
		[IBNBD_OP_FLUSH]	= REQ_OP_WRITE | REQ_SYNC | REQ_IDLE | REQ_PREFLUSH,
		[IBNBD_OP_DISCARD]	= REQ_OP_DISCARD,
		[IBNBD_OP_SECURE_ERASE]	= REQ_OP_SECURE_ERASE,
		[IBNBD_OP_WRITE_ZEROES]	= REQ_OP_WRITE_ZEROES,
	};
	const struct ibnbd_io *m = &io->msg;
	blk_opf_t opf = op[m->op];

	if (m->flags & IBNBD_F_SYNC)
		opf |= REQ_SYNC;
	if (m->op == IBNBD_OP_WRITE) {
		if (m->flags & IBNBD_F_FUA)
			opf |= REQ_FUA;
		if (m->flags & IBNBD_F_PREFLUSH)
			opf |= REQ_PREFLUSH;
	}
	if (m->flags & IBNBD_F_NOUNMAP)
		opf |= REQ_NOUNMAP;
	if (!may_wait && blockio_knows_nowait(io->open->bdev))
		opf |= REQ_NOWAIT;
	return opf;
}

static bool blockio_has_data(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_READ || m->op == IBNBD_OP_WRITE;
}

/*
 * Give @io to the worker of the export, which may wait. @full: all later requests have to queue up
 * behind it. Any context.
 */
static void blockio_put_off(struct ibnbd_srv_io *io, bool full)
{
	struct ibnbd_srv_export *e = io->open->export;

	guard(spinlock_irqsave)(&e->later_lock);
	list_add_tail(&io->link, &e->later);
	if (full)
		WRITE_ONCE(e->later_full, true);
	kobject_get(&e->kobj);
	if (!queue_work(e->wq, &e->later_work))
		kobject_put(&e->kobj);	/* the work has one already */
}

/* Did a NOWAIT bio fail because it would have waited, or because NOWAIT is no longer supported? */
static bool blockio_is_full(const struct bio *bio)
{
	return bio->bi_opf & REQ_NOWAIT &&
	       (bio->bi_status == BLK_STS_AGAIN || bio->bi_status == BLK_STS_NOTSUPP);
}

/*
 * Do later requests have to wait behind this one? Not if the block layer would have to split the
 * bio: a NOWAIT bio of that size is refused even by a device that is not full.
 */
static bool blockio_stops_others(const struct ibnbd_srv_io *io, int err, u32 bytes)
{
	return err == -EAGAIN &&
	       bytes >> SECTOR_SHIFT <= queue_max_sectors(bdev_get_queue(io->open->bdev));
}

/*
 * sd finds out only by trying that a disk does not support what it announced: the request fails
 * with the error of the disk, and the limit is 0 from then on. -EOPNOTSUPP tells the client at
 * once, so that it sends no more such requests.
 */
static int blockio_refusal(const struct ibnbd_srv_io *io, int err)
{
	struct block_device *bdev = io->open->bdev;

	switch (io->msg.op) {
	case IBNBD_OP_WRITE_ZEROES:
		return bdev_write_zeroes_sectors(bdev) ? err : -EOPNOTSUPP;
	case IBNBD_OP_DISCARD:
		return bdev_max_discard_sectors(bdev) ? err : -EOPNOTSUPP;
	case IBNBD_OP_SECURE_ERASE:
		return bdev_max_secure_erase_sectors(bdev) ? err : -EOPNOTSUPP;
	default:
		return err;
	}
}

/* What is under transfer: all of the request, or as much as a private buffer holds. */
static u32 blockio_piece(const struct ibnbd_srv_io *io)
{
	u32 left = io->msg.bytes - io->done;

	return io->pieces ? min(left, IBNBD_SRV_BOUNCE_MAX) : left;
}

static void blockio_continue(struct ibnbd_srv_io *io);

static void blockio_end_bio(struct bio *bio)
{
	struct ibnbd_srv_io *io = container_of(bio, struct ibnbd_srv_io, bio);
	int err = blk_status_to_errno(bio->bi_status);
	bool full = unlikely(err) && blockio_is_full(bio);
	u32 len = blockio_piece(io);

	bio_uninit(bio);
	if (io->pieces)
		ibnbd_srv_bounce_put(io, err ? 0 : len);
	if (unlikely(full)) {
		blockio_put_off(io, blockio_stops_others(io, err, len));
		return;
	}
	io->done += len;
	if (err || io->done == io->msg.bytes)
		ibnbd_srv_io_answered(io, unlikely(err) ? blockio_refusal(io, err) : 0);
	else
		blockio_continue(io);
}

/* False: there is no memory for private pages. With @may_wait there always is. */
static bool blockio_submit(struct ibnbd_srv_io *io, bool may_wait)
{
	blk_opf_t opf = blockio_opf(io, may_wait);
	void *data = io->op->data + io->done;
	const struct ibnbd_io *m = &io->msg;
	u32 len = blockio_piece(io);
	struct bio *bio = &io->bio;

	if (io->pieces) {
		data = ibnbd_srv_bounce_get(io, len, may_wait ? GFP_NOIO : GFP_NOWAIT);
		if (!data)
			return false;
		if (io->done)
			opf &= ~REQ_PREFLUSH;
	}
	cx_bio_init(bio, io->open->bdev, &io->vec, 1, opf);
	bio->bi_end_io = blockio_end_bio;
	bio->bi_ioprio = m->prio;
	if (blockio_has_data(m))
		bio_add_virt_nofail(bio, data, len);
	else
		bio->bi_iter.bi_size = len;
	if (m->op != IBNBD_OP_FLUSH)
		bio->bi_iter.bi_sector = m->sector + (io->done >> SECTOR_SHIFT);
	submit_bio(bio);
	return true;
}

static void blockio_work(struct work_struct *work)
{
	blockio_submit(container_of(work, struct ibnbd_srv_io, work), true);
}

static void blockio_continue(struct ibnbd_srv_io *io)
{
	INIT_WORK(&io->work, blockio_work);
	queue_work(io->open->export->wq, &io->work);
}

/* ---- what has to wait ---------------------------------------------------- */

static struct ibnbd_srv_io *blockio_next_later(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_io *io;

	guard(spinlock_irq)(&e->later_lock);
	io = list_first_entry_or_null(&e->later, struct ibnbd_srv_io, link);
	if (io)
		list_del(&io->link);
	else
		WRITE_ONCE(e->later_full, false);
	return io;
}

void ibnbd_srv_blockio_later_work(struct work_struct *work)
{
	struct ibnbd_srv_export *e = container_of(work, struct ibnbd_srv_export, later_work);
	struct ibnbd_srv_io *io;

	while ((io = blockio_next_later(e))) {
		blockio_submit(io, true);
		cond_resched();		/* clients send more as fast as they are answered */
	}
	kobject_put(&e->kobj);
}

/*
 * Start a request that logic/access has allowed. @op and @open of @io are set. Does not wait for
 * the device if the device supports NOWAIT. Completion context.
 */
void ibnbd_srv_blockio_submit(struct ibnbd_srv_io *io, const struct ibnbd_io *m)
{
	if (m->op != IBNBD_OP_READ && m->op != IBNBD_OP_FLUSH && bdev_read_only(io->open->bdev)) {
		ibnbd_srv_io_end(io, -EROFS);
		return;
	}
	io->msg = *m;
	io->done = 0;
	io->pieces = blockio_has_data(m) && blockio_copies(io->open);
	if (unlikely(m->op == IBNBD_OP_DISCARD || READ_ONCE(io->open->export->later_full)))
		blockio_put_off(io, false);
	else if (unlikely(!blockio_submit(io, false)))
		blockio_continue(io);
}
