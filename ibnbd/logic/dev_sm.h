/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The client device's state table (docs/design.md decisions 10 and 12, laws L1-L5; protocol 10.1).
 * (state, event) -> (state, actions). An event without an entry is ignored by rule. The holder of
 * the device's mutex is the only writer.
 *
 * HELD and FAILED differ in what happens to I/O while the link is away: HELD keeps it waiting,
 * FAILED ends it with an error at once. hold=0 is no special case: the caller posts HOLD_EXPIRED
 * right after LINK_DOWN.
 *
 * An OPENED event must belong to the link that is up now. The caller compares the session's link
 * generation before it posts the event, and drops answers of an earlier link.
 */
#ifndef IBNBD_LOGIC_DEV_SM_H
#define IBNBD_LOGIC_DEV_SM_H

#include <ibtrs/pure.h>

enum ibnbd_dev_state {
	IBNBD_DEV_INIT,		/* no disk yet */
	IBNBD_DEV_OPEN,		/* I/O flows */
	IBNBD_DEV_HELD,		/* link down or re-OPEN pending; I/O is held */
	/*
	 * as HELD, but what another leg of the group can do in its place ends: reads, flushes, and
	 * writes that say FAILFAST
	 */
	IBNBD_DEV_FAILFAST,
	/*
	 * the server may have lost writes: the client sends them again and flushes; I/O is held
	 */
	IBNBD_DEV_REPLAYING,
	/* the hold time is over; I/O ends with an error until the server answers again */
	IBNBD_DEV_FAILED,
	/*
	 * the server's answer does not fit this device; I/O ends with an error until an
	 * administrator remaps
	 */
	IBNBD_DEV_FENCED,
	IBNBD_DEV_UNMAPPED,	/* terminal */
	IBNBD_DEV_STATES
};

enum ibnbd_dev_event {
	/* events run one after the other under the device's lock; none is ever pending */
	IBNBD_DEV_EV_UNMAP,		/* unmap (normal or force), failed mapping, module exit */
	IBNBD_DEV_EV_FENCE,		/* ibnbd_remap_compare() or another check said so */
	/* the session's last path went away, or a replay was not answered */
	IBNBD_DEV_EV_LINK_DOWN,
	IBNBD_DEV_EV_HOLD_EXPIRED,	/* hold timer */
	IBNBD_DEV_EV_LET_GO,		/* ibnbd_dev_sm_group() said so, failfast= seconds ago */
	IBNBD_DEV_EV_TAKE_BACK,		/* no other leg can stand for it any more */
	/* OPEN was answered by a server that may have lost writes; the client has kept them */
	IBNBD_DEV_EV_REPLAY,
	/* an answer to OPEN was accepted: to the first OPEN, a re-OPEN, or the one after RESIZED */
	IBNBD_DEV_EV_OPENED,
	/* as OPENED, but an administrator asked for it: the only way out of FENCED */
	IBNBD_DEV_EV_REMAPPED,
	IBNBD_DEV_EVENTS
};

enum {	/* actions, executed in the order of their bits */
	/* quiesce the queue: queue_rq is not entered any more (L16: once) */
	IBNBD_DEV_DO_STOP	= 0x001,
	/* apply capacity and limits of the answer, before anything is replayed (L2) */
	IBNBD_DEV_DO_COMMIT	= 0x002,
	/* STOP and COMMIT run before the next state is entered; if either fails, the state stays */
	IBNBD_DEV_DO_BEFORE	= 0x003,
	/* start the hold timer, which means nothing once ibnbd_dev_sm_waits() is false */
	IBNBD_DEV_DO_ARM	= 0x004,
	/* end the held requests (L8), then unquiesce, so that queue_rq fails new I/O */
	IBNBD_DEV_DO_FAIL	= 0x008,
	IBNBD_DEV_DO_RESUME	= 0x010,	/* submit the parked requests again, unquiesce */
	IBNBD_DEV_DO_OFFLINE	= 0x020,	/* uevent OFFLINE */
	IBNBD_DEV_DO_ONLINE	= 0x040,	/* uevent ONLINE */
	IBNBD_DEV_DO_CLOSE	= 0x080,	/* send CLOSE to the server */
	/* queue the removal of the disk (L5); after the drain the removal sends its own CLOSE */
	IBNBD_DEV_DO_REMOVE	= 0x100,
	/* end what is held and another leg can do, then unquiesce: queue_rq sorts new I/O */
	IBNBD_DEV_DO_LET_GO	= 0x200,
};

struct ibnbd_dev_step {
	enum ibnbd_dev_state state;	/* the next state */
	unsigned int actions;
	bool taken;			/* false: the event means nothing in this state */
};

struct ibnbd_dev_step ibnbd_dev_sm_step(enum ibnbd_dev_state s, enum ibnbd_dev_event ev);
/*
 * The word that the file `state` shows: init, open, closed, unmapped (docs/sysfs.md; tools know no
 * other word).
 */
