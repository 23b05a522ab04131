// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy in force (logic/policy.h): ctl/policy, from which it is read, and what sessions may
 * have open by it. An open is judged when it has got its place and when the policy has changed; a
 * session, when a path from another address wants to join.
 *
 * The policy knows a client by the key with which its session was let in, by the session's name,
 * and by each address that the client comes from. A client with several addresses may do only what
 * is allowed from every one of them. Else a path from an address where less is allowed could use
 * what was opened over the others.
 *
 * Called by: msg.c, and by ibtrs. The policy is read under RCU, from any context.
 */
#include <linux/fs.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <ibtrs/admin.h>
#include "ibnbd/server/policy.h"
#include "ibnbd/server/session.h"

/* A policy, and the text that it was parsed from. */
struct srv_policy {
	struct ibnbd_policy_rules rules;
	size_t len;
	char source[];
};

/* To be read under RCU, or under policy_file_lock; NULL: there is none. */
static struct srv_policy __rcu *policy_now;

static void policy_ask(void *arg, const struct ibtrs_origin *from)
{
	ibnbd_policy_ask(arg, from);
}

/*
 * What may the client of @s do with the export @name? @from: an address and a GID; NULL: all
 * addresses that the client has. For a client that is gone, @v is that of no policy: all that it
 * had open is being closed. Any context.
 */
void ibnbd_srv_policy_of(const struct ibnbd_srv_session *s, const struct ibtrs_origin *from,
			 const char *name, struct ibnbd_policy_verdict *v)
{
	struct ibnbd_policy_question q = { .who.session = s->name, .name = name,
					   .v.may = IBNBD_POLICY_UNSAID };
	struct ibtrs_srv_session *ibtrs;
	struct srv_policy *p;

	guard(rcu)();
	ibtrs = rcu_dereference(s->ibtrs);
	p = rcu_dereference(policy_now);
	if (ibtrs && p) {
		q.rules = &p->rules;
		q.who.key = s->key[0] ? s->key : NULL;
		if (from)
			ibnbd_policy_ask(&q, from);
		else
			ibtrs_srv_peer_each(ibtrs, policy_ask, &q);
	}
	*v = q.v;
}

/* A second writer needs the word migration. */
static bool policy_allows(const struct ibnbd_policy_verdict *v, const struct ibnbd_srv_open *open)
{
	const char *why;

	lockdep_assert_held(&ibnbd_srv_export_lock);
	return !ibnbd_policy_open(v, open->access, &why) &&
	       (v->may == IBNBD_POLICY_MIGRATION || !ibnbd_srv_place_is_beside(open));
}

/**
 * ibnbd_srv_policy_judge() - close a mapping that the policy does not allow any more
 * @open: in its session's table, or not yet
 *
 * Under the export lock. A second writer that only the word migration let in is closed when that
 * word is gone and the first writer is still there. The client is told, I/O that is under way ends
 * normally, and no task waits for it. The opener calls this after it has put the mapping in the
 * table; a change of the policy calls this for all opens after the new policy is in force. So at
 * least one of these calls sees both.
 *
 * Return: true: the policy allows the mapping.
 */
bool ibnbd_srv_policy_judge(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_session *s = open->session;
	struct ibnbd_policy_verdict v;
	bool closed;

	ibnbd_srv_policy_of(s, NULL, open->name, &v);
	if (policy_allows(&v, open))
		return true;
	spin_lock(&s->lock);
	closed = ibnbd_srv_open_kill(open);
	open->lost |= closed;
	spin_unlock(&s->lock);
	if (!closed)
		return false;
	if (v.line)
		pr_warn("session %s: %s is closed: line %u of the policy says %s\n", s->label,
			open->name, v.line, ibnbd_policy_may_names[v.may]);
	else
		pr_warn("session %s: %s is closed: the policy does not say migration any more\n",
			s->label, open->name);
	ibnbd_srv_open_tell(open, IBNBD_EVENT_REVOKED);
	return false;
}

