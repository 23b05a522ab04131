// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws of an edit of maps.conf: parse, edit, parse, compare. Any bytes may stand in the files,
 * a line is put in, replaced or taken out, and every mapping that was good before, and is not the
 * one that was meant, is good behind it and the same; a line that was put in means what it was to
 * mean, whatever [defaults] say. Where nothing but the line itself changes, the edit is possible,
 * too: it is not enough to refuse all of them.
 *
 * The input: one byte for what is done, one for whom it is done to, then the text; 0xfe in it
 * begins a second file, of maps.conf.d.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/conf/maps_plan.h"
#include "tools/out/say.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum edit { EDIT_ADD, EDIT_REMOVE, EDIT_HOLD, EDIT_SESSION, EDIT_POLICY, EDIT_ADD_BESIDE,
	    EDIT_COUNT };

static struct maps *load(const uint8_t *data, size_t size)
{
	const uint8_t *cut = size ? memchr(data, 0xfe, size) : NULL;
	size_t first = cut ? (size_t)(cut - data) : size;
	struct maps *m = say_alloc(sizeof(*m));

	maps_parse(m, "/etc/ibnbd/maps.conf", (const char *)data, first);
	if (cut)
		maps_parse(m, "/etc/ibnbd/maps.conf.d/50-saved.conf", (const char *)cut + 1,
			   size - first - 1);
	maps_check(m);
	return m;
}

/* Something that no input says. */
static void fresh(struct maps_entry *e, const char *session)
{
	struct ibnbd_mapopt_err err;

	*e = (struct maps_entry){ 0 };
	ibnbd_mapopt_init(&e->map);
	MUST(!ibnbd_mapopt_set(&e->map, "name", "fuzz.new", &err));
	MUST(!ibnbd_mapopt_set(&e->map, "device_path", "fuzz/new device#1", &err) ||
	     !ibnbd_mapopt_set(&e->map, "device_path", "fuzz/new", &err));
	MUST(!ibnbd_mapopt_set(&e->map, "sessname", session, &err));
	MUST(!ibnbd_mapopt_set(&e->map, "path", "10.99.99.99", &err));
	strcpy(e->name, "fuzz.new");
}

/* What @m says is what @after says, but for the mapping @name and what the plan changes. */
static void compare(struct maps *m, struct maps *after, const struct maps_plan *p, const char *name)
{
	size_t i, j;

	for (i = 0; i < m->nr; i++) {
		struct maps_entry *e = &m->entries[i], *now;
		char *was, *is;
		bool changed = false;

		if (e->bad || !strcmp(e->name, name))
			continue;
		now = maps_find(after, e->name);
		MUST(now && !strcmp(now->map.device_path, e->map.device_path) &&
		     !strcmp(now->map.sessname, e->map.sessname));
		MUST(now->map.access_mode == e->map.access_mode && now->map.hold == e->map.hold);
		for (j = 0; j < p->nr; j++)
			changed |= !strcmp(p->changes[j].name, e->name);
		was = maps_line(e);
		is = maps_line(now);
		MUST(changed || !strcmp(was, is));
		free(was);
		free(is);
	}
}

/* Numbers and words of the device; what is the session's may be said by its other lines. */
static void meant(struct maps *after, const struct maps_entry *e)
{
	struct maps_entry *now = maps_find(after, e->name);
	const struct ibnbd_mapopt *o;
	size_t nr, i;

	o = ibnbd_mapopt_table(&nr);
	for (i = 0; now && i < nr; i++) {
		if (!maps_is_session_key(i) &&
		    (o[i].kind == IBNBD_KIND_INT || o[i].kind == IBNBD_KIND_WORD))
			MUST(maps_same_value(&now->map, &e->map, i));
	}
	MUST(!now || maps_given(now, MAPS_noauto) == maps_given(e, MAPS_noauto));
}

static bool line_fits(const struct maps_entry *e)
{
	char *line = maps_line(e);
	bool fits = strlen(line) <= IBNBD_MAP_LINE_MAX;

	free(line);
	return fits;
}

static bool all_fit(const struct maps *m)
{
	size_t i;

	for (i = 0; i < m->nr; i++)
		if (!m->entries[i].bad && !line_fits(&m->entries[i]))
			return false;
	return true;
}

/*
 * A line that goes may bring back another of its name, or one that was bad
 * because of it; those may be in others' way.
 */
static bool comes_back(const struct maps *m, const char *name)
{
	size_t i, n = 0;

	for (i = 0; i < m->nr; i++)
		n += m->entries[i].bad || !strcmp(m->entries[i].name, name);
	return n > 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps_entry e, *old = NULL;
	struct maps_plan p;
	struct maps *m, *after;
	bool possible;
	enum edit what;
	char *lost;

	if (size < 2)
		return 0;
	what = data[0] % EDIT_COUNT;
	m = load(data + 2, size - 2);
	if (m->nr)
		old = &m->entries[data[1] % m->nr];
	if (m->nr_refused || (!old && what != EDIT_ADD) || (old && !*old->name)) {
		maps_free(m);
		return 0;
	}
	maps_plan_init(&p);
	possible = all_fit(m);
	fresh(&e, what == EDIT_ADD_BESIDE ? old->map.sessname[0] ? old->map.sessname : "fuzz" :
	      "fuzz-session");
	switch (what) {
	case EDIT_ADD:
	case EDIT_ADD_BESIDE:
		possible = !maps_plan_find(m, "fuzz.new") && m->nr < MAPS_MAX &&
			   what == EDIT_ADD && !m->files[m->nr_files - 1].no_defaults;
		if (maps_plan_find(m, "fuzz.new"))
			break;
		maps_plan_save(&p, m, &e, NULL, m->nr_files - 1);
		break;
	case EDIT_REMOVE:
		possible &= !comes_back(m, old->name);
		strcpy(e.name, old->name);
		maps_plan_remove(&p, m, old);
		break;
	default:
		possible &= what == EDIT_HOLD && !old->bad && !comes_back(m, old->name);
		e = *old;
		if (what == EDIT_HOLD) {
			e.map.hold = 77;
			e.map.given |= 1u << IBNBD_OPT_hold;
			possible &= line_fits(&e);
		} else if (what == EDIT_SESSION) {
			memset(e.map.sessname, 0, sizeof(e.map.sessname));
			strcpy(e.map.sessname, "other");
			e.made_session = false;
		} else {
			e.map.policy = !e.map.policy;
			e.map.given |= 1u << IBNBD_OPT_policy;
		}
		maps_plan_save(&p, m, &e, old, 0);
	}
	if (p.nr) {
		after = maps_plan_after(&p, m);
		lost = maps_plan_lost(&p, m, after);
		MUST(!possible || !lost || (p.unsaid && what == EDIT_ADD));
		if (!lost)
			compare(m, after, &p, e.name);
		/* A bad one may have the name of a good one, which is not it. */
		if (!lost && what != EDIT_REMOVE && !e.bad)
			meant(after, &e);
		free(lost);
		maps_free(after);
	}
	maps_plan_free(&p);
	maps_free(m);
	return 0;
}
