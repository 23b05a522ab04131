// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* In place of rdma.c, rdma_mem.c and rdma_cm.c, if there were no rdma-core headers (rdma.mk). */
#include "ibtrs/user/rdma.h"

static const char none[] = "this libibtrs was built without rdma-core: use tcp:";

struct ibtrs_qp *ibtrs_rdma_connect(const struct ibtrs_place *p, u32 depth, int *err,
				    const char **why)
{
	*err = -EOPNOTSUPP;
	*why = none;
	return NULL;
}

struct ibtrs_rdma_listener *ibtrs_rdma_listen(const struct ibtrs_place *p, int *port,
					      const char **why)
{
	*port = -EOPNOTSUPP;
	*why = none;
	return NULL;
}

int ibtrs_rdma_listen_fd(const struct ibtrs_rdma_listener *l)
{
	return -1;
}

void ibtrs_rdma_unlisten(struct ibtrs_rdma_listener *l)
{
}

struct ibtrs_qp *ibtrs_rdma_accept(struct ibtrs_rdma_listener *l, u32 depth,
				   char peer[IBTRS_ADDR_STR_MAX])
{
	return NULL;
}
