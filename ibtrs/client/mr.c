// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory that the server may write to.
 *
 * The answer to a small read arrives in the slot's bounce buffer. All bounce buffers of a session
 * are registered once per path and stay registered while the QPs of the path live. So a small read
 * costs one work request and no invalidation; its data are copied out of the buffer. A larger read
 * registers the pages of the request in the slot's MR (REG_MR chained before the request), and
 * answer.c invalidates the key when the answer has arrived.
 *
 * The MRs live from the handshake to the drain. All keys belong to the PD of this path, so no other
 * path's QP can use them, and after the drain none of its own QPs can. That is why the walk may
 * give back pages whose key was not invalidated.
 */
#include <linux/slab.h>
#include "ibtrs/client/mr.h"
#include "ibtrs/client/session.h"

static int mr_map_buffers(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_slots *s = &path->clt->slots;
	struct ibtrs_clt_mrs *m = &path->mrs;
	struct ib_device *ib = path->dev->ib;
	u32 i;

	for (i = 0; i < s->nr_hdrs; i++) {
		u64 dma = ib_dma_map_single(ib, s->hdrs[i], PAGE_SIZE, DMA_TO_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		m->hdr_dma[i] = dma;
	}
	for (i = 0; i < s->depth; i++) {
		u64 dma = ib_dma_map_single(ib, s->reqs[i].bounce, IBTRS_CLT_BOUNCE_SIZE,
					    DMA_FROM_DEVICE);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		m->bounce_dma[i] = dma;
	}
	return 0;
}

static int mr_alloc_list(struct ib_mr **list, u32 n, struct ib_pd *pd, u32 pages)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, pages);

		if (IS_ERR(mr))
			return PTR_ERR(mr);
		list[i] = mr;
	}
	return 0;
}

static int mr_map_bounce(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_mrs *m = &path->mrs;
	struct scatterlist *sg __free(kfree) = kcalloc(m->per_mr, sizeof(*sg), GFP_KERNEL);
	u32 i, j, n;
	int err = 0;

	if (!sg)
		return -ENOMEM;
	for (i = 0; i < m->nr_bounce && !err; i++) {
		n = min(m->per_mr, path->clt->slots.depth - i * m->per_mr);
		sg_init_table(sg, n);
		for (j = 0; j < n; j++) {
			u32 slot = i * m->per_mr + j;

			sg_set_buf(&sg[j], path->clt->slots.reqs[slot].bounce,
				   IBTRS_CLT_BOUNCE_SIZE);
			sg_dma_address(&sg[j]) = m->bounce_dma[slot];
			sg_dma_len(&sg[j]) = IBTRS_CLT_BOUNCE_SIZE;
		}
		err = ibtrs_mr_map(m->bounce[i], sg, n, IBTRS_CLT_BOUNCE_SIZE);
	}
	return err;
}

int ibtrs_clt_mr_alloc(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_slots *s = &path->clt->slots;
	struct ibtrs_clt_mrs *m = &path->mrs;
	int err;

	err = ibtrs_fault_wait(IBTRS_FAULT_CLT_MR, path->clt->name, path->name);
	if (err)
		return err;
	m->per_mr = min_t(u32, s->depth, path->dev->ib->attrs.max_fast_reg_page_list_len);
	m->nr_bounce = DIV_ROUND_UP(s->depth, m->per_mr);
	m->reg_cqe.done = ibtrs_clt_handshake_sent;
	m->hdr_dma = kvcalloc(s->nr_hdrs, sizeof(*m->hdr_dma), GFP_KERNEL);
	m->bounce_dma = kvcalloc(s->depth, sizeof(*m->bounce_dma), GFP_KERNEL);
	m->bounce = kvcalloc(m->nr_bounce + s->depth, sizeof(*m->bounce), GFP_KERNEL);
	if (!m->hdr_dma || !m->bounce_dma || !m->bounce)
		return -ENOMEM;
	m->slot = m->bounce + m->nr_bounce;
	err = mr_map_buffers(path);
	err = err ?: mr_alloc_list(m->bounce, m->nr_bounce, path->dev->pd, m->per_mr);
	err = err ?: mr_alloc_list(m->slot, s->depth, path->dev->pd, path->clt->max_segments);
	return err ?: mr_map_bounce(path);
}

