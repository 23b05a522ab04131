// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy in force (logic/policy.h), and by what it knows a client: the key with which its
 * session was let in, the session's name, and each address that the client comes from. A client
 * with several addresses may do only what is allowed from every one of them. Else a path from an
 * address where less is allowed could use what was opened over the others.
 *
 * judge.c loads the policy. It is read under RCU, from any context.
 */
#include "ibnbd/server/policy.h"
#include "ibnbd/server/session.h"

struct ibnbd_srv_policy __rcu *ibnbd_srv_policy;

static void policy_ask(void *arg, const struct ibtrs_origin *from)
{
	ibnbd_policy_ask(arg, from);
}

/* A client that is gone gets the answer of no policy: all that it had open is being closed. */
static void policy_answer(const struct ibnbd_srv_session *s, const struct ibtrs_origin *from,
			  const char *name, struct ibnbd_policy_verdict *v)
{
	struct ibnbd_policy_question q = { .who.session = s->name, .name = name,
					   .v.may = IBNBD_POLICY_UNSAID };
	struct ibtrs_srv_session *ibtrs;
	struct ibnbd_srv_policy *p;

	rcu_read_lock();
	ibtrs = rcu_dereference(s->ibtrs);
	p = rcu_dereference(ibnbd_srv_policy);
	if (ibtrs && p) {
		q.rules = &p->rules;
		q.who.key = ibtrs_srv_peer_key(ibtrs);
		if (from)
			ibnbd_policy_ask(&q, from);
		else
			ibtrs_srv_peer_each(ibtrs, policy_ask, &q);
	}
	rcu_read_unlock();
	*v = q.v;
}

/**
 * ibnbd_srv_policy_of() - what may a client do with an export, from all addresses that it has?
 * @s: its session
 * @name: of the export, as OPEN has it
 * @v: the answer
 *
 * Any context.
 */
void ibnbd_srv_policy_of(const struct ibnbd_srv_session *s, const char *name,
			 struct ibnbd_policy_verdict *v)
{
	policy_answer(s, NULL, name, v);
}

/**
 * ibnbd_srv_policy_from() - what may a client do with an export, from one address?
 * @s: its session
 * @from: the address, and the GID
 * @name: of the export, as OPEN has it
 * @v: the answer
 *
 * Any context.
 */
void ibnbd_srv_policy_from(const struct ibnbd_srv_session *s, const struct ibtrs_origin *from,
			   const char *name, struct ibnbd_policy_verdict *v)
{
	policy_answer(s, from, name, v);
}
