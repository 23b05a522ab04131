/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_SYSFS_H
#define IBNBD_SERVER_SYSFS_H

#include "ibnbd/server/export.h"

struct attribute_group;

extern const struct attribute_group *ibnbd_srv_sysfs_open_groups[];
extern const struct attribute_group *ibnbd_srv_sysfs_export_groups[];

int ibnbd_srv_sysfs_init(void);
void ibnbd_srv_sysfs_exit(void);

/* dirs.c: directories of exports and opens */

int ibnbd_srv_dirs_init(struct kobject *ctl);
void ibnbd_srv_dirs_exit(void);
void ibnbd_srv_dirs_made(void);
void ibnbd_srv_dirs_released(void);
void ibnbd_srv_dirs_wait_released(void);
int ibnbd_srv_dirs_add_export(struct ibnbd_srv_export *e, struct ibnbd_srv_open *open);
void ibnbd_srv_dirs_del_export(struct ibnbd_srv_export *e);
int ibnbd_srv_dirs_add_open(struct ibnbd_srv_open *open);
void ibnbd_srv_dirs_del_open(struct ibnbd_srv_open *open);

#endif
