// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which disk is this (protocol 10.5)? A hash of the most stable name that a backing store has,
 * never of its path or its /dev name.
 *
 * A module sees the unique names of disks only where users see them: in sysfs, each driver in a
 * place of its own. The first place that has a name wins. A partition is known by its uuid in the
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

/* A small attribute as a string without blanks around it, or false. */
static bool identity_read(const char *path, char *buf, size_t size)
{
	struct file *f = ERR_PTR(-ENOENT);
	ssize_t n = 0;
	loff_t pos = 0;

	scoped_with_init_fs()
		f = filp_open(path, O_RDONLY, 0);
	if (IS_ERR(f))
		return false;
	if (f->f_op->read_iter && !f->f_op->read)
		n = kernel_read(f, buf, size - 1, &pos);
	fput(f);
	if (n <= 0)
		return false;
	buf[n] = 0;
	memmove(buf, skip_spaces(buf), strlen(skip_spaces(buf)) + 1);
	strim(buf);
	return buf[0];
}

/* "place:name" of a whole disk. */
static bool identity_disk(struct gendisk *disk, char *text, size_t size, u8 *kind)
{
	char name[DISK_NAME_LEN];
	char path[96];
	int i, n;

	strscpy(name, disk->disk_name, sizeof(name));
	strreplace(name, '/', '!');
	for (i = 0; i < ARRAY_SIZE(identity_place); i++) {
		n = scnprintf(text, size, "%s:", identity_place[i].attr);
		scnprintf(path, sizeof(path), "/sys/block/%s/%s", name, identity_place[i].attr);
		if (identity_read(path, text + n, size - n)) {
			*kind = identity_place[i].kind;
			return true;
		}
	}
	return false;
}

/* The name of a block device as text; false: it has none. */
static bool identity_bdev_text(struct block_device *bdev, char *text, u8 *kind)
{
	bool part = bdev->bd_dev != disk_devt(bdev->bd_disk);
	const char *uuid = part ? cx_part_uuid(bdev) : NULL;
	size_t n = 0;

	/* A DOS partition table without a signature: its partitions are called so on every disk. */
	if (uuid && *uuid && strncmp(uuid, "00000000-", 9)) {
		n = scnprintf(text, IDENTITY_TEXT, "partuuid:%s ", uuid);
		if (!identity_disk(bdev->bd_disk, text + n, IDENTITY_TEXT - n, kind))
			text[n - 1] = 0;
		*kind = IBNBD_ID_UUID;
		return true;
	}
	if (!identity_disk(bdev->bd_disk, text, IDENTITY_TEXT, kind))
		return false;
	if (part) {
		n = strlen(text);
		scnprintf(text + n, IDENTITY_TEXT - n, "+%llu", (u64)get_start_sect(bdev));
	}
	return true;
}

/**
 * ibnbd_srv_identity_bdev() - identity of a block device
 * @bdev: open
 * @id: id and kind are set; kind NONE when it has no name
 *
 * May sleep; needs no lock.
 */
void ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id)
{
	char *text = kzalloc(IDENTITY_TEXT, GFP_KERNEL);
	u8 kind;

	memset(id->id, 0, sizeof(id->id));
	id->kind = IBNBD_ID_NONE;
	if (text && identity_bdev_text(bdev, text, &kind))
		identity_hash(id, kind, text, strlen(text));
	kfree(text);
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

/* Append " disk:NUMBER" to the id of the boot; false: the kernel does not tell the number. */
static bool identity_instance_disk(struct gendisk *disk, char *text)
{
	char name[DISK_NAME_LEN];
	char path[96];
	int n;

	strscpy(name, disk->disk_name, sizeof(name));
	strreplace(name, '/', '!');
	scnprintf(path, sizeof(path), "/sys/block/%s/diskseq", name);
	n = strlen(text);
	n += scnprintf(text + n, IDENTITY_TEXT - n, " disk:");
	return identity_read(path, text + n, IDENTITY_TEXT - n);
}

/**
 * ibnbd_srv_identity_instance() - identity, for this boot only, of an object that has no other
 * @bdev: open; or NULL and
 * @file: an open file
 * @id: id and kind are set; kind NONE when the kernel has no such number
 *
 * May sleep; needs no lock.
 */
void ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				 struct ibnbd_identity *id)
{
	char *text = kzalloc(IDENTITY_TEXT, GFP_KERNEL);
	struct inode *inode = file ? file_inode(file) : NULL;
	struct block_device *below = bdev ?: inode->i_sb->s_bdev;
	bool known;
	size_t n;

	memset(id->id, 0, sizeof(id->id));
	id->kind = IBNBD_ID_NONE;
	known = text && identity_read("/proc/sys/kernel/random/boot_id", text, IDENTITY_TEXT / 2);
	if (known && below)
		known = identity_instance_disk(below->bd_disk, text);
	if (known) {
		n = strlen(text);
		if (bdev)
			scnprintf(text + n, IDENTITY_TEXT - n, "+%llu", (u64)get_start_sect(bdev));
		else
			scnprintf(text + n, IDENTITY_TEXT - n, " %u:%llu:%u", inode->i_sb->s_dev,
				  (u64)inode->i_ino, inode->i_generation);
		identity_hash(id, IBNBD_ID_INSTANCE, text, strlen(text));
	}
	kfree(text);
}
