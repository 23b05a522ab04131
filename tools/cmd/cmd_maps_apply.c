// SPDX-License-Identifier: GPL-2.0-only
/* maps apply: maps what is missing, and changes in place what can be. Only --prune unmaps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/host/live.h"
#include "tools/host/host.h"
#include "tools/host/mapping.h"

/* An error goes to *@rc. */
static void apply_set(int *rc, const char *dir, const char *attr, const char *want,
		      const char *now, const char *what)
{
	int err;

	if (now && !strcmp(now, want))
		return;
	err = sysfs_write(dir, attr, want);
	if (err)
		*rc = say_errno(err, "%s: cannot set %s to %s", what, attr, want);
	else if (!sysfs_dry_run && say_level >= 0)
		say_print("%s: %s %s -> %s", what, attr, now ? now : "?", want);
}

static void apply_set_num(int *rc, const char *dir, const char *attr, int64_t want, int64_t now,
			  const char *what)
{
	char *w __free(free) = say_fmt("%lld", (long long)want),
	     *n __free(free) = say_fmt("%lld", (long long)now);

	if (now != SYSFS_UNKNOWN)
		apply_set(rc, dir, attr, w, n, what);
}

static bool apply_has_path(const struct state_session *sess, const struct ibtrs_addr_pair *p)
{
	char src[IBTRS_ADDR_STR_MAX], dst[IBTRS_ADDR_STR_MAX];
	bool there = false;

	ibtrs_addr_format(&p->dst, dst, sizeof(dst));
	ibtrs_addr_format(&p->src, src, sizeof(src));
	for (size_t j = 0; j < (size_t)sess->nr_paths; j++)
		there |= sess->paths[j].dst_addr && !strcmp(sess->paths[j].dst_addr, dst) &&
			 (p->src.kind == IBTRS_ADDR_NONE ||
			  (sess->paths[j].src_addr && !strcmp(sess->paths[j].src_addr, src)));
	return there;
}

/* Add one of these paths, the first that can be, unless the session has one of them. */
static void apply_add_path(int *rc, const struct state_session *sess,
			   const struct ibtrs_addr_pair *p, size_t nr)
{
	char text[IBTRS_PATH_STR_MAX];
	int err = 0;
	size_t i;

	for (i = 0; i < nr && !apply_has_path(sess, &p[i]);)
		i++;
	if (i < nr)
		return;
	for (i = 0; i < nr && (!i || say_exit_of(err) == SAY_UNREACHABLE); i++) {
		ibtrs_addr_pair_format(&p[i], text, sizeof(text));
		err = sysfs_write(sess->dir, "add_path", text);
	}
	if (err && err != EEXIST)
		*rc = say_errno(err, "session %s: cannot add path %s", sess->name, text);
	else if (!sysfs_dry_run && say_level >= 0)
		say_print("session %s: path %s added", sess->name, text);
}

static void apply_add_paths(int *rc, const struct maps_entry *e, const struct state_session *sess)
{
	for (size_t i = 0; i < e->map.nr_paths; i++)
		apply_add_path(rc, sess, &e->map.path[i], 1);
	for (size_t i = 0; i < e->nr_hosts; i++) {
		struct ibtrs_addr_pair *pairs __free(free) = NULL;
		char *why __free(free) = NULL;
		size_t nr;

		if (host_resolve(e->host[i], &pairs, &nr, &why))
			*rc = say_error(SAY_UNREACHABLE, "session %s: %s", sess->name, why);
		else
			apply_add_path(rc, sess, pairs, nr);
	}
}

/* apply_adjust() changes them in place, or they say which disk it is, or they are obsolete. */
#define APPLY_BIT(field) (1u << IBNBD_OPT_##field)
#define APPLY_DONE \
	(APPLY_BIT(sessname) | APPLY_BIT(device_path) | APPLY_BIT(path) | APPLY_BIT(hold) | \
	 APPLY_BIT(failfast) | APPLY_BIT(io_timeout) | APPLY_BIT(policy) | \
	 APPLY_BIT(max_reconnect_attempts) | APPLY_BIT(io_mode) | APPLY_BIT(input_mode))

/* A session shares these: a line that does not give one accepts any value. */
#define APPLY_SHARED (IBNBD_SESSION_OPTS | APPLY_BIT(retain_mb))

