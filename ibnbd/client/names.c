// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of devices: which device has a name, and how a task waits for a name. Also the directory
 * ctl/devices, which has a link for each device.
 *
 * Locking: ibnbd_clt_lock protects the list of devices and, in session.c, that of sessions. Waiting
 * goes by turns: each change of these lists ends a turn. A task that finds a name taken remembers
 * the turn under the lock and waits, without the lock, for the next one.
 */
#include <linux/atomic.h>
#include <linux/kobject.h>
#include <linux/wait.h>
#include "ibnbd/client/dev.h"

#define NAMES_GONE_WAIT	(10 * HZ)
/* more than a session of dead paths takes to open */
#define NAMES_TURN_WAIT	(IBNBD_MAP_PATHS * 60 * HZ)

DEFINE_MUTEX(ibnbd_clt_lock);

static LIST_HEAD(names_devs);
static DECLARE_WAIT_QUEUE_HEAD(names_waiters);
static atomic_t names_turn_nr = ATOMIC_INIT(0);

static struct kobject *names_dir;	/* ctl/devices */

/* ---- turns ---- */

unsigned int ibnbd_clt_names_turn(void)
{
	return atomic_read(&names_turn_nr);
}

int ibnbd_clt_names_wait(unsigned int turn)
{
	long left = wait_event_killable_timeout(
		names_waiters, (unsigned int)atomic_read(&names_turn_nr) != turn, NAMES_TURN_WAIT);

	if (left < 0)
		return ibnbd_clt_refuse(-EINTR,
					"killed while waiting for another mapping or unmapping");
	if (!left)
		return ibnbd_clt_refuse(
			-EBUSY,
			"another mapping or unmapping of that name takes too long: see the kernel log");
	return 0;
}

void ibnbd_clt_names_wait_gone(bool (*there)(const char *name), const char *name)
{
	long left = NAMES_GONE_WAIT;
	unsigned int turn;
	bool wait;

	do {
		mutex_lock(&ibnbd_clt_lock);
		wait = there(name);
		turn = ibnbd_clt_names_turn();
		mutex_unlock(&ibnbd_clt_lock);
		if (wait)
			left = wait_event_killable_timeout(
				names_waiters, (unsigned int)atomic_read(&names_turn_nr) != turn,
				left);
	} while (wait && left > 0);
}

void ibnbd_clt_names_next_turn(void)
{
	atomic_inc(&names_turn_nr);
	wake_up_all(&names_waiters);
}

/* ---- names ---- */

static struct ibnbd_clt_dev *names_find(const char *link)
{
	struct ibnbd_clt_dev *dev;

	list_for_each_entry(dev, &names_devs, entry)
		if (!strcmp(dev->link, link))
			return dev;
	return NULL;
}

/* Claim the name; -EAGAIN: it is being removed, wait for *@turn. */
static int names_try_claim(struct ibnbd_clt_dev *dev, unsigned int *turn)
{
	struct ibnbd_clt_dev *other;
	char as[32];
	int index;

	guard(mutex)(&ibnbd_clt_lock);
	other = names_find(dev->link);
	if (!other) {
		list_add_tail(&dev->entry, &names_devs);
		return 0;
	}
	if (READ_ONCE(other->state) == IBNBD_DEV_UNMAPPED) {
		*turn = ibnbd_clt_names_turn();
		return -EAGAIN;
	}
	index = READ_ONCE(other->index);
	snprintf(as, sizeof(as), index < 0 ? "" : " as /dev/ibnbd%d", index);
	return ibnbd_clt_refuse(-EEXIST, "device %s of session %s is already mapped%s",
				    other->map.device_path, other->map.sessname, as);
}

int ibnbd_clt_names_claim(struct ibnbd_clt_dev *dev)
{
	unsigned int turn;
	int err;

	if (strlen(dev->link) > NAME_MAX)
		return ibnbd_clt_refuse(
			-ENAMETOOLONG, "device path and session name together exceed %d bytes%s",
			NAME_MAX - 1,
			strpbrk(dev->map.device_path, "!@\\") ?
				", of which '!', '@' and '\\' of the path may take four each" :
				"");
	while ((err = names_try_claim(dev, &turn)) == -EAGAIN) {
		err = ibnbd_clt_names_wait(turn);
		if (err)
			break;
	}
	return err;
}

void ibnbd_clt_names_forget(struct ibnbd_clt_dev *dev)
{
	scoped_guard(mutex, &ibnbd_clt_lock)
		list_del(&dev->entry);
	ibnbd_clt_names_next_turn();
}

bool ibnbd_clt_names_taken(const char *link)
{
	return names_find(link);
}

int ibnbd_clt_names_link(struct ibnbd_clt_dev *dev)
{
	return sysfs_create_link(names_dir, &disk_to_dev(dev->disk)->kobj, dev->link);
}

void ibnbd_clt_names_unlink(struct ibnbd_clt_dev *dev)
{
	sysfs_remove_link(names_dir, dev->link);
}

/* Creates the directory "devices" in that of @ctl. */
int ibnbd_clt_names_init(struct kobject *ctl)
{
	names_dir = kobject_create_and_add("devices", ctl);
	return names_dir ? 0 : -ENOMEM;
}

/* No device is left. */
void ibnbd_clt_names_exit(void)
{
	kobject_del(names_dir);
	kobject_put(names_dir);
}
