// SPDX-License-Identifier: GPL-2.0-only
/* Splits maps.conf into words with their places. The input may be any bytes. */
#include <stdlib.h>
#include <string.h>
#include <ibtrs/words.h>
#include "ibnbd/logic/text.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

void maps_words_free(struct maps_words *w)
{
	for (size_t i = 0; i < w->nr; i++)
		free(w->t[i].text);
	free(w->t);
}

char *maps_odd(const char *s, size_t left, size_t *n)
{
	unsigned char c = (unsigned char)*s;
	const char *name;
	u32 code;

	*n = ibnbd_unseen(s, left, &code, &name);
	if (*n)
		return say_fmt("a character that is not seen: %s, U+%04X", name, code);
	*n = ibtrs_utf8(s, left, &code);
	if (!*n) {
		*n = 1;
		return say_fmt("byte 0x%02x is not UTF-8", c);
	}
	if (c == '\r')
		return say_dup("a carriage return that is not at the end of its line");
	return ibnbd_is_control(*s) ? say_fmt("control character 0x%02x", c) : NULL;
}

static size_t lex_eol(const struct maps_file *f, size_t off)
{
	const char *nl = memchr(f->text + off, '\n', f->len - off);

	return nl ? (size_t)(nl - f->text) : f->len;
}

/*
 * If a backslash stands before the end of the line (a carriage return may be between), the offset
 * of the next line; else 0.
 */
static size_t lex_continued(const struct maps_file *f, size_t off)
{
	if (f->uncontinued || f->text[off] != '\\')
		return 0;
	off++;
	if (off < f->len && f->text[off] == '\r')
		off++;
	return off < f->len && f->text[off] == '\n' ? off + 1 : 0;
}

bool maps_nul(struct maps *m, size_t file, size_t off, size_t len)
{
	const char *text = m->files[file].text, *nul = len ? memchr(text + off, 0, len) : NULL;
	size_t n = 0, i;

	if (!nul)
		return false;
	for (i = off; i < off + len; i++)
		n += !text[i];
	maps_error(
		m, (struct maps_at){ file, (size_t)(nul - text), 1 },
		n == 1 ? say_dup("a NUL byte") : say_fmt("%zu NUL bytes", n),
		say_dup("the line is no text: the file was not written to its end, or is none that people write"));
	return true;
}

/* A logical line that is being read. */
struct lex {
	struct maps *m;
	size_t file;
	struct maps_words *w;
	/* a wrong byte was reported; one such mistake in a line is enough */
	bool told;
};

static void lex_wrong(struct lex *l, size_t off, size_t len, char *msg, char *hint)
{
	maps_error(l->m, (struct maps_at){ l->file, off, len }, msg, hint);
	l->w->bad = true;
}

static void lex_wrong_byte(struct lex *l, size_t off, size_t len, char *msg, char *hint)
{
	if (!l->told) {
		lex_wrong(l, off, len, msg, hint);
	} else {
		free(msg);
		free(hint);
	}
	l->told = true;
}

/*
 * Read one character other than blanks, quotes and backslashes. Returns its length. *@copy: the
 * character belongs to the word.
 */
static size_t lex_char(struct lex *l, size_t off, size_t eol, bool quoted, bool *copy)
{
	const char *s = l->m->files[l->file].text + off;
	size_t n = 1;
	/* maps_nul() tells of a NUL */
	char *msg = *s ? maps_odd(s, eol - off, &n) : NULL;

	*copy = *s && (!msg || n > 1);
	if (msg && *copy && quoted)
		free(msg);
	else if (msg)
		lex_wrong_byte(
			l, off, n, msg,
			*copy ? say_dup("blanks and tabs separate words; a word that needs this character stands in \"quotes\"") :
				NULL);
	return n;
}

/*
 * A comment must not hold a character that looks like the end of a line: the reader would see a new
 * line, but that line would be a part of the comment.
 */
static void lex_comment(struct lex *l, size_t off, size_t end)
{
	const char *text = l->m->files[l->file].text, *name;
	char *msg;
	size_t n;
	u32 code;

	l->w->comment = (struct maps_at){ l->file, off, end - off };
	for (; off < end; off++) {
		if (text[off] != '\r' && !ibnbd_unseen_line(text + off, end - off, &code, &name))
			continue;
		msg = maps_odd(text + off, end - off, &n);
		lex_wrong_byte(l, off, n, msg,
			       say_dup("the comment goes on behind it; begin a new line"));
	}
}

/* One word from @off on. Returns its end, at most @eol. */
static size_t lex_word(struct lex *l, size_t off, size_t eol, struct maps_token *t)
{
	const struct maps_file *f = &l->m->files[l->file];
	size_t start = off, quote = 0, n, len = 0;
	bool quoted = false, copy;

	t->text = say_alloc(eol - off + 1);
	t->plain = true;
	for (; off < eol; off += n) {
		char c = f->text[off];

		n = 1;
		if (!quoted && (ibnbd_is_blank(c) || lex_continued(f, off)))
			break;
		if (c == '"') {
			quoted = !quoted;
			quote = off;
			t->plain = false;
			continue;
		}
		if (quoted && c == '\\') {
			if (off + 1 < eol &&
			    (f->text[off + 1] == '"' || f->text[off + 1] == '\\')) {
				t->text[len++] = f->text[off + 1];
				n = 2;
				continue;
			}
			lex_wrong(
				l, off, 1,
				say_dup("in quotes a backslash stands before '\"' or another backslash only"),
				NULL);
			continue;
		}
		n = lex_char(l, off, eol, quoted, &copy);
		if (!copy)
			continue;
		memcpy(t->text + len, f->text + off, n);
		len += n;
	}
	if (quoted)
		lex_wrong(l, quote, 1, say_dup("the quote is not closed on this line"), NULL);
	t->text[len] = 0;
	t->at = (struct maps_at){ l->file, start, off - start };
	return off;
}

size_t maps_lex(struct maps *m, size_t file, size_t off, struct maps_words *w)
{
	const struct maps_file *f = &m->files[file];
	struct lex l = { .m = m, .file = file, .w = w };
	size_t start = off, eol = lex_eol(f, off), end = eol, next;

	memset(w, 0, sizeof(*w));
	if (eol > off && f->text[eol - 1] == '\r')
		end--;
	while (off < end) {
		if (ibnbd_is_blank(f->text[off])) {
			off++;
			continue;
		}
		if (f->text[off] == '#') {
			lex_comment(&l, off, end);
			break;
		}
		next = lex_continued(f, off);
		if (next) {
			off = next;
			eol = off < f->len ? lex_eol(f, off) : f->len;
			end = eol > off && f->text[eol - 1] == '\r' ? eol - 1 : eol;
			continue;
		}
		w->t = say_grow(w->t, (w->nr + 1) * sizeof(*w->t));
		off = lex_word(&l, off, end, &w->t[w->nr]);
		w->nr++;
	}
	w->bad |= maps_nul(m, file, start, eol - start);
	if (w->nr && eol - start > IBNBD_MAP_LINE_MAX)
		lex_wrong(&l, start, 1,
			  say_fmt("the line has %zu bytes, %d are possible", eol - start,
				  IBNBD_MAP_LINE_MAX),
			  NULL);
	return eol < f->len ? eol + 1 : f->len;
}
