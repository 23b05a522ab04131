// SPDX-License-Identifier: GPL-2.0-only
/* The server: list, exports, close, disconnect; check, start and stop as server.conf says. */
#include <errno.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/server_offers.h"
#include "tools/cmd/server_policy.h"
#include "tools/out/escape.h"
#include "tools/host/mapping.h"
#include "tools/conf/server_conf.h"
#include "tools/out/table.h"

#define SERVER_PARAMETERS	"module/ibnbd_server/parameters"

static int server_loaded(const struct state *s)
{
	if (s->server)
		return SAY_DONE;
	say_error(SAY_DRIVER, "the driver ibnbd-server is not loaded: this host exports nothing");
	say_hint("write /etc/ibnbd/server.conf, then: systemctl enable --now ibnbd-server");
	return SAY_DRIVER;
}

/* ---- list, exports ---- */

int cmd_server_list_run(struct cmd_args *a)
{
	int rc = table_check(&table_opens, a);
	struct state_open *opens = NULL;
	struct state *s;
	size_t i, n = 0;

	if (rc >= 0)
		return rc;
	s = state_read();
	for (i = 0; i < s->nr_exports; i++) {
		size_t k = (size_t)s->exports[i].nr_opens;

		opens = say_grow(opens, (n + k + 1) * sizeof(*opens));
		if (k)
			memcpy(opens + n, s->exports[i].opens, k * sizeof(*opens));
		n += k;
	}
	rc = table_print(&table_opens, opens, n, a);
	free(opens);
	state_free(s);
	return rc;
}

static bool server_offer_print(const struct server_offer *o, void *arg)
{
	const struct policy_conf *policy = arg;
	char *to = realpath(o->path, NULL);
	bool link = to && strcmp(to, o->path);

	say_print("  %s%s%s%s", o->shown, o->is_dir ? "/" : "", link ? " -> " : "", link ? to : "");
	if (policy && !o->is_dir)
		server_policy_print(policy, o->name);
	free(to);
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
	struct policy_conf *policy;
	char *dir, *search;
	struct state *s;
	struct json j;

	if (rc >= 0)
		return rc;
	s = state_read();
	policy = server_policy_shown();
	if (ARG(a, json)) {
		json_document(&j, stdout, false);
		table_json_exports(&j, s);
		server_policy_json(&j, policy);
		json_end(&j);
		rc = SAY_DONE;
	} else {
		rc = server_loaded(s);
		if (!rc)
			rc = table_print(&table_exports, s->exports, s->nr_exports, a);
		dir = sysfs_path(SERVER_PARAMETERS);
		search = sysfs_attr(dir, "dev_search_path");
		if (!rc && !ARG(a, raw) && !ARG(a, pairs) && !ARG(a, csv) && !ARG(a, noheadings))
			server_exports_more(search, policy);
		free(search);
		free(dir);
	}
	policy_conf_free(policy);
	state_free(s);
	return rc;
}

/* ---- close, disconnect ---- */

