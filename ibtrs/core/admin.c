// SPDX-License-Identifier: GPL-2.0-only
/* Who may write to our files in sysfs. */
#include <linux/capability.h>
#include <linux/export.h>
#include <linux/kobject.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <ibtrs/admin.h>

int ibtrs_admin(const char *what)
{
	if (capable(CAP_SYS_ADMIN))
		return 0;
	pr_warn_ratelimited("%s: refused: writing there takes CAP_SYS_ADMIN\n", what);
	return -EPERM;
}
EXPORT_SYMBOL_GPL(ibtrs_admin);

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
