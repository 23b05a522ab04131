// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of maps.conf, as texts.
 *
 * The parser remembers where each line begins and ends in its file. So the new text is: the bytes
 * before the line, the new line or nothing, the bytes after it. Comments, order, spacing, line ends
 * and lines with mistakes stay as they are.
 *
 * Lines of one session depend on each other: one of them has the path=, and all must give the same
 * options of the session. So when the only line with a path= is removed, the next line of its
 * session gets the path= and the options of the session that it lacks. When a line changes an
 * option of its session, the other lines that give this option get the new value.
 *
 * A line also depends on [defaults] of its file: if they would change an option of the new line,
 * the line gives that option itself.
 */
#include <stdlib.h>
#include <string.h>
#include "tools/conf/maps_plan.h"
#include "tools/out/say.h"

void maps_plan_init(struct maps_plan *p)
{
	*p = (struct maps_plan){ .made = SIZE_MAX };
}

static void plan_empty(struct maps_plan *p)
{
	size_t i;

	for (i = 0; i < p->nr; i++) {
		free(p->changes[i].line);
		free(p->changes[i].name);
	}
	free(p->changes);
	p->changes = NULL;
	p->nr = 0;
}

void maps_plan_free(struct maps_plan *p)
{
	plan_empty(p);
	free(p->unsaid);
}

/* Takes ownership of @line. */
static void plan_add(struct maps_plan *p, struct maps_at at, char *line, const char *name)
{
	p->changes = say_grow(p->changes, (p->nr + 1) * sizeof(*p->changes));
	p->changes[p->nr++] = (struct maps_change){ at, line, say_dup(name) };
}

struct maps_entry *maps_plan_find(struct maps *m, const char *name)
{
	struct maps_entry *found = maps_find(m, name);
	size_t i;

	/* Lines with mistakes count too: the new line replaces them. */
	for (i = 0; !found && i < m->nr; i++)
		if (!strcmp(m->entries[m->nr - 1 - i].name, name))
			found = &m->entries[m->nr - 1 - i];
	return found;
}

/* ---- lines ---- */

/*
 * The new line of @e. If it replaces @old, it keeps the comment of that line: after the new line,
 * or on a line of its own if both together are too long.
 */
static char *plan_line(const struct maps *m, const struct maps_entry *e,
		       const struct maps_entry *old)
{
	char *line = maps_line(e), *longer;
	const char *comment;
	size_t len;

	len = old ? old->comment.len : 0;
	if (!len)
		return line;
	comment = m->files[old->comment.file].text + old->comment.off;
	if (memchr(comment, 0, len))
		return line;
	if (strlen(line) + 2 + len <= IBNBD_MAP_LINE_MAX)
		longer = say_fmt("%s  %.*s", line, (int)len, comment);
	else
		longer = say_fmt("%.*s\n%s", (int)len, comment, line);
	free(line);
	return longer;
}

/* ---- what lines of one session owe each other ---- */

static bool plan_has_path(const struct maps_entry *e)
{
	return e->map.nr_paths || e->nr_hosts;
}

static void plan_take_paths(struct maps_entry *e, const struct maps_entry *from)
{
	memcpy(e->map.path, from->map.path, sizeof(e->map.path));
	e->map.nr_paths = from->map.nr_paths;
	memcpy(e->host, from->host, sizeof(e->host));
	e->nr_hosts = from->nr_hosts;
	if (from->map.nr_paths)
		e->map.given |= 1u << IBNBD_OPT_path;
}

/*
 * Take options of the session from @from: those that @e does not give (@missing), or gives with
 * another value (@other). Returns whether there was one.
 */
static bool plan_take_keys(struct maps_entry *e, const struct maps_entry *from, bool missing,
			   bool other)
{
	bool any = false;
	size_t i;

	for (i = 0; i < MAPS_NR_SESSION_KEYS; i++) {
		enum ibnbd_mapopt_id id = maps_session_keys[i];
		bool said = ibnbd_map_given(&e->map, id);

		if (!ibnbd_map_given(&from->map, id) || !(said ? other : missing) ||
		    (said && maps_same_value(&e->map, &from->map, id)))
			continue;
		maps_take_value(&e->map, &from->map, id);
		any = true;
	}
	return any;
}

