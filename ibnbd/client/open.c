// SPDX-License-Identifier: GPL-2.0-only
/*
 * OPEN, re-OPEN and CLOSE of a device.
 *
 * Called by: ctl.c (first), recover.c (again, close), its removal (close), sysfs.c (remap).
 *
 * Each exchange runs under the device's open_lock, so there is one at a time, and takes dev->lock
 * only to judge the answer. An answer is void when the session's link is not the one any more on
 * which it was asked for: the new link brings its own OPEN.
 *
 * A re-OPEN is never believed blindly: judge.c says what its answer does to the device.
 *
 * A device that has failed, and gave up requests which the server may still execute, is closed
 * there before it is opened again: the server then lets their slots serve others, and opens the
 * disk for writing only when the last of them has ended (L8). So is one whose replay was cut off:
 * what was under way may still be executed, and would come over what is sent after it.
 *
 * An administrator's remap takes a fenced device to whatever disk is there now. With users on it,
 * another disk is refused: their cached pages and the new disk's blocks would be one mixture.
 */
#include <linux/math64.h>
#include <linux/sizes.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/judge.h"
#include "ibnbd/client/kept.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/msg.h"
#include "ibnbd/client/number.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/refuse.h"
#include "ibnbd/client/replay.h"
#include "ibnbd/client/trace.h"
#include "ibnbd/client/unflushed.h"

#define OPEN_MS			5000
#define OPEN_FIRST_MS		10000
#define OPEN_CLOSE_MS		5000
#define OPEN_GIVE_UP_MS		300	/* the path may not carry anything any more */

static void open_limits_in(const struct ibnbd_clt_dev *dev, u64 features,
			   struct ibnbd_limits_in *in)
{
	struct ibtrs_clt_attrs attrs;

	ibtrs_clt_query(dev->sess->clt, &attrs);
	*in = (struct ibnbd_limits_in){
		.max_io_bytes	= min_t(u64, attrs.max_io_size, (u64)attrs.max_segments * SZ_4K),
		.max_segments	= min_t(u32, attrs.max_segments, U16_MAX),
		.features	= features,
		.write_zeroes	= dev->map.write_zeroes,
		.write_cache	= dev->map.write_cache,
	};
}

/* The server has it open now, whatever we make of the answer: CLOSE will be due. */
static void open_note(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	guard(mutex)(&dev->lock);
	if (g->gen != ibnbd_clt_link_gen(dev->sess)) {
		ibnbd_clt_dev_remote(dev, IBNBD_OPEN_EV_REFUSED);
		return;
	}
	WRITE_ONCE(dev->remote_id, g->rsp.device_id);
	ibnbd_clt_dev_remote(dev, g->features & IBNBD_FEAT_IDENTITY ? IBNBD_OPEN_EV_UNIQUE :
								      IBNBD_OPEN_EV_LINK);
}

static void open_remote(struct ibnbd_clt_dev *dev, enum ibnbd_open_event ev)
{
	guard(mutex)(&dev->lock);
	ibnbd_clt_dev_remote(dev, ev);
}

/* Ask the server, and work out what its answer means for the queue. */
static int open_ask(struct ibnbd_clt_dev *dev, struct ibnbd_clt_grant *g, unsigned int timeout_ms,
		    const char **why)
{
	struct ibnbd_limits_in in;
	int err;

	lockdep_assert_held(&dev->open_lock);
	*why = "no path to the server is up";
	if (!ibnbd_clt_link_get(dev->sess, &g->gen, &g->version, &g->features))
		return -ENOTCONN;
	/*
	 * Should it be a later one already, g->gen will not be the link's any more when the answer
	 * is judged.
	 */
	g->link_gen = ibtrs_clt_gen(dev->sess->clt);
	open_remote(dev, IBNBD_OPEN_EV_ASK);
	err = ibnbd_clt_msg_open(dev->sess->clt, dev->map.device_path, dev->map.access_mode,
				 g->features, &g->rsp, timeout_ms, &dev->said, why);
	if (err && err != -ETIMEDOUT && err != -EINTR && err != -ECONNRESET)
		open_remote(dev, IBNBD_OPEN_EV_REFUSED);
	if (!err) {
		open_note(dev, g);
		open_limits_in(dev, g->features, &in);
		err = ibnbd_limits_build(&g->rsp, &in, &g->lim, why);
		if (!err && g->lim.capped)
			pr_warn_ratelimited("%s of session %s: the server says of the disk: %s\n",
					    dev->map.device_path, dev->map.sessname,
					    g->lim.capped);
	}
	trace_ibnbd_clt_dev_open(dev, g->gen, err, *why);
	return err;
}