int ibtrs_clt_mr_post(struct ibtrs_clt_path *path, struct ib_mr *mr)
{
	struct ib_reg_wr wr = {
		.wr.wr_cqe	= &path->mrs.reg_cqe,
		.wr.opcode	= IB_WR_REG_MR,
		.mr		= mr,
		.key		= mr->rkey,
		.access		= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	return ibtrs_conn_send(&path->conns[0].c, &wr.wr, &wr.wr, 1, true);
}

int ibtrs_clt_mr_post_bounce(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_mrs *m = &path->mrs;
	int err = 0;
	u32 i;

	for (i = 0; i < m->nr_bounce && !err; i++)
		err = ibtrs_clt_mr_post(path, m->bounce[i]);
	return err;
}

void ibtrs_clt_mr_free(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_slots *s = &path->clt->slots;
	struct ibtrs_clt_mrs *m = &path->mrs;
	u32 i;

	for (i = 0; m->bounce && i < m->nr_bounce + s->depth; i++)
		if (m->bounce[i])
			ib_dereg_mr(m->bounce[i]);
	for (i = 0; m->bounce_dma && i < s->depth; i++)
		if (m->bounce_dma[i])
			ib_dma_unmap_single(path->dev->ib, m->bounce_dma[i], IBTRS_CLT_BOUNCE_SIZE,
					    DMA_FROM_DEVICE);
	for (i = 0; m->hdr_dma && i < s->nr_hdrs; i++)
		if (m->hdr_dma[i])
			ib_dma_unmap_single(path->dev->ib, m->hdr_dma[i], PAGE_SIZE, DMA_TO_DEVICE);
	kvfree(m->bounce);
	kvfree(m->bounce_dma);
	kvfree(m->hdr_dma);
	memset(m, 0, sizeof(*m));
}

void ibtrs_clt_mr_bounce_desc(struct ibtrs_clt_path *path, u32 slot, u32 len,
			      struct ibtrs_desc *desc)
{
	struct ibtrs_clt_mrs *m = &path->mrs;
	u32 i = 0, k = slot;

	if (unlikely(m->nr_bounce > 1)) {
		i = slot / m->per_mr;
		k = slot % m->per_mr;
	}
	desc->addr = m->bounce[i]->iova + (u64)k * IBTRS_CLT_BOUNCE_SIZE;
	desc->rkey = m->bounce[i]->rkey;
	desc->len = len;
}

int ibtrs_clt_mr_map(struct ibtrs_clt_path *path, struct ibtrs_clt_req *req, struct ib_reg_wr *wr,
		     struct ibtrs_desc *desc)
{
	struct ib_mr *mr = path->mrs.slot[req->slot];
	struct ibtrs_fault fault = ibtrs_fault_at(IBTRS_FAULT_CLT_MR, path->clt->name, path->name);
	int err = fault.err ?: ibtrs_mr_map(mr, req->io->sgl, req->nr_dma, SZ_4K);

	if (unlikely(err))
		return err;
	wr->mr = mr;
	wr->key = mr->rkey;
	wr->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;
	wr->wr.opcode = IB_WR_REG_MR;
	desc->addr = mr->iova;
	desc->rkey = mr->rkey;
	desc->len = mr->length;
	return 0;
}

/* The pages of a request, for the device of a path. */

static enum dma_data_direction dma_dir(const struct ibtrs_clt_io *io)
{
	return io->dir == IBTRS_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

int ibtrs_clt_mr_map_pages(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_io *io = req->io;

	req->bounced = io->dir == IBTRS_READ && io->len && io->len <= IBTRS_CLT_BOUNCE_SIZE;
	if (req->bounced || !io->nents)
		return 0;
	req->nr_dma = ib_dma_map_sg(path->dev->ib, io->sgl, io->nents, dma_dir(io));
	return unlikely(!req->nr_dma) ? -EAGAIN : 0;
}

void ibtrs_clt_mr_unmap_pages(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path)
{
	if (req->nr_dma) {
		ib_dma_unmap_sg(path->dev->ib, req->io->sgl, req->io->nents, dma_dir(req->io));
		req->nr_dma = 0;
	}
	req->mr = false;
	req->bounced = false;
}
