/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that the server may write to, per path. mr.c says why there are two kinds of MRs. */
#ifndef IBTRS_CLIENT_MR_H
#define IBTRS_CLIENT_MR_H

#include <rdma/ib_verbs.h>
#include "ibtrs/proto/msg.h"

struct ibtrs_clt_path;
struct ibtrs_clt_req;

#define IBTRS_CLT_BOUNCE_ORDER	1
#define IBTRS_CLT_BOUNCE_SIZE	(PAGE_SIZE << IBTRS_CLT_BOUNCE_ORDER)

/**
 * struct ibtrs_clt_mrs - set while the path connects
 * @bounce: permanent MRs, each for the bounce buffers of @per_mr slots
 * @slot: one MR for each slot, behind @bounce in the same array
 */
struct ibtrs_clt_mrs {
	struct ib_mr **bounce;
	u32 nr_bounce;
	u32 per_mr;
	u64 *bounce_dma;		/* by slot */
	u64 *hdr_dma;			/* by page of header buffers */
	struct ib_mr **slot;
	struct ib_cqe reg_cqe;
};

/* Allocate and map; nothing is posted. May sleep. */
int ibtrs_clt_mr_alloc(struct ibtrs_clt_path *path);
/* Post the REG_MR of a key that lives as long as the connection, on cid 0. */
int ibtrs_clt_mr_post(struct ibtrs_clt_path *path, struct ib_mr *mr);
/* The same for the bounce buffers. */
int ibtrs_clt_mr_post_bounce(struct ibtrs_clt_path *path);
/* After the drain. Idempotent. */
void ibtrs_clt_mr_free(struct ibtrs_clt_path *path);

/* The descriptor of a slot's bounce buffer for @len bytes. */
void ibtrs_clt_mr_bounce_desc(struct ibtrs_clt_path *path, u32 slot, u32 len,
			      struct ibtrs_desc *desc);
/*
 * Map the DMA-mapped scatterlist of the request into the slot's MR; fill in the REG_MR work request
 * and the descriptor.
 */
int ibtrs_clt_mr_map(struct ibtrs_clt_path *path, struct ibtrs_clt_req *req, struct ib_reg_wr *wr,
		     struct ibtrs_desc *desc);

/*
 * Decides whether @req uses its bounce buffer, else maps its pages for @path's device. 0, or
 * -EAGAIN: nothing is mapped.
 */
int ibtrs_clt_mr_map_pages(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path);
/* The opposite. Call it when the peer has no valid key for the pages of @req any more. */
void ibtrs_clt_mr_unmap_pages(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path);

#endif
