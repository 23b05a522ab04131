// SPDX-License-Identifier: GPL-2.0-only
/* The policy in the commands of the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/server.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

/* The file may be about to be written anew. So the server keeps the policy that it has. */
static int policy_gone(const struct policy_conf *now, const char *path)
{
	if (!now || !now->rules->nr)
		return SAY_DONE;
	say_error(SAY_FAILED, "%s is not there, and the server has a policy, which stays; nothing was changed", path);
	return say_hint(POLICY_NONE);
}

/* A last line without its end, an empty file and one that cannot be read whole are covered. */
#define POLICY_BY_HAND	"{ cat %s && echo && echo end; } > %s"

static int policy_write(const struct policy_conf *c, const char *path)
{
	char *ctl __free(free) = sysfs_path(POLICY_CTL), *text __free(free) = policy_conf_text(c),
	     *from __free(free) = say_word(path);
	int err = 0;

	if (sysfs_dry_run) {
		printf(POLICY_BY_HAND "\n", from, ctl);
	} else {
		say_more(POLICY_BY_HAND, from, ctl);
		err = sysfs_store(ctl, text);
	}
	if (!err)
		return SAY_DONE;
	say_error(say_exit_of(err), "the server does not take %s: %s; the policy before stays", path,
		  strerror(err));
	return say_hint("its log says why: journalctl -k");
}

/* The module does not show a policy. @why: the errno of reading it. */
static int policy_unseen(const struct policy_conf *c, const char *path, int why)
{
	if (why == ENOENT && !c->rules->nr)
		return SAY_DONE;	/* an older driver, and nothing to tell it */
	if (why == ENOENT) {
		say_error(SAY_DRIVER, "the driver that is loaded knows no policy, and %s has one; nothing was changed", path);
		return say_hint("modprobe -r ibnbd-server, then systemctl restart ibnbd-server");
	}
	return say_errno(why, "cannot read the policy of the server");
}

int server_policy_put(const struct policy_conf *c)
{
	const char *path = c->m->files[0].path;
	struct policy_conf *now __free(policy_conf_free) = policy_conf_running();
	int why = errno;

	if (!c->there)
		return policy_gone(now, path);
	if (!now && !sysfs_dry_run)
		return policy_unseen(c, path, why);
	return now && policy_conf_same(c, now) ? SAY_DONE : policy_write(c, path);
}

struct policy_conf *server_policy_shown(void)
{
	struct policy_conf *c = policy_conf_running();

	if (c || errno != ENOENT)
		return c;
	c = policy_conf_load(NULL);
	if (!c->m->nr_errors)
		return c;
	policy_conf_free(c);
	return NULL;
}

/* ---- what it says ---- */

/* No export has this name, and only a pattern with a *, or with a ? for each byte, fits it. */
#define POLICY_OTHER	"\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"

/* A name that a pattern is about, and no other one by chance: its * are @fill, if that fits. */
static char *policy_instance(const char *pattern, const char *fill)
{
	char *name = say_alloc(strlen(pattern) * (strlen(fill) + 1) + 1), *p = name;
	size_t len = strlen(pattern), i, stars = 0;

	for (i = 0; i < len; i++)
		stars += pattern[i] == '*';
	if (len + stars * strlen(fill) >= IBNBD_NAME_LEN)
		fill = "";
	for (; *pattern; pattern++) {
		if (*pattern == '*')
			p = stpcpy(p, fill);
		else
			*p++ = *pattern == '?' ? POLICY_OTHER[0] : *pattern;
	}
	return name;
}

/* A session's directory may be made at any time, and / and /dev are not listed. */
static bool policy_search_unlisted(const char *search)
{
	return strstr(search, IBNBD_EXPORT_TOKEN) || ibnbd_export_follows(search);
}

void server_policy_print(const struct policy_conf *c, const char *name)
{
	const struct ibnbd_policy_rules *p = c->rules;
	bool all = false;

	for (u32 i = 0; i < p->nr && !all; i++) {
		const struct ibnbd_policy_rule *r = &p->rule[i];
		char *who __free(free) = policy_conf_who(p, r);

		if (!ibnbd_policy_about(p, r, name))
			continue;
		all = policy_conf_for_all(r);
		say_print("    %-9s%s %s (line %u)", ibnbd_policy_may_names[r->may],
			  r->exclusive ? " exclusive" : "", all ? "everybody" : who, r->line);
	}
	if (!all && p->nr)
		say_print("    %-9s %s (no line)", "as asked", "everybody else");
}

/* Is an earlier rule about the same pattern? */
static bool policy_is_repeated(const struct ibnbd_policy_rules *p, u32 i)
{
	const char *pattern = p->text + p->rule[i].export;

	for (u32 b = 0; b < i; b++)
		if (!strcmp(p->text + p->rule[b].export, pattern))
			return true;
	return false;
}

