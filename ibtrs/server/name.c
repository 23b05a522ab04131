// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of sessions: each belongs to one session of this server among those of its key, or among
 * those without a key (E-8). So nobody keeps a name from a client that has a key, except who has
 * the same key. Two sessions with one name and different keys have different labels: the log and
 * sysfs call the second one NAME#2.
 *
 * A client that was lost while it had something open may hold I/O, and come back for it under its
 * name. So a name is kept for name_keep_s after its client was lost, which is longer than a client
 * holds by default. During that time only the same session (by uuid) or the same host (by an
 * address that the session came from: the host has rebooted) gets the name, and gets it at once.
 * The session then has the record until it ends: if it is not let in after all, or is lost again
 * before it has opened anything, the name is kept for the rest of the time. After that time any
 * client of that key can take the name, and the earlier owner is then told who has it. A client
 * that is refused is told the address of the owner: this alone is enough to find two machines with
 * one name.
 *
 * Called by: session.c, knock.c. Locking: all under ibtrs_srv.lock. Failure: if there is no memory
 * to note a name, it is not kept. If a host, or a key, loses more names than its share, its oldest
 * ones are not kept.
 */
#include <linux/slab.h>
#include <ibtrs/words.h>
#include "ibtrs/server/name.h"

#define NAME_KEPT_MAX	256
#define NAME_KEPT_SHARE	32	/* per host, so that one host does not push out the others */
#define NAME_KEPT_KEY	192	/* per key, or without one, from however many addresses */
#define NAME_NUMBER_LEN	12	/* '#', a number and NUL */

struct ibtrs_srv_name_kept {
	struct list_head entry;
	unsigned long since;		/* jiffies */
	u8 uuid[IBTRS_UUID_LEN];
	struct ibtrs_srv_peers peers;
	char key[IBTRS_KEY_NAME_LEN];
	char name[IBTRS_NAME_LEN];
};

static LIST_HEAD(names_kept);		/* the latest first */
static unsigned int names_nr;

bool ibtrs_srv_name_peers_have(const struct ibtrs_srv_peers *peers, const struct ibtrs_addr *addr)
{
	u32 i;

	for (i = 0; i < peers->nr; i++)
		if (ibtrs_addr_equal(&peers->addr[i], addr))
			return true;
	return false;
}

static void name_unlist(struct ibtrs_srv_name_kept *k)
{
	list_del(&k->entry);
	names_nr--;
}

static void name_forget(struct ibtrs_srv_name_kept *k)
{
	name_unlist(k);
	kfree(k);
}

void ibtrs_srv_name_forget_all(void)
{
	struct ibtrs_srv_name_kept *k, *next;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry_safe(k, next, &names_kept, entry)
		name_forget(k);
}

/*
 * Frees the oldest names of the host of @latest, or of its key, if that has more than its share,
 * then the oldest of all if there are still too many.
 */
static void name_make_room(const struct ibtrs_srv_name_kept *latest)
{
	struct ibtrs_srv_name_kept *k, *next;
	unsigned int nr = 0, of_key = 0;

	list_for_each_entry_safe(k, next, &names_kept, entry) {
		if (strcmp(k->key, latest->key))
			continue;
		nr += ibtrs_srv_name_peers_have(&k->peers, &latest->peers.addr[0]);
		if (++of_key > NAME_KEPT_KEY ||
		    (nr > NAME_KEPT_SHARE &&
		     ibtrs_srv_name_peers_have(&k->peers, &latest->peers.addr[0])))
			name_forget(k);
	}
	if (names_nr > NAME_KEPT_MAX)
		name_forget(list_last_entry(&names_kept, struct ibtrs_srv_name_kept, entry));
}

static void name_add(struct ibtrs_srv_name_kept *k)
{
	list_add(&k->entry, &names_kept);
	names_nr++;
	name_make_room(k);
}

void ibtrs_srv_name_let_go(struct ibtrs_srv_session *s)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	kfree(s->kept);
	s->kept = NULL;
}

void ibtrs_srv_name_give_back(struct ibtrs_srv_session *s)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	if (s->kept && ibtrs_srv.accepting) {
		name_add(s->kept);
		s->kept = NULL;
	}
}

