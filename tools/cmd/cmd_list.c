// SPDX-License-Identifier: GPL-2.0-only
/* list, session list, path list, show: what there is. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/tree.h"
#include "tools/host/mapping.h"
#include "tools/out/escape.h"
#include "tools/out/table.h"

/* ---- list ---- */

static bool list_wanted(const struct cmd_args *a, struct state *s, const struct state_dev *d)
{
	size_t i;
	char *why;

	if (VALUE(a, session) && (!d->session || !escape_means(VALUE(a, session), d->session)))
		return false;
	for (i = 0; i < a->nr_words; i++) {
		const struct state_dev *found = state_dev(s, a->words[i], &why);

		if (!found)
			free(why);
		else if (found == d)
			return true;
	}
	return !a->nr_words;
}

static int list_unknown(const struct cmd_args *a, struct state *s)
{
	int rc = SAY_DONE;
	size_t i;
	char *why;

	if (VALUE(a, session) && !state_session_said(s, VALUE(a, session)))
		rc = say_error(SAY_NOTHING, "%s: no such session", VALUE(a, session));
	for (i = 0; i < a->nr_words; i++) {
		if (state_dev(s, a->words[i], &why))
			continue;
		rc = say_error(SAY_NOTHING, "%s", why);
		free(why);
	}
	return rc;
}

/* After an upgrade: which driver runs, for who reads a table. */
static void list_upgraded(const struct cmd_args *a)
{
	char *said = ARG(a, json) || ARG(a, raw) || ARG(a, pairs) || ARG(a, csv) ||
				     ARG(a, noheadings) ?
			     NULL :
			     mapping_upgraded("ibnbd_client");

	if (said)
		say_warn("%s: ibnbd doctor", said);
	free(said);
}

static int list_tree(const struct cmd_args *a, struct state *s, const struct state_dev *devs,
		     size_t nr, const bool *wanted)
{
	struct json j;
	int rc;

	if (!ARG(a, json)) {
		tree_all(a, s, wanted);
		return SAY_DONE;
	}
	json_document(&j, stdout, false);
	rc = table_json(&j, &table_devs, devs, nr, a);
	tree_all_json(&j, a, s, wanted);
	json_end(&j);
	return rc;
}

int cmd_list_run(struct cmd_args *a)
{
	struct state *s;
	struct state_dev *some;
	bool *wanted;
	size_t i, n = 0;
	int rc = table_check(&table_devs, a), unknown;

	if (rc >= 0)
		return rc;
	s = state_read();
	unknown = list_unknown(a, s);
	some = say_alloc((s->nr_devs + 1) * sizeof(*some));
	wanted = say_alloc(s->nr_devs);
	for (i = 0; i < s->nr_devs; i++) {
		wanted[i] = list_wanted(a, s, &s->devs[i]);
		if (wanted[i])
			some[n++] = s->devs[i];
	}
	if (ARG(a, tree)) {
		rc = list_tree(a, s, some, n, wanted);
	} else {
		rc = table_print(&table_devs, some, n, a);
		if (!n && !unknown && !ARG(a, json) && !ARG(a, raw) && !ARG(a, pairs) &&
		    !ARG(a, csv))
			say_more("nothing is mapped");
	}
	list_upgraded(a);
	free(wanted);
	free(some);
	state_free(s);
	return rc ? rc : unknown;
}

/* ---- sessions, paths ---- */

static bool list_named(const struct cmd_args *a, const char *name)
{
	size_t i;

	for (i = 0; i < a->nr_words; i++)
		if (escape_means(a->words[i], name))
			return true;
	return !a->nr_words;
}

static int list_sessions_unknown(const struct cmd_args *a, const struct state *s)
{
	int rc = SAY_DONE;
	size_t i, j;

	for (i = 0; i < a->nr_words; i++) {
		const char *near = NULL;
		bool found = false;

		for (j = 0; j < s->nr_sessions + s->nr_srv_sessions; j++) {
			const char *name = j < s->nr_sessions ?
						   s->sessions[j].name :
						   s->srv_sessions[j - s->nr_sessions].name;

			found |= escape_means(a->words[i], name);
			near = say_nearest(a->words[i], near, name);
		}
		if (found)
			continue;
		if (near)
			rc = say_error(SAY_NOTHING, "%s: no such session, did you mean \"%s\"?",
				       a->words[i], near);
		else
			rc = say_error(SAY_NOTHING, "%s: no such session", a->words[i]);
	}
	return rc;
}