int ibnbd_clt_open_first(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_grant g;
	const char *why;
	int err;

	ibnbd_clt_link_join(dev->sess, dev);
	guard(mutex)(&dev->open_lock);
	why = NULL;
	/* What this session had there before is closed first, above all when it was this disk. */
	err = ibnbd_clt_link_settle(dev->sess) ?: open_ask(dev, &g, OPEN_FIRST_MS, &why);
	if (!err && ibnbd_clt_unflushed_keeps(dev, &g) &&
	    ibnbd_clt_kept_pool_get(dev->sess, dev->map.retain_mb))
		pr_warn("%s: no memory for retain_mb=%d: a device that may have lost writes is fenced\n",
			dev->sess->name, dev->map.retain_mb);
	ibtrs_clt_news_fault(dev->sess->clt);
	guard(mutex)(&dev->lock);
	if (!err && g.gen != ibnbd_clt_link_gen(dev->sess))
		err = -ECONNRESET;
	if (err)
		return ibnbd_clt_refuse(err, "cannot open %s on session %s (%d): %s%s",
					dev->map.device_path, dev->map.sessname, err,
					ibnbd_clt_judge_who(dev, why),
					ibnbd_clt_judge_word(err, why));
	if (!ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_OPENED, &g))
		return -ENODEV;
	return 0;
}

/*
 * Send again what the server may have lost. Should the link go meanwhile the next one starts over:
 * the disk still lives by the old grant. So it does after a call that was not answered.
 */
static void open_resend(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	bool at_large;
	int err = ibnbd_clt_replay(dev, g, &at_large);

	guard(mutex)(&dev->lock);
	dev->resend_at_large = at_large;
	dev->resend_id = g->rsp.device_id;
	if (dev->state != IBNBD_DEV_REPLAYING || g->gen != ibnbd_clt_link_gen(dev->sess))
		return;
	if (!err) {
		WRITE_ONCE(dev->replays, dev->replays + 1);
		ibnbd_clt_unflushed_made_good(dev);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_OPENED, g);
	} else if (err == -ETIMEDOUT) {
		ibnbd_clt_dev_say(dev, "what the server may have lost was sent again, and not answered");
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_OPEN_LATE, NULL);	/* L4 */
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_FAILED);
	} else if (ibnbd_clt_msg_unreached(err)) {
		/* Held again: there hold= and L4 have their clocks. */
		ibnbd_clt_dev_lose(dev, "what the server may have lost could not all be sent again");
		ibnbd_clt_dev_arm_late(dev);
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_HELD);
	} else {
		ibnbd_clt_dev_say(
			dev,
			"what the server may have lost can not be written again (%d): remap_device takes that loss",
			err);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
	}
}

/* Is this link's server one of ours, which gives no number twice? */
static bool open_ids_are_new(struct ibnbd_clt_dev *dev, u32 *gen)
{
	u64 features;
	u8 version;

	return ibnbd_clt_link_get(dev->sess, gen, &version, &features) &&
	       features & IBNBD_FEAT_IDENTITY;
}

static void open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in, bool nowait,
		       unsigned int timeout_ms)
{
	bool due, once;
	u32 id, gen;

	lockdep_assert_held(&dev->open_lock);
	/* A number of an earlier link is for a server that gives none twice. */
	once = open_ids_are_new(dev, &gen);
	mutex_lock(&dev->lock);
	once = once && gen == ibnbd_clt_link_gen(dev->sess);
	due = ibnbd_open_sm_can_close(dev->remote, once) && dev->state == only_in &&
	      ibnbd_clt_link_up(dev->sess);
	/* One that is repeated has had its time for the disk. */
	nowait |= !ibnbd_open_sm_is_open(dev->remote);
	if (due)
		ibnbd_clt_dev_remote(dev, IBNBD_OPEN_EV_CLOSE);
	id = dev->remote_id;
	mutex_unlock(&dev->lock);
	if (!due ||
	    ibnbd_clt_msg_unreached(ibnbd_clt_msg_close(dev->sess->clt, id, nowait, timeout_ms)))
		return;
	open_remote(dev, IBNBD_OPEN_EV_CLOSED);
}

