// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of a client: decoded by proto/msg.h, judged by logic/access and logic/policy, as the
 * kernel's server does (ibnbd/server/msg.c). Each op gets exactly one reply.
 *
 * An OPEN passes a worker, which opens the object, then gets a place in the export, then, if it
 * writes, is recorded. Two OPENs of one name do not run at the same time.
 */
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

#define OPEN_TRIES	3

/* What the client reserved beyond the reply is cleared, since all of it is sent. */
bool serverd_msg_reply(struct ibtrs_op *op, const void *reply, u32 len)
{
	if (op->dir == IBTRS_IO_READ) {
		memcpy(op->data, reply, len);
		memset((u8 *)op->data + len, 0, op->len - len);
	}
	return ibtrs_op_reply(op, 0);
}

static void msg_refuse(const struct serverd_session *s, struct ibtrs_op *op, int err,
		       const char *why)
{
	serverd_log("session %s: bad message: %s (%d)", s->label, why, err);
	ibtrs_op_reply(op, err);
}

static void msg_sess_info(struct serverd_session *s, struct ibtrs_op *op)
{
	struct ibnbd_wire_sess_info reply;
	struct ibnbd_sess_info m;
	const char *why = "";
	int err = ibnbd_msg_sess_info_decode(op->hdr, op->hdr_len, op->dir == IBTRS_IO_READ,
					     op->len, &m, &why);

	if (err) {
		msg_refuse(s, op, err, why);
		return;
	}
	s->version = m.version;
	s->features = m.features;
	ibnbd_msg_sess_info_encode(&reply, IBNBD_MSG_SESS_INFO_RSP, &m);
	serverd_msg_reply(op, &reply, sizeof(reply));
}

static void msg_close(struct serverd *d, struct serverd_session *s, struct ibtrs_op *op)
{
	const char *why = "";
	bool nowait;
	u32 id;
	int err = ibnbd_msg_close_decode(op->hdr, op->hdr_len, s->features, &id, &nowait, &why);

	if (err) {
		msg_refuse(s, op, err, why);
		return;
	}
	if (op->dir == IBTRS_IO_READ)
		memset(op->data, 0, op->len);
	serverd_session_close(d, s, id, op, nowait);
}

void serverd_msg(struct serverd *d, struct ibtrs_op *op)
{
	struct serverd_session *s = serverd_session_of(d, op);
	const char *why = "";
	int type;

	if (!s) {
		ibtrs_op_reply(op, -ENOMEM);
		return;
	}
	type = ibnbd_msg_type(op->hdr, op->hdr_len, &why);
	switch (type) {
	case IBNBD_MSG_IO:
		serverd_io_msg(d, s, op);
		break;
	case IBNBD_MSG_SESS_INFO:
		msg_sess_info(s, op);
		break;
	case IBNBD_MSG_OPEN:
		serverd_open_msg(d, s, op);
		break;
	case IBNBD_MSG_CLOSE:
		msg_close(d, s, op);
		break;
	default:
		msg_refuse(s, op, -EINVAL, why);
	}
}

/* ---- OPEN ------------------------------------------------------------------------ */

static const char *open_cause(int err)
{
	if (err == -EACCES || err == -EPERM)
		return "the server's file system denies it to the user of ibnbd-serverd; map it with access_mode=ro, or chown it there";
	return ibnbd_access_cause(err);
}

static void open_refuse(const struct serverd_session *s, struct ibtrs_op *op, const char *name,
			bool words, int err, const char *why)
{
	struct ibnbd_wire_open_refused reply;

	if (!*why)
		why = open_cause(err);
	serverd_log("session %s: %s refused: %s (%d)", s->label, name, why, err);
	if (!words) {
		ibtrs_op_reply(op, err);
		return;
	}
	ibnbd_msg_open_refused_encode(&reply, err, why);
	serverd_msg_reply(op, &reply, sizeof(reply));
}

static bool open_answer(struct serverd *d, struct serverd_open *open, struct ibtrs_op *op,
			bool identity, bool durability)
{
	struct ibnbd_wire_open_rsp_dur reply;
	struct ibnbd_open_rsp rsp;

	serverd_export_describe(d, open, &rsp);
	rsp.device_id = open->id;
	rsp.has_identity = identity;
	rsp.has_durability = durability;
	return serverd_msg_reply(op, &reply, ibnbd_msg_open_rsp_encode(&reply, &rsp));
}

static void open_again(struct serverd *d, struct serverd_open *open, struct ibtrs_op *op,
		       const struct ibnbd_open *m)
{
	const char *why = "";
	int err = ibnbd_access_reopen(open->name, open->access, m, &why);

	open->unclaimed = 0;
	if (err)
		open_refuse(open->session, op, m->name, m->words, err, why);
	else
		open_answer(d, open, op, m->identity, m->durability);
}

static void open_unlist(struct serverd_open *open)
{
	struct serverd_open **at = &open->session->opening;

	while (*at != open)
		at = &(*at)->next;
	*at = open->next;
}

/* It never got to the table. @open has no place, or has lost it. */
static void open_failed(struct serverd *d, struct serverd_open *open, int err, const char *why)
{
	open_unlist(open);
	open_refuse(open->session, open->op, open->name, open->words, err, why);
	serverd_backing_close(&open->b);
	serverd_open_free(open);
}

