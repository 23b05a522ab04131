/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_CLIENT_SYSFS_H
#define IBNBD_CLIENT_SYSFS_H

#include <linux/sysfs.h>

/* The directory ibnbd/ of each disk, for device_add_disk(). */
extern const struct attribute_group *ibnbd_clt_sysfs_groups[];

/* ctl.c: /sys/class/ibnbd-client/ctl: mapping. */

int ibnbd_clt_ctl_init(void);
void ibnbd_clt_ctl_exit(void);

#endif
