// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Parser of the mapping grammar. The header describes the language; this file only walks the table.
 *
 * The input comes from an administrator or a faulty script: any byte, no terminator.
 *
 * A refusal fills the caller's struct ibnbd_mapopt_err once, for the first mistake, and leaves the
 * map undefined. Control characters are refused before anything else, so no message contains one.
 * Nothing is allocated; the stack need is a few hundred bytes.
 */
#include "ibnbd/logic/mapopt.h"
#include "ibnbd/logic/text.h"

#define MAPOPT_SHOWN	32	/* bytes of the user's text that a message repeats */

const struct ibnbd_mapopt ibnbd_mapopts[IBNBD_MAPOPT_COUNT] = {
#define MAPOPT_ROW(_field, _key, _alias, _kind, _min, _max, _def, _flags, _words,	\
		   _value, _help)						\
	[IBNBD_OPT_##_field] = {								\
		.key = _key, .alias = _alias, .kind = IBNBD_KIND_##_kind,			\
		.min = _min, .max = _max, .def = _def, .flags = _flags, .words = _words,	\
		.value = _value, .help = _help, .offset = offsetof(struct ibnbd_map, _field),	\
		.size = sizeof(((struct ibnbd_map *)0)->_field),				\
	},
	IBNBD_MAPOPTS(MAPOPT_ROW)
#undef MAPOPT_ROW
};

static_assert(IBNBD_MAPOPT_COUNT <= 32, "struct ibnbd_map.given has 32 bits");

/* A piece of the user's text. */
struct mapopt_span {
	const char *s;
	size_t len;
	size_t pos;		/* of @s, as struct ibnbd_mapopt_err counts */
};

