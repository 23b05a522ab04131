// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws of a change of saved mappings: parse, change, parse, compare. Any bytes may stand in the
 * files; a mapping is saved, saved anew or forgotten. Every other mapping that was good before is
 * good after it and maps the same; what was saved means what it was to mean; a file that a person
 * wrote stays. A new mapping of a session of its own can be saved whatever the files hold: it is
 * not enough to refuse.
 *
 * The input: one byte for what is done, one for whom it is done to, then the text of maps.conf;
 * 0xfe in it begins 50-saved.conf, a second one a saved file of the name "own", whose first line is
 * put before it.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/conf/maps_saved.h"
#include "tools/out/say.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)
#define DIR	"/etc/ibnbd/maps.conf.d"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum change { SAVE_NEW, SAVE_BESIDE, SAVE_HOLD, SAVE_POLICY, SAVE_SESSION, FORGET, SPLIT,
	      NR_CHANGES };

static struct maps *load(const uint8_t *data, size_t size)
{
	static const char *const paths[] = { "/etc/ibnbd/maps.conf", DIR "/50-saved.conf",
					     DIR "/own.conf" };
	struct maps *m = say_alloc(sizeof(*m));
	size_t i, len;

	for (i = 0; i < 3; i++) {
		const uint8_t *cut = i < 2 && size ? memchr(data, 0xfe, size) : NULL;
		char *text;

		len = cut ? (size_t)(cut - data) : size;
		text = i < 2 ? say_fmt("%s", "") : say_dup(MAPS_SAVED_MARK "\n");
		size_t head = strlen(text);

		text = say_grow(text, head + len + 1);
		if (len)
			memcpy(text + head, data, len);
		maps_parse(m, paths[i], text, head + len);
		free(text);
		if (!cut)
			break;
		data = cut + 1;
		size -= len + 1;
	}
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
	MUST(!ibnbd_mapopt_set(&e->map, "device_path", "fuzz/new#1", &err));
	MUST(!ibnbd_mapopt_set(&e->map, "sessname", session, &err));
	MUST(!ibnbd_mapopt_set(&e->map, "path", "10.99.99.99", &err));
	strcpy(e->name, "fuzz.new");
}

/* Do both map the same, apart from what a session has in common? */
static void same_device(const struct maps_entry *a, const struct maps_entry *b)
{
	const struct ibnbd_mapopt *o = ibnbd_mapopts;
	size_t i;

	MUST(a && b);
	MUST(!strcmp(a->map.device_path, b->map.device_path));
	MUST(!strcmp(a->map.sessname, b->map.sessname));
	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		if (!(IBNBD_SESSION_OPTS & 1u << i) &&
		    (o[i].kind == IBNBD_KIND_INT || o[i].kind == IBNBD_KIND_WORD))
			MUST(maps_same_value(&a->map, &b->map, i));
	MUST((a->given | 1u << MAPS_netdev) == (b->given | 1u << MAPS_netdev));
	MUST(a->nr_own == b->nr_own);
	for (i = 0; i < a->nr_own; i++)
		MUST(!strcmp(a->own[i], b->own[i]));
}

static void compare(const struct maps_saved *s, struct maps *m, const char *name)
{
	struct maps *after = maps_saved_after(s);
	size_t i;

	for (i = 0; i < m->nr; i++)
		if (!m->entries[i].bad && strcmp(m->entries[i].name, name))
			same_device(&m->entries[i], maps_find(after, m->entries[i].name));
	MUST(!s->touched[0]);
	for (i = 0; i < s->nr; i++)
		if (!s->will[i].bad && s->will[i].line.file != MAPS_SAVED_GONE)
			same_device(&s->will[i], maps_find(after, s->will[i].name));
	maps_free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps_entry e, *old = NULL;
	struct maps_saved s;
	char *why, *hint, *lost = NULL;
	const char *name = "";
	enum change what;
	struct maps *m;
	size_t split;

	if (size < 2)
		return 0;
	what = data[0] % NR_CHANGES;
	m = load(data + 2, size - 2);
	maps_saved_init(&s, m, DIR);
	if (m->nr_refused)
		goto out;
	free(maps_saved_split(&s, &split, &hint));
	free(hint);
	if (s.nr)
		old = &s.will[data[1] % s.nr];
	if (old && (!*old->name || old->line.file == MAPS_SAVED_GONE))
		old = NULL;
	hint = why = NULL;
	if (what == SAVE_NEW || (what == SAVE_BESIDE && old && !old->bad)) {
		fresh(&e, what == SAVE_NEW ? "fuzz-session" : old->map.sessname);
		name = e.name;
		/* unless the split is in the way */
		lost = maps_saved_find(&s, e.name) ? say_dup("it is there") :
						     maps_saved_lost(&s, &hint);
		free(hint);
		why = maps_saved_put(&s, &e, NULL, what == SAVE_BESIDE, &hint);
		if (what == SAVE_NEW && !lost && m->nr < MAPS_MAX) {
			MUST(!why);
			free(hint);
			lost = maps_saved_lost(&s, &hint);
			MUST(!lost);
		}
	} else if (old && what == FORGET) {
		name = old->name;
		why = maps_saved_remove(&s, old, &hint);
	} else if (old && what != SPLIT && !old->bad) {
		e = *old;
		name = e.name;
		if (what == SAVE_HOLD) {
			e.map.hold = 77;
			e.map.given |= 1u << IBNBD_OPT_hold;
		} else if (what == SAVE_POLICY) {
			e.map.policy = !e.map.policy;
			e.map.given |= 1u << IBNBD_OPT_policy;
		} else {
			strcpy(memset(e.map.sessname, 0, sizeof(e.map.sessname)), "other");
			e.made_session = false;
		}
		why = maps_saved_put(&s, &e, NULL, what == SAVE_POLICY, &hint);
		MUST(what != SAVE_SESSION || why || !strcmp(old->map.sessname, "other"));
	}
	free(hint);
	free(lost);
	hint = NULL;
	lost = why ? NULL : maps_saved_lost(&s, &hint);
	if (!why && !lost)
		compare(&s, m, name);
	free(hint);
	free(lost);
	free(why);
out:
	maps_saved_free(&s);
	maps_free(m);
	return 0;
}
