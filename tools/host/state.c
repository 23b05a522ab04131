// SPDX-License-Identifier: GPL-2.0-only
/* Reads the objects of docs/sysfs.md into structs. No lock keeps sysfs unchanged meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ibnbd/logic/text.h"
#include "tools/out/escape.h"
#include "tools/host/links.h"
#include "tools/out/say.h"
#include "tools/host/state.h"

/* ---- the tables of state_fields.h ---- */

#define STATE_ROW(type, field, heading, kind, file, option, help) \
	{ #field, heading, STATE_##kind, offsetof(struct type, field), file, IBNBD_OPT_##option, \
	  help },
#define STATE_TYPE(name, table, row)							\
static const struct state_field name##_fields[] = { table(row) };			\
const struct state_type state_type_##name = {						\
	.fields	= name##_fields,							\
	.nr	= sizeof(name##_fields) / sizeof(name##_fields[0]),			\
	.size	= sizeof(struct state_##name),						\
}

#define DEV_ROW(...)		STATE_ROW(state_dev, __VA_ARGS__)
#define SESSION_ROW(...)	STATE_ROW(state_session, __VA_ARGS__)
#define PATH_ROW(...)		STATE_ROW(state_path, __VA_ARGS__)
#define EXPORT_ROW(...)		STATE_ROW(state_export, __VA_ARGS__)
#define OPEN_ROW(...)		STATE_ROW(state_open, __VA_ARGS__)

STATE_TYPE(dev, STATE_DEV, DEV_ROW);
STATE_TYPE(session, STATE_SESSION, SESSION_ROW);
STATE_TYPE(path, STATE_PATH, PATH_ROW);
STATE_TYPE(export, STATE_EXPORT, EXPORT_ROW);
STATE_TYPE(open, STATE_OPEN, OPEN_ROW);

/* Read the fields that have a file; leave the others unchanged. */
static void state_fill(const struct state_type *type, void *object)
{
	const char *dir = *(char **)object;

	for (size_t i = 0; i < type->nr; i++) {
		const struct state_field *f = &type->fields[i];
		void *member = (char *)object + f->offset;

		if (f->file && f->kind == STATE_TEXT)
			*(char **)member = sysfs_attr(dir, f->file);
		else if (f->file)
			*(int64_t *)member = sysfs_attr_num(dir, f->file);
	}
}

static void state_free_objects(const struct state_type *type, void *objects, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		char *object = (char *)objects + i * type->size;

		free(*(char **)object);
		for (size_t j = 0; j < type->nr; j++)
			if (type->fields[j].kind == STATE_TEXT)
				free(state_text(&type->fields[j], object));
	}
	free(objects);
}

/* ---- reading ---- */

/* Read numbers separated by blanks; numbers that are missing become SYSFS_UNKNOWN. */
static void state_numbers(const char *dir, const char *attr, int64_t **out, size_t nr)
{
	char *text __free(free) = sysfs_attr(dir, attr), *p = text, *end;

	for (size_t i = 0; i < nr; i++) {
		int64_t n = p ? strtoll(p, &end, 10) : SYSFS_UNKNOWN;
		bool known = p && end > p;

		if (out[i])
			*out[i] = known ? n : SYSFS_UNKNOWN;
		p = known ? end : NULL;
	}
}

static void state_add(int64_t *sum, int64_t n)
{
	if (n != SYSFS_UNKNOWN)
		*sum = (*sum == SYSFS_UNKNOWN ? 0 : *sum) + n;
}

/*
 * Is the second word "marginal", as in "STATE marginal .."? Later words are a reason and may be any
 * text.
 */
static bool state_marginal(const char *detail)
{
	static const char word[] = " marginal";
	const char *second = detail ? strchr(detail, ' ') : NULL;

	return second && !strncmp(second, word, strlen(word)) &&
	       (!second[strlen(word)] || second[strlen(word)] == ' ');
}

static void state_read_path(struct state_path *p, const char *side, const char *session,
			    const char *dir, const char *name)
{
	bool client = !strcmp(side, "client");
	int64_t *clt[] = { &p->reads,	    &p->read_bytes, &p->writes,
			   &p->write_bytes, &p->inflight,   &p->failovers };
	int64_t *tries[] = { &p->reconnects, &p->reconnects_failed };

	p->dir = say_fmt("%s/paths/%s", dir, name);
	p->side = say_dup(side);
	p->name = say_dup(name);
	p->session = say_dup(session);
	state_fill(&state_type_path, p);
	/* The server shows no states: a path that is listed is connected. */
	if (!client && !p->state)
		p->state = say_dup("connected");
	p->up = p->state && !strcmp(p->state, "connected");
	p->marginal = state_marginal(p->state_detail);
	state_numbers(p->dir, "stats/rdma", clt, client ? 6 : 4);
	if (!client)
		p->inflight = p->failovers = SYSFS_UNKNOWN;
	state_numbers(p->dir, "stats/reconnects", tries, 2);
}

