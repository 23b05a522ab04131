// SPDX-License-Identifier: GPL-2.0-only
#include "ibtrs/logic/backoff.h"

const struct ibtrs_backoff ibtrs_backoff_default = {
	.first_ms	= 100,
	.held_max_ms	= 1000,
	.idle_max_ms	= 8000,
	.jitter_pct	= 20,
};

/**
 * ibtrs_backoff_ms() - how long to wait before an attempt
 * @b: the numbers
 * @attempt: 0 for the first attempt after the loss
 * @held: requests wait for the path
 * @rnd: 32 random bits
 *
 * Return: milliseconds, at least 1.
 */
u32 ibtrs_backoff_ms(const struct ibtrs_backoff *b, u32 attempt, bool held, u32 rnd)
{
	u64 max = held ? b->held_max_ms : b->idle_max_ms;
	u64 ms = b->first_ms < max ? b->first_ms : max;
	u64 spread;

	while (attempt-- && ms && ms < max) {
		ms *= 2;
		if (ms > max)
			ms = max;
	}

	/*
	 * Jitter in 1/65536 of the delay: a shift instead of a division, which
	 * 32-bit kernels do not have for 64-bit numbers. ms < 2^32 and a
	 * percentage capped at 100 keep every product below 2^64.
	 */
	spread = ms * (b->jitter_pct < 100 ? b->jitter_pct : 100) * 1310 >> 17;
	ms = ms - spread + (2 * spread * (rnd >> 16) >> 16);
	if (ms > U32_MAX)
		ms = U32_MAX;
	return ms ? (u32)ms : 1;
}
