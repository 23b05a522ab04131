/* SPDX-License-Identifier: GPL-2.0-only */
/* A look at a session whose client may be away or gone, and the ops of a path that is closing. */
#ifndef IBTRS_SERVER_LOOK_H
#define IBTRS_SERVER_LOOK_H

#include "ibtrs/server/session.h"

void ibtrs_srv_look_work(struct work_struct *work);	/* the work @look of a session */
/* Look at once. Any context. */
void ibtrs_srv_look_now(struct ibtrs_srv_session *s);

/* Close work; may sleep: ends the parked ops of @path; they are not executed. */
void ibtrs_srv_look_ops_unpark(struct ibtrs_srv_path *path);
/*
 * True: an op of slot *@from or higher is busy; *@from becomes its slot. All ops before it are idle
 * and stay idle.
 */
bool ibtrs_srv_look_ops_any_busy(const struct ibtrs_srv_path *path, u32 *from);

#endif