/* Warn of each option whose value differs and can be changed only by mapping the device anew. */
static void apply_told(struct state *s, const struct maps_entry *e, const struct state_dev *d)
{
	struct ibnbd_map want = e->map, now = e->map;
	char is[IBNBD_NAME_LEN + 32], says[sizeof(is)], *why __free(free) = NULL;
	bool told = false, shared = false;
	enum ibnbd_mapopt_id id;

	if (live_map(&now, s, d, &why))
		return;
	for (id = 0; id < IBNBD_MAPOPT_COUNT; id++) {
		if ((APPLY_DONE & 1u << id) ||
		    (APPLY_SHARED & 1u << id && !ibnbd_map_given(&e->map, id)))
			continue;
		now.given = want.given = 1u << id;
		if (mapopt_format(&now, is, sizeof(is)) < 0 ||
		    mapopt_format(&want, says, sizeof(says)) < 0 || !strcmp(is, says))
			continue;
		say_warn("%s is mapped with %s, maps.conf says %s", e->name, is, says);
		told = true;
		shared |= !!(APPLY_SHARED & 1u << id);
	}
	if (told)
		say_hint(shared ? "ibnbd unmap %s and what else is mapped over session %s, then ibnbd maps apply" :
				  "ibnbd unmap %s, then ibnbd maps apply",
			 e->name, e->map.sessname);
}

static int apply_adjust(struct state *s, const struct maps_entry *e, const struct state_dev *d)
{
	struct state_session *sess = state_session(s, e->map.sessname);
	char *own __free(free) = say_fmt("%s/ibnbd", d->dir), word[32];
	int rc = SAY_DONE;

	apply_set_num(&rc, own, "hold", e->map.hold, d->hold, e->name);
	apply_set_num(&rc, own, "failfast", e->map.failfast, d->failfast, e->name);
	apply_set_num(&rc, own, "io_timeout", e->map.io_timeout, d->io_timeout, e->name);
	apply_told(s, e, d);
	if (!sess)
		return rc;
	if (ibnbd_map_given(&e->map, IBNBD_OPT_policy)) {
		ibnbd_mapopt_word(IBNBD_OPT_policy, e->map.policy, word, sizeof(word));
		apply_set(&rc, sess->dir, "mpath_policy", word, sess->policy, sess->name);
	}
	if (ibnbd_map_given(&e->map, IBNBD_OPT_max_reconnect_attempts))
		apply_set_num(&rc, sess->dir, "max_reconnect_attempts",
			      e->map.max_reconnect_attempts, sess->max_reconnect_attempts,
			      sess->name);
	apply_add_paths(&rc, e, sess);
	return rc;
}

static int apply_prune(struct cmd_args *a, struct maps *m, struct state *s)
{
	int sum = SAY_DONE, rc;

	for (size_t i = 0; i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];

		/* One without a name was mapped by hand: maps.conf does not decide about it. */
		if (!d->name || !d->session || !d->device_path ||
		    maps_find_device(m, d->session, d->device_path))
			continue;
		if (!ARG(a, prune)) {
			say_warn("%s (%s) is mapped and not in maps.conf", d->name, d->path);
			continue;
		}
		if (mapping_vital(d))
			continue;
		rc = mapping_unmap(d, ARG(a, force), MAPPING_WAIT);
		sum = rc ? rc : sum;
	}
	return sum;
}

int cmd_maps_apply_run(struct cmd_args *a)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct state *s __free(state_free) = NULL;
	struct say_sum sum = { 0 };
	bool refused;
	int rc;

	refused = maps_say_refused(m);
	sum.rc = m->nr || ARG(a, prune) ? mapping_driver(!ARG(a, no_modprobe)) : SAY_DONE;
	s = state_read();
	for (size_t i = 0; i < m->nr && (!sum.rc || sum.any); i++) {
		struct maps_entry *e = &m->entries[i];
		struct state_dev *d;

		if (e->bad)
			continue;
		d = state_dev_of(s, e->map.sessname, e->map.device_path);
		if (d)
			rc = apply_adjust(s, e, d);
		else if (maps_given(e, MAPS_noauto))
			continue;
		else
			rc = maps_run_start(e, 0);
		say_sum(&sum, rc);
	}
	if (!sum.rc || sum.any) {
		if (ARG(a, prune) && m->nr_errors) {
			/* A line with a mistake looks like one that was removed. */
			say_error(SAY_USAGE, "maps.conf has mistakes; nothing is unmapped");
			say_sum(&sum, say_hint("ibnbd maps check"));
		} else {
			rc = apply_prune(a, m, s);
			if (rc)
				say_sum(&sum, rc);
		}
	}
	if (refused)
		say_sum(&sum, SAY_USAGE);
	return sum.rc;
}
