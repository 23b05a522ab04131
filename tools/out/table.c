// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints sets of objects. Each format has its own escape for names (escape.h). JSON always has
 * every field of the set, whatever -o says: its readers pick fields themselves, and a document
 * always has the same shape.
 */
#include <fnmatch.h>
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "tools/out/escape.h"
#include "tools/out/table.h"

#define TABLE_MAX_COLUMNS	64
#define TABLE_SLOW_MS		10000

#define SET(name, type_, what_, usual_) \
	const struct table_set table_##name = { .what = what_, .type = &state_type_##type_, \
						.usual = usual_ }

SET(devs, dev, "devices",
    "path,name,size,detail,access_mode,session,device_path,up,paths");
SET(sessions, session, "sessions",
    "name,side,state,path_states,nr_devices,policy,read_bytes,write_bytes,reconnects");
SET(paths, path, "paths",
    "session,name,hca_name,hca_port,state,latency,read_bytes,write_bytes,inflight,reconnects");
SET(exports, export, "exports",
    "name,kind,size,nr_opens,claimed,copy");
SET(opens, open, "opens",
    "export,session,mapping_path,access_mode,claimed");

struct table_view {
	const struct table_set *set;
	const struct state_field *column[TABLE_MAX_COLUMNS];
	size_t nr;
	const struct state_field *sort;
	bool descending;
	const struct state_field *filter;
	const char *filter_text;
	bool filter_not;
	bool bytes;
};

char *table_size(int64_t n, bool bytes)
{
	static const char units[] = "BKMGTPE";
	double d = (double)n;
	unsigned int u = 0;

	if (n == SYSFS_UNKNOWN)
		return say_dup("-");
	if (bytes || n < 1024)
		return say_fmt(bytes ? "%lld" : "%lldB", (long long)n);
	while (d >= 1023.95 && u < 6) {
		d /= 1024;
		u++;
	}
	return say_fmt("%.*f%c", d >= 99.95 || d - (double)(int64_t)d < 0.05 ? 0 : 1, d, units[u]);
}

static char *table_time(int64_t ns)
{
	if (ns == SYSFS_UNKNOWN || ns <= 0)
		return say_dup("-");
	if (ns < 10000)
		return say_fmt("%lldns", (long long)ns);
	if (ns < 10000000)
		return say_fmt("%.1fus", (double)ns / 1e3);
	return say_fmt("%.1fms", (double)ns / 1e6);
}

char *table_state(const struct state_dev *d, const char *state)
{
	if (!state || strcmp(state, "open") || d->oldest_ms < TABLE_SLOW_MS)
		return say_dup(state ? state : "?");
	return say_fmt("%s, oldest request %lld s", state, (long long)d->oldest_ms / 1000);
}

char *table_cell(const struct state_field *c, const void *object, bool bytes, const char *none)
{
	const char *text = c->kind == STATE_TEXT ? state_text(c, object) : NULL;
	int64_t n = c->kind == STATE_TEXT ? SYSFS_UNKNOWN : state_num(c, object);

	if (n == SYSFS_UNKNOWN) {
		text = text ? text : none;
		return text ? say_dup(text) : NULL;
	}
	switch (c->kind) {
	case STATE_BYTES:
		return table_size(n, bytes);
	case STATE_NS:
		return bytes ? say_fmt("%lld", (long long)n) : table_time(n);
	case STATE_FLAG:
		return say_dup(n ? "yes" : "no");
	default:
		return say_fmt("%lld", (long long)n);
	}
}

bool table_for_people(const struct cmd_args *a)
{
	return !ARG(a, json) && !ARG(a, raw) && !ARG(a, pairs) && !ARG(a, csv);
}

/* ---- which columns ---- */

