/* SPDX-License-Identifier: GPL-2.0-only */
/* From a knock at the door to a path that carries requests. */
#ifndef IBTRS_SERVER_HANDSHAKE_H
#define IBTRS_SERVER_HANDSHAKE_H

#include <rdma/rdma_cm.h>

struct ibtrs_srv_path;

/* Event handler of the listeners and of all connections that come from them. */
int ibtrs_srv_handshake_event(struct rdma_cm_id *id, struct rdma_cm_event *ev);
void ibtrs_srv_handshake_init(struct ibtrs_srv_path *path);
/* After the drain. Idempotent. */
void ibtrs_srv_handshake_free(struct ibtrs_srv_path *path);

#endif
