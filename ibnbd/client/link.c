// SPDX-License-Identifier: GPL-2.0-only
/*
 * How link news gets from the transport to the devices of a session; and the three messages other
 * than I/O, each of which waits for its answer, killable and for a limited time.
 *
 * Locking: ev_lock (any context) protects what the callbacks write; s->lock protects the list of
 * devices and the negotiated features. s->lock is taken before the devices' locks, and no message
 * is sent under it. The work may run while memory is reclaimed through our disks, so it allocates
 * NOIO.
 *
 * Failure: SESS_INFO that is not answered is asked again every second while the link is up; devices
 * whose I/O waits meanwhile give up by their own timers (hold=).
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/trace.h"

#define LINK_NEWS_INFO	8	/* beside the bits of enum ibtrs_clt_link_ev */
#define LINK_INFO_RETRY	msecs_to_jiffies(1000)
#define LINK_CLOSE_MS	3000
#define LINK_INFO_MS	3000

/* ---- messages ---- */

bool ibnbd_clt_link_unreached(int err)
{
	return err == -ENOTCONN || err == -ECONNRESET || err == -ETIMEDOUT || err == -EINTR ||
	       err == -ENOMEM;
}

static int link_send_info(struct ibtrs_clt *clt, struct ibnbd_sess_info *out, const char **why)
{
	const struct ibnbd_sess_info offer = {
		.version	= IBNBD_PROTO_MAJOR,
		/* all that this client knows */
		.features	= IBNBD_FEAT_KNOWN,
	};
	struct ibnbd_wire_sess_info req, rsp;
	int err;

	*why = NULL;
	ibnbd_msg_sess_info_encode(&req, IBNBD_MSG_SESS_INFO, &offer);
	err = ibtrs_clt_call(clt, 0, IBTRS_READ, &req, sizeof(req), &rsp, sizeof(rsp),
			     LINK_INFO_MS);
	if (err)
		return err;
	return ibnbd_msg_sess_info_rsp_decode(&rsp, sizeof(rsp), offer.features, out, why);
}

int ibnbd_clt_link_send_open(struct ibnbd_clt_dev *dev, struct ibnbd_clt_grant *g,
			     unsigned int timeout_ms, const char **why)
{
	const struct ibnbd_map *map = &dev->map;
	const struct ibnbd_open m = { .access = map->access_mode, .name = map->device_path };
	union {
		struct ibnbd_wire_open_rsp_dur rsp;
		struct ibnbd_wire_open_refused refused;
	} answer;
	u32 len = ibnbd_msg_open_room(g->features);
	struct ibnbd_wire_open req;
	int err;

	*why = NULL;
	err = ibnbd_msg_open_encode(&req, &m);
	if (err)
		return err;
	err = ibtrs_clt_call(dev->sess->clt, g->link_gen, IBTRS_READ, &req, sizeof(req), &answer,
			     len, timeout_ms);
	if (err)
		return err;
	if (g->features & IBNBD_FEAT_WORDS &&
	    ibnbd_msg_open_refused_decode(&answer, len, &dev->said)) {
		if (dev->said.text[0])
			*why = dev->said.text;
		return dev->said.err;
	}
	return ibnbd_msg_open_rsp_decode(&answer, len, g->features, PAGE_SIZE, &g->rsp, why);
}

int ibnbd_clt_link_send_close(struct ibtrs_clt *clt, u32 link_gen, u32 device_id, bool nowait,
			      unsigned int timeout_ms)
{
	struct ibnbd_wire_close req;

	ibnbd_msg_close_encode(&req, device_id, nowait);
	return ibtrs_clt_call(clt, link_gen, IBTRS_WRITE, &req, sizeof(req), NULL, 0, timeout_ms);
}

/* ---- news ---- */

static void link_news(void *priv, enum ibtrs_clt_link_ev ev)
{
	struct ibnbd_clt_session *s = priv;

	guard(spinlock_irqsave)(&s->ev_lock);
	if (ev != IBTRS_CLT_LINK_REPLAY) {
		s->gen++;
		s->up = ev == IBTRS_CLT_LINK_UP;
	}
	s->news |= BIT(ev);
	trace_ibnbd_clt_session_link(s, ev);
	if (s->listening)
		mod_delayed_work(s->wq, &s->link_work, 0);
}

