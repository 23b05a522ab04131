// SPDX-License-Identifier: GPL-2.0-only
#include "ibnbd/client/unflushed.h"

static u64 unflushed_wrote(const struct ibnbd_clt_dev *dev)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(dev->wrote, cpu));
	return sum;
}

void ibnbd_clt_unflushed_send_flush(struct ibnbd_clt_dev *dev, struct ibnbd_clt_op *op)
{
	op->account = IBNBD_CLT_ACCOUNT_FLUSH;
	op->flush = ibnbd_unflushed_send(&dev->unflushed);
	op->wrote = unflushed_wrote(dev);
}

void ibnbd_clt_unflushed_flushed(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_op *op)
{
	ibnbd_unflushed_done(&dev->unflushed, op->flush);
	if (dev->keeps == IBNBD_CLT_KEEPS_DATA)
		ibnbd_clt_kept_flushed(dev, op->flush);
	/* For display only: two flushes that end at once may leave the smaller number. */
	if (op->wrote > READ_ONCE(dev->flushed))
		WRITE_ONCE(dev->flushed, op->wrote);
}

bool ibnbd_clt_unflushed_failed(const struct ibnbd_clt_op *op)
{
	struct ibnbd_clt_dev *dev = op->dev;

	if (op->account != IBNBD_CLT_ACCOUNT_FLUSH && op->account != IBNBD_CLT_ACCOUNT_FUA)
		return false;
	if (!ibnbd_unflushed_any(&dev->unflushed))
		return false;
	WRITE_ONCE(dev->flush_failed, true);
	return true;
}

void ibnbd_clt_unflushed_made_good(struct ibnbd_clt_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	WRITE_ONCE(dev->flush_failed, false);
}

u64 ibnbd_clt_unflushed_bytes(const struct ibnbd_clt_dev *dev)
{
	u64 flushed = READ_ONCE(dev->flushed), wrote = unflushed_wrote(dev);

	if (!READ_ONCE(dev->keeps) || !ibnbd_unflushed_any(&dev->unflushed))
		return 0;
	return wrote > flushed ? wrote - flushed : 0;
}

enum ibnbd_clt_keeps ibnbd_clt_unflushed_keeps(const struct ibnbd_clt_dev *dev,
					       const struct ibnbd_clt_grant *g)
{
	/*
	 * With write_cache=on the administrator knows of a cache that the server does not report.
	 */
	bool is_volatile = g->rsp.durability.flags & IBNBD_DUR_F_VOLATILE ||
			   dev->map.write_cache == IBNBD_CACHE_ON;

	if (!ibnbd_unflushed_counts(dev->map.unflushed == IBNBD_UNFLUSHED_IGNORE,
				    dev->map.unflushed != IBNBD_UNFLUSHED_AUTO,
				    g->rsp.has_durability, is_volatile, g->lim.write_cache))
		return IBNBD_CLT_KEEPS_NOTHING;
	return dev->map.unflushed != IBNBD_UNFLUSHED_FENCE &&
	       g->lim.logical_block_size <= IBNBD_KEPT_BLOCK_MAX ? IBNBD_CLT_KEEPS_DATA :
								   IBNBD_CLT_KEEPS_ACCOUNT;
}

bool ibnbd_clt_unflushed_other(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	lockdep_assert_held(&dev->lock);
	return dev->keeps && (READ_ONCE(dev->flush_failed) ||
			      ibnbd_unflushed_lost_between(&dev->grant.rsp, dev->grant.link_gen,
							   &g->rsp, g->link_gen));
}

bool ibnbd_clt_unflushed_lost(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	return ibnbd_unflushed_any(&dev->unflushed) && ibnbd_clt_unflushed_other(dev, g);
}

void ibnbd_clt_unflushed_accept(struct ibnbd_clt_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	ibnbd_unflushed_forgive(&dev->unflushed);
	ibnbd_clt_kept_forget(dev, false);
	ibnbd_clt_unflushed_made_good(dev);
	WRITE_ONCE(dev->flushed, unflushed_wrote(dev));
	WRITE_ONCE(dev->losses, dev->losses + 1);
}
