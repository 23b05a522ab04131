/* SPDX-License-Identifier: GPL-2.0-only */
/* Receives on a server connection. */
#ifndef IBTRS_SERVER_RX_H
#define IBTRS_SERVER_RX_H

#include "ibtrs/server/path.h"

#define IBTRS_SRV_RX_BATCH	16	/* receives are posted again in batches of this size */
#define IBTRS_SRV_RX_SERVICE	(128 + IBTRS_SRV_RX_BATCH)

/* How many empty receives a connection wants. */
u32 ibtrs_srv_rx_depth(const struct ibtrs_srv_conn *conn);
/* Post them. */
int ibtrs_srv_rx_start(struct ibtrs_srv_conn *conn);
void ibtrs_srv_rx_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