/*
 * Protocol 8.3. Events are hints: an event that matches no device is dropped. A device that is
 * exchanging OPEN may be meant although it does not know its id yet, or its answer may be older
 * than the event: such a device asks again.
 */
static void link_event(void *priv, u32 kind, u32 id)
{
	struct ibnbd_clt_session *s = priv;
	enum ibnbd_clt_news news;
	struct ibnbd_clt_dev *dev;

	if (kind == IBNBD_EVENT_RESIZED)
		news = IBNBD_CLT_NEWS_RESIZED;
	else if (kind == IBNBD_EVENT_REVOKED)
		news = IBNBD_CLT_NEWS_REVOKED;
	else
		return;
	guard(spinlock_irqsave)(&s->ev_lock);
	list_for_each_entry(dev, &s->devs, sess_entry) {
		bool asking = mutex_is_locked(&dev->open_lock);
		bool meant;

		smp_rmb();	/* what was written under the lock */
		meant = ibnbd_open_sm_is_open(READ_ONCE(dev->remote)) &&
			(READ_ONCE(dev->remote_id) & IBNBD_EVENT_ID_MASK) == id;
		if (meant && news != IBNBD_CLT_NEWS_RESIZED)
			ibnbd_clt_dev_tell(dev, news);
		if (asking || (meant && news == IBNBD_CLT_NEWS_RESIZED))
			ibnbd_clt_dev_resized(dev);
	}
}

const struct ibtrs_clt_ops ibnbd_clt_link_ops = {
	.link	= link_news,
	.event	= link_event,
};

/* The link went down, and, if @up, came up again or for the first time. */
static void link_changed(struct ibnbd_clt_session *s, bool up)
{
	struct ibnbd_clt_dev *dev;

	guard(mutex)(&s->lock);
	list_for_each_entry(dev, &s->devs, sess_entry) {
		ibnbd_clt_dev_link_down(dev);
		if (up)
			ibnbd_clt_dev_link_up(dev);
	}
}

static void link_tell_all(struct ibnbd_clt_session *s, enum ibnbd_clt_news news)
{
	struct ibnbd_clt_dev *dev;

	guard(mutex)(&s->lock);
	list_for_each_entry(dev, &s->devs, sess_entry)
		ibnbd_clt_dev_tell(dev, news);
}

/* ---- what removed devices could not close ---- */

/* @link_gen: number of the link (ibtrs_clt_gen()); on it the server gives no device id twice. */
static int link_close_unclosed(struct ibnbd_clt_session *s, u32 link_gen)
{
	struct ibnbd_clt_unclosed *one, *next;
	int err;

	guard(mutex)(&s->unclosed_lock);
	list_for_each_entry_safe(one, next, &s->unclosed, entry) {
		/*
		 * An id that the server does not know counts as closed; this CLOSE does not wait
		 * for the disk.
		 */
		err = ibnbd_clt_link_send_close(s->clt, link_gen, one->id, true, LINK_CLOSE_MS);
		if (ibnbd_clt_link_unreached(err))
			return err;
		list_del(&one->entry);
		kfree(one);
	}
	return 0;
}

void ibnbd_clt_link_forget_unclosed(struct ibnbd_clt_session *s)
{
	struct ibnbd_clt_unclosed *one, *next;

	guard(mutex)(&s->unclosed_lock);
	list_for_each_entry_safe(one, next, &s->unclosed, entry) {
		list_del(&one->entry);
		kfree(one);
	}
}

int ibnbd_clt_link_settle(struct ibnbd_clt_session *s)
{
	u32 gen, link_gen = ibtrs_clt_gen(s->clt);	/* before link_get(), as in open.c */
	u64 features;
	u8 version;

	if (!ibnbd_clt_link_get(s, &gen, &version, &features))
		return 0;
	return link_close_unclosed(s, link_gen);
}

int ibnbd_clt_link_ask(struct ibnbd_clt_session *s, u32 gen, const char **why)
{
	u32 link_gen = ibtrs_clt_gen(s->clt);
	struct ibnbd_sess_info info;
	int err;

	err = link_send_info(s->clt, &info, why);
	if (err)
		return err;
	/* This comes before known_gen is set: no device sends OPEN until then. */
	if (info.features & IBNBD_FEAT_IDENTITY) {
		*why = "cannot close what was removed meanwhile";
		err = link_close_unclosed(s, link_gen);
		if (err)
			return err;
	} else {
		ibnbd_clt_link_forget_unclosed(s);	/* another server: other ids */
	}
	guard(mutex)(&s->lock);
	s->version = info.version;
	s->features = info.features;
	s->known_gen = gen;
	return 0;
}