int cmd_server_close_run(struct cmd_args *a)
{
	const char *name = a->words[0], *session = a->nr_words > 1 ? a->words[1] : NULL,
		   *near = NULL;
	struct state *s = state_read();
	struct state_export *e;
	struct state_open *of = NULL;
	int sum = server_loaded(s), err;
	bool first = true;
	char *why;
	size_t i;

	e = state_meant(s->exports, s->nr_exports, sizeof(*e), state_is_export, name, &why);
	if (e && session)
		of = state_meant(e->opens, (size_t)e->nr_opens, sizeof(*of), state_is_open, session,
				 &why);
	for (i = 0; !e && i < s->nr_exports; i++)
		near = say_nearest(name, near, s->exports[i].name);
	if (!sum && why) {
		sum = say_error(SAY_NOTHING, "%s", why);
		say_hint("ibnbd server list");
		first = false;
	} else if (!sum && !e) {
		sum = ARG(a, idempotent) ?
			      SAY_DONE :
			      say_error(SAY_NOTHING, "nobody has an export %s open%s%s%s", name,
					near ? ", did you mean \"" : "", near ? near : "",
					near ? "\"?" : "");
		first = false;
	} else if (!sum && !session && !ARG(a, all) && e->nr_opens > 1) {
		sum = say_error(SAY_USAGE, "%s is open by %lld sessions", name,
				(long long)e->nr_opens);
		say_hint("name one, or --all: ibnbd server list");
		first = false;
	} else if (!sum && !ARG(a, force) && !sysfs_dry_run) {
		sum = say_error(
			SAY_USAGE,
			"server close takes a disk away from a machine that may be writing to it");
		say_hint("--force");
		first = false;
	}
	for (i = 0; !sum && e && i < (size_t)e->nr_opens; i++) {
		char *file;

		if (session && of != &e->opens[i])
			continue;
		file = say_fmt("%s/force_close", e->opens[i].dir);
		err = sysfs_write(file, "1");
		free(file);
		if (err)
			say_error(0, "cannot close %s of session %s: %s", name, e->opens[i].session,
				  strerror(err));
		sum = say_join(sum, say_exit_of(err), first);
		first = false;
	}
	if (first && !sum && e)
		sum = ARG(a, idempotent) ?
			      SAY_DONE :
			      say_error(SAY_NOTHING, "session %s does not have %s open",
					session ? session : "?", name);
	free(why);
	state_free(s);
	return sum;
}

int cmd_server_disconnect_run(struct cmd_args *a)
{
	struct state *s = state_read();
	struct state_session *sess;
	int sum = server_loaded(s), err;
	bool first = true;
	size_t i, j;
	char *why;

	sess = state_meant(s->srv_sessions, s->nr_srv_sessions, sizeof(*sess), state_is_session,
			   a->words[0], &why);
	if (!sum && !sess) {
		sum = why ? say_error(SAY_NOTHING, "%s", why) :
			    say_error(SAY_NOTHING, "%s: no client has such a session", a->words[0]);
		say_hint("ibnbd session list");
	}
	for (i = 0; !sum && sess && i < (size_t)sess->nr_paths; i++) {
		bool wanted = a->nr_words == 1;
		char *file;

		for (j = 1; j < a->nr_words; j++)
			wanted |= escape_means(a->words[j], sess->paths[i].name);
		if (!wanted)
			continue;
		file = say_fmt("%s/disconnect", sess->paths[i].dir);
		err = sysfs_write(file, "1");
		free(file);
		if (err)
			say_error(0, "cannot disconnect %s of session %s: %s", sess->paths[i].name,
				  sess->name, strerror(err));
		sum = say_join(sum, say_exit_of(err), first);
		first = false;
	}
	if (!sum && sess && first)
		sum = say_error(SAY_NOTHING, "session %s has no such path", sess->name);
	free(why);
	state_free(s);
	return sum;
}

/* ---- check, start, stop ---- */

static void server_diags(const struct maps *m)
{
	size_t i;

	for (i = 0; i < m->nr_diags; i++)
		maps_print_diag(m, &m->diags[i], stderr);
}

static struct policy_conf *server_policy_load(struct cmd_args *a, const struct server_conf *c)
{
	struct policy_conf *p = policy_conf_load(VALUE(a, policy_file));

	if (c->value[SERVER_dev_search_path])
		policy_conf_below(p, c->value[SERVER_dev_search_path]);
	server_policy_needed(c, p);
	return p;
}

int cmd_server_check_run(struct cmd_args *a)
{
	struct server_conf *c = server_conf_load(VALUE(a, file));
	struct policy_conf *p = server_policy_load(a, c);
	size_t errors = c->m->nr_errors + p->m->nr_errors;
	int rc = errors ? SAY_USAGE : SAY_DONE;

	server_policy_warn(c, p, true);
	if (!c->there)
		rc = say_error(SAY_NOTHING, "%s is not there: nothing is exported",
			       c->m->files[0].path);
	server_diags(c->m);
	server_diags(p->m);
	if ((c->there || p->there) && say_level >= 0)
		printf("%zu error%s\n", errors, errors == 1 ? "" : "s");
	policy_conf_free(p);
	server_conf_free(c);
	return rc;
}

