/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * When a path is tried again, and how much it is trusted (decision 11). Pure: time and randomness
 * are arguments.
 *
 * A path that is lost, or whose probe of full size fails, gets marks: one if the cause is known at
 * once (the port went down, the server closed the connection), two after a timeout or a failed
 * probe, since requests waited for seconds then, and none if this host ended the connection itself.
 * Each IBTRS_RETRY_CLEAN_MS milliseconds that the path is up remove one mark. With
 * IBTRS_RETRY_MARGINAL marks the path is marginal: while another path is up, it rests before its
 * next attempt, longer with each further mark. So one success does not clear a path that fails
 * again and again, and one loss does not delay an otherwise healthy path.
 */
#ifndef IBTRS_LOGIC_RETRY_H
#define IBTRS_LOGIC_RETRY_H

#include <ibtrs/pure.h>

/* 0.1 s doubling to 1 s while I/O is held, to 8 s when idle, with +-20 % jitter (decision 11) */
struct ibtrs_backoff {
	u32 first_ms;		/* 100 */
	u32 held_max_ms;	/* 1000 */
	u32 idle_max_ms;	/* 8000 */
	u32 jitter_pct;		/* 20 */
};

extern const struct ibtrs_backoff ibtrs_backoff_default;

/*
 * Delay before attempt number @attempt (0 = the first after the loss), @rnd any 32 random bits.
 * Never 0, never above max * (100+jitter)/100.
 */
u32 ibtrs_backoff_ms(const struct ibtrs_backoff *b, u32 attempt, bool held, u32 rnd);

/**
 * struct ibtrs_patience - what is known of a path when a step of connecting waits for the server
 * @attempt: failed attempts since it was up
 * @connect_ms: how long the server took the last time until its first answer; 0: not known
 * @first_done: the attempt that the first connect waits for is over
 * @others: another path is up, so the server lives and has made the session
 * @ours: the server is of this project
 */
struct ibtrs_patience {
	u32 attempt;
	u32 connect_ms;
	bool first_done;
	bool others;
	bool ours;
};

/*
 * The wait of any step. An in-kernel server allocates and registers all its chunks before its first
 * answer, and that may take long. So each failed attempt doubles the wait, and the attempts of the
 * first connect begin with twice the wait.
 */
u32 ibtrs_patience_ms(const struct ibtrs_patience *p);
/* The wait for the first answer of the server. */
u32 ibtrs_patience_first_ms(const struct ibtrs_patience *p);
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
#define IBTRS_RETRY_FIRST_TRIES	3u	/* a lost ARP answer must not fail a map command */

/**
 * struct ibtrs_retry - what a path has shown so far; all zero for a new one
 * @attempt: failed attempts since it was up
 * @marks: the marks, not yet reduced for the time since @up_ms
 * @up: the path is up, since @up_ms
 * @up_ms: time in milliseconds of any clock that does not go back
 */
struct ibtrs_retry {
	u32 attempt;
	u32 marks;
	bool up;
	u64 up_ms;
};

/**
 * struct ibtrs_retry_ask - what is known when a path was lost or an attempt failed
 * @err: why it ended, a negative errno
 * @max: attempts before the path is given up, negative = never
 * @first_done: the attempt that the first connect waits for is over
 * @by_hand: an administrator ended the connection to make a new one
 * @hurry: another path, or a port, has just come up
 * @wanted: I/O waits for a path, or runs over other paths
 * @others: another path is up
 */
struct ibtrs_retry_ask {
	int err;
	int max;
	bool first_done;
	bool by_hand;
	bool hurry;
	bool wanted;
	bool others;
};

/**
 * struct ibtrs_retry_answer
 * @give_up: make no further attempt
 * @wait_ms: delay before the next attempt, at least 1
 * @rest: only an administrator, or the loss of all other paths, may shorten the delay
 */
struct ibtrs_retry_answer {
	bool give_up;
	u32 wait_ms;
	bool rest;
};

void ibtrs_retry_up(struct ibtrs_retry *r, u64 now_ms);
/* A path that was up is lost. */
void ibtrs_retry_lost(struct ibtrs_retry *r, int err, u64 now_ms);
/* An attempt failed. False: it does not count as a failure (law L9). */
bool ibtrs_retry_failed(struct ibtrs_retry *r, int err);
/* No path is up: remove the marks, since no path is worse than the others. */
void ibtrs_retry_forgive(struct ibtrs_retry *r);
bool ibtrs_retry_marginal(const struct ibtrs_retry *r, u64 now_ms);
/* Should the first connect wait for another attempt? */
bool ibtrs_retry_first_again(const struct ibtrs_retry *r, int err);
struct ibtrs_retry_answer ibtrs_retry_next(const struct ibtrs_retry *r,
					   const struct ibtrs_backoff *b,
					   const struct ibtrs_retry_ask *ask, u32 rnd);

#endif
