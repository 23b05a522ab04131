// SPDX-License-Identifier: GPL-2.0-only
/* maps check, show, save, remove, tidy: the files. cmd_maps_run.c and cmd_maps_apply.c map. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/conf/fstab.h"
#include "tools/host/host.h"
#include "tools/out/json.h"
#include "tools/host/live.h"
#include "tools/conf/maps_store.h"
#include "tools/out/escape.h"
#include "tools/host/state.h"

/* ---- check ---- */

static void maps_json_diags(struct json *j, const struct maps *m)
{
	size_t i, line, col;

	json_array(j, "mistakes");
	for (i = 0; i < m->nr_diags; i++) {
		const struct maps_diag *d = &m->diags[i];

		json_object(j, NULL);
		json_text(j, "level", d->level == MAPS_ERROR ? "error" : "warning");
		json_text(j, "file", m->files[d->at.file].path);
		if (d->at.off != SIZE_MAX)
			maps_place(m, d->at, &line, &col);
		json_num(j, "line", d->at.off == SIZE_MAX ? SYSFS_UNKNOWN : (int64_t)line);
		json_num(j, "column", d->at.off == SIZE_MAX ? SYSFS_UNKNOWN : (int64_t)col);
		json_text(j, "message", d->msg);
		json_text(j, "hint", d->hint);
		json_end(j);
	}
	json_end(j);
}

int cmd_maps_check_run(struct cmd_args *a)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	size_t i, good = 0, warnings;
	struct json j;

	host_check_sources(m);
	fstab_check(m);
	for (i = 0; i < m->nr; i++)
		good += !m->entries[i].bad;
	warnings = m->nr_diags - (m->nr_errors < m->nr_diags ? m->nr_errors : m->nr_diags);
	if (ARG(a, json)) {
		json_document(&j, stdout, false);
		maps_json_diags(&j, m);
		json_num(&j, "mappings", (int64_t)good);
		json_end(&j);
	} else {
		maps_print_diags(m);
		if (say_level >= 0)
			printf("%zu mapping%s, %zu error%s, %zu warning%s\n", good,
			       good == 1 ? "" : "s", m->nr_errors, m->nr_errors == 1 ? "" : "s",
			       warnings, warnings == 1 ? "" : "s");
	}
	return m->nr_errors ? SAY_USAGE : SAY_DONE;
}

/* ---- show ---- */

static bool maps_wanted(const struct cmd_args *a, const struct maps_entry *e)
{
	for (size_t i = 0; i < a->nr_words; i++)
		if (!strcmp(a->words[i], e->name))
			return !e->bad;
	return !a->nr_words && !e->bad;
}

static void maps_show_line(const struct maps_entry *e)
{
	char *line __free(free) = maps_line(e), *shown __free(free) = escape_unseen(line);

	puts(shown);
}

static void maps_show_word(const char *key, const char *text)
{
	char *word __free(free) = say_fmt("%s%s", key, text), *quoted __free(free) = say_word(word);

	printf(" %s", quoted);
}

static void maps_show_command(const struct maps_entry *e)
{
	char line[IBNBD_MAP_LINE_MAX + 1], *word, *save = NULL;
	struct ibnbd_map map = e->map;

	map.given &= ~(1u << IBNBD_OPT_sessname | 1u << IBNBD_OPT_device_path);
	mapopt_format(&map, line, sizeof(line));
	printf("ibnbd map");
	maps_show_word("", e->map.device_path);
	maps_show_word("", e->map.sessname);
	for (size_t i = 0; i < e->nr_hosts; i++)
		maps_show_word("path=", e->host[i]);
	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		maps_show_word("", word);
	putchar('\n');
}

static void maps_show_json(struct json *j, const struct maps *m, struct state *s,
			   const struct maps_entry *e)
{
	const struct state_dev *d = state_dev_of(s, e->map.sessname, e->map.device_path);
	char text[IBTRS_PATH_STR_MAX], word[32];
	const struct ibnbd_mapopt *o = ibnbd_mapopts;
	size_t i, line, col;

	maps_place(m, e->line, &line, &col);
	json_object(j, NULL);
	json_text(j, "name", e->name);
	json_text(j, "device_path", e->map.device_path);
	json_text(j, "session", e->map.sessname);
	json_text(j, "file", m->files[e->line.file].path);
	json_num(j, "line", (int64_t)line);
	json_text(j, "mapped_as", d ? d->path : NULL);
	json_array(j, "paths");
	for (i = 0; i < e->map.nr_paths; i++) {
		ibtrs_addr_pair_format(&e->map.path[i], text, sizeof(text));
		json_text(j, NULL, text);
	}
	for (i = 0; i < e->nr_hosts; i++)
		json_text(j, NULL, e->host[i]);
	json_end(j);
	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++) {
		const void *field = (const char *)&e->map + o[i].offset;

		if (o[i].kind == IBNBD_KIND_INT) {
			json_num(j, o[i].key, *(const int *)field);
		} else if (o[i].kind == IBNBD_KIND_WORD) {
			ibnbd_mapopt_word((enum ibnbd_mapopt_id)i, *(const int *)field, word,
					  sizeof(word));
			json_text(j, o[i].key, word);
		} else if (o[i].kind == IBNBD_KIND_KEY) {
			json_text(j, o[i].key, *(const char *)field ? field : NULL);
		}
	}
	for (int k = 0; k < MAPS_NR_OPTIONS; k++) {
		if (!maps_options[k].value)
			json_bool(j, maps_options[k].key, maps_given(e, k));
		else
			json_text(j, maps_options[k].key, e->text[k]);
	}
	json_end(j);
}

