/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of devices: which device has a name, and how a task waits for a name. */
#ifndef IBNBD_CLIENT_NAMES_H
#define IBNBD_CLIENT_NAMES_H

#include <linux/mutex.h>
#include "ibnbd/client/dev.h"

/*
 * Protects the lists of devices and sessions. Of the other mutexes only refuse_lock is taken under
 * it, and nothing waits for a server under it.
 */
extern struct mutex ibnbd_clt_lock;

int ibnbd_clt_names_init(struct kobject *ctl);
void ibnbd_clt_names_exit(void);

/*
 * Claims the name of a device; waits, killable, for a removal of that name. 0, or an errno whose
 * reason was logged.
 */
int ibnbd_clt_names_claim(struct ibnbd_clt_dev *dev);
/* Takes the device off the list: its name may be mapped again. */
void ibnbd_clt_names_forget(struct ibnbd_clt_dev *dev);
/* Is there a device with this link? Under ibnbd_clt_lock. */
bool ibnbd_clt_names_taken(const char *link);

/* Link and unlink in ctl/devices. */
int ibnbd_clt_names_link(struct ibnbd_clt_dev *dev);
void ibnbd_clt_names_unlink(struct ibnbd_clt_dev *dev);

/*
 * To wait for another task's map or unmap: read the turn under ibnbd_clt_lock, then wait for the
 * next turn without the lock.
 */
unsigned int ibnbd_clt_names_turn(void);
int ibnbd_clt_names_wait(unsigned int turn);
void ibnbd_clt_names_next_turn(void);
/*
 * Waits until @there (called under ibnbd_clt_lock) returns false, but only for a limited time, and
 * not when killed: the removal ends by itself.
 */
void ibnbd_clt_names_wait_gone(bool (*there)(const char *name), const char *name);

#endif
