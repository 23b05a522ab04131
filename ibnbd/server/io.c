// SPDX-License-Identifier: GPL-2.0-only
/*
 * Private pages of an I/O, and its completion, for all backends.
 */
#include <linux/gfp.h>
#include <linux/mempool.h>
#include <linux/mm.h>
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/io.h"
#include "ibnbd/server/trace.h"

/*
 * Private pages: buffers that the client cannot write to while a device computes checksums over
 * them (docs/design.md decision 9).
 *
 * Three sizes, each a mempool whose elements are one contiguous buffer. So an I/O gets its memory
 * in one piece: no I/O waits for memory while it holds some, and the reserve guarantees progress. A
 * caller in a completion context asks with GFP_NOWAIT. If that fails, it continues in a work item
 * and asks with GFP_NOIO, which waits and cannot fail.
 */

static const struct {
	u32 size;
	int reserve;
} bounce_class[] = {
	{ PAGE_SIZE,			64 },
	{ SZ_16K,			16 },
	{ IBNBD_SRV_BOUNCE_MAX,		8 },
};

static mempool_t *bounce_pool[ARRAY_SIZE(bounce_class)];

/* Undo ibnbd_srv_bounce_init(); no buffer is in use. */
void ibnbd_srv_bounce_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bounce_pool); i++) {
		mempool_destroy(bounce_pool[i]);
		bounce_pool[i] = NULL;
	}
}

/* Fill the reserves. 0 or -ENOMEM. */
int ibnbd_srv_bounce_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bounce_pool); i++) {
		unsigned long order = get_order(bounce_class[i].size);

		/* compound, since one bio_vec spans the whole buffer */
		bounce_pool[i] = mempool_create_node(bounce_class[i].reserve, mempool_alloc_pages,
						     mempool_free_pages, (void *)order,
						     GFP_KERNEL | __GFP_COMP, NUMA_NO_NODE);
		if (!bounce_pool[i]) {
			ibnbd_srv_bounce_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * ibnbd_srv_bounce_get() - private pages for the next piece of an I/O
 * @io: @bounce is set; the pages of a write have its data
 * @len: bytes of the piece, at most IBNBD_SRV_BOUNCE_MAX
 * @gfp: GFP_NOWAIT, or GFP_NOIO in a context that may sleep: then it never fails
 *
 * Return: the pages, physically contiguous; or NULL.
 */
void *ibnbd_srv_bounce_get(struct ibnbd_srv_io *io, u32 len, gfp_t gfp)
{
	struct page *page;

	io->bounce_class = 0;
	while (bounce_class[io->bounce_class].size < len)
		io->bounce_class++;
	page = mempool_alloc(bounce_pool[io->bounce_class], gfp | __GFP_COMP);
	io->bounce = page ? page_address(page) : NULL;
	if (io->bounce && io->msg.op == IBNBD_OP_WRITE)
		memcpy(io->bounce, io->op->data + io->done, len);
	return io->bounce;
}

/* Free the pages, if there are any. @len: bytes that a read has put there. Any context. */
void ibnbd_srv_bounce_put(struct ibnbd_srv_io *io, u32 len)
{
	if (!io->bounce)
		return;
	if (io->msg.op == IBNBD_OP_READ)
		memcpy(io->op->data + io->done, io->bounce, len);
	mempool_free(virt_to_page(io->bounce), bounce_pool[io->bounce_class]);
	io->bounce = NULL;
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
	if (!err && ibnbd_access_shows_disk(&io->msg) && unlikely(io_is_of_old(io->open)))
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
	if (unlikely(ibnbd_access_promises(&io->msg) && (err || io_has_lost(io->open))))
		ibnbd_srv_epoch_doubt(io->open->export);
	ibnbd_srv_io_end(io, err);
}
