// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/ibnbd-client/ctl: map_device, devices/, last_error (spec C.1, C.2).
 *
 * A mapping in order: parse the line, claim its name (session and device), take a number, find or open the session, OPEN on the server, add the disk,
 * link it. The store returns when the disk is there with all its attributes, so a returned write means a device. Who wants a name that is being
 * removed waits for the removal, killable (L5), and takes the number after that: the same again, unless somebody has the old disk open still.
 *
 * Undoing a half made mapping is unmapping it: the same road, run by the same work, and the store waits for its end, but not for ever. Each claimed
 * device holds a reference to the module, dropped by its removal, so that the module can not be unloaded under a disk.
 *
 * Locking: ibnbd_clt_lock protects the list of devices and, in session.c, that of sessions. Waiting goes by turns: each change of these lists
 * ends a turn; who found the name taken remembers the turn under the lock and waits, without it, for the next one.
 */
#include <linux/atomic.h>
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include "ibnbd/client/ctl.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/number.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/session.h"

#define CTL_ERROR_MAX	1024
#define CTL_GONE_WAIT	(10 * HZ)
#define CTL_TURN_WAIT	(IBNBD_MAP_PATHS * 60 * HZ)	/* more than a session of dead paths takes to open */

DEFINE_MUTEX(ibnbd_clt_lock);

static LIST_HEAD(ctl_devs);
static DECLARE_WAIT_QUEUE_HEAD(ctl_waiters);
static atomic_t ctl_turn = ATOMIC_INIT(0);

static DEFINE_MUTEX(ctl_error_lock);
static char ctl_error[CTL_ERROR_MAX];

static struct device *ctl_device;
static struct kobject *ctl_devices;	/* the directory of links */

int ibnbd_clt_ctl_refuse(int err, const char *fmt, ...)
{
	va_list args;

	guard(mutex)(&ctl_error_lock);
	va_start(args, fmt);
	vscnprintf(ctl_error, sizeof(ctl_error), fmt, args);
	va_end(args);
	pr_err("%s\n", ctl_error);
	return err;
}

/* ---- turns ---- */

unsigned int ibnbd_clt_ctl_turn(void)
{
	return atomic_read(&ctl_turn);
}

int ibnbd_clt_ctl_wait(unsigned int turn)
{
	long left = wait_event_killable_timeout(ctl_waiters, (unsigned int)atomic_read(&ctl_turn) != turn, CTL_TURN_WAIT);

	if (left < 0)
		return ibnbd_clt_ctl_refuse(-EINTR, "killed while waiting for another mapping or unmapping");
	if (!left)
		return ibnbd_clt_ctl_refuse(-EBUSY, "another mapping or unmapping of that name takes too long: see the kernel log");
	return 0;
}

void ibnbd_clt_ctl_wait_gone(bool (*there)(const char *name), const char *name)
{
	long left = CTL_GONE_WAIT;
	unsigned int turn;
	bool wait;

	do {
		mutex_lock(&ibnbd_clt_lock);
		wait = there(name);
		turn = ibnbd_clt_ctl_turn();
		mutex_unlock(&ibnbd_clt_lock);
		if (wait)
			left = wait_event_killable_timeout(ctl_waiters, (unsigned int)atomic_read(&ctl_turn) != turn, left);
	} while (wait && left > 0);
}

void ibnbd_clt_ctl_next_turn(void)
{
	atomic_inc(&ctl_turn);
	wake_up_all(&ctl_waiters);
}

/* ---- names ---- */

static struct ibnbd_clt_dev *ctl_find(const char *link)
{
	struct ibnbd_clt_dev *dev;

	list_for_each_entry(dev, &ctl_devs, entry)
		if (!strcmp(dev->link, link))
			return dev;
	return NULL;
}

