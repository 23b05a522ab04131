// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What an answer to a repeated OPEN, or a missing one, does to a disk (decision 12).
 *
 * Whether it is the same disk says logic/limits, whether writes may be lost logic/unflushed: as for
 * the kernel's client. What is different here: a program with a disk open for writing counts as
 * having writes for it, since the library does not know what it has in its memory.
 *
 * All of it is judged when nothing is on the wire: then every answer of the old mapping has been
 * accounted, and what is parked may be given another number.
 */
#include "ibnbd/logic/errword.h"
#include "ibnbd/user/disk.h"

#define JUDGE_SOON_MS	50
#define JUDGE_FAILED_MS	2000

bool disk_judge_at_large(const struct ibnbd_disk *d, const struct disk_grant *g)
{
	return ibnbd_at_large_given_up(&d->at_large, d->state,
				       g->features & IBNBD_FEAT_IDENTITY &&
					       g->rsp.device_id == d->grant.rsp.device_id) ||
	       ibnbd_at_large_resent(&d->at_large, g->features & IBNBD_FEAT_IDENTITY,
				     g->rsp.device_id, ibtrs_clt_settled(d->clt));
}

enum disk_keeps disk_judge_keeps(const struct ibnbd_disk *d, const struct disk_grant *g)
{
	bool is_volatile = g->rsp.durability.flags & IBNBD_DUR_F_VOLATILE ||
			   d->opts.write_cache == IBNBD_DISK_ON;

	if (!ibnbd_unflushed_counts(d->opts.unflushed == IBNBD_DISK_UNFLUSHED_IGNORE,
				    d->opts.unflushed != IBNBD_DISK_UNFLUSHED_AUTO,
				    g->rsp.has_durability, is_volatile, g->lim.write_cache))
		return DISK_KEEPS_NOTHING;
	return d->kept_mem && g->lim.logical_block_size <= IBNBD_KEPT_BLOCK_MAX ?
		       DISK_KEEPS_DATA : DISK_KEEPS_ACCOUNT;
}

/* Is the account kept, and does @g name another epoch, or did a flush fail? */
static bool judge_other_epoch(const struct ibnbd_disk *d, const struct disk_grant *g)
{
	return d->keeps && (READ_ONCE(d->flush_failed) ||
			    ibnbd_unflushed_lost_between(&d->grant.rsp, d->grant.ups, &g->rsp,
							 g->ups));
}

void disk_judge_error(struct ibnbd_disk *d, int err, const char *why)
{
	const char *refusal, *who = why == d->said.text ? "the server says: " : "";
	enum ibnbd_remap verdict = ibnbd_remap_refused(err, &refusal);

	if (verdict == IBNBD_REMAP_FENCE) {
		disk_say(d, "%s%s%s%s", refusal, why ? ": " : "", who, why ?: "");
		disk_post(d, IBNBD_DEV_EV_FENCE, NULL);
		return;
	}
	if (d->state != IBNBD_DEV_OPEN)
		disk_say(d, "%s (%d): %s%s", refusal, err, who, why ?: ibnbd_errword_open(err));
	disk_ask_later(d, ibnbd_dev_sm_holds(d->state) || d->at_large.given_up ?
			  DISK_HELD_MS : JUDGE_FAILED_MS);
}

/* Is all that is under way parked, and are all answers accounted? *@writes: some are writes. */
static bool judge_quiet(struct ibnbd_disk *d, bool *writes)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct disk_q_sum sum = {};
	u32 i;

	for (i = 0; i < d->nr_qs; i++)
		disk_q_look(&d->qs[i], &sum);
	ibtrs_clt_info(d->clt, &info);
	*writes = sum.writes;
	return sum.flight == info.parked;
}

static void judge_loss(struct ibnbd_disk *d)
{
	disk_say(d, "%s, and the last %llu MiB written were not flushed: close the disk and open it again to accept the loss",
		 READ_ONCE(d->flush_failed) ?
		 "a flush failed on the server, which may have dropped the unwritten data" :
		 "the server may have lost its disk's write cache",
		 (unsigned long long)((disk_account_unflushed(d) + (1u << 20) - 1) >> 20));
	disk_post(d, IBNBD_DEV_EV_FENCE, NULL);
}

bool disk_judge_answer(struct ibnbd_disk *d, const struct disk_grant *g)
{
	bool other, held, lost, kept, writes = false;
	enum ibnbd_remap verdict;
	const char *why;

	if (disk_judge_at_large(d, g)) {
		disk_ask_later(d, DISK_HELD_MS);
		return false;
	}
	d->at_large.resent = false;
	other = judge_other_epoch(d, g);
	if (other && d->state == IBNBD_DEV_OPEN)
		disk_lose(d, "the server may have lost its disk's write cache");
	if (d->state != IBNBD_DEV_OPEN && !judge_quiet(d, &writes)) {
		disk_ask_later(d, JUDGE_SOON_MS);
		return false;
	}
	lost = other && ibnbd_unflushed_any(&d->unflushed);
	kept = lost && disk_kept_whole(d);
	held = kept || (d->state != IBNBD_DEV_OPEN && (d->access == IBNBD_ACCESS_RW || writes));
	verdict = ibnbd_remap_compare(&d->grant.rsp, &g->rsp, d->access, held, &why);
	if (verdict == IBNBD_REMAP_FENCE) {
		disk_say(d, "%s", why);
		disk_post(d, IBNBD_DEV_EV_FENCE, NULL);
	} else if (verdict == IBNBD_REMAP_RETRY) {
		disk_judge_error(d, -ENOMEDIUM, why);
	} else if (kept) {
		disk_say(d, "sending again the writes that the server may have lost");
		return disk_post(d, IBNBD_DEV_EV_REPLAY, NULL);
	} else if (lost) {
		judge_loss(d);
	} else {
		if (other)
			__atomic_store_n(&d->flush_failed, false, __ATOMIC_RELAXED);
		disk_post(d, IBNBD_DEV_EV_OPENED, g);
	}
	return false;
}
