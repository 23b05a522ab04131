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
 * While a path is closing or lingering, a work looks at the session once a second:
 *  - A path that waits only for ops that the client has given up begins to linger.
 *  - A client that has lost all its paths cannot give a disk up itself, and its CONN_REQs are
 *    refused while the disk still works on its ops. After SESSION_AWAY the user gives up, for the
 *    client, the disks that the closing paths wait for (give_up()). Then the client can connect
 *    again, and it still has its other disks.
 *  - A client may be gone for good while a disk still works on its ops. After SESSION_LOST the user
 *    closes all that the client had open (session_lost()). Once only lingering paths are left, the
 *    session also gives up its name (name.c keeps the name for a while). A client that comes back
 *    later finds the session in this state.
 *
 * ibtrs_srv.lock protects the table, the names and the lists of paths; no code that waits runs
 * under it. Readers in any context (events) walk the lists under RCU. up_lock serializes the INFO
 * works of one session, which wait for the user's session_up().
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include "ibtrs/core/key.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/server/name.h"
#include "ibtrs/server/op.h"
#include "ibtrs/server/quota.h"
#include "ibtrs/server/session.h"
#include "ibtrs/server/sysfs.h"

/* how long a disk may take for a request; the client's hold= should be longer */
#define SESSION_AWAY	(30 * HZ)
#define SESSION_LOST	(30 * HZ)	/* a live client sends CONN_REQs more often */

static void session_look_work(struct work_struct *work);

struct ibtrs_srv_session *ibtrs_srv_session_find(const u8 *uuid, const char *key)
{
	struct ibtrs_srv_session *s;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(s, &ibtrs_srv.sessions, entry)
		if (!memcmp(s->uuid, uuid, sizeof(s->uuid)) && !strcmp(s->key, key))
			return s;
	return NULL;
}

struct ibtrs_srv_session *ibtrs_srv_session_create(const u8 *uuid, const struct ibtrs_addr *peer,
						   const char *key, const char **why)
{
	struct ibtrs_srv_session *s;
	int err;

	lockdep_assert_held(&ibtrs_srv.lock);
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s) {
		*why = "out of memory";
		return ERR_PTR(-ENOMEM);
	}
	err = ibtrs_auth_identity(&ibtrs_auth_kernel, uuid, key, s->identity);
	if (err) {
		*why = "the kernel can not compute hmac(sha256)";
		kfree(s);
		return ERR_PTR(err);
	}
	memcpy(s->uuid, uuid, sizeof(s->uuid));
	s->knocked = jiffies;
	s->down_at = jiffies;
	s->peer = *peer;
	strscpy(s->key, key, sizeof(s->key));
	s->life = get_random_u32() ?: 1;
	ibtrs_dev_pool_init(&s->devs);
	INIT_LIST_HEAD(&s->paths);
	mutex_init(&s->up_lock);
	INIT_DELAYED_WORK(&s->look, session_look_work);
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
		if (state < IBTRS_SRV_PATH_CLOSING) {
			*why = "the session has a path with these addresses";
			return -EEXIST;
		}
		*why = "a path with these addresses is being closed";
		return -EBUSY;
	}
	if (s->nr_paths >= IBTRS_MAX_PATHS) {
		*why = "the session has as many paths as it may";
		return -ECONNRESET;
	}
	return 0;
}

void ibtrs_srv_session_add_path(struct ibtrs_srv_session *s, struct ibtrs_srv_path *path)
{
	u32 i;

	lockdep_assert_held(&ibtrs_srv.lock);
	s->nr_paths++;
	for (i = 0; i < s->peers.nr && !ibtrs_addr_equal(&s->peers.addr[i], &path->addr.src); i++)
		;
	if (i == s->peers.nr && i < IBTRS_SRV_PEERS)
		s->peers.addr[s->peers.nr++] = path->addr.src;
	list_add_tail_rcu(&path->entry, &s->paths);
}

