// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/ibnbd-server/ctl (spec C.5):
 *
 *	last_error				the last refusal: object, cause, mend
 *	devices/NAME/				an export; NAME of the block device, or the file's path (logic/linkname.h)
 *		block_dev			link, block devices only
 *		size, identity, copy, resize	size in sectors; kind:hash; private pages; 1 = look at the size again
 *		claimed				1 = kept from this machine's own use
 *		sessions/SESSION/		an open
 *			read_only access_mode mapping_path device_id
 *			force_close		1 = take the mapping away
 *
 * Directories come and go under the export lock of export.c. Removing one waits for the stores that run in it, so a store may
 * only try that lock (see there), and force_close waits for I/O alone. Files held open by a user keep nothing of ours alive:
 * after the removal sysfs answers them itself.
 *
 * Two opens of one session may mean the same export under two names, and a new disk may have the name of one that was pulled but is
 * still open here: a directory whose name is taken gets '#' and a number.
 */
#include <linux/device.h>
#include <linux/ratelimit.h>
#include <linux/stringhash.h>
#include <linux/wait_bit.h>
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"
#include "ibnbd/logic/linkname.h"

#define SYSFS_NAME_MAX	200	/* of what can be looked up, some is for '#' and a number */

static struct class *sysfs_class;
static struct device *sysfs_ctl;
static struct kobject *sysfs_devices;

/* ---- last_error ---------------------------------------------------------- */

static DEFINE_SPINLOCK(sysfs_error_lock);
static char sysfs_error[768];

/**
 * ibnbd_srv_sysfs_refused() - remember and log what a client did not get
 * @session: who
 * @object: what
 * @err: negative errno that he is told
 * @why: cause, and the mend if there is one
 */
void ibnbd_srv_sysfs_refused(const char *session, const char *object, int err, const char *why)
{
	pr_warn_ratelimited("session %s: %s refused: %s (%d)\n", session, object, why, err);
	spin_lock(&sysfs_error_lock);
	scnprintf(sysfs_error, sizeof(sysfs_error), "session %s: %s refused: %s (%d)", session,
		  object, why, err);
	spin_unlock(&sysfs_error_lock);
}

static ssize_t last_error_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	int n;

	spin_lock(&sysfs_error_lock);
	n = sysfs_error[0] ? sysfs_emit(buf, "%s\n", sysfs_error) : 0;
	spin_unlock(&sysfs_error_lock);
	return n;
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

static ssize_t size_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(sysfs_export(kobj)->nsectors));
}

static ssize_t identity_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	static const char *const kinds[] = {
		[IBNBD_ID_NONE]		= "none",
		[IBNBD_ID_HARDWARE]	= "hardware",
		[IBNBD_ID_UUID]		= "uuid",
		[IBNBD_ID_FILE]		= "file",
	};
	const struct ibnbd_identity *id = &sysfs_export(kobj)->identity;

	if (id->kind == IBNBD_ID_NONE)
		return sysfs_emit(buf, "none\n");
	return sysfs_emit(buf, "%s:%*phN\n", kinds[id->kind], IBNBD_ID_LEN, id->id);
}

static ssize_t copy_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", ibnbd_srv_copy_names[READ_ONCE(sysfs_export(kobj)->copy)]);
}

static ssize_t copy_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			  size_t len)
{
	int i, err;

	for (i = 0; ibnbd_srv_copy_names[i]; i++) {
		if (!sysfs_streq(buf, ibnbd_srv_copy_names[i]))
			continue;
		err = ibnbd_srv_export_set_copy(sysfs_export(kobj), i);
		return err ? err : len;
	}
	pr_err("%s: copy: write auto, always or never\n", kobject_name(kobj));
	return -EINVAL;
}

static ssize_t resize_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}

static ssize_t resize_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			    size_t len)
{
	int err;

	if (!sysfs_streq(buf, "1")) {
		pr_err("%s: resize: write 1 to look at the size again\n", kobject_name(kobj));
		return -EINVAL;
	}
	err = ibnbd_srv_export_resize(sysfs_export(kobj));
	return err ? err : len;
}

static ssize_t claimed_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(sysfs_export(kobj)->claims) > 0);
}

static struct kobj_attribute size_attr = __ATTR_RO(size);
static struct kobj_attribute claimed_attr = __ATTR_RO(claimed);
static struct kobj_attribute identity_attr = __ATTR_RO(identity);
static struct kobj_attribute copy_attr = __ATTR_RW(copy);
static struct kobj_attribute resize_attr = __ATTR_RW(resize);

