// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include <ibtrs/pure.h>
#include "ibnbd/logic/access.h"

#define ACCESS_MIGRATION_WRITERS	2

int ibnbd_access_open(u32 writers, bool alone, enum ibnbd_access mode, const char **why)
{
	switch (mode) {
	case IBNBD_ACCESS_RO:
		return 0;
	case IBNBD_ACCESS_RW:
		if (!writers)
			return 0;
		return ibnbd_refuse(-EPERM, why, "another client has the device open for writing");
	case IBNBD_ACCESS_MIGRATION:
		if (writers && alone)
			return ibnbd_refuse(-EPERM, why,
					    "another client has the device open for itself alone; for a migration both map it with access_mode=migration");
		if (writers < ACCESS_MIGRATION_WRITERS)
			return 0;
		return ibnbd_refuse(-EPERM, why, "two clients have the device open for writing");
	}
	return ibnbd_refuse(-EINVAL, why, "unknown access mode");
}

static const char *const access_causes[] = {
	[ENOENT]	= "there is no such name; put a symbolic link to the disk into dev_search_path",
	[ENOTDIR]	= "there is no such name; put a symbolic link to the disk into dev_search_path",
	[EACCES]	= "the server's file system denies it; map it with access_mode=ro",
	[EPERM]		= "the server's file system denies it; map it with access_mode=ro",
	[EROFS]		= "it lies on a read-only file system; map it with access_mode=ro",
	[EBUSY]		= "it is in use on the server, perhaps mounted; release it there",
	[ETXTBSY]	= "it is in use on the server, perhaps mounted; release it there",
	[ENXIO]		= "the device node has no device behind it",
	[ENODEV]	= "the device node has no device behind it",
	[ENOMEDIUM]	= "there is no medium in the drive",
	[EMFILE]	= "the session has mapped all it may; see max_maps there",
	[ENOMEM]	= "the server is out of memory",
};

const char *ibnbd_access_cause(int err)
{
	size_t n = -err;

	return n < ARRAY_SIZE(access_causes) && access_causes[n] ? access_causes[n] :
								   "the server could not open it";
}

int ibnbd_access_reopen(const char *name, enum ibnbd_access granted, const struct ibnbd_open *m,
			const char **why)
{
	if (strcmp(name, m->name))
		return ibnbd_refuse(-EEXIST, why,
				    "this session has it open under the same name with other slashes");
	if (ibnbd_access_writes(m->access) && !ibnbd_access_writes(granted))
		return ibnbd_refuse(-EPERM, why, "this session has the device open read-only");
	if (m->access == IBNBD_ACCESS_RW && granted == IBNBD_ACCESS_MIGRATION)
		return ibnbd_refuse(-EPERM, why,
				    "this session has the device open for migration, not exclusively");
	return 0;
}

static int access_range(const struct ibnbd_facts *f, const struct ibnbd_io *io, const char **why)
{
	u32 block_sectors = f->logical_block_size >> IBNBD_SECTOR_SHIFT;
	u32 sectors = io->bytes >> IBNBD_SECTOR_SHIFT;
	u64 nsectors = READ_ONCE(f->nsectors);	/* a device may shrink at any time */

	/* The block size is a power of two: the check uses masks and needs no 64-bit division. */
	if (io->sector & (block_sectors - 1) || io->bytes & (f->logical_block_size - 1))
		return ibnbd_refuse(-EINVAL, why, "not aligned to the logical block size");
	if (io->sector > nsectors || sectors > nsectors - io->sector)
		return ibnbd_refuse(-EIO, why, "beyond the end of the device");
	return 0;
}

int ibnbd_access_io(const struct ibnbd_facts *f, enum ibnbd_access granted,
		    const struct ibnbd_io *io, const char **why)
{
	u32 most = U32_MAX;	/* sectors; an operation with data is limited by its data area */

	if (io->op == IBNBD_OP_FLUSH)
		return 0;
	if (io->op != IBNBD_OP_READ && !ibnbd_access_writes(granted))
		return ibnbd_refuse(-EROFS, why, "write to a device that is mapped read-only");
	switch (io->op) {
	case IBNBD_OP_DISCARD:
		most = f->max_discard_sectors;
		break;
	case IBNBD_OP_SECURE_ERASE:
		/* Clients use the discard limit here, too (protocol 10.1, offset 42). */
		most = f->secure_erase ? f->max_discard_sectors : 0;
		break;
	case IBNBD_OP_WRITE_ZEROES:
		most = f->max_write_zeroes_sectors;
		break;
	default:
		break;
	}
	if (!most)
		return ibnbd_refuse(-EOPNOTSUPP, why, "operation not supported by the device");
	if (io->bytes >> IBNBD_SECTOR_SHIFT > most)
		return ibnbd_refuse(-EINVAL, why, "range larger than the announced limit");
	return access_range(f, io, why);
}