static const struct state_field *table_find(const struct table_set *set, const char *word,
					     size_t len)
{
	char *text __free(free) = say_fmt("%.*s", (int)len, word);
	const char *near = NULL;

	/* Keys are searched before headings: "path" of a device is its node. */
	for (size_t i = 0; i < set->type->nr; i++)
		if (!strcasecmp(set->type->fields[i].key, text))
			return &set->type->fields[i];
	for (size_t i = 0; i < set->type->nr; i++)
		if (!strcasecmp(set->type->fields[i].heading, text))
			return &set->type->fields[i];
	for (size_t i = 0; i < set->type->nr; i++)
		near = say_nearest(text, near, set->type->fields[i].key);
	if (near) {
		say_error(SAY_USAGE, "no column \"%s\", did you mean \"%s\"?", text, near);
	} else {
		say_error(SAY_USAGE, "no column \"%s\"", text);
		say_hint("--list-columns");
	}
	return NULL;
}

static void table_drop(struct table_view *v, const struct state_field *c)
{
	size_t i, n = 0;

	for (i = 0; i < v->nr; i++)
		if (v->column[i] != c)
			v->column[n++] = v->column[i];
	v->nr = n;
}

static int table_columns(struct table_view *v, const char *list)
{
	const struct state_field *c;
	size_t len, i;

	for (; *list; list += len + (list[len] == ',')) {
		char how = *list;

		if (how == '+' || how == '^')
			list++;
		len = strcspn(list, ",");
		if (len == 3 && !strncasecmp(list, "all", 3) && how != '^') {
			for (v->nr = 0, i = 0; i < v->set->type->nr; i++)
				v->column[v->nr++] = &v->set->type->fields[i];
			continue;
		}
		c = table_find(v->set, list, len);
		if (!c)
			return SAY_USAGE;
		table_drop(v, c);
		if (how != '^')
			v->column[v->nr++] = c;
	}
	return 0;
}

static int table_view(struct table_view *v, const struct table_set *set, const struct cmd_args *a)
{
	const char *want = VALUE(a, columns), *sort = VALUE(a, sort), *filter = VALUE(a, filter),
		   *eq;

	*v = (struct table_view){ .set = set, .bytes = ARG(a, bytes) };
	if (!want || *want == '+' || *want == '^')
		table_columns(v, set->usual);
	if (want && table_columns(v, want))
		return SAY_USAGE;
	if (sort) {
		v->descending = *sort == '^';
		sort += v->descending;
		v->sort = table_find(set, sort, strlen(sort));
		if (!v->sort)
			return SAY_USAGE;
	}
	if (filter) {
		eq = strchr(filter, '=');
		if (!eq || eq == filter)
			return say_error(SAY_USAGE,
					 "--filter %s: COLUMN=TEXT or COLUMN!=TEXT is expected",
					 filter);
		v->filter_not = eq[-1] == '!';
		v->filter_text = eq + 1;
		v->filter = table_find(set, filter, (size_t)(eq - filter) - v->filter_not);
		if (!v->filter)
			return SAY_USAGE;
	}
	return 0;
}

int table_check(const struct table_set *set, const struct cmd_args *a)
{
	struct table_view v;

	if (ARG(a, list_columns)) {
		for (size_t i = 0; i < set->type->nr; i++)
			printf("%-24s %-14s %s\n", set->type->fields[i].key, set->type->fields[i].heading,
			       set->type->fields[i].help);
		return SAY_DONE;
	}
	return table_view(&v, set, a) ? SAY_USAGE : -1;
}

/* ---- which rows ---- */

static const struct table_view *table_sorting;

static int table_compare(const void *a, const void *b)
{
	const struct table_view *v = table_sorting;
	const void *x = *(const void *const *)a, *y = *(const void *const *)b;
	int r;

	if (v->sort->kind == STATE_TEXT) {
		const char *s = state_text(v->sort, x), *t = state_text(v->sort, y);

		r = strverscmp(s ? s : "", t ? t : "");
	} else {
		int64_t m = state_num(v->sort, x), n = state_num(v->sort, y);

		r = (m > n) - (m < n);
	}
	if (!r)
		return (x > y) - (x < y);
	return v->descending ? -r : r;
}