/* Goes by the answer. True as ibnbd_clt_judge_answer(). */
static bool open_answered(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g, bool resized,
			  int err, const char *why)
{
	guard(mutex)(&dev->lock);
	/* A new link brings its own OPEN; without one there is nobody to ask. */
	if (g->gen != ibnbd_clt_link_gen(dev->sess) || !ibnbd_clt_link_up(dev->sess))
		return false;
	if (dev->state == IBNBD_DEV_UNMAPPED)
		return false;
	if (!err)
		return ibnbd_clt_judge_answer(dev, g);
	ibnbd_clt_judge_error(dev, err, why);
	/* A server that told us of a new size does not repeat it. */
	if (resized && dev->state == IBNBD_DEV_OPEN && ibnbd_clt_msg_unreached(err)) {
		set_bit(IBNBD_CLT_NEWS_RESIZED, &dev->news);
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_FAILED);
	}
	return false;
}

void ibnbd_clt_open_again(struct ibnbd_clt_dev *dev, bool resized)
{
	enum ibnbd_dev_state state;
	struct ibnbd_clt_grant g;
	const char *why;
	bool at_large;
	int err;

	guard(mutex)(&dev->open_lock);
	state = READ_ONCE(dev->state);
	if (!ibnbd_dev_sm_holds(state) && state != IBNBD_DEV_FAILED &&
	    !(state == IBNBD_DEV_OPEN &&
	      (resized || READ_ONCE(dev->no_writes) || READ_ONCE(dev->limits_due))))
		return;
	err = open_ask(dev, &g, OPEN_MS, &why);
	mutex_lock(&dev->lock);
	at_large = !err && (ibnbd_clt_judge_at_large(dev, &g));
	state = dev->state;
	mutex_unlock(&dev->lock);
	if (at_large) {
		open_close(dev, state, true, OPEN_CLOSE_MS);
		err = open_ask(dev, &g, OPEN_MS, &why);
	}
	if (open_answered(dev, &g, resized, err, why))
		open_resend(dev, &g);
}

/*
 * An OPEN without an answer may have been done all the same. Asked again the server says as what,
 * for it gives one mapping to each name.
 */
static void open_find_out(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_grant g;
	const char *why;
	bool doubt;

	mutex_lock(&dev->lock);
	doubt = ibnbd_open_sm_in_doubt(dev->remote) && dev->state == IBNBD_DEV_UNMAPPED;
	mutex_unlock(&dev->lock);
	if (doubt && open_ask(dev, &g, OPEN_CLOSE_MS, &why))
		pr_warn("%s of session %s: the server has not said whether it has opened it; an older one may keep it until the session ends\n",
			dev->map.device_path, dev->map.sessname);
}

void ibnbd_clt_open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in)
{
	guard(mutex)(&dev->open_lock);
	open_find_out(dev);
	open_close(dev, only_in, false, OPEN_CLOSE_MS);
}

void ibnbd_clt_open_give_up(struct ibnbd_clt_dev *dev)
{
	u32 gen;

	/* Another server may take a CLOSE amid requests amiss, and gains nothing by it. */
	if (!open_ids_are_new(dev, &gen))
		return;
	/* An OPEN that is out may take longer than we have. */
	if (!mutex_trylock(&dev->open_lock))
		return;
	open_close(dev, IBNBD_DEV_UNMAPPED, true, OPEN_GIVE_UP_MS);
	mutex_unlock(&dev->open_lock);
}

/* Remapping to another disk under the feet of its users would mix two disks in one page cache. */
static int open_remap_check(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	const char *why;

	if (!ibnbd_clt_number_openers(dev->number) ||
	    ibnbd_remap_compare(&dev->grant.rsp, &g->rsp, dev->map.access_mode, false, &why) !=
		    IBNBD_REMAP_FENCE)
		return 0;
	return ibnbd_clt_refuse(-EBUSY, "ibnbd%d: %s: close its users before remapping", dev->index,
				why);
}

