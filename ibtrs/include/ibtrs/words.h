/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words that one host sends to another: why something was refused.
 *
 * The receiver trusts nothing in them: they end up in logs, in sysfs and on terminals. So they are
 * printable ASCII and nothing else, have an end, and are never a format. Both directions go through
 * the one function here.
 */
#ifndef IBTRS_WORDS_H
#define IBTRS_WORDS_H

#include <ibtrs/pure.h>

/**
 * ibtrs_words_copy() - take over a text of a peer, or put one into a message
 * @dst: to fill
 * @size: its size, at least 1
 * @src: the text; ends with a NUL or after @len bytes
 * @len: bytes that may be read
 *
 * A byte that is not printable ASCII becomes '?', what does not fit is cut, and the rest of @dst is
 * zero (E-47). Any context.
 *
 * Return: length of the text.
 */
static inline size_t ibtrs_words_copy(char *dst, size_t size, const void *src, size_t len)
{
	const unsigned char *from = src;
	size_t n;

	for (n = 0; n < len && n + 1 < size && from[n]; n++)
		dst[n] = from[n] < 0x20 || from[n] > 0x7e ? '?' : (char)from[n];
	memset(dst + n, 0, size - n);
	return n;
}

#endif