static const void **table_rows(const struct table_view *v, const void *objects, size_t nr,
			       size_t *kept)
{
	const void **rows = say_alloc((nr + 1) * sizeof(*rows));
	size_t i, n = 0;

	for (i = 0; i < nr; i++) {
		const void *object = (const char *)objects + i * v->set->type->size;
		char *cell __free(free) = v->filter ? table_cell(v->filter, object, true, "") : NULL;

		if (!cell || escape_means(v->filter_text, cell) != v->filter_not)
			rows[n++] = object;
	}
	table_sorting = v;
	if (v->sort)
		qsort(rows, n, sizeof(*rows), table_compare);
	*kept = n;
	return rows;
}

/* ---- drawing ---- */

static const char *table_colour(const struct state_field *c, const char *cell)
{
	if (!strcmp(c->key, "path_states"))
		return strchr(cell, '_') ? "red" : NULL;
	if (fnmatch("state@(|_detail)", c->key, FNM_EXTMATCH))
		return NULL;
	if (!fnmatch("@(held|failfast|degraded|init|connecting*|up marginal*|open, *)", cell,
		     FNM_EXTMATCH))
		return "yellow";
	return fnmatch("@(open|connected|up|up *|-)", cell, FNM_EXTMATCH) ? "red" : NULL;
}

static char *table_told(const struct table_view *v, const struct state_field *c, const void *object)
{
	if (v->set == &table_devs &&
	    (!strcmp(c->key, "state") || !strcmp(c->key, "state_detail")) && state_text(c, object))
		return table_state(object, state_text(c, object));
	return table_cell(c, object, v->bytes, "-");
}

static void table_draw(const struct table_view *v, const void **rows, size_t nr,
		       const struct cmd_args *a)
{
	struct libscols_table *tb;

	scols_init_debug(0);
	tb = scols_new_table();
	if (!tb)
		exit(say_error(SAY_FAILED, "out of memory"));
	scols_table_enable_noencoding(tb, true);
	scols_table_enable_noheadings(tb, ARG(a, noheadings));
	scols_table_enable_colors(tb, say_coloured(stdout));
	for (size_t i = 0; i < v->nr; i++)
		scols_table_new_column(tb, v->column[i]->heading, 0,
				       v->column[i]->kind == STATE_TEXT ||
						       v->column[i]->kind == STATE_FLAG ?
					       0 :
					       SCOLS_FL_RIGHT);
	for (size_t i = 0; i < nr; i++) {
		struct libscols_line *line = scols_table_new_line(tb, NULL);

		for (size_t j = 0; line && j < v->nr; j++) {
			char *told __free(free) = table_told(v, v->column[j], rows[i]),
			     *cell = escape_text(ESCAPE_LINE, told);
			const char *colour = table_colour(v->column[j], cell);

			if (colour && scols_line_get_cell(line, j))
				scols_cell_set_color(scols_line_get_cell(line, j), colour);
			scols_line_refer_data(line, j, cell);
		}
	}
	if (nr)
		scols_print_table(tb);
	scols_unref_table(tb);
}

/* ---- for scripts ---- */

/*
 * RFC 4180. Cells with a semicolon or with a blank at either end are quoted, too: some programs use
 * semicolons as separators, some drop such blanks.
 */
static void table_csv_cell(const char *cell)
{
	size_t len = strlen(cell);
	const char *p;

	if (!cell[strcspn(cell, ",;\"")] && *cell != ' ' && !(len && cell[len - 1] == ' ')) {
		fputs(cell, stdout);
		return;
	}
	putchar('"');
	for (p = cell; *p; p++) {
		if (*p == '"')
			putchar('"');
		putchar(*p);
	}
	putchar('"');
}

/*
 * --raw: words between blanks; --pairs: KEY="value" for the shell; --csv. @how is the escape of the
 * format.
 */
