// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lexer and the reports (file:line:col, caret, suggestion) are those of maps.conf, so all
 * mistakes are found in one pass. If the module has pure code to check a value, the same code
 * checks it here. The caller decides what a mistake means; the values of good lines are kept.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "ibnbd/logic/export.h"
#include "tools/conf/file.h"
#include "tools/out/say.h"
#include "tools/conf/server_conf.h"
#include "tools/host/sysfs.h"

const struct server_key server_keys[SERVER_NR_KEYS] = {
#define SERVER_KEY_ROW(key, runtime, help) [SERVER_##key] = { #key, runtime, help },
	SERVER_KEYS(SERVER_KEY_ROW)
#undef SERVER_KEY_ROW
};

/*
 * The module gets the text itself, and reads a number with a leading 0 as octal. NULL = fine, or
 * why not.
 */
static char *server_number(const char *s, int64_t max, const char *expected)
{
	bool digits = *s && strspn(s, "0123456789") == strlen(s);
	int64_t n;

	if (digits && *s == '0' && s[1])
		return say_fmt("%s; without a 0 in front, which would make it octal", expected);
	return digits && maps_size(s, &n) && n > 0 && n <= max ? NULL : say_dup(expected);
}

/* What a value is, if it is one of some words, or a number from 1 to @max; and how that is said. */
static const struct server_rule {
	const char *words;
	int64_t max;
	const char *expected;
} server_rules[SERVER_NR_KEYS] = {
	[SERVER_auth] = { "@(off|optional|required)", 0, "off, optional or required is expected" },
	[SERVER_policy] = { "@(optional|required)", 0, "optional or required is expected" },
	[SERVER_port_nr] = { NULL, 65535, "a number from 1 to 65535 is expected" },
	[SERVER_max_maps] = { NULL, 1 << 20, "a number from 1 to 1048576 is expected" },
	[SERVER_copy] = { "@(auto|always|never)", 0, "auto, always or never is expected" },
	[SERVER_io_mode] = { "@(auto|blockio|fileio)", 0, "auto, blockio or fileio is expected" },
	[SERVER_file_block] = { "@(512|1024|2048|4096)", 0, "512, 1024, 2048 or 4096 is expected" },
};

/* NULL = fine, or why not. Allocated. */
static char *server_refused(enum server_key_id id, char **value)
{
	const struct server_rule *rule = &server_rules[id];
	struct ibnbd_allow *allow __free(free) = NULL;
	const char *why = "", *v = *value;
	bool on;
	size_t pos;

	if (strchr(v, '"'))	/* modprobe(8) quotes with it */
		return say_dup("a quotation mark cannot be part of it");
	if (rule->max)
		return server_number(v, rule->max, rule->expected);
	if (rule->words)
		return fnmatch(rule->words, v, FNM_EXTMATCH) ? say_dup(rule->expected) : NULL;
	switch (id) {
	case SERVER_dev_search_path:
		return ibnbd_export_search_check(v, strlen(v), &why) ? say_dup(why) : NULL;
	case SERVER_allow:
		allow = say_alloc(sizeof(*allow));
		if (!ibnbd_allow_parse(v, strlen(v), allow, &pos, &why))
			return NULL;
		return say_fmt("at \"%s\": %s", v + (pos < strlen(v) ? pos : 0), why);
	case SERVER_state_dir:
		return *v == '/' && v[1] ? NULL : say_dup("an absolute path is expected");
	case SERVER_writer_file:
		return !*v || *v == '/' || !strcmp(v, "none") ?
			       NULL :
			       say_dup("an absolute path is expected, or none");
	default:
		on = !fnmatch("@(yes|on|true|1|Y|y)", v, FNM_EXTMATCH);
		if (!on && fnmatch("@(no|off|false|0|N|n)", v, FNM_EXTMATCH))
			return say_dup("yes or no is expected");
		free(*value);
		*value = say_dup(on ? "Y" : "N");
		return NULL;
	}
}

