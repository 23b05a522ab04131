// SPDX-License-Identifier: GPL-2.0-only
/* The pages of a request, for the device of a path. */
#include "ibtrs/client/dma.h"
#include "ibtrs/client/session.h"

static enum dma_data_direction dma_dir(const struct ibtrs_clt_io *io)
{
	return io->dir == IBTRS_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

int ibtrs_clt_dma_map(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_io *io = req->io;

	req->bounced = io->dir == IBTRS_READ && io->len && io->len <= IBTRS_CLT_BOUNCE_SIZE;
	if (req->bounced || !io->nents)
		return 0;
	req->nr_dma = ib_dma_map_sg(path->dev->ib, io->sgl, io->nents, dma_dir(io));
	return unlikely(!req->nr_dma) ? -EAGAIN : 0;
}

void ibtrs_clt_dma_unmap(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path)
{
	if (req->nr_dma) {
		ib_dma_unmap_sg(path->dev->ib, req->io->sgl, req->io->nents, dma_dir(req->io));
		req->nr_dma = 0;
	}
	req->mr = false;
	req->bounced = false;
}