void server_policy_print_unlisted(const struct policy_conf *c, const char *search)
{
	const struct ibnbd_policy_rules *p = c->rules;

	for (u32 i = 0; policy_search_unlisted(search) && i < p->nr; i++) {
		const char *pattern = p->text + p->rule[i].export;
		char *name __free(free) = policy_instance(pattern, POLICY_OTHER);

		if (policy_is_repeated(p, i))
			continue;
		say_print("  a name like %s", pattern);
		server_policy_print(c, name);
	}
}

void server_policy_json(struct json *j, const struct policy_conf *c)
{
	const struct ibnbd_policy_rules *p = c ? c->rules : NULL;

	if (!c) {
		json_text(j, "policy", NULL);
		return;
	}
	json_array(j, "policy");
	for (u32 i = 0; i < p->nr; i++) {
		const struct ibnbd_policy_rule *r = &p->rule[i];
		char *who __free(free) = policy_conf_who(p, r);

		json_object(j, NULL);
		json_num(j, "line", r->line);
		json_text(j, "export", p->text + r->export);
		json_text(j, "who", who);
		json_text(j, "access", ibnbd_policy_may_names[r->may]);
		json_bool(j, "exclusive", r->exclusive);
		json_end(j);
	}
	json_end(j);
}

/* ---- what any client may write to ---- */

struct policy_open {
	const struct ibnbd_policy_rules *rules;
	char *found;
};

static bool policy_open_offer(const struct server_offer *o, void *arg)
{
	struct policy_open *of = arg;
	char *name __free(free) = NULL;

	if (!o->name || (o->is_dir && !o->beyond))
		return false;
	name = o->is_dir ? say_fmt("%s/" POLICY_OTHER, o->name) : say_dup(o->name);
	if (policy_conf_anybody_writes(of->rules, name))
		of->found = say_fmt(o->is_dir ? "what is below %s" : "%s", o->shown);
	return of->found;
}

/* Names of two lengths: a pattern with as many ? as the one has bytes may be about that alone. */
static bool policy_open_pattern(const struct ibnbd_policy_rules *p, const char *pattern)
{
	char *one __free(free) = policy_instance(pattern, POLICY_OTHER),
	     *other __free(free) = policy_instance(pattern, POLICY_OTHER "\x7f");

	return policy_conf_anybody_writes(p, one) || policy_conf_anybody_writes(p, other);
}

/* Of names that cannot be listed: which may any client write to? */
static char *policy_open_unlisted(const struct ibnbd_policy_rules *p)
{
	char *found = NULL;

	if (policy_conf_anybody_writes(p, POLICY_OTHER))
		return say_dup("whatever no line is about");
	for (u32 i = 0; i < p->nr && !found; i++) {
		if (p->rule[i].may >= IBNBD_POLICY_RW &&
		    policy_open_pattern(p, p->text + p->rule[i].export))
			found = say_fmt("a name like %s", p->text + p->rule[i].export);
	}
	return found;
}

char *server_policy_open_name(const struct ibnbd_policy_rules *p, const char *search)
{
	struct policy_open of = { .rules = p };

	if (!p->nr)
		return say_dup("every export");
	if (policy_search_unlisted(search))
		of.found = policy_open_unlisted(p);
	if (!of.found)
		server_offers(search, policy_open_offer, &of);
	return of.found;
}

void server_policy_warn(struct server_conf *c, const struct policy_conf *p, bool look)
{
	const char *search = c->value[SERVER_dev_search_path], *allow = c->value[SERVER_allow],
		   *auth = c->value[SERVER_auth];
	struct maps_at at = { 0, SIZE_MAX, 0 };
	char *name __free(free) = NULL;

	/* With a mistake do not warn: it may be the line of allow that has it. */
	if (!search || !*search || c->m->nr_errors || p->m->nr_errors)
		return;
	if (auth && !strcmp(auth, "required")) {
		if (!p->rules->nr && !c->value[SERVER_policy])
			maps_warn(
				c->m, at,
				say_dup("the policy has no rules: a client with any of the keys may map every export, and write to it"),
				say_dup("a line of policy.conf for each key, and * deny as the last; or here, if that is meant: policy = optional"));
		return;
	}
	if (server_allow_bars(allow) || (p->rules->nr && !look))
		return;
	name = server_policy_open_name(p->rules, search);
	if (name)
		maps_warn(
			c->m, at,
			say_fmt("%s, there is no auth = required, and the policy %s: any host that reaches the port may map %s, and write to it",
				allow && *allow ?
					"allow is no protection: a client chooses the name of its session, and /0 is every address" :
					"there is no allow",
				p->rules->nr ? "does not deny it" : "has no rules", name),
			say_dup("allow = 10.0.0.0/24, a policy that ends with: * deny, or keys: ibnbd-server.conf(5)"));
}
