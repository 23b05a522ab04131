// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads one word of a line of maps.conf: an option of the mapping grammar, one of our own table, or
 * a field. A mistake is noted with its place and, if a known word is near, with that word as a
 * suggestion. The entry is then bad, and the caller goes on with the next word.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/host/host.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

const struct maps_option maps_options[MAPS_NR_OPTIONS] = {
#define MAPS_OPTION_ROW(id, key, kind, value, help) [MAPS_##id] = { key, MAPS_##kind, value, help },
	MAPS_OPTIONS(MAPS_OPTION_ROW)
#undef MAPS_OPTION_ROW
};

static_assert(MAPS_NR_OPTIONS <= 32, "struct maps_entry.given has 32 bits");

/* A key and its value within a word. */
struct option_word {
	const struct maps_token *t;
	char *key;
	const char *value;	/* part of the token's text, NULL = there is no '=' */
};

static struct maps_at option_value_at(const struct option_word *w, size_t pos, size_t len)
{
	struct maps_at at = w->t->at;
	size_t head = w->value ? (size_t)(w->value - w->t->text) : 0;

	if (!w->t->plain || head + pos > at.len)
		return at;
	at.off += head + pos;
	at.len -= head + pos;
	if (len && len < at.len)
		at.len = len;
	return at;
}

static struct maps_at option_key_at(const struct option_word *w)
{
	struct maps_at at = w->t->at;

	if (w->t->plain && w->value)
		at.len = (size_t)(w->value - w->t->text) - 1;
	return at;
}

void maps_bad(struct maps *m, struct maps_entry *e, struct maps_at at, char *msg, char *hint)
{
	maps_error(m, at, msg, hint);
	e->bad = true;
}

/* ---- options of our own ---- */

/*
 * Does the name of a unit end with its kind? systemd ignores a name without it, and says so only in
 * its log.
 */
static bool option_unit(const char *v)
{
	static const char *const kinds[] = {
		".service", ".target", ".mount", ".automount", ".device", ".socket",
		".path",    ".timer",  ".swap",	 ".slice",     ".scope",
	};
	size_t i, len = strlen(v), n;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		n = strlen(kinds[i]);
		if (len > n && !strcmp(v + len - n, kinds[i]))
			return true;
	}
	return false;
}

/* Does a part of the link end like udev's links of partitions, with -partN? */
static bool option_partition(const char *v)
{
	const char *p;

	for (p = strstr(v, "-part"); p; p = strstr(p, "-part")) {
		p += 5;
		if (*p >= '0' && *p <= '9' && strchr("/", p[strspn(p, "0123456789")]))
			return true;
	}
	return false;
}