/*
 * Before anything is written again: that is none of what is lost. Of a server that names no epoch
 * nobody knows whether this is the disk that has been written to. dev->lock is held.
 */
static void open_remap_loss(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	u64 kib = DIV_ROUND_UP_ULL(ibnbd_clt_unflushed_bytes(dev), SZ_1K);

	if (!ibnbd_clt_unflushed_lost(dev, g) &&
	    !(dev->state == IBNBD_DEV_FENCED && !g->rsp.has_durability &&
	      ibnbd_unflushed_any(&dev->unflushed)))
		return;
	ibnbd_clt_unflushed_accept(dev);
	pr_warn("ibnbd%d: remapped: %llu KiB that no flush had covered count as lost\n", dev->index,
		kib);
}

static int open_remap_state(struct ibnbd_clt_dev *dev)
{
	switch (READ_ONCE(dev->state)) {
	case IBNBD_DEV_INIT:
		return -EBUSY;
	case IBNBD_DEV_OPEN:
		return READ_ONCE(dev->no_writes) ? 0 : -EALREADY;
	case IBNBD_DEV_UNMAPPED:
		return -ENODEV;
	default:
		return 0;
	}
}

/* Does the device need nobody to give up anything: all that may be lost is kept? */
static bool open_remap_resends(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	guard(mutex)(&dev->lock);
	return dev->state != IBNBD_DEV_FENCED && g->gen == ibnbd_clt_link_gen(dev->sess) &&
	       ibnbd_clt_judge_resends(dev, g);
}

/* As it would do by itself some seconds later. */
static int open_remap_resend(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	if (open_answered(dev, g, false, 0, NULL))
		open_resend(dev, g);
	guard(mutex)(&dev->lock);
	if (dev->state == IBNBD_DEV_OPEN)
		return 0;
	return ibnbd_clt_refuse(-EAGAIN, "ibnbd%d: %s", dev->index, dev->reason);
}

/* Has @g to be closed first, and in which state is the device? */
static bool open_resent_state(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g,
			      enum ibnbd_dev_state *state)
{
	guard(mutex)(&dev->lock);
	*state = dev->state;
	return ibnbd_clt_judge_resent(dev, g);
}

int ibnbd_clt_open_remap(struct ibnbd_clt_dev *dev)
{
	enum ibnbd_dev_state state;
	struct ibnbd_clt_grant g;
	const char *why;
	int err;

	if (mutex_lock_killable(&dev->open_lock))
		return -EINTR;
	err = open_remap_state(dev);
	if (err)
		goto unlock;
	err = open_ask(dev, &g, OPEN_FIRST_MS, &why);
	if (!err && open_resent_state(dev, &g, &state)) {
		open_close(dev, state, true, OPEN_CLOSE_MS);
		err = open_ask(dev, &g, OPEN_FIRST_MS, &why);
	}
	if (err) {
		ibnbd_clt_refuse(err, "ibnbd%d: cannot open the disk again (%d): %s%s", dev->index,
				 err, ibnbd_clt_judge_who(dev, why),
				 ibnbd_clt_judge_word(err, why));
		goto close;
	}
	if (open_remap_resends(dev, &g)) {
		err = open_remap_resend(dev, &g);
		goto unlock;
	}
	mutex_lock(&dev->lock);
	if (g.gen != ibnbd_clt_link_gen(dev->sess))
		err = -ECONNRESET;
	err = err ?: open_remap_check(dev, &g);
	if (!err) {
		dev->no_writes = false;
		dev->resend_at_large = false;
		open_remap_loss(dev, &g);
		err = ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_REMAPPED, &g) ? 0 : -ENODEV;
	}
	mutex_unlock(&dev->lock);
close:
	/* Refused: the server must not keep a disk open, perhaps for writing, that nobody uses. */
	if (err)
		open_close(dev, IBNBD_DEV_FENCED, false, OPEN_CLOSE_MS);
unlock:
	mutex_unlock(&dev->open_lock);
	return err;
}