/* Is @o a good line of @session, other than @but? */
static bool plan_other(const struct maps_entry *o, const struct maps_entry *but,
		       const char *session)
{
	return o != but && !o->bad && !strcmp(o->map.sessname, session);
}

/* Does a line other than @but open the session? */
static bool plan_opened(const struct maps *m, const struct maps_entry *but, const char *session)
{
	size_t i;

	for (i = 0; i < m->nr; i++)
		if (plan_other(&m->entries[i], but, session) && plan_has_path(&m->entries[i]))
			return true;
	return false;
}

/*
 * @old is removed: if no other line opens its session, the next line of the session gets its paths.
 */
static void plan_hand_over(struct maps_plan *p, const struct maps *m, const struct maps_entry *old)
{
	struct maps_entry heir;
	size_t i;

	if (old->bad || !plan_has_path(old) || plan_opened(m, old, old->map.sessname))
		return;
	for (i = 0; i < m->nr && !plan_other(&m->entries[i], old, old->map.sessname);)
		i++;
	if (i == m->nr)
		return;
	heir = m->entries[i];
	plan_take_paths(&heir, old);
	plan_take_keys(&heir, old, true, false);
	plan_add(p, heir.line, plan_line(m, &heir, &m->entries[i]), heir.name);
}

/*
 * If @e gives an option of its session a new value, give it to the other lines that have this
 * option.
 */
static void plan_agree(struct maps_plan *p, const struct maps *m, const struct maps_entry *e,
		       const struct maps_entry *old)
{
	size_t i;

	for (i = 0; i < m->nr; i++) {
		struct maps_entry other = m->entries[i];

		if (plan_other(&m->entries[i], old, e->map.sessname) &&
		    plan_take_keys(&other, e, false, true))
			plan_add(p, other.line, plan_line(m, &other, &m->entries[i]), other.name);
	}
}

/* ---- orders ---- */

/* A command line cannot give these options: if @e has none of them, take those of the old line. */
static void plan_keep(struct maps_entry *e, const struct maps_entry *old)
{
	if (e->given || e->nr_own)
		return;
	e->given = old->given;
	memcpy(e->text, old->text, sizeof(e->text));
	memcpy(e->number, old->number, sizeof(e->number));
	e->own = old->own;
	e->nr_own = old->nr_own;
}

static void plan_save(struct maps_plan *p, const struct maps *m, struct maps_entry *e,
		      const struct maps_entry *old, size_t file)
{
	bool same_session = old && !strcmp(e->map.sessname, old->map.sessname);
	char *was, *will;
	bool same;

	if (!old) {
		plan_add(p, (struct maps_at){ file, m->files[file].len, 0 }, maps_line(e), e->name);
		return;
	}
	plan_keep(e, old);
	if (same_session && !plan_has_path(e) && !plan_opened(m, old, e->map.sessname))
		plan_take_paths(e, old);
	was = maps_line(old);
	will = maps_line(e);
	same = !old->bad && !strcmp(was, will);
	free(was);
	free(will);
	if (same)
		return;
	plan_add(p, old->line, plan_line(m, e, old), e->name);
	if (!same_session || !plan_has_path(e))
		plan_hand_over(p, m, old);
	if (same_session)
		plan_agree(p, m, e, old);
}

/* Is it an option of the session, and has one of the other lines another value of it than @e? */
static bool plan_sessions(const struct maps *m, const struct maps_entry *e,
			  const struct maps_entry *old, enum ibnbd_mapopt_id id)
{
	size_t i;

	for (i = 0; maps_is_session_key(id) && i < m->nr; i++)
		if (plan_other(&m->entries[i], old, e->map.sessname) &&
		    !maps_same_value(&m->entries[i].map, &e->map, id))
			return true;
	return false;
}

/*
 * The options that the line does not give, and that the file would change: @now has another value
 * than @e. Returned as bits. Options of the session that another line gives differently are left to
 * that line.
 */
