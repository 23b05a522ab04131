// SPDX-License-Identifier: GPL-2.0-only
/* The server is checked, started and stopped as server.conf says, or the file of a group. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/group.h"
#include "tools/cmd/server.h"
#include "tools/host/mapping.h"

static struct policy_conf *server_policy_load(struct cmd_args *a, const struct server_conf *c)
{
	struct policy_conf *p = policy_conf_load(VALUE(a, policy_file));

	if (c->value[SERVER_dev_search_path])
		policy_conf_below(p, c->value[SERVER_dev_search_path]);
	policy_conf_needed(p, c);
	return p;
}

/* server.conf is not the file of a group; a file that is named may be one. */
static void server_not_group(struct server_conf *c)
{
	const struct maps_at at = { 0, SIZE_MAX, 0 };

	if (c->value[SERVER_state_dir])
		maps_error(c->m, at,
			   say_dup("state_dir: this server is to be one of a pair, of which one exports"),
			   say_dup("move the file to " GROUP_CONF "/NAME.conf, then: ibnbd group start NAME"));
}

int cmd_server_check_run(struct cmd_args *a)
{
	struct server_conf *c __free(server_conf_free) = server_conf_load(VALUE(a, file));
	struct policy_conf *p __free(policy_conf_free) = server_policy_load(a, c);
	size_t errors;
	int rc;

	if (!VALUE(a, file))
		server_not_group(c);
	errors = c->m->nr_errors + p->m->nr_errors;
	rc = errors ? SAY_USAGE : SAY_DONE;

	server_policy_warn(c, p, true);
	if (!c->there)
		rc = say_error(SAY_NOTHING, "%s is not there: nothing is exported",
			       c->m->files[0].path);
	maps_print_diags(c->m);
	maps_print_diags(p->m);
	if ((c->there || p->there) && say_level >= 0)
		printf("%zu error%s\n", errors, errors == 1 ? "" : "s");
	return rc;
}

int server_unload(void)
{
	return MODPROBE("-r", "ibnbd-server");
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
	char *now __free(free) = sysfs_attr(dir, server_keys[id].key),
	     *file __free(free) = say_fmt("%s/%s", dir, server_keys[id].key);
	const char *want = server_want(c, id);

	/* A driver older than a key has no such parameter: skip it, unless server.conf sets it. */
	if (!strcmp(now ? now : "", want) || (!c->value[id] && !sysfs_exists(file)))
		return SAY_DONE;
	/* writing nothing does nothing */
	return say_errno(sysfs_write(dir, server_keys[id].key, *want ? want : "\n"),
			 "cannot set %s to \"%s\"", server_keys[id].key, want);
}

/*
 * Load the module, with what server.conf says as its parameters. If there is a policy, the search
 * path is set after it: as a parameter of modprobe it would let the module listen before the module
 * has the policy.
 */
static int server_modprobe(const struct server_conf *c, const struct policy_conf *p)
{
	const char *writers = c->value[SERVER_writer_file] ? NULL : SERVER_WRITERS;
	const char *argv[SERVER_NR_PARAMETERS + 4] = { "modprobe", "ibnbd-server" };
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS);
	bool late = p->rules->nr;
	int rc = SAY_DONE, i, n = 2;

	if (writers && !sysfs_dry_run && mkdir(SERVER_STATE, 0755) && errno != EEXIST) {
		say_error(SAY_FAILED, "cannot make %s, where the server keeps who wrote last: %s",
			  SERVER_STATE, strerror(errno));
		return say_hint("writer_file = in " SERVER_CONF
				" names another place, or none if each disk has one client only");
	}
	/*
	 * Keys are loaded first: otherwise a client that has one would be refused. They are lost if
	 * the module was unloaded before: ibtrs-core goes with its last user, and they with
	 * ibtrs-core. A key that cannot be loaded says so, and keeps out its own clients alone.
	 */
	cmd_key_load_all(true);
	if (writers)
		argv[n++] = say_fmt("writer_file=\"%s\"", writers);
	for (i = SERVER_NR_PARAMETERS - 1; i >= 0; i--)
		if (c->value[i] && (*c->value[i] || i == SERVER_writer_file) &&
		    !(late && i == SERVER_dev_search_path))
			argv[n++] = say_fmt("%s=\"%s\"", server_keys[i].key, c->value[i]);
	if (mapping_modprobe(argv)) {
		rc = say_error(SAY_DRIVER, "modprobe ibnbd-server failed");
		say_hint("ibnbd doctor");
	}
	while (n > 2)
		free((char *)argv[--n]);
	if (rc || !late)
		return rc;
	rc = server_policy_put(p);
	return rc ? rc : server_set(c, dir, SERVER_dev_search_path);
}

/*
 * If a loaded module keeps a value that it cannot change and no client is connected, unload the
 * module and set *@unloaded: the caller loads it anew. If that is not possible report an error; the
 * caller can still set the other keys. A module that is older than a key has no such parameter,
 * which is no reason to reload it.
 */
