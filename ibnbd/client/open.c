// SPDX-License-Identifier: GPL-2.0-only
/*
 * OPEN, re-OPEN and CLOSE of a device.
 *
 * Each exchange with the server runs under the device's open_lock, so there is one at a time. It
 * takes dev->lock only to judge the answer. An answer is void if the session's link has changed
 * since the question was sent: each new link sends its own OPEN.
 *
 * A message may wait for a slot while the link changes. So OPEN and CLOSE are bound to the link for
 * which they were meant (ibtrs_clt_gen()): on another link nothing is sent, as if no path was up.
 * Otherwise an OPEN might come before SESS_INFO of the new link, and a CLOSE with an id of the old
 * link might close another disk. A CLOSE that is not sent is repeated if the id is unique;
 * otherwise the server has forgotten the disk with the link.
 */
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/trace.h"
#include "ibnbd/client/unflushed.h"

#define OPEN_MS			5000
#define OPEN_FIRST_MS		10000
#define OPEN_CLOSE_MS		5000
#define OPEN_GIVE_UP_MS		300	/* the path may be dead */
#define REMAP_CLOSE_POLL_MS	50
#define REMAP_CLOSE_POLLS	20

static void open_limits_in(const struct ibnbd_clt_dev *dev, u64 features,
			   struct ibnbd_limits_in *in)
{
	const struct ibtrs_clt_attrs *a = &dev->sess->attrs;

	*in = (struct ibnbd_limits_in){
		.max_io_bytes	= min_t(u64, a->max_io_size, (u64)a->max_segments * SZ_4K),
		.max_segments	= min_t(u32, a->max_segments, U16_MAX),
		.features	= features,
		.write_zeroes	= dev->map.write_zeroes,
		.write_cache	= dev->map.write_cache,
	};
}

/* The server has the disk open now, so a CLOSE will be due, even if we refuse the answer. */
static void open_note(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	guard(mutex)(&dev->lock);
	if (g->gen != ibnbd_clt_link_gen(dev->sess)) {
		ibnbd_clt_dev_remote(dev, IBNBD_OPEN_EV_REFUSED);
		return;
	}
	WRITE_ONCE(dev->remote_id, g->rsp.device_id);
	dev->remote_gen = g->link_gen;
	ibnbd_clt_dev_remote(dev, g->features & IBNBD_FEAT_IDENTITY ? IBNBD_OPEN_EV_UNIQUE :
								      IBNBD_OPEN_EV_LINK);
}

static void open_remote(struct ibnbd_clt_dev *dev, enum ibnbd_open_event ev)
{
	guard(mutex)(&dev->lock);
	ibnbd_clt_dev_remote(dev, ev);
}

/*
 * The block size of a disk in use does not change. An administrator who remaps a fenced device that
 * nobody uses takes the server's disk as it is.
 */
static void open_keep_block(struct ibnbd_clt_dev *dev, struct ibnbd_open_rsp *rsp)
{
	if (READ_ONCE(dev->state) != IBNBD_DEV_FENCED || ibnbd_clt_number_openers(dev->number))
		ibnbd_limits_keep_block(&dev->grant.rsp, rsp);
}

