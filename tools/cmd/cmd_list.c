// SPDX-License-Identifier: GPL-2.0-only
/* list, session list, path list, show: what there is. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/mirror.h"
#include "tools/host/mapping.h"
#include "tools/out/escape.h"
#include "tools/out/table.h"

/* ---- list ---- */

/* Sets a flag for each disk that is wanted. The exit status: is there all that was named? */
static int list_wanted(const struct cmd_args *a, struct state *s, bool *wanted)
{
	const char *session = VALUE(a, session);
	int rc = SAY_DONE;

	if (session && !state_session_said(s, session))
		rc = say_error(SAY_NOTHING, "%s: no such session", session);
	for (size_t i = 0; i < a->nr_words; i++) {
		char *why __free(free) = NULL;
		struct state_dev *d = state_dev(s, a->words[i], &why);

		if (d)
			wanted[d - s->devs] = true;
		else
			rc = say_error(SAY_NOTHING, "%s", why);
	}
	for (size_t i = 0; i < s->nr_devs; i++) {
		const char *of = s->devs[i].session;

		wanted[i] |= !a->nr_words;
		wanted[i] &= !session || (of && escape_means(session, of));
	}
	return rc;
}

/* After an upgrade: which driver runs, for who reads a table. */
static void list_upgraded(const struct cmd_args *a)
{
	char *said __free(free) = table_for_people(a) && !ARG(a, noheadings) ?
					  mapping_upgraded("ibnbd_client") :
					  NULL;

	if (said)
		say_warn("%s: ibnbd doctor", said);
}

/* Those of the *@nr objects at @all that are wanted, and how many these are. Allocated. */
static void *list_some(const void *all, size_t size, size_t *nr, const bool *wanted)
{
	char *some = say_alloc((*nr + 1) * size);
	size_t i, n = 0;

	for (i = 0; i < *nr; i++)
		if (wanted[i])
			memcpy(some + n++ * size, (const char *)all + i * size, size);
	*nr = n;
	return some;
}

static void list_tree_json(const struct cmd_args *a, struct state *s, const struct state_dev *devs,
			   size_t nr, const bool *wanted)
{
	struct json j;

	json_document(&j, stdout, false);
	table_json(&j, &table_devs, devs, nr, a);
	tree_all_json(&j, a, s, wanted);
	json_end(&j);
}

int cmd_list_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct state_dev *some __free(free) = NULL;
	bool *wanted __free(free) = say_alloc(s->nr_devs);
	size_t n = s->nr_devs;
	int rc = table_check(&table_devs, a);

	if (rc >= 0)
		return rc;
	rc = list_wanted(a, s, wanted);
	some = list_some(s->devs, sizeof(*some), &n, wanted);
	if (!ARG(a, tree))
		table_print(&table_devs, some, n, a);
	else if (ARG(a, json))
		list_tree_json(a, s, some, n, wanted);
	else
		tree_all(a, s, wanted);
	if (!ARG(a, tree) && !n && !rc && table_for_people(a))
		say_more("nothing is mapped");
	list_upgraded(a);
	return rc;
}

/* ---- sessions, paths ---- */

/* Those that are wanted. *@rc, the exit status: is there all that was named? Allocated. */
static struct state_session *list_sessions(const struct cmd_args *a, const struct state *s,
					   size_t *nr, int *rc)
{
	size_t i, j;
	bool *wanted __free(free) = say_alloc(s->nr_sessions + s->nr_srv_sessions);

	*nr = s->nr_sessions + s->nr_srv_sessions;
	memset(wanted, !a->nr_words, *nr);
	*rc = SAY_DONE;
	for (i = 0; i < a->nr_words; i++) {
		const char *near = NULL;
		bool found = false;

		for (j = 0; j < *nr; j++) {
			if (escape_means(a->words[i], s->sessions[j].name))
				found = wanted[j] = true;
			near = say_nearest(a->words[i], near, s->sessions[j].name);
		}
		if (found)
			continue;
		if (near)
			*rc = say_error(SAY_NOTHING, "%s: no such session, did you mean \"%s\"?",
					a->words[i], near);
		else
			*rc = say_error(SAY_NOTHING, "%s: no such session", a->words[i]);
	}
	return list_some(s->sessions, sizeof(*s->sessions), nr, wanted);
}

int cmd_session_list_run(struct cmd_args *a)
{
	int rc = table_check(&table_sessions, a);
	struct state_session *some __free(free) = NULL;
	struct state *s __free(state_free) = state_read();
	size_t nr;

	if (rc >= 0)
		return rc;
	some = list_sessions(a, s, &nr, &rc);
	table_print(&table_sessions, some, nr, a);
	return rc;
}

