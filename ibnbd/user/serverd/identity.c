// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which disk is this? Finds the names that logic/identity hashes, where a program can see them. The
 * places and their order are those of the kernel's server (ibnbd/server/identity.c). A name that a
 * program cannot read is an error and not its absence: the disk then has no identity, and the log
 * says so.
 *
 * A file needs the uuid of its file system and the generation of its inode, which the kernel tells
 * by ioctl(2), of late for each file system that has them.
 */
#include <blkid/blkid.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define FS_UUID_LEN	16

/* As <linux/fs.h> has it from Linux 6.9 on. */
struct identity_fs_uuid {
	u8 len;
	u8 uuid[FS_UUID_LEN];
};

#define IDENTITY_FSUUID		_IOR(0x15, 0, struct identity_fs_uuid)

/* Of ext4, from 5.19 on. */
struct identity_ext4_uuid {
	u32 len;
	u32 flags;
	u8 uuid[FS_UUID_LEN];
};

/* Its number counts the head alone. */
#define IDENTITY_EXT4_UUID	_IOR('f', 44, u64)

const char *serverd_identity_boot(void)
{
	static char boot[64];

	if (!boot[0])
		serverd_sysfs_text("/proc/sys/kernel/random", "boot_id", boot, sizeof(boot));
	return boot;
}

/* Drivers answer so when the disk has no such name. */
static bool identity_is_absent(int err)
{
	return err == -ENOENT || err == -ENXIO || err == -EINVAL || err == -ENODATA;
}

static int identity_disk_name(const struct serverd_backing *b, char *name,
			      struct ibnbd_identity_disk *d)
{
	int i, len = 0;

	if (!b->sysfs[0])
		return -ENODEV;		/* is sysfs mounted at /sys? */
	for (i = 0; !len && i < IBNBD_IDENTITY_PLACES; i++) {
		len = serverd_sysfs_text(b->sysfs, ibnbd_identity_places[i].attr, name,
					 IBNBD_IDENTITY_TEXT);
		if (identity_is_absent(len))
			len = 0;
		if (len > 0)
			d->place = &ibnbd_identity_places[i];
	}
	d->name = name;
	return len < 0 ? len : 0;
}

/* The kernel says it in the uevent of late; else the partition table is read. */
static int identity_partuuid(const struct serverd_backing *b, const char *part, char *uuid,
			     size_t size)
{
	char path[96], text[1024], disk[64], *at;
	blkid_partlist list = NULL;
	blkid_partition p = NULL;
	blkid_probe probe;
	const char *found;

	serverd_sysfs_text(part, "uevent", text, sizeof(text));
	at = strstr(text, "PARTUUID=");
	if (at) {
		snprintf(uuid, size, "%.*s", (int)strcspn(at + 9, "\n"), at + 9);
		return 0;
	}
	serverd_sysfs_text(b->sysfs, "uevent", text, sizeof(text));
	at = strstr(text, "DEVNAME=");
	if (!at)
		return -ENOENT;
	snprintf(disk, sizeof(disk), "%.*s", (int)strcspn(at + 8, "\n"), at + 8);
	snprintf(path, sizeof(path), "/dev/%s", disk);
	probe = blkid_new_probe_from_filename(path);
	if (!probe)
		return errno ? -errno : -ENOMEM;
	blkid_probe_enable_partitions(probe, 1);
	list = blkid_probe_get_partitions(probe);
	p = list ? blkid_partlist_devno_to_partition(list, makedev(b->dev >> 20,
								   b->dev & 0xfffff)) : NULL;
	found = p ? blkid_partition_get_uuid(p) : NULL;
	snprintf(uuid, size, "%s", found ?: "");
	blkid_free_probe(probe);
	return p ? 0 : -ENOENT;
}

static int identity_of_disk(struct serverd_backing *b)
{
	char name[IBNBD_IDENTITY_TEXT], text[IBNBD_IDENTITY_TEXT], part[64], uuid[64];
	struct ibnbd_identity_disk d = { .part = b->dev != b->disk_dev };
	int err = identity_disk_name(b, name, &d);

	if (err)
		return err;
	if (d.part) {
		snprintf(part, sizeof(part), "/sys/dev/block/%u:%u", b->dev >> 20,
			 b->dev & 0xfffff);
		err = identity_partuuid(b, part, uuid, sizeof(uuid));
		d.partuuid = uuid;
		d.start = serverd_sysfs_number(part, "start");
	}
	if (!err)
		ibnbd_identity_disk(&d, text, &b->id);
	return err;
}

static int identity_fs_uuid(int fd, u8 uuid[FS_UUID_LEN])
{
	struct identity_ext4_uuid ext4 = { .len = FS_UUID_LEN };
	struct identity_fs_uuid any = { 0 };

	if (!ioctl(fd, IDENTITY_FSUUID, &any) && any.len == FS_UUID_LEN)
		memcpy(uuid, any.uuid, FS_UUID_LEN);
	else if (!ioctl(fd, IDENTITY_EXT4_UUID, &ext4) && ext4.len == FS_UUID_LEN)
		memcpy(uuid, ext4.uuid, FS_UUID_LEN);
	else
		return -errno;
	return 0;
}

static int identity_of_file(struct serverd_backing *b)
{
	struct ibnbd_identity_inode n = { .ino = b->ino };
	u32 generation = 0;
	struct statfs fs;
	int err;

	err = identity_fs_uuid(b->page_fd, n.uuid);
	if (err)
		return err;
	/* It writes an int, whatever its number says. */
	if (ioctl(b->page_fd, FS_IOC_GETVERSION, &generation))
		return -errno;
	n.generation = b->generation = generation;
	if (!fstatfs(b->page_fd, &fs) && fs.f_type == BTRFS_SUPER_MAGIC) {
		memcpy(n.volume, &fs.f_fsid, sizeof(n.volume));
		n.has_volume = true;
	}
	ibnbd_identity_file(&n, &b->id);
	return 0;
}

/* For this boot: an object without another identity. */
static void identity_instance(struct serverd_backing *b, u64 diskseq)
{
	struct ibnbd_identity_now n = {
		.boot = serverd_identity_boot(), .has_disk = b->sysfs[0], .diskseq = diskseq,
		.is_disk = b->kind == SERVERD_DISK, .dev = b->dev, .ino = b->ino,
		.generation = b->generation,
	};
	char text[IBNBD_IDENTITY_TEXT], part[64];

	if (!*n.boot || (n.has_disk && !diskseq))
		return;
	if (b->kind == SERVERD_DISK && b->dev != b->disk_dev) {
		snprintf(part, sizeof(part), "/sys/dev/block/%u:%u", b->dev >> 20,
			 b->dev & 0xfffff);
		n.start = serverd_sysfs_number(part, "start");
	}
	ibnbd_identity_now(&n, text, &b->cache_id);
}

void serverd_identity(struct serverd_backing *b)
{
	u64 diskseq = serverd_sysfs_number(b->sysfs, "diskseq");
	char boot[96];

	b->id_unknown = b->kind == SERVERD_DISK ? identity_of_disk(b) : identity_of_file(b);
	b->cache_id = b->id;
	if (b->id.kind == IBNBD_ID_NONE)
		identity_instance(b, diskseq);
	if (!*serverd_identity_boot())
		return;
	snprintf(boot, sizeof(boot), "%s %llu", serverd_identity_boot(),
		 (unsigned long long)diskseq);
	b->boot = ibnbd_record_boot(boot);
}
