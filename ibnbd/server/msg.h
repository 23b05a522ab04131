/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_MSG_H
#define IBNBD_SERVER_MSG_H

#include <linux/workqueue.h>
#include <ibtrs/srv.h>

struct ibnbd_srv_session;

void ibnbd_srv_msg_request(void *priv, struct ibtrs_srv_op *op);

/*
 * as many messages as our client has slots for; limited, so that one client cannot take all workers
 */
#define IBNBD_SRV_OPENERS	32

/**
 * struct ibnbd_srv_opener - serves OPENs of one session, one after the other
 * @busy: queued or running; @name: what it is opening, or NULL; @asked_again: the client has sent
 *	another OPEN of @name in the meantime; all under the session's lock
 */
struct ibnbd_srv_opener {
	struct ibnbd_srv_session *session;
	struct work_struct work;
	bool busy;
	const char *name;
	bool asked_again;
};

/* The works of a session, for INIT_WORK() in session.c. */
void ibnbd_srv_dispatch_work(struct work_struct *work);
void ibnbd_srv_dispatch_opener_work(struct work_struct *work);

#endif
