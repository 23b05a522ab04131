// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client of a session, as long as it is there. A session may outlive it (session.c).
 */
#include <linux/rcupdate.h>
#include "ibnbd/server/client.h"
#include "ibnbd/server/session.h"

/**
 * ibnbd_srv_client_tell() - send the client an event (protocol 8.3)
 * @s: session
 * @kind: IBNBD_EVENT_...
 * @id: of the open
 *
 * Does nothing if the client is gone. Any context.
 */
void ibnbd_srv_client_tell(const struct ibnbd_srv_session *s, u32 kind, u32 id)
{
	struct ibtrs_srv_session *ibtrs;

	rcu_read_lock();
	ibtrs = rcu_dereference(s->ibtrs);
	if (ibtrs)
		ibtrs_srv_session_event(ibtrs, kind, id);
	rcu_read_unlock();
}

/* Does the client have a path that is up? Any context. */
bool ibnbd_srv_client_connected(const struct ibnbd_srv_session *s)
{
	struct ibtrs_srv_session *ibtrs;
	bool up;

	rcu_read_lock();
	ibtrs = rcu_dereference(s->ibtrs);
	up = ibtrs && ibtrs_srv_session_connected(ibtrs);
	rcu_read_unlock();
	return up;
}
