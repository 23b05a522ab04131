// SPDX-License-Identifier: GPL-2.0-only
/*
 * Judges what a session has open by the policy in force: when the policy has changed, when an open
 * has got its place, and when a path from another address wants to join.
 *
 * Called by: policy_file.c and msg.c under the export lock, and by ibtrs.
 */
#include "ibnbd/server/client.h"
#include "ibnbd/server/export_list.h"
#include "ibnbd/server/judge.h"
#include "ibnbd/server/open.h"
#include "ibnbd/server/place.h"
#include "ibnbd/server/policy.h"
#include "ibnbd/server/session.h"

/* A second writer needs the word migration. */
static bool judge_allows(const struct ibnbd_policy_verdict *v, const struct ibnbd_srv_open *open)
{
	const char *why;

	lockdep_assert_held(&ibnbd_srv_export_lock);
	return !ibnbd_policy_open(v, open->access, &why) &&
	       (v->may == IBNBD_POLICY_MIGRATION || !ibnbd_srv_place_is_beside(open));
}

/**
 * ibnbd_srv_judge_open() - close a mapping that the policy does not allow any more
 * @open: in its session's table, or not yet
 *
 * Under the export lock. A second writer that only the word migration let in is closed when that
 * word is gone and the first writer is still there. The client is told, I/O that is under way ends
 * normally, and nobody waits for it. The opener calls this after it has put the mapping in the
 * table; a change of the policy calls this for all opens after the new policy is in force. So at
 * least one of these calls sees both.
 *
 * Return: true: the policy allows the mapping.
 */
bool ibnbd_srv_judge_open(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_session *s = open->session;
	struct ibnbd_policy_verdict v;
	bool closed;

	ibnbd_srv_policy_of(s, open->name, &v);
	if (judge_allows(&v, open))
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
	ibnbd_srv_client_tell(s, IBNBD_SRV_EVENT_REVOKED, open->id);
	return false;
}

/**
 * ibnbd_srv_judge_peer() - may a path from this address join? (struct ibtrs_srv_ops)
 * @priv: the session
 * @from: the address, and the GID
 * @why: of a refusal
 *
 * Not if the policy denies a client at this address something that the session has open. Else a
 * machine that only knows the session's uuid could use it.
 *
 * Return: 0 or -EACCES.
 */
int ibnbd_srv_judge_peer(void *priv, const struct ibtrs_origin *from, const char **why)
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
		ibnbd_srv_policy_from(s, from, open->name, &v);
		mutex_lock(&ibnbd_srv_export_lock);
		allowed = judge_allows(&v, open);
		mutex_unlock(&ibnbd_srv_export_lock);
		percpu_ref_put(&open->ref);
	}
	if (allowed)
		return 0;
	*why = "the server's policy allows less from this address than the session has open; see policy.conf there";
	return -EACCES;
}
