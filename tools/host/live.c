// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a mapping back from sysfs, option by option, for remap --force and maps save. A driver
 * older than this command may not show every option.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host/host.h"
#include "tools/host/live.h"
#include "tools/out/say.h"

static int live_text(struct ibnbd_map *map, enum ibnbd_mapopt_id id, const char *value)
{
	struct ibnbd_mapopt_err err;

	if (!value)
		return 0;
	map->given &= ~(1u << id);
	return ibnbd_mapopt_set(map, ibnbd_mapopts[id].key, value, &err);
}

static int live_path(struct ibnbd_map *map, const struct state_path *p)
{
	static const struct ibtrs_addr none;
	struct ibnbd_mapopt_err err;
	struct ibtrs_addr *src;
	char *text __free(free) = p->src_addr && p->dst_addr ?
					  say_fmt("%s,%s", p->src_addr, p->dst_addr) :
					  NULL;

	if (!text || ibnbd_mapopt_set(map, "path", text, &err))
		return p->dst_addr ? ibnbd_mapopt_set(map, "path", p->dst_addr, &err) : -EINVAL;
	src = &map->path[map->nr_paths - 1].src;
	if (!memcmp(src->raw, none.raw, sizeof(none.raw)))
		*src = none;	/* never had a route: any source will do */
	return 0;
}

void live_paths(struct ibnbd_map *map, const struct state_session *s)
{
	map->nr_paths = 0;
	map->given &= ~(1u << IBNBD_OPT_path);
	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < (size_t)s->nr_paths && map->nr_paths < IBNBD_MAP_PATHS; i++)
			if (s->paths[i].up == !pass && live_path(map, &s->paths[i]))
				say_warn("session %s: path %s is left out", s->name,
					 s->paths[i].name);
}

static bool live_is_bond(const struct state_path *p)
{
	char *dir __free(free) = sysfs_path("class/infiniband/%s/ports/%lld/gid_attrs/ndevs",
					    p->hca_name, (long long)p->hca_port),
	     *interface __free(free) = sysfs_attr(dir, "0");

	return interface && host_is_bond(interface);
}

/* The command by which another path than the first takes another port. */
static char *live_other_port(const struct state_session *s)
{
	struct ibtrs_addr_pair pair = { 0 };
	const char *reason;

	for (size_t i = (size_t)s->nr_paths - 1; i; i--) {
		const struct state_path *p = &s->paths[i];
		char *src __free(free) = NULL;

		if (!p->src_addr || !p->dst_addr ||
		    ibtrs_addr_parse(p->src_addr, strlen(p->src_addr), &pair.src, &reason) ||
		    ibtrs_addr_parse(p->dst_addr, strlen(p->dst_addr), &pair.dst, &reason))
			continue;
		src = host_other_source(&pair);
		if (src)
			return say_fmt("ibnbd path add %s %s,%s; ibnbd path remove %s %s", s->name,
				       src, p->dst_addr, s->name, p->name);
	}
	return say_fmt("ibnbd path add %s SOURCE,DESTINATION, from an address of another port of this host",
		       s->name);
}

char *live_shared(const struct state_session *s, bool server, char **hint)
{
	const struct state_path *first = NULL, *p;
	size_t i, nr = 0;
	bool port = true, dst = !server;

	for (i = 0; i < (size_t)s->nr_paths; i++) {
		p = &s->paths[i];
		if (!p->hca_name || p->hca_port == SYSFS_UNKNOWN || !p->dst_addr)
			continue;	/* it never had a device */
		nr++;
		if (!first)
			first = p;
		port &= !strcmp(p->hca_name, first->hca_name) && p->hca_port == first->hca_port;
		dst &= !strcmp(p->dst_addr, first->dst_addr);
	}
	if (nr < 2)
		return NULL;
	if (port && !live_is_bond(first)) {
		*hint = server ? say_dup("on the client: a path to an address of another port of this host") :
				 live_other_port(s);
		return say_fmt(server ? "all %zu paths of the client's session %s arrive at %s port %lld: "
					HOST_SHARED :
					"all %zu paths of session %s leave this host by %s port %lld: "
					HOST_SHARED,
			       nr, s->name, first->hca_name, (long long)first->hca_port);
	}
	if (!dst)
		return NULL;
	*hint = say_fmt("ibnbd path add %s ADDRESS-OF-ANOTHER-PORT-OF-THE-SERVER", s->name);
	return say_fmt("all %zu paths of session %s lead to %s: " HOST_SHARED, nr, s->name,
		       first->dst_addr);
}

static int live_fields(struct ibnbd_map *map, const struct state_type *type, const void *object)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < type->nr; i++) {
		const struct state_field *f = &type->fields[i];
		bool number = f->kind != STATE_TEXT && state_num(f, object) != SYSFS_UNKNOWN;
		char *text __free(free) = number ? say_fmt("%" PRId64, state_num(f, object)) : NULL;

		if (f->option != IBNBD_OPT_none)
			rc = live_text(map, f->option,
				       f->kind == STATE_TEXT ? state_text(f, object) : text);
	}
	return rc;
}

/* Each option is read back by a row of state_fields.h or by live_paths(), or it is obsolete. */
#define LIVE_BIT(field, heading, kind, file, option, help) | 1u << IBNBD_OPT_##option
static_assert(((0 STATE_DEV(LIVE_BIT) STATE_SESSION(LIVE_BIT) | 1u << IBNBD_OPT_path |
		1u << IBNBD_OPT_io_mode | 1u << IBNBD_OPT_input_mode) &
	       ((1u << IBNBD_MAPOPT_COUNT) - 1)) == (1u << IBNBD_MAPOPT_COUNT) - 1,
	      "a mapping option has no row in state_fields.h: maps save would drop it");

int live_session(struct ibnbd_map *map, const struct state_session *s)
{
	return live_fields(map, &state_type_session, s);
}

int live_map(struct ibnbd_map *map, struct state *s, const struct state_dev *d, char **why)
{
	struct state_session *sess = state_session(s, d->session);

	if (!d->session || !d->device_path || live_fields(map, &state_type_dev, d)) {
		*why = say_dup("the driver does not say how it is mapped");
		return -EINVAL;
	}
	if (!sess)
		return 0;
	if (live_session(map, sess)) {
		*why = say_fmt("the driver does not say how session %s is set up", d->session);
		return -EINVAL;
	}
	if (sess->nr_paths > 0)
		live_paths(map, sess);
	return 0;
}

void live_terse(struct ibnbd_map *map, uint32_t said)
{
	const struct ibnbd_mapopt *o = ibnbd_mapopts;

	for (size_t i = 0; i < IBNBD_MAPOPT_COUNT; i++) {
		const char *field = (const char *)map + o[i].offset;

		if ((o[i].kind == IBNBD_KIND_INT || o[i].kind == IBNBD_KIND_WORD) &&
		    !(said & 1u << i) && *(const int *)field == o[i].def)
			map->given &= ~(1u << i);
		if (o[i].kind == IBNBD_KIND_KEY && !*field)
			map->given &= ~(1u << i);
	}
}
