// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>
#include "ibtrs/core/iu.h"

int ibtrs_iu_init(struct ibtrs_iu *iu, struct ib_device *ib, u32 size, enum dma_data_direction dir,
		  void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	iu->buf = kzalloc(size, GFP_KERNEL);
	if (!iu->buf)
		return -ENOMEM;
	iu->dma = ib_dma_map_single(ib, iu->buf, size, dir);
	if (ib_dma_mapping_error(ib, iu->dma)) {
		kfree(iu->buf);
		iu->buf = NULL;
		return -ENOMEM;
	}
	iu->cqe.done = done;
	iu->size = size;
	iu->dir = dir;
	iu->ib = ib;
	return 0;
}

void ibtrs_iu_free(struct ibtrs_iu *iu)
{
	if (!iu->buf)
		return;
	ib_dma_unmap_single(iu->ib, iu->dma, iu->size, iu->dir);
	kfree(iu->buf);
	iu->buf = NULL;
}

void ibtrs_iu_sync_cpu(struct ibtrs_iu *iu)
{
	ib_dma_sync_single_for_cpu(iu->ib, iu->dma, iu->size, iu->dir);
}

void ibtrs_iu_sync_dev(struct ibtrs_iu *iu)
{
	ib_dma_sync_single_for_device(iu->ib, iu->dma, iu->size, iu->dir);
}

static struct ib_sge iu_sge(const struct ibtrs_iu *iu, const struct ibtrs_dev *dev)
{
	return (struct ib_sge){ .addr = iu->dma,
				.length = iu->size,
				.lkey = dev->pd->local_dma_lkey };
}

int ibtrs_iu_post_recv(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev)
{
	struct ib_sge sge = iu_sge(iu, dev);

	ibtrs_iu_sync_dev(iu);
	return ibtrs_conn_post_recv(c, &iu->cqe, &sge);
}

int ibtrs_iu_send(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev, u32 len)
{
	struct ib_sge sge = iu_sge(iu, dev);
	struct ib_send_wr wr = {
		.wr_cqe = &iu->cqe, .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1
	};

	sge.length = len;
	ibtrs_iu_sync_dev(iu);
	return ibtrs_conn_send(c, &wr, &wr, 1, true);
}
