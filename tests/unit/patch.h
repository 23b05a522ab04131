/* SPDX-License-Identifier: GPL-2.0-only */
/* Golden messages with some bytes changed, for the tests of codecs. */
#ifndef UNIT_PATCH_H
#define UNIT_PATCH_H

#include <ibtrs/pure.h>
#include "unit.h"

/* Take a golden message, set some bytes, cut or grow it. */
struct patch {
	unsigned int off, n;		/* n bytes of @v, little endian, at @off */
	u64 v;
};

static inline u8 *patched(const u8 *golden, size_t golden_len, size_t len, const struct patch *p,
			  unsigned int n)
{
	u8 *buf = malloc(len);

	if (!buf)
		abort();
	memset(buf, 0xa5, len);
	memcpy(buf, golden, len < golden_len ? len : golden_len);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int b = 0; b < p[i].n; b++)
			if (p[i].off + b < len)
				buf[p[i].off + b] = (u8)(p[i].v >> (8 * b));
	return buf;
}

static inline bool reason_ok(const char *why, const char *part)
{
	bool ok = CHECK_EQ(!!why, !!part);

	if (why && part && !strstr(why, part)) {
		CHECK_STR(why, part);
		return false;
	}
	return ok;
}

#endif
