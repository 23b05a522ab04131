// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of a client: decoded by proto/msg.h, judged by logic/access, served or refused. Each op
 * gets exactly one reply.
 *
 * IO runs in the context that request() is called in, the completion context of the transport, and
 * never sleeps here: find the open, check that the request is allowed, submit it. SESS_INFO, OPEN
 * and CLOSE go through the session's own workers, since an OPEN may take long.
 *
 * Replies are built in private memory and then copied to the chunk, which the client can write to;
 * what the client reserved beyond the reply is cleared, since all of it is sent. A refusal is an
 * error number on the wire, a rate-limited line in the log that names session, device and reason,
 * and, for an OPEN, ctl/last_error. A client that negotiated WORDS gets the same words in the
 * answer to its OPEN.
 */
#include <linux/ratelimit.h>
#include "ibnbd/logic/export.h"
#include "ibnbd/server/backing.h"
#include "ibnbd/server/export.h"
#include "ibnbd/server/io.h"
#include "ibnbd/server/msg.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/policy.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/trace.h"

/*
 * The messages of a session that are not I/O, and the works that serve them.
 *
 * SESS_INFO, OPEN and CLOSE wait in ctl_ops for one work item of the session, and are taken in the
 * order they came. It never waits for a disk, but hands each OPEN, which may, to one of the
 * session's openers: the OPENs of a client occupy IBNBD_SRV_OPENERS workers at most.
 *
 * Two OPENs of one name do not run at the same time. A client sends the second one when it has lost
 * patience with the first one, or has lost the path of the first one. The second one is refused,
 * and a later one finds the mapping once the first one has made it. The client may forget an OPEN
 * at any time (its op has IBNBD_SRV_GROUP_NONE), so an OPEN does not delay the end of a path.
 *
 * References: each queued work holds one on the session, because an opener may look for more to do
 * after its last op was answered and ibtrs has dropped the session.
 */

static struct ibnbd_srv_ctl *dispatch_ctl(struct ibtrs_srv_op *op)
{
	return &((union ibnbd_srv_priv *)op->priv)->ctl;
}

/* Take the first op off @ops; NULL: none is left, and *busy is now false. */
static struct ibtrs_srv_op *dispatch_next(struct ibnbd_srv_session *s, struct list_head *ops,
					  bool *busy)
{
	struct ibnbd_srv_ctl *ctl;

	guard(spinlock)(&s->lock);
	ctl = list_first_entry_or_null(ops, struct ibnbd_srv_ctl, link);
	if (ctl)
		list_del(&ctl->link);
	else
		*busy = false;
	return ctl ? ctl->op : NULL;
}

/* Serve a message that is not I/O, after those that came before it. */
static void dispatch_queue(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	struct ibnbd_srv_ctl *ctl = dispatch_ctl(op);

	ctl->op = op;
	guard(spinlock)(&s->lock);
	list_add_tail(&ctl->link, &s->ctl_ops);
	if (!s->ctl_queued) {
		s->ctl_queued = true;
		ibnbd_srv_session_get(s);
		queue_work(s->wq, &s->ctl_work);
	}
}

/* Have an OPEN served by the first opener that is free. */
static void dispatch_queue_open(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	struct ibnbd_srv_opener *o;

	guard(spinlock)(&s->lock);
	list_add_tail(&dispatch_ctl(op)->link, &s->open_ops);
	for (o = s->openers; o < s->openers + IBNBD_SRV_OPENERS; o++) {
		if (o->busy)
			continue;
		o->busy = true;
		ibnbd_srv_session_get(s);
		queue_work(s->wq, &o->work);
		break;
	}
}

/*
 * An opener is going to open @name, which is valid until dispatch_opened(). False: another opener
 * is opening it. If true, an opener that opened it before has published what it opened.
 */
