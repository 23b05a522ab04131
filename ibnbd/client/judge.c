// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides what an answer to a repeated OPEN, or a missing answer, does to a device.
 *
 * Called by: open.c, under the device's open_lock and lock.
 *
 * Every answer is checked (decision 12): logic/limits says whether the answer describes the disk
 * that is mapped. The same disk: OPENED. Another disk, a smaller one, or a refusal that is final:
 * FENCE, with the reason. No answer, or "not yet", which is any other refusal: ask again, every
 * half second while I/O is held, which hold= alone limits, and every two seconds after that.
 *
 * When an answer names another cache epoch, a write that was acknowledged in the old epoch may not
 * be in the account yet. So the loss is judged only when nothing of the device is in flight.
 */
#include <linux/log2.h>
#include <linux/sizes.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/unflushed.h"

bool ibnbd_clt_judge_resent(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	lockdep_assert_held(&dev->lock);
	return ibnbd_at_large_resent(&dev->at_large, g->features & IBNBD_FEAT_IDENTITY,
				     g->rsp.device_id, ibtrs_clt_settled(dev->sess->clt));
}

bool ibnbd_clt_judge_at_large(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	return ibnbd_at_large_given_up(&dev->at_large, dev->state,
				       g->features & IBNBD_FEAT_IDENTITY &&
					       !ibnbd_clt_grant_is_new(dev, g)) ||
	       ibnbd_clt_judge_resent(dev, g);
}

/* A disk that is late is told in the log, each reason once. */
static void judge_told(struct ibnbd_clt_dev *dev, int err)
{
	if (dev->refusal == err)
		return;
	dev->refusal = err;
	pr_info_ratelimited("ibnbd%d: %s of %s: %s, I/O %s, hold=%d\n", dev->index,
			    dev->map.device_path, dev->map.sessname, dev->reason,
			    ibnbd_dev_sm_holds(dev->state) ? "waits" : "fails",
			    ibnbd_clt_dev_hold_seconds(dev));
}

void ibnbd_clt_judge_error(struct ibnbd_clt_dev *dev, int err, const char *why)
{
	const char *refusal, *who = ibnbd_clt_judge_who(dev, why);
	enum ibnbd_remap verdict = ibnbd_remap_refused(err, &refusal);

	if (verdict == IBNBD_REMAP_FENCE) {
		ibnbd_clt_dev_say(dev, "%s%s%s%s", refusal, why ? ": " : "", who, why ?: "");
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
		return;
	}
	if (!ibnbd_dev_sm_holds(dev->state) && dev->state != IBNBD_DEV_FAILED &&
	    !ibnbd_clt_dev_asks(dev))
		return;
	if (dev->state != IBNBD_DEV_OPEN) {
		ibnbd_clt_dev_say(dev, "%s (%d): %s%s", refusal, err, who,
				  ibnbd_clt_judge_word(err, why));
		judge_told(dev, err);
	}
	ibnbd_clt_dev_ask_later(dev, ibnbd_dev_sm_holds(dev->state) || dev->at_large.given_up ?
					     IBNBD_CLT_RETRY_HELD : IBNBD_CLT_RETRY_FAILED);
}

/* Have all requests ended that the old server may have answered? dev->lock is held. */
static bool judge_quiet(struct ibnbd_clt_dev *dev)
{
	if (dev->state == IBNBD_DEV_OPEN)
		ibnbd_clt_dev_lose(dev, "the server may have lost its disk's write cache");
	if (ibnbd_clt_dev_is_quiet(dev))
		return true;
	ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_SOON);
	return false;
}

/* Fences the device, so that no later flush succeeds as if nothing was lost. dev->lock is held. */
static void judge_loss(struct ibnbd_clt_dev *dev)
{
	u64 mib = (ibnbd_clt_unflushed_bytes(dev) + SZ_1M - 1) >> ilog2(SZ_1M);

	ibnbd_clt_dev_say(
		dev,
		"%s, and the last %llu MiB written were not flushed: remap_device accepts the loss",
		READ_ONCE(dev->flush_failed) ?
			"a flush failed on the server, which may have dropped the unwritten data" :
			"the server may have lost its disk's write cache",
		mib);
	ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
}

bool ibnbd_clt_judge_itself(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	const char *why;

	lockdep_assert_held(&dev->lock);
	if (dev->state == IBNBD_DEV_FENCED)
		return false;
	return ibnbd_dev_sm_holds(dev->state) ||
	       (ibnbd_clt_unflushed_lost(dev, g) && ibnbd_clt_kept_whole(dev) &&
		ibnbd_remap_compare(&dev->grant.rsp, &g->rsp, dev->map.access_mode, true, &why) ==
			IBNBD_REMAP_OK);
}

const char *ibnbd_clt_judge_users(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	bool open = dev->state == IBNBD_DEV_OPEN;
	const char *why;

	lockdep_assert_held(&dev->lock);
	if (!ibnbd_clt_number_openers(dev->number))
		return NULL;
	if (dev->state == IBNBD_DEV_FENCED)
		return dev->reason;
	if (ibnbd_remap_compare(&dev->grant.rsp, &g->rsp, dev->map.access_mode,
				!open && dev->map.access_mode == IBNBD_ACCESS_RW,
				&why) != IBNBD_REMAP_OK)
		return why;
	return !open && ibnbd_clt_unflushed_lost(dev, g) ?
		       "the server may have lost unflushed writes" :
		       NULL;
}

bool ibnbd_clt_judge_answer(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	bool other, held, lost, kept;
	enum ibnbd_remap verdict;
	const char *why;

	ibnbd_clt_disk_other_writer(dev, g);
	if (ibnbd_clt_judge_at_large(dev, g)) {
		/* Our CLOSE was lost, or requests were given up only after our CLOSE: ask again. */
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_HELD);
		return false;
	}
	dev->at_large.resent = false;
	other = ibnbd_clt_unflushed_other(dev, g);
	if (other && !judge_quiet(dev))
		return false;
	lost = ibnbd_clt_unflushed_lost(dev, g);
	kept = lost && ibnbd_clt_kept_whole(dev);
	/*
	 * While the device is open, no writes are held: the disk was ours all the time. Writes that
	 * wait in the block layer, in the page cache or in an application cannot be seen here. So a
	 * writable device that is open counts as having writes, but not one of mode migration.
	 */
	held = kept;
	held |= dev->state != IBNBD_DEV_OPEN && dev->disk &&
	       ((dev->map.access_mode == IBNBD_ACCESS_RW &&
		 ibnbd_clt_number_openers(dev->number) > 0) ||
		ibnbd_clt_inflight_has_writes(dev));
	verdict = ibnbd_remap_compare(&dev->grant.rsp, &g->rsp, dev->map.access_mode, held, &why);
	if (verdict == IBNBD_REMAP_FENCE) {
		ibnbd_clt_dev_say(dev, "%s", why);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
	} else if (verdict == IBNBD_REMAP_RETRY) {
		ibnbd_clt_judge_error(dev, -ENOMEDIUM, why);
	} else if (kept) {
		ibnbd_clt_dev_say(dev, "sending again the writes that the server may have lost");
		return ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_REPLAY, NULL) ||
		       dev->state == IBNBD_DEV_REPLAYING;
	} else if (lost) {
		judge_loss(dev);
	} else {
		if (other)
			ibnbd_clt_unflushed_made_good(dev);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_OPENED, g);
	}
	return false;
}
