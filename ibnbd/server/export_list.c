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
