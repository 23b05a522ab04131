// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rooms of docs/sysfs.md turned into structs. Called by every command that lists, and by those
 * that look for an object of a given name. No lock keeps sysfs still while it is read: an object
 * that goes away in between leaves NULL and SYSFS_UNKNOWN, never an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ibnbd/logic/linkname.h"
#include "tools/out/escape.h"
#include "tools/host/links.h"
#include "tools/out/say.h"
#include "tools/host/state.h"

/* Numbers separated by blanks; what is not there stays unknown. */
static void state_numbers(const char *dir, const char *attr, int64_t **out, size_t nr)
{
	char *text = sysfs_attr(dir, attr), *p = text, *end;
	size_t i;

	for (i = 0; i < nr; i++) {
		int64_t n = SYSFS_UNKNOWN;

		if (p) {
			n = strtoll(p, &end, 10);
			if (end == p) {
				n = SYSFS_UNKNOWN;
				p = NULL;
			} else {
				p = end;
			}
		}
		if (out[i])
			*out[i] = n;
	}
	free(text);
}

static void state_add(int64_t *sum, int64_t n)
{
	if (n != SYSFS_UNKNOWN)
		*sum = (*sum == SYSFS_UNKNOWN ? 0 : *sum) + n;
}

static char *state_policy(const char *dir)
{
	char *text = sysfs_attr(dir, "mpath_policy"), *blank = text ? strchr(text, ' ') : NULL;

	if (blank)
		*blank = 0;	/* "min-inflight (MI: 1)" */
	return text;
}

/* "STATE marginal ..": the second word, for a reason may hold any. */
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
	p->src_addr = sysfs_attr(p->dir, "src_addr");
	p->dst_addr = sysfs_attr(p->dir, "dst_addr");
	/* The server shows no states: a path that is listed is connected. */
	p->state = client ? sysfs_attr(p->dir, "state") : say_dup("connected");
	p->state_detail = client ? sysfs_attr(p->dir, "state_detail") : NULL;
	p->marginal = state_marginal(p->state_detail);
	p->hca_name = sysfs_attr(p->dir, "hca_name");
	p->hca_port = sysfs_attr_num(p->dir, "hca_port");
	p->latency = client ? sysfs_attr_num(p->dir, "cur_latency") : SYSFS_UNKNOWN;
	state_numbers(p->dir, "stats/rdma", clt, client ? 6 : 4);
	if (!client)
		p->inflight = p->failovers = SYSFS_UNKNOWN;
	state_numbers(p->dir, "stats/reconnects", tries, 2);
}

static void state_read_session(struct state_session *s, const char *side, const char *class,
			       const char *name)
{
	char *paths;
	char **names;
	size_t nr, i;

	s->dir = sysfs_path("class/%s/%s", class, name);
	s->side = say_dup(side);
	s->name = say_dup(name);
	s->policy = state_policy(s->dir);
	s->auth = sysfs_attr(s->dir, "auth");
	s->max_reconnect_attempts = sysfs_attr_num(s->dir, "max_reconnect_attempts");
	s->dest_port = sysfs_attr_num(s->dir, "dest_port");
	s->hb_interval_ms = sysfs_attr_num(s->dir, "hb_interval_ms");
	s->hb_misses = sysfs_attr_num(s->dir, "hb_misses");
	s->reconnect_delay_ms = sysfs_attr_num(s->dir, "reconnect_delay_ms");
	s->reconnect_max_ms = sysfs_attr_num(s->dir, "reconnect_max_ms");
	paths = say_fmt("%s/paths", s->dir);
	names = sysfs_list(paths, &nr);
	s->paths = say_alloc((nr + 1) * sizeof(*s->paths));
	s->path_states = say_alloc(nr + 1);
	s->nr_paths = (int64_t)nr;
	s->read_bytes = s->write_bytes = s->inflight = s->reconnects = SYSFS_UNKNOWN;
	for (i = 0; i < nr; i++) {
		struct state_path *p = &s->paths[i];
		bool up;

		state_read_path(p, side, name, s->dir, names[i]);
		up = p->state && !strcmp(p->state, "connected");
		s->path_states[i] = up ? 'U' : '_';
		s->nr_up += up;
		state_add(&s->read_bytes, p->read_bytes);
		state_add(&s->write_bytes, p->write_bytes);
		state_add(&s->inflight, p->inflight);
		state_add(&s->reconnects, p->reconnects);
	}
	s->state = say_dup(!s->nr_up ? "down" : s->nr_up < s->nr_paths ? "degraded" : "up");
	sysfs_list_free(names);
	free(paths);
}

static struct state_session *state_read_sessions(const char *side, const char *class, size_t *nr)
{
	char *path = sysfs_path("class/%s", class);
	char **names = sysfs_list(path, nr);
	struct state_session *all = say_alloc((*nr + 1) * sizeof(*all));
	size_t i;

