// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions: what a client has open, as the kernel's server keeps it (ibnbd/server/session.c), and
 * who may come. libibtrs says of a session that it has ended when its last path is lost and its
 * last request has ended; the client comes back with the uuid of before.
 *
 * The life of an open: NEW, LIVE from publish, CLOSING from a CLOSE, a loss or the end of the
 * session on; RELEASED when its last I/O has ended, what it wrote is flushed if it was the last
 * writer, and the object is closed. Its id is free when the client has sent CLOSE, or when it was
 * lost.
 */
#include <unistd.h>
#include "ibnbd/user/serverd/serverd.h"

bool serverd_session_knows_epochs(const struct serverd_session *s)
{
	return s->features & IBNBD_FEAT_DURABILITY;
}

bool serverd_session_is_here(struct serverd *d, const struct serverd_session *s)
{
	return !s->gone && d->srv && ibtrs_srv_peers(d->srv, s->number, NULL, NULL);
}

static void session_allow(struct serverd *d, const struct serverd_session *s);

/* NAME, or NAME#2 .. while another session is there that is called so. */
static void session_label(const struct serverd *d, struct serverd_session *s)
{
	size_t len = ibnbd_linkname(s->name, '#', s->label, sizeof(s->label) - 12);
	const struct serverd_session *o;
	unsigned int n = 1;

	do {
		for (o = d->sessions; o && (o->gone || strcmp(o->label, s->label)); )
			o = o->next;
		if (o)
			snprintf(s->label + len, 12, "#%u", ++n);
	} while (o);
}

struct serverd_session *serverd_session_of(struct serverd *d, const struct ibtrs_op *op)
{
	struct serverd_session *s;

	for (s = d->sessions; s; s = s->next)
		if (s->number == op->session)
			return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->number = op->session;
	memcpy(s->uuid, op->uuid, sizeof(s->uuid));
	snprintf(s->name, sizeof(s->name), "%s", op->name);
	snprintf(s->key, sizeof(s->key), "%s", op->key);
	session_label(d, s);
	s->version = IBNBD_PROTO_MAJOR;
	s->next_id = (u32)serverd_random();
	s->next = d->sessions;
	d->sessions = s;
	session_allow(d, s);	/* the list may have changed since it was let in */
	return s;
}

static struct serverd_open **session_bucket(struct serverd_session *s, u32 id)
{
	return &s->table[id % SERVERD_BUCKETS];
}

struct serverd_open *serverd_session_find(struct serverd_session *s, u32 id)
{
	struct serverd_open *o = *session_bucket(s, id);

	while (o && o->id != id)
		o = o->next;
	return o;
}

/* The live open of this name. */
struct serverd_open *serverd_session_named(struct serverd_session *s, const char *name)
{
	struct serverd_open *o;
	unsigned int i;

	for (i = 0; i < SERVERD_BUCKETS; i++)
		for (o = s->table[i]; o; o = o->next)
			if (o->state == SERVERD_OPEN_LIVE && ibnbd_export_same(o->name, name))
				return o;
	return NULL;
}

/* Give @open its id: from here on I/O and CLOSE find it. */
void serverd_session_publish(struct serverd_open *open)
{
	struct serverd_session *s = open->session;
	struct serverd_open **bucket;

	do {
		open->id = s->next_id++ & IBNBD_EVENT_ID_MASK;
	} while (serverd_session_find(s, open->id));
	open->state = SERVERD_OPEN_LIVE;
	bucket = session_bucket(s, open->id);
	open->next = *bucket;
	*bucket = open;
	s->nr++;
	s->used = true;
}

static void session_unpublish(struct serverd_session *s, struct serverd_open *open)
{
	struct serverd_open **at = session_bucket(s, open->id);

	while (*at != open)
		at = &(*at)->next;
	*at = open->next;
	s->nr--;
}

/* ---- the end of an open ---------------------------------------------------------- */

void serverd_open_free(struct serverd_open *open)
{
	free(open->find.search);
	free(open);
}

static void open_released(struct serverd *d, struct serverd_open *open)
{
	struct ibtrs_op *op = open->op;

	open->op = NULL;
	open->state = SERVERD_OPEN_RELEASED;
	if (op)
		ibtrs_op_reply(op, 0);
	if (!open->given_up && !open->lost && !open->session->gone)
		return;
	session_unpublish(open->session, open);
	serverd_open_free(open);
}

