// SPDX-License-Identifier: GPL-2.0-only
/* map, unmap, remap and resize of devices. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/out/json.h"
#include "tools/host/live.h"
#include "tools/host/mapping.h"
#include "tools/conf/maps_saved.h"
#include "tools/conf/maps_store.h"
#include "tools/out/table.h"

/* ---- map ---- */

static int map_words(struct cmd_args *a)
{
	static const char *const keys[] = { "device_path", "sessname", "path" };
	size_t i, field = 0;
	int rc = SAY_DONE;

	for (i = 0; !rc && i < a->nr_words; i++) {
		const char *w = a->words[i], *key;

		while (field < 2 &&
		       ibnbd_map_given(&a->map, field ? IBNBD_OPT_sessname : IBNBD_OPT_device_path))
			field++;
		if (field == 1 && !strcmp(w, "from"))
			continue;	/* as the rnbd tool says it */
		key = maps_is_access(w) && field ? "access_mode" : keys[field];
		if (field == 1 && !strcmp(w, "-"))
			field++;
		else
			rc = cmd_map_set(a, key, strlen(key), w);
	}
	return rc;
}

/* A single word without mapping options is the name of a line of maps.conf. */
static int map_entry(struct cmd_args *a, struct maps **m, struct maps_entry **found)
{
	if (a->nr_words != 1 || a->map.given || a->nr_hosts)
		return SAY_DONE;
	*m = maps_load(VALUE(a, file));
	*found = maps_find(*m, a->words[0]);
	if (*found)
		return SAY_DONE;
	maps_say_refused(*m);
	say_error(
		SAY_USAGE,
		"map: maps.conf has no usable line \"%s\", and a session is needed to map a device",
		a->words[0]);
	return say_hint("ibnbd map %s SESSION ADDRESS-OF-THE-SERVER", a->words[0]);
}

static int map_session(struct cmd_args *a)
{
	char *why __free(free) = NULL;

	if (ibnbd_map_given(&a->map, IBNBD_OPT_sessname) || (!a->map.nr_paths && !a->nr_hosts))
		return SAY_DONE;
	why = maps_make_session(&a->map, a->host[0]);
	if (!why)
		return SAY_DONE;
	say_error(SAY_USAGE, "map: %s", why);
	return say_hint(MAPS_MACHINE_HINT);
}

/* @kname: NULL = nothing was mapped, which is no error: a dry run, or a line was only saved. */
static void map_print(const struct cmd_args *a, const char *kname)
{
	struct state *s __free(state_free) = NULL;
	const struct state_dev *d;
	struct json j;

	if (!ARG(a, json)) {
		if (kname && say_level >= 0)
			printf("/dev/%s\n", kname);
		return;
	}
	s = state_read();
	d = kname ? state_dev_called(s, kname) : NULL;
	json_document(&j, stdout, false);
	table_json_array(&j, &table_devs, d, d ? 1 : 0);
	json_end(&j);
}

static int map_failed(const struct ibnbd_map *map, int rc, int err, const char *why)
{
	char *ctl __free(free) = sysfs_path(STATE_CLIENT);
	const char *hint = strstr(why, "the session name is") ?
				   mapping_hint_name :
				   mapping_hint(ctl, "map_device", err);

	say_error(rc, "cannot map %s of session %s: %s", map->device_path, map->sessname, why);
	if (hint && !strstr(why, hint))
		say_hint("%s", hint);
	if (say_level > 1)
		mapping_kmsg(stderr, 10);
	return rc;
}

/* Refuse a name that maps.conf gives to another device: two disks would get the same link. */
static int map_name(const struct ibnbd_map *map, struct maps *m)
{
	const struct maps_entry *e = *map->name ? maps_find(m, map->name) : NULL;

	if (!e || (!strcmp(e->map.sessname, map->sessname) &&
		   !strcmp(e->map.device_path, map->device_path)))
		return SAY_DONE;
	say_error(SAY_USAGE, "%s of session %s: its name %s is that of %s of session %s in maps.conf",
		  map->device_path, map->sessname, map->name, e->map.device_path, e->map.sessname);
	return say_hint("another --name; or: ibnbd maps remove %s", map->name);
}

