/* SPDX-License-Identifier: GPL-2.0-only */
/* How long one step of connecting may wait for the server (decision 11). Pure. */
#ifndef IBTRS_LOGIC_PATIENCE_H
#define IBTRS_LOGIC_PATIENCE_H

#include <ibtrs/pure.h>

#define IBTRS_PATIENCE_MS	2000u	/* for one step */
#define IBTRS_PATIENCE_DOUBLE	2u	/* doublings at most: 8 s */
/* With the steps that follow, less than the 3 s after which a path must be in use again. */
#define IBTRS_PATIENCE_DOUBT_MS	2500u
/* For so many attempts the neighbour table may not have noticed that the link is down. */
#define IBTRS_PATIENCE_DARK	8u	/* attempts */
/* One attempt in so many waits long enough for a server that has become slow. */
#define IBTRS_PATIENCE_SLOW	4u
/*
 * A server of this project does nothing slow before its first answer: it gets the longest wait only
 * in one attempt of so many.
 */
#define IBTRS_PATIENCE_OURS	16u

/**
 * struct ibtrs_patience - what is known of the path
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

#endif