static void link_ask_again(struct ibnbd_clt_session *s)
{
	guard(spinlock_irqsave)(&s->ev_lock);
	if (s->up && s->listening) {
		s->news |= BIT(LINK_NEWS_INFO);
		queue_delayed_work(s->wq, &s->link_work, LINK_INFO_RETRY);
	}
}

void ibnbd_clt_link_unclosed(struct ibnbd_clt_session *s, struct ibnbd_clt_dev *dev)
{
	dev->unclosed->id = dev->remote_id;
	scoped_guard(mutex, &s->unclosed_lock)
		list_add_tail(&dev->unclosed->entry, &s->unclosed);
	dev->unclosed = NULL;
	link_ask_again(s);
}

static void link_reopen(struct ibnbd_clt_session *s, u32 gen)
{
	const char *why;
	int err;

	err = ibnbd_clt_link_ask(s, gen, &why);
	if (err) {
		pr_warn_ratelimited(
			"%s: the server does not answer after the link came back (%d%s%s), trying again\n",
			s->name, err, why ? ": " : "", why ?: "");
		link_ask_again(s);
		return;
	}
	link_tell_all(s, IBNBD_CLT_NEWS_OPEN);
}

static void link_work_fn(struct work_struct *work)
{
	struct ibnbd_clt_session *s =
		container_of(to_delayed_work(work), struct ibnbd_clt_session, link_work);
	unsigned long news;
	bool up;
	u32 gen;

	guard(noio)();
	ibtrs_clt_news_fault(s->clt);
	spin_lock_irq(&s->ev_lock);
	news = s->news;
	s->news = 0;
	up = s->up;
	gen = s->gen;
	spin_unlock_irq(&s->ev_lock);

	if (news & (BIT(IBTRS_CLT_LINK_DOWN) | BIT(IBTRS_CLT_LINK_UP))) {
		pr_info_ratelimited("%s: link %s\n", s->name, up ? "up" : "down");
		link_changed(s, up && news & BIT(IBTRS_CLT_LINK_UP));
	}
	if (up && news & (BIT(IBTRS_CLT_LINK_UP) | BIT(LINK_NEWS_INFO)))
		link_reopen(s, gen);
	if (up && news & BIT(IBTRS_CLT_LINK_REPLAY))
		link_tell_all(s, IBNBD_CLT_NEWS_REPLAY);
}

void ibnbd_clt_link_init(struct ibnbd_clt_session *s)
{
	spin_lock_init(&s->ev_lock);
	mutex_init(&s->lock);
	mutex_init(&s->unclosed_lock);
	INIT_LIST_HEAD(&s->devs);
	INIT_LIST_HEAD(&s->unclosed);
	INIT_DELAYED_WORK(&s->link_work, link_work_fn);
	s->gen = 1;
	s->up = true;
}

void ibnbd_clt_link_listen(struct ibnbd_clt_session *s)
{
	guard(spinlock_irq)(&s->ev_lock);
	s->listening = true;
	if (s->news)
		queue_delayed_work(s->wq, &s->link_work, 0);
}

void ibnbd_clt_link_unlisten(struct ibnbd_clt_session *s)
{
	scoped_guard(spinlock_irq, &s->ev_lock)
		s->listening = false;
	cancel_delayed_work_sync(&s->link_work);
}

bool ibnbd_clt_link_get(struct ibnbd_clt_session *s, u32 *gen, u8 *version, u64 *features)
{
	guard(mutex)(&s->lock);
	guard(spinlock_irq)(&s->ev_lock);
	*gen = s->gen;
	*version = s->version;
	*features = s->features;
	return s->up && s->known_gen == *gen;
}

void ibnbd_clt_link_join(struct ibnbd_clt_session *s, struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&s->lock);
	guard(spinlock_irq)(&s->ev_lock);
	list_add_tail(&dev->sess_entry, &s->devs);
}

void ibnbd_clt_link_leave(struct ibnbd_clt_session *s, struct ibnbd_clt_dev *dev)
{
	guard(mutex)(&s->lock);
	guard(spinlock_irq)(&s->ev_lock);
	list_del_init(&dev->sess_entry);
}
