/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a path is tried again, and how much it is trusted (decision 11). Pure: time and randomness
 * are arguments.
 *
 * A path that is lost, or whose probe of full size fails, gets marks: one if the loss explains
 * itself (the port went dark, the server closed the connection), two if it came in silence, since
 * requests waited for seconds then. Each IBTRS_RETRY_CLEAN_MS that the path is up take one mark
 * away. With IBTRS_RETRY_MARGINAL marks the path is marginal: while another path is up, it rests
 * before its next attempt, longer with each mark. So one success does not make good a path that
 * fails again and again, and one loss costs an otherwise healthy path nothing.
 */
#ifndef IBTRS_LOGIC_RETRY_H
#define IBTRS_LOGIC_RETRY_H

#include "ibtrs/logic/backoff.h"

#define IBTRS_RETRY_CLEAN_MS	10000u	/* up for so long, one mark less */
#define IBTRS_RETRY_MARGINAL	4u	/* marks */
/* a path that stays up is not marginal any more after IBTRS_RETRY_DOUBT_MS */
#define IBTRS_RETRY_MAX_MARKS	8u
/* up for so long, nothing counts against a path any more */
#define IBTRS_RETRY_DOUBT_MS	50000u
/* of a path that has just become marginal; doubles with each mark */
#define IBTRS_RETRY_REST_MS	10000u
#define IBTRS_RETRY_REST_MAX_MS	60000u
/* the server is busy with the last incarnation, or the wait is over already */
#define IBTRS_RETRY_SOON_MS	100u
#define IBTRS_RETRY_FIRST_TRIES	3u	/* a lost ARP answer must not fail a map command */

/**
 * struct ibtrs_retry - what a path has shown so far; all zero for a new one
 * @attempt: failed attempts since it was up
 * @marks: when @up_ms was written
 * @up: it is up, since @up_ms
 * @up_ms: on any clock of milliseconds that does not go back
 */
struct ibtrs_retry {
	u32 attempt;
	u32 marks;
	bool up;
	u64 up_ms;
};

/**
 * struct ibtrs_retry_ask - a path has ended, one way or the other: when is the next attempt?
 * @err: why it ended, a negative errno
 * @max: attempts before it is given up, negative = never
 * @first_done: the attempt that the first connect waits for is over
 * @by_hand: an administrator asked for the end, to connect anew
 * @hurry: another path, or a port, has just come up
 * @wanted: I/O waits for a path, or flows over others
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
 * @give_up: no attempt any more
 * @wait_ms: until the next one, at least 1
 * @rest: nothing but a person, or the loss of all other paths, makes it earlier
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
/* No path is up: none is worse than the others. */
void ibtrs_retry_forgive(struct ibtrs_retry *r);
bool ibtrs_retry_marginal(const struct ibtrs_retry *r, u64 now_ms);
/* Is the first connect to wait for another attempt? */
bool ibtrs_retry_first_again(const struct ibtrs_retry *r, int err);
struct ibtrs_retry_answer ibtrs_retry_next(const struct ibtrs_retry *r,
					   const struct ibtrs_backoff *b,
					   const struct ibtrs_retry_ask *ask, u32 rnd);

#endif