/* @line: of maps.conf for this device of this session, or NULL. */
static int map_now(struct cmd_args *a, const struct maps_entry *e, struct maps *m,
		   const struct maps_entry *line)
{
	const struct ibnbd_map *map = &e->map;
	struct state *s __free(state_free) = state_read();
	struct state_dev *d = state_dev_of(s, map->sessname, map->device_path);
	char *kname __free(free) = d ? say_dup(d->kname) : NULL, *why __free(free) = NULL;
	int rc = kname ? SAY_DONE : map_name(map, m), err;

	if (kname && !ARG(a, idempotent)) {
		say_error(SAY_ALREADY, "%s of session %s is mapped already, as /dev/%s",
			  map->device_path, map->sessname, kname);
		return say_hint("--idempotent makes that a success");
	}
	if (kname) {
		settle_made(kname, 0);
	} else if (!rc) {
		rc = mapping_map(map, e->host, e->nr_hosts, &kname, &err, &why);
		if (rc)
			map_failed(map, rc, err, why);
		else if (kname && line)
			rc = maps_run_verify(line);
	}
	if (!rc)
		map_print(a, kname);
	return rc;
}

/*
 * Options of the session that the command line leaves out are taken from the live session, if there
 * is one: mapping over a session that exists needs no PATH, but a saved line does.
 */
static int map_save(struct cmd_args *a, struct maps_entry *e)
{
	struct state *s __free(state_free) = state_read();
	struct state_session *sess = state_session(s, e->map.sessname);
	struct ibnbd_map live = { 0 };
	uint32_t given = e->map.given;

	ibnbd_mapopt_init(&live);
	if (sess && !e->map.nr_paths && !e->nr_hosts)
		live_paths(&e->map, sess);
	if (sess && !live_session(&live, sess))
		maps_take_values(&e->map, &live, ~given & IBNBD_SESSION_OPTS);
	live_terse(&e->map, given);
	return maps_store_save(e, VALUE(a, file), false, !ARG(a, no_reload));
}

/* The command line as a line of maps.conf. */
static struct maps_entry map_own(const struct cmd_args *a)
{
	struct maps_entry e = { .map = a->map, .nr_hosts = a->nr_hosts };

	snprintf(e.name, sizeof(e.name), "%s", a->map.name);
	for (size_t i = 0; i < a->nr_hosts; i++)
		e.host[i] = (char *)a->host[i];
	return e;
}

int cmd_map_run(struct cmd_args *a)
{
	struct maps_entry own, *e = NULL, *line;
	struct ibnbd_mapopt_err err;
	struct maps *m __free(maps_free) = NULL;
	bool save = ARG(a, save) || ARG(a, save_only);
	int rc;

	rc = map_entry(a, &m, &e);
	if (!rc && !e)
		rc = map_words(a);
	if (!rc && !e)
		rc = map_session(a);
	if (rc)
		return rc;
	if (!e && ibnbd_mapopt_finish(&a->map, &err)) {
		say_error(SAY_USAGE, "map: %s", err.msg);
		return say_hint("ibnbd map DEVICE SESSION [PATH]..., see ibnbd help map");
	}
	if (!e && save && !ibnbd_map_given(&a->map, IBNBD_OPT_name)) {
		say_error(SAY_USAGE, "map: --save needs a name");
		return say_hint("--name NAME");
	}
	own = map_own(a);
	if (!ARG(a, save_only)) {
		/*
		 * A line of maps.conf for this device counts also when it is mapped by hand: the
		 * name of the line is the link, and its uuid= and size= say which disk is expected.
		 */
		m = m ? m : maps_load(VALUE(a, file));
		line = e ? e : maps_find_device(m, own.map.sessname, own.map.device_path);
		rc = mapping_driver(!ARG(a, no_modprobe));
		rc = rc ? rc : map_now(a, e ? e : &own, m, line);
	}
	if (!rc && save && !e)
		rc = map_save(a, &own);
	if (!rc && ARG(a, save_only))
		map_print(a, NULL);
	return rc;
}

/* ---- unmap, remap ---- */

