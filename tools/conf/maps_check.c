// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mistakes that show only between lines: the same name or device twice, lines that give one session
 * different options, sessions that no line opens.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

static bool check_same_session(const struct maps_entry *a, const struct maps_entry *b)
{
	return !strcmp(a->map.sessname, b->map.sessname);
}

static void check_name(struct maps *m, struct maps_entry *e, struct maps_entry *before)
{
	char *where __free(free) = NULL;

	if (strcmp(e->name, before->name) || before->overridden || !*e->name)
		return;
	if (maps_given(e, MAPS_override)) {
		before->bad = before->overridden = true;
		return;
	}
	where = maps_where(m, before->line);
	maps_bad(m, e, e->name_at, say_fmt("the name \"%s\" is taken by %s", e->name, where),
		 e->line.file == before->line.file ?
			 NULL :
			 say_dup("a line that is to replace another one says override"));
}

static void check_device(struct maps *m, struct maps_entry *e, const struct maps_entry *before)
{
	char *where __free(free) = NULL;

	if (before->bad || e->bad || strcmp(e->map.device_path, before->map.device_path))
		return;
	where = maps_where(m, before->line);
	if (check_same_session(e, before)) {
		maps_bad(m, e, e->device_at,
			 say_fmt("device %s of session %s is mapped by %s", e->map.device_path,
				 e->map.sessname, where),
			 NULL);
	} else if (e->map.nr_paths && before->map.nr_paths &&
		   ibtrs_addr_equal(&e->map.path[0].dst, &before->map.path[0].dst) &&
		   e->map.access_mode == IBNBD_ACCESS_RW &&
		   before->map.access_mode == IBNBD_ACCESS_RW) {
		maps_warn(
			m, e->device_at,
			say_fmt("%s maps the same device of the same server, and both want to write",
				where),
			say_dup("the server refuses the second one; say ro, or migration"));
	}
}

/* Both lines must give the option, with the same value. */
static void check_session_key(struct maps *m, struct maps_entry *e, const struct maps_entry *before,
			      enum ibnbd_mapopt_id id)
{
	const char *key = ibnbd_mapopts[id].key;
	char *where __free(free) = NULL;

	if (maps_same_value(&e->map, &before->map, id))
		return;
	where = maps_where(m, before->line);
	if (!ibnbd_map_given(&e->map, id) || !ibnbd_map_given(&before->map, id)) {
		maps_warn(
			m, e->session_at,
			say_fmt("%s of session %s is said here or in %s, not in both", key,
				e->map.sessname, where),
			say_dup("it belongs to the session, and whichever line comes first opens it"));
	} else {
		maps_bad(m, e, e->session_at,
			 say_fmt("%s of session %s is another one in %s", key, e->map.sessname, where),
			 say_dup("it belongs to the session: say the same in all its lines"));
	}
}

static void check_session(struct maps *m, struct maps_entry *e, const struct maps_entry *before)
{
	char *where __free(free) = NULL;

	if (before->bad || e->bad || !check_same_session(e, before))
		return;
	for (size_t i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		if (IBNBD_SESSION_OPTS & 1u << i)
			check_session_key(m, e, before, i);
	if (!e->bad && (e->map.nr_poll_queues || before->map.nr_poll_queues)) {
		where = maps_where(m, before->line);
		maps_bad(m, e, e->session_at,
			 say_fmt("session %s has polled queues and is shared with %s",
				 e->map.sessname, where),
			 say_dup("nr_poll_queues needs a session of its own"));
	}
}

/* Refuse the same link in two lines, and a link that would have to be a directory for the other. */
static void check_link(struct maps *m, struct maps_entry *e, const struct maps_entry *before)
{
	const char *mine = e->text[MAPS_link], *other = before->text[MAPS_link];
	char *where __free(free) = NULL;

	if (before->bad || e->bad || !maps_given(e, MAPS_link) || !maps_given(before, MAPS_link) ||
	    (!sysfs_below(other, mine) && !sysfs_below(mine, other)))
		return;
	where = maps_where(m, before->line);
	if (!strcmp(mine, other))
		maps_bad(m, e, e->name_at, say_fmt("the link %s is taken by %s", mine, where),
			 say_dup("link=ANOTHER-NAME"));
	else
		maps_bad(m, e, e->name_at,
			 say_fmt("the link %s cannot be beside the link %s of %s: one would be a directory",
				 mine, other, where),
			 say_dup("link=ANOTHER-NAME in one of them"));
}

static bool check_opened(const struct maps *m, const struct maps_entry *e, size_t *paths)
{
	*paths = 0;
	for (size_t i = 0; i < m->nr; i++) {
		const struct maps_entry *o = &m->entries[i];

		if (!o->bad && check_same_session(o, e) && o->map.nr_paths + o->nr_hosts > *paths)
			*paths = o->map.nr_paths + o->nr_hosts;
	}
	return *paths;
}

static void check_paths(struct maps *m, struct maps_entry *e)
{
	size_t paths;

	if (!check_opened(m, e, &paths)) {
		maps_bad(
			m, e, e->session_at,
			say_fmt("there is no path= to open session %s with", e->map.sessname),
			say_fmt("path=ADDRESS-OF-THE-SERVER, here or in another line of the session"));
	} else if (paths == 1 && e->map.nr_paths + e->nr_hosts == 1) {
		maps_warn(m, e->path_at,
			  say_fmt("session %s has one path: when it fails, nothing takes over",
				  e->map.sessname),
			  NULL);
	}
}

static void check_alone(struct maps *m, struct maps_entry *e)
{
	if (maps_given(e, MAPS_wait) && maps_start_timeout(e) == MAPS_FOREVER &&
	    !maps_given(e, MAPS_noauto))
		maps_warn(
			m, e->name_at,
			say_dup("wait without start-timeout=: the boot waits for ever when the server is down"),
			say_dup("start-timeout=90s, for example"));
	if (e->map.access_mode == IBNBD_ACCESS_MIGRATION)
		maps_warn(
			m, e->name_at,
			say_dup("access_mode=migration lets two machines write to one disk"),
			say_dup("it is for the minutes in which a virtual machine moves, not for a configuration"));
}

void maps_check(struct maps *m)
{
	for (size_t i = 0; i < m->nr; i++)
		for (size_t j = 0; j < i; j++)
			check_name(m, &m->entries[i], &m->entries[j]);
	for (size_t i = 0; i < m->nr; i++) {
		struct maps_entry *e = &m->entries[i];

		for (size_t j = 0; j < i; j++) {
			check_device(m, e, &m->entries[j]);
			check_session(m, e, &m->entries[j]);
			check_link(m, e, &m->entries[j]);
		}
	}
	for (size_t i = 0; i < m->nr; i++) {
		if (m->entries[i].bad)
			continue;
		check_paths(m, &m->entries[i]);
		if (!m->entries[i].bad)
			check_alone(m, &m->entries[i]);
	}
	maps_sort(m);
}
