// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions: the table by uuid and key, the names, the slots whose fences all paths share, and the
 * callbacks that tell the user about a session.
 *
 * A session is created with its first path and freed with its last one. A path counts until its
 * last op has ended (law L6), so the fences exist as long as any op executes. session_down() runs
 * before the session leaves the table: a client that comes back during session_down() gets -EBUSY
 * and tries again, so it never has two sessions at a time.
 *
 * ibtrs_srv.lock protects the table, the names and the lists of paths; no code that waits runs
 * under it. Readers in any context (events) walk the lists under RCU. up_lock serializes the INFO
 * works of one session, which wait for the user's session_up().
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include "ibtrs/core/key.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/server/quota.h"
#include "ibtrs/server/session.h"

struct ibtrs_srv_session *ibtrs_srv_session_find(const u8 *uuid, const char *key)
{
	struct ibtrs_srv_session *s;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(s, &ibtrs_srv.sessions, entry)
		if (!memcmp(s->uuid, uuid, sizeof(s->uuid)) && !strcmp(s->key, key))
			return s;
	return NULL;
}

struct ibtrs_srv_session *ibtrs_srv_session_create(const u8 *uuid, const char *key,
						   const char **why)
{
	struct ibtrs_srv_session *s;
	int err;

	lockdep_assert_held(&ibtrs_srv.lock);
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return ERR_PTR(refuse(why, "out of memory", -ENOMEM));
	err = ibtrs_auth_identity(&ibtrs_auth_kernel, uuid, key, s->identity);
	if (err) {
		kfree(s);
		return ERR_PTR(refuse(why, "the kernel cannot compute hmac(sha256)", err));
	}
	memcpy(s->uuid, uuid, sizeof(s->uuid));
	s->knocked = jiffies;
	s->down_at = jiffies;
	strscpy(s->key, key, sizeof(s->key));
	s->life = get_random_u32() ?: 1;
	INIT_LIST_HEAD(&s->paths);
	mutex_init(&s->up_lock);
	INIT_DELAYED_WORK(&s->look, ibtrs_srv_look_work);
	list_add_tail_rcu(&s->entry, &ibtrs_srv.sessions);
	return s;
}

/* The session has no path, and the user does not know it (any more). */
void ibtrs_srv_session_drop(struct ibtrs_srv_session *s)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	list_del_rcu(&s->entry);
	ibtrs_srv_name_let_go(s);
	kvfree(s->slots);
	kfree_rcu(s, rcu);
}

struct ibtrs_srv_path *ibtrs_srv_session_find_path(struct ibtrs_srv_session *s, const u8 *path_uuid)
{
	struct ibtrs_srv_path *path;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(path, &s->paths, entry)
		if (ibtrs_srv_path_state(path) != IBTRS_SRV_PATH_LINGERING &&
		    !memcmp(path->uuid, path_uuid, sizeof(path->uuid)))
			return path;
	return NULL;
}

int ibtrs_srv_session_may_add(struct ibtrs_srv_session *s, const struct ibtrs_addr_pair *addr,
			      const char **why)
{
	struct ibtrs_srv_path *path;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(path, &s->paths, entry) {
		enum ibtrs_srv_path_state state = ibtrs_srv_path_state(path);

		if (state == IBTRS_SRV_PATH_LINGERING ||
		    !ibtrs_addr_equal(&path->addr.src, &addr->src) ||
		    !ibtrs_addr_equal(&path->addr.dst, &addr->dst))
			continue;
		if (state < IBTRS_SRV_PATH_CLOSING)
			return refuse(why, "the session has a path with these addresses", -EEXIST);
		return refuse(why, "a path with these addresses is being closed", -EBUSY);
	}
	if (s->nr_paths >= IBTRS_MAX_PATHS)
		return refuse(why, "the session has as many paths as it may", -ECONNRESET);
	return 0;
}

void ibtrs_srv_session_add_path(struct ibtrs_srv_session *s, struct ibtrs_srv_path *path)
{
	lockdep_assert_held(&ibtrs_srv.lock);
	s->nr_paths++;
	ibtrs_peers_add(&s->peers, &path->addr.src);
	list_add_tail_rcu(&path->entry, &s->paths);
}

