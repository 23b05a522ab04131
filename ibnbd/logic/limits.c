// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an OPEN_RSP means for the disk: the limits its queue gets (spec B.5, hazards M9 and M10 of
 * B.6), and whether the disk that a server offers after a reconnect is still the one that was
 * mapped (architecture decision 12, spec F.4). Pure: numbers in, numbers and a reason out.
 */
#include "ibnbd/logic/limits.h"

/* A request's size travels in 32 bits of bytes. */
#define LIMITS_MAX_RANGE	(U32_MAX >> IBNBD_SECTOR_SHIFT)

/*
 * The kernel reads ahead twice the optimum: a server must not say how much memory of ours a file
 * that is read costs. Large arrays have a few MiB.
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
	/* A misaligned partition says -1 here. */
	if (rsp->discard_alignment != U32_MAX)
		out->discard_alignment = rsp->discard_alignment % out->discard_granularity;
	if (rsp->secure_discard)
		out->max_secure_erase_sectors = out->max_discard_sectors;
}

/* Hazard M10: towards a server that negotiated nothing, offset 20 may be a write-same limit. */
static bool limits_may_zero(const struct ibnbd_limits_in *in)
{
	switch (in->write_zeroes) {
	case IBNBD_ZEROES_ON:
		return true;
	case IBNBD_ZEROES_AUTO:
		return in->features & IBNBD_FEAT_ZEROES;
	default:
		return false;
	}
}

/*
 * Hazard M9: without the WRITEBACK bit an old server may still have a volatile cache, so flushes
 * are sent unless the server is one of ours (it accepted a feature) or the administrator vouches
 * for it. FUA is only used where the server speaks of a cache at all.
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
	/*
	 * No size at all is one that is yet to come: the disk is shown empty and grows (RESIZED).
	 */
	if (!out->nsectors && rsp->nsectors) {
		*why = "the device is smaller than one logical block";
		return -EPROTO;
	}
	if (!out->max_hw_sectors || !out->max_segments) {
		*why = "the session cannot carry one logical block";
		return -EPROTO;
	}
	limits_topology(rsp, in, out);
	limits_discard(rsp, block_sectors, out);
	if (limits_may_zero(in))
		out->max_write_zeroes_sectors =
			limits_range(rsp->max_write_zeroes_sectors, block_sectors);
	limits_cache(rsp, in, out);
	return 0;
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
 * The high half of the generation is drawn when the server begins to watch the disk, the low half
 * counts writers that came after another one. In a new life of the server nobody came before us if
 * it is 0: a restart alone is no reason to throw away what we hold.
 */
static bool remap_foreign_writer(u64 old, u64 new)
{
	if (old >> 32 == new >> 32)
		return old != new;
	return (u32)new;
}

bool ibnbd_remap_other_writer(const struct ibnbd_open_rsp *old, const struct ibnbd_open_rsp *new)
{
	return old->has_identity &&
	       remap_foreign_writer(old->identity.writer_gen, new->identity.writer_gen);
}

static const char *remap_fence(const struct ibnbd_open_rsp *old, const struct ibnbd_open_rsp *new,
			       enum ibnbd_access access, bool held_writes)
{
	const char *why;

	/*
	 * Nothing was ever read from a disk of no size, nor written to it: whatever it becomes is
	 * the disk that was mapped.
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
	if (held_writes && ibnbd_remap_other_writer(old, new))
		return "somebody else may have written meanwhile";
	return NULL;
}

enum ibnbd_remap ibnbd_remap_compare(const struct ibnbd_open_rsp *old,
				     const struct ibnbd_open_rsp *new, enum ibnbd_access access,
				     bool held_writes, const char **why)
{
	*why = "the disk has no size at the moment: no medium, or not set up";
	if (!new->nsectors && old->nsectors)
		return IBNBD_REMAP_RETRY;
	*why = remap_fence(old, new, access, held_writes);
	if (*why)
		return IBNBD_REMAP_FENCE;
	return new->nsectors > old->nsectors ? IBNBD_REMAP_GREW : IBNBD_REMAP_OK;
}

enum ibnbd_remap ibnbd_remap_refused(int err, const char **why)
{
	switch (err) {
	case -EPERM:
		*why = "another client has opened the disk for writing";
		return IBNBD_REMAP_FENCE;
	case -EACCES:
	case -EROFS:
		*why = "the server no longer lets us write";
		return IBNBD_REMAP_FENCE;
	default:
		*why = "the server could not open the disk";
		return IBNBD_REMAP_RETRY;
	}
}