static void state_read_session(struct state_session *s, const char *side, const char *all,
			       const char *name)
{
	size_t nr, i;
	char *paths __free(free) = say_fmt("%s/%s/paths", all, name), *blank,
	     **names __free(sysfs_list_free) = sysfs_list(paths, &nr);

	s->dir = say_fmt("%s/%s", all, name);
	s->side = say_dup(side);
	s->name = say_dup(name);
	state_fill(&state_type_session, s);
	blank = s->policy ? strchr(s->policy, ' ') : NULL;
	if (blank)
		*blank = 0;	/* "min-inflight (MI: 1)" */
	s->paths = say_alloc((nr + 1) * sizeof(*s->paths));
	s->path_states = say_alloc(nr + 1);
	s->nr_paths = (int64_t)nr;
	s->read_bytes = s->write_bytes = s->inflight = s->reconnects = SYSFS_UNKNOWN;
	for (i = 0; i < nr; i++) {
		struct state_path *p = &s->paths[i];

		state_read_path(p, side, name, s->dir, names[i]);
		s->path_states[i] = p->up ? 'U' : '_';
		s->nr_up += p->up;
		state_add(&s->read_bytes, p->read_bytes);
		state_add(&s->write_bytes, p->write_bytes);
		state_add(&s->inflight, p->inflight);
		state_add(&s->reconnects, p->reconnects);
	}
	s->state = say_dup(!s->nr_up ? "down" : s->nr_up < s->nr_paths ? "degraded" : "up");
}

/* Add those of the directory @path, which is freed. */
static void state_read_sessions(struct state *s, size_t *nr, const char *side, char *path)
{
	size_t n, i, all = s->nr_sessions + s->nr_srv_sessions;
	char **names __free(sysfs_list_free) = sysfs_list(path, &n);

	s->sessions = say_grow(s->sessions, (all + n + 1) * sizeof(*s->sessions));
	memset(s->sessions + all, 0, (n + 1) * sizeof(*s->sessions));
	for (i = 0; i < n; i++)
		state_read_session(&s->sessions[all + i], side, path, names[i]);
	*nr += n;
	free(path);
}

static void state_read_dev(struct state_dev *d, const char *kname)
{
	int64_t *stat[] = { &d->reads, NULL, &d->read_bytes, &d->read_ms,
			    &d->writes, NULL, &d->write_bytes, &d->write_ms,
			    &d->inflight, NULL, NULL,
			    &d->discards, NULL, NULL, NULL, &d->flushes };
	int64_t *replays[] = { &d->replays, &d->replayed_bytes };
	char *link __free(free) = NULL;

	d->dir = sysfs_path("block/%s", kname);
	d->kname = say_dup(kname);
	d->path = say_fmt("/dev/%s", kname);
	state_fill(&state_type_dev, d);
	if (d->size != SYSFS_UNKNOWN)
		d->size *= 512;
	state_numbers(d->dir, "stat", stat, ARRAY_SIZE(stat));
	if (d->read_bytes != SYSFS_UNKNOWN)
		d->read_bytes *= 512;
	if (d->write_bytes != SYSFS_UNKNOWN)
		d->write_bytes *= 512;
	state_numbers(d->dir, "ibnbd/replays", replays, ARRAY_SIZE(replays));
	link = d->name ? links_by_name(d->name) : NULL;
	if (link)
		d->link = say_fmt("/dev/ibnbd/by-name/%s", link);
}

static void state_read_devs(struct state *s)
{
	size_t nr, i;
	char *block __free(free) = sysfs_path("block"),
	     **names __free(sysfs_list_free) = sysfs_list(block, &nr);

	s->devs = say_alloc((nr + 1) * sizeof(*s->devs));
	for (i = 0; i < nr; i++) {
		struct state_session *sess;
		struct state_dev *d = &s->devs[s->nr_devs];
		char *own __free(free) = say_fmt("%s/%s/ibnbd", block, names[i]);

		if (strncmp(names[i], "ibnbd", 5) || !sysfs_exists(own))
			continue;
		s->nr_devs++;
		state_read_dev(d, names[i]);
		sess = state_session(s, d->session);
		if (sess)
			sess->nr_devices++;
		d->paths = sess ? sess->nr_paths : SYSFS_UNKNOWN;
		d->paths_up = sess ? sess->nr_up : SYSFS_UNKNOWN;
	}
}

