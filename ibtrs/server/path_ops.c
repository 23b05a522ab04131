// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ops of a path that is closing: which are still busy, which the user still works on, and which
 * of those the client has given up. The code here looks at one slot after the other, each under its
 * own lock, so that a path with thousands of slots holds up no request.
 *
 * Called by: path_run.c (close work and end work), look.c. Failure: none.
 */
#include "ibtrs/server/op.h"
#include "ibtrs/server/path_ops.h"

void ibtrs_srv_path_ops_unpark(struct ibtrs_srv_path *path)
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
		bool with_user;

		spin_lock_irq(&s->lock);
		with_user = x->busy && x->admitted;
		*group = READ_ONCE(x->op.group);
		spin_unlock_irq(&s->lock);
		if (with_user)
			return true;
	}
	return false;
}

bool ibtrs_srv_path_ops_only_given_up(const struct ibtrs_srv_path *path, u32 *slot)
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

void ibtrs_srv_path_ops_give_up(const struct ibtrs_srv_path *path)
{
	u32 slot, group;

	for (slot = 0; op_with_user(path, &slot, &group); slot++)
		if (group)
			ibtrs_srv.ops->give_up(path->session->priv, group);
}

void ibtrs_srv_path_ops_let_go(struct ibtrs_srv_path *path)
{
	u32 slot, nr = path->limits.queue_depth;

	for (slot = 0; slot < nr; slot++)
		ibtrs_srv_op_let_go(ibtrs_srv_op_at(path, slot));
}

bool ibtrs_srv_path_ops_any_busy(const struct ibtrs_srv_path *path, u32 *from)
{
	u32 nr = path->ops ? path->limits.queue_depth : 0;

	while (*from < nr && !READ_ONCE(ibtrs_srv_op_at(path, *from)->busy))
		++*from;
	return *from < nr;
}