/* Claim the name; -EAGAIN: it is being removed, wait for *@turn. */
static int ctl_try_claim(struct ibnbd_clt_dev *dev, unsigned int *turn)
{
	struct ibnbd_clt_dev *other;
	char as[32];
	int index;

	guard(mutex)(&ibnbd_clt_lock);
	other = ctl_find(dev->link);
	if (!other) {
		list_add_tail(&dev->entry, &ctl_devs);
		return 0;
	}
	if (READ_ONCE(other->state) == IBNBD_DEV_UNMAPPED) {
		*turn = ibnbd_clt_ctl_turn();
		return -EAGAIN;
	}
	index = READ_ONCE(other->index);
	snprintf(as, sizeof(as), index < 0 ? "" : " as /dev/ibnbd%d", index);
	return ibnbd_clt_ctl_refuse(-EEXIST, "device %s of session %s is already mapped%s",
				    other->map.device_path, other->map.sessname, as);
}

static int ctl_claim(struct ibnbd_clt_dev *dev)
{
	unsigned int turn;
	int err;

	if (strlen(dev->link) > NAME_MAX)
		return ibnbd_clt_ctl_refuse(-ENAMETOOLONG, "device path and session name together exceed %d bytes%s",
					    NAME_MAX - 1, strpbrk(dev->map.device_path, "!@\\") ?
					    ", of which '!', '@' and '\\' of the path may take four each" : "");
	while ((err = ctl_try_claim(dev, &turn)) == -EAGAIN) {
		err = ibnbd_clt_ctl_wait(turn);
		if (err)
			break;
	}
	return err;
}

void ibnbd_clt_ctl_forget(struct ibnbd_clt_dev *dev)
{
	mutex_lock(&ibnbd_clt_lock);
	list_del(&dev->entry);
	mutex_unlock(&ibnbd_clt_lock);
	ibnbd_clt_ctl_next_turn();
}

static bool ctl_is_there(const char *link)
{
	return ctl_find(link);
}

int ibnbd_clt_ctl_link(struct ibnbd_clt_dev *dev)
{
	return sysfs_create_link(ctl_devices, &disk_to_dev(dev->disk)->kobj, dev->link);
}

void ibnbd_clt_ctl_unlink(struct ibnbd_clt_dev *dev)
{
	sysfs_remove_link(ctl_devices, dev->link);
}

/* ---- mapping ---- */

static int ctl_add_disk(struct ibnbd_clt_dev *dev)
{
	int err;

	mutex_lock(&dev->lock);
	err = ibnbd_clt_disk_alloc(dev);
	mutex_unlock(&dev->lock);
	if (err)
		return ibnbd_clt_ctl_refuse(err, "device %s of session %s: the block layer refuses a disk of its limits (%d)",
					    dev->map.device_path, dev->map.sessname, err);
	err = ibnbd_clt_disk_add(dev);
	if (err)
		return ibnbd_clt_ctl_refuse(err, "device %s of session %s: the disk cannot be added (%d)",
					    dev->map.device_path, dev->map.sessname, err);
	err = ibnbd_clt_ctl_link(dev);
	if (err)
		return ibnbd_clt_ctl_refuse(err, "/dev/ibnbd%d: no link in ctl/devices (%d)", dev->index, err);
	dev->linked = true;
	return 0;
}

/* From the claim on, a failure is undone by the removal. */
static int ctl_map_claimed(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_session *s;
	int err;

	s = ibnbd_clt_session_get(&dev->map);
	if (IS_ERR(s))
		return PTR_ERR(s);
	dev->sess = s;
	err = ibnbd_clt_open_first(dev);
	if (err)
		return err;
	err = ctl_add_disk(dev);
	if (err)
		return err;
	ibnbd_clt_dev_show(dev);
	return 0;
}

