/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The client path's state table (docs/design.md decision 5, section 6.2).
 * (state, event) -> (state, actions). An event that has no entry is
 * ignored by rule. One ordered work item per path is the only writer.
 */
#ifndef IBTRS_LOGIC_PATH_SM_H
#define IBTRS_LOGIC_PATH_SM_H

#include <ibtrs/pure.h>

enum ibtrs_path_state {
	IBTRS_PATH_IDLE,	/* never connected */
	IBTRS_PATH_CONNECTING,
	IBTRS_PATH_UP,
	IBTRS_PATH_BREAKING,	/* teardown runs, will reconnect */
	IBTRS_PATH_WAITING,	/* nothing is left of the connection; a timer runs */
	IBTRS_PATH_CLOSING,	/* teardown runs, will not reconnect */
	IBTRS_PATH_CLOSED,
	IBTRS_PATH_STATES
};

enum ibtrs_path_event {
	/* in order of precedence when several are pending */
	IBTRS_PATH_EV_CLOSE,	/* disconnect, remove_path, session close, device removal */
	IBTRS_PATH_EV_FAIL,	/* anything that makes the connection useless */
	IBTRS_PATH_EV_DRAINED,	/* teardown finished */
	IBTRS_PATH_EV_READY,	/* handshake finished */
	/* first connect, or a reconnect in sysfs; also starts a closed path again */
	IBTRS_PATH_EV_CONNECT,
	IBTRS_PATH_EV_GIVE_UP,	/* attempts exhausted */
	/* the timer fired or a link came up: ends a wait; ignored in CLOSED */
	IBTRS_PATH_EV_RETRY,
	IBTRS_PATH_EVENTS
};

enum {	/* actions, executed in the order of their bits */
	IBTRS_PATH_DO_DOWN	= 0x01,	/* unpublish, wait a grace period, tell the session */
	IBTRS_PATH_DO_TEARDOWN	= 0x02,	/* start the drain; DRAINED will be posted */
	IBTRS_PATH_DO_DISARM	= 0x04,	/* cancel the reconnect timer */
	IBTRS_PATH_DO_ARM	= 0x08,	/* start the reconnect timer */
	IBTRS_PATH_DO_CONNECT	= 0x10,	/* start one attempt; READY or FAIL will be posted */
	IBTRS_PATH_DO_UP	= 0x20,	/* publish, start heartbeats, tell the session */
	IBTRS_PATH_DO_CLOSED	= 0x40,	/* wake the waiters for the end */
};

struct ibtrs_path_step {
	enum ibtrs_path_state state;	/* the next one */
	unsigned int actions;
	bool taken;			/* false: the event is ignored in this state */
};

struct ibtrs_path_step ibtrs_path_sm_step(enum ibtrs_path_state s, enum ibtrs_path_event ev);
/* Words for logs and sysfs; never NULL. */
const char *ibtrs_path_sm_state_name(enum ibtrs_path_state s);

#endif
