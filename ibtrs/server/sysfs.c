// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/ibtrs-server: the clients, and their paths with their counters.
 *
 *	<session>/			auth
 *	<session>/paths/<src@dst>/	hca_name hca_port src_addr dst_addr disconnect
 *	    stats/			rdma
 *
 * Made by the INFO work of a path (the session's part by its first one), removed by its close work.
 *
 * Lifetime. A session's device and its paths/ belong to the driver core; a path's directory is a
 * small object with a pointer to the path. Removing a directory waits for show and store that run
 * in it. After that the pointer is never followed again, and the path may be freed, even if
 * a file is still open. Directory objects are counted, and module exit waits for the
 * last. `disconnect` only begins the end of its path, so it never waits for itself.
 *
 * Names are unique before they come here: labels of sessions (name.c) until their files are gone,
 * address pairs within a session. The label is the session's name; `#2` and so on follows where a
 * session of another key has that name.
 */
#include <linux/kobject.h>
#include <linux/sysfs.h>
#include <linux/wait_bit.h>
#include <ibtrs/admin.h>
#include "ibtrs/server/session.h"

/**
 * struct ibtrs_srv_path_dir - paths/<src@dst>/
 * @kobj: owns this memory
 * @path: valid while show or store runs
 */
struct ibtrs_srv_path_dir {
	struct kobject kobj;
	struct ibtrs_srv_path *path;
};

static atomic_t path_dirs;

static struct class *sysfs_class;

static struct ibtrs_srv_path *path_of(struct kobject *kobj)
{
	return container_of(kobj, struct ibtrs_srv_path_dir, kobj)->path;
}

static int path_want_one(const struct kobj_attribute *attr, const struct ibtrs_srv_path *path,
			 const char *buf, size_t count)
{
	if (sysfs_streq(buf, "1"))
		return 0;
	IBTRS_ADMIN_REFUSE(buf, count, "1 is expected", "%s: %s", path->name, attr->attr.name);
	return -EINVAL;
}

IBTRS_ADMIN_SHOW(hca_name, "%s", path_of(kobj)->hca)
IBTRS_ADMIN_SHOW(hca_port, "%u", path_of(kobj)->port)

static ssize_t src_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return ibtrs_admin_show_addr(buf, &path_of(kobj)->addr.src);
}

static ssize_t dst_addr_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return ibtrs_admin_show_addr(buf, &path_of(kobj)->addr.dst);
}

static ssize_t disconnect_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
				size_t count)
{
	struct ibtrs_srv_path *path = path_of(kobj);
	int err = path_want_one(attr, path, buf, count);

	if (err)
		return err;
	ibtrs_srv_path_close(path, "disconnected by the administrator");
	return count;
}

/* ---- counters ---- */

static void stats_sum(const struct ibtrs_srv_stats *s, struct ibtrs_srv_traffic *t)
{
	unsigned int cpu, i;

	memset(t, 0, sizeof(*t));
	for_each_possible_cpu(cpu)
		for (i = 0; i < ARRAY_SIZE(t->n); i++)
			t->n[i] += READ_ONCE(per_cpu_ptr(s->pcpu, cpu)->n[i]);
}

static ssize_t rdma_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct ibtrs_srv_stats *s = &path_of(kobj)->stats;
	struct ibtrs_srv_traffic t;
	unsigned int i;

	guard(spinlock)(&s->lock);
	stats_sum(s, &t);
	for (i = 0; i < ARRAY_SIZE(t.n); i++)
		t.n[i] -= s->base.n[i];
	return sysfs_emit(buf, "%llu %llu %llu %llu\n", t.n[0], t.n[1], t.n[2], t.n[3]);
}

static ssize_t rdma_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			  size_t count)
{
	struct ibtrs_srv_path *path = path_of(kobj);
	int err = path_want_one(attr, path, buf, count);

	if (err)
		return err;
	scoped_guard(spinlock, &path->stats.lock)
		stats_sum(&path->stats, &path->stats.base);
	return count;
}

