/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the server has open for a device, as far as the client knows (spec B.5). The client owes it
 * one CLOSE for each OPEN that was done, or may have been done.
 *
 * (state, event) -> state. An event without an entry changes nothing. A server of ours never gives
 * a number twice, so a CLOSE that it missed can be repeated on any later link. Any other server's
 * number means another device there, and ends with its link.
 *
 * Whoever holds the device's mutex is the only writer.
 */
#ifndef IBNBD_LOGIC_OPEN_SM_H
#define IBNBD_LOGIC_OPEN_SM_H

#include <ibtrs/pure.h>

enum ibnbd_open_state {
	IBNBD_OPEN_NONE,		/* nothing is open */
	IBNBD_OPEN_ASKED,		/* an OPEN is out, or was never answered */
	IBNBD_OPEN_LINK,		/* open, under a number of this link */
	IBNBD_OPEN_LINK_ASKED,		/* the same, and another OPEN is out or unanswered */
	IBNBD_OPEN_UNIQUE,		/* open, under a number that never comes again */
	IBNBD_OPEN_UNIQUE_ASKED,
	IBNBD_OPEN_OWED,		/* perhaps open, under a unique number: a CLOSE is owed */
	IBNBD_OPEN_OWED_ASKED,
	IBNBD_OPEN_STATES
};

enum ibnbd_open_event {
	IBNBD_OPEN_EV_ASK,		/* an OPEN goes out */
	IBNBD_OPEN_EV_LINK,		/* it was done; the number is this link's */
	IBNBD_OPEN_EV_UNIQUE,		/* it was done; the number never comes again */
	IBNBD_OPEN_EV_REFUSED,		/* it was answered, and nothing was opened by it */
	IBNBD_OPEN_EV_LOST,		/* the link went away, or the server took the disk back */
	IBNBD_OPEN_EV_CLOSE,		/* a CLOSE goes out */
	IBNBD_OPEN_EV_CLOSED,		/* it was answered */
	IBNBD_OPEN_EVENTS
};

enum ibnbd_open_state ibnbd_open_sm_step(enum ibnbd_open_state s, enum ibnbd_open_event ev);

/* The server has it open on this link, and news of that number are the device's. */
static inline bool ibnbd_open_sm_is_open(enum ibnbd_open_state s)
{
	return s >= IBNBD_OPEN_LINK && s <= IBNBD_OPEN_UNIQUE_ASKED;
}

/* A CLOSE makes sense now. @unique: the server of this link never gives a number twice. */
static inline bool ibnbd_open_sm_can_close(enum ibnbd_open_state s, bool unique)
{
	return ibnbd_open_sm_is_open(s) || (unique && s >= IBNBD_OPEN_OWED);
}

/* A CLOSE must still reach the server when the device is gone, on whatever link. */
static inline bool ibnbd_open_sm_owes(enum ibnbd_open_state s)
{
	return s >= IBNBD_OPEN_UNIQUE;
}

/* An OPEN was never answered, and nothing else tells whether it was done. */
static inline bool ibnbd_open_sm_in_doubt(enum ibnbd_open_state s)
{
	return s == IBNBD_OPEN_ASKED || s == IBNBD_OPEN_OWED_ASKED;
}

#endif
