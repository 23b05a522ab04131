// SPDX-License-Identifier: GPL-2.0-only
/*
 * Converts a sockaddr of the kernel to an address of <ibtrs/addr.h>, which is pure and knows no
 * sockaddr.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib.h>
#include "ibtrs/core/sockaddr.h"

void ibtrs_sockaddr_read(struct ibtrs_addr *a, const struct sockaddr_storage *ss, struct net *net)
{
	const struct sockaddr_in6 *in6 = (const void *)ss;
	struct net_device *dev;

	memset(a, 0, sizeof(*a));
	switch (ss->ss_family) {
	case AF_INET:
		a->kind = IBTRS_ADDR_IP4;
		memcpy(a->raw, &((const struct sockaddr_in *)ss)->sin_addr, 4);
		break;
	case AF_INET6:
		a->kind = IBTRS_ADDR_IP6;
		memcpy(a->raw, &in6->sin6_addr, sizeof(a->raw));
		if (!in6->sin6_scope_id)
			break;
		dev = dev_get_by_index(net, in6->sin6_scope_id);
		if (dev) {
			strscpy(a->scope, dev->name, sizeof(a->scope));
			dev_put(dev);
		}
		break;
	case AF_IB:
		a->kind = IBTRS_ADDR_GID;
		memcpy(a->raw, &((const struct sockaddr_ib *)ss)->sib_addr, sizeof(a->raw));
		break;
	}
}
EXPORT_SYMBOL_GPL(ibtrs_sockaddr_read);