static uint32_t plan_unsaid(const struct maps *m, const struct maps_entry *e,
			    const struct maps_entry *old, const struct maps_entry *now)
{
	const struct ibnbd_mapopt *o;
	uint32_t unsaid = 0;
	size_t nr, i;

	o = ibnbd_mapopt_table(&nr);
	for (i = 0; i < nr; i++)
		if ((o[i].kind == IBNBD_KIND_INT || o[i].kind == IBNBD_KIND_WORD ||
		     o[i].kind == IBNBD_KIND_KEY) &&
		    !maps_same_value(&e->map, &now->map, i) && !plan_sessions(m, e, old, i))
			unsaid |= 1u << i;
	return unsaid;
}

/*
 * Options that a line can only set, not take back: why the line would mean something else.
 * Allocated; NULL = it would not.
 */
static char *plan_unsayable(const struct maps *after, const struct maps_entry *e,
			    const struct maps_entry *now, uint32_t unsaid)
{
	const char *path = after->files[now->line.file].path;

	if (unsaid & 1u << IBNBD_OPT_auth && !*e->map.auth)
		return say_fmt("%s: [defaults] says auth=%s, which the line of %s cannot take back",
			       path, now->map.auth, e->name);
	if (maps_given(now, MAPS_noauto) && !maps_given(e, MAPS_noauto))
		return say_fmt("%s: [defaults] says noauto: %s would not be mapped at boot", path,
			       e->name);
	return NULL;
}

void maps_plan_save(struct maps_plan *p, const struct maps *m, struct maps_entry *e,
		    const struct maps_entry *old, size_t file)
{
	struct maps_entry *now;
	struct maps *after;
	uint32_t unsaid;

	plan_save(p, m, e, old, file);
	if (!p->nr)
		return;
	after = maps_plan_after(p, m);
	now = maps_plan_find(after, e->name);
	unsaid = now ? plan_unsaid(m, e, old, now) : 0;
	p->unsaid = now ? plan_unsayable(after, e, now, unsaid) : NULL;
	if (unsaid && !p->unsaid) {
		e->map.given |= unsaid;
		plan_empty(p);
		plan_save(p, m, e, old, file);
	}
	maps_free(after);
}

void maps_plan_remove(struct maps_plan *p, const struct maps *m, const struct maps_entry *e)
{
	plan_add(p, e->line, NULL, e->name);
	plan_hand_over(p, m, e);
}

/* ---- texts ---- */

static void plan_put(char *text, size_t *n, const char *more, size_t len)
{
	if (len)
		memcpy(text + *n, more, len);
	*n += len;
}

/*
 * Does the last line of @f end with a backslash, so that a line added after it would continue it?
 */
static bool plan_goes_on(const struct maps_file *f)
{
	size_t end = f->len;

	if (end > f->begin && f->text[end - 1] == '\n')
		end--;
	if (end > f->begin && f->text[end - 1] == '\r')
		end--;
	return end > f->begin && f->text[end - 1] == '\\';
}

/* The line end for a changed line: that of the line that is replaced, else that of the file. */
static const char *plan_eol(const struct maps_file *f, struct maps_at at)
{
	size_t end = at.off + at.len;

	if (at.len && f->text[end - 1] == '\n')
		return at.len > 1 && f->text[end - 2] == '\r' ? "\r\n" : "\n";
	return memmem(f->text, f->len, "\r\n", 2) ? "\r\n" : "\n";
}

static const struct maps_change *plan_next(const struct maps_plan *p, size_t file, size_t from)
{
	const struct maps_change *next = NULL, *c;

	for (c = p->changes; c < p->changes + p->nr; c++)
		if (c->at.file == file && c->at.off >= from && (!next || c->at.off < next->at.off))
			next = c;
	return next;
}

static size_t plan_room(const struct maps_plan *p)
{
	size_t sum = 0, i;

	for (i = 0; i < p->nr; i++)
		sum += 8 + (p->changes[i].line ? strlen(p->changes[i].line) : 0);
	return sum;
}

