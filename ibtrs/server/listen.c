// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listeners: IPv6-any, which accepts IPv4 too, and AF_IB for paths given as GIDs (protocol
 * 2.1).
 *
 * Both are wildcards: the connection manager listens on every RDMA device, also on one that is
 * added later, and stops when a device is removed. Each connection on a removed device gets
 * DEVICE_REMOVAL. The close work of its path first frees all that the path has of the device, then
 * the CM ids. The connection manager lets the device go when the last id is destroyed. So this
 * module needs no ib_client of its own.
 *
 * The AF_IB listener may fail: most machines do not need it.
 */
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/listen.h"

#define LISTEN_BACKLOG	256

static struct rdma_cm_id *listen_ip;
static struct rdma_cm_id *listen_ib;

static struct rdma_cm_id *listen_on(struct sockaddr *addr, enum rdma_ucm_port_space ps)
{
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, ibtrs_srv_handshake_event, NULL, ps, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	err = rdma_bind_addr(id, addr);
	err = err ?: rdma_listen(id, LISTEN_BACKLOG);
	if (err) {
		rdma_destroy_id(id);
		return ERR_PTR(err);
	}
	return id;
}

static struct rdma_cm_id *listen_on_ip(u16 port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_addr = IN6ADDR_ANY_INIT };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_ANY) };
	struct rdma_cm_id *id;

	id = listen_on((struct sockaddr *)&in6, RDMA_PS_TCP);
	/* Perhaps a kernel without IPv6: try IPv4. */
	if (IS_ERR(id) && PTR_ERR(id) != -EADDRINUSE)
		id = listen_on((struct sockaddr *)&in, RDMA_PS_TCP);
	return id;
}

static struct rdma_cm_id *listen_on_ib(u16 port)
{
	struct sockaddr_ib ib = {
		.sib_family	= AF_IB,
		.sib_pkey	= cpu_to_be16(0xffff),
		.sib_sid	= cpu_to_be64(RDMA_IB_IP_PS_IB | port),
		.sib_sid_mask	= cpu_to_be64(~0ULL),
	};

	return listen_on((struct sockaddr *)&ib, RDMA_PS_IB);
}

int ibtrs_srv_listen_start(u16 port)
{
	struct rdma_cm_id *id;

	id = listen_on_ip(port);
	if (IS_ERR(id)) {
		pr_err("cannot listen on port %u: %s (%ld)\n", port,
		       PTR_ERR(id) == -EADDRINUSE ? "in use, perhaps by rtrs-server" :
						    "refused by the connection manager",
		       PTR_ERR(id));
		return PTR_ERR(id);
	}
	listen_ip = id;
	id = listen_on_ib(port);
	if (IS_ERR(id))
		pr_debug("no listener for GID paths (%ld)\n", PTR_ERR(id));
	else
		listen_ib = id;
	return 0;
}

void ibtrs_srv_listen_stop(void)
{
	if (listen_ip)
		rdma_destroy_id(listen_ip);
	if (listen_ib)
		rdma_destroy_id(listen_ib);
	listen_ip = NULL;
	listen_ib = NULL;
}