int cmd_maps_show_run(struct cmd_args *a)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct state *s __free(state_free) = state_read();
	int rc = SAY_DONE;
	struct json j;

	for (size_t i = 0; i < a->nr_words; i++)
		if (!maps_find(m, a->words[i]))
			rc = say_error(SAY_NOTHING,
				       "maps show: maps.conf has no usable line \"%s\"",
				       a->words[i]);
	if (ARG(a, json))
		json_list(&j, "maps");
	for (size_t i = 0; i < m->nr; i++) {
		const struct maps_entry *e = &m->entries[i];

		if (!maps_wanted(a, e))
			continue;
		if (ARG(a, json))
			maps_show_json(&j, m, s, e);
		else if (ARG(a, as_commands))
			maps_show_command(e);
		else
			maps_show_line(e);
	}
	if (ARG(a, json))
		json_close(&j);
	if (maps_say_refused(m)) {
		rc = rc ? rc : SAY_USAGE;
	} else if (m->nr_errors && !rc) {
		say_warn("%zu mistakes, whose lines are left out", m->nr_errors);
		say_hint("ibnbd maps check");
	}
	return rc;
}

/* ---- save ---- */

/* Keeps the options of the old line that the driver does not show. It owns their texts. */
static int maps_save_one(const struct cmd_args *a, struct maps *m, struct state *s,
			 const struct state_dev *d)
{
	struct maps_entry *old = maps_find_device(m, d->session, d->device_path);
	struct state_session *sess = state_session(s, d->session);
	struct maps_entry e = { 0 };
	char *why __free(free) = NULL;

	if (!d->name && !old) {
		say_error(SAY_USAGE, "maps save: %s has no name", d->path);
		return say_hint("ibnbd map %s %s --name NAME --save-only",
				d->device_path ? d->device_path : "DEVICE",
				d->session ? d->session : "SESSION");
	}
	ibnbd_mapopt_init(&e.map);
	if (old)
		e = *old;
	if (live_map(&e.map, s, d, &why)) {
		say_error(SAY_FAILED, "maps save: %s cannot be saved: %s", d->path, why);
		return say_hint("ibnbd show %s; ibnbd doctor", d->kname);
	}
	live_terse(&e.map, old ? old->map.given : 0);
	e.made_session = false;
	if (sess && sess->nr_paths > 0)
		e.nr_hosts = 0;
	if (sess && sess->nr_paths > IBNBD_MAP_PATHS)
		say_warn(
			"session %s has %lld paths, a line takes %d: the others have to be added after the boot",
			sess->name, (long long)sess->nr_paths, IBNBD_MAP_PATHS);
	snprintf(e.name, sizeof(e.name), "%s", e.map.name);
	return maps_store_save(&e, VALUE(a, file), true, !ARG(a, no_reload));
}

int cmd_maps_save_run(struct cmd_args *a)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct state *s __free(state_free) = state_read();
	struct say_sum sum = { 0 };

	for (size_t i = 0; ARG(a, all) && i < s->nr_devs; i++)
		say_sum(&sum, maps_save_one(a, m, s, &s->devs[i]));
	for (size_t i = 0; !ARG(a, all) && i < a->nr_words; i++) {
		char *why __free(free) = NULL;
		struct state_dev *d = state_dev(s, a->words[i], &why);

		say_sum(&sum, d ? maps_save_one(a, m, s, d) :
				  say_error(SAY_NOTHING, "maps save: %s", why));
	}
	return sum.rc;
}

int cmd_maps_remove_run(struct cmd_args *a)
{
	struct say_sum sum = { 0 };
	int rc;

	for (size_t i = 0; i < a->nr_words; i++) {
		rc = maps_store_remove(a->words[i], VALUE(a, file), !ARG(a, no_reload));
		if (rc == SAY_NOTHING && ARG(a, idempotent))
			rc = SAY_DONE;
		else if (rc == SAY_NOTHING)
			say_error(rc, "maps remove: maps.conf has no line \"%s\"", a->words[i]);
		say_sum(&sum, rc);
	}
	return sum.rc;
}

int cmd_maps_tidy_run(struct cmd_args *a)
{
	return maps_store_tidy(!ARG(a, no_reload));
}
