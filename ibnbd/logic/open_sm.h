/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the server has open for a device, as far as the client knows (protocol 10.1). For each OPEN
 * that the server did, or may have done, the client must send one CLOSE.
 *
 * (state, event) -> state. An event without an entry changes nothing. A number is the device id
 * that the server's answer to OPEN carries. One of our servers never gives the same number twice,
 * so the client can repeat a CLOSE that the server missed, on any later link. The number of any
 * other server is valid only until its link ends; on a later link it may mean another device.
 *
 * Whoever holds the device's mutex is the only writer.
 */
#ifndef IBNBD_LOGIC_OPEN_SM_H
#define IBNBD_LOGIC_OPEN_SM_H

#include <ibtrs/pure.h>

enum ibnbd_open_state {
	IBNBD_OPEN_NONE,		/* nothing is open */
	IBNBD_OPEN_ASKED,		/* an OPEN was sent and has no answer so far */
	IBNBD_OPEN_LINK,		/* open, under a number that is valid on this link only */
	IBNBD_OPEN_LINK_ASKED,		/* the same, and another OPEN has no answer so far */
	IBNBD_OPEN_UNIQUE,		/* open, under a number that is never given again */
	IBNBD_OPEN_UNIQUE_ASKED,
	IBNBD_OPEN_OWED,		/* perhaps open, unique number: a CLOSE must be sent */
	IBNBD_OPEN_OWED_ASKED,
	IBNBD_OPEN_STATES
};

enum ibnbd_open_event {
	IBNBD_OPEN_EV_ASK,		/* an OPEN is sent */
	IBNBD_OPEN_EV_LINK,		/* OPEN succeeded; the number is this link's */
	IBNBD_OPEN_EV_UNIQUE,		/* OPEN succeeded; the number is never given again */
	IBNBD_OPEN_EV_REFUSED,		/* OPEN was answered, and it opened nothing */
	IBNBD_OPEN_EV_LOST,		/* the link went away, or the server took the disk back */
	IBNBD_OPEN_EV_CLOSE,		/* a CLOSE is sent */
	IBNBD_OPEN_EV_CLOSED,		/* CLOSE was answered */
	IBNBD_OPEN_EVENTS
};

enum ibnbd_open_state ibnbd_open_sm_step(enum ibnbd_open_state s, enum ibnbd_open_event ev);

/* The server has the device open on this link; its events with that number are for this device. */
static inline bool ibnbd_open_sm_is_open(enum ibnbd_open_state s)
{
	return s >= IBNBD_OPEN_LINK && s <= IBNBD_OPEN_UNIQUE_ASKED;
}

/* May a CLOSE be sent now? @unique: the server of this link never gives a number twice. */
static inline bool ibnbd_open_sm_can_close(enum ibnbd_open_state s, bool unique)
{
	return ibnbd_open_sm_is_open(s) || (unique && s >= IBNBD_OPEN_OWED);
}

/* A CLOSE must still reach the server after the device is gone, on this link or a later one. */
static inline bool ibnbd_open_sm_owes(enum ibnbd_open_state s)
{
	return s >= IBNBD_OPEN_UNIQUE;
}

/* An OPEN was never answered, and nothing else tells whether the server did it. */
static inline bool ibnbd_open_sm_in_doubt(enum ibnbd_open_state s)
{
	return s == IBNBD_OPEN_ASKED || s == IBNBD_OPEN_OWED_ASKED;
}

#endif
