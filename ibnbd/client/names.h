/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of devices: whose they are, and what waits for one. */
#ifndef IBNBD_CLIENT_NAMES_H
#define IBNBD_CLIENT_NAMES_H

#include <linux/mutex.h>
#include "ibnbd/client/dev.h"

/* Lists of devices and sessions. Innermost but for spinlocks: nothing that waits runs under it. */
extern struct mutex ibnbd_clt_lock;

int ibnbd_clt_names_init(struct kobject *ctl);
void ibnbd_clt_names_exit(void);

/*
 * Claim the name of a device; waits, killable, for a removal of that name. 0, or an errno that was
 * said.
 */
int ibnbd_clt_names_claim(struct ibnbd_clt_dev *dev);
/* Off the list of devices: its name may be mapped again. */
void ibnbd_clt_names_forget(struct ibnbd_clt_dev *dev);
/* Is there a device of this link? Under ibnbd_clt_lock. */
bool ibnbd_clt_names_taken(const char *link);

/* Link and unlink in ctl/devices. */
int ibnbd_clt_names_link(struct ibnbd_clt_dev *dev);
void ibnbd_clt_names_unlink(struct ibnbd_clt_dev *dev);

/*
 * Waiting for somebody else's map or unmap: take the number under ibnbd_clt_lock, wait for the next
 * without it.
 */
unsigned int ibnbd_clt_names_turn(void);
int ibnbd_clt_names_wait(unsigned int turn);
void ibnbd_clt_names_next_turn(void);
/*
 * Until @there (called under ibnbd_clt_lock) says no; but no longer than for a while, and not when
 * we are killed: it will end by itself.
 */
void ibnbd_clt_names_wait_gone(bool (*there)(const char *name), const char *name);

#endif
