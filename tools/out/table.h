/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of host/state.h as text: a set of columns for each kind, printed as table, pairs, CSV or
 * JSON. A row of host/state_fields.h is a column, a JSON key and a word for -o, --sort and --filter
 * at once.
 */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include "tools/cmd/cmd.h"
#include "tools/out/json.h"
#include "tools/host/state.h"

struct table_set {
	const char *what;		/* key of the array in JSON */
	const struct state_type *type;
	const char *usual;		/* default columns */
};

extern const struct table_set table_devs, table_sessions, table_paths, table_exports, table_opens;

/* All of a kind in one array, as the options say; JSON: the whole document. */
int table_print(const struct table_set *set, const void *objects, size_t nr,
		const struct cmd_args *a);
/* Does --list-columns, or finds mistakes in -o, --sort and --filter. -1: go on. */
int table_check(const struct table_set *set, const struct cmd_args *a);

void table_json_fields(struct json *j, const struct table_set *set, const void *object);
void table_json_array(struct json *j, const struct table_set *set, const void *objects, size_t nr);
/* devices, sessions with paths, exports with opens: the keys of the document @s is about. */
void table_json_sessions(struct json *j, const char *key, const struct state_session *all,
			 size_t nr);
void table_json_exports(struct json *j, const struct state *s);

/* 10737418240 -> "10G". Allocated. */
char *table_size(int64_t n, bool bytes);
char *table_time(int64_t ns);

#endif
