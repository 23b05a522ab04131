/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages of the command: errors that name the object, the cause and what to do; exit codes;
 * suggestions.
 */
#ifndef TOOLS_SAY_H
#define TOOLS_SAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ibnbd/logic/text.h"

/* Exit codes; part of the interface, documented in ibnbd(8). */
enum say_exit {
	SAY_DONE	= 0,
	SAY_FAILED	= 1,
	SAY_USAGE	= 2,	/* or an error in a configuration file */
	SAY_NOTHING	= 3,	/* nothing has that name */
	SAY_ALREADY	= 4,	/* it is in that state already */
	SAY_BUSY	= 5,
	SAY_PERMISSION	= 6,
	SAY_UNREACHABLE	= 7,	/* or no answer in time */
	SAY_DRIVER	= 8,	/* not loaded, or another version */
	SAY_PARTIAL	= 9,	/* some of many failed */
};

enum say_colour { SAY_AUTO, SAY_ALWAYS, SAY_NEVER };

extern int say_level;			/* -1 quiet, 0, 1, 2 verbose */
extern enum say_colour say_colour;

/* Use colour on this stream? NO_COLOR and the kind of terminal decide unless the user did. */
bool say_coloured(FILE *f);

enum say_kind { SAY_ERROR, SAY_HINT, SAY_WARNING, SAY_DETAIL };

/* A line to stderr. Returns the @code of the last error, which may be this one. */
int say_line(enum say_kind kind, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define say_error(code, ...)	say_line(SAY_ERROR, code, __VA_ARGS__)
/* Below an error or a warning: what to do about it. */
#define say_hint(...)		say_line(SAY_HINT, 0, __VA_ARGS__)
#define say_warn(...)		say_line(SAY_WARNING, 0, __VA_ARGS__)
/* With -v only. */
#define say_more(...)		say_line(SAY_DETAIL, 0, __VA_ARGS__)

/*
 * Prints a line to stdout. As in the functions above, names in it are escaped (escape.h), a newline
 * too.
 */
void say_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The exit code for an errno (positive) of the driver. */
int say_exit_of(int err);
/* The same, with an error: @fmt, and the words for @err. 0: nothing is said. */
int say_errno(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What several results are together: the common one while all are equal, else SAY_PARTIAL. */
struct say_sum {
	int rc;
	bool any;
};

void say_sum(struct say_sum *sum, int rc);

static inline unsigned int say_distance(const char *a, const char *b)
{
	return ibnbd_nearest_distance(a, strlen(a), b);
}

/* The one that is nearer to @word: @best (may be NULL), or @other if it is similar at all. */
const char *say_nearest(const char *word, const char *best, const char *other);

/* These return memory, or end the program. */
void *say_alloc(size_t size);
void *say_grow(void *old, size_t size);
char *say_dup(const char *s);
char *say_vfmt(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
char *say_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Makes @text longer, which may be NULL. */
void say_append(char **text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As in the kernel: @free_it gets what the variable points to where the variable's block ends. */
#define __free(free_it)	__attribute__((cleanup(free_it##_at)))

/* For a @free_it that takes NULL, too. */
#define DEFINE_FREE(free_it, type) static inline void free_it##_at(type *at) { free_it(*at); }

static inline void free_at(void *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	free(p);
}

static inline void say_fclose(FILE *f)
{
	if (f)
		fclose(f);
}

DEFINE_FREE(say_fclose, FILE *)

static inline void say_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

DEFINE_FREE(say_close, int)

/*
 * The text as one word of a shell, in '' or, with bytes that a terminal must not see, in $''.
 * say_quoted() always quotes, say_word() only where needed. Allocated.
 */
char *say_quoted(const char *text);
char *say_word(const char *text);

#endif