static int server_exec(char *const argv[])
{
	int i;

	for (i = 0; sysfs_dry_run && argv[i]; i++)
		printf("%s%s", argv[i], argv[i + 1] ? " " : "\n");
	if (sysfs_dry_run)
		return 0;
	return mapping_modprobe(argv);
}

static const char *server_want(const struct server_conf *c, enum server_key_id id)
{
	static const char *const unset[SERVER_NR_PARAMETERS] = {
		[SERVER_dev_search_path] = "", [SERVER_allow] = "",
		[SERVER_port_nr] = "1234",     [SERVER_copy] = "auto",
		[SERVER_io_mode] = "auto",     [SERVER_claim] = "Y",
		[SERVER_write_zeroes] = "N",   [SERVER_max_maps] = "1024",
		[SERVER_auth] = "off",	       [SERVER_file_block] = "512",
	};

	return c->value[id] ? c->value[id] : unset[id];
}

static int server_set(const struct server_conf *c, const char *dir, enum server_key_id id)
{
	char *now = sysfs_attr(dir, server_keys[id].key),
	     *file = say_fmt("%s/%s", dir, server_keys[id].key);
	const char *want = server_want(c, id);
	int rc = SAY_DONE, err;

	/*
	 * A driver that is older than a key has no such parameter: skip it, unless server.conf sets
	 * the key.
	 */
	if (strcmp(now ? now : "", want) && (c->value[id] || sysfs_exists(file))) {
		err = sysfs_write(file, *want ? want : "\n");	/* writing nothing does nothing */
		if (err)
			say_error(0, "cannot set %s to \"%s\": %s", server_keys[id].key, want,
				  strerror(err));
		rc = say_exit_of(err);
	}
	free(file);
	free(now);
	return rc;
}

/*
 * Load the module, with what server.conf says as its parameters. If there is a policy, the search
 * path is set after it: as a parameter of modprobe it would let the module listen before the module
 * has the policy.
 */
static int server_modprobe(const struct server_conf *c, const struct policy_conf *p)
{
	const char *writers = c->value[SERVER_writer_file] ? NULL : SERVER_WRITERS;
	char *argv[SERVER_NR_PARAMETERS + 4], *dir;
	bool late = p->rules->nr;
	int rc = SAY_DONE, i, n = 0;

	if (writers && !sysfs_dry_run && mkdir(SERVER_STATE, 0755) && errno != EEXIST) {
		rc = say_error(SAY_FAILED,
			       "cannot make %s, where the server keeps who wrote last: %s",
			       SERVER_STATE, strerror(errno));
		say_hint("writer_file = in " SERVER_CONF
			 " names another place, or none if each disk has one client only");
		return rc;
	}
	/*
	 * Nobody who has a key may be refused for want of it, so keys go first. They are lost if
	 * the module was unloaded before: ibtrs-core goes with its last user, and they with
	 * ibtrs-core. A key that cannot be loaded says so, and keeps out nobody but its clients.
	 */
	cmd_key_load_all(true);
	argv[n++] = say_dup("modprobe");
	argv[n++] = say_dup("ibnbd-server");
	if (writers)
		argv[n++] = say_fmt("writer_file=\"%s\"", writers);
	for (i = SERVER_NR_PARAMETERS - 1; i >= 0; i--)
		if (c->value[i] && (*c->value[i] || i == SERVER_writer_file) &&
		    !(late && i == SERVER_dev_search_path))
			argv[n++] = say_fmt("%s=\"%s\"", server_keys[i].key, c->value[i]);
	argv[n] = NULL;
	if (server_exec(argv)) {
		rc = say_error(SAY_DRIVER, "modprobe ibnbd-server failed");
		say_hint("ibnbd doctor");
	}
	for (i = 0; i < n; i++)
		free(argv[i]);
	if (rc || !late)
		return rc;
	rc = server_policy_put(p);
	if (rc)
		return rc;
	dir = sysfs_path(SERVER_PARAMETERS);
	rc = server_set(c, dir, SERVER_dev_search_path);
	free(dir);
	return rc;
}

