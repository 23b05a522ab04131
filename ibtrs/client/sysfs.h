/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes of sessions and paths. */
#ifndef IBTRS_CLIENT_SYSFS_H
#define IBTRS_CLIENT_SYSFS_H

#include <linux/types.h>

struct attribute_group;
struct device_attribute;
struct ibtrs_clt;
struct ibtrs_clt_path;

extern const struct attribute_group *ibtrs_clt_sysfs_session_groups[];
extern const struct device_attribute *const ibtrs_clt_sysfs_add_path;
extern const struct attribute_group *ibtrs_clt_sysfs_path_groups[];

/* Log one line about a refused value. @path: NULL = an attribute of the session. */
void ibtrs_clt_sysfs_refuse(const struct ibtrs_clt *clt, const struct ibtrs_clt_path *path,
			    const char *attr, const char *buf, size_t count, const char *why);

#endif