/*
 * May a path from this address join the session (struct ibtrs_srv_ops)? Not if the policy denies a
 * client at this address something that the session has open: -EACCES. Else a machine that only
 * knows the session's uuid could use it.
 */
int ibnbd_srv_policy_peer(void *priv, const struct ibtrs_origin *from, const char **why)
{
	struct ibnbd_srv_session *s = priv;
	struct ibnbd_policy_verdict v;
	struct ibnbd_srv_open *open;
	bool allowed = true;
	u32 slot;

	for (slot = 0; slot <= s->mask && allowed; slot++) {
		open = ibnbd_srv_session_live(s, slot);
		if (!open)
			continue;
		ibnbd_srv_policy_of(s, from, open->name, &v);
		scoped_guard(mutex, &ibnbd_srv_export_lock)
			allowed = policy_allows(&v, open);
		percpu_ref_put(&open->ref);
	}
	if (allowed)
		return 0;
	*why = "the server's policy allows less from this address than the session has open; see policy.conf there";
	return -EACCES;
}

/*
 * ctl/policy: the policy is written here whole, and read back as it was written.
 *
 * A write to sysfs carries a page at most, some programs write line by line, and sysfs does not
 * tell when a writer closes the file. So the text itself marks its end by a last line "end". A
 * write at offset 0 begins a text. Further pieces follow without a gap, from the same open file,
 * and nothing takes effect before the end has come. Two writers never mix: a writer that begins a
 * text discards the text that another writer has begun, and the next piece of the other writer is
 * refused. So is what follows a piece that was refused. A lone "end" at offset 0 is refused: it is
 * the last piece of a program that opens the file anew for each piece, and would be a policy that
 * allows everything.
 *
 * Lock: policy_file_lock protects the draft and changes of the policy. It is taken before the
 * export lock.
 */

#define POLICY_FILE_END	"\nend\n"
#define POLICY_FILE_MAX	(IBNBD_POLICY_TEXT + sizeof(POLICY_FILE_END))

static DEFINE_MUTEX(policy_file_lock);
static const struct file *policy_file_writer;	/* that of the draft; never dereferenced */
static size_t policy_file_len;
static bool policy_file_broken;			/* a piece of it was refused */
static char *policy_file_draft;			/* POLICY_FILE_MAX bytes; NULL: no draft */

static void policy_file_drop(void)
{
	kvfree(policy_file_draft);
	policy_file_draft = NULL;
	policy_file_writer = NULL;
	policy_file_broken = false;
	policy_file_len = 0;
}

static int policy_file_wrong(const struct ibnbd_policy_fault *f, const char *text, int err)
{
	if (f->line)
		pr_err("policy: line %u, column %u: \"%*pE\": %s; %s. The policy before stays\n",
		       f->line, f->column, (int)min_t(size_t, f->len, 64), text + f->at, f->why,
		       f->hint);
	else
		pr_err("policy: %s; %s. The policy before stays\n", f->why, f->hint);
	return err;
}

static int policy_file_parse(struct srv_policy *p)
{
	struct ibnbd_policy_fault f;
	size_t len = p->len;
	int err;

	/* its end has no part in how long a text may be: the command leaves it out, too */
	while (len && p->source[len - 1] == '\n')
		len--;
	err = ibnbd_policy_parse(&p->rules, p->source, len, &f);
	return err ? policy_file_wrong(&f, p->source, err) : 0;
}

/* Put @p in force. NULL: from now on there is no policy. */
static void policy_file_change(struct srv_policy *p)
{
	struct srv_policy *old;

	old = rcu_replace_pointer(policy_now, p, lockdep_is_held(&policy_file_lock));
	synchronize_rcu();
	kvfree(old);
}

static void policy_file_judge_all(void)
{
	struct ibnbd_srv_export *e;
	struct ibnbd_srv_open *open;

	guard(mutex)(&ibnbd_srv_export_lock);
	list_for_each_entry(e, &ibnbd_srv_export_list, link)
		list_for_each_entry(open, &e->opens, link)
			ibnbd_srv_policy_judge(open);
}

