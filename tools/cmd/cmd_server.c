// SPDX-License-Identifier: GPL-2.0-only
/* The server: list, exports, close, disconnect. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/server.h"
#include "tools/out/escape.h"
#include "tools/out/table.h"

static int server_loaded(const struct state *s)
{
	if (s->server || s->serverd)
		return SAY_DONE;
	say_error(SAY_DRIVER, "the driver ibnbd-server is not loaded: this host exports nothing");
	return say_hint("write /etc/ibnbd/server.conf, then: systemctl enable --now ibnbd-server");
}

/* ---- list, exports ---- */

int cmd_server_list_run(struct cmd_args *a)
{
	int rc = table_check(&table_opens, a);
	struct state_open *opens __free(free) = NULL;
	struct state *s __free(state_free) = state_read();
	size_t i, n = 0;

	if (rc >= 0)
		return rc;
	for (i = 0; i < s->nr_exports; i++)
		for (size_t j = 0; j < (size_t)s->exports[i].nr_opens; j++) {
			opens = say_grow(opens, (n + 1) * sizeof(*opens));
			opens[n++] = s->exports[i].opens[j];
		}
	table_print(&table_opens, opens, n, a);
	return SAY_DONE;
}

static bool server_offer_print(const struct server_offer *o, void *arg)
{
	const struct policy_conf *policy = arg;
	char *to __free(free) = realpath(o->path, NULL);
	bool link = to && strcmp(to, o->path);

	say_print("  %s%s%s%s", o->shown, o->is_dir ? "/" : "", link ? " -> " : "", link ? to : "");
	if (policy && !o->is_dir)
		server_policy_print(policy, o->name);
	return false;
}

/* Lines after the table, for the user. */
static void server_exports_more(const char *search, const struct policy_conf *policy)
{
	say_print("search path: %s", search ? search : "none, nothing can be mapped");
	if (search)
		server_offers(search, server_offer_print, (void *)policy);
	if (!policy)
		say_print("policy: not known; root can see it");
	else if (!policy->rules->nr)
		say_print("policy: none, every client that is let in may map and write all of it");
	else
		say_print("policy: %u rules of %s", policy->rules->nr, policy->m->files[0].path);
	if (search && policy)
		server_policy_print_unlisted(policy, search);
}

int cmd_server_exports_run(struct cmd_args *a)
{
	int rc = table_check(&table_exports, a);
	struct policy_conf *policy __free(policy_conf_free) = NULL;
	struct state *s __free(state_free) = state_read();
	char *search __free(free) = NULL;
	struct json j;

	if (rc >= 0)
		return rc;
	policy = server_policy_shown();
	if (ARG(a, json)) {
		json_document(&j, stdout, false);
		table_json_exports(&j, s);
		server_policy_json(&j, policy);
		json_end(&j);
		return SAY_DONE;
	}
	if (server_loaded(s))
		return SAY_DRIVER;
	table_print(&table_exports, s->exports, s->nr_exports, a);
	search = server_offers_search(s);
	if (table_for_people(a) && !ARG(a, noheadings))
		server_exports_more(search, policy);
	return SAY_DONE;
}

/* ---- close, disconnect ---- */

int cmd_server_close_run(struct cmd_args *a)
{
	const char *name = a->words[0], *session = a->nr_words > 1 ? a->words[1] : NULL,
		   *near = NULL;
	struct state *s __free(state_free) = state_read();
	struct state_export *e;
	struct state_open *of = NULL;
	int rc = server_loaded(s), err;
	struct say_sum sum = { 0 };
	char *why __free(free) = NULL;

	if (rc)
		return rc;
	e = state_meant(s->exports, s->nr_exports, sizeof(*e), state_is_export, name, &why);
	if (e && session)
		of = state_meant(e->opens, (size_t)e->nr_opens, sizeof(*of), state_is_open, session,
				 &why);
	for (size_t i = 0; !e && i < s->nr_exports; i++)
		near = say_nearest(name, near, s->exports[i].name);
	if (why) {
		say_error(SAY_NOTHING, "%s", why);
		return say_hint("ibnbd server list");
	}
	if (!e)
		return ARG(a, idempotent) ?
			       SAY_DONE :
			       say_error(SAY_NOTHING, "no client has an export %s open%s%s%s", name,
					 near ? ", did you mean \"" : "", near ? near : "",
					 near ? "\"?" : "");
	if (!session && !ARG(a, all) && e->nr_opens > 1) {
		say_error(SAY_USAGE, "%s is open by %lld sessions", name, (long long)e->nr_opens);
		return say_hint("name one, or --all: ibnbd server list");
	}
	if (!ARG(a, force) && !sysfs_dry_run) {
		say_error(
			SAY_USAGE,
			"server close takes a disk away from a machine that may be writing to it");
		return say_hint("--force");
	}
	for (size_t i = 0; !sum.rc && i < (size_t)e->nr_opens; i++) {
		if (session && of != &e->opens[i])
			continue;
		err = sysfs_write(e->opens[i].dir, "force_close", "1");
		say_sum(&sum, say_errno(err, "cannot close %s of session %s", name,
					e->opens[i].session));
	}
	if (!sum.any && !ARG(a, idempotent))
		return say_error(SAY_NOTHING, "session %s does not have %s open",
				 session ? session : "?", name);
	return sum.rc;
}

int cmd_server_disconnect_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct state_session *sess;
	int rc = server_loaded(s), err;
	struct say_sum sum = { 0 };
	char *why __free(free) = NULL;

	if (rc)
		return rc;
	sess = state_meant(s->srv_sessions, s->nr_srv_sessions, sizeof(*sess), state_is_session,
			   a->words[0], &why);
	if (!sess) {
		say_error(SAY_NOTHING, why ? "%s" : "%s: no client has such a session",
			  why ? why : a->words[0]);
		return say_hint("ibnbd session list");
	}
	for (size_t i = 0; !sum.rc && i < (size_t)sess->nr_paths; i++) {
		bool wanted = a->nr_words == 1;

		for (size_t j = 1; j < a->nr_words; j++)
			wanted |= escape_means(a->words[j], sess->paths[i].name);
		if (!wanted)
			continue;
		err = sysfs_write(sess->paths[i].dir, "disconnect", "1");
		say_sum(&sum, say_errno(err, "cannot disconnect %s of session %s",
					sess->paths[i].name, sess->name));
	}
	if (!sum.any)
		return say_error(SAY_NOTHING, "session %s has no such path", sess->name);
	return sum.rc;
}
