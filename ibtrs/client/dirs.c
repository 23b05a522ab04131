// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of all sessions, and the directories of sessions and paths below
 * /sys/class/ibtrs-client: their names, creation and removal. Their contents: sysfs.c.
 *
 * Called by session.c and path_run.c when sessions and paths are created and removed, by cm.c when
 * a route is known, and by port.c for all paths.
 *
 * Lifetime. The driver core and sysfs may hold references to a device or a kobject for any time. So
 * neither is part of a session or a path: the session's device and paths/ are allocated by the
 * driver core, and a path's directory is a small object with a pointer to the path. Removing a
 * directory waits for running show and store functions. After that the pointer is never followed
 * again, and the owner frees the path. The directory objects of paths are counted, and module exit
 * waits until the last is freed.
 *
 * Names. The name of a directory is always src@dst. A path without a given source gets the
 * unspecified address (ip:0.0.0.0@ip:10.0.0.2, a form that add_path accepts) until the first route
 * is resolved, and then the source address found, which stays for good. Names are unique. Creating
 * and renaming are serialized, since sysfs would report a collision with a stack dump: for paths by
 * names_lock, for sessions by sessions_lock.
 *
 * Locking: sessions_lock for the list, taken before clt->lock. A task that adds a session may wait
 * with it until a uevent can be sent, which may depend on I/O. So no path needs it to come up: only
 * port.c waits, and heartbeats find a dead path without port.c. names_lock for names of paths;
 * path->sysfs.lock for what is known from a route. Nothing that sends a uevent runs under
 * names_lock: a sender may wait for another sender that waits for I/O, and the I/O for a path that
 * needs names_lock. The directories of paths send none.
 */
#include <linux/kobject.h>
#include <linux/wait_bit.h>
#include <rdma/rdma_cm.h>
#include <ibtrs/admin.h>
#include "ibtrs/client/dirs.h"
#include "ibtrs/client/session.h"

static DEFINE_MUTEX(sessions_lock);
static LIST_HEAD(sessions);
static DEFINE_MUTEX(names_lock);
static atomic_t path_dirs;

static struct class *dirs_class;

int ibtrs_clt_dirs_session_add(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_sysfs *s = &clt->sysfs;
	struct device *dev;

	guard(mutex)(&sessions_lock);
	dev = class_find_device_by_name(dirs_class, clt->name);
	if (dev) {
		put_device(dev);
		return -EEXIST;
	}
	/* sessions_lock keeps port.c from looking at paths: do not wait for I/O. */
	scoped_guard(noio)
		dev = device_create_with_groups(dirs_class, NULL, MKDEV(0, 0), clt,
						ibtrs_clt_sysfs_session_groups, "%s", clt->name);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	s->paths = kobject_create_and_add("paths", &dev->kobj);
	if (!s->paths) {
		device_unregister(dev);
		return -ENOMEM;
	}
	s->dev = dev;
	list_add_tail(&clt->entry, &sessions);
	return 0;
}

void ibtrs_clt_dirs_session_unlist(struct ibtrs_clt *clt)
{
	guard(mutex)(&sessions_lock);
	list_del(&clt->entry);
}

void ibtrs_clt_dirs_each_path(void (*fn)(struct ibtrs_clt_path *path))
{
	struct ibtrs_clt_path *path;
	struct ibtrs_clt *clt;

	guard(mutex)(&sessions_lock);
	list_for_each_entry(clt, &sessions, entry) {
		guard(mutex)(&clt->lock);
		list_for_each_entry(path, &clt->paths, entry)
			fn(path);
	}
}

void ibtrs_clt_dirs_session_shut(struct ibtrs_clt *clt)
{
	device_remove_file(clt->sysfs.dev, ibtrs_clt_sysfs_add_path);
}

void ibtrs_clt_dirs_session_del(struct ibtrs_clt *clt)
{
	kobject_del(clt->sysfs.paths);
	kobject_put(clt->sysfs.paths);
	device_unregister(clt->sysfs.dev);
}

/* ---- directories of paths ----------------------------------------------- */