static void open_kept(struct serverd *d, struct serverd_keep *keep, int err)
{
	open_released(d, (struct serverd_open *)((char *)keep -
						 offsetof(struct serverd_open, keep)));
}

static struct serverd_open *open_of(struct serverd_job *job)
{
	return (struct serverd_open *)((char *)job - offsetof(struct serverd_open, job));
}

static void open_close_run(struct serverd_job *job)
{
	serverd_backing_close(&open_of(job)->b);
}

static void open_close_done(struct serverd *d, struct serverd_job *job)
{
	struct serverd_open *open = open_of(job);

	open->keep.kept = open_kept;
	if (ibnbd_access_writes(open->access))
		serverd_records_keep(d, &open->keep);
	else
		open_released(d, open);
}

static void open_flush_run(struct serverd_job *job)
{
	struct serverd_open *open = open_of(job);

	open->flushed = open->flush_tried && !serverd_backing_flush(&open->b);
}

/* Of two writers that close at the same time the second one is the last only now. */
static void open_flush_done(struct serverd *d, struct serverd_job *job)
{
	struct serverd_open *open = open_of(job);

	if (serverd_export_last_writer(open) && !open->flush_tried) {
		serverd_open_release(d, open);
		return;
	}
	serverd_export_detach(d, open);
	open->job.run = open_close_run;
	open->job.done = open_close_done;
	serverd_job(d, &open->job);
}

/* No I/O of @open is left. Returns before anything has happened. */
void serverd_open_release(struct serverd *d, struct serverd_open *open)
{
	open->flush_tried = serverd_export_last_writer(open);
	if (open->b.nbd)
		serverd_nbd_unwatch(d, open->b.nbd);	/* the worker has it now */
	open->job.run = open_flush_run;
	open->job.done = open_flush_done;
	serverd_job(d, &open->job);
}

static bool open_kill(struct serverd *d, struct serverd_open *open)
{
	if (open->state != SERVERD_OPEN_LIVE)
		return false;
	open->state = SERVERD_OPEN_CLOSING;
	if (!open->ios)
		serverd_open_release(d, open);
	return true;
}

void serverd_open_put(struct serverd *d, struct serverd_open *open)
{
	if (!open->ios && open->state == SERVERD_OPEN_CLOSING)
		serverd_open_release(d, open);
}

bool serverd_open_tell(struct serverd *d, const struct serverd_open *open, u32 kind)
{
	return open->state == SERVERD_OPEN_LIVE && d->srv &&
	       !ibtrs_srv_event(d->srv, open->session->number, kind, open->id);
}

void serverd_open_lose(struct serverd *d, struct serverd_open *open, const char *why)
{
	if (open->state != SERVERD_OPEN_LIVE)
		return;
	if (!open->session->gone)
		serverd_log("session %s: %s is closed: %s", open->session->label, open->name, why);
	open->lost = true;
	open_kill(d, open);
}

void serverd_session_close(struct serverd *d, struct serverd_session *s, u32 id,
			   struct ibtrs_op *op, bool nowait)
{
	struct serverd_open *open = serverd_session_find(s, id);
	int err = 0;

	if (open && open->given_up) {
		err = -EBUSY;		/* an earlier CLOSE waits already */
	} else if (open && open->state == SERVERD_OPEN_RELEASED) {
		session_unpublish(s, open);
		serverd_open_free(open);
	} else if (open) {
		open->given_up = true;
		serverd_io_forget(open);
		if (!nowait) {
			ibtrs_op_may_forget(op);	/* it is asked again */
			open->op = op;
			op = NULL;
		}
		open_kill(d, open);
	}
	if (op)
		ibtrs_op_reply(op, err);
}

/* ---- the end of a session ---------------------------------------------------------- */

/* Has it something that it did not close? */
static bool session_left_open(const struct serverd_session *s)
{
	const struct serverd_open *o;
	unsigned int i;

	for (i = 0; i < SERVERD_BUCKETS; i++)
		for (o = s->table[i]; o; o = o->next)
			if (!o->given_up)
				return true;
	return s->left_open;
}