const char *ibnbd_dev_sm_word(enum ibnbd_dev_state s);
/*
 * The exact name, for logs and `state_detail`: init, open, held, failfast, replaying, failed,
 * fenced, unmapped.
 */
const char *ibnbd_dev_sm_state_name(enum ibnbd_dev_state s);
const char *ibnbd_dev_sm_event_name(enum ibnbd_dev_event ev);
/*
 * Does queue_rq submit (OPEN), hold (HELD, REPLAYING, and FAILFAST what no other leg can do), or
 * fail (all other states)?
 */
static inline bool ibnbd_dev_sm_submits(enum ibnbd_dev_state s)
{
	return s == IBNBD_DEV_OPEN;
}

static inline bool ibnbd_dev_sm_holds(enum ibnbd_dev_state s)
{
	return s == IBNBD_DEV_HELD || s == IBNBD_DEV_FAILFAST || s == IBNBD_DEV_REPLAYING;
}

/* Does I/O wait for the server, with hold= as the limit? */
static inline bool ibnbd_dev_sm_waits(enum ibnbd_dev_state s)
{
	return s == IBNBD_DEV_HELD || s == IBNBD_DEV_FAILFAST;
}

enum ibnbd_dev_group {
	IBNBD_DEV_GROUP_NOTHING,	/* no timer runs */
	/* LET_GO comes when this has been so for failfast= seconds */
	IBNBD_DEV_GROUP_WAIT,
	IBNBD_DEV_GROUP_TAKE_BACK,	/* TAKE_BACK comes now */
};

/**
 * ibnbd_dev_sm_group() - the group rule (docs/design.md, decision 21)
 * @s: state of a leg
 * @another: another leg of the group is open and in sync
 *
 * A request may fail early only if its sender can do without this leg, and another leg is
 * there. Everything else waits for hold=.
 */
enum ibnbd_dev_group ibnbd_dev_sm_group(enum ibnbd_dev_state s, bool another);

/*
 * What the server may still execute although the device does not wait for it any more (law L8):
 * requests that the device gave up in the mapping which the disk uses, and what a replay sent to
 * another mapping and saw no end of.
 *
 * The holder of the device's mutex is the only writer; others read @given_up.
 */
enum ibnbd_given_up {		/* each includes those before it; values of ibtrs_clt_at_large */
	IBNBD_GIVEN_UP_NOTHING,
	IBNBD_GIVEN_UP_READS,	/* or writes that have ended since */
	IBNBD_GIVEN_UP_WRITES,	/* the disk takes no writes: an older one could replace them */
};

struct ibnbd_at_large {
	enum ibnbd_given_up given_up;
	bool resent;			/* in mapping resent_id, a replay did not see its end */
	u32 resent_id;
};

/* The server has ended the writes, or an administrator accepts what they may do. */
static inline enum ibnbd_given_up ibnbd_given_up_ended(enum ibnbd_given_up s)
{
	return s == IBNBD_GIVEN_UP_WRITES ? IBNBD_GIVEN_UP_READS : s;
}

/**
 * ibnbd_at_large_resent() - may the mapping of an answer to OPEN still execute parts of a replay?
 * @unique: the server never gives an id twice, so @id tells
 * @settled: the server has ended all that was sent over lost paths
 */
static inline bool ibnbd_at_large_resent(const struct ibnbd_at_large *a, bool unique, u32 id,
					 bool settled)
{
	return a->resent && (unique ? id == a->resent_id : !settled);
}

/**
 * ibnbd_at_large_given_up() - may it still execute what the device gave up?
 * @s: the device was open since, unless it is FAILED or FAILFAST
 * @same: the answer names the mapping that the disk uses
 */
static inline bool ibnbd_at_large_given_up(const struct ibnbd_at_large *a, enum ibnbd_dev_state s,
					   bool same)
{
	return a->given_up != IBNBD_GIVEN_UP_NOTHING && same &&
	       (s == IBNBD_DEV_FAILED || s == IBNBD_DEV_FAILFAST);
}

/*
 * What the server has open for a device, as far as the client knows (protocol 10.1). For each OPEN
 * that the server did, or may have done, the client must send one CLOSE.
 *
 * A number is the device id that the server's answer to OPEN carries. One of our servers never
 * gives the same number twice, so the client can repeat a CLOSE that the server missed, on any
 * later link. The number of any other server is valid only until its link ends; on a later link it
 * may mean another device.
 *
 * The holder of the device's mutex is the only writer.
 */
enum ibnbd_open_state {
	IBNBD_OPEN_NONE,		/* nothing is open */
	IBNBD_OPEN_ASKED,		/* a bit: an OPEN was sent and has no answer so far */
	IBNBD_OPEN_LINK,		/* open, under a number that is valid on this link only */
	IBNBD_OPEN_LINK_ASKED,
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