int ibtrs_srv_session_take_name(struct ibtrs_srv_path *path, const char *name, const char **why)
{
	const struct ibtrs_srv_ops *ops = ibtrs_srv.ops;
	struct ibtrs_srv_session *s = path->session;
	int err;

	guard(mutex)(&ibtrs_srv.lock);
	/* for each path: the allow-list may have got shorter since the session has its name */
	if (ops->name_allowed && !ops->name_allowed(&path->from, name)) {
		*why = "the session's name is not on the allow-list; add it to the parameter allow";
		return -EACCES;
	}
	if (s->name[0]) {
		if (!strcmp(s->name, name)) {
			s->naming++;
			return 0;
		}
		*why = "the session has another name on its other paths";
		return -EINVAL;
	}
	if (s->user_name[0] && strcmp(s->user_name, name)) {
		*why = "the session had another name before";
		return -EINVAL;
	}
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
	int err;

	*why = "out of memory";
	err = session_alloc(s, path->dev->node);
	if (err)
		return err;
	*why = "its directory in sysfs cannot be made";
	err = ibtrs_srv_sysfs_session_add(s);
	if (err)
		return err;
	s->from = path->from;
	*why = "the block server has no memory for it";
	err = ibtrs_srv.ops->session_up(s, s->name, &path->addr.src, &s->priv);
	if (err) {
		ibtrs_srv_sysfs_session_del(s);
		return err;
	}
	strscpy(s->user_name, s->name, sizeof(s->user_name));
	s->up = true;
	return 0;
}

int ibtrs_srv_session_bring_up(struct ibtrs_srv_path *path, const char **why)
{
	struct ibtrs_srv_session *s = path->session;
	int err = 0;

	mutex_lock(&s->up_lock);
	if (!s->up)
		err = session_first_up(s, path, why);
	else if (!s->sysfs_dev)		/* removed when the client was lost */
		err = ibtrs_srv_sysfs_session_add(s);
	mutex_unlock(&s->up_lock);
	return err;
}

int ibtrs_srv_session_admit_peer(struct ibtrs_srv_path *path, const char **why)
{
	const struct ibtrs_srv_ops *ops = ibtrs_srv.ops;
	struct ibtrs_srv_session *s = path->session;

	guard(mutex)(&s->up_lock);
	if (!s->up || !ops->peer_joins)
		return 0;
	return ops->peer_joins(s->priv, &path->from, why);
}

/* Are all paths in state @least or later? False if there is no path: the session is just ending. */
static bool session_all_paths(struct ibtrs_srv_session *s, enum ibtrs_srv_path_state least)
{
	struct ibtrs_srv_path *path;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(path, &s->paths, entry)
		if (ibtrs_srv_path_state(path) < least)
			return false;
	return !list_empty(&s->paths);
}

static bool session_silent(struct ibtrs_srv_session *s, const unsigned long *since,
			   unsigned long time)
{
	if (!session_all_paths(s, IBTRS_SRV_PATH_CLOSING))
		return false;
	/* pairs with the cmpxchg() to CLOSING: knocked and down_at were written before it */
	smp_rmb();
	return time_after(jiffies, READ_ONCE(*since) + time);
}

static bool session_is_lost(struct ibtrs_srv_session *s)
{
	guard(mutex)(&ibtrs_srv.lock);
	return session_silent(s, &s->knocked, SESSION_LOST);
}

/* The lock is held: no path is added, and a path that is closing never comes up again. */
static void session_give_up_ops(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;

	guard(mutex)(&ibtrs_srv.lock);
	if (!session_silent(s, &s->down_at, SESSION_AWAY))
		return;
	/*
	 * The ops of a path are freed only after it has left CLOSING, and it leaves CLOSING under
	 * the lock. The ops of a lingering path have been given up already. A path that is not
	 * stopped yet may still be making its ops, in the INFO work: the next look finds it.
	 */
	list_for_each_entry(path, &s->paths, entry)
		if (smp_load_acquire(&path->stopped) &&	/* pairs with path_stop_posting() */
		    ibtrs_srv_path_state(path) == IBTRS_SRV_PATH_CLOSING)
			ibtrs_srv_op_give_up(path);
}

static bool session_only_lingers(struct ibtrs_srv_session *s)
{
	guard(mutex)(&ibtrs_srv.lock);
	return s->name[0] && session_all_paths(s, IBTRS_SRV_PATH_LINGERING);
}

/*
 * Gives the name up, unless the client is just coming back. In that case the INFO work of the new
 * path waits for up_lock, and then makes the sysfs directory again.
 */
static void session_give_up_name(struct ibtrs_srv_session *s)
{
	guard(mutex)(&ibtrs_srv.lock);
	if (!session_all_paths(s, IBTRS_SRV_PATH_LINGERING))
		return;
	pr_warn("session %s: its client is gone, a disk has not ended its requests\n",
		ibtrs_srv_session_label(s));
	ibtrs_srv_name_keep(s);
	s->name[0] = 0;
}

static void session_look_if_away(struct ibtrs_srv_session *s)
{
	guard(mutex)(&s->up_lock);
	if (!s->up)
		return;
	session_give_up_ops(s);
	if (!session_is_lost(s))
		return;
	ibtrs_srv.ops->session_lost(s->priv);
	if (session_only_lingers(s)) {
		ibtrs_srv_sysfs_session_del(s);
		session_give_up_name(s);
	}
}

