/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Invisible characters in a text that people write. An invisible character inside a word makes it
 * another word, and the line still looks right.
 */
#ifndef IBNBD_LOGIC_UNSEEN_H
#define IBNBD_LOGIC_UNSEEN_H

#include <ibtrs/pure.h>

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

/* What the invisible character @code is called; NULL: it is not invisible, or ASCII. */
const char *ibnbd_unseen_name(u32 code);

/*
 * The same as ibnbd_unseen(), but only for characters that some programs show as the end of a line:
 * the others may stand in a comment.
 */
size_t ibnbd_unseen_line(const char *s, size_t left, u32 *code, const char **name);

#endif
