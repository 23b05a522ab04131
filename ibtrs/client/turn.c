// SPDX-License-Identifier: GPL-2.0-only
/*
 * One path at a time asks the server to make the session (law L21).
 *
 * An in-kernel server looks for the session and makes a new one in two steps. Two paths that come
 * back at the same moment may each get a session of their own under one uuid, and the server then
 * spreads the connections of both paths over both sessions. The kernel of 5.10 does not survive
 * that. Our own server does not have this problem, but the client learns only later which kind of
 * server it talks to.
 *
 * So while no path is up, one path at a time holds the turn. What the other paths send during that
 * time can join a session, but not make one. If the server answers such a path that there is no
 * session, the path has proved that its link works. The holder has not proved that: its link may be
 * dark. So the holder's deadline is shortened, and the path that was answered gets the next turn. A
 * holder keeps its turn until nothing that it sent is on its way any more, or for TURN_LONGEST if
 * its drain hangs.
 *
 * Called by: cm.c, path_run.c. The drain of the holder ends its turn, so the holder cannot be freed
 * while it has the turn. Locking: turn->lock is innermost, except for locks of the holder.
 */
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"

#define TURN_LONGEST	(15 * HZ)
/* the next attempt of a path comes after 0.1 s, and its drain may take a while */
#define TURN_NEXT	(2 * HZ)

bool ibtrs_clt_turn_take(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	guard(spinlock)(&turn->lock);
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
	return !path->early;
}

bool ibtrs_clt_turn_early(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	if (!path->early)
		return false;
	guard(spinlock)(&turn->lock);
	if (!turn->next) {
		turn->next = path;
		turn->next_end = jiffies + TURN_NEXT;
	}
	if (turn->holder)
		ibtrs_clt_path_hasten(turn->holder, ibtrs_retry_turn_ms);
	return true;
}

void ibtrs_clt_turn_end(struct ibtrs_clt_path *path, bool up)
{
	struct ibtrs_clt_turn *turn = &path->clt->turn;

	guard(spinlock)(&turn->lock);
	if (up)
		turn->next = NULL;
	if (turn->holder == path)
		turn->holder = NULL;
}
