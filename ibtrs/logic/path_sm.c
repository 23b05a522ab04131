// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/path_sm.h"

#define GO(next, acts)	{ .state = IBTRS_PATH_##next, .actions = (acts), .taken = true }
#define DO(what)	IBTRS_PATH_DO_##what

/*
 * The table guarantees, in any order of events:
 *
 * - a teardown runs in BREAKING and CLOSING and in no other state; it is started once on the way
 *   in, and only DRAINED leads to a state without a teardown;
 * - an attempt runs in CONNECTING and in no other state, so READY is ignored elsewhere;
 * - the timer is armed in WAITING and in no other state;
 * - the path is published in UP and in no other state: each UP is followed by one DOWN;
 * - from every state CLOSE leads to CLOSED, after DRAINED if a teardown is needed.
 *
 * RETRY is not the same event as CONNECT, because the timer may fire, or a port may come up, while
 * CLOSE is already pending. CLOSE is handled first, and the RETRY after it must not start the
 * closed path again, as CONNECT would.
 */
static const struct ibtrs_path_step path_sm[IBTRS_PATH_STATES][IBTRS_PATH_EVENTS] = {
	[IBTRS_PATH_IDLE] = {
		[IBTRS_PATH_EV_CONNECT]	= GO(CONNECTING, DO(CONNECT)),
		[IBTRS_PATH_EV_CLOSE]	= GO(CLOSED, DO(CLOSED)),
	},
	[IBTRS_PATH_CONNECTING] = {
		[IBTRS_PATH_EV_READY]	= GO(UP, DO(UP)),
		[IBTRS_PATH_EV_FAIL]	= GO(BREAKING, DO(TEARDOWN)),
		[IBTRS_PATH_EV_CLOSE]	= GO(CLOSING, DO(TEARDOWN)),
	},
	[IBTRS_PATH_UP] = {
		[IBTRS_PATH_EV_FAIL]	= GO(BREAKING, DO(DOWN) | DO(TEARDOWN)),
		[IBTRS_PATH_EV_CLOSE]	= GO(CLOSING, DO(DOWN) | DO(TEARDOWN)),
	},
	[IBTRS_PATH_BREAKING] = {
		[IBTRS_PATH_EV_DRAINED]	= GO(WAITING, DO(ARM)),
		[IBTRS_PATH_EV_CLOSE]	= GO(CLOSING, 0),
		[IBTRS_PATH_EV_GIVE_UP]	= GO(CLOSING, 0),
	},
	[IBTRS_PATH_WAITING] = {
		[IBTRS_PATH_EV_CONNECT]	= GO(CONNECTING, DO(DISARM) | DO(CONNECT)),
		[IBTRS_PATH_EV_RETRY]	= GO(CONNECTING, DO(DISARM) | DO(CONNECT)),
		[IBTRS_PATH_EV_CLOSE]	= GO(CLOSED, DO(DISARM) | DO(CLOSED)),
		[IBTRS_PATH_EV_GIVE_UP]	= GO(CLOSED, DO(DISARM) | DO(CLOSED)),
	},
	[IBTRS_PATH_CLOSING] = {
		[IBTRS_PATH_EV_DRAINED]	= GO(CLOSED, DO(CLOSED)),
	},
	[IBTRS_PATH_CLOSED] = {
		[IBTRS_PATH_EV_CONNECT]	= GO(CONNECTING, DO(CONNECT)),
		/* so that a second closer is woken too */
		[IBTRS_PATH_EV_CLOSE]	= GO(CLOSED, DO(CLOSED)),
	},
};

struct ibtrs_path_step ibtrs_path_sm_step(enum ibtrs_path_state s, enum ibtrs_path_event ev)
{
	const struct ibtrs_path_step stay = { .state = s };

	if ((unsigned int)s >= IBTRS_PATH_STATES || (unsigned int)ev >= IBTRS_PATH_EVENTS ||
	    !path_sm[s][ev].taken)
		return stay;
	return path_sm[s][ev];
}

static const char * const state_names[IBTRS_PATH_STATES] = {
	[IBTRS_PATH_IDLE]	= "idle",
	[IBTRS_PATH_CONNECTING]	= "connecting",
	[IBTRS_PATH_UP]		= "up",
	[IBTRS_PATH_BREAKING]	= "breaking",
	[IBTRS_PATH_WAITING]	= "waiting",
	[IBTRS_PATH_CLOSING]	= "closing",
	[IBTRS_PATH_CLOSED]	= "closed",
};

const char *ibtrs_path_sm_state_name(enum ibtrs_path_state s)
{
	return (unsigned int)s < IBTRS_PATH_STATES ? state_names[s] : "?";
}
