/* SPDX-License-Identifier: GPL-2.0-only */
/* A zeroed, DMA-mapped buffer with its completion entry: control messages and small receives. */
#ifndef IBTRS_CORE_IU_H
#define IBTRS_CORE_IU_H

#include <rdma/ib_verbs.h>
#include "ibtrs/core/dev.h"

struct ibtrs_iu {
	struct ib_cqe cqe;
	void *buf;
	u64 dma;
	u32 size;
	enum dma_data_direction dir;
	struct ib_device *ib;
};

int ibtrs_iu_init(struct ibtrs_iu *iu, struct ib_device *ib, u32 size, enum dma_data_direction dir,
		  void (*done)(struct ib_cq *cq, struct ib_wc *wc));
void ibtrs_iu_free(struct ibtrs_iu *iu);	/* idempotent */
void ibtrs_iu_sync_cpu(struct ibtrs_iu *iu);
void ibtrs_iu_sync_dev(struct ibtrs_iu *iu);
struct ib_sge ibtrs_iu_sge(const struct ibtrs_iu *iu, const struct ibtrs_dev *dev);

#endif