static bool map_many(const struct cmd_args *a)
{
	return ARG(a, all) || ARG(a, session);
}

/*
 * Call @one for each device that the words name, or for all devices, or for those of a session.
 * Each unknown word is an error of its own.
 */
static int map_each(struct cmd_args *a,
		    int (*one)(struct cmd_args *, struct state *, struct state_dev *))
{
	struct state *s __free(state_free) = state_read();
	const struct state_dev *of;
	struct say_sum sum = { 0 };
	char *why __free(free) = NULL;

	if (!s->client && !s->nr_devs) {
		if (ARG(a, all) || ARG(a, idempotent))
			return SAY_DONE;
		return mapping_driver(false) ?
			       SAY_DRIVER :
			       say_error(SAY_NOTHING, "%s: nothing is mapped",
					 ARG(a, session) ? VALUE(a, session) : a->words[0]);
	}
	of = ARG(a, session) ? state_meant(s->devs, s->nr_devs, sizeof(*of), state_is_of_session,
					   VALUE(a, session), &why) : NULL;
	for (size_t i = 0; map_many(a) && i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];

		if (ARG(a, session) && (!of || !state_is_of_session(d, of->session)))
			continue;
		say_sum(&sum, one(a, s, d));
	}
	if (ARG(a, session) && !sum.any) {
		say_error(SAY_NOTHING, why ? "%s" : "session %s has no device here",
			  why ? why : VALUE(a, session));
		return say_hint("ibnbd session list");
	}
	for (size_t i = 0; !map_many(a) && i < a->nr_words; i++) {
		char *unknown __free(free) = NULL;
		struct state_dev *d = state_dev(s, a->words[i], &unknown);
		int rc = SAY_DONE;

		if (d) {
			rc = one(a, s, d);
		} else if (!ARG(a, idempotent)) {
			rc = say_error(SAY_NOTHING, "%s", unknown);
			say_hint("ibnbd list");
		}
		say_sum(&sum, rc);
	}
	return sum.rc;
}

static int map_unmap_one(struct cmd_args *a, struct state *s, struct state_dev *d)
{
	int64_t wait = MAPPING_WAIT;
	int rc = cmd_wait(a, false, &wait);

	if (rc)
		return rc;
	if (ARG(a, all) && mapping_vital(d)) {
		say_warn("%s is left alone: the system runs on it", d->path);
		return SAY_DONE;
	}
	rc = mapping_unmap(d, ARG(a, force), (int)wait);
	if (!rc && ARG(a, forget))
		rc = maps_store_forget(d->session, d->device_path, VALUE(a, file),
				       !ARG(a, no_reload));
	return rc;
}

int cmd_unmap_run(struct cmd_args *a)
{
	return map_each(a, map_unmap_one);
}

/* ---- unmap, and map as it was ---- */

/*
 * Collect the whole mapping before the device is unmapped, because a session closes with its last
 * device. Options that an older driver does not show (port, heartbeat, delays, write_*) come from
 * the line of maps.conf, if there is one.
 */
static int again_asked(struct state *s, const struct state_dev *d, const struct maps_entry *e,
		       struct ibnbd_map *map, char **why)
{
	struct state_session *sess = state_session(s, d->session);
	int rc = 0;

	ibnbd_mapopt_init(map);
	if (e)
		*map = e->map;
	if (!live_map(map, s, d, why) && e && !(sess && sess->nr_paths > 0))
		rc = mapping_resolve(map, e->host, e->nr_hosts, why);
	if (!*why && !map->nr_paths)
		*why = say_fmt("session %s has no path, and closes with its last device", d->session);
	return *why && !rc ? SAY_FAILED : rc;
}

/* Add the paths of the session that did not fit into the line for the driver. */
static void again_other_paths(const struct ibnbd_map *map, const struct state_session *s)
{
	for (size_t i = 0; map->nr_paths == IBNBD_MAP_PATHS && i < (size_t)s->nr_paths; i++) {
		int err = sysfs_write(s->dir, "add_path", s->paths[i].name);

		if (err && err != EEXIST)
			say_warn("session %s: cannot add path %s: %s", s->name, s->paths[i].name,
				 strerror(err));
	}
}

