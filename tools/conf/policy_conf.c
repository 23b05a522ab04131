// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads policy.conf with the module's own parser, line by line, so that all mistakes are found in
 * one pass. They are reported in the same form as those of maps.conf.
 *
 * A file that is refused (rights, owner, not readable) has no rule, and a policy without rules
 * allows everything. So a refused file counts as a mistake, and with a mistake the caller does not
 * put the policy in force. The module then keeps the policy that it has, or its exports are not
 * opened.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/conf/file.h"
#include "tools/conf/policy_conf.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

static void policy_mistake(struct policy_conf *c, const struct ibnbd_policy_fault *f)
{
	const struct maps_file *file = &c->m->files[0];
	const char *at = file->text + f->at, *nl;
	size_t n;
	char *msg;

	if (!f->line) {
		maps_error(c->m, (struct maps_at){ 0, SIZE_MAX, 0 }, say_dup(f->why),
			   say_dup(f->hint));
		return;
	}
	nl = memchr(at, '\n', file->len - f->at);
	if (maps_nul(c->m, 0, f->at, nl ? (size_t)(nl - at) : file->len - f->at))
		return;
	/* The module's message does not name a wrong character. */
	msg = f->len ? maps_odd(at, f->len, &n) : NULL;
	if (!msg)
		msg = f->len ? say_fmt("\"%.*s\": %s", (int)f->len, at, f->why) : say_dup(f->why);
	maps_error(c->m, (struct maps_at){ 0, f->at, f->len }, msg, say_dup(f->hint));
}

/* Without the ends of its last lines. */
static size_t policy_text_len(const struct policy_conf *c)
{
	const struct maps_file *f = &c->m->files[0];
	size_t len = f->len;

	while (len && f->text[len - 1] == '\n')
		len--;
	return len;
}

static void policy_lines(struct policy_conf *c)
{
	const struct maps_file *file = &c->m->files[0];
	size_t len = policy_text_len(c);	/* as the module counts */
	struct ibnbd_policy_fault f;
	int rc;

	ibnbd_policy_init(c->rules);
	if (file->refused)	/* not text that can be read */
		return;
	while ((rc = ibnbd_policy_next(c->rules, file->text, len, &f)))
		if (rc < 0)
			policy_mistake(c, &f);
}

bool policy_conf_for_all(const struct ibnbd_policy_rule *r)
{
	return !r->key && !r->session && r->addr.kind == IBTRS_ADDR_NONE;
}

static bool policy_is_star(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r)
{
	return !p->text[r->export + strspn(p->text + r->export, "*")];
}

/* The place of a rule: the first word of its line. */
static struct maps_at policy_at(const struct policy_conf *c, const struct ibnbd_policy_rule *r)
{
	const struct maps_file *f = &c->m->files[0];
	size_t off = 0, line;
	const char *nl;

	for (line = 1; line < r->line; line++) {
		nl = memchr(f->text + off, '\n', f->len - off);
		if (!nl)
			break;
		off = (size_t)(nl - f->text) + 1;
	}
	off += strspn(f->text + off, " \t");
	return (struct maps_at){ 0, off, strcspn(f->text + off, " \t\r\n") };
}

/* A file that is lost, or that a power failure left empty, does not mean that all is allowed. */
void policy_conf_needed(struct policy_conf *p, const struct server_conf *c)
{
	const char *search = c->value[SERVER_dev_search_path], *key = c->value[SERVER_policy], *why;
	const struct maps_file *f = &p->m->files[0];

	if (!search || !*search || p->m->nr_errors || p->rules->nr ||
	    (key && !strcmp(key, "optional")))
		return;
	why = !p->there					      ? "it is not there" :
	      f->len == strspn(f->text, " \t\r\n")		      ? "it is empty" :
	      key						      ? "it has no rule" : NULL;
	if (why)
		maps_refuse(p->m, 0, say_fmt("%s, and a policy without a rule allows everything", why),
			    say_dup(key ? "policy = required in " SERVER_CONF " wants a rule" :
					  POLICY_NONE));
}

/* An earlier rule that already decides everything that rule @i is about, or NULL. */
static const struct ibnbd_policy_rule *policy_hidden_by(const struct ibnbd_policy_rules *p, u32 i)
{
	const struct ibnbd_policy_rule *r = &p->rule[i], *b;

	for (b = p->rule; b < r; b++)
		if (policy_conf_for_all(b) &&
		    (policy_is_star(p, b) || !strcmp(p->text + b->export, p->text + r->export)))
			return b;
	return NULL;
}

static bool policy_quoted(const char *s)
{
	return *s == '"' || *s == '\'';
}

/* Warn of rules that are valid and may not mean what their author wanted. */
static void policy_questions(struct policy_conf *c)
{
	const struct ibnbd_policy_rules *p = c->rules;
	const struct ibnbd_policy_rule *b;
	struct maps_at whole = { 0, SIZE_MAX, 0 };
	bool closed = false;

	for (u32 i = 0; i < p->nr; i++) {
		b = policy_hidden_by(p, i);
		if (b)
			maps_warn(c->m, policy_at(c, &p->rule[i]),
				  say_fmt("this rule decides nothing: line %u does before it",
					  b->line),
				  say_dup("the first rule that matches decides"));
		if (policy_quoted(p->text + p->rule[i].export) ||
		    policy_quoted(p->text + p->rule[i].session))
			maps_warn(c->m, policy_at(c, &p->rule[i]),
				  say_dup("the quotation mark is a part of the name here"),
				  say_dup("leave it out; for a blank in a name write ?"));
		closed |= policy_conf_for_all(&p->rule[i]) && policy_is_star(p, &p->rule[i]);
	}
	if (p->nr && !closed)
		maps_warn(c->m, whole,
			  say_dup("exports without a matching rule are open to every client that is let in"),
			  say_dup("end it with: * deny"));
}

