// SPDX-License-Identifier: GPL-2.0-only
/* The end of an I/O, whichever way it went. */
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/io.h"
#include "ibnbd/server/trace.h"

/* Does a success say that something is safe? */
static bool io_is_promise(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_FLUSH || m->flags & (IBNBD_F_FUA | IBNBD_F_PREFLUSH);
}

/* Does a success say what the disk holds? A write that is answered only says that it came there. */
static bool io_shows_disk(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_READ || io_is_promise(m);
}

/* Has its disk another epoch than its client knows, or will have it soon? */
static bool io_is_of_old(const struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_export *e = open->export;

	if (!ibnbd_srv_epoch_is_known(open->session))
		return false;
	/* Pairs with export_doubt_work(): without a doubt the new epoch is seen. */
	return smp_load_acquire(&e->doubt) ||
	       READ_ONCE(open->epoch) != READ_ONCE(e->cache.epoch);
}

/**
 * ibnbd_srv_io_end() - an I/O has ended: unpin its open, answer
 * @io: gone afterwards
 * @err: 0 or a negative errno. Any context.
 */
void ibnbd_srv_io_end(struct ibnbd_srv_io *io, int err)
{
	struct ibtrs_srv_op *op = io->op;

	/*
	 * To the client that is a device which we do not know (spec B.6); here it is a disk whose
	 * own server has gone.
	 */
	if (unlikely(err == -ENOTCONN))
		err = -EIO;
	/*
	 * A flush that was under way when the disk's cache was lost, or another one failed, has
	 * covered nothing, and a read may have found what was there before a write that its client
	 * has kept: the client is to open the disk again, hear of it, and ask once more.
	 */
	if (!err && io_shows_disk(&io->msg) && unlikely(io_is_of_old(io->open)))
		err = -ENOTCONN;
	trace_ibnbd_srv_io_end(io, err);
	percpu_ref_put(&io->open->ref);
	ibtrs_srv_op_reply(op, err);
}

/* Did write-back fail since it was opened? Another flush may have told that already. */
static bool io_has_lost(const struct ibnbd_srv_open *open)
{
	return open->file && ibnbd_srv_epoch_is_known(open->session) &&
	       ibnbd_srv_epoch_wb_err(open);
}

/**
 * ibnbd_srv_io_answered() - the disk or the file system has answered: ibnbd_srv_io_end(), behind a
 * look at what a failure means for the disk's cache
 * @io: gone afterwards
 * @err: 0 or a negative errno. Any context.
 */
void ibnbd_srv_io_answered(struct ibnbd_srv_io *io, int err)
{
	if (unlikely(io_is_promise(&io->msg) && (err || io_has_lost(io->open))))
		ibnbd_srv_epoch_doubt(io->open->export);
	ibnbd_srv_io_end(io, err);
}