static struct attribute *sysfs_export_attrs[] = {
	&size_attr.attr,
	&identity_attr.attr,
	&copy_attr.attr,
	&resize_attr.attr,
	&claimed_attr.attr,
	NULL,
};

static const struct attribute_group sysfs_export_group = {
	.attrs = sysfs_export_attrs,
};

const struct attribute_group *ibnbd_srv_sysfs_export_groups[] = {
	&sysfs_export_group,
	NULL,
};

static bool sysfs_export_taken(const struct list_head *others, const char *name)
{
	struct ibnbd_srv_export *e;

	list_for_each_entry(e, others, link)
		if (!strcmp(kobject_name(&e->kobj), name))
			return true;
	return false;
}

/* A path that is too long keeps its end, behind a hash of all of it. */
static char *sysfs_file_name(struct file *file)
{
	char *buf __free(kfree) = kmalloc(PATH_MAX, GFP_KERNEL);
	char *path = ERR_PTR(-ENOENT), *name, *cut;
	size_t len, size;

	if (!buf)
		return NULL;
	scoped_with_init_fs()
		path = d_path(&file->f_path, buf, PATH_MAX);
	if (IS_ERR(path))
		path = "file";
	size = 4 * strlen(path) + 1;
	name = kmalloc(size, GFP_KERNEL);
	if (!name)
		return NULL;
	len = ibnbd_linkname(path, '#', name, size);
	if (len <= SYSFS_NAME_MAX)
		return name;
	cut = kasprintf(GFP_KERNEL, "%08x..%s", full_name_hash(NULL, path, strlen(path)),
			name + len - SYSFS_NAME_MAX + 10);
	kfree(name);
	return cut;
}

static char *sysfs_bdev_name(struct block_device *bdev)
{
	char *name = kasprintf(GFP_KERNEL, "%pg", bdev);

	if (name)
		strreplace(name, '/', '!');
	return name;
}

/* @name, or @name#N if that is taken. Takes @name; NULL without memory. */
static char *sysfs_free_name(char *name, bool (*taken)(const struct list_head *, const char *),
			     const struct list_head *others)
{
	char *try = name ? kstrdup(name, GFP_KERNEL) : NULL;
	unsigned int n = 1;

	while (try && taken(others, try)) {
		kfree(try);
		try = kasprintf(GFP_KERNEL, "%s#%u", name, ++n);
	}
	kfree(name);
	return try;
}

/**
 * ibnbd_srv_sysfs_add_export() - make ctl/devices/NAME
 * @e: kobject initialised; on failure only to be put
 * @open: the first who has it open
 * @others: all exports that have a directory
 *
 * Under the export lock.
 */
int ibnbd_srv_sysfs_add_export(struct ibnbd_srv_export *e, struct ibnbd_srv_open *open,
			       const struct list_head *others)
{
	char *name __free(kfree) = sysfs_free_name(open->bdev ? sysfs_bdev_name(open->bdev) :
						   sysfs_file_name(open->file),
						   sysfs_export_taken, others);
	int err;

	if (!name)
		return -ENOMEM;
	err = kobject_add(&e->kobj, sysfs_devices, "%s", name);
	if (err)
		return err;
	e->sessions = kobject_create_and_add("sessions", &e->kobj);
	if (!e->sessions) {
		kobject_del(&e->kobj);
		return -ENOMEM;
	}
	/* A device that is just being removed has no directory to point to. */
	if (open->bdev && sysfs_create_link(&e->kobj, bdev_kobj(open->bdev), "block_dev"))
		pr_warn("%s: no link block_dev\n", name);
	return 0;
}

/* Under the export lock. */
void ibnbd_srv_sysfs_del_export(struct ibnbd_srv_export *e)
{
	kobject_del(e->sessions);
	kobject_put(e->sessions);
	kobject_del(&e->kobj);
}

/* ---- opens --------------------------------------------------------------- */

static struct ibnbd_srv_open *sysfs_open(struct kobject *kobj)
{
	return container_of(kobj, struct ibnbd_srv_open, kobj);
}

static ssize_t read_only_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", !ibnbd_access_writes(sysfs_open(kobj)->access));
}

