/* SPDX-License-Identifier: GPL-2.0-only */
/* The listeners, and from a CONN_REQ to a connection. */
#ifndef IBTRS_SERVER_HANDSHAKE_H
#define IBTRS_SERVER_HANDSHAKE_H

#include <linux/types.h>
#include <rdma/rdma_cm.h>

/* Event handler of the listeners and of all connections that come from them. */
int ibtrs_srv_handshake_event(struct rdma_cm_id *id, struct rdma_cm_event *ev);

int ibtrs_srv_handshake_start(u16 port);
/* When it returns, no connection request is being handled any more. Idempotent. */
void ibtrs_srv_handshake_stop(void);

#endif
