// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which disk is this (protocol 10.5)? A hash of the most stable name that a backing store has,
 * never of its path or its /dev name.
 *
 * A module sees the unique names of disks only where users see them: in sysfs, each driver in a
 * place of its own. The first place that has a name wins. A place that is missing, or says that it
 * has no name, is passed over. After any other failure nobody knows which disk this is: the next
 * place may have another name than this one had last time. If the failure may pass (no memory), the
 * client has to ask again; else the disk is exported with kind NONE, and the log and sysfs say so.
 *
 * A partition is known by its uuid in the
 * partition table, together with its disk, since a clone of the disk has the same table; else by
 * its disk and its first sector. A file is known by its file system's uuid, its inode number and
 * its inode generation, on btrfs by its subvolume, too: a snapshot has the same numbers. An object
 * without a name (ram disks, loop devices) has kind NONE: clients then compare sizes only.
 *
 * The hash must be the same after a reboot and on every machine, so its keys are constants. It
 * separates disks; it keeps nothing secret.
 *
 * An object without a name can still be recognized until the machine reboots: the kernel numbers
 * the disks as they appear, and never uses a number twice (diskseq, from 5.15 on). By this number
 * and the id of the boot, the cache epoch of a RAM disk or a loop device is found again after the
 * module was reloaded. A disk with the same number in another boot is another disk.
 */
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/siphash.h>
#include <linux/statfs.h>
#include <linux/string.h>
#include <linux/uuid.h>
#include "ibnbd/server/identity.h"

#define IDENTITY_TEXT	512

static const struct {
	const char *attr;
	u8 kind;
} identity_place[] = {
	{ "dm/uuid",		IBNBD_ID_UUID },
	{ "md/uuid",		IBNBD_ID_UUID },
	{ "wwid",		IBNBD_ID_HARDWARE },	/* NVMe */
	{ "device/wwid",	IBNBD_ID_HARDWARE },	/* SCSI */
	{ "device/cid",		IBNBD_ID_HARDWARE },	/* MMC */
	{ "serial",		IBNBD_ID_HARDWARE },	/* virtio */
};

static void identity_hash(struct ibnbd_identity *id, u8 kind, const void *data, size_t len)
{
	static const siphash_key_t key[2] = {
		{ { 0x69626e62642d6964ULL, 1 } },
		{ { 0x69626e62642d6964ULL, 2 } },
	};
	__le64 half[2] = {
		cpu_to_le64(siphash(data, len, &key[0])),
		cpu_to_le64(siphash(data, len, &key[1])),
	};

	static_assert(sizeof(half) == sizeof(id->id));
	memcpy(id->id, half, sizeof(half));
	id->kind = kind;
}

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

/* "place:name" of a whole disk. Return: its length; 0: it has no name; an errno. */
static int identity_disk(struct gendisk *disk, char *text, size_t size, u8 *kind)
{
	char name[DISK_NAME_LEN];
	char dir[64], path[96];
	int i, n, len;

	strscpy(name, disk->disk_name, sizeof(name));
	strreplace(name, '/', '!');
	scnprintf(dir, sizeof(dir), "/sys/block/%s", name);
	n = identity_check_dir(disk, dir, text, size);
	if (n)
		return n;
	for (i = 0; i < ARRAY_SIZE(identity_place); i++) {
		n = scnprintf(text, size, "%s:", identity_place[i].attr);
		scnprintf(path, sizeof(path), "%s/%s", dir, identity_place[i].attr);
		len = identity_read(path, text + n, size - n);
		if (len > 0)
			*kind = identity_place[i].kind;
		if (len)
			return len < 0 ? len : n + len;
	}
	return 0;
}