static bool policy_file_complete(void)
{
	const size_t n = strlen(POLICY_FILE_END);

	return policy_file_len >= n &&
	       !memcmp(policy_file_draft + policy_file_len - n, POLICY_FILE_END, n);
}

/* The draft is complete. */
static int policy_file_take(void)
{
	size_t len = policy_file_len - strlen(POLICY_FILE_END) + 1;
	struct srv_policy *p = kvmalloc(struct_size(p, source, len), GFP_KERNEL);
	int err;

	if (!p)
		return -ENOMEM;
	memcpy(p->source, policy_file_draft, len);
	p->len = len;
	err = policy_file_parse(p);
	if (err) {
		kvfree(p);
		return err;
	}
	pr_info("policy: %u rule%s\n", p->rules.nr, p->rules.nr == 1 ? "" : "s");
	policy_file_change(p);
	policy_file_judge_all();
	return 0;
}

static int policy_file_refuse(const char *why, int err)
{
	pr_err("policy: %s. The policy before stays\n", why);
	return err;
}

static int policy_file_begin(const struct file *writer)
{
	policy_file_drop();
	policy_file_draft = kvmalloc(POLICY_FILE_MAX, GFP_KERNEL);
	if (!policy_file_draft)
		return -ENOMEM;
	policy_file_writer = writer;
	return 0;
}

static int policy_file_add(const struct file *writer, const char *piece, loff_t pos, size_t len)
{
	if (pos && (writer != policy_file_writer || pos != policy_file_len))
		return policy_file_refuse("a piece that does not follow the one before it: write from one open file, and nothing behind the line \"end\"",
					  -EINVAL);
	if (!pos && len == 4 && !memcmp(piece, "end\n", len))
		return policy_file_refuse("there is nothing before \"end\": write all of it from one open file; an empty line is a policy without rules",
					  -EINVAL);
	if (len > POLICY_FILE_MAX - policy_file_len)
		return policy_file_refuse("it is longer than 65536 bytes", -E2BIG);
	if (policy_file_broken)
		return policy_file_refuse("a piece before this one was refused: write all of it again",
					  -EINVAL);
	memcpy(policy_file_draft + policy_file_len, piece, len);
	policy_file_len += len;
	return 0;
}

static ssize_t policy_file_write(struct file *file, struct kobject *kobj,
				 const_bin_attr struct bin_attribute *attr, char *buf, loff_t pos,
				 size_t len)
{
	int err = ibtrs_admin("policy");

	if (err)
		return err;
	guard(mutex)(&policy_file_lock);
	if (!pos)
		err = policy_file_begin(file);
	err = err ?: policy_file_add(file, buf, pos, len);
	if (err) {
		/* its "end" may follow, as if nothing were missing */
		policy_file_broken |= file == policy_file_writer;
		return err;
	}
	if (policy_file_complete()) {
		err = policy_file_take();
		policy_file_drop();
	} else if (!pos) {
		pr_info("policy: one has been begun; it counts when its last line, \"end\", has come\n");
	}
	return err ? err : len;
}

static ssize_t policy_file_read(struct file *file, struct kobject *kobj,
				const_bin_attr struct bin_attribute *attr, char *buf, loff_t pos,
				size_t len)
{
	struct srv_policy *p;

	guard(mutex)(&policy_file_lock);
	p = rcu_dereference_protected(policy_now, lockdep_is_held(&policy_file_lock));
	return p ? memory_read_from_buffer(buf, len, &pos, p->source, p->len) : 0;
}

const struct bin_attribute ibnbd_srv_policy_file = {
	.attr = { .name = "policy", .mode = 0600 },
	.read = policy_file_read,
	.write = policy_file_write,
};

/* Call it when ctl/policy and all sessions are gone. */
void ibnbd_srv_policy_file_exit(void)
{
	guard(mutex)(&policy_file_lock);
	policy_file_drop();
	policy_file_change(NULL);
}
