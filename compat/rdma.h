/* SPDX-License-Identifier: GPL-2.0-only */
/* RDMA verbs and connection manager: nearly uniform. See compat.h. */
#ifndef IBNBD_COMPAT_RDMA_H
#define IBNBD_COMPAT_RDMA_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#if !HAVE_IB_KERNEL_CAP		/* 6.0; EL8.10 */
#define kernel_cap_flags	device_cap_flags
#define IBK_SG_GAPS_REG		IB_DEVICE_SG_GAPS_REG
#define IBK_LOCAL_DMA_LKEY	IB_DEVICE_LOCAL_DMA_LKEY
#endif
#if !HAVE_RDMA_MIN_RNR		/* 5.15: the default of 5.10 is what we would set least often */
static inline int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer)
{
	return 0;
}
#endif

#endif