/* Sends OPEN and computes the queue limits from the answer. */
static int open_ask(struct ibnbd_clt_dev *dev, struct ibnbd_clt_grant *g, unsigned int timeout_ms,
		    const char **why)
{
	struct ibnbd_limits_in in;
	int err;

	lockdep_assert_held(&dev->open_lock);
	*why = "no path to the server is up";
	/*
	 * In this order link_gen is not later than g->gen: a link of which link_get() has not heard
	 * was announced as down before, and link_get() says no. If it is earlier, OPEN is not sent.
	 */
	g->link_gen = ibtrs_clt_gen(dev->sess->clt);
	if (!ibnbd_clt_link_get(dev->sess, &g->gen, &g->version, &g->features))
		return -ENOTCONN;
	open_remote(dev, IBNBD_OPEN_EV_ASK);
	err = ibnbd_clt_link_send_open(dev, g, timeout_ms, why);
	if (err && !ibtrs_clt_call_unanswered(err))
		open_remote(dev, IBNBD_OPEN_EV_REFUSED);
	if (!err) {
		open_note(dev, g);
		open_keep_block(dev, &g->rsp);
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
	/*
	 * First close what removed devices of this session left open, above all if it was this
	 * disk.
	 */
	err = ibnbd_clt_link_settle(dev->sess) ?: open_ask(dev, &g, OPEN_FIRST_MS, &why);
	if (!err && ibnbd_clt_unflushed_keeps(dev, &g) == IBNBD_CLT_KEEPS_DATA &&
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
		return ibnbd_clt_refuse(-ENODEV, "cannot open %s on session %s (%d): %s",
					dev->map.device_path, dev->map.sessname, -ENODEV,
					dev->reason[0] ? dev->reason : "it was unmapped meanwhile");
	return 0;
}

/*
 * Sends again what the server may have lost. If the link goes down during the replay, the next link
 * starts it again: the device still uses the old grant. The replay also starts again after a call
 * that was not answered.
 */
static void open_resend(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	bool at_large;
	int err = ibnbd_clt_replay(dev, g, &at_large);

	guard(mutex)(&dev->lock);
	dev->at_large.resent = at_large;
	dev->at_large.resent_id = g->rsp.device_id;
	if (dev->state != IBNBD_DEV_REPLAYING || g->gen != ibnbd_clt_link_gen(dev->sess))
		return;
	if (!err) {
		WRITE_ONCE(dev->replays, dev->replays + 1);
		ibnbd_clt_unflushed_made_good(dev);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_OPENED, g);
	} else if (ibnbd_clt_link_unreached(err)) {
		/* The device is held again: hold= limits the time in this state. */
		ibnbd_clt_dev_lose(
			dev, err == -ETIMEDOUT ?
				"the server did not answer the writes that were sent again" :
				"not all writes that the server may have lost could be sent again");
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_HELD);
	} else {
		ibnbd_clt_dev_say(
			dev,
			"the writes that the server may have lost cannot be repeated (%d): remap_device accepts the loss",
			err);
		ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_FENCE, NULL);
	}
}

/*
 * Is the server of this link one of ours, which never gives an id twice? *@gen, *@link_gen: the
 * link, as in struct ibnbd_clt_grant.
 */
static bool open_ids_are_new(struct ibnbd_clt_dev *dev, u32 *gen, u32 *link_gen)
{
	u64 features;
	u8 version;

	*link_gen = ibtrs_clt_gen(dev->sess->clt);	/* first: see open_ask() */
	return ibnbd_clt_link_get(dev->sess, gen, &version, &features) &&
	       features & IBNBD_FEAT_IDENTITY;
}

static void open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in, bool nowait,
		       unsigned int timeout_ms)
{
	u32 id, gen, link_gen;
	bool due, once;
	int err;

	lockdep_assert_held(&dev->open_lock);
	/* The id of an earlier link may be sent only to a server that never gives an id twice. */
	once = open_ids_are_new(dev, &gen, &link_gen);
	mutex_lock(&dev->lock);
	once = once && gen == ibnbd_clt_link_gen(dev->sess);
	due = ibnbd_open_sm_can_close(dev->remote, once) && dev->state == only_in &&
	      ibnbd_clt_link_up(dev->sess);
	/* A repeated CLOSE does not wait for the disk, which has had its time. */
	nowait |= !ibnbd_open_sm_is_open(dev->remote);
	/* The device may not have heard yet that the link of its id went down. */
	if (ibnbd_open_sm_is_open(dev->remote))
		link_gen = dev->remote_gen;
	if (due)
		ibnbd_clt_dev_remote(dev, IBNBD_OPEN_EV_CLOSE);
	id = dev->remote_id;
	mutex_unlock(&dev->lock);
	if (!due)
		return;
	err = ibnbd_clt_link_send_close(dev->sess->clt, link_gen, id, nowait, timeout_ms);
	if (ibnbd_clt_link_unreached(err))
		return;
	open_remote(dev, IBNBD_OPEN_EV_CLOSED);
}

