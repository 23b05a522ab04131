// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of saved mappings, as texts.
 *
 * A saved line says all about its mapping: also the paths and the options that its session shares
 * with other lines. So the file of one mapping can go without a change of another. When the paths
 * or options of a session change, all its saved lines get the new ones.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/conf/maps_saved.h"
#include "tools/out/say.h"

static const char saved_head[] = MAPS_SAVED_MARK
	", which writes this file anew: options may be changed here, other lines belong elsewhere.\n";

void maps_saved_init(struct maps_saved *s, struct maps *m, const char *dir)
{
	*s = (struct maps_saved){ .m = m, .dir = dir, .nr = m->nr, .loaded = m->nr_files };
	s->will = say_alloc((m->nr + 1) * sizeof(*s->will));	/* one may be added */
	if (m->nr)
		memcpy(s->will, m->entries, m->nr * sizeof(*s->will));
	s->touched = say_alloc(m->nr_files + 1);
}

void maps_saved_free(struct maps_saved *s)
{
	free(s->will);
	free(s->touched);
}

struct maps_entry *maps_saved_find(struct maps_saved *s, const char *name)
{
	struct maps_entry *e, *found = NULL;

	for (e = s->will; e < s->will + s->nr; e++)
		if (e->line.file != MAPS_SAVED_GONE && !strcmp(e->name, name) &&
		    (!found || found->bad))
			found = e;
	return found;
}

/* ---- files ---- */

/* Has the command alone written @file, apart from options of the line of @name? */
static bool saved_own(const struct maps *m, size_t file, const char *name)
{
	const struct maps_file *f = &m->files[file];
	const char *nl = memchr(f->text, '\n', f->len);
	size_t len = nl ? (size_t)(nl + 1 - f->text) : 0, i;

	if (!len || strncmp(f->text, MAPS_SAVED_MARK, strlen(MAPS_SAVED_MARK)))
		return false;
	for (i = 0; i < m->nr; i++) {
		const struct maps_entry *e = &m->entries[i];

		if (e->line.file != file)
			continue;
		if (e->bad && !e->overridden && strcmp(e->name, name))
			return false;
		len += e->line.len;
	}
	return len == f->len;		/* nothing else is in it */
}

/* May the change write @file? */
static bool saved_free(const struct maps_saved *s, size_t file, const char *name)
{
	return file >= s->loaded || s->touched[file] || saved_own(s->m, file, name);
}

/*
 * The file that gets the line of @name. Its index, or SIZE_MAX if that file is another one's, and
 * then @why.
 */
static size_t saved_file(struct maps_saved *s, const char *name, const char *file, char **why,
			 char **hint)
{
	/* no other name has a tilde */
	char *path __free(free) = file ? say_dup(file) :
					 say_fmt("%s/%s%s.conf", s->dir, name,
						 strcmp(name, MAPS_SAVED_OLD_NAME) ? "" : "~");
	size_t i;

	for (i = 0; i < s->m->nr_files && strcmp(s->m->files[i].path, path);)
		i++;
	if (i == s->m->nr_files) {
		maps_add_file(s->m, path, "", 0);
		s->touched = say_grow(s->touched, (i + 2) * sizeof(*s->touched));
		s->touched[i] = false;
	} else if (!saved_free(s, i, name)) {
		*why = say_fmt("%s is there, and was not written by this command", path);
		*hint = say_fmt("add the line there, or: mv %s %s.old", path, path);
		i = SIZE_MAX;
	}
	return i;
}

static void saved_move(struct maps_saved *s, struct maps_entry *e, size_t file)
{
	if (e->line.file != MAPS_SAVED_GONE)
		s->touched[e->line.file] = true;
	e->line.file = file;
	if (file != MAPS_SAVED_GONE)
		s->touched[file] = true;
}

