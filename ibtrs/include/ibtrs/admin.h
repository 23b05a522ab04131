/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Permission to write to our files and module parameters in sysfs. The mode of the files lets only
 * root write, but root of a container that was given sysfs passes this check, too. A write there
 * maps disks, breaks paths or removes mappings, so it requires CAP_SYS_ADMIN, as mount(2) does.
 */
#ifndef IBTRS_ADMIN_H
#define IBTRS_ADMIN_H

#include <linux/device.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/sysfs.h>

struct ibtrs_addr;

/**
 * ibtrs_admin() - may the caller write to a file of ours?
 * @what: the file, for the log
 *
 * Process context. Return: 0, or -EPERM and a line in the log.
 */
int ibtrs_admin(const char *what);

/**
 * ibtrs_admin_param() - may the caller set this module parameter?
 * @kp: the parameter
 *
 * The set function of a writable parameter calls it first. While the module is being loaded, the
 * answer is yes for a caller that may load modules. Process context.
 *
 * Return: 0, or -EPERM and a line in the log.
 */
int ibtrs_admin_param(const struct kernel_param *kp);

extern const struct kernel_param_ops ibtrs_admin_uint_ops;
extern const struct kernel_param_ops ibtrs_admin_bool_ops;

/* module_param_named() of a writable parameter; _type: uint, bool */
#define IBTRS_ADMIN_PARAM(_name, _value, _type, _perm)					\
	param_check_##_type(_name, &(_value));						\
	module_param_cb(_name, &ibtrs_admin_##_type##_ops, &(_value), _perm);		\
	__MODULE_PARM_TYPE(_name, #_type)

/* As kobj_sysfs_ops, for directories with files that only an administrator may write. */
extern const struct sysfs_ops ibtrs_admin_sysfs_ops;

/* Rows of a table of attributes: a file of a device, or of another directory of ours. */
#define IBTRS_ADMIN_DEV_FILE(...)	(&((struct device_attribute)__VA_ARGS__).attr)
#define IBTRS_ADMIN_FILE(...)		(&((struct kobj_attribute)__VA_ARGS__).attr)

/* show() of such a file: format and values. These are expressions of @d, or @kobj, and @attr. */
#define IBTRS_ADMIN_DEV_SHOW(_name, _fmt, ...)						\
static ssize_t _name##_show(struct device *d, struct device_attribute *attr, char *buf)	\
{											\
	return sysfs_emit(buf, _fmt "\n", __VA_ARGS__);					\
}
#define IBTRS_ADMIN_SHOW(_name, _fmt, ...)						\
static ssize_t _name##_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)	\
{											\
	return sysfs_emit(buf, _fmt "\n", __VA_ARGS__);					\
}

/* Log that @_buf was refused, and @_why; then come format and values for the name of the file. */
#define IBTRS_ADMIN_REFUSE(_buf, _count, _why, _fmt, ...)				\
	pr_err_ratelimited(_fmt ": '%*pE' refused: %s\n", __VA_ARGS__,			\
			   (int)min_t(size_t, _count, 40), _buf, _why)

/* show() of a file to which 1 is written. */
ssize_t ibtrs_admin_usage_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf);
ssize_t ibtrs_admin_show_addr(char *buf, const struct ibtrs_addr *addr);

/* DEVICE_ATTR_RW() of a file that only an administrator may write. */
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