static struct state_session *list_sessions(const struct cmd_args *a, const struct state *s,
					   size_t *nr)
{
	struct state_session *all =
		say_alloc((s->nr_sessions + s->nr_srv_sessions + 1) * sizeof(*all));
	size_t i;

	*nr = 0;
	for (i = 0; i < s->nr_sessions; i++)
		if (list_named(a, s->sessions[i].name))
			all[(*nr)++] = s->sessions[i];
	for (i = 0; i < s->nr_srv_sessions; i++)
		if (list_named(a, s->srv_sessions[i].name))
			all[(*nr)++] = s->srv_sessions[i];
	return all;
}

int cmd_session_list_run(struct cmd_args *a)
{
	int rc = table_check(&table_sessions, a), unknown;
	struct state_session *some;
	struct state *s;
	size_t nr;

	if (rc >= 0)
		return rc;
	s = state_read();
	unknown = list_sessions_unknown(a, s);
	some = list_sessions(a, s, &nr);
	rc = table_print(&table_sessions, some, nr, a);
	free(some);
	state_free(s);
	return rc ? rc : unknown;
}

int cmd_path_list_run(struct cmd_args *a)
{
	int rc = table_check(&table_paths, a), unknown;
	struct state_path *paths = NULL;
	struct state_session *some;
	size_t nr, i, n = 0;
	struct state *s;

	if (rc >= 0)
		return rc;
	s = state_read();
	unknown = list_sessions_unknown(a, s);
	some = list_sessions(a, s, &nr);
	for (i = 0; i < nr; i++) {
		size_t k = (size_t)some[i].nr_paths;

		paths = say_grow(paths, (n + k + 1) * sizeof(*paths));
		if (k)
			memcpy(paths + n, some[i].paths, k * sizeof(*paths));
		n += k;
	}
	rc = table_print(&table_paths, paths, n, a);
	free(paths);
	free(some);
	state_free(s);
	return rc ? rc : unknown;
}

/* ---- show ---- */

static void show_fields(const struct table_set *set, const void *object, const char *indent,
			bool bytes)
{
	size_t i;

	for (i = 0; i < set->type->nr; i++) {
		const struct state_field *c = &set->type->fields[i];
		const void *field = (const char *)object + c->offset;
		int64_t n;
		char *text;

		if (c->kind == STATE_TEXT) {
			if (*(char *const *)field)
				say_print("%s%-24s %s", indent, c->key, *(char *const *)field);
			continue;
		}
		n = *(const int64_t *)field;
		if (n == SYSFS_UNKNOWN)
			continue;
		text = c->kind == STATE_BYTES ? table_size(n, bytes) :
		       c->kind == STATE_NS    ? table_time(n) :
		       c->kind == STATE_FLAG  ? say_dup(n ? "yes" : "no") :
						say_fmt("%lld", (long long)n);
		say_print("%s%-24s %s", indent, c->key, text);
		free(text);
	}
}

static void show_session(const struct state_session *sess, bool bytes)
{
	size_t i;

	say_print("session %s", sess->name);
	show_fields(&table_sessions, sess, "  ", bytes);
	for (i = 0; i < (size_t)sess->nr_paths; i++) {
		say_print("  path %s", sess->paths[i].name);
		show_fields(&table_paths, &sess->paths[i], "    ", bytes);
	}
}

static void show_export(const struct state_export *e, bool bytes)
{
	size_t i;

	say_print("export %s", e->name);
	show_fields(&table_exports, e, "  ", bytes);
	for (i = 0; i < (size_t)e->nr_opens; i++) {
		say_print("  open by %s", e->opens[i].session);
		show_fields(&table_opens, &e->opens[i], "    ", bytes);
	}
}

/*
 * The objects that the words name: a flag for each object of @s. show_find() sets the flags,
 * show_text() and show_json() read them.
 */
struct show {
	struct state *s;
	bool *dev, *session, *srv_session, *export;
};