static int ctl_map(const struct ibnbd_map *m)
{
	char link[IBNBD_CLT_LINK_LEN];
	struct ibnbd_clt_dev *dev;
	int err;

	if (!try_module_get(THIS_MODULE))
		return ibnbd_clt_ctl_refuse(-ENODEV, "the module is being unloaded");
	dev = ibnbd_clt_dev_alloc(m);
	if (IS_ERR(dev)) {
		err = PTR_ERR(dev);
		goto put_module;
	}
	err = ctl_claim(dev);
	if (err)
		goto free_dev;
	err = ibnbd_clt_number_take(dev);
	if (err) {
		ibnbd_clt_ctl_forget(dev);
		ibnbd_clt_ctl_refuse(err, "no number for another disk (%d)", err);
		goto free_dev;
	}
	err = ctl_map_claimed(dev);
	if (!err) {
		complete_all(&dev->mapped);
		return 0;
	}
	strscpy(link, dev->link, sizeof(link));
	ibnbd_clt_dev_unmap(dev, true);
	complete_all(&dev->mapped);
	ibnbd_clt_ctl_wait_gone(ctl_is_there, link);
	return err;

free_dev:
	ibnbd_clt_dev_free(dev);
put_module:
	module_put(THIS_MODULE);
	return err;
}

static ssize_t map_device_store(struct device *d, struct device_attribute *attr, const char *buf, size_t count)
{
	struct ibnbd_map *m __free(kfree) = NULL;
	struct ibnbd_mapopt_err why;
	int err;

	mutex_lock(&ctl_error_lock);
	ctl_error[0] = '\0';
	mutex_unlock(&ctl_error_lock);
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	err = ibnbd_mapopt_parse(buf, count, m, &why);
	if (err)
		return ibnbd_clt_ctl_refuse(err, "map_device, byte %zu: %s%s%*pE%s", why.pos, why.msg,
					    why.len ? ": \"" : "", (int)min_t(size_t, why.len, 64),
					    buf + min(why.pos, count), why.len ? "\"" : "");
	err = ctl_map(m);
	return err ?: count;
}

static ssize_t map_device_show(struct device *d, struct device_attribute *attr, char *buf)
{
	const struct ibnbd_mapopt *opt;
	size_t nr, i;
	int n;

	n = sysfs_emit(buf, "Usage: echo \"sessname=NAME path=[SRC,]DST device_path=PATH [key=value] ...\" > map_device\n");
	opt = ibnbd_mapopt_table(&nr);
	for (i = 0; i < nr; i++)
		n += sysfs_emit_at(buf, n, "%s=%s: %s\n", opt[i].key, opt[i].words ?: opt[i].value, opt[i].help);
	return n;
}
static DEVICE_ATTR_RW(map_device);

static ssize_t last_error_show(struct device *d, struct device_attribute *attr, char *buf)
{
	guard(mutex)(&ctl_error_lock);
	return sysfs_emit(buf, "%s\n", ctl_error);
}
static DEVICE_ATTR_RO(last_error);

static struct attribute *ctl_attrs[] = {
	&dev_attr_map_device.attr,
	&dev_attr_last_error.attr,
	NULL,
};
ATTRIBUTE_GROUPS(ctl);

static struct class *ctl_class;

int ibnbd_clt_ctl_init(void)
{
	int err;

	ctl_class = class_create("ibnbd-client");
	if (IS_ERR(ctl_class))
		return PTR_ERR(ctl_class);
	ctl_device = device_create_with_groups(ctl_class, NULL, MKDEV(0, 0), NULL, ctl_groups, "ctl");
	if (IS_ERR(ctl_device)) {
		err = PTR_ERR(ctl_device);
		goto unregister;
	}
	ctl_devices = kobject_create_and_add("devices", &ctl_device->kobj);
	if (!ctl_devices) {
		err = -ENOMEM;
		goto destroy;
	}
	return 0;

destroy:
	device_unregister(ctl_device);
unregister:
	class_destroy(ctl_class);
	return err;
}

/* No device is left; waits for stores that are on their way out. */
void ibnbd_clt_ctl_exit(void)
{
	kobject_del(ctl_devices);
	kobject_put(ctl_devices);
	device_unregister(ctl_device);
	class_destroy(ctl_class);
}
