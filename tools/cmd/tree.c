// SPDX-License-Identifier: GPL-2.0-only
/* Prints trees: mirror status, and list --tree. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd/mirror.h"
#include "tools/out/escape.h"
#include "tools/out/table.h"

/* @left: how many branches follow. */
static void tree_branch(const char *indent, size_t left)
{
	fputs(indent, stdout);
	fputs(left ? "├─ " : "└─ ", stdout);
}

static void tree_session_head(const struct state_session *sess)
{
	say_print("%s (%s) %s, %s", sess->name, sess->side, sess->state,
		  sess->policy ? sess->policy : "?");
}

/* @more: how many branches follow the paths. */
static void tree_paths(const struct state_session *sess, const char *indent, size_t more)
{
	size_t nr = (size_t)sess->nr_paths, i;

	for (i = 0; i < nr; i++) {
		const struct state_path *p = &sess->paths[i];

		tree_branch(indent, nr - 1 - i + more);
		say_print("path %s %s %s:%lld", p->name,
			  p->state_detail ? p->state_detail :
			  p->state	  ? p->state :
					    "?",
			  p->hca_name ? p->hca_name : "-",
			  (long long)(p->hca_port == SYSFS_UNKNOWN ? 0 : p->hca_port));
	}
}

/* ---- a mirror ---- */

static const char *const tree_md[] = {
	[MIRROR_NONE] = "none",
	[MIRROR_FAULTY] = "faulty",
	[MIRROR_REBUILDING] = "rebuilding",
	[MIRROR_IN_SYNC] = "in_sync",
};

/* Allocated. */
static char *tree_mirror_state(const struct mirror *m)
{
	char *action __free(free) = m->runs ? md_attr(m->md, "sync_action") : NULL;
	size_t i, whole = 0;
	int percent = m->runs ? md_progress(m->md) : -1;

	for (i = 0; i < m->conf->nr; i++)
		whole += mirror_whole(m, i);
	if (!m->runs)
		return say_dup(m->md ? "not started" : "stopped");
	if (percent < 0 || !action)
		return say_dup(whole < m->conf->nr ? "degraded" : "whole");
	return say_fmt("%s, %s %d%%", whole < m->conf->nr ? "degraded" : "whole", action, percent);
}

void tree_mirror(const struct mirror *m, bool sessions)
{
	char *words __free(free) = tree_mirror_state(m);

	say_print("%s  /dev/%s  %s", m->conf->name, m->md ? m->md : "-", words);
	for (size_t i = 0; i < m->conf->nr; i++) {
		const struct state_dev *d = m->dev[i];
		const struct state_session *sess = sessions ? mirror_session(m, i) : NULL;
		const bool last = i + 1 == m->conf->nr;

		tree_branch("", !last);
		say_print("%s  %s  %s  %s%s%s%s", m->conf->leg[i].name, d ? d->path : "-",
			  d && d->state_detail ? d->state_detail : "not mapped",
			  m->leg[i].md == MIRROR_NONE	 ? "not in the array" :
			  m->leg[i].md == MIRROR_IN_SYNC ? "in sync" :
							   tree_md[m->leg[i].md],
			  m->leg[i].recorded ? "" : ", lacks something",
			  d && d->reason ? ": " : "", d && d->reason ? d->reason : "");
		if (!sess)
			continue;
		tree_branch(last ? "   " : "│  ", 0);
		tree_session_head(sess);
		tree_paths(sess, last ? "      " : "│     ", 0);
	}
}

