/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * When a path is tried again, how patiently, and how much it is trusted (decision 11; design 6.2
 * says what marks are). Pure: time and randomness are arguments.
 */
#ifndef IBTRS_LOGIC_RETRY_H
#define IBTRS_LOGIC_RETRY_H

#include <ibtrs/pure.h>

#define IBTRS_RETRY_CLEAN_MS	10000u	/* a path that is up this long loses a mark */
#define IBTRS_RETRY_MARGINAL	4u	/* marks */
/* so that a path that stays up for IBTRS_RETRY_DOUBT_MS is not marginal any more */
#define IBTRS_RETRY_MAX_MARKS	8u
/* a path that is up for this long is trusted again, whatever happened before */
#define IBTRS_RETRY_DOUBT_MS	50000u
/* how long a path rests that has just become marginal; doubles with each further mark */
#define IBTRS_RETRY_REST_MS	10000u
#define IBTRS_RETRY_REST_MAX_MS	60000u
/* delay if the server is busy with the last incarnation, or if no wait is needed */
#define IBTRS_RETRY_SOON_MS	100u
/* period in which an idle path checks whether I/O needs it now */
#define IBTRS_RETRY_LOOK_MS	1000u
/* after a sign of life (a port or another path came up), paths are tried often for so long */
#define IBTRS_RETRY_NEWS_S	10u
#define IBTRS_RETRY_FIRST_TRIES	3u	/* a lost ARP answer must not fail a map command */
/* limit for the first attempt, even if the server says for ever that it is busy */
#define IBTRS_RETRY_FIRST_MS	20000u
#define IBTRS_RETRY_RESOLVE_MS	1500u	/* limit for the CM to resolve an address, or a route */

/* Delays between attempts: they double from the first to the longest. */
struct ibtrs_backoff {
	u32 first_ms;		/* 100 */
	u32 max_ms;		/* 1000, while I/O is held; when nothing waits, eight times that */
	u32 jitter_pct;		/* 20, in both directions */
};

extern const struct ibtrs_backoff ibtrs_backoff_default;

enum ibtrs_retry_state {
	IBTRS_RETRY_FIRST,	/* the creator of the path waits for its first attempts */
	IBTRS_RETRY_DOWN,
	IBTRS_RETRY_UP,
	IBTRS_RETRY_STATES
};

enum ibtrs_retry_event {
	IBTRS_RETRY_EV_BEGIN,		/* an attempt begins */
	IBTRS_RETRY_EV_ASKED,		/* it has sent the server its first request */
	IBTRS_RETRY_EV_ANSWERED,	/* the server has accepted that */
	IBTRS_RETRY_EV_TRIAL_PASSED,
	IBTRS_RETRY_EV_TRIAL_FAILED,	/* FAILED with -EMSGSIZE follows */
	IBTRS_RETRY_EV_UP,		/* the attempt succeeded */
	IBTRS_RETRY_EV_FAILED,		/* the attempt failed */
	IBTRS_RETRY_EV_LOST,		/* the path was up, and is lost */
	IBTRS_RETRY_EV_CLOSED,		/* nothing is tried any more */
	/* another path, or a port, has come up: the next attempt follows soon */
	IBTRS_RETRY_EV_HURRY,
	/* an administrator is about to end the connection in order to make a new one */
	IBTRS_RETRY_EV_BY_HAND,
	IBTRS_RETRY_EVENTS
};

/* Circumstances of the next wait, by rank. */
enum ibtrs_retry_urge {
	IBTRS_RETRY_NO_URGE,
	IBTRS_RETRY_HURRY,
	IBTRS_RETRY_BY_HAND,
};

enum ibtrs_retry_wait {
	IBTRS_RETRY_USUAL,
	IBTRS_RETRY_IDLE,	/* no I/O needs the path: I/O that does ends the wait */
	IBTRS_RETRY_REST,	/* marginal: ended by an administrator, or if no other path is up */
};

