// SPDX-License-Identifier: GPL-2.0-only
/* The end of an I/O, whichever way it went. */
#include "ibnbd/server/io.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/trace.h"

/* Does a success say that something is safe? */
static bool io_is_promise(const struct ibnbd_io *m)
{
	return m->op == IBNBD_OP_FLUSH || m->flags & (IBNBD_F_FUA | IBNBD_F_PREFLUSH);
}

/* Has its disk another epoch than its client knows? */
static bool io_is_of_old(const struct ibnbd_srv_open *open)
{
	return READ_ONCE(open->epoch) != READ_ONCE(open->export->cache.epoch) &&
	       READ_ONCE(open->session->features) & IBNBD_FEAT_DURABILITY;
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
	 * A flush that was under way when the disk's cache was lost has covered nothing: its client
	 * is to open the disk again, and hear of it.
	 */
	if (!err && unlikely(io_is_promise(&io->msg) && io_is_of_old(io->open)))
		err = -ENOTCONN;
	trace_ibnbd_srv_io_end(io, err);
	percpu_ref_put(&io->open->ref);
	ibtrs_srv_op_reply(op, err);
}
