// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Names and words, for the drivers and the command: entries below ctl/devices, the nearest word,
 * invisible characters. The header describes the functions. Pure: no locks, any context.
 */
#include <ibtrs/pure.h>
#include <ibtrs/words.h>
#include "ibnbd/logic/text.h"

size_t ibnbd_linkname(const char *text, char separator, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = 0;
	for (; *text; text++) {
		const char *as = NULL;

		if (*text == '/')
			as = "!";
		else if (*text == '!')
			as = "\\x21";
		else if (*text == separator)
			as = separator == '@' ? "\\x40" : "\\x23";
		else if (*text == '\\' && text[1] == 'x')
			as = "\\x5c";
		n += as ? scnprintf(buf + n, size - n, "%s", as) :
			  scnprintf(buf + n, size - n, "%c", *text);
	}
	return n;
}

size_t ibnbd_linkname_dev(const char *device_path, const char *sessname, char *buf, size_t size)
{
	size_t n = ibnbd_linkname(device_path, '@', buf, size);

	return n + scnprintf(buf + n, size - n, "@%s", sessname);
}

const char *ibnbd_access_word(enum ibnbd_access mode)
{
	static const char *const words[] = {
		[IBNBD_ACCESS_RO]		= "ro",
		[IBNBD_ACCESS_RW]		= "rw",
		[IBNBD_ACCESS_MIGRATION]	= "migration",
	};

	return words[mode];
}

const char *ibnbd_identity_word(u8 kind)
{
	static const char *const words[] = {
		[IBNBD_ID_NONE]		= "none",
		[IBNBD_ID_HARDWARE]	= "hardware",
		[IBNBD_ID_UUID]		= "uuid",
		[IBNBD_ID_FILE]		= "file",
	};

	return kind < sizeof(words) / sizeof(*words) ? words[kind] : "other";
}

#define IBNBD_NEAREST_MAX	64	/* longest word that is compared */

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

static const struct {
	u32 first, last;
	const char *name;
} unseen[] = {
	{ 0x80, 0x9f, "control character" },
	{ 0xa0, 0xa0, "no-break space" },
	{ 0xad, 0xad, "soft hyphen" },
	{ 0x34f, 0x34f, "grapheme joiner" },
	{ 0x61c, 0x61c, "direction mark" },
	{ 0x115f, 0x1160, "Hangul filler" },
	{ 0x1680, 0x1680, "Ogham space" },
	{ 0x17b4, 0x17b5, "inherent vowel" },
	{ 0x180b, 0x180d, "variation selector" },
	{ 0x180e, 0x180e, "vowel separator" },
	{ 0x180f, 0x180f, "variation selector" },
	{ 0x2000, 0x200a, "space of a fixed width" },
	{ 0x200b, 0x200b, "zero-width space" },
	{ 0x200c, 0x200d, "zero-width joiner" },
	{ 0x200e, 0x200f, "direction mark" },
	{ 0x2028, 0x2029, "line separator" },
	{ 0x202a, 0x202e, "direction mark" },
	{ 0x202f, 0x202f, "narrow no-break space" },
	{ 0x205f, 0x205f, "mathematical space" },
	{ 0x2060, 0x2060, "word joiner" },
	{ 0x2061, 0x2065, "invisible operator" },
	{ 0x2066, 0x206f, "direction mark" },
	{ 0x2800, 0x2800, "empty Braille cell" },
	{ 0x3000, 0x3000, "ideographic space" },
	{ 0x3164, 0x3164, "Hangul filler" },
	{ 0xfe00, 0xfe0f, "variation selector" },
	{ 0xfeff, 0xfeff, "byte order mark" },
	{ 0xffa0, 0xffa0, "Hangul filler" },
	{ 0xfff0, 0xfffb, "annotation mark" },
	{ 0x1bca0, 0x1bca3, "shorthand control" },
	{ 0x1d173, 0x1d17a, "musical control" },
	{ 0xe0000, 0xe0fff, "tag character" },
};

const char *ibnbd_unseen_name(u32 code)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(unseen); i++)
		if (code >= unseen[i].first && code <= unseen[i].last)
			return unseen[i].name;
	return NULL;
}

size_t ibnbd_unseen(const char *s, size_t left, u32 *code, const char **name)
{
	size_t n = left ? ibtrs_utf8(s, left, code) : 0;

	*name = n > 1 ? ibnbd_unseen_name(*code) : NULL;
	return *name ? n : 0;
}

size_t ibnbd_unseen_line(const char *s, size_t left, u32 *code, const char **name)
{
	size_t n = ibnbd_unseen(s, left, code, name);

	/* next line, line separator, paragraph separator */
	return n && (*code == 0x85 || *code == 0x2028 || *code == 0x2029) ? n : 0;
}
