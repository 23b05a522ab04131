/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_CLIENT_H
#define IBNBD_SERVER_CLIENT_H

#include <linux/types.h>

struct ibnbd_srv_session;

void ibnbd_srv_client_tell(const struct ibnbd_srv_session *s, u32 kind, u32 id);
bool ibnbd_srv_client_connected(const struct ibnbd_srv_session *s);

#endif