int ibtrs_srv_session_take_name(struct ibtrs_srv_path *path, const char *name, const char **why)
{
	struct ibtrs_srv_session *s = path->session;
	int err;

	guard(mutex)(&ibtrs_srv.lock);
	/* for each path: the allow-list may have got shorter since the session has its name */
	if (!ibtrs_srv.ops->name_allowed(&path->from, name, why))
		return -EACCES;
	if (s->name[0] && strcmp(s->name, name))
		return refuse(why, "the session has another name on its other paths", -EINVAL);
	if (s->name[0]) {
		s->naming++;
		return 0;
	}
	if (s->user_name[0] && strcmp(s->user_name, name))
		return refuse(why, "the session had another name before", -EINVAL);
	err = ibtrs_srv_quota_session(path, why);
	err = err ?: ibtrs_srv_name_take(path, name, why);
	s->naming += !err;
	return err;
}

void ibtrs_srv_session_named(struct ibtrs_srv_path *path, bool good)
{
	struct ibtrs_srv_session *s = path->session;

	guard(mutex)(&ibtrs_srv.lock);
	/* Another path whose INFO work still runs may yet bring the session up. */
	if (!--s->naming && !good && !s->up) {
		s->name[0] = 0;
		ibtrs_srv_name_give_back(s);
	}
}

/*
 * Allocated near the adapter of the first path; the session's other adapters are seldom elsewhere.
 */
