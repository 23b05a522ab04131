/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes of sessions and paths. */
#ifndef IBTRS_CLIENT_SYSFS_H
#define IBTRS_CLIENT_SYSFS_H

struct attribute_group;
struct device_attribute;

extern const struct attribute_group *ibtrs_clt_sysfs_session_groups[];
extern const struct device_attribute *const ibtrs_clt_sysfs_add_path;
extern const struct attribute_group *ibtrs_clt_sysfs_path_groups[];

#endif
