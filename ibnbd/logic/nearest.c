// SPDX-License-Identifier: GPL-2.0-only
#include "ibnbd/logic/nearest.h"

static char nearest_fold(char c)
{
	if (c == '-')
		return '_';
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

unsigned int ibnbd_nearest_distance(const char *a, size_t len, const char *b)
{
	u8 row[IBNBD_NEAREST_MAX + 1], diagonal, best;
	size_t i, j, n = strlen(b);

	if (n > IBNBD_NEAREST_MAX || len > IBNBD_NEAREST_MAX)
		return IBNBD_NEAREST_MAX;
	for (j = 0; j <= n; j++)
		row[j] = (u8)j;
	for (i = 1; i <= len; i++) {
		diagonal = row[0];
		row[0] = (u8)i;
		for (j = 1; j <= n; j++) {
			best = diagonal + (nearest_fold(a[i - 1]) != nearest_fold(b[j - 1]));
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}
