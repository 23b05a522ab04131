// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mistakes: kept in order, and printed as compilers print them: file:line:col, the line, a caret
 * below it, and what to do about it.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/conf/file.h"
#include "tools/out/escape.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

#define DIAG_SHOWN	160	/* characters of the line, at most half of them before the place */

static void diag_put(struct maps *m, enum maps_level level, struct maps_at at, char *msg,
		     char *hint)
{
	m->nr_errors += level == MAPS_ERROR;
	m->diags = say_grow(m->diags, (m->nr_diags + 1) * sizeof(*m->diags));
	m->diags[m->nr_diags++] = (struct maps_diag){ level, at, msg, hint };
}

static void diag_add(struct maps *m, enum maps_level level, struct maps_at at, char *msg,
		     char *hint)
{
	struct maps_file *f = &m->files[at.file];

	/* A file with this many mistakes is no configuration: more messages say nothing new. */
	if (++f->told[level] < MAPS_TOLD) {
		diag_put(m, level, at, msg, hint);
		return;
	}
	free(msg);
	free(hint);
	if (f->told[level] == MAPS_TOLD)
		diag_put(m, level, at,
			 say_fmt("and more %s in this file, which are not told",
				 level == MAPS_ERROR ? "mistakes" : "warnings"),
			 NULL);
	else
		m->nr_errors += level == MAPS_ERROR;
}

void maps_error(struct maps *m, struct maps_at at, char *msg, char *hint)
{
	diag_add(m, MAPS_ERROR, at, msg, hint);
}

void maps_warn(struct maps *m, struct maps_at at, char *msg, char *hint)
{
	diag_add(m, MAPS_WARNING, at, msg, hint);
}

void maps_refuse(struct maps *m, size_t file, char *msg, char *hint)
{
	diag_put(m, MAPS_ERROR, (struct maps_at){ file, SIZE_MAX, 0 }, msg, hint);
	m->nr_refused += !m->files[file].refused;
	m->files[file].refused = true;
}

void maps_refuse_as(struct maps *m, size_t file, struct file_text *f)
{
	if (f->state == FILE_REFUSED)
		maps_refuse(m, file, f->why, f->hint);
	f->why = f->hint = NULL;
}

void maps_sort(struct maps *m)
{
	size_t i, j;

	/*
	 * Insertion sort: the mistakes are few and nearly sorted, and mistakes of the same place
	 * keep their order. Mistakes of a whole file come after those of its lines.
	 */
	for (i = 1; i < m->nr_diags; i++) {
		struct maps_diag d = m->diags[i];

		for (j = i; j && (m->diags[j - 1].at.file > d.at.file ||
				  (m->diags[j - 1].at.file == d.at.file &&
				   m->diags[j - 1].at.off > d.at.off));
		     j--)
			m->diags[j] = m->diags[j - 1];
		m->diags[j] = d;
	}
}

static size_t diag_line_start(const struct maps_file *f, size_t off)
{
	while (off && f->text[off - 1] != '\n')
		off--;
	return off;
}

void maps_place(const struct maps *m, struct maps_at at, size_t *line, size_t *col)
{
	const struct maps_file *f = &m->files[at.file];
	size_t i, start;

	if (at.off > f->len)
		at.off = f->len;
	start = diag_line_start(f, at.off);
	*line = 1;
	*col = 1;
	for (i = 0; i < start; i++)
		*line += f->text[i] == '\n';
	for (i = start; i < at.off; i++)
		*col += ((unsigned char)f->text[i] & 0xc0) != 0x80;	/* one of its first byte */
}

char *maps_where(const struct maps *m, struct maps_at at)
{
	size_t line, col;

	maps_place(m, at, &line, &col);
	return say_fmt("%s:%zu", m->files[at.file].path, line);
}

static void diag_source(const struct maps *m, const struct maps_diag *d, FILE *out, bool paint)
{
	const struct maps_file *f = &m->files[d->at.file];
	size_t off = d->at.off > f->len ? f->len : d->at.off, start = diag_line_start(f, off), end,
	       i, line, col, mark;
	const char *nl = memchr(f->text + off, '\n', f->len - off);

	end = nl ? (size_t)(nl - f->text) : f->len;
	maps_place(m, d->at, &line, &col);
	if (off - start > DIAG_SHOWN / 2)
		start = off - DIAG_SHOWN / 2;
	if (end - start > DIAG_SHOWN)
		end = start + DIAG_SHOWN;
	if (end > start && f->text[end - 1] == '\r' && off < end - 1)
		end--;
	fprintf(out, "%5zu | ", line);
	/*
	 * ASCII is shown as it is. Other characters get one '?' for each byte, so the caret is at
	 * the right place whatever their width is.
	 */
	for (i = start; i < end; i++) {
		char c = f->text[i];

		putc(c == '\t' ? ' ' : c < 0x20 || c >= 0x7f ? '?' : c, out);
	}
	fprintf(out, "\n      | %*s%s^", (int)(off - start), "", paint ? "\033[1;32m" : "");
	mark = d->at.len < end - off ? d->at.len : end - off;
	for (i = 1; i < mark; i++)
		putc('~', out);
	fprintf(out, "%s\n", paint ? "\033[0m" : "");
}

void maps_print_diag(const struct maps *m, const struct maps_diag *d, FILE *f)
{
	const char *word = d->level == MAPS_ERROR ? "error" : "warning";
	bool paint = say_coloured(f), file = d->at.off == SIZE_MAX;
	char *msg __free(free) = escape_text(ESCAPE_LINE, d->msg);
	size_t line, col;

	if (file) {
		fprintf(f, "%s: ", m->files[d->at.file].path);
	} else {
		maps_place(m, d->at, &line, &col);
		fprintf(f, "%s:%zu:%zu: ", m->files[d->at.file].path, line, col);
	}
	fprintf(f, "%s%s:%s %s\n",
		paint ? d->level == MAPS_ERROR ? "\033[1;31m" : "\033[1;33m" : "", word,
		paint ? "\033[0m" : "", msg);
	if (!file)
		diag_source(m, d, f, paint);
	if (d->hint)
		fprintf(f, "   %s\n", d->hint);
}

void maps_print_diags(const struct maps *m)
{
	for (size_t i = 0; i < m->nr_diags; i++)
		maps_print_diag(m, &m->diags[i], stderr);
}

bool maps_say_refused(const struct maps *m)
{
	for (size_t i = 0; i < m->nr_diags; i++)
		if (m->diags[i].at.off == SIZE_MAX && m->files[m->diags[i].at.file].refused)
			maps_print_diag(m, &m->diags[i], stderr);
	return m->nr_refused;
}