/*
 * Does a loaded module keep a value that server.conf wants changed? Returns that value, allocated.
 * NULL: the key needs no reload. A module that is older than a key has no such parameter, which is
 * no reason to reload it.
 */
static char *server_stays(const struct server_conf *c, const char *dir, enum server_key_id id)
{
	char *file = say_fmt("%s/%s", dir, server_keys[id].key), *now = sysfs_text(file);
	const char *want = server_want(c, id);

	free(file);
	if (!server_keys[id].runtime && now && want && strcmp(now, want))
		return now;
	free(now);
	return NULL;
}

/*
 * If a loaded module keeps a value that it cannot change and no client is connected, unload the
 * module and set *@unloaded: the caller loads it anew. If that is not possible report an error; the
 * caller can still set the other keys.
 */
static int server_fixed(struct cmd_args *a, const struct server_conf *c, const char *dir,
			bool *unloaded)
{
	char *const argv[] = { (char *)"modprobe", (char *)"-r", (char *)"ibnbd-server", NULL };
	struct state *s = state_read();
	char *stays = NULL;
	int rc = SAY_DONE, i;

	for (i = 0; i < SERVER_NR_PARAMETERS && !stays; i++)
		stays = server_stays(c, dir, (enum server_key_id)i);
	*unloaded = stays && !s->nr_srv_sessions && !ARG(a, no_modprobe) &&
		    (!sysfs_redirected() || sysfs_dry_run) && !server_exec(argv);
	if (stays && !*unloaded) {
		rc = say_error(SAY_FAILED, "%s stays %s: %s", server_keys[i - 1].key,
			       *stays ? stays : "unset",
			       s->nr_srv_sessions ? "clients are connected" :
						    "the driver cannot be unloaded");
		say_hint(
			s->nr_srv_sessions ?
				"ibnbd server stop --force takes their disks away; then systemctl restart ibnbd-server" :
				"modprobe -r ibnbd-server, then systemctl restart ibnbd-server");
	}
	state_free(s);
	free(stays);
	return rc;
}

/* Would server.conf's value of this key let the running server do more than it does now? */
static bool server_loosens(const struct server_conf *c, const char *dir, enum server_key_id id)
{
	char *now = sysfs_attr(dir, server_keys[id].key);
	bool looser = server_conf_loosens(id, now ? now : "", server_want(c, id));

	free(now);
	return looser;
}

/*
 * Half of an access list is worse than none, and so is a new one before the exports that it was
 * written for, or an old one behind them. So the policy is put in force first, then what keeps more
 * out than before, then the search path, which opens other exports, and what lets more in than
 * before comes last. The first error ends this. Only an error of server_fixed() does not end it:
 * the other keys are still set.
 */
static int server_apply(struct cmd_args *a, const struct server_conf *c,
			const struct policy_conf *p, const char *dir)
{
	bool unloaded, looser[SERVER_NR_PARAMETERS];
	int rc = server_policy_put(p), fixed, i;

	if (rc)
		return rc;
	fixed = server_fixed(a, c, dir, &unloaded);
	if (unloaded)
		return server_modprobe(c, p);
	for (i = 0; i < SERVER_NR_PARAMETERS; i++)
		looser[i] = server_loosens(c, dir, (enum server_key_id)i);
	/* The search path has the first row, and is set after all others that are not looser. */
	for (i = SERVER_NR_PARAMETERS - 1; i >= 0 && !rc; i--)
		if (server_keys[i].runtime && !looser[i])
			rc = server_set(c, dir, (enum server_key_id)i);
	for (i = SERVER_NR_PARAMETERS - 1; i >= 0 && !rc; i--)
		if (server_keys[i].runtime && looser[i])
			rc = server_set(c, dir, (enum server_key_id)i);
	return rc ? rc : fixed;
}

