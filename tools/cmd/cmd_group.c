// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: exports that either of two servers serves, and the other one takes over (docs/pair.md). A
 * cluster manager, systemd or a person calls these verbs; nothing here decides which server it is.
 *
 * The records of a group, of who wrote last and of the cache epochs, are the driver's writer_file,
 * in a directory on storage that goes with the disks. So the host with the disks has the records,
 * and nothing merges them. The driver is unloaded only when every write has ended, and every record
 * is on the disk; a stop that cannot prove that fails, and a cluster then fences the host.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/group.h"
#include "tools/cmd/server.h"
#include "tools/conf/file.h"
#include "tools/host/mapping.h"
#include "ibnbd/logic/export.h"

#define GROUP_STOP	30	/* seconds for the disks to be closed */
#define GROUP_ANSWER	10	/* seconds for everything to answer */
#define GROUP_POLLS	5	/* a second */

/* ---- the files ---- */

static bool group_name_ok(const char *name)
{
	return *name && maps_made_of(name, "_-.") && *name != '.' && *name != '-';
}

/* Reports settings that server.conf may have and a group may not. */
static void group_mistakes(struct server_conf *c)
{
	const char *search = c->value[SERVER_dev_search_path];
	struct maps_at at = { 0, SIZE_MAX, 0 };

	if (!c->there || c->m->nr_errors)
		return;
	if (!c->value[SERVER_state_dir])
		maps_error(c->m, at, say_dup("there is no state_dir"),
			   say_dup("name a directory on the storage that both servers can have"));
	if (c->value[SERVER_writer_file])
		maps_error(c->m, at, say_dup("writer_file: the records of a group are in state_dir"),
			   say_dup("leave the line out"));
	if (!search || !*search || ibnbd_export_follows(search))
		maps_error(c->m, at,
			   say_dup("a group needs a dev_search_path of its own, not / or /dev"),
			   say_dup("make a directory with links to its disks"));
}

static void group_free(struct group *g)
{
	if (!g)
		return;
	server_conf_free(g->c);
	free(g->served);
	free(g);
}

DEFINE_FREE(group_free, struct group *)

/*
 * NULL: there can be no group of this name, which was said. @as_served: what is served here is
 * meant, not what the file says by now.
 */
static struct group *group_load(const char *name, bool as_served)
{
	char *path __free(free) = sysfs_root(GROUP_CONF "/%s.conf", name),
	     *here __free(free) = group_state_here(name);
	struct group *g;

	if (!group_name_ok(name)) {
		say_error(SAY_USAGE,
			  "%s is no name of a group: letters, digits, and _ - . between them",
			  name);
		return NULL;
	}
	g = say_alloc(sizeof(*g));
	g->name = name;
	g->c = server_conf_load(path);
	g->served = sysfs_text(here);
	group_mistakes(g->c);
	if (g->c->there && !g->c->m->nr_errors) {
		g->dir = g->c->value[SERVER_state_dir];
		g->c->value[SERVER_writer_file] = say_fmt("%s/writers", g->dir);
	}
	if (as_served && g->served)
		g->dir = g->served;
	return g;
}

/* Are these the records of a group with this state_dir? */
static bool group_writers(const char *writers, const char *dir)
{
	size_t len = dir ? strlen(dir) : 0;

	return dir && writers && !strncmp(writers, dir, len) && !strcmp(writers + len, "/writers");
}

enum group_driver {
	GROUP_NONE,		/* it does not have the group's records */
	GROUP_CLOSED,
	GROUP_LISTENS,
};

static enum group_driver group_driver(const struct group *g)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS),
	     *now __free(free) = sysfs_attr(dir, "writer_file"),
	     *search __free(free) = sysfs_attr(dir, "dev_search_path");

	if (!group_writers(now, g->served) && !group_writers(now, g->dir))
		return GROUP_NONE;
	return search ? GROUP_LISTENS : GROUP_CLOSED;
}

char *group_active(void)
{
	char *here __free(free) = group_state_here(""), *dir __free(free) = file_dir_of(here),
	     *active = NULL;
	char **names __free(sysfs_list_free) = sysfs_list(dir, NULL);
	const char *prefix = strrchr(here, '/') + 1;
	size_t i, len = strlen(prefix);

	for (i = 0; names[i] && !active; i++) {
		const char *name = names[i] + len;
		struct group *g __free(group_free) = NULL;

		if (!strncmp(names[i], prefix, len) && group_name_ok(name))
			g = group_load(name, false);
		if (g && group_driver(g) == GROUP_LISTENS)
			active = say_dup(name);
	}
	return active;
}