/* The line with its comment. Allocated. */
static char *saved_line(const struct maps *m, const struct maps_entry *e)
{
	char *line = maps_line(e);

	if (e->comment.len)
		say_append(&line, "  %.*s", (int)e->comment.len,
			   m->files[e->comment.file].text + e->comment.off);
	return line;
}

char *maps_saved_text(const struct maps_saved *s, size_t file)
{
	char *text = NULL;

	for (size_t i = 0; i < s->nr; i++) {
		char *line __free(free) = NULL;

		if (s->will[i].line.file != file)
			continue;
		line = saved_line(s->m, &s->will[i]);
		say_append(&text, "%s%s\n", text ? "" : saved_head, line);
	}
	return text;
}

/* The order in which the files of /etc/ibnbd are read is that of their paths. */
static int saved_order(const void *a, const void *b)
{
	const struct maps_file *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

struct maps *maps_saved_after(const struct maps_saved *s)
{
	const struct maps *m = s->m;
	const struct maps_file **order __free(free) = say_alloc((m->nr_files + 1) * sizeof(*order));
	struct maps *after = say_alloc(sizeof(*after));

	for (size_t i = 0; i < m->nr_files; i++)
		order[i] = &m->files[i];
	qsort(order, m->nr_files, sizeof(*order), saved_order);
	for (size_t i = 0; i < m->nr_files; i++) {
		size_t file = (size_t)(order[i] - m->files);
		char *text __free(free) = s->touched[file] ? maps_saved_text(s, file) : NULL;

		if (text)
			maps_parse(after, order[i]->path, text, strlen(text));
		else if (!s->touched[file])
			maps_parse(after, order[i]->path, order[i]->text, order[i]->len);
	}
	maps_check(after);
	return after;
}

/* ---- lines ---- */

static bool saved_has_path(const struct maps_entry *e)
{
	return e->map.nr_paths || e->nr_hosts;
}

static void saved_take_paths(struct maps_entry *e, const struct maps_entry *from)
{
	memcpy(e->map.path, from->map.path, sizeof(e->map.path));
	e->map.nr_paths = from->map.nr_paths;
	memcpy(e->host, from->host, sizeof(e->host));
	e->nr_hosts = from->nr_hosts;
	e->map.given &= ~(1u << IBNBD_OPT_path);
	e->map.given |= from->map.given & 1u << IBNBD_OPT_path;
}

/* Is @o a good line of the session of @e, and not @e? */
static bool saved_beside(const struct maps_entry *o, const struct maps_entry *e)
{
	return !o->bad && o->line.file != MAPS_SAVED_GONE && strcmp(o->name, e->name) &&
	       !strcmp(o->map.sessname, e->map.sessname);
}

/*
 * Give the line what it lacks of its session, from the other lines. @live: options that it does
 * not give have the right value already, and must be said if the others say them.
 */
static void saved_complete(const struct maps_saved *s, struct maps_entry *e, bool live)
{
	const struct maps_entry *o;

	for (o = s->will; o < s->will + s->nr; o++) {
		uint32_t opts = o->map.given & ~e->map.given & IBNBD_SESSION_OPTS;

		if (!saved_beside(o, e))
			continue;
		if (!saved_has_path(e))
			saved_take_paths(e, o);
		if (live)
			e->map.given |= opts;
		else
			maps_take_values(&e->map, &o->map, opts);
	}
}

/* Give the other saved lines of the session what @e says of it. */
static void saved_agree(struct maps_saved *s, const struct maps_entry *e)
{
	struct maps_entry *o;

	for (o = s->will; o < s->will + s->nr; o++) {
		char *was __free(free) = NULL, *is __free(free) = NULL;

		if (!saved_beside(o, e) || !saved_free(s, o->line.file, o->name))
			continue;
		was = maps_line(o);
		if (saved_has_path(e))
			saved_take_paths(o, e);
		maps_take_values(&o->map, &e->map, e->map.given & IBNBD_SESSION_OPTS);
		is = maps_line(o);
		if (strcmp(was, is))
			saved_move(s, o, o->line.file);
	}
}

/* A command line cannot give these options: if @e has none of them, take those of the old line. */
static void saved_keep(struct maps_entry *e, const struct maps_entry *old)
{
	if (!saved_has_path(e))
		saved_take_paths(e, old);
	if (e->given || e->nr_own)
		return;
	e->given = old->given;
	memcpy(e->text, old->text, sizeof(e->text));
	memcpy(e->number, old->number, sizeof(e->number));
	e->own = old->own;
	e->nr_own = old->nr_own;
}

/* Does a person's line mean the same? It need not name sources of paths that are resolved. */
static bool saved_same_meaning(const struct maps_entry *a, const struct maps_entry *e)
{
	size_t i, paths = a->map.nr_paths + a->nr_hosts;
	const struct ibnbd_mapopt *o = ibnbd_mapopts;
	bool same = !a->bad && !strcmp(a->map.sessname, e->map.sessname) &&
		    !strcmp(a->map.device_path, e->map.device_path);

	for (i = 0; i < IBNBD_MAPOPT_COUNT; i++)
		if (o[i].kind == IBNBD_KIND_INT || o[i].kind == IBNBD_KIND_WORD ||
		    o[i].kind == IBNBD_KIND_KEY)
			same &= maps_same_value(&a->map, &e->map, i);
	if (paths && paths != e->map.nr_paths + e->nr_hosts)
		return false;
	for (i = 0; !a->nr_hosts && !e->nr_hosts && i < a->map.nr_paths; i++) {
		const struct ibtrs_addr_pair *x = &a->map.path[i], *y = &e->map.path[i];

		same &= ibtrs_addr_equal(&x->dst, &y->dst) &&
			(!x->src.kind || ibtrs_addr_equal(&x->src, &y->src));
	}
	return same;
}

/* ---- orders ---- */

char *maps_saved_split(struct maps_saved *s, size_t *old, char **hint)
{
	struct maps *m = s->m;
	char *path __free(free) = say_fmt("%s/%s.conf", s->dir, MAPS_SAVED_OLD_NAME), *why = NULL;
	size_t file, to, nr = 0, i, j;

	for (file = 0; file < m->nr_files && strcmp(m->files[file].path, path);)
		file++;
	*old = SIZE_MAX;
	*hint = NULL;
	for (i = 0; i < m->nr_diags; i++) {
		char *where __free(free) = NULL;

		if (m->diags[i].level != MAPS_ERROR || m->diags[i].at.file != file)
			continue;
		where = maps_where(m, m->diags[i].at);
		*hint = say_dup("fix that line, then: ibnbd maps tidy");
		return say_fmt("%s: %s", where, m->diags[i].msg);
	}
	for (i = 0; !why && i < s->nr; i++) {
		struct maps_entry *e = &s->will[i];

		if (e->line.file != file)
			continue;
		to = saved_file(s, e->name, NULL, &why, hint);
		/* a line there is what a split that was interrupted has left */
		for (j = 0; !why && j < s->nr; j++)
			if (s->will[j].line.file == to && !strcmp(s->will[j].name, e->name))
				saved_move(s, &s->will[j], MAPS_SAVED_GONE);
		if (why)
			break;
		saved_complete(s, e, false);
		saved_move(s, e, to);
		nr++;
	}
	if (!why && nr)
		*old = file;
	if (why) {
		memcpy(s->will, m->entries, m->nr * sizeof(*s->will));
		memset(s->touched, 0, m->nr_files);
	}
	return why;
}

static char *saved_persons(const struct maps_saved *s, const struct maps_entry *old)
{
	char *where __free(free) = maps_where(s->m, old->line);

	return say_fmt("%s has the line of %s, and is not a file that this command writes", where,
		       old->name);
}

char *maps_saved_put(struct maps_saved *s, struct maps_entry *e, const char *file, bool live,
		     char **hint)
{
	struct maps_entry *old = maps_saved_find(s, e->name);
	char *why = NULL, *was __free(free) = NULL, *will __free(free) = NULL;
	bool own, same = false;
	size_t to;

	*hint = NULL;
	own = old && saved_free(s, old->line.file, e->name);
	if (old)
		saved_keep(e, old);
	if (old && !own) {
		if (saved_same_meaning(old, e))
			return NULL;
		was = maps_line(e);
		*hint = say_fmt("change it there to: %s", was);
		return saved_persons(s, old);
	}
	if (old && !old->bad && (strcmp(old->map.device_path, e->map.device_path) ||
				 strcmp(old->map.sessname, e->map.sessname))) {
		*hint = say_fmt("another --name; or: ibnbd maps remove %s", e->name);
		return say_fmt("%s is the name of %s of session %s", e->name, old->map.device_path,
			       old->map.sessname);
	}
	to = old ? old->line.file : saved_file(s, e->name, file, &why, hint);
	if (why)
		return why;
	saved_complete(s, e, live);
	if (old) {
		was = maps_line(old);
		will = maps_line(e);
		same = !old->bad && !strcmp(was, will);
		e->comment = old->comment;
	} else {
		old = &s->will[s->nr++];
	}
	e->bad = false;
	*old = *e;
	old->line.file = to;
	if (!same)
		saved_move(s, old, to);
	if (live)
		saved_agree(s, old);
	return NULL;
}

char *maps_saved_remove(struct maps_saved *s, struct maps_entry *e, char **hint)
{
	*hint = NULL;
	if (!saved_free(s, e->line.file, e->name)) {
		*hint = say_dup("delete the line there, then: systemctl daemon-reload");
		return saved_persons(s, e);
	}
	saved_move(s, e, MAPS_SAVED_GONE);
	return NULL;
}

/* ---- is anything lost? ---- */

static char *saved_mistake(const struct maps_saved *s, const struct maps *after,
			   const struct maps_entry *e)
{
	const char *path = s->m->files[e->line.file].path;
	const struct maps_entry *now = NULL;

	for (size_t i = 0; i < after->nr; i++)
		if (!strcmp(after->entries[i].name, e->name) &&
		    !strcmp(after->files[after->entries[i].line.file].path, path))
			now = &after->entries[i];
	for (size_t i = 0; now && i < after->nr_diags; i++) {
		const struct maps_diag *d = &after->diags[i];
		char *where __free(free) = NULL;

		if (d->level != MAPS_ERROR || d->at.file != now->line.file ||
		    d->at.off < now->line.off || d->at.off >= now->line.off + now->line.len)
			continue;
		where = s->touched[e->line.file] ? say_dup(path) : maps_where(after, d->at);
		return say_fmt("%s: %s would not be mapped any more: %s", where, e->name, d->msg);
	}
	return say_fmt("%s: %s cannot be written as a line", path, e->name);
}

static char *saved_lost(const struct maps_saved *s, struct maps *after, const struct maps_entry *e)
{
	const struct maps_entry *now = maps_find(after, e->name);
	char *will __free(free) = maps_line(e), *is __free(free) = now ? maps_line(now) : NULL;

	if (!now)
		return saved_mistake(s, after, e);
	return strcmp(will, is) ?
		       say_fmt("the line of %s would mean something else", e->name) :
		       NULL;
}

char *maps_saved_lost(const struct maps_saved *s, char **hint)
{
	struct maps *after __free(maps_free) = maps_saved_after(s);
	char *why = NULL;

	/* first what is written: others may be lost because of it */
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; !why && i < s->nr; i++) {
			const struct maps_entry *e = &s->will[i];

			if (!e->bad && e->line.file != MAPS_SAVED_GONE &&
			    s->touched[e->line.file] == !pass)
				why = saved_lost(s, after, e);
		}
	}
	*hint = why ? say_dup("change that first; ibnbd maps check") : NULL;
	return why;
}