enum ibtrs_srv_left serverd_session_gone(void *priv, uint64_t number)
{
	struct serverd *d = priv;
	struct serverd_session *s = d->sessions;

	while (s && s->number != number)
		s = s->next;
	if (!s)
		return IBTRS_SRV_LEFT_UNUSED;
	s->gone = true;
	return session_left_open(s) ? IBTRS_SRV_LEFT_OPEN :
	       s->used ? IBTRS_SRV_LEFT_CLOSED : IBTRS_SRV_LEFT_UNUSED;
}

static void session_sweep(struct serverd *d, struct serverd_session *s)
{
	struct serverd_open *o, *next;
	unsigned int i;

	for (i = 0; i < SERVERD_BUCKETS; i++) {
		for (o = s->table[i]; o; o = next) {
			next = o->next;
			if (o->state == SERVERD_OPEN_LIVE) {
				serverd_open_lose(d, o, "its client is gone");
			} else if (o->state == SERVERD_OPEN_RELEASED) {
				session_unpublish(s, o);
				serverd_open_free(o);
			}
		}
	}
}

/* Sessions whose client is gone go when what they had open is closed. */
void serverd_sessions_reap(struct serverd *d)
{
	struct serverd_session **at = &d->sessions, *s;

	while ((s = *at)) {
		if (s->gone)
			session_sweep(d, s);
		if (!s->gone || s->nr || s->opening) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free(s);
	}
}

static void open_look(struct serverd *d, struct serverd_open *o, u64 now)
{
	u64 away = o->session->away;

	if (o->unclaimed && now > o->unclaimed + SERVERD_UNCLAIMED_MS)
		serverd_open_lose(d, o, "its client has asked for it, and not come for the answer");
	if (away && now > away + SERVERD_AWAY_MS && o->state == SERVERD_OPEN_LIVE && o->ios) {
		o->session->left_open = true;
		serverd_open_lose(d, o, "it has not ended its requests, and its client cannot come back before that");
		serverd_io_forget(o);
	}
	/* By then nothing keeps it out, so it would be back. */
	if (away && now > away + 2 * SERVERD_AWAY_MS) {
		o->session->left_open |= !o->given_up;
		serverd_open_lose(d, o, "its client is gone");
	}
}

void serverd_sessions_look(struct serverd *d)
{
	u64 now = serverd_now_ms();
	struct serverd_session *s;
	struct serverd_open *o;
	unsigned int i;

	for (s = d->sessions; s; s = s->next) {
		s->away = serverd_session_is_here(d, s) ? 0 : s->away ?: now;
		for (i = 0; i < SERVERD_BUCKETS; i++)
			for (o = s->table[i]; o; o = o->next)
				open_look(d, o, now);
	}
}

/* ---- who may come, and what for ------------------------------------------------------ */

/* A client on a Unix socket has no address: rules about addresses are not about it. */
static void policy_origin(const char *peer, struct ibtrs_origin *from)
{
	const char *why;

	memset(from, 0, sizeof(*from));
	if (ibtrs_addr_parse(peer, strlen(peer), &from->addr, &why))
		from->addr.kind = IBTRS_ADDR_NONE;
}

static void policy_ask(void *priv, const char *peer)
{
	struct ibtrs_origin from;

	policy_origin(peer, &from);
	ibnbd_policy_ask(priv, &from);
}

static struct ibnbd_policy_question policy_of(struct serverd *d, const struct serverd_session *s,
					      const char *name)
{
	return (struct ibnbd_policy_question){
		.rules = d->conf->policy, .name = name, .v.may = IBNBD_POLICY_DENY,
		.who = { .key = *s->key ? s->key : NULL, .session = s->name },
	};
}

/*
 * What may this client do with an export, from all addresses that it has? One that has none at the
 * moment may do nothing: it does not hear the answer.
 */
void serverd_session_policy(struct serverd *d, const struct serverd_session *s, const char *name,
			    struct ibnbd_policy_verdict *v)
{
	struct ibnbd_policy_question q = policy_of(d, s, name);

	if (q.rules)
		ibtrs_srv_peers(d->srv, s->number, policy_ask, &q);
	else
		q.v.may = IBNBD_POLICY_UNSAID;
	*v = q.v;
}