	for (i = 0; i < *nr; i++)
		state_read_session(&all[i], side, class, names[i]);
	sysfs_list_free(names);
	free(path);
	return all;
}

static void state_read_dev(struct state_dev *d, const char *kname)
{
	int64_t *stat[] = { &d->reads,
			    NULL,
			    &d->read_bytes,
			    &d->read_ms,
			    &d->writes,
			    NULL,
			    &d->write_bytes,
			    &d->write_ms,
			    &d->inflight,
			    &d->busy_ms,
			    NULL,
			    &d->discards,
			    NULL,
			    NULL,
			    NULL,
			    &d->flushes };
	char *own, *link;

	d->dir = sysfs_path("block/%s", kname);
	d->kname = say_dup(kname);
	d->path = say_fmt("/dev/%s", kname);
	d->devno = sysfs_attr(d->dir, "dev");
	d->size = sysfs_attr_num(d->dir, "size");
	if (d->size != SYSFS_UNKNOWN)
		d->size *= 512;
	d->read_only = sysfs_attr_num(d->dir, "ro");
	state_numbers(d->dir, "stat", stat, sizeof(stat) / sizeof(stat[0]));
	if (d->read_bytes != SYSFS_UNKNOWN)
		d->read_bytes *= 512;
	if (d->write_bytes != SYSFS_UNKNOWN)
		d->write_bytes *= 512;
	own = say_fmt("%s/ibnbd", d->dir);
	d->name = sysfs_attr(own, "name");
	link = d->name ? links_by_name(d->name) : NULL;
	if (link)
		d->link = say_fmt("/dev/ibnbd/by-name/%s", link);
	free(link);
	d->session = sysfs_attr(own, "session");
	d->device_path = sysfs_attr(own, "mapping_path");
	d->state = sysfs_attr(own, "state");
	d->state_detail = sysfs_attr(own, "state_detail");
	d->reason = sysfs_attr(own, "reason");
	d->access_mode = sysfs_attr(own, "access_mode");
	d->identity = sysfs_attr(own, "identity");
	d->features = sysfs_attr(own, "features");
	d->write_zeroes = sysfs_attr(own, "write_zeroes");
	d->write_cache = sysfs_attr(own, "write_cache");
	d->unflushed = sysfs_attr(own, "unflushed");
	d->kept = sysfs_attr(own, "kept");
	d->unflushed_bytes = sysfs_attr_num(own, "unflushed_bytes");
	d->losses = sysfs_attr_num(own, "losses");
	d->nr_poll_queues = sysfs_attr_num(own, "nr_poll_queues");
	d->hold = sysfs_attr_num(own, "hold");
	d->io_timeout = sysfs_attr_num(own, "io_timeout");
	free(own);
}

static void state_read_devs(struct state *s)
{
	char *block = sysfs_path("block");
	char **names;
	size_t nr, i;

	names = sysfs_list(block, &nr);
	s->devs = say_alloc((nr + 1) * sizeof(*s->devs));
	for (i = 0; i < nr; i++) {
		struct state_session *sess;
		struct state_dev *d = &s->devs[s->nr_devs];
		char *own = say_fmt("%s/%s/ibnbd", block, names[i]);
		bool ours = !strncmp(names[i], "ibnbd", 5) && sysfs_exists(own);

		free(own);
		if (!ours)
			continue;
		s->nr_devs++;
		state_read_dev(d, names[i]);
		sess = d->session ? state_session(s, d->session) : NULL;
		if (sess)
			sess->nr_devices++;
		d->paths = sess ? sess->nr_paths : SYSFS_UNKNOWN;
		d->paths_up = sess ? sess->nr_up : SYSFS_UNKNOWN;
	}
	sysfs_list_free(names);
	free(block);
}

static void state_read_export(struct state_export *e, const char *ctl, const char *name)
{
	char *sessions, *link;
	char **names;
	size_t nr, i;

	e->dir = say_fmt("%s/devices/%s", ctl, name);
	e->name = say_dup(name);
	link = say_fmt("%s/block_dev", e->dir);
	e->block_dev = sysfs_link(link);
	free(link);
	e->kind = say_dup(e->block_dev ? "block" : "file");
	e->identity = sysfs_attr(e->dir, "identity");
	e->copy = sysfs_attr(e->dir, "copy");
	e->claimed = sysfs_attr_num(e->dir, "claimed");
	e->size = sysfs_attr_num(e->dir, "size");
	if (e->size != SYSFS_UNKNOWN)
		e->size *= 512;
	sessions = say_fmt("%s/sessions", e->dir);
	names = sysfs_list(sessions, &nr);
	e->opens = say_alloc((nr + 1) * sizeof(*e->opens));
	e->nr_opens = (int64_t)nr;
	for (i = 0; i < nr; i++) {
		struct state_open *o = &e->opens[i];

		o->dir = say_fmt("%s/%s", sessions, names[i]);
		o->export = say_dup(name);
		o->session = say_dup(names[i]);
		o->mapping_path = sysfs_attr(o->dir, "mapping_path");
		o->access_mode = sysfs_attr(o->dir, "access_mode");
		o->read_only = sysfs_attr_num(o->dir, "read_only");
		o->device_id = sysfs_attr_num(o->dir, "device_id");
		o->claimed = o->read_only == 1 && e->claimed != SYSFS_UNKNOWN ? 0 : e->claimed;
	}
	sysfs_list_free(names);
	free(sessions);
}