static void table_cell_for(const struct table_view *v, const struct state_field *c,
			   const void *object, enum escape how)
{
	char *plain __free(free) = table_cell(c, object, v->bytes, ""),
	     *escaped __free(free) = escape_text(how, plain);
	/* Numbers are not escaped in CSV: they may begin with '-'. */
	const char *cell = how == ESCAPE_CSV && c->kind != STATE_TEXT ? plain : escaped;

	if (how == ESCAPE_CSV)
		table_csv_cell(cell);
	else if (how == ESCAPE_SHELL)
		printf("%s=\"%s\"", c->heading, cell);
	else
		fputs(*cell ? cell : "-", stdout);
}

static void table_script(const struct table_view *v, const void **rows, size_t nr, enum escape how,
			 bool headings)
{
	char blank = how == ESCAPE_CSV ? ',' : ' ';

	for (size_t j = 0; headings && how != ESCAPE_SHELL && j < v->nr; j++)
		printf("%s%c", v->column[j]->heading, j + 1 < v->nr ? blank : '\n');
	for (size_t i = 0; i < nr; i++) {
		for (size_t j = 0; j < v->nr; j++) {
			table_cell_for(v, v->column[j], rows[i], how);
			putchar(j + 1 < v->nr ? blank : '\n');
		}
	}
}

/* ---- JSON ---- */

static void table_json_fields(struct json *j, const struct table_set *set, const void *object)
{
	for (size_t i = 0; i < set->type->nr; i++) {
		const struct state_field *c = &set->type->fields[i];
		int64_t n;

		if (c->kind == STATE_TEXT) {
			json_text(j, c->key, state_text(c, object));
			continue;
		}
		n = state_num(c, object);
		if (c->kind == STATE_FLAG && n != SYSFS_UNKNOWN)
			json_bool(j, c->key, n);
		else
			json_num(j, c->key, n);
	}
}

static void table_json_view(struct json *j, const struct table_view *v, const void *objects,
			    size_t nr)
{
	const void **rows __free(free) = table_rows(v, objects, nr, &nr);

	json_array(j, v->set->what);
	for (size_t i = 0; i < nr; i++) {
		json_object(j, NULL);
		table_json_fields(j, v->set, rows[i]);
		json_end(j);
	}
	json_end(j);
}

void table_json_array(struct json *j, const struct table_set *set, const void *objects, size_t nr)
{
	table_json_view(j, &(struct table_view){ .set = set }, objects, nr);
}

void table_json_sessions(struct json *j, const char *key, const struct state_session *all,
			 size_t nr)
{
	json_array(j, key);
	for (size_t i = 0; i < nr; i++) {
		json_object(j, NULL);
		table_json_fields(j, &table_sessions, &all[i]);
		table_json_array(j, &table_paths, all[i].paths, (size_t)all[i].nr_paths);
		json_end(j);
	}
	json_end(j);
}

void table_json_exports(struct json *j, const struct state *s)
{
	json_array(j, "exports");
	for (size_t i = 0; i < s->nr_exports; i++) {
		json_object(j, NULL);
		table_json_fields(j, &table_exports, &s->exports[i]);
		table_json_array(j, &table_opens, s->exports[i].opens,
				 (size_t)s->exports[i].nr_opens);
		json_end(j);
	}
	json_end(j);
}

void table_json(struct json *j, const struct table_set *set, const void *objects, size_t nr,
		const struct cmd_args *a)
{
	struct table_view v;

	table_view(&v, set, a);
	table_json_view(j, &v, objects, nr);
}

void table_print(const struct table_set *set, const void *objects, size_t nr,
		 const struct cmd_args *a)
{
	const void **rows __free(free) = NULL;
	struct table_view v;
	struct json j;

	table_view(&v, set, a);
	if (ARG(a, json)) {
		json_document(&j, stdout, false);
		table_json_view(&j, &v, objects, nr);
		json_end(&j);
		return;
	}
	rows = table_rows(&v, objects, nr, &nr);
	if (table_for_people(a))
		table_draw(&v, rows, nr, a);
	else
		table_script(&v, rows, nr,
			     ARG(a, csv) ? ESCAPE_CSV : ARG(a, raw) ? ESCAPE_WORD : ESCAPE_SHELL,
			     !ARG(a, noheadings));
}