static int server_fixed(struct cmd_args *a, const struct server_conf *c, const char *dir,
			bool *unloaded)
{
	struct state *s __free(state_free) = state_read();
	char *stays __free(free) = NULL;
	int rc = SAY_DONE, i;

	for (i = 0; i < SERVER_NR_PARAMETERS && !stays; i++) {
		char *file __free(free) = say_fmt("%s/%s", dir, server_keys[i].key),
		     *now __free(free) = sysfs_text(file);
		const char *want = server_want(c, (enum server_key_id)i);

		if (!server_keys[i].runtime && now && want && strcmp(now, want))
			stays = say_dup(now);
	}
	*unloaded = stays && !s->nr_srv_sessions && !ARG(a, no_modprobe) &&
		    (!sysfs_redirected() || sysfs_dry_run) && !server_unload();
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
	return rc;
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
	for (i = 0; i < SERVER_NR_PARAMETERS; i++) {
		char *now __free(free) = sysfs_attr(dir, server_keys[i].key);

		looser[i] = server_conf_loosens(i, now ? now : "", server_want(c, i));
	}
	/* The search path has the first row, and is set after all others that are not looser. */
	for (int last = 0; last < 2; last++)
		for (i = SERVER_NR_PARAMETERS - 1; i >= 0 && !rc; i--)
			if (server_keys[i].runtime && looser[i] == last)
				rc = server_set(c, dir, (enum server_key_id)i);
	return rc ? rc : fixed;
}

#define SERVER_POLLS	5	/* a second */

/*
 * Before a client can ask for it: gives what the exports lead to (LVM, md, ZFS, a mount) time to
 * appear. What is not there in the end is exported when it is; its clients wait for their hold=.
 */
static void server_wait(const struct server_conf *c, const char *dir, int64_t seconds)
{
	const char *search = server_want(c, SERVER_dev_search_path);
	char *now __free(free) = sysfs_attr(dir, "dev_search_path"), *late = NULL;
	int64_t polls = seconds == MAPS_FOREVER ? INT64_MAX : seconds * SERVER_POLLS, n;

	for (n = 0; !now && *search && n <= polls; n++) {
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
}

static int server_start(struct cmd_args *a, const struct server_conf *c,
			const struct policy_conf *p, int64_t wait, int (*ready)(void *), void *arg)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS);
	int rc;

	server_wait(c, dir, sysfs_dry_run ? 0 : wait);
	rc = ready ? ready(arg) : SAY_DONE;
	if (!rc && sysfs_exists(dir))
		rc = server_apply(a, c, p, dir);
	else if (!rc && (ARG(a, no_modprobe) || (sysfs_redirected() && !sysfs_dry_run)))
		rc = say_error(SAY_DRIVER, "the driver ibnbd-server is not loaded");
	else if (!rc)
		rc = server_modprobe(c, p);
	return rc;
}

/* The same disks, records and port are not for two servers. */
static bool server_is_serverd(const char *instead)
{
	if (!state_serverd() || sysfs_dry_run)
		return false;
	say_error(SAY_BUSY, "ibnbd-serverd exports here, in place of the driver");
	say_hint("%s", instead);
	return true;
}

int server_run(struct cmd_args *a, struct server_conf *c, int (*ready)(void *), void *arg)
{
	struct policy_conf *p __free(policy_conf_free) = server_policy_load(a, c);
	const struct maps *bad = c->m->nr_errors ? c->m : p->m->nr_errors ? p->m : NULL;
	int64_t wait = 0;
	int rc;

	server_policy_warn(c, p, false);
	maps_print_diags(c->m);
	maps_print_diags(p->m);
	rc = cmd_wait(a, true, &wait);
	if (rc)
		return rc;
	if (!c->there)
		return say_error(SAY_NOTHING, "%s is not there", c->m->files[0].path);
	if (bad)
		return say_error(SAY_USAGE, "%s has mistakes; nothing was changed",
				 bad->files[0].path);
	if (server_is_serverd("systemctl reload ibnbd-serverd"))
		return SAY_BUSY;
	return server_start(a, c, p, wait, ready, arg);
}

static int server_alone(void *arg)
{
	char *group __free(free) = group_active();

	if (!group)
		return SAY_DONE;
	say_error(SAY_BUSY, "group %s is active on this host, which exports nothing else", group);
	return say_hint("ibnbd group start %s applies its changes; ibnbd group stop %s ends it",
			group, group);
}

int cmd_server_start_run(struct cmd_args *a)
{
	struct server_conf *c __free(server_conf_free) = server_conf_load(VALUE(a, file));

	server_not_group(c);
	return server_run(a, c, server_alone, NULL);
}

int cmd_server_stop_run(struct cmd_args *a)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS);
	struct state *s __free(state_free) = state_read();

	if (server_is_serverd("systemctl stop ibnbd-serverd"))
		return SAY_BUSY;
	if (!s->server)
		return SAY_DONE;
	if (s->nr_exports && !ARG(a, force)) {
		say_error(SAY_BUSY, "%zu export%s open by clients", s->nr_exports,
			  s->nr_exports == 1 ? " is" : "s are");
		return say_hint("ibnbd server list; --force takes them away");
	}
	return say_errno(sysfs_write(dir, "dev_search_path", "\n"), "cannot stop the server");
}
