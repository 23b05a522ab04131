/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One request of a client on its way through blockio.c or fileio.c; lives in op->priv, so an I/O
 * allocates nothing.
 */
#ifndef IBNBD_SERVER_IO_H
#define IBNBD_SERVER_IO_H

#include <linux/atomic.h>
#include <linux/bio.h>
#include <linux/fs.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <ibtrs/srv.h>
#include "ibnbd/proto/msg_io.h"

/*
 * The largest private buffer; a larger I/O passes through several, one after the other. u32, as
 * the lengths that it limits: min() requires equal types until kernel 6.6.
 */
#define IBNBD_SRV_BOUNCE_MAX	((u32)SZ_128K)

struct ibnbd_srv_open;

/**
 * struct ibnbd_srv_io - one I/O
 * @op: to be answered exactly once, by ibnbd_srv_io_end()
 * @open: pinned by its reference until then
 * @bio: of blockio; @iocb: of fileio
 * @vec: the one stretch of memory under transfer
 * @msg: the decoded request
 * @done: bytes already transferred, when an I/O needs more than one private buffer
 * @pieces: blockio: through private pages
 * @direct: fileio: the piece under transfer bypasses the page cache; @buffered: no other piece may;
 *	@flushed: what comes before the first piece is done
 * @bounce: private pages under transfer, of the pool @bounce_class; NULL: none
 * @ends: fileio: how many ends of a piece are still to come: its completion, and the return of its
 *	submission; the later one continues
 * @ret: fileio: what the completion said
 * @work: continues the I/O in a context that may sleep; @link: in the export's @later, before @work
 *	is used
 */
struct ibnbd_srv_io {
	struct ibtrs_srv_op *op;
	struct ibnbd_srv_open *open;
	union {
		struct bio bio;
		struct kiocb iocb;
	};
	struct bio_vec vec;
	struct ibnbd_io msg;
	u32 done;
	bool pieces;
	bool direct;
	bool buffered;
	bool flushed;
	u8 bounce_class;
	void *bounce;
	atomic_t ends;
	long ret;
	union {
		struct work_struct work;
		struct list_head link;
	};
};

/* Content of op->priv: an I/O, or the link of a message that waits for its session's worker. */
union ibnbd_srv_priv {
	struct ibnbd_srv_io io;
	struct ibnbd_srv_ctl {
		struct list_head link;
		struct ibtrs_srv_op *op;
	} ctl;
};

int ibnbd_srv_bounce_init(void);
void ibnbd_srv_bounce_exit(void);
void *ibnbd_srv_bounce_get(struct ibnbd_srv_io *io, u32 len, gfp_t gfp);
void ibnbd_srv_bounce_put(struct ibnbd_srv_io *io, u32 len);
void ibnbd_srv_io_end(struct ibnbd_srv_io *io, int err);
void ibnbd_srv_io_answered(struct ibnbd_srv_io *io, int err);

#endif
