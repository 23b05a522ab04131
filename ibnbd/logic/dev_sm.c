// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibnbd/logic/dev_sm.h"

#define STEP(next, acts)	{ .state = IBNBD_DEV_##next, .actions = (acts), .taken = true }
#define DO(x)			IBNBD_DEV_DO_##x

/* Actions that make a device usable again. The queue is already quiesced; limits are set first. */
#define DEV_REOPEN	(DO(COMMIT) | DO(RESUME) | DO(ONLINE))
#define DEV_FENCE	(DO(FAIL) | DO(OFFLINE) | DO(CLOSE))
#define DEV_END		(DO(FAIL) | DO(REMOVE))

static const struct ibnbd_dev_step dev_steps[IBNBD_DEV_STATES][IBNBD_DEV_EVENTS] = {
	[IBNBD_DEV_INIT] = {
		[IBNBD_DEV_EV_OPENED]		= STEP(OPEN, DO(COMMIT)),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DO(REMOVE)),
	},
	[IBNBD_DEV_OPEN] = {
		[IBNBD_DEV_EV_OPENED]		= STEP(OPEN, DO(STOP) | DO(COMMIT) | DO(RESUME)),
		[IBNBD_DEV_EV_REMAPPED]		= STEP(OPEN, DO(STOP) | DO(COMMIT) | DO(RESUME)),
		[IBNBD_DEV_EV_LINK_DOWN]	= STEP(HELD, DO(STOP) | DO(ARM) | DO(OFFLINE)),
		[IBNBD_DEV_EV_FENCE]		= STEP(FENCED, DO(STOP) | DEV_FENCE),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DEV_END),
	},
	[IBNBD_DEV_HELD] = {
		[IBNBD_DEV_EV_OPENED]		= STEP(OPEN, DEV_REOPEN),
		[IBNBD_DEV_EV_REMAPPED]		= STEP(OPEN, DEV_REOPEN),
		[IBNBD_DEV_EV_HOLD_EXPIRED]	= STEP(FAILED, DO(FAIL)),
		[IBNBD_DEV_EV_LET_GO]		= STEP(FAILFAST, DO(LET_GO)),
		[IBNBD_DEV_EV_REPLAY]		= STEP(REPLAYING, 0),
		[IBNBD_DEV_EV_FENCE]		= STEP(FENCED, DEV_FENCE),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DEV_END),
	},
	[IBNBD_DEV_FAILFAST] = {
		[IBNBD_DEV_EV_OPENED]		= STEP(OPEN, DO(STOP) | DEV_REOPEN),
		[IBNBD_DEV_EV_REMAPPED]		= STEP(OPEN, DO(STOP) | DEV_REOPEN),
		[IBNBD_DEV_EV_HOLD_EXPIRED]	= STEP(FAILED, DO(FAIL)),
		[IBNBD_DEV_EV_TAKE_BACK]	= STEP(HELD, DO(STOP)),
		[IBNBD_DEV_EV_REPLAY]		= STEP(REPLAYING, DO(STOP)),
		[IBNBD_DEV_EV_FENCE]		= STEP(FENCED, DEV_FENCE),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DEV_END),
	},
	[IBNBD_DEV_REPLAYING] = {
		[IBNBD_DEV_EV_OPENED]		= STEP(OPEN, DEV_REOPEN),
		[IBNBD_DEV_EV_REMAPPED]		= STEP(OPEN, DEV_REOPEN),
		[IBNBD_DEV_EV_LINK_DOWN]	= STEP(HELD, DO(ARM)),
		[IBNBD_DEV_EV_FENCE]		= STEP(FENCED, DEV_FENCE),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DEV_END),
	},
	[IBNBD_DEV_FAILED] = {
		[IBNBD_DEV_EV_REPLAY]		= STEP(REPLAYING, DO(STOP)),
		[IBNBD_DEV_EV_OPENED]		= STEP(OPEN, DO(STOP) | DEV_REOPEN),
		[IBNBD_DEV_EV_REMAPPED]		= STEP(OPEN, DO(STOP) | DEV_REOPEN),
		[IBNBD_DEV_EV_FENCE]		= STEP(FENCED, DO(OFFLINE) | DO(CLOSE)),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DEV_END),
	},
	[IBNBD_DEV_FENCED] = {
		[IBNBD_DEV_EV_REMAPPED]		= STEP(OPEN, DO(STOP) | DEV_REOPEN),
		[IBNBD_DEV_EV_UNMAP]		= STEP(UNMAPPED, DEV_END),
	},
};

