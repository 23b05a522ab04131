/* SPDX-License-Identifier: GPL-2.0-only */
/* Receives on a client connection. */
#ifndef IBTRS_CLIENT_RX_H
#define IBTRS_CLIENT_RX_H

#include "ibtrs/client/cm.h"

/*
 * How many receives such a connection posts (protocol 7): for answers, and for the invalidations
 * that come before them.
 */
u32 ibtrs_clt_rx_depth(const struct ibtrs_clt_conn *conn);
/* Post all receives of a connection; with NEW_RKEY allocates their buffers. */
int ibtrs_clt_rx_start(struct ibtrs_clt_conn *conn);
/* After the drain; idempotent. */
void ibtrs_clt_rx_stop(struct ibtrs_clt_conn *conn);
void ibtrs_clt_rx_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void ibtrs_clt_rx_send_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
