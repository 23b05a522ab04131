/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names and texts of others on their way out. A byte that could do harm, or that is no UTF-8,
 * becomes \xNN; escape_undo() gives back what it was. ibnbd(8), OUTPUT, says the same to users.
 */
#ifndef TOOLS_ESCAPE_H
#define TOOLS_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

enum escape {
	ESCAPE_LINE,	/* for people, on a terminal or in a log: what the locale can show stays */
	ESCAPE_TEXT,	/* the same, whatever the locale: values in the metrics */
	ESCAPE_JSON,	/* of a JSON string before its own escapes: only bytes that are no UTF-8 */
	ESCAPE_WORD,	/* --raw: one word between blanks */
	ESCAPE_SHELL,	/* --pairs: stands between "" in a shell */
	ESCAPE_CSV,	/* TEXT that no spreadsheet takes for a formula */
	ESCAPE_KINDS
};

/* Looks at the user's locale. Before that, ESCAPE_LINE escapes all that is not ASCII. */
void escape_locale(void);

/* @text escaped for @how. Allocated. */
char *escape_text(enum escape how, const char *text);
/*
 * A text of several words whose backslashes have a meaning of their own, such as a line of a file:
 * only what is hidden, or no UTF-8, is escaped, and blanks stay. escape_undo() is not for it.
 * Allocated.
 */
char *escape_unseen(const char *text);
/* The text that any of these escapes stands for; what is no escape stays. Allocated. */
char *escape_undo(const char *text);
/* Does the user's @word, as it is or escaped, mean @name? */
bool escape_means(const char *word, const char *name);

/*
 * Length of the well-formed UTF-8 sequence at @s, and its code point; 0 when there is none
 * (RFC 3629: no surrogates, no overlong forms).
 */
size_t escape_utf8(const char *s, unsigned int *code);
/*
 * Does it show nothing, or change how its neighbours are shown: controls, direction marks,
 * zero-width characters and blanks that are not ASCII?
 */
bool escape_hidden(unsigned int code);
/* Columns of a terminal that an ESCAPE_LINE text takes. */
int escape_columns(const char *text);

#endif
