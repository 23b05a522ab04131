/* SPDX-License-Identifier: GPL-2.0-only */
/* A look at a session whose client may be away or gone. */
#ifndef IBTRS_SERVER_LOOK_H
#define IBTRS_SERVER_LOOK_H

#include "ibtrs/server/session.h"

void ibtrs_srv_look_work(struct work_struct *work);	/* the work @look of a session */
/* Look at once. Any context. */
void ibtrs_srv_look_now(struct ibtrs_srv_session *s);

#endif
