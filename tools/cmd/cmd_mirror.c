// SPDX-License-Identifier: GPL-2.0-only
/* mirror status, check, replace, stop and assemble. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/mirror.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/table.h"

/* ---- one of them, by its name ---- */

struct one {
	struct mirror_conf *list, *conf;
	struct mirror m;
	int lock;
};

static void one_close(struct one o)
{
	mirror_free(o.m);
	say_close(o.lock);
	mirror_conf_free(o.list);
}

DEFINE_FREE(one_close, struct one)

/* @change: take its lock. *@rc is the exit status. */
static struct one one_open(const char *name, bool change, int *rc)
{
	struct one o = { .lock = -1 };
	size_t refused;

	*rc = SAY_DONE;
	if (change && !sysfs_dry_run && !mirror_wrong_name(name)) {
		o.lock = mirror_lock(name, 120);
		if (o.lock < 0) {
			*rc = mirror_not_locked(name);
			return o;
		}
	}
	o.list = mirror_conf_load(&refused, true);
	o.conf = mirror_conf_find(o.list, name);
	if (o.conf) {
		o.m = mirror_read(o.conf, NULL);
	} else {
		say_error(SAY_NOTHING, "there is no mirror %s", name);
		*rc = say_hint("ibnbd mirror status");
	}
	return o;
}

static int one_not_running(const struct one *o)
{
	if (o->m.runs)
		return SAY_DONE;
	say_error(SAY_NOTHING, "mirror %s is not started", o->m.conf->name);
	return say_hint("ibnbd mirror assemble %s", o->m.conf->name);
}

/* ---- status ---- */

/* Print these mirrors, of which the last one has no name, or @nr of them. */
static void status_print(const struct cmd_args *a, const struct mirror_conf *list, size_t nr)
{
	struct json j;

	if (ARG(a, json))
		json_list(&j, "mirrors");
	for (size_t i = 0; i < nr && list[i].name; i++) {
		struct mirror m __free(mirror_free) = mirror_read(&list[i], NULL);

		if (ARG(a, json))
			tree_mirror_json(&j, &m, false);
		else
			tree_mirror(&m, false);
	}
	if (ARG(a, json))
		json_close(&j);
}

int cmd_mirror_status_run(struct cmd_args *a)
{
	struct mirror_conf *list __free(mirror_conf_free) = NULL;
	size_t refused;
	int rc;

	if (a->nr_words) {
		struct one o __free(one_close) = one_open(a->words[0], false, &rc);

		status_print(a, o.m.conf, rc ? 0 : 1);
		return rc;
	}
	list = mirror_conf_load(&refused, true);
	status_print(a, list, SIZE_MAX);
	return refused ? SAY_USAGE : SAY_DONE;
}

/* ---- check ---- */

static bool check_idle(const struct mirror *m)
{
	char *action __free(free) = md_attr(m->md, "sync_action");

	return !action || !strcmp(action, "idle");
}

/* All legs have to be there, or md compares nothing and says that nothing differs. */
static int check_can(const struct mirror *m)
{
	for (size_t i = 0; i < m->conf->nr; i++)
		if (!mirror_whole(m, i)) {
			say_error(SAY_BUSY, "mirror %s: %s is not there to be compared",
				  m->conf->name, m->conf->leg[i].name);
			return say_hint("ibnbd mirror status %s", m->conf->name);
		}
	if (check_idle(m))
		return SAY_DONE;
	return say_error(SAY_BUSY, "mirror %s: md copies or compares already", m->conf->name);
}

int cmd_mirror_check_run(struct cmd_args *a)
{
	int rc;
	struct one o __free(one_close) = one_open(a->words[0], false, &rc);
	char *dir __free(free) = NULL;
	int64_t n;

	rc = rc ? rc : one_not_running(&o);
	rc = rc ? rc : check_can(&o.m);
	if (!rc) {
		dir = sysfs_path("block/%s/md", o.m.md);
		rc = say_errno(sysfs_write(dir, "sync_action", "check"),
			       "mirror %s: md does not compare", a->words[0]);
	}
	while (!rc && !sysfs_dry_run && (usleep(200000), !check_idle(&o.m)))
		;
	if (!rc) {
		n = mirror_mismatch(&o.m);
		mirror_again(&o.m);
		if (!sysfs_dry_run)
			rc = check_can(&o.m);	/* one went meanwhile */
		if (!rc && !ARG(a, json) && !sysfs_dry_run)
			say_print(n ? "%s: the legs differ, in about %lld sectors" :
				      "%s: the legs are equal",
				  a->words[0], (long long)n);
		rc = rc ? rc : n && !sysfs_dry_run ? SAY_FAILED : SAY_DONE;
		if (ARG(a, json))
			status_print(a, o.m.conf, 1);
	} else if (ARG(a, json)) {
		status_print(a, o.m.conf, 0);
	}
	return rc;
}

