// SPDX-License-Identifier: GPL-2.0-only
/*
 * The messages of a session that are not I/O, and the works that serve them.
 *
 * SESS_INFO, OPEN and CLOSE wait in ctl_ops for one work item of the session, and are taken in the
 * order they came. Serving SESS_INFO or CLOSE never waits for a disk. Serving an OPEN may, for any
 * time (error recovery, a file system whose own server is away). So the work item hands it to one
 * of the session's openers: a disk that cannot be opened delays neither the other messages nor the
 * other disks, and the OPENs of a client occupy IBNBD_SRV_OPENERS workers at most.
 *
 * Two OPENs of one name do not run at the same time. A client sends the second one when it has lost
 * patience with the first one, or has lost the path of the first one. The second one is refused,
 * and a later one finds the mapping once the first one has made it. The client may forget an OPEN
 * at any time (its op has IBNBD_SRV_GROUP_NONE), so an OPEN does not delay the end of a path.
 *
 * References: each queued work holds one on the session, because an opener may look for more to do
 * after its last op was answered and ibtrs has dropped the session.
 */
#include "ibnbd/logic/export.h"
#include "ibnbd/server/dispatch.h"
#include "ibnbd/server/io.h"
#include "ibnbd/server/msg.h"
#include "ibnbd/server/session.h"

static struct ibnbd_srv_ctl *dispatch_ctl(struct ibtrs_srv_op *op)
{
	return &((union ibnbd_srv_priv *)op->priv)->ctl;
}

/* Take the first op off @ops; NULL: none is left, and *busy is now false. */
static struct ibtrs_srv_op *dispatch_next(struct ibnbd_srv_session *s, struct list_head *ops,
					  bool *busy)
{
	struct ibnbd_srv_ctl *ctl;

	spin_lock(&s->lock);
	ctl = list_first_entry_or_null(ops, struct ibnbd_srv_ctl, link);
	if (ctl)
		list_del(&ctl->link);
	else
		*busy = false;
	spin_unlock(&s->lock);
	return ctl ? ctl->op : NULL;
}

/* The work of @ctl_work, of a session. */
void ibnbd_srv_dispatch_work(struct work_struct *work)
{
	struct ibnbd_srv_session *s = container_of(work, struct ibnbd_srv_session, ctl_work);
	struct ibtrs_srv_op *op;

	while ((op = dispatch_next(s, &s->ctl_ops, &s->ctl_queued))) {
		ibnbd_srv_msg_ctl(s, op);
		cond_resched();		/* a client can send more as fast as they are answered */
	}
	ibnbd_srv_session_put(s);
}

/**
 * ibnbd_srv_dispatch_queue() - serve a message that is not I/O, after those that came before it
 * @s: session
 * @op: goes to ibnbd_srv_msg_ctl()
 */
void ibnbd_srv_dispatch_queue(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	struct ibnbd_srv_ctl *ctl = dispatch_ctl(op);

	ctl->op = op;
	spin_lock(&s->lock);
	list_add_tail(&ctl->link, &s->ctl_ops);
	if (!s->ctl_queued) {
		s->ctl_queued = true;
		ibnbd_srv_session_get(s);
		queue_work(s->wq, &s->ctl_work);
	}
	spin_unlock(&s->lock);
}

/* The work of an opener. */
void ibnbd_srv_dispatch_opener_work(struct work_struct *work)
{
	struct ibnbd_srv_opener *o = container_of(work, struct ibnbd_srv_opener, work);
	struct ibnbd_srv_session *s = o->session;
	struct ibtrs_srv_op *op;

	while ((op = dispatch_next(s, &s->open_ops, &o->busy))) {
		ibnbd_srv_msg_open(s, op, o);
		cond_resched();
	}
	ibnbd_srv_session_put(s);
}

/**
 * ibnbd_srv_dispatch_queue_open() - have an OPEN served by the first opener that is free
 * @s: session
 * @op: goes to ibnbd_srv_msg_open()
 */
void ibnbd_srv_dispatch_queue_open(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	struct ibnbd_srv_opener *o;

	spin_lock(&s->lock);
	list_add_tail(&dispatch_ctl(op)->link, &s->open_ops);
	for (o = s->openers; o < s->openers + IBNBD_SRV_OPENERS; o++) {
		if (o->busy)
			continue;
		o->busy = true;
		ibnbd_srv_session_get(s);
		queue_work(s->wq, &o->work);
		break;
	}
	spin_unlock(&s->lock);
}

/**
 * ibnbd_srv_dispatch_opening() - an opener is going to open this name
 * @s: session
 * @o: one of its openers
 * @name: valid until ibnbd_srv_dispatch_opened()
 *
 * Return: false if another opener is opening this name. If true, an opener that opened this name
 * before has published what it opened.
 */
bool ibnbd_srv_dispatch_opening(struct ibnbd_srv_session *s, struct ibnbd_srv_opener *o,
				const char *name)
{
	struct ibnbd_srv_opener *other;
	bool free = true;

	spin_lock(&s->lock);
	for (other = s->openers; other < s->openers + IBNBD_SRV_OPENERS; other++) {
		if (!other->name || !ibnbd_export_same(other->name, name))
			continue;
		other->asked_again = true;
		free = false;
	}
	if (free)
		o->name = name;
	spin_unlock(&s->lock);
	return free;
}

/**
 * ibnbd_srv_dispatch_opened() - the open is in the table, or has failed; called before the client
 * is answered
 * @s: session
 * @o: one of its openers
 * @open: pinned; NULL: opening has failed
 * @answerable: the client can be answered, or knows the open already
 *
 * A client that has sent another OPEN in the meantime does not take the answer to this one, and one
 * that has lost the path does not hear it. If no later OPEN of the client finds the open, it is
 * closed.
 */
void ibnbd_srv_dispatch_opened(struct ibnbd_srv_session *s, struct ibnbd_srv_opener *o,
			       struct ibnbd_srv_open *open, bool answerable)
{
	spin_lock(&s->lock);
	if (open && (o->asked_again || !answerable))
		WRITE_ONCE(open->unclaimed, jiffies ?: 1);
	o->asked_again = false;
	o->name = NULL;
	spin_unlock(&s->lock);
}