static bool dispatch_opening(struct ibnbd_srv_session *s, struct ibnbd_srv_opener *o,
			     const char *name)
{
	struct ibnbd_srv_opener *other;
	bool free = true;

	guard(spinlock)(&s->lock);
	for (other = s->openers; other < s->openers + IBNBD_SRV_OPENERS; other++) {
		if (!other->name || !ibnbd_export_same(other->name, name))
			continue;
		other->asked_again = true;
		free = false;
	}
	if (free)
		o->name = name;
	return free;
}

/*
 * @open is in the table, pinned, or NULL: opening has failed. Called before the client is answered;
 * @answerable: it can be answered, or knows the open already.
 *
 * A client that has sent another OPEN in the meantime does not take the answer to this one, and one
 * that has lost the path does not hear it. If no later OPEN of the client finds the open, it is
 * closed.
 */
static void dispatch_opened(struct ibnbd_srv_session *s, struct ibnbd_srv_opener *o,
			    struct ibnbd_srv_open *open, bool answerable)
{
	guard(spinlock)(&s->lock);
	if (open && (o->asked_again || !answerable))
		WRITE_ONCE(open->unclaimed, jiffies ?: 1);
	o->asked_again = false;
	o->name = NULL;
}

static bool msg_reads(const struct ibtrs_srv_op *op)
{
	return op->dir == IBTRS_READ;
}

/* Decoders made sure that @len fits. */
static void msg_reply(struct ibtrs_srv_op *op, const void *reply, u32 len)
{
	if (msg_reads(op)) {
		memcpy(op->data, reply, len);
		memset(op->data + len, 0, op->data_len - len);
	}
	ibtrs_srv_op_reply(op, 0);
}

static void msg_refuse(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op, int err,
		       const char *why)
{
	pr_warn_ratelimited("session %s: bad message: %s (%d)\n", s->label, why, err);
	ibtrs_srv_op_reply(op, err);
}

/* ---- SESS_INFO ----------------------------------------------------------- */

static void msg_sess_info(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	struct ibnbd_wire_sess_info reply;
	struct ibnbd_sess_info m;
	const char *why = "";
	int err;

	err = ibnbd_msg_sess_info_decode(op->hdr, op->hdr_len, msg_reads(op), op->data_len, &m,
					 &why);
	if (err) {
		msg_refuse(s, op, err, why);
		return;
	}
	WRITE_ONCE(s->version, m.version);
	WRITE_ONCE(s->features, m.features);
	ibnbd_msg_sess_info_encode(&reply, IBNBD_MSG_SESS_INFO_RSP, &m);
	msg_reply(op, &reply, sizeof(reply));
}

/* ---- OPEN ---------------------------------------------------------------- */

static struct ibnbd_srv_open *msg_open_again(struct ibnbd_srv_open *open,
					     const struct ibnbd_open *m, const char **why)
{
	int err = ibnbd_access_reopen(open->name, open->access, m, why);

	if (!err)
		return open;
	percpu_ref_put(&open->ref);
	return ERR_PTR(err);
}

static struct ibnbd_srv_open *msg_open_new(struct ibnbd_srv_session *s, const struct ibnbd_open *m,
					   const struct ibnbd_policy_verdict *v, const char **why)
{
	struct ibnbd_srv_open *open;
	int err;

	/* Other openers may be adding maps, so ibnbd_srv_session_publish() checks again. */
	if (READ_ONCE(s->nr) >= s->max_maps)
		return ERR_PTR(-EMFILE);
	open = ibnbd_srv_open_new(s, m->name, m->access);
	if (!open)
		return ERR_PTR(-ENOMEM);
	open->exclusive = v->exclusive;
	open->beside = v->may == IBNBD_POLICY_MIGRATION;
	err = ibnbd_srv_export_open(open, why);
	if (err)
		goto put;
	percpu_ref_get(&open->ref);	/* the caller's */
	err = ibnbd_srv_session_publish(s, open);
	if (!err) {
		/* Check again: the policy or the client's addresses may have changed. */
		scoped_guard(mutex, &ibnbd_srv_export_lock)
			if (ibnbd_srv_policy_judge(open))
				return open;
		percpu_ref_put(&open->ref);
		*why = "the server's policy has changed meanwhile, and does not allow it any more";
		return ERR_PTR(-EACCES);
	}
	ibnbd_srv_export_release(open);
put:
	ibnbd_srv_open_put(open);
	return ERR_PTR(err);
}

