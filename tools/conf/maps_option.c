// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads one word of a line of maps.conf: an option of the mapping grammar, one of our own table, or
 * a field. A mistake is noted with its place and, if a known word is near, with that word as a
 * suggestion. The entry is then bad, and the caller goes on with the next word.
 */
#include <fnmatch.h>
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
	const char *key;
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

/* systemd ignores the name of a unit without its kind, and says so only in its log. */
#define OPTION_UNIT \
	"?*.@(service|target|mount|automount|device|socket|path|timer|swap|slice|scope)"
/* Not a name below /dev/ibnbd, hidden there, one of ours, or as udev calls a partition. */
#define OPTION_NO_LINK "@(/*|*/|*//*|.*|*/.*|by-*|*-part+([0-9])?(/*))"

static bool option_value_ok(const struct maps_option *o, const char *v, int64_t *n)
{
	switch (o->kind) {
	case MAPS_SPAN:
		return maps_span(v, n);
	case MAPS_SIZE:
		return maps_size(v, n) && *n > 0;
	case MAPS_NUMBER:
		return maps_size(v, n) && strspn(v, "0123456789") == strlen(v) && *n <= 1 << 20;
	case MAPS_LINK:
		return *v && strlen(v) <= 200 && maps_made_of(v, "/._-+:@=") &&
		       fnmatch(OPTION_NO_LINK, v, FNM_EXTMATCH) == FNM_NOMATCH;
	case MAPS_UNIT:
		if (fnmatch(OPTION_UNIT, v, FNM_EXTMATCH))
			return false;
		/* fall through */
	default:
		return maps_made_of(v, "._-@:\\") && strlen(v) < 256;
	}
}

static const char *const option_expected[] = {
	[MAPS_SPAN] = "a time is expected: 90s, 5min, 2h or infinity",
	[MAPS_SIZE] = "a size is expected: bytes, or with K, M, G, T, P",
	[MAPS_NUMBER] = "a number of KiB is expected, at most 1048576",
	[MAPS_LINK] = "a name below /dev/ibnbd is expected, of letters, digits and ./_-+:@=; no part begins with '.', the first not with by-, none ends with -part1 and the like, which are partitions",
	[MAPS_UNIT] = "the whole name of a unit is expected: foo.service",
	[MAPS_WORD] = "letters, digits and ._-@:\\ are possible",
};

static void option_own(struct maps *m, struct maps_entry *e, const struct option_word *w, int id,
		       bool defaults)
{
	const struct maps_option *o = &maps_options[id];
	bool flag = o->kind == MAPS_FLAG;

	if (defaults &&
	    (id == MAPS_link || id == MAPS_uuid || id == MAPS_size || id == MAPS_override)) {
		maps_bad(m, e, option_key_at(w),
			 say_fmt("%s cannot be a default: it belongs to one device", o->key), NULL);
	} else if (maps_given(e, id)) {
		maps_bad(m, e, w->t->at, say_fmt("%s is given twice", o->key), NULL);
	} else if (flag && w->value) {
		maps_bad(m, e, w->t->at, say_fmt("%s takes no value", o->key),
			 say_fmt("say just %s", o->key));
	} else if (maps_opposed(e, id)) {
		maps_bad(m, e, w->t->at, say_dup("wait and nowait are opposites"), NULL);
	} else if (!flag && (!w->value || !*w->value)) {
		maps_bad(m, e, w->t->at, say_fmt("%s needs a value", o->key),
			 say_fmt("%s=%s: %s", o->key, o->value, o->help));
	} else if (!flag && !option_value_ok(o, w->value, &e->number[id])) {
		maps_bad(m, e, option_value_at(w, 0, 0),
			 say_fmt("%s: \"%s\" is not possible", o->key, w->value),
			 say_dup(option_expected[o->kind]));
	} else {
		e->given |= 1u << id;
		e->text[id] = flag ? NULL : say_dup(w->value);
	}
}

/* ---- options of the grammar ---- */

/*
 * Suggest a word for a wrong @value. NULL also if @value is one of the words: then the mistake is
 * another one.
 */
