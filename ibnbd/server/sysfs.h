/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_SYSFS_H
#define IBNBD_SERVER_SYSFS_H

struct attribute_group;

extern const struct attribute_group *ibnbd_srv_sysfs_open_groups[];
extern const struct attribute_group *ibnbd_srv_sysfs_export_groups[];

int ibnbd_srv_sysfs_init(void);
void ibnbd_srv_sysfs_exit(void);

#endif
