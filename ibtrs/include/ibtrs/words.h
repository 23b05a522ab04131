/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Words that one host sends to another: why something was refused, and names that a peer chooses.
 *
 * The receiver does not trust them, because they end up in logs, in sysfs and on terminals. A
 * reason is printable ASCII, has an end, and is never used as a format; sender and receiver both
 * pass it through ibtrs_words_copy(). A name is UTF-8 that does nothing but be shown
 * (ibtrs_words_char()). A session's name that is anything else is refused. A disk's name may be any
 * bytes on the server; if it is refused, log and sysfs show it escaped.
 */
#ifndef IBTRS_WORDS_H
#define IBTRS_WORDS_H

#include <ibtrs/pure.h>

/**
 * ibtrs_words_copy() - copy a text from a peer, or into a message
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

/**
 * ibtrs_words_cut() - how much of a text is used if something follows behind it
 * @s: UTF-8 that ends with NUL
 * @max: how many bytes there may be
 *
 * Return: that many bytes or less, and no half character at the end.
 */
static inline size_t ibtrs_words_cut(const char *s, size_t max)
{
	size_t len = strnlen(s, max);

	while (len && ((u8)s[len] & 0xc0) == 0x80)
		len--;
	return len;
}

/**
 * ibtrs_utf8() - the UTF-8 character at the beginning of a text
 * @s: the text
 * @len: bytes that may be read, at least 1
 * @code: result: the code point; not set if 0 is returned
 *
 * A NUL is a character of one byte; no byte behind a NUL is read. Any context.
 *
 * Return: its length in bytes; 0: it is not valid UTF-8. Longer forms than needed and surrogates
 * are not valid.
 */
static inline size_t ibtrs_utf8(const void *s, size_t len, u32 *code)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const u8 *u = s;
	size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc0 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4, i;
	u32 c = n == 1 ? u[0] : u[0] & (0x7f >> n);

	if (!n || u[0] > 0xf4 || n > len)
		return 0;
	for (i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (u[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*code = c;
	return n;
}

/* Does the character control a terminal, or change the direction of the text beside it? */
static inline bool ibtrs_words_acts(u32 c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/**
 * ibtrs_words_char() - the character at the beginning of a name that a peer has chosen
 * @s: UTF-8, or not
 * @len: bytes that may be read, at least 1
 *
 * Return: its length; 0: it is no UTF-8, or a character of ibtrs_words_acts(), which must not be
 * shown.
 */
static inline size_t ibtrs_words_char(const char *s, size_t len)
{
	u32 code;
	size_t n = ibtrs_utf8(s, len, &code);

	return n && !ibtrs_words_acts(code) ? n : 0;
}

/**
 * ibtrs_words_escape() - a name that a peer has chosen, for the log
 * @dst: to fill; what does not fit is cut
 * @size: its size, at least 1
 * @src: the name
 *
 * A byte at which ibtrs_words_char() finds no character becomes \xNN. Any context.
 *
 * Return: @dst.
 */
static inline const char *ibtrs_words_escape(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src), to = 0, n;

	for (; len; src += n, len -= n) {
		n = ibtrs_words_char(src, len);
		if ((n ?: 4) >= size - to)
			break;
		if (n) {
			memcpy(dst + to, src, n);
			to += n;
		} else {
			n = 1;
			to += scnprintf(dst + to, size - to, "\\x%02x", (u8)*src);
		}
	}
	dst[to] = 0;
	return dst;
}

#endif
