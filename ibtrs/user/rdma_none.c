// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* In place of rdma.c and the like, if there were no rdma-core headers (rdma.mk). */
#include "ibtrs/user/rdma.h"

static const char none[] = "this libibtrs was built without rdma-core: use tcp:";

static struct ibtrs_qp *none_connect(const struct ibtrs_place *p, u32 depth, int *err,
				     const char **why)
{
	*err = -EOPNOTSUPP;
	*why = none;
	return NULL;
}

/* The others are called for a listener, and there is none. */
static struct ibtrs_rdma_listener *none_listen(const struct ibtrs_place *p, int *port,
					       const char **why)
{
	*port = -EOPNOTSUPP;
	*why = none;
	return NULL;
}

const struct ibtrs_transport ibtrs_rdma = {
	.connect	= none_connect,
	.listen		= none_listen,
};