static bool option_value_ok(const struct maps_option *o, const char *v, int64_t *n)
{
	const char *p;

	switch (o->kind) {
	case MAPS_SPAN:
		return maps_span(v, n);
	case MAPS_SIZE:
		return maps_size(v, n) && *n > 0;
	case MAPS_NUMBER:
		return maps_size(v, n) && strspn(v, "0123456789") == strlen(v) && *n <= 1 << 20;
	case MAPS_LINK:
		if (*v == '/' || strstr(v, "//") || !strncmp(v, "by-", 3) || !*v ||
		    v[strlen(v) - 1] == '/' || strlen(v) > 200 || option_partition(v) ||
		    !maps_made_of(v, "/._-+:@="))
			return false;
		for (p = v; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
			if (*p == '.')
				return false;
		return true;
	case MAPS_UNIT:
		if (!option_unit(v))
			return false;
		/* fall through */
	default:
		return maps_made_of(v, "._-@:\\") && strlen(v) < 256;
	}
}

static const char *option_value_help(const struct maps_option *o)
{
	switch (o->kind) {
	case MAPS_SPAN:
		return "a time is expected: 90s, 5min, 2h or infinity";
	case MAPS_SIZE:
		return "a size is expected: bytes, or with K, M, G, T, P";
	case MAPS_NUMBER:
		return "a number of KiB is expected, at most 1048576";
	case MAPS_LINK:
		return "a name below /dev/ibnbd is expected, of letters, digits and ./_-+:@=; no part begins with '.', the first not with by-, none ends with -part1 and the like, which are partitions";
	case MAPS_UNIT:
		return "the whole name of a unit is expected: foo.service";
	default:
		return "letters, digits and ._-@:\\ are possible";
	}
}

static void option_own(struct maps *m, struct maps_entry *e, const struct option_word *w, int id,
		       bool defaults)
{
	const struct maps_option *o = &maps_options[id];
	int64_t n = 0;

	if (defaults &&
	    (id == MAPS_link || id == MAPS_uuid || id == MAPS_size || id == MAPS_override)) {
		maps_bad(m, e, option_key_at(w),
			 say_fmt("%s cannot be a default: it belongs to one device", o->key), NULL);
		return;
	}
	if (maps_given(e, id)) {
		maps_bad(m, e, w->t->at, say_fmt("%s is given twice", o->key), NULL);
		return;
	}
	if (o->kind == MAPS_FLAG) {
		if (w->value) {
			maps_bad(m, e, w->t->at, say_fmt("%s takes no value", o->key),
				 say_fmt("say just %s", o->key));
			return;
		}
		if ((id == MAPS_wait && maps_given(e, MAPS_nowait)) ||
		    (id == MAPS_nowait && maps_given(e, MAPS_wait))) {
			maps_bad(m, e, w->t->at, say_dup("wait and nowait are opposites"), NULL);
			return;
		}
		e->given |= 1u << id;
		return;
	}
	if (!w->value || !*w->value) {
		maps_bad(m, e, w->t->at, say_fmt("%s needs a value", o->key),
			 say_fmt("%s=%s: %s", o->key, o->value, o->help));
		return;
	}
	if (!option_value_ok(o, w->value, &n)) {
		maps_bad(m, e, option_value_at(w, 0, 0),
			 say_fmt("%s: \"%s\" is not possible", o->key, w->value),
			 say_dup(option_value_help(o)));
		return;
	}
	e->given |= 1u << id;
	e->text[id] = say_dup(w->value);
	e->number[id] = n;
}

/* ---- options of the grammar ---- */

/*
 * Suggest a word for a wrong @value. NULL also if @value is one of the words: then the mistake is
 * another one.
 */
static char *option_words_hint(const char *key, const char *value)
{
	const struct ibnbd_mapopt *o = maps_grammar(key);
	const char *p, *near = NULL;
	char word[32], found[32];
	size_t len;

	for (p = o ? o->words : NULL; p && *p; p += len + (p[len] != 0)) {
		len = strcspn(p, "|:");
		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		if (!strcmp(value, word))
			return NULL;
		near = say_nearest(value, near, word) == word ? strcpy(found, word) : near;
	}
	return near ? say_fmt("did you mean \"%s\"?", near) : NULL;
}

/* Is it more than SOURCE,DESTINATION? */
static bool option_many(const char *s)
{
	size_t n = 0;

	if (strstr(s, "path="))
		return true;
	for (; *s; s++)
		n += *s == ',' || *s == '@';
	return n > 1;
}

static void option_path(struct maps *m, struct maps_entry *e, const struct option_word *w)
{
	struct ibtrs_addr_pair pair;
	struct ibnbd_mapopt_err err;
	const char *why;
	char *names __free(free) = NULL;
	bool bad;

	e->path_at = w->t->at;
	bad = ibtrs_addr_pair_parse(w->value, strlen(w->value), &pair, &why);
	if (bad && host_is_name(w->value, strlen(w->value))) {
		for (size_t i = 0; i < e->nr_hosts; i++) {
			if (!strcmp(e->host[i], w->value)) {
				maps_bad(m, e, option_value_at(w, 0, 0),
					 say_fmt("path: \"%s\" is given twice", w->value), NULL);
				return;
			}
		}
		if (e->nr_hosts + e->map.nr_paths >= IBNBD_MAP_PATHS) {
			maps_bad(m, e, option_value_at(w, 0, 0),
				 say_fmt("more than %d paths", IBNBD_MAP_PATHS),
				 say_dup("add the others with ibnbd path add"));
			return;
		}
		e->host_at[e->nr_hosts] = w->t->at;
		e->host[e->nr_hosts++] = say_dup(w->value);
		names = host_names(w->value);
		maps_warn(m, option_value_at(w, 0, 0),
			  say_fmt("%s must be resolved when the machine boots", names),
			  say_dup("an address does not depend on a name service"));
		return;
	}
	if (e->nr_hosts && e->nr_hosts + e->map.nr_paths >= IBNBD_MAP_PATHS) {
		maps_bad(m, e, option_value_at(w, 0, 0),
			 say_fmt("more than %d paths", IBNBD_MAP_PATHS), NULL);
		return;
	}
	if (bad) {
		maps_bad(
			m, e, option_value_at(w, 0, 0),
			say_fmt("path: \"%.64s\": %s", w->value,
				host_wrong(w->value, strlen(w->value), why)),
			say_dup(option_many(w->value) ?
					"path=[SOURCE,]DESTINATION is one path; several paths are several path=" :
					"path=[SOURCE,]DESTINATION, addresses as 10.0.1.7, ip:[fe80::1%eth2], gid:fe80:...:b2c3"));
		return;
	}
	if (ibnbd_mapopt_set(&e->map, "path", w->value, &err)) {
		maps_bad(m, e, option_value_at(w, err.pos, err.len), say_dup(err.msg), NULL);
		return;
	}
	e->addr_at[e->map.nr_paths - 1] = w->t->at;
	if (pair.src.kind != IBTRS_ADDR_NONE && ibtrs_addr_equal(&pair.src, &pair.dst))
		maps_warn(
			m, option_value_at(w, 0, 0),
			say_dup("source and destination are the same: this host is its own server"),
			NULL);
}

static void option_grammar(struct maps *m, struct maps_entry *e, const struct option_word *w)
{
	struct ibnbd_mapopt_err err;

	if (!*w->value) {
		maps_bad(m, e, w->t->at, say_fmt("%s has no value", w->key), NULL);
		return;
	}
	if (!strcmp(w->key, "path") || !strcmp(w->key, "server")) {
		option_path(m, e, w);
		return;
	}
	if (ibnbd_mapopt_set(&e->map, w->key, w->value, &err))
		maps_bad(m, e, option_value_at(w, err.pos, err.len), say_dup(err.msg),
			 option_words_hint(w->key, w->value));
}

/* ---- any option ---- */

/* Keep a word for the administrator's own tools. */
static void option_keep(struct maps_entry *e, const char *text)
{
	e->own = say_grow(e->own, (e->nr_own + 1) * sizeof(*e->own));
	e->own[e->nr_own++] = say_dup(text);
}

const struct ibnbd_mapopt *maps_grammar(const char *key)
{
	const struct ibnbd_mapopt *o;
	size_t nr, i;

	o = ibnbd_mapopt_table(&nr);
	for (i = 0; i < nr; i++)
		if (!say_distance(key, o[i].key) || (o[i].alias && !say_distance(key, o[i].alias)))
			return &o[i];
	return NULL;
}

static int option_find_own(const char *key)
{
	for (int i = 0; i < MAPS_NR_OPTIONS; i++)
		if (!say_distance(key, maps_options[i].key))
			return i;
	return -1;
}

bool maps_is_access(const char *word)
{
	return !strcmp(word, "ro") || !strcmp(word, "rw") || !strcmp(word, "migration");
}

bool maps_is_option(const char *word)
{
	int own = option_find_own(word);

	return maps_is_access(word) || (own >= 0 && maps_options[own].kind == MAPS_FLAG);
}

static void option_try(const char *key, const char *name, bool value, unsigned int *best, char *out,
		       size_t size)
{
	unsigned int d = say_distance(key, name);

	if (d >= *best)
		return;
	*best = d;
	snprintf(out, size, "%s%s", name, value ? "=" : "");
}

static char *option_unknown_hint(const char *key)
{
	unsigned int best = (unsigned int)strlen(key) / 3 + 1;
	const struct ibnbd_mapopt *o, *found;
	char name[64] = "", *words __free(free) = NULL, *p;
	const char *from;
	size_t nr, i;
	int j;

	o = ibnbd_mapopt_table(&nr);
	for (i = 0; i < nr; i++) {
		if (i == IBNBD_OPT_sessname || i == IBNBD_OPT_device_path || i == IBNBD_OPT_name)
			continue;
		option_try(key, o[i].key, true, &best, name, sizeof(name));
		if (o[i].alias)
			option_try(key, o[i].alias, true, &best, name, sizeof(name));
	}
	for (j = 0; j < MAPS_NR_OPTIONS; j++)
		option_try(key, maps_options[j].key, maps_options[j].value != NULL, &best, name,
			   sizeof(name));
	if (!*name)
		return say_dup(
			"ibnbd-maps.conf(5) lists all options; names of your own begin with x-");
	snprintf(name + strcspn(name, "="), 1, "%s", "");
	found = maps_grammar(name);
	j = option_find_own(name);
	if (!found)
		return say_fmt("did you mean \"%s%s\"?", name,
			       j >= 0 && maps_options[j].value ? "=" : "");
	if (!found->words)
		return say_fmt("did you mean \"%s=\"?", name);
	/* "a:b|c" -> "a, c": the synonyms would only confuse. */
	words = say_alloc(2 * strlen(found->words) + 1);
	for (p = words, from = found->words; *from; from += *from == '|') {
		p += sprintf(p, "%s%.*s", p > words ? ", " : "", (int)strcspn(from, ":|"), from);
		from += strcspn(from, "|");
	}
	return say_fmt("did you mean \"%s=\"?  known values: %s", name, words);
}

static bool option_field(const char *key, const char **which)
{
	const struct ibnbd_mapopt *o = maps_grammar(key);
	size_t nr;
	size_t id = o ? (size_t)(o - ibnbd_mapopt_table(&nr)) : IBNBD_MAPOPT_COUNT;

	*which = id == IBNBD_OPT_name ? "first" :
		 id == IBNBD_OPT_device_path ? "second" :
		 id == IBNBD_OPT_sessname ? "third" : NULL;
	return *which;
}

void maps_take_option(struct maps *m, struct maps_entry *e, const struct maps_token *t,
		      bool defaults)
{
	const char *eq = strchr(t->text, '='), *which;
	struct option_word w = { .t = t, .value = eq ? eq + 1 : NULL };
	int own;

	w.key = say_fmt("%.*s", eq ? (int)(eq - t->text) : (int)strlen(t->text), t->text);
	own = option_find_own(w.key);
	if (!*w.key)
		maps_bad(m, e, t->at,
			 say_dup(eq ? "there is no option before '='" : "an empty word"), NULL);
	else if (!strcmp(w.key, "timeout"))
		maps_bad(m, e, option_key_at(&w), say_dup("timeout can mean two things"),
			 say_dup("start-timeout= for the boot, io-timeout= for a request"));
	else if (own >= 0)
		option_own(m, e, &w, own, defaults);
	else if (!strncmp(w.key, "x-", 2))
		option_keep(e, t->text);
	else if (option_field(w.key, &which))
		maps_bad(m, e, option_key_at(&w),
			 say_fmt("%s is the %s word of a line, not an option", w.key, which), NULL);
	else if (!w.value && maps_is_access(w.key)) {
		struct option_word access = { .t = t,
					      .key = (char *)"access_mode",
					      .value = t->text };

		option_grammar(m, e, &access);
	} else if (!maps_grammar(w.key))
		maps_bad(m, e, option_key_at(&w), say_fmt("unknown option \"%s\"", t->text),
			 option_unknown_hint(w.key));
	else if (!w.value)
		maps_bad(m, e, t->at, say_fmt("%s needs a value", w.key),
			 say_fmt("%s=%s: %s", w.key, maps_grammar(w.key)->value,
				 maps_grammar(w.key)->help));
	else if (defaults && maps_grammar(w.key)->flags & IBNBD_OPT_REPEAT)
		maps_bad(m, e, option_key_at(&w),
			 say_dup("path cannot be a default: it belongs to one session"), NULL);
	else
		option_grammar(m, e, &w);
	free(w.key);
}

void maps_take_word(struct maps *m, struct maps_entry *e, const char *key,
		    const struct maps_token *t)
{
	struct option_word w = { .t = t, .value = t->text };
	struct ibnbd_mapopt_err err;

	if (ibnbd_mapopt_set(&e->map, key, t->text, &err))
		maps_bad(m, e, option_value_at(&w, err.pos, err.len), say_dup(err.msg), NULL);
	else if (strchr(t->text, '='))
		maps_bad(
			m, e, option_value_at(&w, (size_t)(strchr(t->text, '=') - t->text), 1),
			say_fmt("'=' in the %s", key),
			say_dup("a line begins with three words: name, device, session; then come options"));
}
