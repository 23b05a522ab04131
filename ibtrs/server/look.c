// SPDX-License-Identifier: GPL-2.0-only
/*
 * A look at a session whose client may be away or gone: a work, once a second while a path is
 * closing or lingering.
 *
 *  - A path that waits only for ops that the client has given up begins to linger.
 *  - LOOK_AWAY after the client has lost all its paths, the user gives up, for the client, the
 *    disks that the closing paths wait for (give_up()).
 *  - LOOK_LOST after its last CONN_REQ, the user closes all that the client had open
 *    (session_lost()). Once only lingering paths are left, the session also gives up its name
 *    (name.c keeps the name for a while). A client that comes back later finds the session in this
 *    state.
 *
 * Why, says docs/design.md 7.2.
 *
 * Called by: path_run.c; path.c queues the work (ibtrs_srv_session_watch()). Locking: a look takes
 * ibtrs_srv.lock for moments, and up_lock while it talks to the user. Failure: none.
 */
#include "ibtrs/server/op.h"
#include "ibtrs/server/quota.h"
#include "ibtrs/server/session.h"

/*
 * The ops of a path that is closing: which are still busy, which the user still works on, and which
 * of those the client has given up. The code here looks at one slot after the other, each under its
 * own lock, so that a path with thousands of slots holds up no request.
 */

void ibtrs_srv_look_ops_unpark(struct ibtrs_srv_path *path)
{
	u32 slot, nr = path->ops ? path->limits.queue_depth : 0;

	for (slot = 0; slot < nr; slot++) {
		struct ibtrs_srv_opx *x = ibtrs_srv_op_at(path, slot);
		struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);
		bool parked;

		/* No slots: the session never came up. Pairs with session_alloc(). */
		if (!smp_load_acquire(&path->session->slots))
			return;
		spin_lock_irq(&s->lock);
		parked = s->parked == x;
		if (parked)
			s->parked = NULL;
		spin_unlock_irq(&s->lock);
		if (parked)
			ibtrs_srv_op_release(x);
	}
}

/*
 * Finds the next op, from slot *@slot on, that the user works on, and its group. Other busy ops are
 * on their way to or from the user; they end because the path is closing.
 */
static bool op_with_user(const struct ibtrs_srv_path *path, u32 *slot, u32 *group)
{
	u32 nr = path->ops ? path->limits.queue_depth : 0;

	/* Pairs with session_alloc(). */
	if (!smp_load_acquire(&path->session->slots))
		return false;
	for (; *slot < nr; ++*slot) {
		const struct ibtrs_srv_opx *x = ibtrs_srv_op_at(path, *slot);
		struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);

		guard(spinlock_irq)(&s->lock);
		*group = READ_ONCE(x->op.group);
		if (x->busy && x->admitted)
			return true;
	}
	return false;
}

/*
 * True: the user works on ops of @path, and the client has given up all of them. @slot: slot of the
 * first such op. @path is stopped.
 */
static bool path_ops_only_given_up(const struct ibtrs_srv_path *path, u32 *slot)
{
	bool any = false;
	u32 i, group;

	for (i = 0; op_with_user(path, &i, &group); i++) {
		if (!group || !ibtrs_srv.ops->given_up(path->session->priv, group))
			return false;
		if (!any)
			*slot = i;
		any = true;
	}
	return any;
}

/*
 * The client has no path on which it could give up what the ops of @path are for: tell the user to
 * do so (give_up()).
 */
static void path_ops_give_up(const struct ibtrs_srv_path *path)
{
	u32 slot, group;

	for (slot = 0; op_with_user(path, &slot, &group); slot++)
		if (group)
			ibtrs_srv.ops->give_up(path->session->priv, group);
}

/*
 * The ops of @path are given up: they leave their slots, as if they had ended, so that the
 * session's other paths can use the slots.
 */
static void path_ops_let_go(struct ibtrs_srv_path *path)
{
	u32 slot, nr = path->limits.queue_depth;

	for (slot = 0; slot < nr; slot++)
		ibtrs_srv_op_let_go(ibtrs_srv_op_at(path, slot));
}

bool ibtrs_srv_look_ops_any_busy(const struct ibtrs_srv_path *path, u32 *from)
{
	u32 nr = path->ops ? path->limits.queue_depth : 0;

	while (*from < nr && !READ_ONCE(ibtrs_srv_op_at(path, *from)->busy))
		++*from;
	return *from < nr;
}

/* how long a disk may take for a request; the client's hold= should be longer */
#define LOOK_AWAY	(30 * HZ)
#define LOOK_LOST	(30 * HZ)	/* a live client sends CONN_REQs more often */