static char *server_near(const char *key)
{
	const char *near = NULL;

	for (int i = 0; i < SERVER_NR_KEYS; i++)
		near = say_nearest(key, near, server_keys[i].key);
	return near ? say_fmt("did you mean \"%s\"?", near) :
		      say_dup("ibnbd-server.conf(5) lists what there is");
}

/*
 * Does the line end with a backslash, to be continued? maps.conf continues such a line. Here the
 * next line, `auth = required` for example, must not become a part of a value. A backslash with a
 * blank after it is not noticed.
 */
static bool server_continued(const struct maps_token *last)
{
	size_t len = strlen(last->text);

	return last->plain && len && last->text[len - 1] == '\\';
}

/* A line may be `key = value` or `key=value`, and the value may have several words. */
static void server_line(struct server_conf *c, const struct maps_token *t, size_t nr)
{
	char *key __free(free) = NULL, *eq, *value, *why __free(free) = NULL;
	int id;

	if (server_continued(&t[nr - 1])) {
		struct maps_at at = t[nr - 1].at;

		maps_error(c->m, (struct maps_at){ at.file, at.off + at.len - 1, 1 },
			   say_dup("a backslash at the end continues no line here"),
			   say_dup("write the whole value in one line; a line has up to 4096 bytes"));
		return;
	}
	for (size_t i = 0; i < nr; i++)
		say_append(&key, "%s%s", i ? " " : "", t[i].text);
	eq = strchr(key, '=');
	if (!eq) {
		maps_error(c->m, t[0].at, say_dup("a line is KEY = VALUE"), NULL);
		return;
	}
	value = eq + 1 + strspn(eq + 1, " ");
	while (eq > key && eq[-1] == ' ')
		eq--;
	*eq = 0;
	for (id = 0; id < SERVER_NR_KEYS && say_distance(key, server_keys[id].key);)
		id++;
	if (id == SERVER_NR_KEYS) {
		maps_error(c->m, t[0].at, say_fmt("unknown key \"%s\"", key), server_near(key));
	} else if (c->value[id]) {
		maps_error(c->m, t[0].at, say_fmt("%s is given twice", server_keys[id].key), NULL);
	} else {
		c->value[id] = say_dup(value);
		why = server_refused((enum server_key_id)id, &c->value[id]);
		if (why) {
			maps_error(c->m, t[nr - 1].at, say_fmt("%s: %s", server_keys[id].key, why),
				   NULL);
			free(c->value[id]);
			c->value[id] = NULL;
		}
	}
}

bool server_allow_bars(const char *allow)
{
	struct ibnbd_allow *a __free(free) = say_alloc(sizeof(*a));
	const char *why = "";
	size_t pos;
	bool bars = allow && !ibnbd_allow_parse(allow, strlen(allow), a, &pos, &why) &&
		    a->has_addr;

	for (unsigned int i = 0; i < a->nr && bars; i++)
		bars = a->item[i].kind == IBTRS_ADDR_NONE || a->item[i].prefix;
	return bars;
}

/* Warn of a configuration that is valid and may not be what its author wanted. */
static void server_questions(struct server_conf *c)
{
	const char *search = c->value[SERVER_dev_search_path];
	const char *writers = c->value[SERVER_writer_file];
	struct maps_at at = { 0, SIZE_MAX, 0 };

	if (!search || !*search)
		maps_warn(c->m, at, say_dup("there is no dev_search_path: nothing is exported"),
			  NULL);
	if (writers && !*writers)
		maps_warn(c->m, at,
			  say_dup("writer_file is empty: each restart fences clients that hold writes"),
			  say_dup("leave the line out, or say none if each disk has one client only"));
}