/* Pinned by an I/O reference. */
static struct ibnbd_srv_open *msg_open_get(struct ibnbd_srv_session *s, struct ibnbd_srv_opener *o,
					   const struct ibtrs_srv_op *op,
					   const struct ibnbd_open *m, const char **why)
{
	struct ibnbd_srv_open *open, *found;
	struct ibnbd_policy_verdict v;
	bool unclaimed = true;
	int err;

	/* Before the name is looked up: a client that is denied a disk learns nothing about it. */
	ibnbd_srv_policy_of(s, NULL, m->name, &v);
	err = ibnbd_policy_open(&v, m->access, why);
	if (err)
		return ERR_PTR(err);
	if (!dispatch_opening(s, o, m->name)) {
		*why = "it is being opened already, and that has not ended";
		return ERR_PTR(-EBUSY);
	}
	found = ibnbd_srv_session_find(s, m->name, &unclaimed);
	open = found ? msg_open_again(found, m, why) : msg_open_new(s, m, &v, why);
	/* A client that was told of it once knows its number. */
	dispatch_opened(s, o, IS_ERR(open) ? NULL : open,
			!unclaimed || ibtrs_srv_op_answerable(op));
	return open;
}

/*
 * The only place where a refused OPEN gets its text: for the log, for ctl/last_error and for a
 * client that takes it. Without a reason the text is chosen by the errno. To the transport
 * an answer with a text is a success, because only a success carries data.
 */
static void msg_open_refuse(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op,
			    const struct ibnbd_open *m, int err, const char *why)
{
	struct ibnbd_wire_open_refused reply;

	if (!*why)
		why = ibnbd_access_cause(err);
	trace_ibnbd_srv_open(s->label, m->name, 0, err);
	ibnbd_srv_refuse(s->label, m->name, err, why);
	if (!m->words) {
		ibtrs_srv_op_reply(op, err);
		return;
	}
	ibnbd_msg_open_refused_encode(&reply, err, why);
	msg_reply(op, &reply, sizeof(reply));
}

/* Serve an OPEN; may sleep for as long as the disk wants. */
static void msg_open(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op,
		     struct ibnbd_srv_opener *o)
{
	struct ibnbd_wire_open_rsp_dur reply;
	struct ibnbd_srv_open *open;
	struct ibnbd_open_rsp rsp;
	const char *why = "";
	struct ibnbd_open m;
	u32 len;
	int err;

	err = ibnbd_msg_open_decode(op->hdr, op->hdr_len, msg_reads(op), op->data_len,
				    READ_ONCE(s->features), &m, &why);
	if (err) {
		msg_open_refuse(s, op, &m, err, why);
		return;
	}
	open = msg_open_get(s, o, op, &m, &why);
	if (IS_ERR(open)) {
		msg_open_refuse(s, op, &m, PTR_ERR(open), why);
		return;
	}
	ibnbd_srv_facts_describe(open, &rsp);
	rsp.device_id = open->id;
	rsp.has_identity = m.identity;
	rsp.has_durability = m.durability;
	len = ibnbd_msg_open_rsp_encode(&reply, &rsp);
	trace_ibnbd_srv_open(s->label, m.name, open->id, 0);
	percpu_ref_put(&open->ref);
	msg_reply(op, &reply, len);
}

/* ---- CLOSE --------------------------------------------------------------- */

static void msg_close(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	const char *why = "";
	bool nowait;
	u32 id;
	int err;

	err = ibnbd_msg_close_decode(op->hdr, op->hdr_len, READ_ONCE(s->features), &id, &nowait,
				     &why);
	if (err) {
		msg_refuse(s, op, err, why);
		return;
	}
	if (msg_reads(op))
		memset(op->data, 0, op->data_len);
	WRITE_ONCE(op->group, ibnbd_srv_session_group(id));
	ibnbd_srv_session_close(s, id, op, nowait);
}