/* The name of a block device as text. Return: its length; 0: it has none; an errno. */
static int identity_bdev_text(struct block_device *bdev, char *text, u8 *kind)
{
	bool part = bdev->bd_dev != disk_devt(bdev->bd_disk);
	const char *uuid = part ? cx_part_uuid(bdev) : NULL;
	int n, len;

	/* A DOS partition table without a signature: its partitions are called so on every disk. */
	if (uuid && *uuid && strncmp(uuid, "00000000-", 9)) {
		n = scnprintf(text, IDENTITY_TEXT, "partuuid:%s ", uuid);
		len = identity_disk(bdev->bd_disk, text + n, IDENTITY_TEXT - n, kind);
		if (len < 0)
			return len;
		*kind = IBNBD_ID_UUID;
		return len ? n + len : n - 1;
	}
	len = identity_disk(bdev->bd_disk, text, IDENTITY_TEXT, kind);
	if (len > 0 && part)
		len += scnprintf(text + len, IDENTITY_TEXT - len, "+%llu",
				 (u64)get_start_sect(bdev));
	return len;
}

/**
 * ibnbd_srv_identity_bdev() - identity of a block device
 * @bdev: open
 * @id: id and kind are set; kind NONE when it has no name, and after a failure
 *
 * May sleep; needs no lock. Return: 0; or an errno: nobody knows, the log says what failed.
 */
int ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id)
{
	char *text __free(kfree) = kzalloc(IDENTITY_TEXT, GFP_KERNEL);
	u8 kind;
	int len;

	memset(id->id, 0, sizeof(id->id));
	id->kind = IBNBD_ID_NONE;
	if (!text)
		return -ENOMEM;
	len = identity_bdev_text(bdev, text, &kind);
	if (len > 0)
		identity_hash(id, kind, text, len);
	return min(len, 0);
}

/* Identity of a regular file; kind NONE on a file system without uuid. */
void ibnbd_srv_identity_file(struct file *file, struct ibnbd_identity *id)
{
	struct inode *inode = file_inode(file);
	struct {
		u8 uuid[UUID_SIZE];
		__le64 ino;
		__le64 generation;
		__le32 volume[2];		/* btrfs only */
	} name = {
		.ino = cpu_to_le64(inode->i_ino),
		.generation = cpu_to_le64(inode->i_generation),
	};
	size_t len = offsetof(typeof(name), volume);
	struct kstatfs st;

	memset(id->id, 0, sizeof(id->id));
	id->kind = IBNBD_ID_NONE;
	if (uuid_is_null(&inode->i_sb->s_uuid))
		return;
	export_uuid(name.uuid, &inode->i_sb->s_uuid);
	if (inode->i_sb->s_magic == BTRFS_SUPER_MAGIC && !vfs_statfs(&file->f_path, &st)) {
		name.volume[0] = cpu_to_le32(st.f_fsid.val[0]);
		name.volume[1] = cpu_to_le32(st.f_fsid.val[1]);
		len = sizeof(name);
	}
	identity_hash(id, IBNBD_ID_FILE, &name, len);
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

/**
 * ibnbd_srv_identity_instance() - identity, for this boot only, of an object that has no other
 * @bdev: open; or NULL and
 * @file: an open file
 * @id: id and kind are set; kind NONE when the kernel has no such number, and after a failure
 *
 * May sleep; needs no lock. Return: 0 or an errno.
 */
int ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				struct ibnbd_identity *id)
{
	char *text __free(kfree) = kzalloc(IDENTITY_TEXT, GFP_KERNEL);
	struct inode *inode = file ? file_inode(file) : NULL;
	struct block_device *below = bdev ?: inode->i_sb->s_bdev;
	u64 seq = below ? cx_diskseq(below->bd_disk) : 0;
	int len;

	memset(id->id, 0, sizeof(id->id));
	id->kind = IBNBD_ID_NONE;
	if (!text)
		return -ENOMEM;
	if (below && !seq)
		return 0;
	len = identity_boot(text, IDENTITY_TEXT / 2);
	if (len < 0)
		return len;
	if (below)
		len += scnprintf(text + len, IDENTITY_TEXT - len, " disk:%llu", seq);
	if (bdev)
		len += scnprintf(text + len, IDENTITY_TEXT - len, "+%llu",
				 (u64)get_start_sect(bdev));
	else
		len += scnprintf(text + len, IDENTITY_TEXT - len, " %u:%llu:%u", inode->i_sb->s_dev,
				 (u64)inode->i_ino, inode->i_generation);
	identity_hash(id, IBNBD_ID_INSTANCE, text, len);
	return 0;
}