/* Are all paths in state @least or later? False if there is no path: the session is just ending. */
static bool look_all_paths(struct ibtrs_srv_session *s, enum ibtrs_srv_path_state least)
{
	struct ibtrs_srv_path *path;

	lockdep_assert_held(&ibtrs_srv.lock);
	list_for_each_entry(path, &s->paths, entry)
		if (ibtrs_srv_path_state(path) < least)
			return false;
	return !list_empty(&s->paths);
}

static bool look_silent(struct ibtrs_srv_session *s, const unsigned long *since,
			unsigned long time)
{
	if (!look_all_paths(s, IBTRS_SRV_PATH_CLOSING))
		return false;
	/* pairs with the cmpxchg() to CLOSING: knocked and down_at were written before it */
	smp_rmb();
	return time_after(jiffies, READ_ONCE(*since) + time);
}

static bool look_is_lost(struct ibtrs_srv_session *s)
{
	guard(mutex)(&ibtrs_srv.lock);
	return look_silent(s, &s->knocked, LOOK_LOST);
}

/* The lock is held: no path is added, and a path that is closing never comes up again. */
static void look_give_up_ops(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;

	guard(mutex)(&ibtrs_srv.lock);
	if (!look_silent(s, &s->down_at, LOOK_AWAY))
		return;
	/*
	 * The ops of a path are freed only after it has left CLOSING, and it leaves CLOSING under
	 * the lock. The ops of a lingering path have been given up already. A path that is not
	 * stopped yet may still be making its ops, in the INFO work: the next look finds it.
	 */
	list_for_each_entry(path, &s->paths, entry)
		if (smp_load_acquire(&path->stopped) &&	/* pairs with path_stop_posting() */
		    ibtrs_srv_path_state(path) == IBTRS_SRV_PATH_CLOSING)
			path_ops_give_up(path);
}

static bool look_only_lingers(struct ibtrs_srv_session *s)
{
	guard(mutex)(&ibtrs_srv.lock);
	return s->name[0] && look_all_paths(s, IBTRS_SRV_PATH_LINGERING);
}

/*
 * Gives the name up, unless the client is just coming back. In that case the INFO work of the new
 * path waits for up_lock, and then makes the sysfs directory again.
 */
static void look_give_up_name(struct ibtrs_srv_session *s)
{
	guard(mutex)(&ibtrs_srv.lock);
	if (!look_all_paths(s, IBTRS_SRV_PATH_LINGERING))
		return;
	pr_warn("session %s: its client is gone, a disk has not ended its requests\n",
		ibtrs_srv_session_label(s));
	ibtrs_srv_name_keep(s);
	s->name[0] = 0;
}

static void look_if_away(struct ibtrs_srv_session *s)
{
	guard(mutex)(&s->up_lock);
	if (!s->up)
		return;
	look_give_up_ops(s);
	if (!look_is_lost(s))
		return;
	ibtrs_srv.ops->session_lost(s->priv);
	if (look_only_lingers(s)) {
		ibtrs_srv_sysfs_session_del(s);
		look_give_up_name(s);
	}
}

/*
 * If a closing path waits only for ops that the client has given up, the path begins to linger:
 * from then on it blocks no other path.
 */
static void look_linger(struct ibtrs_srv_path *path)
{
	u32 slot;

	lockdep_assert_held(&ibtrs_srv.lock);
	/* Pairs with path_stop_posting(). */
	if (!smp_load_acquire(&path->stopped) ||
	    ibtrs_srv_path_state(path) != IBTRS_SRV_PATH_CLOSING ||
	    !path_ops_only_given_up(path, &slot))
		return;
	pr_warn("session %s: %s: the disk has not completed a request of slot %u that the client aborted\n",
		ibtrs_srv_session_label(path->session), path->name, slot);
	path_ops_let_go(path);
	ibtrs_srv_path_change(path, IBTRS_SRV_PATH_CLOSING, IBTRS_SRV_PATH_LINGERING);
}

/* True: a path is closing or lingering. */
static bool look_at_paths(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path *path;
	bool ending = false;

	guard(mutex)(&ibtrs_srv.lock);
	list_for_each_entry(path, &s->paths, entry) {
		look_linger(path);
		ending |= ibtrs_srv_path_state(path) >= IBTRS_SRV_PATH_CLOSING;
	}
	return ending;
}

void ibtrs_srv_look_work(struct work_struct *work)
{
	struct ibtrs_srv_session *s =
		container_of(to_delayed_work(work), struct ibtrs_srv_session, look);

	if (!look_at_paths(s))
		return;
	look_if_away(s);
	queue_delayed_work(ibtrs_srv.info_wq, &s->look, IBTRS_SRV_SESSION_LOOK);
}
