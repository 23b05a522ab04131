// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files below /sys/class/ibnbd-server/ctl; docs/sysfs.md lists them. The directories are
 * dirs.c's, and ctl/policy is policy.c's.
 */
#include <linux/device.h>
#include <ibtrs/admin.h>
#include "ibnbd/logic/text.h"
#include "ibnbd/server/export.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/policy.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"

static struct class *sysfs_class;
static struct device *sysfs_ctl;

/* 0 if 1 is written; else -EINVAL, and the log says what that is for. */
static int sysfs_want_one(const struct kobject *kobj, const struct kobj_attribute *attr,
			  const char *buf, const char *what)
{
	if (sysfs_streq(buf, "1"))
		return 0;
	pr_err("%s: %s: write 1 %s\n", kobject_name(kobj), attr->attr.name, what);
	return -EINVAL;
}

/* ---- last_error ---------------------------------------------------------- */

static ssize_t last_error_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return ibnbd_srv_last_error(buf);
}
static DEVICE_ATTR_RO(last_error);

static struct attribute *sysfs_ctl_attrs[] = {
	&dev_attr_last_error.attr,
	NULL,
};
ATTRIBUTE_GROUPS(sysfs_ctl);

/* ---- exports ------------------------------------------------------------- */

static struct ibnbd_srv_export *sysfs_export(struct kobject *kobj)
{
	return container_of(kobj, struct ibnbd_srv_export, kobj);
}

IBTRS_ADMIN_SHOW(size, "%llu", READ_ONCE(sysfs_export(kobj)->nsectors))

static ssize_t identity_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	const struct ibnbd_identity *id = &sysfs_export(kobj)->identity;
	int unknown = sysfs_export(kobj)->id_unknown;

	if (unknown)
		return sysfs_emit(buf, "none (cannot be read: %d)\n", unknown);
	if (id->kind == IBNBD_ID_NONE)
		return sysfs_emit(buf, "none\n");
	return sysfs_emit(buf, "%s:%*phN\n", ibnbd_identity_word(id->kind), IBNBD_ID_LEN, id->id);
}

IBTRS_ADMIN_SHOW(copy, "%s", ibnbd_srv_copy_names[READ_ONCE(sysfs_export(kobj)->copy)])

static ssize_t copy_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			  size_t len)
{
	int copy = __sysfs_match_string(ibnbd_srv_copy_names, -1, buf);

	if (copy < 0) {
		pr_err("%s: copy: write auto, always or never\n", kobject_name(kobj));
		return copy;
	}
	WRITE_ONCE(sysfs_export(kobj)->copy, copy);
	return len;
}

static ssize_t resize_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			    size_t len)
{
	int err = sysfs_want_one(kobj, attr, buf, "to look at the size again");

	err = err ?: ibnbd_srv_facts_resize(sysfs_export(kobj));
	return err ?: len;
}

IBTRS_ADMIN_SHOW(cache_epoch, "%016llx", READ_ONCE(sysfs_export(kobj)->cache.epoch))

static ssize_t cache_lost_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t len)
{
	int err = sysfs_want_one(kobj, attr, buf, "when the disk has lost what was not flushed");

	err = err ?: ibnbd_srv_export_cache_lost(sysfs_export(kobj));
	return err ?: len;
}

IBTRS_ADMIN_SHOW(claimed, "%d", READ_ONCE(sysfs_export(kobj)->claims) > 0)

static struct attribute *sysfs_export_attrs[] = {
	IBTRS_ADMIN_FILE(__ATTR_RO(size)),
	IBTRS_ADMIN_FILE(__ATTR_RO(identity)),
	IBTRS_ADMIN_FILE(__ATTR_RW(copy)),
	IBTRS_ADMIN_FILE(__ATTR(resize, 0644, ibtrs_admin_usage_show, resize_store)),
	IBTRS_ADMIN_FILE(__ATTR_RO(claimed)),
	IBTRS_ADMIN_FILE(__ATTR_RO(cache_epoch)),
	IBTRS_ADMIN_FILE(__ATTR(cache_lost, 0644, ibtrs_admin_usage_show, cache_lost_store)),
	NULL,
};

static const struct attribute_group sysfs_export_group = {
	.attrs = sysfs_export_attrs,
};

const struct attribute_group *ibnbd_srv_sysfs_export_groups[] = {
	&sysfs_export_group,
	NULL,
};

/* ---- opens --------------------------------------------------------------- */

static struct ibnbd_srv_open *sysfs_open(struct kobject *kobj)
{
	return container_of(kobj, struct ibnbd_srv_open, kobj);
}

IBTRS_ADMIN_SHOW(read_only, "%d", !ibnbd_access_writes(sysfs_open(kobj)->access))
IBTRS_ADMIN_SHOW(access_mode, "%s", ibnbd_access_word(sysfs_open(kobj)->access))
IBTRS_ADMIN_SHOW(mapping_path, "%s", sysfs_open(kobj)->name)
IBTRS_ADMIN_SHOW(device_id, "%u", READ_ONCE(sysfs_open(kobj)->id))

static ssize_t force_close_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				 size_t len)
{
	int err = sysfs_want_one(kobj, attr, buf, "to take the mapping away");

	err = err ?: ibnbd_srv_session_force_close(sysfs_open(kobj));
	return err ?: len;
}

static struct attribute *sysfs_open_attrs[] = {
	IBTRS_ADMIN_FILE(__ATTR_RO(read_only)),
	IBTRS_ADMIN_FILE(__ATTR_RO(access_mode)),
	IBTRS_ADMIN_FILE(__ATTR_RO(mapping_path)),
	IBTRS_ADMIN_FILE(__ATTR_RO(device_id)),
	IBTRS_ADMIN_FILE(__ATTR(force_close, 0644, ibtrs_admin_usage_show, force_close_store)),
	NULL,
};

static const struct attribute_group sysfs_open_group = {
	.attrs = sysfs_open_attrs,
};

const struct attribute_group *ibnbd_srv_sysfs_open_groups[] = {
	&sysfs_open_group,
	NULL,
};

/* ---- module -------------------------------------------------------------- */

int ibnbd_srv_sysfs_init(void)
{
	int err;

	sysfs_class = class_create("ibnbd-server");
	if (IS_ERR(sysfs_class))
		return PTR_ERR(sysfs_class);
	sysfs_ctl = device_create_with_groups(sysfs_class, NULL, MKDEV(0, 0), NULL,
					      sysfs_ctl_groups, "ctl");
	if (IS_ERR(sysfs_ctl)) {
		err = PTR_ERR(sysfs_ctl);
		goto out_class;
	}
	err = ibnbd_srv_dirs_init(&sysfs_ctl->kobj);
	if (err)
		goto out_ctl;
	err = sysfs_create_bin_file(&sysfs_ctl->kobj, &ibnbd_srv_policy_file);
	if (err)
		goto out_dirs;
	return 0;

out_dirs:
	ibnbd_srv_dirs_exit();
out_ctl:
	device_unregister(sysfs_ctl);
out_class:
	class_destroy(sysfs_class);
	return err;
}

/* Called when no session is left, so there is no export either. */
void ibnbd_srv_sysfs_exit(void)
{
	sysfs_remove_bin_file(&sysfs_ctl->kobj, &ibnbd_srv_policy_file);
	ibnbd_srv_policy_file_exit();
	ibnbd_srv_dirs_exit();
	device_unregister(sysfs_ctl);
	class_destroy(sysfs_class);
}
