// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which disk is this (protocol 10.5)? A hash of the most stable name that a backing store has,
 * never of its path or its /dev name.
 *
 * A module sees the unique names of disks only where users see them: in sysfs, each driver in a
 * place of its own. The first place that has a name wins. A place that is missing, or says that it
 * has no name, is passed over. After any other failure it is not known which disk this is: the next
 * place may have another name than this one had last time. If the failure may pass (no memory), the
 * client has to ask again; else the disk is exported with kind NONE, and the log and sysfs say so.
 *
 * A file is known by its file system's uuid, its inode number and generation, on btrfs by its
 * subvolume, too: a snapshot has the same numbers. An object without a name (ram disks, loop
 * devices) has kind NONE: clients then compare sizes only.
 *
 * How a name is hashed is said by logic/identity.
 *
 * An object without a name can still be recognized until the machine reboots: the kernel numbers
 * the disks as they appear, and never uses a number twice (diskseq, from 5.15 on). By this number
 * and the id of the boot, the cache epoch of a RAM disk or a loop device is found again after the
 * module was reloaded. A disk with the same number in another boot is another disk.
 */
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/statfs.h>
#include <linux/string.h>
#include <linux/uuid.h>
#include "ibnbd/logic/identity.h"
#include "ibnbd/server/backing.h"

/* Drivers answer so when the disk has no such name. */
static bool identity_is_absent(ssize_t err)
{
	return err == -ENOENT || err == -ENXIO || err == -EINVAL || err == -ENODATA;
}

/*
 * A small attribute as a string without blanks around it. Return: its length; 0: there is none; an
 * errno.
 */
static int identity_read(const char *path, char *buf, size_t size)
{
	struct file *f = ERR_PTR(-ENOENT);
	ssize_t n = -EINVAL;
	loff_t pos = 0;

	scoped_with_init_fs()
		f = filp_open(path, O_RDONLY, 0);
	if (!IS_ERR(f)) {
		if (f->f_op->read_iter && !f->f_op->read)
			n = kernel_read(f, buf, size - 1, &pos);
		fput(f);
	} else {
		n = PTR_ERR(f);
	}
	if (n < 0) {
		if (identity_is_absent(n))
			return 0;
		pr_warn_ratelimited("cannot read %s (%zd)\n", path, n);
		return n;
	}
	buf[n] = 0;
	memmove(buf, skip_spaces(buf), strlen(skip_spaces(buf)) + 1);
	strim(buf);
	return strlen(buf);
}

/* Is the directory really this disk's? Where sysfs is not mounted, no place has a name. */
static int identity_check_dir(struct gendisk *disk, const char *dir, char *buf, size_t size)
{
	dev_t dev = disk_devt(disk);
	char path[96], want[24];
	int n;

	scnprintf(path, sizeof(path), "%s/dev", dir);
	scnprintf(want, sizeof(want), "%u:%u", MAJOR(dev), MINOR(dev));
	n = identity_read(path, buf, size);
	if (n < 0)
		return n;
	if (!strcmp(n ? buf : "", want))
		return 0;
	pr_warn_ratelimited("%s does not say %s: is sysfs mounted at /sys?\n", path, want);
	return -ENODEV;
}

/*
 * The name of a whole disk, in @name of IBNBD_IDENTITY_TEXT bytes, and its place. Return: 0, also
 * if it has no name; or an errno.
 */
static int identity_disk(struct gendisk *disk, char *name, struct ibnbd_identity_disk *d)
{
	char dir[64], path[96], text[DISK_NAME_LEN];
	int i, len;

	strscpy(text, disk->disk_name, sizeof(text));
	strreplace(text, '/', '!');
	scnprintf(dir, sizeof(dir), "/sys/block/%s", text);
	len = identity_check_dir(disk, dir, name, IBNBD_IDENTITY_TEXT);
	for (i = 0; !len && i < IBNBD_IDENTITY_PLACES; i++) {
		scnprintf(path, sizeof(path), "%s/%s", dir, ibnbd_identity_places[i].attr);
		len = identity_read(path, name, IBNBD_IDENTITY_TEXT);
		if (len > 0)
			d->place = &ibnbd_identity_places[i];
	}
	d->name = name;
	return min(len, 0);
}

/*
 * Identity of a block device. @id: of kind NONE, which it keeps when the device has no name, and
 * after a failure. May sleep; needs no lock. Return: 0; or an errno: it is not known, the log says
 * what failed.
 */
int ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id)
{
	char *text __free(kfree) = kzalloc(2 * IBNBD_IDENTITY_TEXT, GFP_KERNEL);
	struct ibnbd_identity_disk d = { .part = bdev->bd_dev != disk_devt(bdev->bd_disk) };
	int err;

	if (!text)
		return -ENOMEM;
	err = identity_disk(bdev->bd_disk, text + IBNBD_IDENTITY_TEXT, &d);
	if (err)
		return err;
	if (d.part) {
		d.partuuid = cx_part_uuid(bdev);
		d.start = get_start_sect(bdev);
	}
	ibnbd_identity_disk(&d, text, id);
	return 0;
}

/* Identity of a regular file; kind NONE on a file system without uuid. */
void ibnbd_srv_identity_file(struct file *file, struct ibnbd_identity *id)
{
	struct inode *inode = file_inode(file);
	struct ibnbd_identity_inode n = {
		.ino = inode->i_ino,
		.generation = inode->i_generation,
	};
	struct kstatfs st;

	export_uuid(n.uuid, &inode->i_sb->s_uuid);
	if (inode->i_sb->s_magic == BTRFS_SUPER_MAGIC && !vfs_statfs(&file->f_path, &st)) {
		n.volume[0] = st.f_fsid.val[0];
		n.volume[1] = st.f_fsid.val[1];
		n.has_volume = true;
	}
	ibnbd_identity_file(&n, id);
}

/* The id of this boot. The kernel keeps it to itself, but for this file. */
static int identity_boot(char *text, size_t size)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	int len = identity_read(path, text, size);

	if (len)
		return len;
	pr_warn_ratelimited("%s is missing: is proc mounted at /proc?\n", path);
	return -ENOENT;
}

/*
 * Identity, for this boot only, of an object that has no other: of @bdev, or else of @file. @id: of
 * kind NONE, which it keeps when the kernel has no such number, and after a failure. May sleep;
 * needs no lock. Return: 0 or an errno.
 */
int ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				struct ibnbd_identity *id)
{
	char *text __free(kfree) = kzalloc(2 * IBNBD_IDENTITY_TEXT, GFP_KERNEL);
	struct inode *inode = file ? file_inode(file) : NULL;
	struct block_device *below = bdev ?: inode->i_sb->s_bdev;
	struct ibnbd_identity_now n = { .has_disk = below, .is_disk = bdev };
	int len;

	if (!text)
		return -ENOMEM;
	if (below)
		n.diskseq = cx_diskseq(below->bd_disk);
	if (below && !n.diskseq)
		return 0;
	n.boot = text + IBNBD_IDENTITY_TEXT;
	len = identity_boot(text + IBNBD_IDENTITY_TEXT, IBNBD_IDENTITY_TEXT / 2);
	if (len < 0)
		return len;
	if (bdev) {
		n.start = get_start_sect(bdev);
	} else {
		n.dev = inode->i_sb->s_dev;
		n.ino = inode->i_ino;
		n.generation = inode->i_generation;
	}
	ibnbd_identity_now(&n, text, id);
	return 0;
}