static int again_now(struct cmd_args *a, struct state *s, struct state_dev *d)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	const struct maps_entry *e = maps_find_device(m, d->session, d->device_path);
	char line[IBNBD_MAP_LINE_MAX + 1], *why __free(free) = NULL, *kname __free(free) = NULL;
	struct state_session *sess = state_session(s, d->session);
	struct ibnbd_map map;
	int rc, err;

	rc = again_asked(s, d, e, &map, &why);
	if (rc)
		return say_error(rc, "%s cannot be mapped again as it is: %s; it stays as it is",
				 d->path, why);
	rc = mapping_unmap(d, false, MAPPING_WAIT);
	if (rc)
		return rc;
	rc = mapping_map(&map, NULL, 0, &kname, &err, &why);
	if (rc) {
		map_failed(&map, rc, err, why);
		mapopt_format(&map, line, sizeof(line));
		say_hint("it is unmapped now; then: ibnbd map %s", line);
		return rc;
	}
	if (kname && e)
		rc = maps_run_verify(e);
	if (!rc && sess)
		again_other_paths(&map, sess);
	if (!rc && kname && say_level >= 0)
		printf("/dev/%s\n", kname);
	return rc;
}

/* ---- remap ---- */

static int map_remap_one(struct cmd_args *a, struct state *s, struct state_dev *d)
{
	static const char file[] = "ibnbd/remap_device";
	struct settle *udev;
	int err;

	if (map_many(a) && d->state && !strcmp(d->state, "open"))
		return SAY_DONE;
	if (ARG(a, force))
		return again_now(a, s, d);
	udev = settle_look(d->kname);
	err = sysfs_write(d->dir, file, "1");
	settle_changed(udev, !err);
	if (!err || err == EALREADY)
		return !err || map_many(a) ? SAY_DONE :
					     say_error(SAY_ALREADY, "%s is open", d->path);
	return mapping_refused(d->dir, file, err, NULL,
			       err == EEXIST ? NULL : mapping_hint(NULL, NULL, err),
			       "cannot remap %s (%s of session %s)", d->path,
			       d->device_path ? d->device_path : "?", d->session ? d->session : "?");
}

int cmd_remap_run(struct cmd_args *a)
{
	return map_each(a, map_remap_one);
}

/* ---- resize ---- */

int cmd_resize_run(struct cmd_args *a)
{
	static const char file[] = "ibnbd/resize";
	char *why __free(free) = NULL, *text __free(free) = NULL, *old __free(free) = NULL,
	     *new __free(free) = NULL, *hint __free(free) = NULL;
	struct state *s __free(state_free) = state_read();
	struct state_dev *d = state_dev(s, a->words[0], &why);
	struct settle *udev;
	int64_t bytes;
	int err;

	if (!d) {
		say_error(SAY_NOTHING, "%s", why);
		return say_hint("ibnbd list");
	}
	if (!maps_size(a->words[1], &bytes) || bytes % 512 || !bytes) {
		say_error(SAY_USAGE, "resize: \"%s\" is not a size", a->words[1]);
		return say_hint(
			"bytes in steps of 512, or with K, M, G, T, P, E, or s for sectors: 10G, 20971520s");
	}
	old = table_size(d->size, false);
	new = table_size(bytes, false);
	if (bytes < d->size && !ARG(a, force)) {
		say_error(SAY_USAGE,
			  "resize: %s would shrink from %s to %s, and lose what is behind", d->path,
			  old, new);
		return say_hint("--force");
	}
	text = say_fmt("%lld", (long long)(bytes / 512));
	udev = settle_look(d->kname);
	err = sysfs_write(d->dir, file, text);
	settle_changed(udev, !err && bytes != d->size);
	if (!err && say_level >= 0 && !sysfs_dry_run)
		printf("%s: %s -> %s\n", d->path, old, new);
	if (!err)
		return SAY_DONE;
	hint = say_fmt("ibnbd remap %s", d->kname);
	return mapping_refused(d->dir, file, err, err == ENOENT ? "it is not open" : NULL,
			       err == ENOENT ? hint : NULL, "cannot resize %s", d->path);
}