static int session_alloc(struct ibtrs_srv_session *s, int node)
{
	u32 i, nr = ibtrs_srv_params.queue_depth;
	struct ibtrs_srv_slot *slots;

	if (s->slots)
		return 0;
	s->op_wq = alloc_workqueue("ibtrs-srv-op", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	if (!s->op_wq)
		return -ENOMEM;
	slots = kvzalloc_node(array_size(nr, sizeof(*slots)), GFP_KERNEL, node);
	if (!slots) {
		destroy_workqueue(s->op_wq);
		s->op_wq = NULL;
		return -ENOMEM;
	}
	for (i = 0; i < nr; i++)
		spin_lock_init(&slots[i].lock);
	/* the session look may read s->slots at any time, even if the session never came up */
	smp_store_release(&s->slots, slots);
	return 0;
}

static int session_first_up(struct ibtrs_srv_session *s, const struct ibtrs_srv_path *path,
			    const char **why)
{
	const struct ibtrs_srv_client c = {
		.name		= s->name,
		.label		= s->label,
		.key		= s->key,
		.identity	= s->identity,
	};
	int err;

	err = session_alloc(s, path->dev->node);
	if (err)
		return refuse(why, "out of memory", err);
	err = ibtrs_srv_sysfs_session_add(s);
	if (err)
		return refuse(why, "its directory in sysfs cannot be made", err);
	s->from = path->from;
	err = ibtrs_srv.ops->session_up(s, &c, &s->priv);
	if (err) {
		ibtrs_srv_sysfs_session_del(s);
		return refuse(why, "the block server has no memory for it", err);
	}
	strscpy(s->user_name, s->name, sizeof(s->user_name));
	s->up = true;
	return 0;
}

int ibtrs_srv_session_bring_up(struct ibtrs_srv_path *path, const char **why)
{
	struct ibtrs_srv_session *s = path->session;

	guard(mutex)(&s->up_lock);
	if (!s->up)
		return session_first_up(s, path, why);
	/* removed when the client was lost? */
	return s->sysfs_dev ? 0 : ibtrs_srv_sysfs_session_add(s);
}

int ibtrs_srv_session_admit_peer(struct ibtrs_srv_path *path, const char **why)
{
	struct ibtrs_srv_session *s = path->session;

	guard(mutex)(&s->up_lock);
	if (!s->up)
		return 0;
	return ibtrs_srv.ops->peer_joins(s->priv, &path->from, why);
}

/* The last path of the session is gone. */
static void session_end(struct ibtrs_srv_session *s)
{
	enum ibtrs_srv_left left = IBTRS_SRV_LEFT_UNUSED;

	cancel_delayed_work_sync(&s->look);
	if (s->op_wq)
		destroy_workqueue(s->op_wq);	/* no code of the user may still run */
	if (s->up)
		left = ibtrs_srv.ops->session_down(s, s->priv);
	ibtrs_srv_sysfs_session_del(s);
	if (left != IBTRS_SRV_LEFT_OPEN)
		ibtrs_srv_chunk_forget(s);	/* without the lock: it takes a while */
	mutex_lock(&ibtrs_srv.lock);
	if (left == IBTRS_SRV_LEFT_OPEN)
		ibtrs_srv_name_keep(s);
	else if (left == IBTRS_SRV_LEFT_UNUSED)
		ibtrs_srv_name_give_back(s);	/* it came back, and was lost again */
	ibtrs_srv_session_drop(s);
	mutex_unlock(&ibtrs_srv.lock);
	wake_up_all(&ibtrs_srv.gone);
}

void ibtrs_srv_session_del_path(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_session *s = path->session;
	bool last;

	mutex_lock(&ibtrs_srv.lock);
	list_del_rcu(&path->entry);
	last = !--s->nr_paths;
	mutex_unlock(&ibtrs_srv.lock);
	if (last)
		session_end(s);
}

void ibtrs_srv_session_close_all(void)
{
	struct ibtrs_srv_session *s;
	struct ibtrs_srv_path *path;

	scoped_guard(rcu)
		list_for_each_entry_rcu(s, &ibtrs_srv.sessions, entry)
			list_for_each_entry_rcu(path, &s->paths, entry)
				ibtrs_srv_path_close(path, "closed by the server");
	wait_event(ibtrs_srv.gone, list_empty(&ibtrs_srv.sessions));
	flush_workqueue(ibtrs_srv.wq);
}

static void session_close_refused(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_session *s = path->session;
	const char *why;

	if (ibtrs_srv_path_state(path) >= IBTRS_SRV_PATH_CLOSING)
		return;
	if (!s->key[0] && ibtrs_srv.ops->auth() == IBTRS_SRV_AUTH_REQUIRED)
		why = "authentication is required here";
	/* One that has not named the session yet is judged when it does. */
	else if (s->name[0] && test_bit(0, &path->info_seen) &&
		 !ibtrs_srv.ops->name_allowed(&path->from, s->name, &why))
		why = "the parameter allow does not allow it any more";
	else
		return;
	pr_warn("session %s: %s: closed: %s\n", ibtrs_srv_session_label(s), path->name, why);
	ibtrs_srv_path_close(path, why);
}

void ibtrs_srv_close_refused(void)
{
	struct ibtrs_srv_session *s;
	struct ibtrs_srv_path *path;

	guard(mutex)(&ibtrs_srv.lock);
	list_for_each_entry(s, &ibtrs_srv.sessions, entry)
		list_for_each_entry(path, &s->paths, entry)
			session_close_refused(path);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_close_refused);

void ibtrs_srv_session_event(struct ibtrs_srv_session *s, u32 kind, u32 id)
{
	u32 imm = ibtrs_imm_event(kind, id);
	struct ibtrs_srv_path *path;

	guard(rcu)();
	list_for_each_entry_rcu(path, &s->paths, entry) {
		struct ibtrs_srv_conn *service = &path->conns[0];

		/* Before INFO_RSP it would take the receive that is for INFO_RSP. */
		if (!ibtrs_srv_path_up(path) || !READ_ONCE(path->answered) ||
		    !(path->ext & IBTRS_EXT_EVENTS))
			continue;
		if (!ibtrs_conn_send_imm(&service->c, &service->send_cqe, imm))
			break;
	}
}
EXPORT_SYMBOL_GPL(ibtrs_srv_session_event);

bool ibtrs_srv_session_connected(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;

	guard(rcu)();
	list_for_each_entry_rcu(path, &s->paths, entry)
		if (ibtrs_srv_path_up(path))
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_session_connected);

/* Paths that are half open do not count: any host can begin one. */
void ibtrs_srv_peer_each(struct ibtrs_srv_session *s,
			 void (*fn)(void *arg, const struct ibtrs_origin *from), void *arg)
{
	struct ibtrs_srv_path *path;
	bool any = false;

	guard(rcu)();
	list_for_each_entry_rcu(path, &s->paths, entry) {
		if (!ibtrs_srv_path_up(path))
			continue;
		fn(arg, &path->from);
		any = true;
	}
	if (!any)
		fn(arg, &s->from);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_peer_each);