/* Acts on the answer to OPEN. Return: as ibnbd_clt_judge_answer(). */
static bool open_answered(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g, bool resized,
			  int err, const char *why)
{
	guard(mutex)(&dev->lock);
	/* A new link sends its own OPEN; without a link there is no server to ask. */
	if (g->gen != ibnbd_clt_link_gen(dev->sess) || !ibnbd_clt_link_up(dev->sess))
		return false;
	if (dev->state == IBNBD_DEV_UNMAPPED)
		return false;
	if (!err)
		return ibnbd_clt_judge_answer(dev, g);
	ibnbd_clt_judge_error(dev, err, why);
	/* The server does not repeat its news of a new size, so ask again later. */
	if (resized && dev->state == IBNBD_DEV_OPEN && ibnbd_clt_link_unreached(err)) {
		set_bit(IBNBD_CLT_NEWS_RESIZED, &dev->news);
		ibnbd_clt_dev_ask_later(dev, IBNBD_CLT_RETRY_FAILED);
	}
	return false;
}

/*
 * As open_ask(). But if the server may still execute requests that were given up, or a replay that
 * was cut off, in the mapping that it answers with (@at_large), the mapping is closed first. The
 * server then frees their slots, and opens the disk for writing only when they have ended (L8).
 */
static int open_ask_anew(struct ibnbd_clt_dev *dev, struct ibnbd_clt_grant *g,
			 unsigned int timeout_ms,
			 bool (*at_large)(const struct ibnbd_clt_dev *dev,
					  const struct ibnbd_clt_grant *g),
			 const char **why)
{
	enum ibnbd_dev_state state;
	bool anew;
	int err;

	err = open_ask(dev, g, timeout_ms, why);
	if (err)
		return err;
	mutex_lock(&dev->lock);
	anew = at_large(dev, g);
	state = dev->state;
	mutex_unlock(&dev->lock);
	if (!anew)
		return 0;
	open_close(dev, state, true, OPEN_CLOSE_MS);
	return open_ask(dev, g, timeout_ms, why);
}

void ibnbd_clt_open_again(struct ibnbd_clt_dev *dev, bool resized)
{
	enum ibnbd_dev_state state;
	struct ibnbd_clt_grant g;
	const char *why;
	int err;

	guard(mutex)(&dev->open_lock);
	state = READ_ONCE(dev->state);
	if (!ibnbd_dev_sm_holds(state) && state != IBNBD_DEV_FAILED &&
	    !(state == IBNBD_DEV_OPEN && (resized || ibnbd_clt_dev_asks(dev))))
		return;
	err = open_ask_anew(dev, &g, OPEN_MS, ibnbd_clt_judge_at_large, &why);
	if (open_answered(dev, &g, resized, err, why))
		open_resend(dev, &g);
}

/*
 * The server may have done an OPEN that was not answered. Ask again: the server gives one mapping
 * to each name, so its answer tells the id of that mapping.
 */
static void open_find_out(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_grant g;
	const char *why;
	bool doubt = false;

	scoped_guard(mutex, &dev->lock)
		doubt = ibnbd_open_sm_in_doubt(dev->remote) && dev->state == IBNBD_DEV_UNMAPPED;
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
	u32 gen, link_gen;

	/*
	 * A server that is not ours may handle a CLOSE amid requests wrongly, and gains nothing by
	 * it.
	 */
	if (!open_ids_are_new(dev, &gen, &link_gen))
		return;
	/* The holder waits for the server's answer, maybe for longer than we can wait. */
	if (!mutex_trylock(&dev->open_lock))
		return;
	open_close(dev, IBNBD_DEV_UNMAPPED, true, OPEN_GIVE_UP_MS);
	mutex_unlock(&dev->open_lock);
}

