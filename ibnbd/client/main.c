// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module, and /sys/class/ibnbd-client/ctl: map_device, devices/, last_error (docs/sysfs.md).
 *
 * The third walk of docs/design.md 10 has the steps of a mapping. A writer that wants a name whose
 * device is being removed waits for the removal, killable (L5), and takes a number after that: the
 * old number again, unless the old disk is still open.
 *
 * A mapping that fails half way is undone by unmapping it, with the same work. The store waits for
 * the end of that work, but for a limited time only. Each claimed device holds a reference to the
 * module, which its removal drops, so that the module cannot be unloaded under a disk.
 */
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <ibtrs/admin.h>
#include <ibtrs/version.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/recover.h"
#include "ibnbd/client/session.h"

#define CREATE_TRACE_POINTS
#include "ibnbd/client/trace.h"

struct workqueue_struct *ibnbd_clt_dev_wq;
struct workqueue_struct *ibnbd_clt_remove_wq;

static struct class *ctl_class;
static struct device *ctl_device;

/* ---- mapping ---- */

static int ctl_add_disk(struct ibnbd_clt_dev *dev)
{
	int err = 0;

	scoped_guard(mutex, &dev->lock)
		err = ibnbd_clt_disk_alloc(dev);
	if (err)
		return ibnbd_clt_refuse(
			err,
			"device %s of session %s: the block layer refuses a disk of its limits (%d)",
			dev->map.device_path, dev->map.sessname, err);
	err = ibnbd_clt_disk_add(dev);
	if (err)
		return ibnbd_clt_refuse(err,
					"device %s of session %s: the disk cannot be added (%d)",
					dev->map.device_path, dev->map.sessname, err);
	ibnbd_clt_dev_added(dev);
	err = ibnbd_clt_names_link(dev);
	if (err)
		return ibnbd_clt_refuse(err, "/dev/ibnbd%d: no link in ctl/devices (%d)",
					dev->index, err);
	dev->shown = IBNBD_CLT_SHOWN_LINK;
	return 0;
}

/* The removal undoes a mapping that fails in here. */
static int ctl_map_claimed(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_session *s;
	int err;

	s = ibnbd_clt_session_get(&dev->map);
	if (IS_ERR(s))
		return PTR_ERR(s);
	dev->sess = s;
	ibnbd_clt_group_join(dev);
	err = ibnbd_clt_open_first(dev);
	if (err)
		return err;
	err = ctl_add_disk(dev);
	if (err)
		return err;
	guard(mutex)(&dev->lock);
	pr_info("ibnbd%d: %s of %s, %llu sectors of 512 bytes\n", dev->index, dev->map.device_path,
		dev->map.sessname, dev->grant.lim.nsectors);
	return 0;
}

static int ctl_map(const struct ibnbd_map *m)
{
	char link[IBNBD_CLT_LINK_LEN];
	struct ibnbd_clt_dev *dev;
	int err = -ENOMEM;

	if (!try_module_get(THIS_MODULE))
		return ibnbd_clt_refuse(-ENODEV, "the module is being unloaded");
	dev = ibnbd_clt_dev_alloc(m);
	if (!dev)
		goto put_module;
	err = ibnbd_clt_names_claim(dev);
	if (err)
		goto free_dev;
	err = ibnbd_clt_number_take(dev);
	if (err) {
		ibnbd_clt_names_forget(dev);
		ibnbd_clt_refuse(err, "no number for another disk (%d)", err);
		goto free_dev;
	}
	err = ctl_map_claimed(dev);
	if (!err) {
		complete_all(&dev->mapped);
		return 0;
	}
	strscpy(link, dev->link, sizeof(link));
	ibnbd_clt_recover_unmap(dev, true);
	complete_all(&dev->mapped);
	ibnbd_clt_names_wait_gone(ibnbd_clt_names_taken, link);
	return err;

free_dev:
	ibnbd_clt_dev_free(dev);
put_module:
	module_put(THIS_MODULE);
	return err;
}

