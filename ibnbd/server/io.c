// SPDX-License-Identifier: GPL-2.0-only
/* The end of an I/O, whichever way it went. */
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/io.h"
#include "ibnbd/server/trace.h"

/* Does a success of this request promise that data is on stable storage? */
static bool io_is_promise(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_FLUSH || m->flags & (IBNBD_F_FUA | IBNBD_F_PREFLUSH);
}

/*
 * Does a success of this request tell what the disk holds? That of a plain write only says that the
 * data has reached the disk.
 */
static bool io_shows_disk(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_READ || io_is_promise(m);
}

/*
 * Does the disk have another epoch than the client of @open was told, or is a new one about to
 * begin?
 */
static bool io_is_of_old(const struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_export *e = open->export;

	if (!ibnbd_srv_epoch_is_known(open->session))
		return false;
	/* Pairs with export_doubt_work(): if @doubt is false again, the new epoch is visible. */
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
	 * To the client -ENOTCONN means a device that the server does not know (protocol 10.2).
	 * From a disk it means that the disk's own server has gone.
	 */
	if (unlikely(err == -ENOTCONN))
		err = -EIO;
	/*
	 * The disk's cache was lost, or a flush failed, while this request was under way. So a
	 * flush has covered nothing, and a read may have found what was there before a write that
	 * the client has kept. -ENOTCONN makes the client open the disk again, learn the new epoch,
	 * and send the request again.
	 */
	if (!err && io_shows_disk(&io->msg) && unlikely(io_is_of_old(io->open)))
		err = -ENOTCONN;
	trace_ibnbd_srv_io_end(io, err);
	percpu_ref_put(&io->open->ref);
	ibtrs_srv_op_reply(op, err);
}

/* Has write-back failed since the file was opened? Another flush may have reported that already. */
static bool io_has_lost(const struct ibnbd_srv_open *open)
{
	return open->file && ibnbd_srv_epoch_is_known(open->session) &&
	       ibnbd_srv_epoch_wb_err(open);
}

/**
 * ibnbd_srv_io_answered() - the disk or the file system has answered: check what a failure means
 * for the disk's cache, then ibnbd_srv_io_end()
 * @io: gone afterwards
 * @err: 0 or a negative errno. Any context.
 */
void ibnbd_srv_io_answered(struct ibnbd_srv_io *io, int err)
{
	if (unlikely(io_is_promise(&io->msg) && (err || io_has_lost(io->open))))
		ibnbd_srv_epoch_doubt(io->open->export);
	ibnbd_srv_io_end(io, err);
}
