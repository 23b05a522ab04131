/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Characters that nobody sees in a text that people write. One that stands in a word makes it
 * another word, and the line still looks right.
 */
#ifndef IBNBD_LOGIC_UNSEEN_H
#define IBNBD_LOGIC_UNSEEN_H

#include <ibtrs/pure.h>

/**
 * ibnbd_unseen() - is the character at @s one that looks like a blank and separates nothing, or
 * that looks like nothing at all?
 * @left: bytes that are there
 * @code: its code point
 * @name: what it is called, a constant string
 *
 * ASCII is none of these. Return: its bytes; 0: no.
 */
size_t ibnbd_unseen(const char *s, size_t left, u32 *code, const char **name);

/* The same, but for what may stand in a comment: one that ends a line for those who see it. */
size_t ibnbd_unseen_line(const char *s, size_t left, u32 *code, const char **name);

#endif
