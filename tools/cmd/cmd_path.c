// SPDX-License-Identifier: GPL-2.0-only
/* path add, remove, disconnect, reconnect, policy; session reconnect: commands to the transport. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/cmd.h"
#include "tools/host/host.h"
#include "tools/host/live.h"
#include "tools/host/mapping.h"
#include "tools/host/state.h"

/* The session that @name names. NULL: no session, or two of them, which was said. */
static struct state_session *path_session(struct state *s, const char *name)
{
	const char *near = NULL;
	char *why __free(free) = NULL;
	struct state_session *sess = state_meant(s->sessions, s->nr_sessions, sizeof(*sess),
						 state_is_session, name, &why);

	if (sess)
		return sess;
	for (size_t i = 0; i < s->nr_sessions; i++)
		near = say_nearest(name, near, s->sessions[i].name);
	if (why)
		say_error(SAY_NOTHING, "%s", why);
	else if (near)
		say_error(SAY_NOTHING, "%s: no such session, did you mean \"%s\"?", name, near);
	else
		say_error(SAY_NOTHING, "%s: no such session%s", name,
			  s->nr_sessions ? "" : ", there is none at all");
	say_hint(s->nr_sessions ? "ibnbd session list" :
				  "ibnbd map DEVICE SESSION ADDRESS makes one");
	return NULL;
}

/* ---- add ---- */

static int path_add_one(struct cmd_args *a, const struct state_session *sess, const char *word)
{
	struct ibtrs_addr_pair one, *pairs = &one, *named __free(free) = NULL;
	char text[IBTRS_PATH_STR_MAX], *why __free(free) = NULL, *said __free(free) = NULL,
	     *source __free(free) = NULL;
	const char *reason = "not an address";
	size_t nr = 1, i;
	int err = 0, rc;

	if (ibtrs_addr_pair_parse(word, strlen(word), &one, &reason)) {
		if (!host_is_name(word)) {
			say_error(SAY_USAGE, "path add: \"%s\": %s", word,
				  host_wrong(word, reason));
			return say_hint(
				"[SOURCE,]DESTINATION, addresses as 10.0.1.7, ip:[fe80::1%%eth2], gid:fe80:...:b2c3");
		}
		if (host_resolve(word, &named, &nr, &why))
			return say_error(SAY_UNREACHABLE, "path add: %s", why);
		pairs = named;
	}
	for (i = 0; i < nr && (!i || say_exit_of(err) == SAY_UNREACHABLE); i++) {
		ibtrs_addr_pair_format(&pairs[i], text, sizeof(text));
		err = sysfs_write(sess->dir, "add_path", text);
	}
	if (err == EEXIST && ARG(a, idempotent))
		err = 0;
	if (!err)
		return SAY_DONE;
	/* The message of the driver or of the server; there is none if no attempt was made. */
	said = sysfs_attr(sess->dir, "last_error");
	source = err == EEXIST || err == EACCES ? NULL : host_wrong_source(&pairs[i - 1]);
	why = say_fmt("%s%s%s",
		      said ? said : err == EEXIST ? "it is there already" : strerror(err),
		      source ? "; " : "", source ? source : "");
	rc = mapping_refused(sess->dir, "add_path", err, why,
			     say_exit_of(err) == SAY_UNREACHABLE ? mapping_hint(NULL, NULL, err) :
								   NULL,
			     "cannot add path %s to session %s", text, sess->name);
	if (say_level > 1)
		mapping_kmsg(stderr, 10);
	return rc;
}

static void path_shared(const char *session)
{
	struct state *s __free(state_free) = state_read();
	struct state_session *sess = state_session(s, session);
	char *hint __free(free) = NULL,
	     *why __free(free) = sess ? live_shared(sess, false, &hint) : NULL;

	if (why) {
		say_warn("%s", why);
		say_hint("%s", hint);
	}
}

int cmd_path_add_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct state_session *sess = path_session(s, a->words[0]);
	struct say_sum sum = { 0 };

	if (!sess)
		return SAY_NOTHING;
	for (size_t i = 1; i < a->nr_words; i++)
		say_sum(&sum, path_add_one(a, sess, a->words[i]));
	if (!sum.rc && !sysfs_dry_run)
		path_shared(sess->name);
	return sum.rc;
}

/* ---- remove, disconnect, reconnect ---- */

static bool path_addr_is(const char *addr, const char *word)
{
	return addr &&
	       (!strcmp(addr, word) || (!strncmp(addr, "ip:", 3) && !strcmp(addr + 3, word)));
}

static bool path_is(const struct state_path *p, const char *word)
{
	const char *colon = strrchr(word, ':'), *cut = strpbrk(word, "@,");
	char *src __free(free) = NULL;

	if (!strcmp(p->name, word) || path_addr_is(p->src_addr, word) ||
	    path_addr_is(p->dst_addr, word))
		return true;
	if (cut) {
		src = say_fmt("%.*s", (int)(cut - word), word);
		return path_addr_is(p->src_addr, src) && path_addr_is(p->dst_addr, cut + 1);
	}
	return colon && p->hca_name && strlen(p->hca_name) == (size_t)(colon - word) &&
	       !strncmp(p->hca_name, word, (size_t)(colon - word)) &&
	       p->hca_port == atoi(colon + 1);
}

/* The order is the last word of its command. Only "reconnect" wants the path up. */
static const char *path_verb(const struct cmd_args *a)
{
	return strchr(a->cmd->name, ' ') + 1;
}

