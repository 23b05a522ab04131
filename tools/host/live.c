// SPDX-License-Identifier: GPL-2.0-only
/*
 * A mapping read back from sysfs, key by key, for remap --force and maps save. A driver older than
 * this command does not show each key; what it leaves out stays as the caller had it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host/live.h"
#include "tools/out/say.h"

static int live_text(struct ibnbd_map *map, enum ibnbd_mapopt_id id, const char *value)
{
	struct ibnbd_mapopt_err err;
	size_t nr;

	if (!value)
		return 0;
	map->given &= ~(1u << id);
	return ibnbd_mapopt_set(map, ibnbd_mapopt_table(&nr)[id].key, value, &err);
}

static int live_number(struct ibnbd_map *map, enum ibnbd_mapopt_id id, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return live_text(map, id, value == SYSFS_UNKNOWN ? NULL : text);
}

static int live_path(struct ibnbd_map *map, const struct state_path *p)
{
	struct ibnbd_mapopt_err err;
	struct ibtrs_addr *src;
	char *text;
	size_t i;
	int rc;

	text = p->src_addr && p->dst_addr ? say_fmt("%s,%s", p->src_addr, p->dst_addr) : NULL;
	rc = text ? ibnbd_mapopt_set(map, "path", text, &err) : -EINVAL;
	free(text);
	if (rc)
		return p->dst_addr ? ibnbd_mapopt_set(map, "path", p->dst_addr, &err) : -EINVAL;
	src = &map->path[map->nr_paths - 1].src;
	for (i = 0; i < sizeof(src->raw) && !src->raw[i];)
		i++;
	if (i == sizeof(src->raw))
		memset(src, 0, sizeof(*src));	/* it never had a route: any will do */
	return 0;
}

void live_paths(struct ibnbd_map *map, const struct state_session *s)
{
	size_t i, pass;

	map->nr_paths = 0;
	map->given &= ~(1u << IBNBD_OPT_path);
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < (size_t)s->nr_paths && map->nr_paths < IBNBD_MAP_PATHS; i++)
			if ((s->path_states[i] == 'U') == !pass && live_path(map, &s->paths[i]))
				say_warn("session %s: path %s is left out", s->name,
					 s->paths[i].name);
}

int live_map(struct ibnbd_map *map, struct state *s, const struct state_dev *d, char **why)
{
	struct state_session *sess = d->session ? state_session(s, d->session) : NULL;

	if (!d->session || !d->device_path || live_text(map, IBNBD_OPT_sessname, d->session) ||
	    live_text(map, IBNBD_OPT_device_path, d->device_path) ||
	    live_text(map, IBNBD_OPT_access_mode, d->access_mode) ||
	    live_text(map, IBNBD_OPT_name, d->name) || live_number(map, IBNBD_OPT_hold, d->hold) ||
	    live_number(map, IBNBD_OPT_io_timeout, d->io_timeout) ||
	    live_number(map, IBNBD_OPT_nr_poll_queues, d->nr_poll_queues) ||
	    live_text(map, IBNBD_OPT_write_zeroes, d->write_zeroes) ||
	    live_text(map, IBNBD_OPT_write_cache, d->write_cache) ||
	    live_text(map, IBNBD_OPT_unflushed, d->unflushed)) {
		*why = say_dup("the driver does not say how it is mapped");
		return -EINVAL;
	}
	if (!sess)
		return 0;
	/* What was proved is proved again. */
	if (live_text(map, IBNBD_OPT_policy, sess->policy) ||
	    live_text(map, IBNBD_OPT_auth, sess->auth && *sess->auth ? sess->auth : NULL) ||
	    live_number(map, IBNBD_OPT_max_reconnect_attempts, sess->max_reconnect_attempts) ||
	    live_number(map, IBNBD_OPT_dest_port, sess->dest_port) ||
	    live_number(map, IBNBD_OPT_hb_interval_ms, sess->hb_interval_ms) ||
	    live_number(map, IBNBD_OPT_hb_misses, sess->hb_misses) ||
	    live_number(map, IBNBD_OPT_reconnect_delay_ms, sess->reconnect_delay_ms) ||
	    live_number(map, IBNBD_OPT_reconnect_max_ms, sess->reconnect_max_ms)) {
		*why = say_fmt("the driver does not say how session %s is set up", d->session);
		return -EINVAL;
	}
	if (sess->nr_paths > 0)
		live_paths(map, sess);
	return 0;
}