/**
 * struct ibtrs_retry - what a path has shown so far; all zero for a new one
 * @state: whether it is up
 * @urge: what the next wait has to heed
 * @wait: the kind of the wait that ends at @due_ms
 * @attempt: failed attempts since it was up
 * @marks: the marks, not yet reduced for the time since @up_ms
 * @gen: session generation in which the marks count
 * @trial_failed: its last trial, a probe of full size, failed
 * @answer_ms: how long the server took the last time until its first answer; 0: not known
 * @asked_ms: when the server was asked
 * @first_end_ms: when the state FIRST ends, whatever the server says; 0: no attempt has begun
 * @up_ms: state UP: since when
 * @due_ms: when the next attempt is due
 */
struct ibtrs_retry {
	enum ibtrs_retry_state state;
	enum ibtrs_retry_urge urge;
	enum ibtrs_retry_wait wait;
	u32 attempt;
	u32 marks;
	u32 gen;
	bool trial_failed;
	u32 answer_ms;
	u64 asked_ms;
	u64 first_end_ms;
	u64 up_ms;
	u64 due_ms;
};

/**
 * struct ibtrs_retry_now - the circumstances of a path
 * @ms: time in milliseconds of any clock that does not go back
 * @err: why the connection ended the last time, a negative errno
 * @gen: grows when the session comes up from having had no path
 * @max: attempts before the path is given up, negative = never
 * @others: another path is up, so the server lives and has made the session
 * @wanted: I/O waits for a path, or runs over other paths
 */
struct ibtrs_retry_now {
	u64 ms;
	int err;
	u32 gen;
	int max;
	bool others;
	bool wanted;
};

void ibtrs_retry_event(struct ibtrs_retry *r, enum ibtrs_retry_event ev,
		       const struct ibtrs_retry_now *now);
/*
 * Nothing is left of the connection: milliseconds until ibtrs_retry_left() must be asked, at least
 * 1. 0: give the path up. @rnd: 32 random bits.
 */
u32 ibtrs_retry_wait(struct ibtrs_retry *r, const struct ibtrs_backoff *b,
		     const struct ibtrs_retry_now *now, u32 rnd);
/* These have passed: milliseconds to wait once more. 0: try now. */
u32 ibtrs_retry_left(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now);
/* Must the path wait on, although something else than its timer says that it be tried? */
bool ibtrs_retry_rests(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now);

/* Is the path used less than the other paths? */
bool ibtrs_retry_marginal(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now);
/* Does the running attempt of a path of an open session go without a trial? */
bool ibtrs_retry_skips_trial(const struct ibtrs_retry *r, const struct ibtrs_retry_now *now);

/* The waits of an attempt for the server, in their order. */
enum ibtrs_retry_phase {
	IBTRS_RETRY_STOPPED,		/* there is no attempt */
	IBTRS_RETRY_RESOLVE,
	IBTRS_RETRY_FIRST_WORD,		/* cid 0 connects: nothing has come from the server yet */
	/* authentication, before any connection of the path exists */
	IBTRS_RETRY_AUTH,
	IBTRS_RETRY_CONNECT,		/* the other connections */
	IBTRS_RETRY_INFO,
	IBTRS_RETRY_TRIAL,
	/* the trial got no answer in time: does a heartbeat get one? */
	IBTRS_RETRY_DOUBT,
	IBTRS_RETRY_PHASES
};

/*
 * How long a phase may take, in milliseconds. @ours: the server is of this project; @bytes: how
 * much data the trial moves.
 */
u32 ibtrs_retry_patience_ms(const struct ibtrs_retry *r, enum ibtrs_retry_phase phase, bool others,
			    bool ours, u64 bytes);
/*
 * How long the phase FIRST_WORD may take from now on: if the server has just shown that it lives;
 * and if another path waits for what the server is asked here.
 */
u32 ibtrs_retry_alive_ms(const struct ibtrs_retry *r);
u32 ibtrs_retry_turn_ms(const struct ibtrs_retry *r);

#endif
