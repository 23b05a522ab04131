/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts the address of one end of a connection, as the CM has it, to one of <ibtrs/addr.h>. */
#ifndef IBTRS_CORE_SOCKADDR_H
#define IBTRS_CORE_SOCKADDR_H

#include <linux/socket.h>
#include <net/net_namespace.h>
#include <ibtrs/addr.h>

/* @net: where the interface of a link-local address is looked up. Any context but NMI. */
void ibtrs_sockaddr_read(struct ibtrs_addr *a, const struct sockaddr_storage *ss, struct net *net);

#endif