static int open_remap_used(const struct ibnbd_clt_dev *dev, const char *why)
{
	return ibnbd_clt_refuse(
		-EBUSY, "ibnbd%d is in use: unmount it, or take it out of its array, before remapping: %s",
		dev->index, why);
}

/*
 * A fenced device is not remapped under users, whatever the reason. What they know of the disk (the
 * page cache, md's bitmap, a mounted file system) would be mixed with blocks that are others now.
 * udev has each disk open for a moment, also when it is fenced.
 */
static int open_remap_fenced(struct ibnbd_clt_dev *dev)
{
	unsigned int polls = REMAP_CLOSE_POLLS;

	while (READ_ONCE(dev->state) == IBNBD_DEV_FENCED &&
	       ibnbd_clt_number_openers(dev->number) && polls--)
		msleep(REMAP_CLOSE_POLL_MS);
	guard(mutex)(&dev->lock);
	if (dev->state != IBNBD_DEV_FENCED || !ibnbd_clt_number_openers(dev->number))
		return 0;
	return open_remap_used(dev, dev->reason);
}

/*
 * If the server names no epoch, it is not known whether this is the disk that has been written to.
 * dev->lock is held.
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
		return ibnbd_clt_dev_takes_writes(dev) ? -EALREADY : 0;
	case IBNBD_DEV_UNMAPPED:
		return -ENODEV;
	default:
		return 0;
	}
}

/* Do now what the device would do by itself some seconds later. */
static int open_remap_judge(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	if (open_answered(dev, g, false, 0, NULL))
		open_resend(dev, g);
	guard(mutex)(&dev->lock);
	if (dev->state == IBNBD_DEV_OPEN)
		return 0;
	return ibnbd_clt_refuse(-EAGAIN, "ibnbd%d: %s", dev->index, dev->reason);
}

/*
 * The disk of @g becomes the device's. The loss is accepted before anything is written again: new
 * writes are not part of it.
 */
static int open_remap_take(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g)
{
	const char *why;

	guard(mutex)(&dev->lock);
	if (g->gen != ibnbd_clt_link_gen(dev->sess))
		return -ECONNRESET;
	ibnbd_clt_disk_other_writer(dev, g);
	why = ibnbd_clt_judge_users(dev, g);
	if (why)
		return open_remap_used(dev, why);
	WRITE_ONCE(dev->at_large.given_up, ibnbd_given_up_ended(dev->at_large.given_up));
	dev->at_large.resent = false;
	open_remap_loss(dev, g);
	ibnbd_clt_unflushed_made_good(dev);
	return ibnbd_clt_dev_post(dev, IBNBD_DEV_EV_REMAPPED, g) ? 0 : -ENODEV;
}

int ibnbd_clt_open_remap(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_grant g;
	const char *why;
	bool itself = false;
	int err;

	if (mutex_lock_killable(&dev->open_lock))
		return -EINTR;
	err = open_remap_state(dev) ?: open_remap_fenced(dev);
	if (err)
		goto unlock;
	err = open_ask_anew(dev, &g, OPEN_FIRST_MS, ibnbd_clt_judge_resent, &why);
	if (err) {
		ibnbd_clt_refuse(err, "ibnbd%d: cannot open the disk again (%d): %s%s", dev->index,
				 err, ibnbd_clt_judge_who(dev, why),
				 ibnbd_clt_judge_word(err, why));
		goto close;
	}
	scoped_guard(mutex, &dev->lock)
		itself = g.gen == ibnbd_clt_link_gen(dev->sess) && ibnbd_clt_judge_itself(dev, &g);
	if (itself) {
		err = open_remap_judge(dev, &g);
		goto unlock;
	}
	err = open_remap_take(dev, &g);
close:
	/*
	 * The remap was refused: the server must not keep a disk open that is not used, perhaps for
	 * writing.
	 */
	if (err)
		open_close(dev, IBNBD_DEV_FENCED, false, OPEN_CLOSE_MS);
unlock:
	mutex_unlock(&dev->open_lock);
	return err;
}