static void state_read_export(struct state_export *e, const char *ctl, const char *name)
{
	size_t nr, i;
	char *sessions __free(free) = say_fmt("%s/devices/%s/sessions", ctl, name),
	     *link __free(free) = say_fmt("%s/devices/%s/block_dev", ctl, name),
	     **names __free(sysfs_list_free) = sysfs_list(sessions, &nr);

	e->dir = say_fmt("%s/devices/%s", ctl, name);
	e->name = say_dup(name);
	e->block_dev = sysfs_link(link);
	e->kind = say_dup(e->block_dev ? "block" : "file");
	state_fill(&state_type_export, e);
	if (e->size != SYSFS_UNKNOWN)
		e->size *= 512;
	e->opens = say_alloc((nr + 1) * sizeof(*e->opens));
	e->nr_opens = (int64_t)nr;
	for (i = 0; i < nr; i++) {
		struct state_open *o = &e->opens[i];

		o->dir = say_fmt("%s/%s", sessions, names[i]);
		o->export = say_dup(name);
		o->session = say_dup(names[i]);
		state_fill(&state_type_open, o);
		o->claimed = o->read_only == 1 && e->claimed != SYSFS_UNKNOWN ? 0 : e->claimed;
	}
}

/*
 * The client's session that the directory of an open is called after: of this very name, else of
 * the name without `#2`, which a second open of one session has.
 */
static struct state_session *state_opener(struct state *s, const char *open)
{
	const char *number = strrchr(open, '#');
	size_t len = number ? (size_t)(number - open) : strlen(open), k;
	struct state_session *found = NULL;

	for (k = 0; k < s->nr_srv_sessions; k++) {
		struct state_session *sess = &s->srv_sessions[k];

		if (!strcmp(sess->name, open))
			return sess;
		if (strlen(sess->name) == len && !strncmp(sess->name, open, len))
			found = sess;
	}
	return found;
}

/* @ctl: of the driver, or of ibnbd-serverd */
static void state_read_exports(struct state *s, const char *ctl)
{
	size_t i, j, nr;
	char *devices __free(free) = say_fmt("%s/devices", ctl),
	     **names __free(sysfs_list_free) = sysfs_list(devices, &nr);

	s->exports = say_grow(s->exports, (s->nr_exports + nr + 1) * sizeof(*s->exports));
	memset(s->exports + s->nr_exports, 0, (nr + 1) * sizeof(*s->exports));
	for (i = 0; i < nr; i++) {
		struct state_export *e = &s->exports[s->nr_exports++];

		state_read_export(e, ctl, names[i]);
		for (j = 0; j < (size_t)e->nr_opens; j++) {
			struct state_session *sess = state_opener(s, e->opens[j].session);

			if (sess)
				sess->nr_devices++;
		}
	}
}

bool state_serverd(void)
{
	char *devices __free(free) = sysfs_root(STATE_SERVERD "/devices");

	return sysfs_exists(devices);
}

struct state *state_read(void)
{
	char *clt __free(free) = sysfs_path(STATE_CLIENT),
	     *srv __free(free) = sysfs_path(STATE_SERVER),
	     *user __free(free) = sysfs_root(STATE_SERVERD);
	struct state *s = say_alloc(sizeof(*s));

	s->client = sysfs_exists(clt);
	s->server = sysfs_exists(srv);
	s->serverd = state_serverd();
	state_read_sessions(s, &s->nr_sessions, "client", sysfs_path("class/ibtrs-client"));
	state_read_sessions(s, &s->nr_srv_sessions, "server", sysfs_path("class/ibtrs-server"));
	state_read_sessions(s, &s->nr_srv_sessions, "server", say_fmt("%s/sessions", user));
	s->srv_sessions = s->sessions + s->nr_sessions;
	state_read_devs(s);
	state_read_exports(s, srv);
	state_read_exports(s, user);
	return s;
}

/* ---- freeing ---- */

void state_free(struct state *s)
{
	size_t sessions = s ? s->nr_sessions + s->nr_srv_sessions : 0;

	if (!s)
		return;
	for (size_t i = 0; i < sessions; i++)
		state_free_objects(&state_type_path, s->sessions[i].paths,
				   (size_t)s->sessions[i].nr_paths);
	state_free_objects(&state_type_session, s->sessions, sessions);
	for (size_t i = 0; i < s->nr_exports; i++)
		state_free_objects(&state_type_open, s->exports[i].opens,
				   (size_t)s->exports[i].nr_opens);
	state_free_objects(&state_type_export, s->exports, s->nr_exports);
	state_free_objects(&state_type_dev, s->devs, s->nr_devs);
	free(s);
}
