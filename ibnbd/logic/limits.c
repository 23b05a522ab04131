// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Computes the limits of a disk's queue from an OPEN_RSP (protocol 10.1, hazards M9 and M10 of
 * protocol 10.8), and compares the disk that the server offers after a reconnect with the mapped
 * disk (decision 12, protocol 10.5). Pure: numbers in, numbers and a reason out.
 */
#include "ibnbd/logic/limits.h"

/* The size of a request is sent as a 32-bit number of bytes. */
#define LIMITS_MAX_RANGE	(U32_MAX >> IBNBD_SECTOR_SHIFT)

/*
 * The kernel reads ahead twice io_opt. Without this limit the server would decide how much memory
 * of the client a reader of a file uses. Large arrays announce a few MiB.
 */
#define LIMITS_MAX_IO_OPT	(16u << 20)

/* @unit is a power of two. */
static u32 limits_round_down(u32 v, u32 unit)
{
	return v & ~(unit - 1);
}

static u32 limits_range(u32 sectors, u32 block_sectors)
{
	return limits_round_down(sectors < LIMITS_MAX_RANGE ? sectors : LIMITS_MAX_RANGE,
				 block_sectors);
}

static void limits_discard(const struct ibnbd_open_rsp *rsp, u32 block_sectors,
			   struct ibnbd_limits *out)
{
	out->max_discard_sectors = limits_range(rsp->max_discard_sectors, block_sectors);
	if (!out->max_discard_sectors)
		return;
	out->discard_granularity = rsp->discard_granularity ? rsp->discard_granularity :
							      rsp->logical_block_size;
	/* A misaligned partition reports -1 here. */
	if (rsp->discard_alignment != U32_MAX)
		out->discard_alignment = rsp->discard_alignment % out->discard_granularity;
	if (rsp->secure_discard)
		out->max_secure_erase_sectors = out->max_discard_sectors;
}

/*
 * Hazard M9: an old server without the WRITEBACK bit may still have a volatile cache. So flushes
 * are sent unless the server is one of ours (it accepted a feature) or the administrator says that
 * no flush is needed. FUA is used only where the server announces a cache.
 */
static void limits_cache(const struct ibnbd_open_rsp *rsp, const struct ibnbd_limits_in *in,
			 struct ibnbd_limits *out)
{
	bool unknown = !in->features && in->write_cache == IBNBD_CACHE_AUTO;

	out->write_cache = rsp->writeback || unknown || in->write_cache == IBNBD_CACHE_ON;
	out->fua = rsp->writeback && rsp->fua;
}

static void limits_topology(const struct ibnbd_open_rsp *rsp, const struct ibnbd_limits_in *in,
			    struct ibnbd_limits *out)
{
	const struct ibnbd_identity *id = &rsp->identity;
	u32 physical = rsp->physical_block_size;

	out->io_min = physical;
	out->io_opt = limits_round_down(in->max_io_bytes, physical);
	if (!rsp->has_identity)
		return;
	out->rotational = id->flags & IBNBD_ID_F_ROTATIONAL;
	out->stable_pages = id->flags & IBNBD_ID_F_STABLE_PAGES;
	if (id->io_min > LIMITS_MAX_IO_OPT || id->io_opt > LIMITS_MAX_IO_OPT) {
		out->capped = "its smallest or its optimal I/O size is above 16 MiB: not believed";
		return;
	}
	if (id->io_min > physical && !(id->io_min & (physical - 1)))
		out->io_min = id->io_min;
	if (id->io_opt >= out->io_min && !(id->io_opt & (physical - 1)))
		out->io_opt = id->io_opt;
}

int ibnbd_limits_build(const struct ibnbd_open_rsp *rsp, const struct ibnbd_limits_in *in,
		       struct ibnbd_limits *out, const char **why)
{
	u32 block = rsp->logical_block_size, block_sectors = block >> IBNBD_SECTOR_SHIFT;

	memset(out, 0, sizeof(*out));
	out->nsectors = rsp->nsectors & ~(u64)(block_sectors - 1);
	out->logical_block_size = block;
	out->physical_block_size = rsp->physical_block_size;
	out->max_hw_sectors = limits_round_down(in->max_io_bytes, block) >> IBNBD_SECTOR_SHIFT;
	out->max_segments = in->max_segments;
	/* Size 0: the disk gets its size later. It is shown empty, and grows (RESIZED). */
	if (!out->nsectors && rsp->nsectors)
		return ibnbd_refuse(-EPROTO, why, "the device is smaller than one logical block");
	if (!out->max_hw_sectors || !out->max_segments)
		return ibnbd_refuse(-EPROTO, why, "the session cannot carry one logical block");
	limits_topology(rsp, in, out);
	limits_discard(rsp, block_sectors, out);
	/* Hazard M10: from servers that negotiated nothing, offset 20 may be a write-same limit. */
	if (in->write_zeroes == IBNBD_ZEROES_ON ||
	    (in->write_zeroes == IBNBD_ZEROES_AUTO && in->features & IBNBD_FEAT_ZEROES))
		out->max_write_zeroes_sectors =
			limits_range(rsp->max_write_zeroes_sectors, block_sectors);
	limits_cache(rsp, in, out);
	return 0;
}

u32 ibnbd_limits_most(const struct ibnbd_limits *lim, enum ibnbd_op op)
{
	switch (op) {
	case IBNBD_OP_WRITE:
		return lim->max_hw_sectors << IBNBD_SECTOR_SHIFT;
	case IBNBD_OP_WRITE_ZEROES:
		return lim->max_write_zeroes_sectors << IBNBD_SECTOR_SHIFT;
	case IBNBD_OP_SECURE_ERASE:
		return lim->max_secure_erase_sectors << IBNBD_SECTOR_SHIFT;
	default:
		return lim->max_discard_sectors << IBNBD_SECTOR_SHIFT;
	}
}