static struct attribute *path_attrs[] = {
	IBTRS_ADMIN_FILE(__ATTR_RO(hca_name)),
	IBTRS_ADMIN_FILE(__ATTR_RO(hca_port)),
	IBTRS_ADMIN_FILE(__ATTR_RO(src_addr)),
	IBTRS_ADMIN_FILE(__ATTR_RO(dst_addr)),
	IBTRS_ADMIN_FILE(__ATTR(disconnect, 0644, ibtrs_admin_usage_show, disconnect_store)),
	NULL,
};

static const struct attribute_group path_group = {
	.attrs = path_attrs,
};

static struct attribute *stats_attrs[] = {
	IBTRS_ADMIN_FILE(__ATTR_RW(rdma)),
	NULL,
};

static const struct attribute_group stats_group = {
	.name = "stats",
	.attrs = stats_attrs,
};

static const struct attribute_group *path_groups[] = {
	&path_group,
	&stats_group,
	NULL,
};

/* Reads the session's own memory: the directory is removed before the session is freed. */
static ssize_t auth_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct ibtrs_srv_session *s = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%s\n", s->key);
}

static struct attribute *session_attrs[] = {
	IBTRS_ADMIN_DEV_FILE(__ATTR_RO(auth)),
	NULL,
};
ATTRIBUTE_GROUPS(session);

static void path_dir_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ibtrs_srv_path_dir, kobj));
	if (atomic_dec_and_test(&path_dirs))
		wake_up_var(&path_dirs);
}

static const_ktype struct kobj_type path_ktype = {
	.sysfs_ops	= &ibtrs_admin_sysfs_ops,
	.default_groups	= path_groups,
	.release	= path_dir_release,
};

int ibtrs_srv_sysfs_path_add(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_path_dir *dir;
	int err;

	dir = kzalloc_obj(*dir, GFP_KERNEL);
	if (!dir)
		return -ENOMEM;
	dir->path = path;
	atomic_inc(&path_dirs);
	err = kobject_init_and_add(&dir->kobj, &path_ktype, path->session->sysfs_paths, "%s",
				   path->name);
	if (err)
		kobject_put(&dir->kobj);
	else
		path->dir = dir;
	return err;
}

void ibtrs_srv_sysfs_path_del(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_path_dir *dir = path->dir;

	if (!dir)
		return;
	path->dir = NULL;
	kobject_del(&dir->kobj);
	kobject_put(&dir->kobj);
}

static void sysfs_dev_release(struct device *dev)
{
	kfree(dev);
}

/*
 * udev hears nothing of sessions: a client could connect and go as fast as it can, and each time
 * udevd would have work.
 */
int ibtrs_srv_sysfs_session_add(struct ibtrs_srv_session *s)
{
	struct device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int err;

	if (!dev)
		return -ENOMEM;
	device_initialize(dev);
	dev->class = sysfs_class;
	dev->groups = session_groups;
	dev->release = sysfs_dev_release;
	dev_set_drvdata(dev, s);
	dev_set_uevent_suppress(dev, true);
	err = dev_set_name(dev, "%s", s->label);
	err = err ?: device_add(dev);
	if (err) {
		put_device(dev);
		return err;
	}
	s->sysfs_paths = kobject_create_and_add("paths", &dev->kobj);
	if (!s->sysfs_paths) {
		device_unregister(dev);
		return -ENOMEM;
	}
	s->sysfs_dev = dev;
	return 0;
}

void ibtrs_srv_sysfs_session_del(struct ibtrs_srv_session *s)
{
	if (!s->sysfs_dev)
		return;
	kobject_del(s->sysfs_paths);
	kobject_put(s->sysfs_paths);
	s->sysfs_paths = NULL;
	device_unregister(s->sysfs_dev);
	s->sysfs_dev = NULL;
}

int ibtrs_srv_sysfs_init(void)
{
	sysfs_class = class_create("ibtrs-server");
	return PTR_ERR_OR_ZERO(sysfs_class);
}

void ibtrs_srv_sysfs_exit(void)
{
	wait_var_event(&path_dirs, !atomic_read(&path_dirs));
	class_destroy(sysfs_class);
}
