// SPDX-License-Identifier: GPL-2.0-only
/*
 * One path at a time asks the server to make the session (law L21).
 *
 * An in-kernel server looks for the session and makes a new one in two steps: two paths that come
 * back in the same moment may get one each, under one uuid, and their connections are dealt out to
 * either. The kernel of 5.10 does not survive that. Ours needs none of this, but which it is shows
 * later.
 *
 * So while no path is up one of them has its turn; what the others say meanwhile can join a
 * session, not make one. A path that is answered that there is none has proved that its way works,
 * which the holder, perhaps on a dark link, has not: the holder's patience ends soon, and the path
 * that was answered goes next. A holder keeps its turn until nothing of what it asked for is on its
 * way any more, or for TURN_LONGEST if its drain hangs.
 *
 * Called by: cm.c, path_run.c. The holder's drain ends its turn, so it lives; the lock is innermost
 * but for that of its handshake.
 */
#include "ibtrs/client/deadline.h"
#include "ibtrs/client/session.h"

#define TURN_LONGEST	(15 * HZ)
/* its next attempt comes after a tenth of a second, and its drain may take a while */
#define TURN_NEXT	(2 * HZ)
/* what a server may need to make a session: it allocates all chunks before it answers */
#define TURN_MIN_MS	1500
#define TURN_MAX_MS	2500		/* decision 11: a link that returned is used within 3 s */

void ibtrs_clt_turn_init(struct ibtrs_clt_turn *turn)
{
	spin_lock_init(&turn->lock);
}

bool ibtrs_clt_turn_take(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	spin_lock(&turn->lock);
	if (turn->holder && time_after(jiffies, turn->holder_end))
		turn->holder = NULL;
	if (turn->next && time_after(jiffies, turn->next_end))
		turn->next = NULL;
	path->early = turn->holder || (turn->next && turn->next != path);
	if (!path->early) {
		turn->holder = path;
		turn->holder_end = jiffies + TURN_LONGEST;
		turn->next = NULL;
	}
	spin_unlock(&turn->lock);
	return !path->early;
}

bool ibtrs_clt_turn_early(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;
	struct ibtrs_clt_path *holder;

	if (!path->early)
		return false;
	spin_lock(&turn->lock);
	if (!turn->next) {
		turn->next = path;
		turn->next_end = jiffies + TURN_NEXT;
	}
	holder = turn->holder;
	if (holder)
		ibtrs_clt_deadline_hasten(holder, clamp_t(u32, 4 * READ_ONCE(holder->connect_ms),
							  TURN_MIN_MS, TURN_MAX_MS));
	spin_unlock(&turn->lock);
	return true;
}

void ibtrs_clt_turn_up(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	spin_lock(&turn->lock);
	turn->next = NULL;
	if (turn->holder == path)
		turn->holder = NULL;
	spin_unlock(&turn->lock);
}

void ibtrs_clt_turn_end(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	spin_lock(&turn->lock);
	if (turn->holder == path)
		turn->holder = NULL;
	spin_unlock(&turn->lock);
}
