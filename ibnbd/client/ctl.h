/* SPDX-License-Identifier: GPL-2.0-only */
/* /sys/class/ibnbd-client/ctl: mapping, the list of devices, the last refusal. */
#ifndef IBNBD_CLIENT_CTL_H
#define IBNBD_CLIENT_CTL_H

#include <linux/mutex.h>
#include "ibnbd/client/dev.h"

/* Lists of devices and sessions. Innermost but for spinlocks: nothing that waits runs under it. */
extern struct mutex ibnbd_clt_lock;

int ibnbd_clt_ctl_init(void);
void ibnbd_clt_ctl_exit(void);

/* Log the refusal of something an administrator wrote, keep it for ctl/last_error, and return @err. */
__printf(2, 3) int ibnbd_clt_ctl_refuse(int err, const char *fmt, ...);

/* Link and unlink in ctl/devices. */
int ibnbd_clt_ctl_link(struct ibnbd_clt_dev *dev);
void ibnbd_clt_ctl_unlink(struct ibnbd_clt_dev *dev);
/* Off the list of devices: its name may be mapped again. */
void ibnbd_clt_ctl_forget(struct ibnbd_clt_dev *dev);

/* Waiting for somebody else's map or unmap: take the number under ibnbd_clt_lock, wait for the next without it. */
unsigned int ibnbd_clt_ctl_turn(void);
int ibnbd_clt_ctl_wait(unsigned int turn);
void ibnbd_clt_ctl_next_turn(void);
/* Until @there (called under ibnbd_clt_lock) says no; but no longer than for a while, and not when we are killed: it will end by itself. */
void ibnbd_clt_ctl_wait_gone(bool (*there)(const char *name), const char *name);

#endif
