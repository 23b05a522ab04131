// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets of objects as JSON: every field of the set, whatever -o says. The readers pick fields
 * themselves, and a document always has the same shape.
 */
#include "tools/out/table.h"

void table_json_fields(struct json *j, const struct table_set *set, const void *object)
{
	size_t i;

	for (i = 0; i < set->type->nr; i++) {
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

void table_json_array(struct json *j, const struct table_set *set, const void *objects, size_t nr)
{
	size_t i;

	json_array(j, set == &table_devs ? "devices" : set->what);
	for (i = 0; i < nr; i++) {
		json_object(j, NULL);
		table_json_fields(j, set, (const char *)objects + i * set->type->size);
		json_end(j);
	}
	json_end(j);
}

void table_json_sessions(struct json *j, const char *key, const struct state_session *all,
			 size_t nr)
{
	size_t i;

	json_array(j, key);
	for (i = 0; i < nr; i++) {
		json_object(j, NULL);
		table_json_fields(j, &table_sessions, &all[i]);
		table_json_array(j, &table_paths, all[i].paths, (size_t)all[i].nr_paths);
		json_end(j);
	}
	json_end(j);
}

void table_json_exports(struct json *j, const struct state *s)
{
	size_t i;

	json_array(j, "exports");
	for (i = 0; i < s->nr_exports; i++) {
		json_object(j, NULL);
		table_json_fields(j, &table_exports, &s->exports[i]);
		table_json_array(j, &table_opens, s->exports[i].opens,
				 (size_t)s->exports[i].nr_opens);
		json_end(j);
	}
	json_end(j);
}
