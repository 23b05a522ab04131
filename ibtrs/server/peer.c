// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of the client of a session: which client it is, the key that it has, and the
 * addresses that it comes from.
 */
#include <linux/export.h>
#include <linux/rculist.h>
#include "ibtrs/server/session.h"

const u8 *ibtrs_srv_peer_identity(const struct ibtrs_srv_session *s)
{
	return s->identity;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_peer_identity);

const char *ibtrs_srv_peer_label(const struct ibtrs_srv_session *s)
{
	return ibtrs_srv_session_label(s);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_peer_label);

const char *ibtrs_srv_peer_key(const struct ibtrs_srv_session *s)
{
	return s->key[0] ? s->key : NULL;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_peer_key);

/* Paths that are half open do not count: anybody can begin one. */
void ibtrs_srv_peer_each(struct ibtrs_srv_session *s,
			 void (*fn)(void *arg, const struct ibtrs_origin *from), void *arg)
{
	struct ibtrs_srv_path *path;
	bool any = false;

	rcu_read_lock();
	list_for_each_entry_rcu(path, &s->paths, entry) {
		if (!ibtrs_srv_path_up(path))
			continue;
		fn(arg, &path->from);
		any = true;
	}
	rcu_read_unlock();
	if (!any)
		fn(arg, &s->from);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_peer_each);