static ssize_t map_device_store(struct device *d, struct device_attribute *attr, const char *buf,
				size_t count)
{
	struct ibnbd_map *m __free(kfree) = kzalloc(sizeof(*m), GFP_KERNEL);
	struct ibnbd_mapopt_err why;
	int err;

	ibnbd_clt_refuse_forget();
	if (!m)
		return -ENOMEM;
	err = ibnbd_mapopt_parse(buf, count, m, &why);
	if (err)
		return ibnbd_clt_refuse(err, "map_device, byte %zu: %s%s%*pE%s", why.pos, why.msg,
					    why.len ? ": \"" : "", (int)min_t(size_t, why.len, 64),
					    buf + min(why.pos, count), why.len ? "\"" : "");
	err = ctl_map(m);
	return err ?: count;
}

static ssize_t map_device_show(struct device *d, struct device_attribute *attr, char *buf)
{
	const struct ibnbd_mapopt *opt = ibnbd_mapopts;
	size_t i;
	int n;

	n = sysfs_emit(
		buf,
		"Usage: echo \"sessname=NAME path=[SRC,]DST device_path=PATH [key=value] ...\" > map_device\n");
	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		n += sysfs_emit_at(buf, n, "%s=%s: %s\n", opt[i].key, opt[i].words ?: opt[i].value,
				   opt[i].help);
	return n;
}
IBTRS_ADMIN_ATTR_RW(map_device);

static ssize_t last_error_show(struct device *d, struct device_attribute *attr, char *buf)
{
	return ibnbd_clt_refuse_show(buf);
}
static DEVICE_ATTR_RO(last_error);

static struct attribute *ctl_attrs[] = {
	&dev_attr_map_device.attr,
	&dev_attr_last_error.attr,
	NULL,
};
ATTRIBUTE_GROUPS(ctl);

/* ---- the module ---- */

static int ctl_init(void)
{
	int err;

	ctl_class = class_create("ibnbd-client");
	if (IS_ERR(ctl_class))
		return PTR_ERR(ctl_class);
	ctl_device =
		device_create_with_groups(ctl_class, NULL, MKDEV(0, 0), NULL, ctl_groups, "ctl");
	err = PTR_ERR_OR_ZERO(ctl_device);
	if (err)
		goto unregister;
	err = ibnbd_clt_names_init(&ctl_device->kobj);
	if (!err)
		return 0;
	device_unregister(ctl_device);
unregister:
	class_destroy(ctl_class);
	return err;
}

/* Waits for the removals. */
static void wq_exit(void)
{
	if (ibnbd_clt_remove_wq)
		destroy_workqueue(ibnbd_clt_remove_wq);
	if (ibnbd_clt_dev_wq)
		destroy_workqueue(ibnbd_clt_dev_wq);
}

static int __init ibnbd_clt_init(void)
{
	int err = -ENOMEM;

	ibnbd_clt_dev_wq = alloc_workqueue("ibnbd-clt-dev", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	/* del_gendisk() waits for works of queues without a rescuer, so this one has none. */
	ibnbd_clt_remove_wq = alloc_workqueue("ibnbd-clt-remove", WQ_UNBOUND, 0);
	if (ibnbd_clt_dev_wq && ibnbd_clt_remove_wq)
		err = ctl_init();
	if (err)
		wq_exit();
	return err;
}

/*
 * Each mapped device holds a reference to the module, so no device is mapped here. But a removal
 * drops the reference before it deletes the disk, so removals may still be running.
 */
static void __exit ibnbd_clt_exit(void)
{
	ibnbd_clt_names_exit();
	device_unregister(ctl_device);	/* waits for stores that are on their way out */
	class_destroy(ctl_class);
	wq_exit();
	ibnbd_clt_number_exit();
}

module_init(ibnbd_clt_init);
module_exit(ibnbd_clt_exit);
MODULE_DESCRIPTION("IBNBD client: block devices over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
