/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When to try again (docs/design.md decision 11): 0.1 s doubling to 1 s while I/O is held, to 8 s
 * when idle, with +-20 % jitter.
 */
#ifndef IBTRS_LOGIC_BACKOFF_H
#define IBTRS_LOGIC_BACKOFF_H

#include <ibtrs/pure.h>

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

#endif
