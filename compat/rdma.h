/* SPDX-License-Identifier: GPL-2.0-only */
/* RDMA verbs and connection manager: nearly uniform. See compat.h. */
#ifndef IBNBD_COMPAT_RDMA_H
#define IBNBD_COMPAT_RDMA_H

#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#if !HAVE_RDMA_MIN_RNR		/* 5.15; older kernels keep their default timer */
static inline int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer)
{
	return 0;
}
#endif

#endif