/*
 * If a closing path waits only for ops that the client has given up, the path begins to linger:
 * from then on it blocks no other path.
 */
static void session_linger(struct ibtrs_srv_path *path)
{
	u32 slot;

	lockdep_assert_held(&ibtrs_srv.lock);
	/* Pairs with path_stop_posting(). */
	if (!smp_load_acquire(&path->stopped) ||
	    ibtrs_srv_path_state(path) != IBTRS_SRV_PATH_CLOSING ||
	    !ibtrs_srv_op_only_given_up(path, &slot))
		return;
	pr_warn("session %s: %s: the storage has not ended a request of slot %u, which the client has given up\n",
		ibtrs_srv_session_label(path->session), path->name, slot);
	ibtrs_srv_op_let_go(path);
	ibtrs_srv_path_change(path, IBTRS_SRV_PATH_CLOSING, IBTRS_SRV_PATH_LINGERING);
}

/* True: a path is closing or lingering. */
static bool session_look_at_paths(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;
	bool ending = false;

	guard(mutex)(&ibtrs_srv.lock);
	list_for_each_entry(path, &s->paths, entry) {
		session_linger(path);
		ending |= ibtrs_srv_path_state(path) >= IBTRS_SRV_PATH_CLOSING;
	}
	return ending;
}

static void session_look_work(struct work_struct *work)
{
	struct ibtrs_srv_session *s =
		container_of(to_delayed_work(work), struct ibtrs_srv_session, look);

	if (!session_look_at_paths(s))
		return;
	session_look_if_away(s);
	queue_delayed_work(ibtrs_srv.info_wq, &s->look, IBTRS_SRV_SESSION_LOOK);
}

void ibtrs_srv_session_look(struct ibtrs_srv_session *s)
{
	mod_delayed_work(ibtrs_srv.info_wq, &s->look, 0);
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
	mutex_lock(&ibtrs_srv.lock);
	if (left == IBTRS_SRV_LEFT_OPEN)
		ibtrs_srv_name_keep(s);
	else
		ibtrs_srv_chunk_forget(s);
	/* It came back, and was lost again before it could open anything. */
	if (left == IBTRS_SRV_LEFT_UNUSED)
		ibtrs_srv_name_give_back(s);
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
	s->dying = last;
	mutex_unlock(&ibtrs_srv.lock);
	if (last)
		session_end(s);
}

void ibtrs_srv_session_close_all(void)
{
	struct ibtrs_srv_session *s;

	rcu_read_lock();
	list_for_each_entry_rcu(s, &ibtrs_srv.sessions, entry)
		ibtrs_srv_session_close(s);
	rcu_read_unlock();
	wait_event(ibtrs_srv.gone, list_empty(&ibtrs_srv.sessions));
	flush_workqueue(ibtrs_srv.wq);
}

/**
 * ibtrs_srv_session_close() - close all paths of a session
 * @s: session
 *
 * Does not wait. The client will come back if it wants. Any context.
 */
void ibtrs_srv_session_close(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;

	rcu_read_lock();
	list_for_each_entry_rcu(path, &s->paths, entry)
		ibtrs_srv_path_close(path, "closed by the server");
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(ibtrs_srv_session_close);

/**
 * ibtrs_srv_session_event() - tell the client something (spec F.3)
 * @s: session
 * @kind: enum ibtrs_event_kind
 * @id: device id
 *
 * An event is only a hint: it may be lost. A client that did not negotiate EVENTS gets nothing. Any
 * context.
 */
void ibtrs_srv_session_event(struct ibtrs_srv_session *s, u32 kind, u32 id)
{
	u32 imm = ibtrs_imm_event(kind, id);
	struct ibtrs_srv_path *path;

	rcu_read_lock();
	list_for_each_entry_rcu(path, &s->paths, entry) {
		struct ibtrs_srv_conn *service = &path->conns[0];

		if (!ibtrs_srv_path_up(path) || !(path->ext & IBTRS_EXT_EVENTS))
			continue;
		if (!ibtrs_conn_send_imm(&service->c, &service->send_cqe, imm))
			break;
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(ibtrs_srv_session_event);

/**
 * ibtrs_srv_session_connected() - does the session have a path that is up?
 * @s: session
 *
 * Any context.
 */
bool ibtrs_srv_session_connected(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;
	bool up = false;

	rcu_read_lock();
	list_for_each_entry_rcu(path, &s->paths, entry)
		up |= ibtrs_srv_path_up(path);
	rcu_read_unlock();
	return up;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_session_connected);
