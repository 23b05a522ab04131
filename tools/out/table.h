/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints objects of host/state.h: a set of columns for each kind, as table, pairs, CSV or JSON. A
 * row of host/state_fields.h defines a column, its JSON key, and its name for -o, --sort and
 * --filter.
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

/* Prints all objects of a kind as the options say; with --json the whole document. */
void table_print(const struct table_set *set, const void *objects, size_t nr,
		 const struct cmd_args *a);
/*
 * Executes --list-columns, or finds mistakes in -o, --sort and --filter. -1: the caller continues,
 * and may call table_print() and table_json().
 */
int table_check(const struct table_set *set, const struct cmd_args *a);

/* Of the same objects the member of a JSON document, as the options say. */
void table_json(struct json *j, const struct table_set *set, const void *objects, size_t nr,
		const struct cmd_args *a);
void table_json_array(struct json *j, const struct table_set *set, const void *objects, size_t nr);
/* Sessions, each with its paths, under @key; and the exports of @s, each with its opens. */
void table_json_sessions(struct json *j, const char *key, const struct state_session *all,
			 size_t nr);
void table_json_exports(struct json *j, const struct state *s);

/* A field as text; @none: of an unknown one, or NULL. Allocated. */
char *table_cell(const struct state_field *c, const void *object, bool bytes, const char *none);
/* Are the options those of a person who reads a table? */
bool table_for_people(const struct cmd_args *a);
/* 10737418240 -> "10G". Allocated. */
char *table_size(int64_t n, bool bytes);
/*
 * For people: @state of a device, or "?", and how long its oldest request has waited, if that is
 * unusual. Allocated.
 */
char *table_state(const struct state_dev *d, const char *state);

#endif