/* NULL: the group cannot be used, which was said with the mistakes: SAY_USAGE. */
static struct group *group_of(struct cmd_args *a, bool as_served)
{
	struct group *g = group_load(a->words[0], as_served);

	if (!g || g->dir)
		return g;
	maps_print_diags(g->c->m);
	say_error(SAY_USAGE, "group %s: %s %s", g->name, g->c->m->files[0].path,
		  g->c->there ? "has mistakes; nothing was changed" : "is not there");
	group_free(g);
	return NULL;
}

/* ---- create, start ---- */

int cmd_group_create_run(struct cmd_args *a)
{
	struct group *g __free(group_free) = group_of(a, false);

	return g ? group_state_create(g) : SAY_USAGE;
}

/* The driver may have been loaded, closed, with the records of another server. */
static int group_driver_free(const struct group *g)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS),
	     *search __free(free) = sysfs_attr(dir, "dev_search_path");

	if (!sysfs_exists(dir) || group_driver(g))
		return SAY_DONE;
	if (search) {
		say_error(SAY_BUSY, "this host exports %s already, and can serve group %s only alone",
			  search, g->name);
		return say_hint("systemctl disable --now ibnbd-server, or ibnbd group stop of the group that is active here: ibnbd group status");
	}
	if (!sysfs_redirected() && !server_unload())
		return SAY_DONE;
	say_error(SAY_DRIVER,
		  "the driver ibnbd-server is loaded with the records of another server, and cannot be unloaded");
	return say_hint("modprobe -r ibnbd-server");
}

struct group_taking {
	const struct group *g;
	bool force;
	bool taken;
};

/* Called when the storage is there, or is not waited for any more, before the driver listens. */
static int group_ready(void *arg)
{
	struct group_taking *t = arg;
	int rc = group_driver_free(t->g);	/* ibnbd-server.service may have been faster */

	rc = rc ? rc : group_disks_check(t->g);
	rc = rc ? rc : group_state_take(t->g, t->force);
	t->taken = !rc;
	return rc;
}

/* Sessions and exports that the driver has, of any group. */
static void group_open(size_t *exports, size_t *sessions)
{
	struct state *s __free(state_free) = state_read();

	*exports = s->nr_exports;
	*sessions = s->nr_srv_sessions;
	if (s->nr_exports == 1)
		say_more("waiting for %s", s->exports[0].name);
}

/* Behind a start that failed: is there a server all the same, or what is left of one? */
static bool group_remains(void)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS),
	     *search __free(free) = sysfs_attr(dir, "dev_search_path");
	size_t exports, sessions;

	group_open(&exports, &sessions);
	return search || exports || sessions;
}

/* A group that is served here already takes up its file's changes, except for its records. */
static int group_start(struct cmd_args *a, const struct group *g, struct group_taking *t)
{
	enum group_driver before = group_driver(g);
	int rc;

	if (before && g->served && strcmp(g->served, g->dir)) {
		say_error(SAY_BUSY, "group %s is served with its state in %s, not in %s", g->name,
			  g->served, g->dir);
		return say_hint("ibnbd group stop %s first", g->name);
	}
	rc = group_state_check(g);
	rc = rc ? rc : group_driver_free(g);
	/* Of a group that is active the disks are claimed by the driver. */
	rc = rc ? rc : server_run(a, g->c, before == GROUP_LISTENS ? NULL : group_ready, t);
	if (!rc && !sysfs_dry_run && group_driver(g) != GROUP_LISTENS)
		rc = say_error(SAY_BUSY,
			       "group %s is not started: another server was, at the same time",
			       g->name);
	return rc;
}

int cmd_group_start_run(struct cmd_args *a)
{
	struct group *g __free(group_free) = group_of(a, false);
	struct group_taking t = { .g = g, .force = ARG(a, force) };
	int rc;

	if (!g)
		return SAY_USAGE;
	rc = group_start(a, g, &t);
	if (rc && t.taken && !group_remains())
		group_state_leave(g);
	return rc;
}

