/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The identity of a disk, as bytes: what its names are hashed to (protocol 10.5). Whoever serves a
 * disk finds its names in its own way and has them hashed here, so that the disk is the same one to
 * a client when another kind of server has it.
 */
#ifndef IBNBD_LOGIC_IDENTITY_H
#define IBNBD_LOGIC_IDENTITY_H

#include "ibnbd/proto/msg.h"

/*
 * Kinds that clients are never told: an identity that is valid for this boot only, of an object
 * without a lasting name; and the key of a disk in the table of writers that has none.
 */
#define IBNBD_ID_INSTANCE	255
#define IBNBD_ID_NUMBER		254

#define IBNBD_IDENTITY_TEXT	512	/* room for the text that is hashed */
#define IBNBD_IDENTITY_PLACES	6

/* Where a disk may have its name, below /sys/block/DISK: the first one that has it counts. */
struct ibnbd_identity_place {
	const char *attr;
	u8 kind;
};

extern const struct ibnbd_identity_place ibnbd_identity_places[IBNBD_IDENTITY_PLACES];

/**
 * struct ibnbd_identity_disk - the names of a block device
 * @place: place of the name of the whole disk; NULL: it has none
 * @name: the name, without blanks around it
 * @part: it is a partition
 * @partuuid: uuid of the partition, as the kernel prints it; NULL or empty: it has none
 * @start: its first sector of 512 bytes
 */
struct ibnbd_identity_disk {
	const struct ibnbd_identity_place *place;
	const char *name;
	bool part;
	const char *partuuid;
	u64 start;
};

/**
 * ibnbd_identity_disk() - hash the names of a block device
 * @d: its names
 * @text: IBNBD_IDENTITY_TEXT bytes, for what is hashed
 * @id: id and kind are set; kind NONE: it has no name
 *
 * A partition is known by its uuid together with its disk, since a clone of the disk has the same
 * table; else by its disk and its first sector.
 */
void ibnbd_identity_disk(const struct ibnbd_identity_disk *d, char *text,
			 struct ibnbd_identity *id);

/**
 * struct ibnbd_identity_inode - the names of a regular file
 * @uuid: of its file system; all zero: that has none
 * @ino, @generation: of its inode
 * @has_volume: it lies on btrfs, where a snapshot has the same numbers
 * @volume: f_fsid of its subvolume
 */
struct ibnbd_identity_inode {
	u8 uuid[16];
	u64 ino;
	u32 generation;
	bool has_volume;
	u32 volume[2];
};

/* Hash the names of a regular file. Kind NONE: its file system has no uuid. */
void ibnbd_identity_file(const struct ibnbd_identity_inode *n, struct ibnbd_identity *id);

/**
 * struct ibnbd_identity_now - what tells an object without a lasting name from others in this boot
 * @boot: id of the boot, as text
 * @has_disk: @diskseq is that of its disk, or of the disk below its file system
 * @is_disk: it is a block device that begins at @start; else a file: @dev is the number of its file
 *	system as the kernel counts it, minor numbers of 20 bits
 */
struct ibnbd_identity_now {
	const char *boot;
	bool has_disk;
	u64 diskseq;
	bool is_disk;
	u64 start;
	u32 dev;
	u64 ino;
	u32 generation;
};

/* Hash that. @text: as above. */
void ibnbd_identity_now(const struct ibnbd_identity_now *n, char *text, struct ibnbd_identity *id);

/* The key in the table of writers of an object without an identity. @ino 0: a block device. */
void ibnbd_identity_number(u64 ino, u32 generation, u32 dev, struct ibnbd_identity *id);

/* SipHash-2-4. It separates names, and keeps nothing secret: the keys are constants. */
u64 ibnbd_siphash(const void *data, size_t len, u64 k0, u64 k1);

#endif
