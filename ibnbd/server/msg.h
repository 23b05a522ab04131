/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_MSG_H
#define IBNBD_SERVER_MSG_H

#include <ibtrs/srv.h>

struct ibnbd_srv_opener;
struct ibnbd_srv_session;

void ibnbd_srv_msg_request(void *priv, struct ibtrs_srv_op *op);
void ibnbd_srv_msg_ctl(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op);
void ibnbd_srv_msg_open(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op,
			struct ibnbd_srv_opener *o);

#endif