static ssize_t access_mode_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	static const char *const names[] = {
		[IBNBD_ACCESS_RO]		= "ro",
		[IBNBD_ACCESS_RW]		= "rw",
		[IBNBD_ACCESS_MIGRATION]	= "migration",
	};

	return sysfs_emit(buf, "%s\n", names[sysfs_open(kobj)->access]);
}

static ssize_t mapping_path_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", sysfs_open(kobj)->name);
}

static ssize_t device_id_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(sysfs_open(kobj)->id));
}

static ssize_t force_close_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "Usage: echo 1 > %s\n", attr->attr.name);
}

static ssize_t force_close_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				 size_t len)
{
	int err;

	if (!sysfs_streq(buf, "1")) {
		pr_err("%s: force_close: write 1 to take the mapping away\n", kobject_name(kobj));
		return -EINVAL;
	}
	err = ibnbd_srv_session_force_close(sysfs_open(kobj));
	return err ? err : len;
}

static struct kobj_attribute read_only_attr = __ATTR_RO(read_only);
static struct kobj_attribute access_mode_attr = __ATTR_RO(access_mode);
static struct kobj_attribute mapping_path_attr = __ATTR_RO(mapping_path);
static struct kobj_attribute device_id_attr = __ATTR_RO(device_id);
static struct kobj_attribute force_close_attr = __ATTR_RW(force_close);

static struct attribute *sysfs_open_attrs[] = {
	&read_only_attr.attr,
	&access_mode_attr.attr,
	&mapping_path_attr.attr,
	&device_id_attr.attr,
	&force_close_attr.attr,
	NULL,
};

static const struct attribute_group sysfs_open_group = {
	.attrs = sysfs_open_attrs,
};

const struct attribute_group *ibnbd_srv_sysfs_open_groups[] = {
	&sysfs_open_group,
	NULL,
};

static bool sysfs_open_taken(const struct list_head *opens, const char *name)
{
	struct ibnbd_srv_open *open;

	list_for_each_entry(open, opens, link)
		if (open->has_kobj && !strcmp(kobject_name(&open->kobj), name))
			return true;
	return false;
}

/**
 * ibnbd_srv_sysfs_add_open() - make sessions/SESSION below the export's directory
 * @open: in its export's list. Under the export lock.
 */
int ibnbd_srv_sysfs_add_open(struct ibnbd_srv_open *open)
{
	char *name __free(kfree) = sysfs_free_name(kstrdup(open->session->name, GFP_KERNEL),
						   sysfs_open_taken, &open->export->opens);
	int err;

	if (!name)
		return -ENOMEM;
	err = kobject_add(&open->kobj, open->export->sessions, "%s", name);
	open->has_kobj = !err;
	return err;
}

/* Under the export lock. Waits for a force_close that runs, which waits for I/O only. */
void ibnbd_srv_sysfs_del_open(struct ibnbd_srv_open *open)
{
	if (open->has_kobj)
		kobject_del(&open->kobj);
	open->has_kobj = false;
}

/* ---- module -------------------------------------------------------------- */

static atomic_t sysfs_kobjs;

/**
 * ibnbd_srv_sysfs_kobj_init() - kobject_init(), counted
 * @kobj: of an export or an open
 * @ktype: its release() ends with ibnbd_srv_sysfs_released()
 */
void ibnbd_srv_sysfs_kobj_init(struct kobject *kobj, const_ktype struct kobj_type *ktype)
{
	atomic_inc(&sysfs_kobjs);
	kobject_init(kobj, ktype);
}

void ibnbd_srv_sysfs_released(void)
{
	if (atomic_dec_and_test(&sysfs_kobjs))
		wake_up_var(&sysfs_kobjs);
}

/* No session is left. The kernel may release a kobject later than we put it, and that runs our code. */
void ibnbd_srv_sysfs_wait_released(void)
{
	wait_var_event(&sysfs_kobjs, !atomic_read(&sysfs_kobjs));
}

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
	sysfs_devices = kobject_create_and_add("devices", &sysfs_ctl->kobj);
	if (!sysfs_devices) {
		err = -ENOMEM;
		goto out_ctl;
	}
	return 0;

out_ctl:
	device_unregister(sysfs_ctl);
out_class:
	class_destroy(sysfs_class);
	return err;
}

/* No session is left, so no export. */
void ibnbd_srv_sysfs_exit(void)
{
	kobject_del(sysfs_devices);
	kobject_put(sysfs_devices);
	device_unregister(sysfs_ctl);
	class_destroy(sysfs_class);
}