void tree_mirror_json(struct json *j, const struct mirror *m, bool sessions)
{
	char *words __free(free) = tree_mirror_state(m),
	     *path __free(free) = m->runs ? say_fmt("/dev/%s", m->md) : NULL;

	json_object(j, NULL);
	json_text(j, "name", m->conf->name);
	json_text(j, "uuid", m->conf->uuid);
	json_text(j, "path", path);
	json_text(j, "state", words);
	json_num(j, "mismatched_sectors", mirror_mismatch(m));
	json_array(j, "legs");
	for (size_t i = 0; i < m->conf->nr; i++) {
		const struct state_dev *d = m->dev[i];
		const struct state_session *sess = sessions ? mirror_session(m, i) : NULL;

		json_object(j, NULL);
		json_text(j, "name", m->conf->leg[i].name);
		json_text(j, "path", d ? d->path : NULL);
		json_text(j, "state_detail", d ? d->state_detail : NULL);
		json_text(j, "reason", d ? d->reason : NULL);
		json_text(j, "md", tree_md[m->leg[i].md]);
		json_bool(j, "recorded", m->leg[i].recorded);
		if (sessions)
			table_json_sessions(j, "sessions", sess, sess ? 1 : 0);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* ---- all of them ---- */

/* Is a leg of it wanted? Its legs are added to @legs, a flag for each disk. */
static bool tree_mirror_wanted(const struct mirror *m, const bool *wanted, bool *legs)
{
	bool any = false;

	for (size_t i = 0; i < m->conf->nr; i++) {
		size_t disk;

		if (!m->dev[i])
			continue;
		disk = (size_t)(m->dev[i] - m->s->devs);
		legs[disk] = true;
		any |= wanted[disk];
	}
	return any;
}

static bool tree_on(const struct state_session *sess, const struct state_dev *d)
{
	return d->session && !strcmp(d->session, sess->name);
}

/*
 * Is a session asked for, by its name or by a disk, and how many of its wanted disks are no legs?
 * @legs: NULL, or a flag for each disk: a session that has only legs stands below these.
 */
static bool tree_session_wanted(const struct cmd_args *a, const struct state *s,
				const struct state_session *sess, const bool *wanted,
				const bool *legs, size_t *nr)
{
	size_t i, of_legs = 0;

	*nr = 0;
	for (i = 0; i < s->nr_devs; i++) {
		if (!tree_on(sess, &s->devs[i]))
			continue;
		*nr += wanted[i] && !(legs && legs[i]);
		of_legs += legs && legs[i];
	}
	if (VALUE(a, session) && !escape_means(VALUE(a, session), sess->name))
		return false;
	return *nr || (!a->nr_words && !of_legs);
}

static void tree_disk_row(const struct cmd_args *a, const struct state_dev *d)
{
	char *size __free(free) = table_size(d->size, ARG(a, bytes)),
	     *state __free(free) = table_state(d, d->state_detail ? d->state_detail : d->state);

	say_print("%s %s %s %s%s%s", d->path, d->device_path ? d->device_path : "?", size, state,
		  d->name ? " " : "", d->name ? d->name : "");
}

static void tree_session(const struct cmd_args *a, const struct state *s,
			 const struct state_session *sess, const bool *wanted, const bool *legs)
{
	size_t left, i;

	if (!tree_session_wanted(a, s, sess, wanted, legs, &left))
		return;
	tree_session_head(sess);
	tree_paths(sess, "", left);
	for (i = 0; i < s->nr_devs; i++) {
		if (!tree_on(sess, &s->devs[i]) || !wanted[i] || legs[i])
			continue;
		tree_branch("", --left);
		tree_disk_row(a, &s->devs[i]);
	}
}

/* Each mirror, to @j if that is given. Returns which disks are legs, allocated. */
static bool *tree_mirrors(struct json *j, const struct cmd_args *a, struct state *s,
			  const bool *wanted)
{
	const bool all = !a->nr_words && !VALUE(a, session);
	bool *legs = say_alloc(s->nr_devs);
	size_t refused;
	struct mirror_conf *list __free(mirror_conf_free) = mirror_conf_load(&refused, false), *c;

	for (c = list; c->name; c++) {
		struct mirror m __free(mirror_free) = mirror_read(c, s);

		if (!tree_mirror_wanted(&m, wanted, legs) && !all)
			;
		else if (j)
			tree_mirror_json(j, &m, true);
		else
			tree_mirror(&m, true);
	}
	return legs;
}

void tree_all(const struct cmd_args *a, struct state *s, const bool *wanted)
{
	bool *legs __free(free) = tree_mirrors(NULL, a, s, wanted);

	for (size_t i = 0; i < s->nr_sessions; i++)
		tree_session(a, s, &s->sessions[i], wanted, legs);
	/* A disk that is mapped or unmapped meanwhile may have a session that is not there. */
	for (size_t i = 0; i < s->nr_devs; i++)
		if (wanted[i] && !legs[i] && !state_session(s, s->devs[i].session))
			tree_disk_row(a, &s->devs[i]);
}

void tree_all_json(struct json *j, const struct cmd_args *a, struct state *s, const bool *wanted)
{
	struct state_session *some __free(free) = say_alloc((s->nr_sessions + 1) * sizeof(*some));
	size_t n = 0, i, disks;

	json_array(j, "mirrors");
	free(tree_mirrors(j, a, s, wanted));
	json_end(j);
	for (i = 0; i < s->nr_sessions; i++)
		if (tree_session_wanted(a, s, &s->sessions[i], wanted, NULL, &disks))
			some[n++] = s->sessions[i];
	table_json_sessions(j, "sessions", some, n);
}