static bool judge_allows(const struct ibnbd_policy_verdict *v, const struct serverd_open *open)
{
	const char *why;

	return !ibnbd_policy_open(v, open->access, &why) &&
	       (v->may == IBNBD_POLICY_MIGRATION || !serverd_export_beside(open));
}

bool serverd_session_judge(struct serverd *d, struct serverd_open *open)
{
	struct ibnbd_policy_verdict v;
	char why[64] = "the policy does not say migration any more";

	/* A client that is away is judged when it comes back. */
	if (open->state != SERVERD_OPEN_LIVE || !serverd_session_is_here(d, open->session))
		return true;
	serverd_session_policy(d, open->session, open->name, &v);
	if (judge_allows(&v, open))
		return true;
	serverd_open_tell(d, open, IBNBD_EVENT_REVOKED);
	if (v.line)
		snprintf(why, sizeof(why), "line %u of the policy says %s", v.line,
			 ibnbd_policy_may_names[v.may]);
	serverd_open_lose(d, open, why);
	return false;
}

static bool allow_has(const struct serverd *d, const char *name, const char *peer)
{
	struct ibtrs_origin from;

	policy_origin(peer, &from);
	return !d->conf->allow || ibnbd_allow_match(d->conf->allow, &from, name);
}

struct allow_question {
	const struct serverd *d;
	const char *name;
	char not_there[IBTRS_ADDR_STR_MAX];
};

static void allow_ask(void *priv, const char *peer)
{
	struct allow_question *q = priv;

	if (!allow_has(q->d, q->name, peer))
		snprintf(q->not_there, sizeof(q->not_there), "%s", peer);
}

/* Its paths from where the list does not let it come any more are closed. */
static void session_allow(struct serverd *d, const struct serverd_session *s)
{
	struct allow_question q = { .d = d, .name = s->name };

	do {
		q.not_there[0] = 0;
		ibtrs_srv_peers(d->srv, s->number, allow_ask, &q);
		if (!q.not_there[0])
			return;
		serverd_log("session %s: %s: closed: the parameter allow does not allow it any more",
			    s->label, q.not_there);
	} while (ibtrs_srv_disconnect(d->srv, s->number, q.not_there));
}

void serverd_sessions_judge(struct serverd *d)
{
	struct serverd_session *s;
	struct serverd_open *o, *next;
	unsigned int i;

	for (s = d->sessions; s; s = s->next) {
		session_allow(d, s);
		for (i = 0; i < SERVERD_BUCKETS; i++) {
			for (o = s->table[i]; o; o = next) {
				next = o->next;
				serverd_session_judge(d, o);
			}
		}
	}
}

/*
 * May a path from this address join a session that has something open? Not if less is allowed from
 * there. The library holds its lock: it must not be called.
 */
static bool admit_joins(struct serverd *d, const struct serverd_session *s, const char *peer)
{
	struct ibnbd_policy_question q;
	struct serverd_open *o;
	unsigned int i;

	for (i = 0; i < SERVERD_BUCKETS && d->conf->policy; i++) {
		for (o = s->table[i]; o; o = o->next) {
			if (o->state != SERVERD_OPEN_LIVE)
				continue;
			q = policy_of(d, s, o->name);
			policy_ask(&q, peer);
			if (!judge_allows(&q.v, o))
				return false;
		}
	}
	return true;
}

static int admit_refuse(char *why, const char *reason)
{
	snprintf(why, IBTRS_WHY_LEN, "%s", reason);
	return -EACCES;
}

int serverd_session_admit(void *priv, const char *name, const char *peer, const char *key,
			  char why[IBTRS_WHY_LEN])
{
	struct serverd *d = priv;
	struct serverd_session *s;
	const char *unseen;
	size_t i;
	u32 code;

	if (!allow_has(d, name, peer))
		return admit_refuse(why, "the session's name or address is not on the allow-list; add it to allow of server.conf");
	for (i = 0; name[i]; i++)
		if (ibnbd_unseen(name + i, strlen(name + i), &code, &unseen))
			return admit_refuse(why,
					    "the session's name has an invisible character");
	for (s = d->sessions; s; s = s->next)
		if (!s->gone && !strcmp(s->name, name) && !strcmp(s->key, key) &&
		    !admit_joins(d, s, peer))
			return admit_refuse(why, "the server's policy allows less from this address than the session has open; see policy.conf there");
	return 0;
}
