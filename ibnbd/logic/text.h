/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Names and words: entries of ctl/devices, words that are near each other, invisible characters.
 *
 * Names of the entries below ctl/devices, which cannot hold a '/'. Different names always give
 * different entries, so two mappings never want the same entry. docs/sysfs.md describes them.
 *
 * '/' is written as '!', as in-kernel rnbd does. A '!' in the name becomes \x21. The character that
 * separates the name from the rest of the entry is escaped in the name: '@' (a session follows) as
 * \x40 on the client, '#' (a number follows) as \x23 on the server. A backslash before an 'x'
 * becomes \x5c, because it could be read as the start of an escape. All other characters stay as
 * they are.
 */
#ifndef IBNBD_LOGIC_TEXT_H
#define IBNBD_LOGIC_TEXT_H

#include <ibtrs/pure.h>
#include "ibnbd/proto/wire.h"

/* Longest possible entry: four bytes for each byte of a device path, '@', session. */
#define IBNBD_LINKNAME_MAX	(5 * IBNBD_NAME_LEN)

/**
 * ibnbd_linkname() - a name without '/'
 * @text: a device path of a client, or the path of a file on the server
 * @separator: character that ends the name in the entry: '@' or '#'
 * @buf: the result, always terminated; 4 * strlen(@text) + 1 bytes hold every name
 * @size: of @buf; what does not fit is cut
 *
 * Return: length of what was written.
 */
size_t ibnbd_linkname(const char *text, char separator, char *buf, size_t size);

/**
 * ibnbd_linkname_dev() - the entry of a mapping in the client's ctl/devices
 * @device_path: as it was mapped
 * @sessname: name of the session, which holds no '/'
 * @buf: the result, always terminated
 * @size: of @buf, IBNBD_LINKNAME_MAX for every name
 *
 * Return: length of what was written.
 */
size_t ibnbd_linkname_dev(const char *device_path, const char *sessname, char *buf, size_t size);

/* The mode as sysfs and the options of a mapping name it. */
const char *ibnbd_access_word(enum ibnbd_access mode);

/* The kind of an identity (enum ibnbd_id_kind); "other" for a kind that is not known. */
const char *ibnbd_identity_word(u8 kind);

/**
 * ibnbd_nearest_distance() - how many letters differ between two words (Levenshtein)
 * @a: of @len bytes
 * @b: terminated
 *
 * Case, and '-' against '_', do not count. Return: the number; %IBNBD_NEAREST_MAX when one of the
 * words is longer than that.
 */
unsigned int ibnbd_nearest_distance(const char *a, size_t len, const char *b);

/* ASCII only. */
static inline bool ibnbd_is_control(char c)
{
	return (u8)c < 0x20 || c == 0x7f;
}

static inline bool ibnbd_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/*
 * Invisible characters in a text that people write. An invisible character inside a word makes it
 * another word, and the line still looks right.
 */

/**
 * ibnbd_unseen() - is the character at @s invisible: one that looks like a blank but separates no
 * words, or one that shows nothing at all?
 * @left: number of bytes at @s
 * @code: its code point
 * @name: what it is called, a constant string
 *
 * ASCII characters never count. Return: length of the character in bytes; 0: it is not invisible.
 */
size_t ibnbd_unseen(const char *s, size_t left, u32 *code, const char **name);

/* The name of the invisible character @code; NULL: the character is visible, or ASCII. */
const char *ibnbd_unseen_name(u32 code);

/*
 * The same as ibnbd_unseen(), but only for characters that some programs show as the end of a line:
 * the others may stand in a comment.
 */
size_t ibnbd_unseen_line(const char *s, size_t left, u32 *code, const char **name);

#endif
