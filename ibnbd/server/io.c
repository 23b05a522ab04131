// SPDX-License-Identifier: GPL-2.0-only
/* The end of an I/O, whichever way it went. */
#include "ibnbd/server/io.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/trace.h"

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
	trace_ibnbd_srv_io_end(io, err);
	percpu_ref_put(&io->open->ref);
	ibtrs_srv_op_reply(op, err);
}