static void server_lines(struct server_conf *c, const char *path, const struct file_text *f)
{
	size_t off, file = maps_add_file(c->m, path, f->text ? f->text : "", f->len);
	struct maps_words w;

	c->m->files[file].uncontinued = true;
	for (off = c->m->files[file].begin; off < c->m->files[file].len;) {
		off = maps_lex(c->m, file, off, &w);
		if (w.nr && !w.bad)
			server_line(c, w.t, w.nr);
		maps_words_free(&w);
	}
}

struct server_conf *server_conf_load(const char *file)
{
	char *path __free(free) = file ? say_dup(file) : sysfs_root(SERVER_CONF);
	struct server_conf *c = say_alloc(sizeof(*c));
	struct file_text f __free(file_free) = file_read(path, FILE_OURS, file);

	c->m = say_alloc(sizeof(*c->m));
	c->there = f.state != FILE_ABSENT;
	server_lines(c, path, &f);
	maps_refuse_as(c->m, 0, &f);
	for (int i = 0; i < SERVER_NR_KEYS && c->m->nr_refused; i++) {
		free(c->value[i]);
		c->value[i] = NULL;
	}
	/* With a mistake do not warn: it may be the line of allow that has it. */
	if (c->there && !c->m->nr_errors)
		server_questions(c);
	return c;
}

void server_conf_free(struct server_conf *c)
{
	for (int i = 0; c && i < SERVER_NR_KEYS; i++)
		free(c->value[i]);
	if (c)
		maps_free(c->m);
	free(c);
}

/* ---- more or less than before ---- */

/* Does item @b let in whatever item @a does? */
static bool server_item_within(const struct ibnbd_allow *a, const struct ibnbd_allow_item *x,
			       const struct ibnbd_allow *b, const struct ibnbd_allow_item *y)
{
	u8 whole = y->prefix / 8, mask = (u8)~(0xff >> y->prefix % 8);

	if (x->kind != y->kind)
		return false;
	if (x->kind == IBTRS_ADDR_NONE)
		return !strcmp(a->text + x->glob, b->text + y->glob);
	return x->prefix >= y->prefix && !memcmp(x->addr, y->addr, whole) &&
	       (!mask || !((x->addr[whole] ^ y->addr[whole]) & mask));
}

/* Does list @b let in everybody whom list @a does? In doubt not. */
static bool server_allow_within(const struct ibnbd_allow *a, const struct ibnbd_allow *b)
{
	unsigned int i, k;

	if ((b->has_addr && !a->has_addr) || (b->has_session && !a->has_session))
		return false;
	for (i = 0; i < a->nr; i++) {
		bool session = a->item[i].kind == IBTRS_ADDR_NONE;

		if (session ? !b->has_session : !b->has_addr)
			continue;
		for (k = 0; k < b->nr; k++)
			if (server_item_within(a, &a->item[i], b, &b->item[k]))
				break;
		if (k == b->nr)
			return false;
	}
	return true;
}

/* Does @want let in more people than @now, and all of those whom @now lets in? */
static bool server_allow_loosens(const char *now, const char *want)
{
	struct ibnbd_allow *a __free(free) = say_alloc(sizeof(*a)),
			   *b __free(free) = say_alloc(sizeof(*b));
	const char *why = "";
	size_t pos;

	return !ibnbd_allow_parse(now, strlen(now), a, &pos, &why) &&
	       !ibnbd_allow_parse(want, strlen(want), b, &pos, &why) &&
	       server_allow_within(a, b) && !server_allow_within(b, a);
}

/* off, optional, required */
static int server_auth_rank(const char *auth)
{
	return !strcmp(auth, "required") ? 2 : !strcmp(auth, "optional");
}

bool server_conf_loosens(enum server_key_id id, const char *now, const char *want)
{
	switch (id) {
	case SERVER_auth:
		return server_auth_rank(want) < server_auth_rank(now);
	case SERVER_allow:
		return server_allow_loosens(now, want);
	case SERVER_claim:
		return strcmp(want, now) && !strcmp(want, "N");
	case SERVER_io_mode:
		return strcmp(want, now) && !strcmp(want, "auto");
	default:
		return false;
	}
}
