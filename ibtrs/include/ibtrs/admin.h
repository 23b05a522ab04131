/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may write to our files in sysfs. Their mode says root; root of a container to which sysfs was
 * lent passes that, too. What is written there maps disks, breaks paths and takes mappings away, so
 * it takes the capability that mount(2) takes.
 */
#ifndef IBTRS_ADMIN_H
#define IBTRS_ADMIN_H

#include <linux/device.h>
#include <linux/sysfs.h>

/**
 * ibtrs_admin() - may the caller write to a file of ours?
 * @what: the file, for the log
 *
 * Process context. Return: 0, or -EPERM and a line in the log.
 */
int ibtrs_admin(const char *what);

/* kobj_sysfs_ops for directories whose files take what an administrator writes. */
extern const struct sysfs_ops ibtrs_admin_sysfs_ops;

/* DEVICE_ATTR_RW() of a file that takes what an administrator writes. */
#define IBTRS_ADMIN_ATTR_RW(_name)							\
static ssize_t _name##_admin_store(struct device *d, struct device_attribute *attr,	\
				   const char *buf, size_t count)			\
{											\
	int err = ibtrs_admin(attr->attr.name);						\
											\
	return err ?: _name##_store(d, attr, buf, count);				\
}											\
static struct device_attribute dev_attr_##_name =					\
	__ATTR(_name, 0644, _name##_show, _name##_admin_store)

#endif
