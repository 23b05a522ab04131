/* SPDX-License-Identifier: GPL-2.0-only */
/* Which path of a session without paths may make it at the server (spec A.6). */
#ifndef IBTRS_CLIENT_TURN_H
#define IBTRS_CLIENT_TURN_H

#include <linux/spinlock.h>

struct ibtrs_clt_path;

struct ibtrs_clt_turn {
	spinlock_t lock;
	struct ibtrs_clt_path *holder;		/* it asks the server to make the session */
	/* jiffies: from then on it keeps nobody from that */
	unsigned long holder_end;
	/* the server answers it; compared, never followed */
	const struct ibtrs_clt_path *next;
	unsigned long next_end;			/* jiffies: until then it goes before others */
};

void ibtrs_clt_turn_init(struct ibtrs_clt_turn *turn);
/* @path is about to say its first word: may that make the session? CM event of cid 0. */
bool ibtrs_clt_turn_take(struct ibtrs_clt_path *path);
/*
 * The server does not know the session. True: because another path has its turn, so @path is not
 * refused, but early. CM event of cid 0.
 */
bool ibtrs_clt_turn_early(struct ibtrs_clt_path *path);
/* @path is up: there is nothing to make. Path work. */
void ibtrs_clt_turn_up(struct ibtrs_clt_path *path);
/* Nothing of what @path has asked for is on its way any more. Drain. */
void ibtrs_clt_turn_end(struct ibtrs_clt_path *path);

#endif