static void path_dir_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct ibtrs_clt_path_dir, kobj));
	if (atomic_dec_and_test(&path_dirs))
		wake_up_var(&path_dirs);
}

static const_ktype struct kobj_type path_ktype = {
	.sysfs_ops = &ibtrs_admin_sysfs_ops,
	.default_groups = ibtrs_clt_sysfs_path_groups,
	.release = path_dir_release,
};

static bool path_name_taken(struct kobject *paths, const char *name)
{
	struct kernfs_node *kn = sysfs_get_dirent(paths->sd, name);

	sysfs_put(kn);
	return kn != NULL;
}

/*
 * Allocations under names_lock must not start I/O: the I/O may wait for a path that connects and
 * needs names_lock for its name.
 */
int ibtrs_clt_dirs_path_add(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_path_sysfs *s = &path->sysfs;
	struct kobject *paths = path->clt->sysfs.paths;
	struct ibtrs_addr_pair addr = path->addr;
	struct ibtrs_clt_path_dir *dir;
	char name[IBTRS_PATH_STR_MAX];
	int err = -EEXIST;

	spin_lock_init(&s->lock);
	s->named = memchr_inv(addr.src.raw, 0, sizeof(addr.src.raw));
	addr.src.kind = addr.dst.kind;
	s->src = addr.src;
	ibtrs_addr_pair_format(&addr, name, sizeof(name));

	dir = kzalloc_obj(*dir, GFP_KERNEL);
	if (!dir)
		return -ENOMEM;
	dir->path = path;
	atomic_inc(&path_dirs);
	kobject_init(&dir->kobj, &path_ktype);
	s->dir = dir;

	scoped_guard(mutex, &names_lock) {
		guard(noio)();
		if (!path_name_taken(paths, name))
			err = kobject_add(&dir->kobj, paths, "%s", name);
	}
	if (err) {
		s->dir = NULL;
		kobject_put(&dir->kobj);
	}
	return err;
}

void ibtrs_clt_dirs_path_del(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_path_dir *dir = NULL;

	/* path_rename() may run at the same time. */
	scoped_guard(mutex, &names_lock)
		swap(path->sysfs.dir, dir);
	if (!dir)
		return;
	kobject_del(&dir->kobj);
	kobject_put(&dir->kobj);
}

static void path_rename(struct ibtrs_clt_path *path, const struct ibtrs_addr *src)
{
	struct ibtrs_addr_pair addr = { .src = *src, .dst = path->addr.dst };
	char name[IBTRS_PATH_STR_MAX];
	int err = 0;

	ibtrs_addr_pair_format(&addr, name, sizeof(name));
	scoped_guard(mutex, &names_lock) {
		guard(noio)();
		if (path->sysfs.dir)
			err = kobject_rename(&path->sysfs.dir->kobj, name);
	}
	if (err == -EEXIST)
		pr_warn("ibtrs %s: %s goes the same way as path %s\n", path->clt->name, path->name,
			name);
}

/*
 * hca_name, hca_port and src_addr keep their values after the connection is gone, until another
 * route is resolved. The directory of a path without a given source is renamed here, once. The
 * handler never runs concurrently with itself.
 */
void ibtrs_clt_dirs_path_route(struct ibtrs_clt_path *path, const struct rdma_cm_id *id)
{
	struct ibtrs_clt_path_sysfs *s = &path->sysfs;
	struct ibtrs_addr src;

	ibtrs_conn_addr(&src, &id->route.addr.src_addr, id->route.addr.dev_addr.net);
	spin_lock(&s->lock);
	s->src = src;
	strscpy(s->hca, dev_name(&id->device->dev), sizeof(s->hca));
	spin_unlock(&s->lock);
	WRITE_ONCE(s->port, id->port_num);
	if (!s->named) {
		path_rename(path, &src);
		s->named = true;
	}
}

int ibtrs_clt_dirs_init(void)
{
	dirs_class = class_create("ibtrs-client");
	return PTR_ERR_OR_ZERO(dirs_class);
}

void ibtrs_clt_dirs_exit(void)
{
	wait_var_event(&path_dirs, !atomic_read(&path_dirs));
	class_destroy(dirs_class);
}
