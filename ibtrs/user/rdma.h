/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Connections of an RDMA adapter: librdmacm and libibverbs. */
#ifndef IBTRS_USER_RDMA_H
#define IBTRS_USER_RDMA_H

#include "ibtrs/user/ctx.h"
#include "ibtrs/user/verbs.h"

struct ibtrs_rdma_listener;

/**
 * struct ibtrs_transport - how connections of RDMA come about; tests put another one in its place
 * @connect: a connection that has begun to connect; NULL: @err and @why say what is wrong. @depth:
 *	requests at a time; 0: a service connection, whose answer says how many there are
 * @listen: NULL: @port is a negative errno, and @why says what is wrong
 * @accept: a connection request that has arrived, which polls as IBTRS_FRAME_REQ; NULL: there is
 *	none
 * @where: the addresses of this host at which it has RDMA, those of IPv4 alone, or all. Return: how
 *	many
 */
struct ibtrs_transport {
	struct ibtrs_qp *(*connect)(const struct ibtrs_place *p, u32 depth, int *err,
				    const char **why);
	struct ibtrs_rdma_listener *(*listen)(const struct ibtrs_place *p, int *port,
					      const char **why);
	int (*listen_fd)(const struct ibtrs_rdma_listener *l);
	void (*unlisten)(struct ibtrs_rdma_listener *l);
	struct ibtrs_qp *(*accept)(struct ibtrs_rdma_listener *l, u32 depth,
				   char peer[IBTRS_ADDR_STR_MAX]);
	u32 (*where)(int family, u8 gid[][IBTRS_GID_LEN], u32 max);
};

extern const struct ibtrs_transport ibtrs_rdma;

#endif
