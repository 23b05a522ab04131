/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBTRS_SERVER_LISTEN_H
#define IBTRS_SERVER_LISTEN_H

#include <linux/types.h>

int ibtrs_srv_listen_start(u16 port);
/* When it returns, no connection request is being handled any more. Idempotent. */
void ibtrs_srv_listen_stop(void);

#endif