static void open_publish(struct serverd *d, struct serverd_open *open)
{
	struct ibtrs_op *op = open->op;

	if (open->session->nr >= d->conf->max_maps) {
		open->flushed = true;		/* it has not written */
		serverd_export_detach(d, open);
		open_failed(d, open, -EMFILE, "");
		return;
	}
	open_unlist(open);
	serverd_session_publish(open);
	open->op = NULL;
	/* The policy or the client's addresses may have changed meanwhile. */
	if (!serverd_session_judge(d, open))
		open_refuse(open->session, op, open->name, open->words, -EACCES,
			    "the server's policy has changed meanwhile, and does not allow it any more");
	else if (!open_answer(d, open, op, open->identity, open->durability) || open->asked_again)
		open->unclaimed = serverd_now_ms();
	open->asked_again = false;
}

static void open_kept(struct serverd *d, struct serverd_keep *keep, int err)
{
	struct serverd_open *open = (struct serverd_open *)((char *)keep -
							    offsetof(struct serverd_open, keep));

	if (err && d->conf->writer_file) {
		open->flushed = true;		/* it has not written */
		serverd_export_detach(d, open);
		open_failed(d, open, -EIO, IBNBD_RECORD_LOST);
		return;
	}
	serverd_export_kept(d, open->export, !err);
	open_publish(d, open);
}

static struct serverd_open *open_of(struct serverd_job *job)
{
	return (struct serverd_open *)((char *)job - offsetof(struct serverd_open, job));
}

static void open_run(struct serverd_job *job)
{
	serverd_backing_open(&open_of(job)->find);
}

static void open_opened(struct serverd *d, struct serverd_job *job)
{
	struct serverd_open *open = open_of(job);
	const char *why = open->find.why;
	int err = open->find.err;

	open->b = open->find.b;
	/* It may have been an earlier open of ours, which is being closed. */
	if (!err && open->b.used_here && !serverd_export_claimed(d, &open->b) &&
	    open->tries++ < OPEN_TRIES) {
		serverd_backing_close(&open->b);
		serverd_job(d, &open->job);
		return;
	}
	if (!err && open->b.id_unknown)
		serverd_log("%s: exported without an identity: it cannot be read (%s)", open->name,
			    strerror(-open->b.id_unknown));
	err = err ?: serverd_export_attach(d, open, &why);
	if (err) {
		open_failed(d, open, err, why);
		return;
	}
	open->keep.kept = open_kept;
	if (ibnbd_access_writes(open->access))
		serverd_records_keep(d, &open->keep);
	else
		open_publish(d, open);
}

static int open_new(struct serverd *d, struct serverd_session *s, struct ibtrs_op *op,
		    const struct ibnbd_open *m, const struct ibnbd_policy_verdict *v)
{
	struct serverd_open *open;

	if (s->nr >= d->conf->max_maps)
		return -EMFILE;
	open = calloc(1, sizeof(*open));
	if (!open)
		return -ENOMEM;
	open->session = s;
	open->access = m->access;
	open->exclusive = v->exclusive;
	open->beside = v->may == IBNBD_POLICY_MIGRATION;
	open->claims = v->exclusive || (ibnbd_access_writes(m->access) && d->conf->claim);
	open->identity = m->identity;
	open->durability = m->durability;
	open->words = m->words;
	open->op = op;
	ibtrs_op_may_forget(op);	/* the client asks again */
	open->b.fd = open->b.page_fd = open->b.claim_fd = -1;
	snprintf(open->name, sizeof(open->name), "%s", m->name);
	open->find.search = strdup(d->conf->search);
	snprintf(open->find.session, sizeof(open->find.session), "%s", s->name);
	snprintf(open->find.name, sizeof(open->find.name), "%s", m->name);
	open->find.io_mode = d->conf->io_mode;
	open->find.file_block = d->conf->file_block;
	open->find.writes = ibnbd_access_writes(m->access);
	open->find.claims = open->claims;
	if (!open->find.search) {
		serverd_open_free(open);
		return -ENOMEM;
	}
	open->next = s->opening;
	s->opening = open;
	open->job.run = open_run;
	open->job.done = open_opened;
	serverd_job(d, &open->job);
	return 0;
}

static bool open_is_opening(struct serverd_session *s, const char *name)
{
	struct serverd_open *o;
	bool found = false;

	for (o = s->opening; o; o = o->next) {
		if (!ibnbd_export_same(o->name, name))
			continue;
		o->asked_again = true;
		found = true;
	}
	return found;
}

void serverd_open_msg(struct serverd *d, struct serverd_session *s, struct ibtrs_op *op)
{
	struct ibnbd_policy_verdict v;
	struct serverd_open *open;
	const char *why = "";
	struct ibnbd_open m;
	int err;

	err = ibnbd_msg_open_decode(op->hdr, op->hdr_len, op->dir == IBTRS_IO_READ, op->len,
				    s->features, &m, &why);
	if (!err) {
		/* Before the lookup: a client that is denied a disk learns nothing about it. */
		serverd_session_policy(d, s, m.name, &v);
		err = ibnbd_policy_open(&v, m.access, &why);
	}
	if (!err && open_is_opening(s, m.name)) {
		why = "it is being opened already, and that has not ended";
		err = -EBUSY;
	}
	open = err ? NULL : serverd_session_named(s, m.name);
	if (open) {
		open_again(d, open, op, &m);
		return;
	}
	err = err ?: open_new(d, s, op, &m, &v);
	if (err)
		open_refuse(s, op, m.name, m.words, err, why);
}
