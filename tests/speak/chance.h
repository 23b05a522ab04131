/* SPDX-License-Identifier: GPL-2.0-only */
/* What ibnbd-lies leaves to chance, by a seed. Under lies_lock. */
#ifndef TESTS_SPEAK_CHANCE_H
#define TESTS_SPEAK_CHANCE_H

#include <linux/kernel.h>
#include <linux/prandom.h>
#include <linux/string.h>

static struct rnd_state rnd;
static unsigned int odds = 6;		/* one message in so many is a lie; 0: none */
static unsigned int nr_lies;

static u32 any(u32 below)
{
	return prandom_u32_state(&rnd) % below;
}

static bool chance(u32 of)
{
	bool yes = odds && !any(of * odds);

	nr_lies += yes;
	return yes;
}

/* A few bytes of it are others, or all. */
static void spoil(void *buf, size_t len)
{
	static const u64 odd[] = { 0, 1, 0x7f, 0x7fff, 0x8000, 0x7fffffff, 0xffffffffffffffff };
	u8 *b = buf;
	u64 v;
	u32 n, at;

	if (!len || !chance(1))
		return;
	for (n = 1 + any(3); n; n--) {
		at = any(len);
		v = odd[any(ARRAY_SIZE(odd))];
		switch (any(4)) {
		case 0:
			b[at] ^= 1u << any(8);
			break;
		case 1:
			b[at] = any(256);
			break;
		case 2:
			memcpy(b + at, &v, min_t(size_t, 1u << any(4), len - at));
			break;
		default:
			if (!any(4))
				prandom_bytes_state(&rnd, b, len);
			else
				b[any(min_t(size_t, len, 8))] = any(256);
		}
	}
}

static u32 spoil_len(u32 len, u32 room)
{
	return chance(2) ? any(room + 1) : len;
}

#endif
