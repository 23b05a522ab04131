// SPDX-License-Identifier: GPL-2.0-only
/* Bytes of maps.conf to words with their places. Any bytes may come. */
#include <stdlib.h>
#include <string.h>
#include "tools/maps_conf.h"
#include "tools/say.h"

void maps_tokens_free(struct maps_token *tokens, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		free(tokens[i].text);
	free(tokens);
}

/* Bytes of the UTF-8 character at @s, 0 = none. */
static size_t lex_utf8(const unsigned char *s, size_t left)
{
	size_t n, i;

	if (s[0] < 0x80)
		return 1;
	n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	if (n > left)
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

static size_t lex_eol(const struct maps_file *f, size_t off)
{
	const char *nl = memchr(f->text + off, '\n', f->len - off);

	return nl ? (size_t)(nl - f->text) : f->len;
}

/* A backslash before the end of the line, a carriage return in between allowed. */
static size_t lex_continued(const struct maps_file *f, size_t off)
{
	if (f->text[off] != '\\')
		return 0;
	off++;
	if (off < f->len && f->text[off] == '\r')
		off++;
	return off < f->len && f->text[off] == '\n' ? off + 1 : 0;
}

static void lex_wrong(struct maps *m, size_t file, size_t off, size_t len, char *msg, bool *bad)
{
	maps_error(m, (struct maps_at){ file, off, len }, msg, NULL);
	*bad = true;
}

/* One word from @off on. Returns its end, at most @eol. */
static size_t lex_word(struct maps *m, size_t file, size_t off, size_t eol, struct maps_token *t, bool *bad)
{
	const struct maps_file *f = &m->files[file];
	const unsigned char *s = (const unsigned char *)f->text;
	size_t start = off, quote = 0, n, len = 0;
	bool quoted = false;

	t->text = say_alloc(eol - off + 1);
	t->plain = true;
	for (; off < eol; off += n) {
		unsigned char c = s[off];

		n = 1;
		if (!quoted && (c == ' ' || c == '\t' || lex_continued(f, off)))
			break;
		if (c == '"') {
			quoted = !quoted;
			quote = off;
			t->plain = false;
			continue;
		}
		if (quoted && c == '\\') {
			if (off + 1 < eol && (s[off + 1] == '"' || s[off + 1] == '\\')) {
				t->text[len++] = (char)s[off + 1];
				n = 2;
				continue;
			}
			lex_wrong(m, file, off, 1, say_dup("in quotes a backslash stands before '\"' or another backslash only"), bad);
			continue;
		}
		if (c < 0x20 || c == 0x7f) {
			lex_wrong(m, file, off, 1, say_fmt("control character 0x%02x", c), bad);
			continue;
		}
		n = lex_utf8(s + off, eol - off);
		if (!n) {
			lex_wrong(m, file, off, 1, say_fmt("byte 0x%02x is not UTF-8", c), bad);
			n = 1;
			continue;
		}
		memcpy(t->text + len, s + off, n);
		len += n;
	}
	if (quoted)
		lex_wrong(m, file, quote, 1, say_dup("the quote is not closed on this line"), bad);
	t->text[len] = 0;
	t->at = (struct maps_at){ file, start, off - start };
	return off;
}

size_t maps_lex(struct maps *m, size_t file, size_t off, struct maps_token **tokens, size_t *nr, bool *bad)
{
	const struct maps_file *f = &m->files[file];
	size_t start = off, eol = lex_eol(f, off), end = eol, next;

	*tokens = NULL;
	*nr = 0;
	*bad = false;
	if (eol > off && f->text[eol - 1] == '\r')
		end--;
	while (off < end) {
		if (f->text[off] == ' ' || f->text[off] == '\t') {
			off++;
			continue;
		}
		if (f->text[off] == '#')
			break;
		next = lex_continued(f, off);
		if (next) {
			off = next;
			eol = off < f->len ? lex_eol(f, off) : f->len;
			end = eol > off && f->text[eol - 1] == '\r' ? eol - 1 : eol;
			continue;
		}
		*tokens = say_grow(*tokens, (*nr + 1) * sizeof(**tokens));
		off = lex_word(m, file, off, end, &(*tokens)[*nr], bad);
		(*nr)++;
	}
	if (*nr && eol - start > IBNBD_MAP_LINE_MAX)
		lex_wrong(m, file, start, 1, say_fmt("the line has %zu bytes, %d are possible", eol - start, IBNBD_MAP_LINE_MAX), bad);
	return eol < f->len ? eol + 1 : f->len;
}