/* ---- replace ---- */

static int replace_note(struct one *o, size_t leg)
{
	struct mirror_conf *conf = o->conf;
	const struct state_dev *d = o->m.dev[leg];
	const char *is = d && d->identity ? d->identity : "";

	if (!strcmp(conf->leg[leg].identity, is))
		return SAY_DONE;
	free(conf->leg[leg].identity);
	conf->leg[leg].identity = say_dup(is);
	return mirror_conf_write(conf);
}

int cmd_mirror_replace_run(struct cmd_args *a)
{
	bool new = a->nr_words == 3;
	int rc;
	struct one o __free(one_close) = one_open(a->words[0], true, &rc);
	size_t leg = 0;

	rc = rc ? rc : one_not_running(&o);
	if (rc)
		return rc;
	while (leg < o.conf->nr && strcmp(o.conf->leg[leg].name, a->words[1]))
		leg++;
	if (leg == o.conf->nr) {
		say_error(SAY_NOTHING, "mirror %s has no leg %s", a->words[0], a->words[1]);
		return say_hint("ibnbd mirror status %s", a->words[0]);
	}
	if (!new && o.m.leg[leg].disk == MIRROR_AWAY) {
		say_error(SAY_BUSY, "mirror %s: %s is %s: what is copied to it has to arrive",
			  a->words[0], a->words[1], o.m.dev[leg]->state_detail);
		return say_hint("ibnbd show %s", a->words[1]);
	}
	if (new) {
		rc = mirror_exchange(a, &o.m, o.conf, leg);
		mirror_again(&o.m);
	}
	if (!rc && !(new && sysfs_dry_run))
		rc = mirror_copy(&o.m, leg, "ibnbd mirror replace", true);
	return rc ? rc : replace_note(&o, leg);
}

/* ---- stop, assemble ---- */

int cmd_mirror_stop_run(struct cmd_args *a)
{
	int rc;
	struct one o __free(one_close) = one_open(a->words[0], true, &rc);
	bool open = false, waits = false;
	char *md __free(free) = NULL, *said __free(free) = NULL;

	if (rc)
		return rc;
	if (!o.m.md)
		return say_error(SAY_ALREADY, "mirror %s is stopped", a->words[0]);
	for (size_t i = 0; i < o.conf->nr; i++) {
		open |= mirror_whole(&o.m, i);
		waits |= o.m.leg[i].disk == MIRROR_AWAY &&
			 (o.m.leg[i].md == MIRROR_IN_SYNC || o.m.leg[i].md == MIRROR_REBUILDING);
	}
	if (waits && !open) {
		say_error(SAY_UNREACHABLE, "mirror %s: no leg is open, and md would wait for one",
			  a->words[0]);
		return say_hint("ibnbd maps release ends what waits, with errors");
	}
	md = say_fmt("/dev/%s", o.m.md);
	if (MD_RUN(&said, "--stop", md))
		rc = say_error(SAY_BUSY, "mirror %s: cannot stop it: %s", a->words[0],
			       said ? said : "?");
	return rc;
}

static int assemble_wait(const struct one *o, unsigned int mask, unsigned int all)
{
	say_error(SAY_BUSY, "mirror %s is not started: it waits for legs", o->m.conf->name);
	for (size_t i = 0; i < o->m.conf->nr; i++)
		if (o->m.leg[i].disk != MIRROR_OPEN)
			say_hint("%s is %s", o->m.conf->leg[i].name,
				 o->m.dev[i] ? o->m.dev[i]->state_detail : "not mapped");
		else if (!o->m.leg[i].recorded)
			say_hint("%s is there, and lacks what was written without it",
				 o->m.conf->leg[i].name);
	if (mask)
		say_hint("ibnbd mirror assemble --run %s starts it from what is there",
			 o->m.conf->name);
	else if (all)
		say_hint("ibnbd mirror assemble --run --force %s starts it from old data",
			 o->m.conf->name);
	return SAY_BUSY;
}

int cmd_mirror_assemble_run(struct cmd_args *a)
{
	unsigned int mask, all = 0;
	int rc;
	struct one o __free(one_close) = one_open(a->words[0], true, &rc);

	if (rc)
		return rc;
	if (o.m.runs)
		return say_error(SAY_ALREADY, "mirror %s runs, as /dev/%s", a->words[0], o.m.md);
	for (size_t i = 0; i < o.conf->nr; i++)
		all |= (unsigned int)(o.m.leg[i].disk == MIRROR_OPEN) << i;
	mask = mirror_start(o.m.leg, o.conf->nr, ARG(a, run));
	if (!mask && ARG(a, run) && ARG(a, force))
		mask = all;
	return mask ? mirror_run(&o.m, mask, ARG(a, force)) :
		      assemble_wait(&o, mirror_start(o.m.leg, o.conf->nr, true), all);
}