/* @v: what is wrong. */
__printf(3, 4) static int mapopt_refuse(struct ibnbd_mapopt_err *err, struct mapopt_span v,
					const char *fmt, ...)
{
	va_list ap;

	err->pos = v.pos;
	err->len = v.len;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* @len bytes of @v from @at on. */
static struct mapopt_span mapopt_part(struct mapopt_span v, size_t at, size_t len)
{
	return (struct mapopt_span){ v.s + at, len, v.pos + at };
}

/* Length to show with "%.*s". */
static int mapopt_shown(size_t len)
{
	return len < MAPOPT_SHOWN ? (int)len : MAPOPT_SHOWN;
}

static char mapopt_fold(char c)
{
	return c == '-' ? '_' : c;
}

static bool mapopt_is(struct mapopt_span w, const char *name)
{
	size_t i;

	if (!name)
		return false;
	for (i = 0; i < w.len; i++)
		if (!name[i] || mapopt_fold(w.s[i]) != mapopt_fold(name[i]))
			return false;
	return !name[i];
}

static const struct ibnbd_mapopt *mapopt_find(struct mapopt_span key)
{
	size_t i;

	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		if (mapopt_is(key, ibnbd_mapopts[i].key) || mapopt_is(key, ibnbd_mapopts[i].alias))
			return &ibnbd_mapopts[i];
	return NULL;
}

/* The most similar key, or NULL if none is similar: one wrong letter in three is accepted. */
static const char *mapopt_nearest(struct mapopt_span w)
{
	unsigned int best = w.len / 3 + 1, d;
	const char *name, *found = NULL;
	size_t i;

	if (w.len < 2)
		return NULL;
	for (i = 0; i < 2 * IBNBD_MAPOPT_COUNT; i++) {
		name = i % 2 ? ibnbd_mapopts[i / 2].alias : ibnbd_mapopts[i / 2].key;
		d = name ? ibnbd_nearest_distance(w.s, w.len, name) : best;
		if (d < best) {
			best = d;
			found = name;
		}
	}
	return found;
}

static int mapopt_unknown(struct mapopt_span key, struct ibnbd_mapopt_err *err)
{
	const char *near = mapopt_nearest(key);

	if (near)
		return mapopt_refuse(err, key, "unknown key \"%.*s\", did you mean \"%s\"?",
				     mapopt_shown(key.len), key.s, near);
	return mapopt_refuse(err, key, "unknown key \"%.*s\"", mapopt_shown(key.len), key.s);
}

/* Length of the first name at @s in a word list; words are separated by '|', synonyms by ':'. */
static size_t mapopt_word_len(const char *s)
{
	size_t n = 0;

	while (s[n] && s[n] != '|' && s[n] != ':')
		n++;
	return n;
}

/* Index of @v in @words, or -1. */
static int mapopt_word_index(const char *words, struct mapopt_span v)
{
	int index = 0;

	for (;;) {
		size_t n = mapopt_word_len(words);

		if (n == v.len && !memcmp(words, v.s, n))
			return index;
		words += n;
		if (!*words)
			return -1;
		index += *words++ == '|';
	}
}

int ibnbd_mapopt_word(enum ibnbd_mapopt_id id, int value, char *buf, size_t size)
{
	const char *words = (unsigned int)id < IBNBD_MAPOPT_COUNT ? ibnbd_mapopts[id].words : NULL;

	while (words && value > 0) {
		words = strchr(words, '|');
		if (words)
			words++;
		value--;
	}
	if (!words || value)
		return scnprintf(buf, size, "?");
	return scnprintf(buf, size, "%.*s", (int)mapopt_word_len(words), words);
}

/* Prints the words for a message: "a, b or c", without synonyms. */
static void mapopt_words_text(const char *words, char *buf, size_t size)
{
	size_t n = 0;

	for (;;) {
		const char *next = strchr(words, '|');

		n += (size_t)scnprintf(buf + n, size - n, "%.*s", (int)mapopt_word_len(words),
				       words);
		if (!next)
			return;
		n += (size_t)scnprintf(buf + n, size - n, "%s",
				       strchr(next + 1, '|') ? ", " : " or ");
		words = next + 1;
	}
}

/* [+-]decimal or [+-]0xhex. A leading zero is refused: some tools read it as octal. */
static bool mapopt_number(struct mapopt_span v, s64 *out)
{
	bool negative = v.len && v.s[0] == '-';
	s64 base = 10, n = 0;
	size_t i = v.len && (v.s[0] == '-' || v.s[0] == '+');

	if (v.len - i > 2 && v.s[i] == '0' && (v.s[i + 1] == 'x' || v.s[i + 1] == 'X')) {
		base = 16;
		i += 2;
	} else if (v.len - i > 1 && v.s[i] == '0') {
		return false;
	}
	if (i == v.len || v.len - i > 12)
		return false;
	for (; i < v.len; i++) {
		int d = ibtrs_hex(v.s[i]);

		if (d < 0 || d >= base)
			return false;
		n = n * base + d;
	}
	*out = negative ? -n : n;
	return true;
}

static int mapopt_set_int(const struct ibnbd_mapopt *o, int *field, struct mapopt_span v,
			  struct ibnbd_mapopt_err *err)
{
	s64 n;

	if (!mapopt_number(v, &n))
		return mapopt_refuse(err, v, "%s: \"%.*s\" is not a number from %d to %d", o->key,
				     mapopt_shown(v.len), v.s, o->min, o->max);
	if (n < o->min || n > o->max)
		return mapopt_refuse(err, v, "%s: %.*s is out of range, %d to %d are possible",
				     o->key, mapopt_shown(v.len), v.s, o->min, o->max);
	*field = (int)n;
	return 0;
}

static int mapopt_set_word(const struct ibnbd_mapopt *o, int *field, struct mapopt_span v,
			   struct ibnbd_mapopt_err *err)
{
	int index = mapopt_word_index(o->words, v);
	char words[64];

	if (index < 0) {
		mapopt_words_text(o->words, words, sizeof(words));
		return mapopt_refuse(err, v, "%s: \"%.*s\" is not %s", o->key,
				     mapopt_shown(v.len), v.s, words);
	}
	*field = index;
	return 0;
}

/* Index of the first byte of @v that is in @set, or v.len. */
static size_t mapopt_find_any(struct mapopt_span v, const char *set)
{
	size_t i;

	for (i = 0; i < v.len; i++)
		if (strchr(set, v.s[i]))
			break;
	return i;
}

static int mapopt_set_text(const struct ibnbd_mapopt *o, char *field, struct mapopt_span v,
			   struct ibnbd_mapopt_err *err)
{
	bool dots = o->kind == IBNBD_KIND_NAME, plain = dots || o->kind == IBNBD_KIND_KEY;
	const char *unseen;
	size_t i, n;
	u32 code;

	if (v.len >= o->size)
		return mapopt_refuse(err, v, "%s is %zu bytes long, at most %d are possible",
				     o->key, v.len, o->size - 1);
	if (o->kind == IBNBD_KIND_SESSION) {
		i = mapopt_find_any(v, "/.");
		if (i < v.len)
			return mapopt_refuse(err, mapopt_part(v, i, 1), "%s must not contain '%c'",
					     o->key, v.s[i]);
		for (i = 0; i < v.len; i++) {
			n = ibnbd_unseen(v.s + i, v.len - i, &code, &unseen);
			if (n)
				return mapopt_refuse(err, mapopt_part(v, i, n),
						     "%s must not contain an invisible character: %s, U+%04X",
						     o->key, unseen, code);
		}
	}
	for (i = 0; plain && i < v.len; i++)
		if (!ibtrs_key_name_ok(v.s + i, 1) && !(dots && i && v.s[i] == '.'))
			return mapopt_refuse(err, mapopt_part(v, i, 1),
					     "%s is made of letters, digits, %s", o->key, dots ?
					     "'.', '_' and '-', and does not begin with '.'" :
					     "'_' and '-'");
	memcpy(field, v.s, v.len);
	field[v.len] = 0;
	return 0;
}

static int mapopt_add_path(struct ibnbd_map *m, struct mapopt_span v, struct ibnbd_mapopt_err *err)
{
	struct ibtrs_addr_pair *new = &m->path[m->nr_paths], *old;
	const char *why = "not an address";
	int rc;

	if (m->nr_paths == IBNBD_MAP_PATHS) {
		mapopt_refuse(err, v, "more than %d paths; add_path takes more once the session is up",
			      IBNBD_MAP_PATHS);
		return -ENOMEM;
	}
	rc = ibtrs_addr_pair_parse(v.s, v.len, new, &why);
	if (rc) {
		mapopt_refuse(err, v, "path: \"%.*s\": %s", mapopt_shown(v.len), v.s, why);
		return rc;
	}
	for (old = m->path; old < new; old++)
		if (ibtrs_addr_equal(&old->src, &new->src) &&
		    ibtrs_addr_equal(&old->dst, &new->dst))
			return mapopt_refuse(err, v, "path: \"%.*s\" is given twice",
					     mapopt_shown(v.len), v.s);
	m->nr_paths++;
	return 0;
}

static int mapopt_store(struct ibnbd_map *m, const struct ibnbd_mapopt *o, struct mapopt_span v,
			struct ibnbd_mapopt_err *err)
{
	unsigned int id = (unsigned int)(o - ibnbd_mapopts);
	void *field = (char *)m + o->offset;
	int rc;

	if (ibnbd_map_given(m, id) && !(o->flags & IBNBD_OPT_REPEAT))
		return mapopt_refuse(err, v, "%s is given twice", o->key);
	if (!v.len)
		return mapopt_refuse(err, v, "%s has no value", o->key);
	switch (o->kind) {
	case IBNBD_KIND_PATH:
		rc = mapopt_add_path(m, v, err);
		break;
	case IBNBD_KIND_INT:
		rc = mapopt_set_int(o, field, v, err);
		break;
	case IBNBD_KIND_WORD:
		rc = mapopt_set_word(o, field, v, err);
		break;
	default:
		rc = mapopt_set_text(o, field, v, err);
		break;
	}
	if (!rc)
		m->given |= 1u << id;
	return rc;
}

static int mapopt_bare(struct ibnbd_map *m, struct mapopt_span w, struct ibnbd_mapopt_err *err)
{
	const struct ibnbd_mapopt *access = &ibnbd_mapopts[IBNBD_OPT_access_mode];
	const struct ibnbd_mapopt *o = mapopt_find(w);

	if (mapopt_word_index(access->words, w) >= 0)
		return mapopt_store(m, access, w, err);
	if (o)
		return mapopt_refuse(err, w, "%s needs a value: %s=%s", o->key, o->key, o->value);
	return mapopt_refuse(err, w, "\"%.*s\" is not key=value", mapopt_shown(w.len), w.s);
}

/* Parses one word. */
static int mapopt_token(struct ibnbd_map *m, struct mapopt_span w, struct ibnbd_mapopt_err *err)
{
	size_t eq = mapopt_find_any(w, "=");
	struct mapopt_span key = mapopt_part(w, 0, eq);
	const struct ibnbd_mapopt *o;

	if (eq == w.len)
		return mapopt_bare(m, w, err);
	if (!eq)
		return mapopt_refuse(err, w, "there is no key before '='");
	o = mapopt_find(key);
	if (!o)
		return mapopt_unknown(key, err);
	return mapopt_store(m, o, mapopt_part(w, eq + 1, w.len - eq - 1), err);
}

static int mapopt_no_control(struct mapopt_span w, bool blanks, struct ibnbd_mapopt_err *err)
{
	size_t i;

	for (i = 0; i < w.len; i++) {
		unsigned char c = (unsigned char)w.s[i];

		if (c == '\r')
			return mapopt_refuse(err, mapopt_part(w, i, 1),
					     "carriage return: is this a DOS text file?");
		if (ibnbd_is_control(w.s[i]) && !(blanks && c == '\t'))
			return mapopt_refuse(err, mapopt_part(w, i, 1), "control character 0x%02x", c);
		if (!blanks && c == ' ')
			return mapopt_refuse(err, mapopt_part(w, i, 1),
					     "a value cannot contain blanks");
	}
	return 0;
}

void ibnbd_mapopt_init(struct ibnbd_map *m)
{
	size_t i;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		if (ibnbd_mapopts[i].kind == IBNBD_KIND_INT ||
		    ibnbd_mapopts[i].kind == IBNBD_KIND_WORD)
			*(int *)((char *)m + ibnbd_mapopts[i].offset) = ibnbd_mapopts[i].def;
}

int ibnbd_mapopt_set(struct ibnbd_map *m, const char *key, const char *value,
		     struct ibnbd_mapopt_err *err)
{
	struct mapopt_span k = { key, strlen(key) }, v = { value, strlen(value) };
	const struct ibnbd_mapopt *o;

	if (mapopt_no_control(k, false, err) || mapopt_no_control(v, false, err))
		return -EINVAL;
	o = mapopt_find(k);
	if (!o)
		return mapopt_unknown(k, err);
	return mapopt_store(m, o, v, err);
}

int ibnbd_mapopt_finish(const struct ibnbd_map *m, struct ibnbd_mapopt_err *err)
{
	const struct mapopt_span none = {};
	size_t i;

	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		if (ibnbd_mapopts[i].flags & IBNBD_OPT_REQUIRED && !ibnbd_map_given(m, i))
			return mapopt_refuse(err, none, "%s=%s is missing",
					     ibnbd_mapopts[i].key, ibnbd_mapopts[i].value);
	if (m->reconnect_delay_ms > m->reconnect_max_ms)
		return mapopt_refuse(err, none,
				     "reconnect_delay_ms (%d) is above reconnect_max_ms (%d)",
				     m->reconnect_delay_ms, m->reconnect_max_ms);
	return 0;
}

int ibnbd_mapopt_parse(const char *line, size_t len, struct ibnbd_map *m,
		       struct ibnbd_mapopt_err *err)
{
	struct mapopt_span all = { line, len }, w;
	size_t pos;
	int rc;

	while (all.len && line[all.len - 1] == '\n')
		all.len--;
	if (all.len > IBNBD_MAP_LINE_MAX)
		return mapopt_refuse(err, mapopt_part(all, IBNBD_MAP_LINE_MAX,
						      all.len - IBNBD_MAP_LINE_MAX),
				     "the line is longer than %d bytes", IBNBD_MAP_LINE_MAX);
	rc = mapopt_no_control(all, true, err);
	if (rc)
		return rc;
	ibnbd_mapopt_init(m);
	for (pos = 0; pos < all.len; pos += w.len + 1) {
		w = mapopt_part(all, pos, 0);
		while (pos + w.len < all.len && !ibnbd_is_blank(w.s[w.len]))
			w.len++;
		rc = w.len ? mapopt_token(m, w, err) : 0;
		if (rc)
			return rc;
	}
	rc = ibnbd_mapopt_finish(m, err);
	if (rc)
		err->pos = all.len;	/* the missing key could stand at the end */
	return rc;
}