/* Serve a message that is not I/O: ibnbd_srv_msg_request() has queued no other type. */
static void msg_ctl(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	const char *why = "";

	switch (ibnbd_msg_type(op->hdr, op->hdr_len, &why)) {
	case IBNBD_MSG_SESS_INFO:
		msg_sess_info(s, op);
		break;
	case IBNBD_MSG_OPEN:
		WRITE_ONCE(op->group, IBNBD_SRV_GROUP_NONE);
		dispatch_queue_open(s, op);
		break;
	case IBNBD_MSG_CLOSE:
		msg_close(s, op);
		break;
	default:
		msg_refuse(s, op, -EINVAL, why);
	}
}

/* The work of @ctl_work, of a session. */
void ibnbd_srv_dispatch_work(struct work_struct *work)
{
	struct ibnbd_srv_session *s = container_of(work, struct ibnbd_srv_session, ctl_work);
	struct ibtrs_srv_op *op;

	while ((op = dispatch_next(s, &s->ctl_ops, &s->ctl_queued))) {
		msg_ctl(s, op);
		cond_resched();		/* a client can send more as fast as they are answered */
	}
	ibnbd_srv_session_put(s);
}

/* The work of an opener. */
void ibnbd_srv_dispatch_opener_work(struct work_struct *work)
{
	struct ibnbd_srv_opener *o = container_of(work, struct ibnbd_srv_opener, work);
	struct ibnbd_srv_session *s = o->session;
	struct ibtrs_srv_op *op;

	while ((op = dispatch_next(s, &s->open_ops, &o->busy))) {
		msg_open(s, op, o);
		cond_resched();
	}
	ibnbd_srv_session_put(s);
}

/* ---- IO ------------------------------------------------------------------ */

static noinline void msg_io_refuse(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op,
				   const struct ibnbd_io *m, int err, const char *why)
{
	pr_warn_ratelimited("session %s: device %u: I/O refused: %s (%d)\n", s->label,
			    m->device_id, why, err);
	ibtrs_srv_op_reply(op, err);
}

static void msg_io(struct ibnbd_srv_session *s, struct ibtrs_srv_op *op)
{
	struct ibnbd_srv_io *io = &((union ibnbd_srv_priv *)op->priv)->io;
	struct ibnbd_io m = {};
	const char *why = "";
	int err;

	err = ibnbd_msg_io_decode(op->hdr, op->hdr_len, msg_reads(op), op->data_len,
				  READ_ONCE(s->version), &m, &why);
	if (unlikely(err)) {
		msg_io_refuse(s, op, &m, err, why);
		return;
	}
	io->op = op;
	io->open = ibnbd_srv_session_open_get(s, m.device_id);
	if (unlikely(!io->open)) {
		msg_io_refuse(s, op, &m, -ENOTCONN, "the session has no such device open");
		return;
	}
	err = ibnbd_access_io(&io->open->facts, io->open->access, &m, &why);
	if (unlikely(err)) {
		percpu_ref_put(&io->open->ref);
		msg_io_refuse(s, op, &m, err, why);
		return;
	}
	WRITE_ONCE(op->group, ibnbd_srv_session_group(m.device_id));
	trace_ibnbd_srv_io_start(io, &m);
	if (io->open->bdev)
		ibnbd_srv_blockio_submit(io, &m);
	else
		ibnbd_srv_fileio_submit(io, &m);
}

/* A request of a client (struct ibtrs_srv_ops). @op: to be answered exactly once. */
void ibnbd_srv_msg_request(void *priv, struct ibtrs_srv_op *op)
{
	struct ibnbd_srv_session *s = priv;
	const char *why = "";
	int type = ibnbd_msg_type(op->hdr, op->hdr_len, &why);

	if (likely(type == IBNBD_MSG_IO))
		msg_io(s, op);
	else if (type < 0)
		msg_refuse(s, op, type, why);
	else
		dispatch_queue(s, op);
}