#define SERVER_POLLS	5	/* a second */

/*
 * Before anybody can ask for it: gives what the exports lead to (LVM, md, ZFS, a mount) time to
 * appear. What is not there in the end is exported when it is; its clients wait for their hold=.
 */
static void server_wait(const struct server_conf *c, const char *dir, int64_t seconds)
{
	const char *search = server_want(c, SERVER_dev_search_path);
	char *now = sysfs_attr(dir, "dev_search_path"), *late = NULL;
	int64_t polls = seconds == MAPS_FOREVER ? INT64_MAX : seconds * SERVER_POLLS, n;

	for (n = 0; !(now && *now) && *search && n <= polls; n++) {
		free(late);
		late = server_offers_late(search);
		if (!late)
			break;
		if (!n && polls)
			say_warn("waiting for what the exports lead to: %s", late);
		if (n < polls)
			usleep(1000000 / SERVER_POLLS);
	}
	if (late)
		say_warn("not there yet: %s; clients that have it mapped wait as long as their hold= says",
			 late);
	free(late);
	free(now);
}

static int server_start(struct cmd_args *a, const struct server_conf *c,
			const struct policy_conf *p, const char *dir, int64_t wait)
{
	server_wait(c, dir, sysfs_dry_run ? 0 : wait);
	if (sysfs_exists(dir))
		return server_apply(a, c, p, dir);
	if (ARG(a, no_modprobe) || (sysfs_redirected() && !sysfs_dry_run))
		return say_error(SAY_DRIVER, "the driver ibnbd-server is not loaded");
	return server_modprobe(c, p);
}

int cmd_server_start_run(struct cmd_args *a)
{
	struct server_conf *c = server_conf_load(VALUE(a, file));
	struct policy_conf *p = server_policy_load(a, c);
	char *dir = sysfs_path(SERVER_PARAMETERS);
	int64_t wait = 0;
	int rc;

	server_policy_warn(c, p, false);
	server_diags(c->m);
	server_diags(p->m);
	if (VALUE(a, timeout) && !maps_span(VALUE(a, timeout), &wait))
		rc = say_error(SAY_USAGE, "server start: --wait %s: a time is expected",
			       VALUE(a, timeout));
	else if (!c->there)
		rc = say_error(SAY_NOTHING, "%s is not there", c->m->files[0].path);
	else if (c->m->nr_errors)
		rc = say_error(SAY_USAGE, "%s has mistakes; nothing was changed",
			       c->m->files[0].path);
	else if (p->m->nr_errors)
		rc = say_error(SAY_USAGE, "%s has mistakes; nothing was changed",
			       p->m->files[0].path);
	else
		rc = server_start(a, c, p, dir, wait);
	free(dir);
	policy_conf_free(p);
	server_conf_free(c);
	return rc;
}

int cmd_server_stop_run(struct cmd_args *a)
{
	char *dir = sysfs_path(SERVER_PARAMETERS), *file;
	struct state *s = state_read();
	int rc = SAY_DONE, err;

	if (s->server && s->nr_exports && !ARG(a, force)) {
		rc = say_error(SAY_BUSY, "%zu export%s open by clients", s->nr_exports,
			       s->nr_exports == 1 ? " is" : "s are");
		say_hint("ibnbd server list; --force takes them away");
	} else if (s->server) {
		file = say_fmt("%s/dev_search_path", dir);
		err = sysfs_write(file, "\n");
		free(file);
		if (err)
			say_error(0, "cannot stop the server: %s", strerror(err));
		rc = say_exit_of(err);
	}
	state_free(s);
	free(dir);
	return rc;
}
