// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws of maps.conf on any bytes: every mistake has a place within its file and a message that
 * can be printed; mistakes and their count agree, and few are told; a NUL is a mistake; a bad entry
 * has a mistake; a good one, written as a line, is read back as the same, and that line is stable;
 * below a mistake in [defaults] there is no good one.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/conf/maps_conf.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *sink;

static void printable(const char *s)
{
	for (; *s; s++)
		MUST((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void diags(const struct maps *m)
{
	size_t i, line, col, errors = 0;

	for (i = 0; i < m->nr_diags; i++) {
		const struct maps_diag *d = &m->diags[i];

		errors += d->level == MAPS_ERROR;
		MUST(d->at.file < m->nr_files);
		MUST(d->at.off == SIZE_MAX ? m->files[d->at.file].refused :
		     d->at.off <= m->files[d->at.file].len);
		MUST(d->msg && *d->msg);
		printable(d->msg);
		if (d->hint)
			printable(d->hint);
		if (d->at.off != SIZE_MAX) {
			maps_place(m, d->at, &line, &col);
			MUST(line && col);
		}
		maps_print_diag(m, d, sink);
	}
	MUST(errors <= m->nr_errors && (errors == m->nr_errors || errors >= MAPS_TOLD));
	MUST(m->nr_diags <= 2 * MAPS_TOLD + 1);
	rewind(sink);
}

/*
 * What belongs to other lines (defaults are filled in, a session is opened elsewhere) is in the
 * line of maps_line() or does not matter alone.
 */
static void round_trip(const struct maps_entry *e)
{
	char *line = maps_line(e), *again;
	struct maps *m = calloc(1, sizeof(*m));
	struct maps_entry *r;
	int i;

	MUST(m);
	maps_parse(m, "again", line, strlen(line));
	if (m->nr_errors)	/* the canonical line may be longer than what was written */
		MUST(strlen(line) > IBNBD_MAP_LINE_MAX);
	else {
		MUST(m->nr == 1);
		r = &m->entries[0];
		MUST(!strcmp(r->name, e->name) && !memcmp(&r->map, &e->map, sizeof(e->map)));
		MUST(r->given == e->given && r->nr_hosts == e->nr_hosts &&
		     r->made_session == e->made_session);
		for (i = 0; i < MAPS_NR_OPTIONS; i++)
			MUST(!r->text[i] == !e->text[i] && r->number[i] == e->number[i] &&
			     (!r->text[i] || !strcmp(r->text[i], e->text[i])));
		MUST(r->nr_own == e->nr_own);
		for (i = 0; i < (int)e->nr_own; i++)
			MUST(!strcmp(r->own[i], e->own[i]));
		again = maps_line(r);
		MUST(!strcmp(line, again));
		free(again);
	}
	maps_free(m);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps *m = calloc(1, sizeof(*m));
	char *exact = malloc(size ? size : 1);
	size_t i;

	MUST(m && exact);
	if (!sink)
		sink = fopen("/dev/null", "w");
	MUST(sink);
	if (size)
		memcpy(exact, data, size);
	maps_parse(m, "fuzz", exact, size);
	free(exact);
	for (i = 0; i < m->nr; i++)
		MUST(m->entries[i].bad ? m->nr_errors : !m->files[0].no_defaults);
	MUST(m->nr_errors || !size || !memchr(data, 0, size));	/* nothing hides behind a NUL */
	for (i = 0; i < m->nr; i++)
		if (!m->entries[i].bad)
			round_trip(&m->entries[i]);
	maps_check(m);
	diags(m);
	maps_free(m);
	return 0;
}
