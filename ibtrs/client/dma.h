/* SPDX-License-Identifier: GPL-2.0-only */
/* The pages of a request, for the device of a path. */
#ifndef IBTRS_CLIENT_DMA_H
#define IBTRS_CLIENT_DMA_H

struct ibtrs_clt_path;
struct ibtrs_clt_req;

/*
 * Decides whether @req is bounced, else maps its pages for @path's device. 0, or -EAGAIN: nothing
 * is mapped.
 */
int ibtrs_clt_dma_map(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path);
/* The opposite; @req has no key any more that a peer could use. */
void ibtrs_clt_dma_unmap(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path);

#endif