struct ibnbd_dev_step ibnbd_dev_sm_step(enum ibnbd_dev_state s, enum ibnbd_dev_event ev)
{
	struct ibnbd_dev_step ignored = { .state = s };

	if ((unsigned int)s >= IBNBD_DEV_STATES || (unsigned int)ev >= IBNBD_DEV_EVENTS ||
	    !dev_steps[s][ev].taken)
		return ignored;
	return dev_steps[s][ev];
}

const char *ibnbd_dev_sm_word(enum ibnbd_dev_state s)
{
	return s >= IBNBD_DEV_HELD && s <= IBNBD_DEV_FENCED ? "closed" :
							      ibnbd_dev_sm_state_name(s);
}

const char *ibnbd_dev_sm_state_name(enum ibnbd_dev_state s)
{
	static const char * const names[IBNBD_DEV_STATES] = {
		[IBNBD_DEV_INIT]	= "init",
		[IBNBD_DEV_OPEN]	= "open",
		[IBNBD_DEV_HELD]	= "held",
		[IBNBD_DEV_FAILFAST]	= "failfast",
		[IBNBD_DEV_REPLAYING]	= "replaying",
		[IBNBD_DEV_FAILED]	= "failed",
		[IBNBD_DEV_FENCED]	= "fenced",
		[IBNBD_DEV_UNMAPPED]	= "unmapped",
	};

	return (unsigned int)s < IBNBD_DEV_STATES ? names[s] : "unknown";
}

const char *ibnbd_dev_sm_event_name(enum ibnbd_dev_event ev)
{
	static const char * const names[IBNBD_DEV_EVENTS] = {
		[IBNBD_DEV_EV_UNMAP]		= "unmap",
		[IBNBD_DEV_EV_FENCE]		= "fence",
		[IBNBD_DEV_EV_LINK_DOWN]	= "link down",
		[IBNBD_DEV_EV_HOLD_EXPIRED]	= "hold expired",
		[IBNBD_DEV_EV_LET_GO]		= "let go",
		[IBNBD_DEV_EV_TAKE_BACK]	= "take back",
		[IBNBD_DEV_EV_REPLAY]		= "replay",
		[IBNBD_DEV_EV_OPENED]		= "opened",
		[IBNBD_DEV_EV_REMAPPED]		= "remapped",
	};

	return (unsigned int)ev < IBNBD_DEV_EVENTS ? names[ev] : "unknown";
}

enum ibnbd_dev_group ibnbd_dev_sm_group(enum ibnbd_dev_state s, bool another)
{
	if (s == IBNBD_DEV_HELD && another)
		return IBNBD_DEV_GROUP_WAIT;
	if (s == IBNBD_DEV_FAILFAST && !another)
		return IBNBD_DEV_GROUP_TAKE_BACK;
	return IBNBD_DEV_GROUP_NOTHING;
}

enum ibnbd_open_state ibnbd_open_sm_step(enum ibnbd_open_state s, enum ibnbd_open_event ev)
{
	unsigned int asked = s & IBNBD_OPEN_ASKED, open = s & ~IBNBD_OPEN_ASKED;

	switch (ev) {
	case IBNBD_OPEN_EV_ASK:
		return open | IBNBD_OPEN_ASKED;
	case IBNBD_OPEN_EV_LINK:
		return asked ? IBNBD_OPEN_LINK : s;
	case IBNBD_OPEN_EV_UNIQUE:
		return asked ? IBNBD_OPEN_UNIQUE : s;
	case IBNBD_OPEN_EV_REFUSED:
		return open;
	case IBNBD_OPEN_EV_LOST:
		return open < IBNBD_OPEN_UNIQUE ? IBNBD_OPEN_NONE : IBNBD_OPEN_OWED;
	case IBNBD_OPEN_EV_CLOSE:
		return asked | (open < IBNBD_OPEN_UNIQUE ? IBNBD_OPEN_NONE : IBNBD_OPEN_OWED);
	case IBNBD_OPEN_EV_CLOSED:
		return open == IBNBD_OPEN_OWED ? asked : s;
	default:
		return s;
	}
}