static bool show_find(struct show *w, const char *word)
{
	struct state *s = w->s;
	struct state_dev *d;
	bool found = false;
	char *why;
	size_t i, j;

	d = state_dev(s, word, &why);
	if (d)
		found = w->dev[d - s->devs] = true;
	else
		free(why);
	for (i = 0; i < s->nr_sessions; i++) {
		bool this = escape_means(word, s->sessions[i].name);

		for (j = 0; j < (size_t)s->sessions[i].nr_paths; j++)
			this |= escape_means(word, s->sessions[i].paths[j].name);
		w->session[i] |= this;
		found |= this;
	}
	for (i = 0; i < s->nr_srv_sessions; i++) {
		if (!escape_means(word, s->srv_sessions[i].name))
			continue;
		found = w->srv_session[i] = true;
	}
	for (i = 0; i < s->nr_exports; i++) {
		if (!escape_means(word, s->exports[i].name))
			continue;
		found = w->export[i] = true;
	}
	return found;
}

static void show_json(const struct show *w)
{
	const struct state *s = w->s;
	struct json j;
	size_t i;

	json_document(&j, stdout, false);
	json_array(&j, "devices");
	for (i = 0; i < s->nr_devs; i++) {
		if (!w->dev[i])
			continue;
		json_object(&j, NULL);
		table_json_fields(&j, &table_devs, &s->devs[i]);
		json_end(&j);
	}
	json_end(&j);
	json_array(&j, "sessions");
	for (i = 0; i < s->nr_sessions + s->nr_srv_sessions; i++) {
		bool client = i < s->nr_sessions;
		const struct state_session *sess = client ? &s->sessions[i] :
							    &s->srv_sessions[i - s->nr_sessions];

		if (!(client ? w->session[i] : w->srv_session[i - s->nr_sessions]))
			continue;
		json_object(&j, NULL);
		table_json_fields(&j, &table_sessions, sess);
		table_json_array(&j, &table_paths, sess->paths, (size_t)sess->nr_paths);
		json_end(&j);
	}
	json_end(&j);
	json_array(&j, "exports");
	for (i = 0; i < s->nr_exports; i++) {
		if (!w->export[i])
			continue;
		json_object(&j, NULL);
		table_json_fields(&j, &table_exports, &s->exports[i]);
		table_json_array(&j, &table_opens, s->exports[i].opens,
				 (size_t)s->exports[i].nr_opens);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
}

static void show_text(const struct show *w, bool bytes)
{
	const struct state *s = w->s;
	struct state_session *sess;
	size_t i;

	for (i = 0; i < s->nr_devs; i++) {
		if (!w->dev[i])
			continue;
		say_print("device %s", s->devs[i].kname);
		show_fields(&table_devs, &s->devs[i], "  ", bytes);
		sess = s->devs[i].session ? state_session(w->s, s->devs[i].session) : NULL;
		if (sess && !w->session[sess - s->sessions])
			show_session(sess, bytes);
	}
	for (i = 0; i < s->nr_sessions; i++)
		if (w->session[i])
			show_session(&s->sessions[i], bytes);
	for (i = 0; i < s->nr_srv_sessions; i++)
		if (w->srv_session[i])
			show_session(&s->srv_sessions[i], bytes);
	for (i = 0; i < s->nr_exports; i++)
		if (w->export[i])
			show_export(&s->exports[i], bytes);
}

int cmd_show_run(struct cmd_args *a)
{
	struct show w = { .s = state_read() };
	int rc = SAY_DONE;
	size_t i;

	w.dev = say_alloc(w.s->nr_devs);
	w.session = say_alloc(w.s->nr_sessions);
	w.srv_session = say_alloc(w.s->nr_srv_sessions);
	w.export = say_alloc(w.s->nr_exports);
	for (i = 0; i < a->nr_words; i++) {
		if (show_find(&w, a->words[i]))
			continue;
		rc = say_error(SAY_NOTHING, "%s: no device, session, path or export of that name",
			       a->words[i]);
		say_hint("ibnbd list; ibnbd session list; ibnbd server exports");
	}
	if (ARG(a, json))
		show_json(&w);
	else
		show_text(&w, ARG(a, bytes));
	free(w.dev);
	free(w.session);
	free(w.srv_session);
	free(w.export);
	state_free(w.s);
	return rc;
}
