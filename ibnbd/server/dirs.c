// SPDX-License-Identifier: GPL-2.0-only
/*
 * The directories of exports and opens below ctl/devices: their names, and how they are made and
 * removed. The files in them are sysfs.c's.
 *
 * Directories are made and removed under the export lock of open.c. Removing a directory waits
 * for the store functions that run in it. So a store function may only try the export lock (see
 * open.c), and force_close waits for I/O alone. Files that a user holds open keep no object of
 * this module alive: after the removal sysfs answers them itself.
 *
 * Two opens of one session may mean the same export under two names, and a new disk may have the
 * name of one that was pulled but is still open here: a directory whose name is taken gets '#' and
 * a number.
 */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/wait_bit.h>
#include <ibtrs/words.h>
#include "ibnbd/logic/text.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"

#define DIRS_NAME_MAX	200	/* below NAME_MAX: '#' and a number may follow */

static struct kobject *dirs_devices;

/*
 * The path of a file as a name. If it is too long, a hash of the whole path and the end of the name
 * remain.
 */
static char *dirs_file_name(struct file *file)
{
	char *buf __free(kfree) = kmalloc(PATH_MAX, GFP_KERNEL);
	char *name __free(kfree) = NULL;
	char *path = ERR_PTR(-ENOENT);
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
	if (len <= DIRS_NAME_MAX)
		return_ptr(name);
	return kasprintf(GFP_KERNEL, "%08x..%s", full_name_hash(NULL, path, strlen(path)),
			 name + len - DIRS_NAME_MAX + 10);
}

static char *dirs_bdev_name(struct block_device *bdev)
{
	char *name = kasprintf(GFP_KERNEL, "%pg", bdev);

	if (name)
		strreplace(name, '/', '!');
	return name;
}

/* Returns @name, or @name#N if @in has a @name; NULL without memory. Frees @name. */
static char *dirs_free_name(const struct kobject *in, char *name)
{
	char *try = name ? kstrdup(name, GFP_KERNEL) : NULL;
	struct kernfs_node *taken;
	unsigned int n = 1;

	while (try && (taken = sysfs_get_dirent(in->sd, try))) {
		sysfs_put(taken);
		kfree(try);
		try = kasprintf(GFP_KERNEL, "%.*s#%u",
				(int)ibtrs_words_cut(name, DIRS_NAME_MAX), name, ++n);
	}
	kfree(name);
	return try;
}

/**
 * ibnbd_srv_dirs_add_export() - make ctl/devices/NAME
 * @e: kobject initialised; on failure the caller only puts it
 * @open: its first open
 *
 * Under the export lock.
 */
int ibnbd_srv_dirs_add_export(struct ibnbd_srv_export *e, struct ibnbd_srv_open *open)
{
	char *name __free(kfree) = dirs_free_name(dirs_devices, open->bdev ?
						   dirs_bdev_name(open->bdev) :
						   dirs_file_name(open->file));
	int err;

	if (!name)
		return -ENOMEM;
	err = kobject_add(&e->kobj, dirs_devices, "%s", name);
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
void ibnbd_srv_dirs_del_export(struct ibnbd_srv_export *e)
{
	kobject_del(e->sessions);
	kobject_put(e->sessions);
	kobject_del(&e->kobj);
}

/* Make sessions/SESSION below the directory of the export of @open. Under the export lock. */
int ibnbd_srv_dirs_add_open(struct ibnbd_srv_open *open)
{
	char *name __free(kfree) = dirs_free_name(open->export->sessions,
						   kstrdup(open->session->label, GFP_KERNEL));

	return name ? kobject_add(&open->kobj, open->export->sessions, "%s", name) : -ENOMEM;
}

/* Under the export lock. Waits for a force_close that runs, which waits for I/O only. */
void ibnbd_srv_dirs_del_open(struct ibnbd_srv_open *open)
{
	if (open->kobj.state_in_sysfs)
		kobject_del(&open->kobj);
}

/* ---- who is still there ------------------------------------------------- */

static atomic_t dirs_objects;		/* sessions, exports and opens */

/* Each of them is followed by one ibnbd_srv_dirs_released(), the last thing done for the object. */
void ibnbd_srv_dirs_made(void)
{
	atomic_inc(&dirs_objects);
}

void ibnbd_srv_dirs_released(void)
{
	if (atomic_dec_and_test(&dirs_objects))
		wake_up_var(&dirs_objects);
}

/*
 * Called when ibtrs has no session left. The kernel may release a kobject later than we put it, and
 * the release function is code of this module.
 */
void ibnbd_srv_dirs_wait_released(void)
{
	wait_var_event(&dirs_objects, !atomic_read(&dirs_objects));
}

/* Make ctl/devices. */
int ibnbd_srv_dirs_init(struct kobject *ctl)
{
	dirs_devices = kobject_create_and_add("devices", ctl);
	return dirs_devices ? 0 : -ENOMEM;
}

/* No export is left. */
void ibnbd_srv_dirs_exit(void)
{
	kobject_del(dirs_devices);
	kobject_put(dirs_devices);
}
