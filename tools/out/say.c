// SPDX-License-Identifier: GPL-2.0-only
/* Every text that the command prints for a person, and small helpers for all other files. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/out/escape.h"
#include "tools/out/say.h"

int say_level;
enum say_colour say_colour;
static int say_code;		/* of the last error */

bool say_coloured(FILE *f)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (say_colour != SAY_AUTO)
		return say_colour == SAY_ALWAYS;
	return isatty(fileno(f)) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

/*
 * Is stderr connected to the journal? JOURNAL_STREAM alone does not tell: a shell inherits it from
 * its unit, and may have redirected stderr elsewhere. So device and inode are compared.
 */
static bool say_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

/*
 * Formats and escapes: the result is one line and cannot control the terminal, whatever names it
 * contains.
 */
static char *say_escaped(const char *fmt, va_list ap)
{
	char *raw __free(free) = say_vfmt(fmt, ap);

	return escape_text(ESCAPE_LINE, raw);
}

void say_print(const char *fmt, ...)
{
	char *text __free(free) = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = say_escaped(fmt, ap);
	va_end(ap);
	puts(text);
}

int say_line(enum say_kind kind, int code, const char *fmt, ...)
{
	/* @level: for the journal, which reads it; @least: say_level from which on it is said */
	static const struct {
		const char *level, *head, *colour;
		int least;
	} kinds[] = {
		[SAY_ERROR] = { "<3>", "ibnbd: ", "\033[1;31m", -1 },
		[SAY_HINT] = { "<3>", "   try: ", "\033[1m", -1 },
		[SAY_WARNING] = { "<4>", "ibnbd: warning: ", "\033[1;33m", 0 },
		[SAY_DETAIL] = { "<6>", "ibnbd: ", "", 1 },
	};
	static bool unsaid;		/* the warning that a hint may belong to */
	bool paint = say_coloured(stderr);
	char *text __free(free) = NULL;
	va_list ap;

	if (kind == SAY_ERROR)
		say_code = code;
	if (kind != SAY_HINT)
		unsaid = kind == SAY_WARNING && say_level < kinds[kind].least;
	if (say_level < kinds[kind].least || unsaid)
		return say_code;
	va_start(ap, fmt);
	text = say_escaped(fmt, ap);
	va_end(ap);
	fflush(stdout);
	fprintf(stderr, "%s%s%s%s%s\n", say_journal() ? kinds[kind].level : "",
		paint ? kinds[kind].colour : "", kinds[kind].head, paint ? "\033[0m" : "", text);
	return say_code;
}

int say_exit_of(int err)
{
	switch (err) {
	case 0:
		return SAY_DONE;
	case EINVAL:
	case EPROTONOSUPPORT:
		return SAY_USAGE;
	case EEXIST:
	case EALREADY:
		return SAY_ALREADY;
	case EBUSY:
		return SAY_BUSY;
	case EPERM:
	case EACCES:
	case EROFS:
		return SAY_PERMISSION;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ECONNREFUSED:
	case ECONNRESET:
	case ECONNABORTED:
	case ENOTCONN:
	case EADDRNOTAVAIL:
		return SAY_UNREACHABLE;
	default:
		return SAY_FAILED;
	}
}

int say_errno(int err, const char *fmt, ...)
{
	char *what __free(free) = NULL;
	va_list ap;

	if (!err)
		return SAY_DONE;
	va_start(ap, fmt);
	what = say_vfmt(fmt, ap);
	va_end(ap);
	return say_error(say_exit_of(err), "%s: %s", what, strerror(err));
}

void say_sum(struct say_sum *sum, int rc)
{
	sum->rc = !sum->any || sum->rc == rc ? rc : SAY_PARTIAL;
	sum->any = true;
}

const char *say_nearest(const char *word, const char *best, const char *other)
{
	size_t n = strlen(word);
	unsigned int distance = best ? say_distance(word, best) :
				       (unsigned int)n / 3 + (n < 3 ? 1 : 2);

	return n > 1 && say_distance(word, other) < distance ? other : best;
}

/* say_error() would need memory, too. */
static void *say_got(void *p)
{
	if (!p) {
		fputs("ibnbd: out of memory\n", stderr);
		exit(SAY_FAILED);
	}
	return p;
}

void *say_alloc(size_t size)
{
	return say_got(calloc(1, size ? size : 1));
}

void *say_grow(void *old, size_t size)
{
	return say_got(realloc(old, size ? size : 1));
}

char *say_dup(const char *s)
{
	return say_got(strdup(s));
}

char *say_vfmt(const char *fmt, va_list ap)
{
	char *s;

	return say_got(vasprintf(&s, fmt, ap) < 0 ? NULL : s);
}

char *say_fmt(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = say_vfmt(fmt, ap);
	va_end(ap);
	return s;
}

void say_append(char **text, const char *fmt, ...)
{
	char *old __free(free) = *text, *more __free(free) = NULL;
	va_list ap;

	va_start(ap, fmt);
	more = say_vfmt(fmt, ap);
	va_end(ap);
	*text = say_fmt("%s%s", old ? old : "", more);
}

/* If the text has bytes that a terminal must not see, uses $'' and writes them in octal. */
char *say_quoted(const char *text)
{
	char *out = say_alloc(4 * strlen(text) + 4), *p = out;
	char *shown __free(free) = escape_text(ESCAPE_LINE, text);
	bool dollar = strcmp(shown, text);

	p += sprintf(p, dollar ? "$'" : "'");
	for (; *text; text++) {
		if (dollar && (*text < ' ' || *text > '~' || *text == '\\' || *text == '\''))
			p += sprintf(p, "\\%03o", (unsigned char)*text);
		else if (*text == '\'')
			p += sprintf(p, "'\\''");
		else
			*p++ = *text;
	}
	*p = '\'';
	return out;
}

char *say_word(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";

	return *text && !text[strspn(text, plain)] ? say_dup(text) : say_quoted(text);
}