static void state_read_exports(struct state *s)
{
	char *ctl = sysfs_path(STATE_SERVER), *devices = say_fmt("%s/devices", ctl);
	char **names = sysfs_list(devices, &s->nr_exports);
	size_t i, j;

	s->exports = say_alloc((s->nr_exports + 1) * sizeof(*s->exports));
	for (i = 0; i < s->nr_exports; i++) {
		struct state_export *e = &s->exports[i];

		state_read_export(e, ctl, names[i]);
		for (j = 0; j < (size_t)e->nr_opens; j++) {
			size_t k, len = strcspn(e->opens[j].session, "#");

			for (k = 0; k < s->nr_srv_sessions; k++)
				if (strlen(s->srv_sessions[k].name) == len &&
				    !strncmp(s->srv_sessions[k].name, e->opens[j].session, len))
					s->srv_sessions[k].nr_devices++;
		}
	}
	sysfs_list_free(names);
	free(devices);
	free(ctl);
}

struct state *state_read(void)
{
	char *clt = sysfs_path(STATE_CLIENT), *srv = sysfs_path(STATE_SERVER);
	struct state *s = say_alloc(sizeof(*s));

	s->client = sysfs_exists(clt);
	s->server = sysfs_exists(srv);
	s->sessions = state_read_sessions("client", "ibtrs-client", &s->nr_sessions);
	s->srv_sessions = state_read_sessions("server", "ibtrs-server", &s->nr_srv_sessions);
	state_read_devs(s);
	state_read_exports(s);
	free(clt);
	free(srv);
	return s;
}

/* ---- freeing ---- */

static void state_free_texts(void *object, size_t size, const size_t *offsets, size_t nr,
			     size_t count)
{
	size_t i, j;

	for (i = 0; i < count; i++)
		for (j = 0; j < nr; j++)
			free(*(char **)((char *)object + i * size + offsets[j]));
}

#define FREE(objects, type, count, ...) do {							\
	static const size_t at[] = { __VA_ARGS__ };						\
	state_free_texts(objects, sizeof(type), at, sizeof(at) / sizeof(at[0]), count);		\
	free(objects);										\
} while (0)
#define AT(type, field) offsetof(struct type, field)

static void state_free_sessions(struct state_session *all, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		FREE(all[i].paths, struct state_path, (size_t)all[i].nr_paths, AT(state_path, dir),
		     AT(state_path, side), AT(state_path, name), AT(state_path, session),
		     AT(state_path, src_addr), AT(state_path, dst_addr), AT(state_path, state),
		     AT(state_path, state_detail), AT(state_path, hca_name));
	FREE(all, struct state_session, nr, AT(state_session, dir), AT(state_session, side),
	     AT(state_session, name), AT(state_session, policy), AT(state_session, auth),
	     AT(state_session, state), AT(state_session, path_states));
}

void state_free(struct state *s)
{
	size_t i;

	if (!s)
		return;
	state_free_sessions(s->sessions, s->nr_sessions);
	state_free_sessions(s->srv_sessions, s->nr_srv_sessions);
	for (i = 0; i < s->nr_exports; i++)
		FREE(s->exports[i].opens, struct state_open, (size_t)s->exports[i].nr_opens,
		     AT(state_open, dir), AT(state_open, export), AT(state_open, session),
		     AT(state_open, mapping_path), AT(state_open, access_mode));
	FREE(s->exports, struct state_export, s->nr_exports, AT(state_export, dir),
	     AT(state_export, name), AT(state_export, block_dev), AT(state_export, kind),
	     AT(state_export, identity), AT(state_export, copy));
	FREE(s->devs, struct state_dev, s->nr_devs, AT(state_dev, dir), AT(state_dev, kname),
	     AT(state_dev, path), AT(state_dev, name), AT(state_dev, link), AT(state_dev, session),
	     AT(state_dev, device_path), AT(state_dev, state), AT(state_dev, state_detail),
	     AT(state_dev, reason), AT(state_dev, access_mode), AT(state_dev, identity),
	     AT(state_dev, features), AT(state_dev, write_zeroes), AT(state_dev, write_cache),
	     AT(state_dev, unflushed), AT(state_dev, kept), AT(state_dev, devno));
	free(s);
}
