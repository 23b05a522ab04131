// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* The account of writes that no flush has covered: the driver of logic/unflushed. */
#include "ibnbd/user/disk.h"

void disk_account_send(struct ibnbd_q *q, struct disk_op *op)
{
	struct ibnbd_disk *d = q->disk;
	enum ibnbd_op kind = disk_op_kind(op);

	op->account = DISK_ACCOUNT_NOTHING;
	if (!q->terms.keeps || kind == IBNBD_OP_READ)
		return;
	if (kind == IBNBD_OP_FLUSH) {
		disk_account_flush(d, op);
	} else {
		op->account = le32_to_cpu(op->hdr.rw) & IBNBD_F_FUA ? DISK_ACCOUNT_FUA :
								       DISK_ACCOUNT_WRITE;
	}
}

void disk_account_flush(struct ibnbd_disk *d, struct disk_op *op)
{
	op->account = DISK_ACCOUNT_FLUSH;
	op->flush = ibnbd_unflushed_send(&d->unflushed);
	op->wrote = __atomic_load_n(&d->wrote, __ATOMIC_RELAXED);
}

void disk_account_flushed(struct ibnbd_disk *d, const struct disk_op *op)
{
	u64 old = READ_ONCE(d->flushed);

	ibnbd_unflushed_done(&d->unflushed, op->flush);
	if (d->kept_mem)
		disk_kept_flushed(d, op->flush);
	while (op->wrote > old && !__atomic_compare_exchange_n(&d->flushed, &old, op->wrote, false,
							       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void disk_account_done(struct ibnbd_q *q, struct disk_op *op)
{
	struct ibnbd_disk *d = q->disk;

	if (q->terms.keeps == DISK_KEEPS_DATA &&
	    (op->account == DISK_ACCOUNT_WRITE || op->account == DISK_ACCOUNT_FUA))
		disk_kept_add(q, op);
	if (op->account == DISK_ACCOUNT_WRITE) {
		ibnbd_unflushed_wrote(&d->unflushed);
		__atomic_add_fetch(&d->wrote, le32_to_cpu(op->hdr.bytes), __ATOMIC_RELAXED);
	}
	/* A flush beside a failed one proves nothing. */
	if (op->account == DISK_ACCOUNT_FLUSH && !READ_ONCE(d->flush_failed))
		disk_account_flushed(d, op);
}

/* The disk may have dropped what it could not write, and the next flush would succeed. */
void disk_account_failed(struct ibnbd_q *q, struct disk_op *op)
{
	if (op->account == DISK_ACCOUNT_FLUSH || op->account == DISK_ACCOUNT_FUA)
		disk_account_doubt(q->disk);
}

void disk_account_doubt(struct ibnbd_disk *d)
{
	if (!ibnbd_unflushed_any(&d->unflushed))
		return;
	__atomic_store_n(&d->flush_failed, true, __ATOMIC_RELAXED);
	disk_tell(d, DISK_NEWS_FLUSH);
}

u64 disk_account_unflushed(struct ibnbd_disk *d)
{
	u64 flushed = READ_ONCE(d->flushed), wrote = READ_ONCE(d->wrote);

	if (!d->keeps || !ibnbd_unflushed_any(&d->unflushed))
		return 0;
	return wrote > flushed ? wrote - flushed : 0;
}
