/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Connections of an RDMA adapter: librdmacm and libibverbs. */
#ifndef IBTRS_USER_RDMA_H
#define IBTRS_USER_RDMA_H

#include "ibtrs/user/ctx.h"
#include "ibtrs/user/verbs.h"

struct ibtrs_rdma_listener;

/*
 * A connection that has begun to connect; NULL: @err and @why say what is wrong. @depth: requests
 * at a time; 0: a service connection, whose answer says how many there are.
 */
struct ibtrs_qp *ibtrs_rdma_connect(const struct ibtrs_place *p, u32 depth, int *err,
				    const char **why);
/* NULL: @port is a negative errno, and @why says what is wrong. */
struct ibtrs_rdma_listener *ibtrs_rdma_listen(const struct ibtrs_place *p, int *port,
					      const char **why);
int ibtrs_rdma_listen_fd(const struct ibtrs_rdma_listener *l);
void ibtrs_rdma_unlisten(struct ibtrs_rdma_listener *l);
/* A connection request that has arrived, which polls as IBTRS_FRAME_REQ; NULL: there is none. */
struct ibtrs_qp *ibtrs_rdma_accept(struct ibtrs_rdma_listener *l, u32 depth,
				   char peer[IBTRS_ADDR_STR_MAX]);

#endif
