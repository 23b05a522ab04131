/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Escapes for names and texts that come from others and are printed. ibnbd(8), OUTPUT, describes
 * the same for users.
 */
#ifndef TOOLS_ESCAPE_H
#define TOOLS_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

enum escape {
	ESCAPE_LINE,	/* for people, on a terminal or in a log: what the locale can show stays */
	ESCAPE_TEXT,	/* the same, whatever the locale: values in the metrics */
	/* first step for a JSON string: only bytes that are not UTF-8; JSON's own escapes follow */
	ESCAPE_JSON,
	ESCAPE_WORD,	/* --raw: one word between blanks */
	ESCAPE_SHELL,	/* --pairs: stands between "" in a shell */
	ESCAPE_CSV,	/* like TEXT, and no spreadsheet reads it as a formula */
	ESCAPE_KINDS
};

/* Reads the user's locale. Before this call ESCAPE_LINE escapes everything that is not ASCII. */
void escape_locale(void);

/* @text escaped for @how. Allocated. */
char *escape_text(enum escape how, const char *text);
/*
 * For a text of several words whose backslashes have their own meaning, such as a line of a file:
 * escapes only invisible characters and bytes that are not UTF-8; blanks stay. escape_undo() cannot
 * undo it. Allocated.
 */
char *escape_unseen(const char *text);
/* Undoes the escapes of every kind; everything else in the text stays. Allocated. */
char *escape_undo(const char *text);
/* Is the user's @word the name @name, either as it is or escaped? */
bool escape_means(const char *word, const char *name);

/*
 * Length of the well-formed UTF-8 sequence at @s, and its code point; 0 when there is none
 * (RFC 3629: no surrogates, no overlong forms).
 */
size_t escape_utf8(const char *s, unsigned int *code);
/*
 * Is the character invisible, or does it change how its neighbours are shown: controls, direction
 * marks, zero-width characters, blanks outside ASCII, and code points that are no characters?
 */
bool escape_hidden(unsigned int code);
/* Columns of a terminal that an ESCAPE_LINE text takes. */
int escape_columns(const char *text);

#endif
