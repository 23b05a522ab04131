/* SPDX-License-Identifier: GPL-2.0-only */
/* A zeroed, DMA-mapped buffer with its completion entry: control messages and small receives. */
#ifndef IBTRS_CORE_IU_H
#define IBTRS_CORE_IU_H

#include <rdma/ib_verbs.h>
#include "ibtrs/core/conn.h"
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
/* Posts the whole buffer as a receive on @c. Any context. Return: as ibtrs_conn_post_recv(). */
int ibtrs_iu_post_recv(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev);
/*
 * Sends the first @len bytes on @c as one signalled SEND, which takes one credit; its completion
 * calls iu->cqe.done(). Any context. Return: as ibtrs_conn_send().
 */
int ibtrs_iu_send(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev, u32 len);

#endif
