// SPDX-License-Identifier: GPL-2.0-only
#include "ibnbd/logic/open_sm.h"

/* An entry is the next state plus one, so that 0 means "no entry". */
#define TO(state)	(IBNBD_OPEN_##state + 1)

static const u8 open_steps[IBNBD_OPEN_STATES][IBNBD_OPEN_EVENTS] = {
	[IBNBD_OPEN_NONE] = {
		[IBNBD_OPEN_EV_ASK]	= TO(ASKED),
	},
	[IBNBD_OPEN_ASKED] = {
		[IBNBD_OPEN_EV_LINK]	= TO(LINK),
		[IBNBD_OPEN_EV_UNIQUE]	= TO(UNIQUE),
		[IBNBD_OPEN_EV_REFUSED]	= TO(NONE),
		[IBNBD_OPEN_EV_LOST]	= TO(NONE),
	},
	[IBNBD_OPEN_LINK] = {
		[IBNBD_OPEN_EV_ASK]	= TO(LINK_ASKED),
		[IBNBD_OPEN_EV_LOST]	= TO(NONE),
		[IBNBD_OPEN_EV_CLOSE]	= TO(NONE),
	},
	[IBNBD_OPEN_LINK_ASKED] = {
		[IBNBD_OPEN_EV_LINK]	= TO(LINK),
		[IBNBD_OPEN_EV_UNIQUE]	= TO(UNIQUE),
		[IBNBD_OPEN_EV_REFUSED]	= TO(LINK),
		[IBNBD_OPEN_EV_LOST]	= TO(NONE),
		[IBNBD_OPEN_EV_CLOSE]	= TO(ASKED),
	},
	[IBNBD_OPEN_UNIQUE] = {
		[IBNBD_OPEN_EV_ASK]	= TO(UNIQUE_ASKED),
		[IBNBD_OPEN_EV_LOST]	= TO(OWED),
		[IBNBD_OPEN_EV_CLOSE]	= TO(OWED),
	},
	[IBNBD_OPEN_UNIQUE_ASKED] = {
		[IBNBD_OPEN_EV_LINK]	= TO(LINK),
		[IBNBD_OPEN_EV_UNIQUE]	= TO(UNIQUE),
		[IBNBD_OPEN_EV_REFUSED]	= TO(UNIQUE),
		[IBNBD_OPEN_EV_LOST]	= TO(OWED),
		[IBNBD_OPEN_EV_CLOSE]	= TO(OWED_ASKED),
	},
	[IBNBD_OPEN_OWED] = {
		[IBNBD_OPEN_EV_ASK]	= TO(OWED_ASKED),
		[IBNBD_OPEN_EV_CLOSED]	= TO(NONE),
	},
	[IBNBD_OPEN_OWED_ASKED] = {
		[IBNBD_OPEN_EV_LINK]	= TO(LINK),
		[IBNBD_OPEN_EV_UNIQUE]	= TO(UNIQUE),
		[IBNBD_OPEN_EV_REFUSED]	= TO(OWED),
		[IBNBD_OPEN_EV_LOST]	= TO(OWED),
		[IBNBD_OPEN_EV_CLOSED]	= TO(ASKED),
	},
};

enum ibnbd_open_state ibnbd_open_sm_step(enum ibnbd_open_state s, enum ibnbd_open_event ev)
{
	u8 to;

	if ((unsigned int)s >= IBNBD_OPEN_STATES || (unsigned int)ev >= IBNBD_OPEN_EVENTS)
		return s;
	to = open_steps[s][ev];
	return to ? (enum ibnbd_open_state)(to - 1) : s;
}