void ibtrs_srv_name_keep(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_name_kept *k;

	lockdep_assert_held(&ibtrs_srv.lock);
	if (!s->name[0] || !READ_ONCE(ibtrs_srv_params.name_keep_s) || !ibtrs_srv.accepting)
		return;
	k = kzalloc(sizeof(*k), GFP_KERNEL);
	if (!k)
		return;
	k->since = READ_ONCE(s->down_at);
	k->peers = s->peers;
	strscpy(k->key, s->key, sizeof(k->key));
	memcpy(k->uuid, s->uuid, sizeof(k->uuid));
	strscpy(k->name, s->name, sizeof(k->name));
	ibtrs_srv_name_let_go(s);
	name_add(k);
}

bool ibtrs_srv_name_kept_for(const struct ibtrs_addr *addr)
{
	unsigned long keep = READ_ONCE(ibtrs_srv_params.name_keep_s);
	struct ibtrs_srv_name_kept *k;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(k, &names_kept, entry)
		if (!k->key[0] && (jiffies - k->since) / HZ < keep &&
		    ibtrs_srv_name_peers_have(&k->peers, addr))
			return true;
	return false;
}

enum ibtrs_srv_caller ibtrs_srv_name_caller(const u8 *uuid, const struct ibtrs_addr *addr)
{
	unsigned long keep = READ_ONCE(ibtrs_srv_params.name_keep_s);
	enum ibtrs_srv_caller caller = IBTRS_SRV_CALLER_STRANGER;
	struct ibtrs_srv_name_kept *k;
	struct ibtrs_srv_session *s;

	guard(mutex)(&ibtrs_srv.lock);
	list_for_each_entry(s, &ibtrs_srv.sessions, entry) {
		if (!s->key[0])
			continue;
		if (!memcmp(s->uuid, uuid, sizeof(s->uuid)))
			return IBTRS_SRV_CALLER_BACK;
		if (ibtrs_srv_name_peers_have(&s->peers, addr))
			caller = IBTRS_SRV_CALLER_HOST;
	}
	list_for_each_entry(k, &names_kept, entry) {
		if (!k->key[0] || (jiffies - k->since) / HZ >= keep)
			continue;
		if (!memcmp(k->uuid, uuid, sizeof(k->uuid)))
			return IBTRS_SRV_CALLER_BACK;
		if (ibtrs_srv_name_peers_have(&k->peers, addr))
			caller = IBTRS_SRV_CALLER_HOST;
	}
	return caller;
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
	*why = "an earlier session of this host has this name, and has not ended yet";
	if (ibtrs_srv_name_peers_have(&other->peers, &path->addr.src))
		return -EBUSY;
	/* Its end frees the name, or keeps it for its client. */
	*why = "a session that has this name is about to end, or to begin";
	if (!name_session_is_up(other))
		return -EBUSY;
	ibtrs_addr_format(&other->peer, addr, sizeof(addr));
	scnprintf(path->said, sizeof(path->said),
		  "the session name is taken by %s: unmap there, or use another name here", addr);
	*why = path->said;
	return -EEXIST;
}

/* The name is kept for a session of the same key that was lost. */
static int name_check_kept(struct ibtrs_srv_path *path, struct ibtrs_srv_name_kept *k,
			   const char **why)
{
	unsigned long age = (jiffies - k->since) / HZ,
		      keep = READ_ONCE(ibtrs_srv_params.name_keep_s);
	char addr[IBTRS_ADDR_STR_MAX];

	if (age >= keep) {
		name_forget(k);
		return 0;
	}
	if (!memcmp(k->uuid, path->session->uuid, sizeof(k->uuid)) ||
	    ibtrs_srv_name_peers_have(&k->peers, &path->addr.src)) {
		name_unlist(k);
		ibtrs_srv_name_let_go(path->session);
		path->session->kept = k;
		return 0;
	}
	ibtrs_addr_format(&k->peers.addr[0], addr, sizeof(addr));
	scnprintf(
		path->said, sizeof(path->said),
		"the session name is kept for %s, lost %lu s ago, for %lu s more: wait, or use another name here",
		addr, age, keep - age);
	*why = path->said;
	return -EEXIST;
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
	struct ibtrs_srv_name_kept *k, *next;
	int err;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(other, &ibtrs_srv.sessions, entry)
		if (!strcmp(other->name, name) && !strcmp(other->key, s->key))
			return name_taken(path, other, why);
	list_for_each_entry_safe(k, next, &names_kept, entry) {
		if (strcmp(k->name, name) || strcmp(k->key, s->key))
			continue;
		err = name_check_kept(path, k, why);
		if (err)
			return err;
	}
	name_set(s, name);
	return 0;
}