void ibnbd_limits_keep_block(const struct ibnbd_open_rsp *old, struct ibnbd_open_rsp *new)
{
	u32 block = old->logical_block_size;

	if (!old->nsectors || new->logical_block_size >= block)
		return;
	new->logical_block_size = block;
	new->nsectors &= ~(u64)((block >> IBNBD_SECTOR_SHIFT) - 1);
	if (new->physical_block_size < block)
		new->physical_block_size = block;
	if (new->discard_granularity && new->discard_granularity < block)
		new->discard_granularity = block;
}

static const char *remap_identity(const struct ibnbd_open_rsp *old,
				  const struct ibnbd_open_rsp *new)
{
	if (!old->has_identity)
		return NULL;
	if (!new->has_identity)
		return "the server no longer tells which disk this is";
	if (old->identity.kind == IBNBD_ID_NONE)
		return NULL;
	if (new->identity.kind == IBNBD_ID_NONE)
		return "the disk behind this name has lost its identity";
	if (old->identity.kind != new->identity.kind ||
	    memcmp(old->identity.id, new->identity.id, sizeof(old->identity.id)))
		return "another disk is behind this name now";
	return NULL;
}

/*
 * The server draws a generation at random when it begins to watch the disk, and its low half counts
 * a writer that follows another writer. When the high half has changed, the server does not
 * remember the disk. Only a low half of 0 is then a promise that no other client wrote before us.
 */
static bool remap_remembers(u64 old, u64 new)
{
	return old >> 32 == new >> 32;
}

bool ibnbd_remap_other_writer(const struct ibnbd_open_rsp *old, const struct ibnbd_open_rsp *new)
{
	u64 before = old->identity.writer_gen, now = new->identity.writer_gen;

	return old->has_identity && (remap_remembers(before, now) ? before != now : (u32)now);
}

static const char *remap_fence(const struct ibnbd_open_rsp *old, const struct ibnbd_open_rsp *new,
			       enum ibnbd_access access, bool held_writes)
{
	const char *why;

	/*
	 * Nothing was ever read from a disk without a size, nor written to it. So whatever disk it
	 * becomes is accepted as the mapped disk.
	 */
	if (!old->nsectors)
		return NULL;
	why = remap_identity(old, new);
	if (why)
		return why;
	if (old->logical_block_size != new->logical_block_size)
		return "the logical block size changed";
	if (new->nsectors < old->nsectors)
		return "the disk shrank";
	if (access != IBNBD_ACCESS_RO && new->identity.flags & IBNBD_ID_F_READ_ONLY &&
	    !(old->identity.flags & IBNBD_ID_F_READ_ONLY))
		return "the disk became read-only";
	if (!held_writes || !ibnbd_remap_other_writer(old, new))
		return NULL;
	return remap_remembers(old->identity.writer_gen, new->identity.writer_gen) ?
		       "another client may have written meanwhile" :
		       "the server has no record of whether another client wrote meanwhile (see its writer_file=): remap_device accepts the disk as it is";
}

enum ibnbd_remap ibnbd_remap_compare(const struct ibnbd_open_rsp *old,
				     const struct ibnbd_open_rsp *new, enum ibnbd_access access,
				     bool held_writes, const char **why)
{
	*why = "the disk has no size at the moment: no medium, or not set up";
	if (!new->nsectors && old->nsectors)
		return IBNBD_REMAP_RETRY;
	*why = remap_fence(old, new, access, held_writes);
	return *why ? IBNBD_REMAP_FENCE : IBNBD_REMAP_OK;
}

static const char *const remap_words[] = {
	[EPERM]		= "another client has opened the disk for writing",
	[EACCES]	= "the server no longer lets us write",
	[EROFS]		= "the server no longer lets us write",
	[EPROTO]	= "the server's answer to OPEN is invalid",
	[ENOENT]	= "the server does not have the disk yet",
	[ENOTDIR]	= "the server does not have the disk yet",
	[ENXIO]		= "the server does not have the disk yet",
	[ENODEV]	= "the server does not have the disk yet",
	[ENOTBLK]	= "the server does not have the disk yet",
	[EISDIR]	= "the server does not have the disk yet",
	[ESTALE]	= "the server does not have the disk yet",
	[ENOMEDIUM]	= "the server's disk is not ready yet",
	[EMEDIUMTYPE]	= "the server's disk is not ready yet",
	[EBUSY]		= "the server's disk is still in use",
	[ETXTBSY]	= "the server's disk is still in use",
	[EEXIST]	= "the server's disk is still in use",
	[ETIMEDOUT]	= "the server has not opened the disk yet",
	[ECONNRESET]	= "the server has not opened the disk yet",
	[ENOTCONN]	= "the server has not opened the disk yet",
	[EINTR]		= "the server has not opened the disk yet",
};

enum ibnbd_remap ibnbd_remap_refused(int err, const char **why)
{
	size_t n = -err;

	*why = n < ARRAY_SIZE(remap_words) ? remap_words[n] : NULL;
	if (!*why)
		*why = "the server cannot open the disk yet";
	if (err == -EPERM || err == -EACCES || err == -EROFS || err == -EPROTO)
		return IBNBD_REMAP_FENCE;
	return IBNBD_REMAP_RETRY;
}