static int path_do(struct cmd_args *a, struct state_session *sess, struct state_path *p)
{
	const char *verb = path_verb(a), *file = strcmp(verb, "remove") ? verb : "remove_path";
	bool takes_away = strcmp(verb, "reconnect");
	char *detail __free(free) = NULL, *why __free(free) = NULL;
	int err, rc;

	if (takes_away && p->up && sess->nr_up == 1 && sess->nr_devices && !ARG(a, force)) {
		say_error(SAY_BUSY,
			  "%s is the last path of session %s that works, and %lld device%s need it",
			  p->name, sess->name, (long long)sess->nr_devices,
			  sess->nr_devices == 1 ? "" : "s");
		return say_hint("--force");
	}
	if (!takes_away && p->up) {
		if (ARG(a, idempotent) || ARG(a, all))
			return SAY_DONE;
		return say_error(SAY_ALREADY, "path %s of session %s is connected", p->name,
				 sess->name);
	}
	err = sysfs_write(p->dir, file, "1");
	if (!err) {
		if (takes_away && p->up)
			sess->nr_up--;
		return SAY_DONE;
	}
	detail = sysfs_attr(p->dir, "state_detail");
	why = say_fmt("%s%s%s", err == EBUSY ? "it is being connected or closed" : strerror(err),
		      detail ? ", it is " : "", detail ? detail : "");
	rc = mapping_refused(p->dir, file, err, why, err == ENOTCONN ? "ibnbd doctor" : NULL,
			     "cannot %s path %s of session %s", verb, p->name, sess->name);
	if (say_level > 1)
		mapping_kmsg(stderr, 10);
	return rc;
}

/* Apply the order to the path of the session that @word names: exactly one has to match. */
static int path_one_word(struct cmd_args *a, struct state_session *sess, const char *word)
{
	struct state_path *found = NULL;
	size_t i, nr = 0;

	for (i = 0; i < (size_t)sess->nr_paths; i++) {
		if (!path_is(&sess->paths[i], word))
			continue;
		found = &sess->paths[i];
		nr++;
	}
	if (nr == 1)
		return path_do(a, sess, found);
	if (!nr && ARG(a, idempotent) && strcmp(path_verb(a), "reconnect"))
		return SAY_DONE;
	if (nr)
		say_error(SAY_USAGE, "%s stands for %zu paths of session %s", word, nr, sess->name);
	else
		say_error(SAY_NOTHING, "session %s has no path %s", sess->name, word);
	return say_hint("ibnbd path list %s", sess->name);
}

/* The rnbd tool names paths without their session. */
static struct state_session *path_of_no_session(struct state *s, const char *word)
{
	if (!strchr(word, '@') || state_session_said(s, word))
		return NULL;
	for (size_t i = 0; i < s->nr_sessions; i++)
		for (size_t j = 0; j < (size_t)s->sessions[i].nr_paths; j++)
			if (path_is(&s->sessions[i].paths[j], word))
				return &s->sessions[i];
	return NULL;
}

int cmd_path_order_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct state_session *sess = a->nr_words ? path_of_no_session(s, a->words[0]) : NULL;
	struct say_sum sum = { 0 };

	if (sess)
		say_sum(&sum, path_one_word(a, sess, a->words[0]));
	else if (a->nr_words)
		sess = path_session(s, a->words[0]);
	if (!sess && a->nr_words)
		return SAY_NOTHING;
	if (!ARG(a, all) && a->nr_words < 2 && !sum.any) {
		say_error(SAY_USAGE, "%s: which path of session %s?", a->cmd->name, a->words[0]);
		return say_hint("ibnbd path list %s", a->words[0]);
	}
	for (size_t i = 0; ARG(a, all) && i < s->nr_sessions; i++) {
		struct state_session *of = &s->sessions[i];

		for (size_t j = 0; (!sess || sess == of) && j < (size_t)of->nr_paths; j++)
			say_sum(&sum, path_do(a, of, &of->paths[j]));
	}
	for (size_t i = 1; !ARG(a, all) && i < a->nr_words; i++)
		say_sum(&sum, path_one_word(a, sess, a->words[i]));
	return sum.rc;
}

int cmd_session_reconnect_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct say_sum sum = { 0 };

	for (size_t i = 0; i < (ARG(a, all) ? s->nr_sessions : a->nr_words); i++) {
		struct state_session *sess = ARG(a, all) ? &s->sessions[i] :
							   path_session(s, a->words[i]);

		if (!sess)
			say_sum(&sum, SAY_NOTHING);
		for (size_t j = 0; sess && j < (size_t)sess->nr_paths; j++)
			if (!sess->paths[j].up)
				say_sum(&sum, path_do(a, sess, &sess->paths[j]));
	}
	return sum.rc;
}

/* ---- policy ---- */

int cmd_path_policy_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	struct state_session *sess = path_session(s, a->words[0]);
	struct ibnbd_mapopt_err err;
	struct ibnbd_map map;
	char word[32];
	int e;

	if (!sess)
		return SAY_NOTHING;
	if (a->nr_words == 1) {
		puts(sess->policy ? sess->policy : "unknown");
		return SAY_DONE;
	}
	ibnbd_mapopt_init(&map);
	if (ibnbd_mapopt_set(&map, "policy", a->words[1], &err))
		return say_error(SAY_USAGE, "path policy: %s", err.msg);
	ibnbd_mapopt_word(IBNBD_OPT_policy, map.policy, word, sizeof(word));
	e = sysfs_write(sess->dir, "mpath_policy", word);
	return e ? mapping_refused(sess->dir, "mpath_policy", e, strerror(e), NULL,
				   "cannot set the policy of session %s", sess->name) :
		   SAY_DONE;
}
