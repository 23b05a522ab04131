// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of all sessions. Names are unique.
 *
 * Locking: sessions_lock, taken before clt->lock. A task that adds a session may wait with it until
 * a uevent can be sent, which may depend on I/O. So no path needs it to come up: only port.c waits,
 * and heartbeats find a dead path without port.c.
 */
#include "ibtrs/client/session.h"
#include "ibtrs/client/sessions.h"

static DEFINE_MUTEX(sessions_lock);
static LIST_HEAD(sessions);

int ibtrs_clt_sessions_add(struct ibtrs_clt *clt)
{
	struct ibtrs_clt *other;
	int err;

	guard(mutex)(&sessions_lock);
	list_for_each_entry(other, &sessions, entry)
		if (!strcmp(other->name, clt->name))
			return -EEXIST;
	err = ibtrs_clt_dirs_session_add(clt);
	if (!err)
		list_add_tail(&clt->entry, &sessions);
	return err;
}

void ibtrs_clt_sessions_del(struct ibtrs_clt *clt)
{
	mutex_lock(&sessions_lock);
	list_del(&clt->entry);
	mutex_unlock(&sessions_lock);
}

void ibtrs_clt_sessions_each_path(void (*fn)(struct ibtrs_clt_path *path, void *arg), void *arg)
{
	struct ibtrs_clt_path *path;
	struct ibtrs_clt *clt;

	mutex_lock(&sessions_lock);
	list_for_each_entry(clt, &sessions, entry) {
		mutex_lock(&clt->lock);
		list_for_each_entry(path, &clt->paths, entry)
			fn(path, arg);
		mutex_unlock(&clt->lock);
	}
	mutex_unlock(&sessions_lock);
}
