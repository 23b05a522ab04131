// SPDX-License-Identifier: GPL-2.0-only
/*
 * One path at a time asks an in-kernel server to make the session.
 *
 * Such a server looks for the session and makes a new one in two steps: two paths that come back in the same moment may get one each, under one
 * uuid, and their connections are dealt out to either. The kernel of 5.10 does not survive that.
 *
 * So while no path is up one of them has its turn; what the others say meanwhile can join a session, not make one. Who is answered that there is
 * none has proved that his way works, which the holder, who may talk to a dark link, has not: the holder's patience ends soon, and who was
 * answered goes next. Our own servers need none of this.
 *
 * Called by: cm.c, path.c. The holder is a path that connects, so it lives; the lock is innermost but for that of its handshake.
 */
#include "ibtrs/client/session.h"

#define TURN_NEXT	(2 * HZ)	/* its next attempt comes after a tenth of a second, and its drain may take a while */

void ibtrs_clt_turn_init(struct ibtrs_clt_turn *turn)
{
	spin_lock_init(&turn->lock);
}

bool ibtrs_clt_turn_take(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	spin_lock(&turn->lock);
	path->early = turn->holder || (turn->next && turn->next != path && time_before(jiffies, turn->next_end));
	if (!path->early) {
		turn->holder = path;
		turn->next = NULL;
	}
	spin_unlock(&turn->lock);
	return !path->early;
}

bool ibtrs_clt_turn_early(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	if (!path->early)
		return false;
	spin_lock(&turn->lock);
	if (!turn->next || time_after_eq(jiffies, turn->next_end)) {
		turn->next = path;
		turn->next_end = jiffies + TURN_NEXT;
	}
	if (turn->holder)
		ibtrs_clt_path_hasten(turn->holder);
	spin_unlock(&turn->lock);
	return true;
}

void ibtrs_clt_turn_end(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	spin_lock(&turn->lock);
	if (turn->holder == path)
		turn->holder = NULL;
	spin_unlock(&turn->lock);
}