/* ---- stop ---- */

static int group_wait_closed(const struct group *g, int64_t seconds)
{
	int64_t end = sysfs_now() + seconds * 1000000;
	size_t exports, sessions;

	for (;;) {
		group_open(&exports, &sessions);
		if (!exports && !sessions)
			return SAY_DONE;
		if (seconds != MAPS_FOREVER && sysfs_now() >= end)
			break;
		usleep(1000000 / GROUP_POLLS);
	}
	say_error(SAY_BUSY,
		  "group %s is not stopped: %zu export%s and %zu session%s are not closed; a disk may not have ended its requests",
		  g->name, exports, exports == 1 ? "" : "s", sessions, sessions == 1 ? "" : "s");
	return say_hint("ibnbd server list; no other server may take the group before this host is fenced or switched off");
}

static int group_unload(const struct group *g)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS);

	if (!sysfs_redirected() || sysfs_dry_run)
		server_unload();
	if (sysfs_redirected() || sysfs_dry_run || !sysfs_exists(dir))
		return SAY_DONE;
	say_error(SAY_FAILED,
		  "group %s is closed, but the driver ibnbd-server is still loaded, so its records may be incomplete",
		  g->name);
	return say_hint("modprobe -r ibnbd-server");
}

static int group_stop(const struct group *g, int64_t seconds)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS);
	enum group_driver has = group_driver(g);
	int err, rc = SAY_DONE;

	if (has) {
		/* EBUSY: it is being closed already. */
		err = has == GROUP_LISTENS ? sysfs_write(dir, "dev_search_path", "\n") : 0;
		if (err != EBUSY)
			rc = say_errno(err, "cannot close the server");
		rc = rc || sysfs_dry_run ? rc : group_wait_closed(g, seconds);
		rc = rc ? rc : group_unload(g);
	}
	return rc ? rc : group_state_leave(g);
}

int cmd_group_stop_run(struct cmd_args *a)
{
	struct group *g __free(group_free) = group_of(a, true);
	int64_t seconds = GROUP_STOP;
	int rc = g ? cmd_wait(a, true, &seconds) : SAY_USAGE;

	return rc ? rc : group_stop(g, seconds);
}

/* ---- status ---- */

static int group_status(const struct group *g, int64_t seconds)
{
	enum group_driver has = group_driver(g);
	bool us;
	size_t exports = 0, sessions = 0;
	char *owner __free(free) = NULL;
	int rc;

	if (!g->dir) {
		say_print("%s has mistakes", g->name);
		return SAY_USAGE;
	}
	if (has == GROUP_LISTENS) {
		rc = group_disks_answer(g, seconds);
		say_print("%s %s", g->name, rc ? "failed" : "active");
		return rc;
	}
	/* A closed export may still have writes under way, and another host must not start. */
	if (has)
		group_open(&exports, &sessions);
	if (exports || sessions) {
		say_print("%s is not stopped yet: ibnbd group stop %s", g->name, g->name);
		return SAY_BUSY;
	}
	owner = group_disks_owner(g, seconds, &us);
	if (!owner)
		say_print("%s inactive", g->name);
	else
		say_print("%s inactive, was not stopped by %s", g->name,
			  us ? "this host" : owner);
	return SAY_NOTHING;
}

static int group_status_all(int64_t seconds)
{
	char *dir __free(free) = sysfs_root(GROUP_CONF),
	     **names __free(sysfs_list_free) = sysfs_list_conf(dir, NULL);
	int sum = SAY_DONE, rc;

	for (size_t i = 0; names[i]; i++) {
		struct group *g __free(group_free) = group_load(names[i], true);

		rc = g ? group_status(g, seconds) : SAY_USAGE;
		if (rc != SAY_NOTHING && rc)
			sum = rc;
	}
	return sum;
}

int cmd_group_status_run(struct cmd_args *a)
{
	int64_t seconds = GROUP_ANSWER;
	int rc = cmd_wait(a, true, &seconds);
	struct group *g __free(group_free) = NULL;

	if (rc)
		return rc;
	if (!a->nr_words)
		return group_status_all(seconds);
	g = group_of(a, true);
	return g ? group_status(g, seconds) : SAY_USAGE;
}