char *maps_plan_text(const struct maps_plan *p, const struct maps *m, size_t file, size_t *len)
{
	const struct maps_file *f = &m->files[file];
	char *text = say_alloc(f->len + plan_room(p) + 1);
	const struct maps_change *c;
	const char *eol;
	size_t at = 0, n = 0;

	while ((c = plan_next(p, file, at))) {
		plan_put(text, &n, f->text + at, c->at.off - at);
		at = c->at.off + c->at.len;
		eol = plan_eol(f, c->at);
		if (!c->at.len) {
			/* the last line may have no newline yet, or may be continued */
			if (f->len > f->begin && f->text[f->len - 1] != '\n')
				plan_put(text, &n, eol, strlen(eol));
			if (plan_goes_on(f))
				plan_put(text, &n, eol, strlen(eol));
		}
		if (c->line) {
			plan_put(text, &n, c->line, strlen(c->line));
			plan_put(text, &n, eol, strlen(eol));
		}
		if (!c->at.len)
			break;
	}
	plan_put(text, &n, f->text + at, f->len - at);
	*len = n;
	return text;
}

/* Is @a read before @b? If so, both are in one directory. */
static bool plan_before(const char *a, const char *b)
{
	size_t dir = (size_t)(strrchr(a, '/') ? strrchr(a, '/') - a : 0);

	return !strncmp(a, b, dir + 1) && !strchr(b + dir + 1, '/') && strcmp(a, b) < 0;
}

static void plan_parse(const struct maps_plan *p, const struct maps *m, size_t file,
		       struct maps *after)
{
	size_t len;
	char *text = maps_plan_text(p, m, file, &len);

	maps_parse(after, m->files[file].path, text, len);
	free(text);
}

struct maps *maps_plan_after(const struct maps_plan *p, const struct maps *m)
{
	struct maps *after = say_alloc(sizeof(*after));
	bool made = p->made == SIZE_MAX;
	size_t i;

	for (i = 0; i < m->nr_files; i++) {
		if (!made && plan_before(m->files[p->made].path, m->files[i].path)) {
			plan_parse(p, m, p->made, after);
			made = true;
		}
		if (i != p->made)
			plan_parse(p, m, i, after);
	}
	if (!made)
		plan_parse(p, m, p->made, after);
	maps_check(after);
	return after;
}

/* ---- is anything lost? ---- */

/* The mistake in the line of @name after the change. */
static const char *plan_mistake(const struct maps *after, const char *name)
{
	const struct maps_entry *e = NULL;
	size_t i;

	for (i = 0; i < after->nr; i++)
		if (!strcmp(after->entries[i].name, name))
			e = &after->entries[i];
	for (i = 0; e && i < after->nr_diags; i++) {
		const struct maps_diag *d = &after->diags[i];

		if (d->level == MAPS_ERROR && d->at.file == e->line.file &&
		    d->at.off >= e->line.off && d->at.off < e->line.off + e->line.len)
			return d->msg;
	}
	return "its line is lost";
}

static bool plan_changes(const struct maps_plan *p, const char *name)
{
	size_t i;

	for (i = 0; i < p->nr; i++)
		if (!strcmp(p->changes[i].name, name))
			return true;
	return false;
}

char *maps_plan_lost(const struct maps_plan *p, struct maps *m, struct maps *after)
{
	const struct maps_change *asked = p->changes;
	const struct maps_file *f = &m->files[asked->at.file];
	size_t i, line, col;

	if (asked->line && f->no_defaults) {
		maps_place(m, f->defaults_at, &line, &col);
		return say_fmt("%s:%zu would give options to the line of %s, and has a mistake",
			       f->path, line, asked->name);
	}
	if (p->unsaid)
		return say_dup(p->unsaid);
	for (i = 0; i < m->nr; i++) {
		const struct maps_entry *e = &m->entries[i], *now;
		char *was, *is;
		bool same;

		/* The entry that was asked for may change. */
		if (e->bad || !strcmp(e->name, asked->name))
			continue;
		now = maps_find(after, e->name);
		if (!now)
			return say_fmt("%s would not be mapped any more: %s", e->name,
				       plan_mistake(after, e->name));
		was = maps_line(e);
		is = maps_line(now);
		same = plan_changes(p, e->name) || !strcmp(was, is);
		free(was);
		free(is);
		if (!same)
			return say_fmt("the line of %s would mean something else", e->name);
	}
	if (asked->line && !maps_plan_find(after, asked->name))
		return say_fmt("%s cannot be written as a line of the file", asked->name);
	return NULL;
}
