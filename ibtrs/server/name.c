// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of sessions: each belongs to one session of this server among those of its key, or among
 * those without a key (E-8). Two sessions with one name and different keys have different labels.
 *
 * Names of clients that were lost while they had something open are kept for name_keep_s
 * (logic/kept), which is longer than a client holds by default. A session that gets a name kept for
 * it has the record until it ends: if it is not let in after all, or is lost again before it has
 * opened anything, the name is kept for the rest of the time. After that time any client of that
 * key can take the name, and the earlier owner is then told who has it.
 *
 * Called by: session.c, knock.c. Locking: all under ibtrs_srv.lock. Failure: if there is no memory
 * to note a name, it is not kept.
 */
#include <linux/slab.h>
#include <ibtrs/words.h>
#include "ibtrs/server/quota.h"

#define NAME_NUMBER_LEN	12	/* '#', a number and NUL */

static struct ibtrs_keeper name_keeper;

static u64 name_now(void)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	name_keeper.keep_s = READ_ONCE(ibtrs_srv_params.name_keep_s);
	return (u64)ktime_get_seconds();
}

static void name_free(struct ibtrs_kept *k)
{
	struct ibtrs_kept *next;

	for (; k; k = next) {
		next = k->next;
		kfree(k);
	}
}

void ibtrs_srv_name_forget_all(void)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	name_free(name_keeper.first);
	name_keeper.first = NULL;
}

void ibtrs_srv_name_let_go(struct ibtrs_srv_session *s)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	name_free(s->kept);
	s->kept = NULL;
}

void ibtrs_srv_name_give_back(struct ibtrs_srv_session *s)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	if (s->kept && ibtrs_srv.accepting) {
		name_free(ibtrs_kept_add(&name_keeper, s->kept));
		s->kept = NULL;
	}
}

void ibtrs_srv_name_keep(struct ibtrs_srv_session *s)
{
	struct ibtrs_kept *k;
	u64 now = name_now();

	if (!s->name[0] || !name_keeper.keep_s || !ibtrs_srv.accepting)
		return;
	k = kzalloc(sizeof(*k), GFP_KERNEL);
	if (!k)
		return;
	k->since_s = now - (jiffies - READ_ONCE(s->down_at)) / HZ;
	k->peers = s->peers;
	strscpy(k->key, s->key, sizeof(k->key));
	memcpy(k->uuid, s->uuid, sizeof(k->uuid));
	strscpy(k->name, s->name, sizeof(k->name));
	ibtrs_srv_name_let_go(s);
	name_free(ibtrs_kept_add(&name_keeper, k));
}

bool ibtrs_srv_name_kept_for(const struct ibtrs_addr *addr)
{
	return ibtrs_kept_caller(&name_keeper, name_now(), false, NULL, addr) !=
	       IBTRS_CALLER_STRANGER;
}

enum ibtrs_caller ibtrs_srv_name_caller(const u8 *uuid, const struct ibtrs_addr *addr)
{
	enum ibtrs_caller caller = IBTRS_CALLER_STRANGER;
	struct ibtrs_srv_session *s;

	guard(mutex)(&ibtrs_srv.lock);
	list_for_each_entry(s, &ibtrs_srv.sessions, entry) {
		if (!s->key[0])
			continue;
		if (!memcmp(s->uuid, uuid, sizeof(s->uuid)))
			return IBTRS_CALLER_BACK;
		if (ibtrs_peers_have(&s->peers, addr))
			caller = IBTRS_CALLER_HOST;
	}
	return min(caller, ibtrs_kept_caller(&name_keeper, name_now(), true, uuid, addr));
}

static bool name_session_is_up(const struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;

	list_for_each_entry(path, &s->paths, entry)
		if (ibtrs_srv_path_up(path))
			return true;
	return false;
}

/* The session @other, of the same key, has the name. */
static int name_taken(struct ibtrs_srv_path *path, const struct ibtrs_srv_session *other,
		      const char **why)
{
	char addr[IBTRS_ADDR_STR_MAX];

	/* No two hosts have the same address: @other is an earlier session of this client. */
	if (ibtrs_peers_have(&other->peers, &path->addr.src))
		return refuse(why, "an earlier session of this host has this name, and has not ended yet",
			      -EBUSY);
	/* Its end frees the name, or keeps it for its client. */
	if (!name_session_is_up(other))
		return refuse(why, "a session that has this name is about to end, or to begin",
			      -EBUSY);
	ibtrs_addr_format(&other->peers.addr[0], addr, sizeof(addr));
	scnprintf(path->said, sizeof(path->said),
		  "the session name is taken by %s: unmap there, or use another name here", addr);
	return refuse(why, path->said, -EEXIST);
}

/* Is the name kept for another client? Else a record of it is the session's. */
static int name_ask_kept(struct ibtrs_srv_path *path, const char *name, const char **why)
{
	struct ibtrs_srv_session *s = path->session;
	enum ibtrs_kept_whose whose;
	u64 now = name_now();
	struct ibtrs_kept *k;

	whose = ibtrs_kept_take(&name_keeper, now, name, s->key, s->uuid, &path->addr.src, &k);
	if (whose == IBTRS_KEPT_ANOTHER) {
		ibtrs_kept_words(&name_keeper, k, now, path->said, sizeof(path->said));
		return refuse(why, path->said, -EEXIST);
	}
	if (whose == IBTRS_KEPT_OLD)
		name_free(k);
	if (whose == IBTRS_KEPT_YOURS) {
		ibtrs_srv_name_let_go(s);
		ibtrs_peers_join(&s->peers, &k->peers);
		s->kept = k;
	}
	return 0;
}

static bool name_label_used(const char *label)
{
	struct ibtrs_srv_session *other;

	list_for_each_entry(other, &ibtrs_srv.sessions, entry)
		if (other->name[0] && !strcmp(other->label, label))
			return true;
	return false;
}

/*
 * The label is the name, or NAME#N if another session is called so. The end of a long name is cut
 * off between two characters, because a file name has 255 bytes at most.
 */
static void name_set(struct ibtrs_srv_session *s, const char *name)
{
	char label[IBTRS_NAME_LEN];
	int cut = ibtrs_words_cut(name, sizeof(label) - NAME_NUMBER_LEN);
	unsigned int n = 1;

	strscpy(label, name, sizeof(label));
	while (name_label_used(label))
		scnprintf(label, sizeof(label), "%.*s#%u", cut, name, ++n);
	strscpy(s->label, label, sizeof(s->label));
	strscpy(s->name, name, sizeof(s->name));
}

int ibtrs_srv_name_take(struct ibtrs_srv_path *path, const char *name, const char **why)
{
	struct ibtrs_srv_session *s = path->session, *other;
	int err;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(other, &ibtrs_srv.sessions, entry)
		if (!strcmp(other->name, name) && !strcmp(other->key, s->key))
			return name_taken(path, other, why);
	err = name_ask_kept(path, name, why);
	if (!err)
		name_set(s, name);
	return err;
}