int cmd_path_list_run(struct cmd_args *a)
{
	int rc = table_check(&table_paths, a);
	struct state_path *paths __free(free) = NULL;
	struct state_session *some __free(free) = NULL;
	struct state *s __free(state_free) = state_read();
	size_t nr, i, n = 0;

	if (rc >= 0)
		return rc;
	some = list_sessions(a, s, &nr, &rc);
	for (i = 0; i < nr; i++)
		for (size_t j = 0; j < (size_t)some[i].nr_paths; j++) {
			paths = say_grow(paths, (n + 1) * sizeof(*paths));
			paths[n++] = some[i].paths[j];
		}
	table_print(&table_paths, paths, n, a);
	return rc;
}

/* ---- show ---- */

static void show_fields(const struct table_set *set, const void *object, const char *indent,
			bool bytes)
{
	for (size_t i = 0; i < set->type->nr; i++) {
		const struct state_field *c = &set->type->fields[i];
		char *text __free(free) = table_cell(c, object, bytes && c->kind != STATE_NS, NULL);

		if (text)
			say_print("%s%-24s %s", indent, c->key, text);
	}
}

static void show_session(const struct state_session *sess, bool bytes)
{
	say_print("session %s", sess->name);
	show_fields(&table_sessions, sess, "  ", bytes);
	for (size_t i = 0; i < (size_t)sess->nr_paths; i++) {
		say_print("  path %s", sess->paths[i].name);
		show_fields(&table_paths, &sess->paths[i], "    ", bytes);
	}
}

static void show_export(const struct state_export *e, bool bytes)
{
	say_print("export %s", e->name);
	show_fields(&table_exports, e, "  ", bytes);
	for (size_t i = 0; i < (size_t)e->nr_opens; i++) {
		say_print("  open by %s", e->opens[i].session);
		show_fields(&table_opens, &e->opens[i], "    ", bytes);
	}
}

/* Sets the flags of the objects that the word names. @nr: sessions of this host and its clients. */
static bool show_find(struct state *s, size_t nr, const char *word, bool *dev, bool *session,
		      bool *export)
{
	char *why __free(free) = NULL;
	struct state_dev *d = state_dev(s, word, &why);
	bool found = d;

	if (d)
		dev[d - s->devs] = true;
	for (size_t i = 0; i < nr; i++) {
		bool this = escape_means(word, s->sessions[i].name);

		for (size_t j = 0; i < s->nr_sessions && j < (size_t)s->sessions[i].nr_paths; j++)
			this |= escape_means(word, s->sessions[i].paths[j].name);
		session[i] |= this;
		found |= this;
	}
	for (size_t i = 0; i < s->nr_exports; i++)
		if (escape_means(word, s->exports[i].name))
			found = export[i] = true;
	return found;
}

static void show_json(const struct state *some)
{
	struct json j;

	json_document(&j, stdout, false);
	table_json_array(&j, &table_devs, some->devs, some->nr_devs);
	table_json_sessions(&j, "sessions", some->sessions, some->nr_sessions);
	table_json_exports(&j, some);
	json_end(&j);
}

/* A disk's session in @s is shown, too. */
static void show_text(struct state *some, struct state *s, bool bytes)
{
	for (size_t i = 0; i < some->nr_devs; i++) {
		struct state_session *sess = state_session(s, some->devs[i].session);

		say_print("device %s", some->devs[i].kname);
		show_fields(&table_devs, &some->devs[i], "  ", bytes);
		if (sess && !state_session(some, sess->name))
			show_session(sess, bytes);
	}
	for (size_t i = 0; i < some->nr_sessions; i++)
		show_session(&some->sessions[i], bytes);
	for (size_t i = 0; i < some->nr_exports; i++)
		show_export(&some->exports[i], bytes);
}

int cmd_show_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct state some = { .nr_devs = s->nr_devs, .nr_exports = s->nr_exports,
			      .nr_sessions = s->nr_sessions + s->nr_srv_sessions };
	bool *dev __free(free) = say_alloc(s->nr_devs),
	     *session __free(free) = say_alloc(some.nr_sessions),
	     *export __free(free) = say_alloc(s->nr_exports);
	int rc = SAY_DONE;

	for (size_t i = 0; i < a->nr_words; i++) {
		if (show_find(s, some.nr_sessions, a->words[i], dev, session, export))
			continue;
		say_error(SAY_NOTHING, "%s: no device, session, path or export of that name",
			  a->words[i]);
		rc = say_hint("ibnbd list; ibnbd session list; ibnbd server exports");
	}
	some.devs = list_some(s->devs, sizeof(*s->devs), &some.nr_devs, dev);
	some.sessions = list_some(s->sessions, sizeof(*s->sessions), &some.nr_sessions, session);
	some.exports = list_some(s->exports, sizeof(*s->exports), &some.nr_exports, export);
	if (ARG(a, json))
		show_json(&some);
	else
		show_text(&some, s, ARG(a, bytes));
	free(some.devs);
	free(some.sessions);
	free(some.exports);
	return rc;
}
