// SPDX-License-Identifier: GPL-2.0-only
/* Permission to write to our files in sysfs, and values that several of them show. */
#include <linux/capability.h>
#include <linux/export.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <ibtrs/addr.h>
#include <ibtrs/admin.h>

int ibtrs_admin(const char *what)
{
	if (capable(CAP_SYS_ADMIN))
		return 0;
	pr_warn_ratelimited("%s: refused: writing requires CAP_SYS_ADMIN\n", what);
	return -EPERM;
}
EXPORT_SYMBOL_GPL(ibtrs_admin);

int ibtrs_admin_param(const struct kernel_param *kp)
{
	/* A caller that may load this module may load any module: no further check. */
	if (kp->mod && kp->mod->state == MODULE_STATE_COMING && capable(CAP_SYS_MODULE))
		return 0;
	return ibtrs_admin(kp->name);
}
EXPORT_SYMBOL_GPL(ibtrs_admin_param);

static int admin_set_uint(const char *val, const struct kernel_param *kp)
{
	int err = ibtrs_admin_param(kp);

	return err ?: param_set_uint(val, kp);
}

const struct kernel_param_ops ibtrs_admin_uint_ops = {
	.set	= admin_set_uint,
	.get	= param_get_uint,
};
EXPORT_SYMBOL_GPL(ibtrs_admin_uint_ops);

static int admin_set_bool(const char *val, const struct kernel_param *kp)
{
	int err = ibtrs_admin_param(kp);

	return err ?: param_set_bool(val, kp);
}

const struct kernel_param_ops ibtrs_admin_bool_ops = {
	.flags	= KERNEL_PARAM_OPS_FL_NOARG,	/* the bare name means yes */
	.set	= admin_set_bool,
	.get	= param_get_bool,
};
EXPORT_SYMBOL_GPL(ibtrs_admin_bool_ops);

static ssize_t admin_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	return kobj_sysfs_ops.show(kobj, attr, buf);
}

static ssize_t admin_store(struct kobject *kobj, struct attribute *attr, const char *buf,
			   size_t count)
{
	int err = ibtrs_admin(attr->name);

	return err ?: kobj_sysfs_ops.store(kobj, attr, buf, count);
}

const struct sysfs_ops ibtrs_admin_sysfs_ops = {
	.show	= admin_show,
	.store	= admin_store,
};
EXPORT_SYMBOL_GPL(ibtrs_admin_sysfs_ops);

ssize_t ibtrs_admin_usage_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}
EXPORT_SYMBOL_GPL(ibtrs_admin_usage_show);

ssize_t ibtrs_admin_show_addr(char *buf, const struct ibtrs_addr *addr)
{
	char text[IBTRS_ADDR_STR_MAX];

	ibtrs_addr_format(addr, text, sizeof(text));
	return sysfs_emit(buf, "%s\n", text);
}
EXPORT_SYMBOL_GPL(ibtrs_admin_show_addr);
