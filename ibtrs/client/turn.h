/* SPDX-License-Identifier: GPL-2.0-only */
/* Which path of a session that has no path up may make the session at the server (protocol 2.2). */
#ifndef IBTRS_CLIENT_TURN_H
#define IBTRS_CLIENT_TURN_H

#include <linux/spinlock.h>

struct ibtrs_clt_path;

struct ibtrs_clt_turn {
	spinlock_t lock;
	/* this path may ask the server to make the session */
	struct ibtrs_clt_path *holder;
	/* jiffies: after that the holder blocks no other path */
	unsigned long holder_end;
	/* a path that the server has answered; only compared, never dereferenced */
	const struct ibtrs_clt_path *next;
	/* jiffies: until then only `next` may take the turn */
	unsigned long next_end;
};

/* @path is about to connect cid 0: may that make the session? CM event of cid 0. */
bool ibtrs_clt_turn_take(struct ibtrs_clt_path *path);
/*
 * The server answered that it does not know the session. Return true if that is because another
 * path has the turn: then @path was not refused, but asked too early. CM event of cid 0.
 */
bool ibtrs_clt_turn_early(struct ibtrs_clt_path *path);
/*
 * The turn of @path ends. @up: because the path is up, so the session exists and no path is the
 * next one; else because nothing that it sent is on its way any more. Path work, drain.
 */
void ibtrs_clt_turn_end(struct ibtrs_clt_path *path, bool up);

#endif
