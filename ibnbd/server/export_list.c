// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of all exports, and its lock.
 *
 * Lock: the export lock serializes the attaching, detaching and describing of opens, and the making
 * and removing of sysfs directories. Removing a directory waits for running writes to its files, so
 * the store functions of these files may only try the lock. I/O does not take the lock, and nobody
 * opens, flushes or closes a disk under it: a disk that hangs must not hold up the others.
 */
#include <linux/sched/signal.h>
#include "ibnbd/server/export_list.h"

DEFINE_MUTEX(ibnbd_srv_export_lock);
LIST_HEAD(ibnbd_srv_export_list);

/*
 * Called from a sysfs file of the export: a task that removes the directory may hold the lock and
 * wait for us, so the lock is only tried.
 */
int ibnbd_srv_export_trylock(void)
{
	return mutex_trylock(&ibnbd_srv_export_lock) ? 0 : restart_syscall();
}

/**
 * ibnbd_srv_export_each_open() - call a function for every open
 * @fn: called under the export lock
 *
 * Sleeps. Must not be called from a file in an export's directory.
 */
void ibnbd_srv_export_each_open(void (*fn)(struct ibnbd_srv_open *open))
{
	struct ibnbd_srv_export *e;
	struct ibnbd_srv_open *open;

	guard(mutex)(&ibnbd_srv_export_lock);
	list_for_each_entry(e, &ibnbd_srv_export_list, link)
		list_for_each_entry(open, &e->opens, link)
			fn(open);
}

/* Call @fn for one open under the export lock. Sleeps. Returns what @fn returns. */
bool ibnbd_srv_export_call(struct ibnbd_srv_open *open, bool (*fn)(struct ibnbd_srv_open *open))
{
	guard(mutex)(&ibnbd_srv_export_lock);
	return fn(open);
}
