// SPDX-License-Identifier: GPL-2.0-only
/*
 * The keys of chunks: how a device, and through it the client, accesses the memory of chunk.c.
 *
 * Called by: info.c (map, register, describe), path_run.c (unmap); the works of one path never
 * overlap.
 *
 * Without always_invalidate there are as few MRs as the device allows, equal in size (protocol
 * 2.4). Their "page" is the largest power of two that divides the chunk and its DMA addresses, and
 * that the device supports. With always_invalidate there is one MR per chunk, because the key of a
 * chunk changes with each request. MRs are registered on the service connection, in batches that
 * fit its send queue (L18), before INFO_RSP is posted: so if INFO_RSP is lost and sent again, no
 * REG_MR is repeated.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/server/session.h"

#define CHUNK_REG_BATCH		32
#define CHUNK_REG_TIMEOUT	(5 * HZ)

static int chunk_map_dma(struct ibtrs_srv_path *path, struct scatterlist *sgl)
{
	struct ib_device *ib = path->dev->ib;
	struct ibtrs_srv_chunks *c = path->chunks;
	struct scatterlist *sg;
	u32 i;

	sg_init_table(sgl, c->nr);
	for_each_sg(sgl, sg, c->nr, i) {
		u64 dma = ib_dma_map_single(ib, c->mem[i], c->size, DMA_BIDIRECTIONAL);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		path->mrs.dma[i] = dma;
		path->mrs.mapped = i + 1;
		sg_set_buf(sg, c->mem[i], c->size);
		sg_dma_address(sg) = dma;
		sg_dma_len(sg) = c->size;
	}
	return 0;
}

/* The largest page that the chunk, its addresses and the device agree on; 0 if there is none. */
static u32 chunk_page_size(const struct ibtrs_srv_path *path)
{
	u64 fit = path->chunks->size;
	u32 i, size;

	for (i = 0; i < path->chunks->nr; i++)
		fit |= path->mrs.dma[i];
	for (size = 1u << __ffs64(fit); size >= SZ_4K; size >>= 1)
		if (path->dev->ib->attrs.page_size_cap & size)
			return size;
	return 0;
}

static int chunk_make_mr(struct ibtrs_srv_path *path, struct scatterlist *sgl, u32 per_mr, u32 page)
{
	struct ib_mr *mr;

	mr = ib_alloc_mr(path->dev->pd, IB_MR_TYPE_MEM_REG, per_mr * (path->chunks->size / page));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	path->mrs.mr[path->mrs.nr++] = mr;
	return ibtrs_mr_map(mr, sgl, per_mr, page);
}

static int chunk_make_mrs(struct ibtrs_srv_path *path, struct scatterlist *sgl, const char **why)
{
	u32 most = path->dev->ib->attrs.max_fast_reg_page_list_len;
	u32 page = chunk_page_size(path), nr = path->limits.queue_depth, pages, mrs, per_mr, i;
	struct scatterlist *sg;
	int err;

	if (!page)
		return refuse(why, "the RDMA device has no page size that divides the chunk",
			      -EOPNOTSUPP);
	pages = path->chunks->size / page;
	if (pages > most)
		return refuse(why, "the RDMA device cannot register a whole chunk: make max_chunk_size smaller",
			      -EOPNOTSUPP);
	mrs = path->limits.new_rkey ? nr : ibtrs_chunkmap_mr_count(nr, most / pages);
	*why = "the RDMA device cannot register the chunks: make sess_queue_depth smaller";
	path->mrs.mr = kvcalloc(mrs, sizeof(*path->mrs.mr), GFP_KERNEL);
	if (!path->mrs.mr)
		return -ENOMEM;
	per_mr = nr / mrs;
	for_each_sg(sgl, sg, nr, i) {
		if (i % per_mr)
			continue;
		err = chunk_make_mr(path, sg, per_mr, page);
		if (err)
			return err;
	}
	return 0;
}

