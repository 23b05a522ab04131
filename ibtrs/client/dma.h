/* SPDX-License-Identifier: GPL-2.0-only */
/* The pages of a request, for the device of a path. */
#ifndef IBTRS_CLIENT_DMA_H
#define IBTRS_CLIENT_DMA_H

struct ibtrs_clt_path;
struct ibtrs_clt_req;

/*
 * Decides whether @req uses its bounce buffer, else maps its pages for @path's device. 0, or
 * -EAGAIN: nothing is mapped.
 */
int ibtrs_clt_dma_map(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path);
/* The opposite. Call it when the peer has no valid key for the pages of @req any more. */
void ibtrs_clt_dma_unmap(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path);

#endif
