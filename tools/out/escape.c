// SPDX-License-Identifier: GPL-2.0-only
/*
 * One escape for each kind of output.
 *
 * Names of disks and sessions come from peers and from files: they may hold any byte but NUL. The
 * escape of every kind is \xNN with two lower-case digits, and escape_undo() undoes every kind. To
 * keep this unambiguous, a backslash that would read as the beginning of such an escape is itself
 * escaped, as \x5c; all other backslashes stay in texts for people. escape_undo() undoes only bytes
 * that some kind escapes (escape_undone()). So a name that systemd-escape made, with its \x2d, is
 * changed neither when it is printed nor when it is read.
 *
 * Only ESCAPE_LINE depends on the user's locale.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <wchar.h>
#include <ibtrs/words.h>
#include "ibnbd/logic/text.h"
#include "tools/out/escape.h"
#include "tools/out/say.h"

static bool escape_locale_utf8;

void escape_locale(void)
{
	setlocale(LC_CTYPE, "");
	escape_locale_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	/* Case conversion is that of C in every language: names of columns ignore case. */
	if (!escape_locale_utf8 || !setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, escape_locale_utf8 ? "" : "C");
}

size_t escape_utf8(const char *text, unsigned int *code)
{
	/* a sequence has at most 4 bytes; nothing behind a NUL is read */
	return ibtrs_utf8(text, 4, code);
}

bool escape_hidden(unsigned int code)
{
	return code < 0x20 || code == 0x7f || ibnbd_unseen_name(code) ||
	       (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe;
}

/*
 * A spreadsheet reads a cell that begins with one of these as a formula; the last four are their
 * wide forms.
 */
static bool escape_formula(unsigned int code)
{
	return code == '=' || code == '+' || code == '-' || code == '@' ||
	       code == 0xff1d || code == 0xff0b || code == 0xff0d || code == 0xff20;
}

/* ---- undoing ---- */

/* The byte that the escape at @s stands for; 0: there is no escape at @s. */
static unsigned char escape_undone(const char *s, bool first)
{
	int byte;

	if (s[0] != '\\' || s[1] != 'x' || ibtrs_hex(s[2]) < 0 || ibtrs_hex(s[3]) < 0)
		return 0;
	byte = ibtrs_hex(s[2]) << 4 | ibtrs_hex(s[3]);
	if (byte > ' ' && byte < 0x7f && !strchr("\\\"$`", byte) &&
	    !(first && escape_formula((unsigned int)byte)))
		return 0;
	return (unsigned char)byte;
}

char *escape_undo(const char *text)
{
	char *out = say_alloc(strlen(text) + 1), *p = out;
	const char *s;

	for (s = text; *s;) {
		unsigned char byte = escape_undone(s, s == text);

		*p++ = byte ? (char)byte : *s;
		s += byte ? 4 : 1;
	}
	return out;
}

bool escape_means(const char *word, const char *name)
{
	char *undone __free(free) = escape_undo(word);

	return !strcmp(word, name) || !strcmp(undone, name);
}

/* ---- escaping ---- */

/* @n: length in bytes of the character at @s; @code: its code point. */
static bool escape_keeps(enum escape how, const char *s, size_t n, unsigned int code, bool first)
{
	const char *ascii = how == ESCAPE_WORD ? " \\" : how == ESCAPE_SHELL ? "\\\"$`" : "";

	if (how == ESCAPE_KINDS)	/* escape_unseen() */
		return code == '\n' || code == '\t' || !escape_hidden(code);
	if (n == 1 && escape_undone(s, first))
		return false;
	if (how == ESCAPE_JSON)		/* valid UTF-8, controls too */
		return true;
	if (escape_hidden(code) || (n == 1 && strchr(ascii, (int)code)))
		return false;
	if (how == ESCAPE_CSV && first && escape_formula(code))
		return false;
	/* A word "-" would be read as the mark of an empty cell. */
	if (how == ESCAPE_WORD && first && *s == '-' && !s[1])
		return false;
	/* A combining mark at the start would be drawn onto the character before the text. */
	return n == 1 || how != ESCAPE_LINE ||
	       (escape_locale_utf8 && wcwidth((wchar_t)code) >= first);
}

char *escape_text(enum escape how, const char *text)
{
	char *out = say_alloc(4 * strlen(text) + 1), *p = out;
	const char *s, *end;
	unsigned int code;
	size_t n;

	for (s = text; *s;) {
		n = escape_utf8(s, &code);
		end = s + (n ? n : 1);
		if (n && escape_keeps(how, s, n, code, s == text)) {
			memcpy(p, s, n);
			p += n;
			s = end;
		}
		while (s < end)
			p += sprintf(p, "\\x%02x", (unsigned char)*s++);
	}
	return out;
}

char *escape_unseen(const char *text)
{
	return escape_text(ESCAPE_KINDS, text);
}

int escape_columns(const char *text)
{
	unsigned int code;
	int columns = 0;
	size_t n;

	for (; *text; text += n) {
		n = escape_utf8(text, &code);
		if (!n)
			n = code = 1;
		columns += code < 0x80 || wcwidth((wchar_t)code) < 0 ? 1 : wcwidth((wchar_t)code);
	}
	return columns;
}
