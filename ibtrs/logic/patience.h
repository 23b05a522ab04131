/* SPDX-License-Identifier: GPL-2.0-only */
/* How long one step of connecting may wait for the server (decision 11). Pure. */
#ifndef IBTRS_LOGIC_PATIENCE_H
#define IBTRS_LOGIC_PATIENCE_H

#include <ibtrs/pure.h>

#define IBTRS_PATIENCE_MS	2000u	/* for one step */
#define IBTRS_PATIENCE_DOUBLE	2u	/* times at most: 8 s */
/* With the steps that follow it, still below the 3 s in which a returned path is used. */
#define IBTRS_PATIENCE_DOUBT_MS	2500u
/* As long as the neighbour table may take to notice a dark link. */
#define IBTRS_PATIENCE_DARK	8u	/* attempts */
/* One attempt in so many allows for a server that has become slow. */
#define IBTRS_PATIENCE_SLOW	4u
/* One of ours has nothing slow to do before its first word, so it gets that less often. */
#define IBTRS_PATIENCE_OURS	16u

/**
 * struct ibtrs_patience - what is known of the path
 * @attempt: failed attempts since it was up
 * @connect_ms: how long the server took to its first word the last time; 0: not known
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
 * For any step. An in-kernel server allocates and registers all its chunks before its first word,
 * and may be slow at that: each attempt that failed doubles the time, and the first ever starts
 * with the double.
 */
u32 ibtrs_patience_ms(const struct ibtrs_patience *p);
/* For the first word of the server. */
u32 ibtrs_patience_first_ms(const struct ibtrs_patience *p);

#endif