int ibtrs_srv_chunk_map(struct ibtrs_srv_path *path, const char **why)
{
	u32 nr = path->limits.queue_depth;
	struct scatterlist *sgl;
	int err;

	*why = "no memory for the chunks";
	err = ibtrs_fault_wait(IBTRS_FAULT_SRV_MR, ibtrs_srv_session_label(path->session),
			       path->name);
	if (err)
		return err;
	err = -ENOMEM;
	path->mrs.dma = kvcalloc(nr, sizeof(*path->mrs.dma), GFP_KERNEL);
	sgl = kvmalloc_array(nr, sizeof(*sgl), GFP_KERNEL);
	if (path->mrs.dma && sgl)
		err = chunk_map_dma(path, sgl);
	/* Without a completion: it is never posted itself, RKEY_RSP is part of a reply. */
	if (!err && path->limits.new_rkey)
		err = ibtrs_iu_init(&path->rkeys, path->dev->ib,
				    nr * sizeof(struct ibtrs_wire_rkey_rsp), DMA_TO_DEVICE, NULL);
	err = err ?: chunk_make_mrs(path, sgl, why);
	kvfree(sgl);
	return err;
}

void ibtrs_srv_chunk_unmap(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_mrs *m = &path->mrs;

	ibtrs_iu_free(&path->rkeys);
	while (m->nr)
		ib_dereg_mr(m->mr[--m->nr]);
	kvfree(m->mr);
	m->mr = NULL;
	while (m->mapped)
		ib_dma_unmap_single(path->dev->ib, m->dma[--m->mapped], path->chunks->size,
				    DMA_BIDIRECTIONAL);
	kvfree(m->dma);
	m->dma = NULL;
}

static void chunk_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_path *path = container_of(wc->wr_cqe, struct ibtrs_srv_path, reg_cqe);

	if (wc->status != IB_WC_SUCCESS)
		path->reg_err = -EIO;
	if (!--path->reg_left)
		complete(&path->reg_done);
}

static int chunk_register_batch(struct ibtrs_srv_path *path, struct ib_reg_wr *wrs, u32 first,
				u32 n)
{
	struct ibtrs_conn *c = &path->conns[0].c;
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		ibtrs_srv_chunk_reg_wr(&wrs[i], path->mrs.mr[first + i], &path->reg_cqe);
		wrs[i].wr.next = i + 1 < n ? &wrs[i + 1].wr : NULL;
		wrs[i].wr.send_flags = IB_SEND_SIGNALED;
	}
	path->reg_left = n;
	err = ibtrs_conn_send(c, &wrs[0].wr, &wrs[n - 1].wr, n, true);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&path->reg_done, CHUNK_REG_TIMEOUT))
		return -ETIMEDOUT;
	if (path->reg_err)
		return path->reg_err;
	ibtrs_conn_credit(c, n);
	return 0;
}

int ibtrs_srv_chunk_register(struct ibtrs_srv_path *path, const char **why)
{
	struct ib_reg_wr *wrs __free(kfree) = kcalloc(CHUNK_REG_BATCH, sizeof(*wrs), GFP_KERNEL);
	u32 i;
	int err = 0;

	if (!wrs)
		return refuse(why, "out of memory", -ENOMEM);
	*why = "the RDMA device does not register the chunks";
	init_completion(&path->reg_done);
	path->reg_cqe.done = chunk_reg_done;
	path->reg_err = 0;
	for (i = 0; i < path->mrs.nr && !err; i += CHUNK_REG_BATCH)
		err = chunk_register_batch(path, wrs, i,
					   min_t(u32, CHUNK_REG_BATCH, path->mrs.nr - i));
	return err;
}

int ibtrs_srv_chunk_describe(const struct ibtrs_srv_path *path, struct ibtrs_wire_info_rsp *rsp)
{
	u32 i, nr = path->mrs.nr, per_mr = path->limits.queue_depth / nr;
	struct ibtrs_desc *desc;

	desc = kvcalloc(nr, sizeof(*desc), GFP_KERNEL);
	if (!desc)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		desc[i].addr = path->mrs.mr[i]->iova;
		desc[i].rkey = path->mrs.mr[i]->rkey;
		desc[i].len = per_mr * path->chunks->size;
	}
	ibtrs_msg_info_rsp_encode(rsp, desc, nr, path->limits.fence ? path->session->life : 0);
	kvfree(desc);
	return 0;
}