void policy_conf_below(struct policy_conf *c, const char *search)
{
	const struct ibnbd_policy_rules *p = c->rules;
	char *root __free(free) = say_dup(search + strspn(search, "/")),
	     *token = strstr(root, "%SESSNAME%");
	size_t len;

	if (token)
		*token = 0;
	len = strlen(root);
	while (len && root[len - 1] == '/')
		len--;
	for (u32 i = 0; len && i < p->nr && !c->m->nr_errors; i++) {
		const char *name = p->text + p->rule[i].export;

		if (!strncmp(name, root, len) && name[len] == '/')
			maps_warn(c->m, policy_at(c, &p->rule[i]),
				  say_fmt("this is about /%.*s/%s: names count from dev_search_path on",
					  (int)len, root, name),
				  say_fmt("if that is not meant: %s", name + len + 1));
	}
	maps_sort(c->m);
}

static struct policy_conf *policy_new(const char *path, const char *text, size_t len)
{
	struct policy_conf *c = say_alloc(sizeof(*c));

	c->m = say_alloc(sizeof(*c->m));
	c->rules = say_alloc(sizeof(*c->rules));
	maps_add_file(c->m, path, text, len);
	policy_lines(c);
	return c;
}

struct policy_conf *policy_conf_load(const char *file)
{
	char *path __free(free) = file ? say_dup(file) : sysfs_root(POLICY_CONF);
	struct file_text f __free(file_free) = file_read(path, FILE_OURS, file);
	struct policy_conf *c = policy_new(path, f.text ? f.text : "", f.len);

	c->there = f.state != FILE_ABSENT;
	if (f.state == FILE_REFUSED)
		ibnbd_policy_init(c->rules);
	maps_refuse_as(c->m, 0, &f);
	if (!c->m->nr_errors)
		policy_questions(c);
	maps_sort(c->m);
	return c;
}

struct policy_conf *policy_conf_running(void)
{
	char *path __free(free) = sysfs_path(POLICY_CTL), *text __free(free) = sysfs_text(path);
	struct policy_conf *c = NULL;
	int err = errno;

	if (text) {
		c = policy_new(path, text, strlen(text));
		c->there = true;
	}
	errno = err;
	return c;
}

void policy_conf_free(struct policy_conf *c)
{
	if (!c)
		return;
	maps_free(c->m);
	free(c->rules);
	free(c);
}

/* ---- its text ---- */

char *policy_conf_text(const struct policy_conf *c)
{
	return say_fmt("%.*s\nend\n", (int)policy_text_len(c), c->m->files[0].text);
}

bool policy_conf_same(const struct policy_conf *a, const struct policy_conf *b)
{
	size_t len = policy_text_len(a);

	return len == policy_text_len(b) && !memcmp(a->m->files[0].text, b->m->files[0].text, len);
}

/* ---- what it says ---- */

static char *policy_address(const struct ibnbd_allow_item *it)
{
	struct ibtrs_addr a = { .kind = it->kind };
	bool gid = it->kind == IBTRS_ADDR_GID;
	char text[IBTRS_ADDR_STR_MAX];
	const char *bare = text;

	memcpy(a.raw, it->addr, sizeof(a.raw));
	ibtrs_addr_format(&a, text, sizeof(text));
	if (!gid && !strncmp(text, "ip:", 3))
		bare += 3;
	if (it->prefix == (it->kind == IBTRS_ADDR_IP4 ? 32 : 128))
		return say_fmt("%s%s", gid ? "" : "addr:", bare);
	return say_fmt("%s%s/%u", gid ? "" : "addr:", bare, it->prefix);
}

char *policy_conf_who(const struct ibnbd_policy_rules *p, const struct ibnbd_policy_rule *r)
{
	char *addr __free(free) = r->addr.kind == IBTRS_ADDR_NONE ? say_dup("") :
								    policy_address(&r->addr);

	return say_fmt("%s%s%s%s%s%s%s", r->key ? "key:" : "", p->text + r->key,
		       r->key && *addr ? " " : "", addr,
		       r->session && (r->key || *addr) ? " " : "", r->session ? "session:" : "",
		       p->text + r->session);
}

bool policy_conf_anybody_writes(const struct ibnbd_policy_rules *p, const char *name)
{
	for (u32 i = 0; i < p->nr; i++) {
		const struct ibnbd_policy_rule *r = &p->rule[i];

		/*
		 * Every address is in a prefix of 0, of one kind: it keeps no client from what it
		 * grants, as some client has that kind, and it denies nothing to other kinds.
		 */
		bool some = r->addr.kind != IBTRS_ADDR_NONE &&
			    (r->addr.prefix || r->may < IBNBD_POLICY_RW);

		if (r->key || some || !ibnbd_policy_about(p, r, name))
			continue;
		if (r->may >= IBNBD_POLICY_RW)
			return true;
		if (!r->session)
			return false;
	}
	return true;
}