static char *option_words_hint(const char *key, const char *value)
{
	const struct ibnbd_mapopt *o = maps_grammar(key);
	char *words __free(free) = say_dup(o && o->words ? o->words : ""), *word, *save = NULL;
	const char *near = NULL;

	for (word = strtok_r(words, "|:", &save); word; word = strtok_r(NULL, "|:", &save)) {
		if (!strcmp(value, word))
			return NULL;
		near = say_nearest(value, near, word);
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

static void option_host(struct maps *m, struct maps_entry *e, const struct option_word *w)
{
	char *names __free(free) = host_names(w->value);
	size_t i = 0;

	while (i < e->nr_hosts && strcmp(e->host[i], w->value))
		i++;
	if (i < e->nr_hosts) {
		maps_bad(m, e, option_value_at(w, 0, 0),
			 say_fmt("path: \"%s\" is given twice", w->value), NULL);
	} else if (i + e->map.nr_paths >= IBNBD_MAP_PATHS) {
		maps_bad(m, e, option_value_at(w, 0, 0),
			 say_fmt("more than %d paths", IBNBD_MAP_PATHS),
			 say_dup("add the others with ibnbd path add"));
	} else {
		e->host_at[i] = w->t->at;
		e->host[e->nr_hosts++] = say_dup(w->value);
		maps_warn(m, option_value_at(w, 0, 0),
			  say_fmt("%s must be resolved when the machine boots", names),
			  say_dup("an address does not depend on a name service"));
	}
}

static void option_path(struct maps *m, struct maps_entry *e, const struct option_word *w)
{
	struct ibtrs_addr_pair pair;
	struct ibnbd_mapopt_err err;
	const char *why;
	bool bad;

	e->path_at = w->t->at;
	bad = ibtrs_addr_pair_parse(w->value, strlen(w->value), &pair, &why);
	if (bad && host_is_name(w->value)) {
		option_host(m, e, w);
	} else if (e->nr_hosts && e->nr_hosts + e->map.nr_paths >= IBNBD_MAP_PATHS) {
		maps_bad(m, e, option_value_at(w, 0, 0),
			 say_fmt("more than %d paths", IBNBD_MAP_PATHS), NULL);
	} else if (bad) {
		maps_bad(
			m, e, option_value_at(w, 0, 0),
			say_fmt("path: \"%.64s\": %s", w->value,
				host_wrong(w->value, why)),
			say_dup(option_many(w->value) ?
					"path=[SOURCE,]DESTINATION is one path; several paths are several path=" :
					"path=[SOURCE,]DESTINATION, addresses as 10.0.1.7, ip:[fe80::1%eth2], gid:fe80:...:b2c3"));
	} else if (ibnbd_mapopt_set(&e->map, "path", w->value, &err)) {
		maps_bad(m, e, option_value_at(w, err.pos, err.len), say_dup(err.msg), NULL);
	} else {
		e->addr_at[e->map.nr_paths - 1] = w->t->at;
		if (pair.src.kind != IBTRS_ADDR_NONE && ibtrs_addr_equal(&pair.src, &pair.dst))
			maps_warn(
				m, option_value_at(w, 0, 0),
				say_dup("source and destination are the same: this host is its own server"),
				NULL);
	}
}

static void option_grammar(struct maps *m, struct maps_entry *e, const struct option_word *w)
{
	struct ibnbd_mapopt_err err;

	if (!*w->value)
		maps_bad(m, e, w->t->at, say_fmt("%s has no value", w->key), NULL);
	else if (!strcmp(w->key, "path") || !strcmp(w->key, "server"))
		option_path(m, e, w);
	else if (ibnbd_mapopt_set(&e->map, w->key, w->value, &err))
		maps_bad(m, e, option_value_at(w, err.pos, err.len), say_dup(err.msg),
			 option_words_hint(w->key, w->value));
}

/* ---- any option ---- */

const struct ibnbd_mapopt *maps_grammar(const char *key)
{
	const struct ibnbd_mapopt *o;

	for (o = ibnbd_mapopts; o < ibnbd_mapopts + IBNBD_MAPOPT_COUNT; o++)
		if (!say_distance(key, o->key) || (o->alias && !say_distance(key, o->alias)))
			return o;
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

/* Which word of a line it is: then it is no option. NULL: it is one. */
static const char *option_field(const struct ibnbd_mapopt *o)
{
	return o == &ibnbd_mapopts[IBNBD_OPT_name] ? "first" :
	       o == &ibnbd_mapopts[IBNBD_OPT_device_path] ? "second" :
	       o == &ibnbd_mapopts[IBNBD_OPT_sessname] ? "third" : NULL;
}

static char *option_unknown_hint(const char *key)
{
	const struct ibnbd_mapopt *o, *found;
	const char *near = NULL, *from;
	char *words __free(free) = NULL;

	for (o = ibnbd_mapopts; o < ibnbd_mapopts + IBNBD_MAPOPT_COUNT; o++) {
		if (option_field(o))
			continue;
		near = say_nearest(key, near, o->key);
		if (o->alias)
			near = say_nearest(key, near, o->alias);
	}
	for (int j = 0; j < MAPS_NR_OPTIONS; j++)
		near = say_nearest(key, near, maps_options[j].key);
	if (!near || say_distance(key, near) > strlen(key) / 3)
		return say_dup(
			"ibnbd-maps.conf(5) lists all options; names of your own begin with x-");
	found = maps_grammar(near);
	if (!found)
		return say_fmt("did you mean \"%s%s\"?", near,
			       maps_options[option_find_own(near)].value ? "=" : "");
	if (!found->words)
		return say_fmt("did you mean \"%s=\"?", near);
	/* "a:b|c" -> "a, c": the synonyms would only confuse. */
	for (from = found->words; *from; from += *from == '|') {
		say_append(&words, "%s%.*s", words ? ", " : "", (int)strcspn(from, ":|"), from);
		from += strcspn(from, "|");
	}
	return say_fmt("did you mean \"%s=\"?  known values: %s", near, words);
}

void maps_take_option(struct maps *m, struct maps_entry *e, const struct maps_token *t,
		      bool defaults)
{
	const char *eq = strchr(t->text, '=');
	char *key __free(free) = say_fmt("%.*s", (int)strcspn(t->text, "="), t->text);
	struct option_word w = { .t = t, .key = key, .value = eq ? eq + 1 : NULL };
	const struct ibnbd_mapopt *o = maps_grammar(key);
	int own = option_find_own(key);

	if (!*w.key)
		maps_bad(m, e, t->at,
			 say_dup(eq ? "there is no option before '='" : "an empty word"), NULL);
	else if (!strcmp(w.key, "timeout"))
		maps_bad(m, e, option_key_at(&w), say_dup("timeout can mean two things"),
			 say_dup("start-timeout= for the boot, io-timeout= for a request"));
	else if (own >= 0)
		option_own(m, e, &w, own, defaults);
	else if (!strncmp(w.key, "x-", 2)) {
		/* a word for the administrator's own tools */
		e->own = say_grow(e->own, (e->nr_own + 1) * sizeof(*e->own));
		e->own[e->nr_own++] = say_dup(t->text);
	} else if (option_field(o))
		maps_bad(m, e, option_key_at(&w),
			 say_fmt("%s is the %s word of a line, not an option", w.key,
				 option_field(o)),
			 NULL);
	else if (!w.value && maps_is_access(w.key)) {
		struct option_word access = { t, "access_mode", t->text };

		option_grammar(m, e, &access);
	} else if (!o)
		maps_bad(m, e, option_key_at(&w), say_fmt("unknown option \"%s\"", t->text),
			 option_unknown_hint(w.key));
	else if (!w.value)
		maps_bad(m, e, t->at, say_fmt("%s needs a value", w.key),
			 say_fmt("%s=%s: %s", w.key, o->value, o->help));
	else if (defaults && o->flags & IBNBD_OPT_REPEAT)
		maps_bad(m, e, option_key_at(&w),
			 say_dup("path cannot be a default: it belongs to one session"), NULL);
	else
		option_grammar(m, e, &w);
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
