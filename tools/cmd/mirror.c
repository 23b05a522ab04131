// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations on one mirror, for the verbs of `ibnbd mirror` and its watch: read its state, take a
 * leg back, copy a leg whole, start the array.
 *
 * mirror_copy() follows one order. A leg that has lost writes must not be open to md again before
 * md has let it go, or md reads from it: so it is removed before it is opened again. And md takes a
 * superblock that it knows for a reason to copy by the bitmap: so that is wiped before it is added.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd/mirror.h"
#include "tools/conf/file.h"
#include "tools/host/mapping.h"
#include "tools/out/say.h"

#define MIRROR_TRIES	10	/* seconds that md may take to let a leg go, or to take it back */

/* ---- looking ---- */

static enum mirror_disk mirror_disk(const struct state_dev *d)
{
	const char *state = d && d->state_detail ? d->state_detail : "";

	return !d			  ? MIRROR_GONE :
	       !strcmp(state, "open")	  ? MIRROR_OPEN :
	       !strcmp(state, "fenced")	  ? MIRROR_FENCED :
					    MIRROR_AWAY;
}

static const struct state_dev *mirror_named(const struct state *s, const char *name)
{
	for (size_t i = 0; i < s->nr_devs; i++)
		if (s->devs[i].name && !strcmp(s->devs[i].name, name))
			return &s->devs[i];
	return NULL;
}

struct mirror mirror_read(const struct mirror_conf *conf, struct state *s)
{
	struct mirror m = { .s = s ? s : state_read(), .borrowed = s, .conf = conf };

	for (size_t i = 0; i < conf->nr; i++) {
		const struct state_dev *d = mirror_named(m.s, conf->leg[i].name);

		m.dev[i] = d;
		m.leg[i].disk = mirror_disk(d);
		m.leg[i].recorded = conf->leg[i].recorded;
		m.leg[i].noted = d && sysfs_attr_num(d->dir, "ibnbd/in_sync") == 1;
		if (d && !m.md)
			m.md = md_over(d->kname);
	}
	m.runs = m.md && md_runs(m.md);
	for (size_t i = 0; i < conf->nr; i++)
		m.leg[i].md = m.md && m.dev[i] ? md_member(m.md, m.dev[i]->kname) :
						     MIRROR_NONE;
	return m;
}

void mirror_free(struct mirror m)
{
	if (!m.borrowed)
		state_free(m.s);
	free(m.md);
}

void mirror_again(struct mirror *m)
{
	mirror_free(*m);
	*m = mirror_read(m->conf, NULL);
}

bool mirror_whole(const struct mirror *m, size_t leg)
{
	return m->leg[leg].disk == MIRROR_OPEN && m->leg[leg].md == MIRROR_IN_SYNC;
}

bool mirror_another(const struct mirror *m, size_t leg)
{
	bool another = false;

	for (size_t i = 0; m->runs && i < m->conf->nr; i++)
		another |= i != leg && mirror_whole(m, i);
	return another;
}

struct state_session *mirror_session(const struct mirror *m, size_t leg)
{
	const struct state_dev *d = m->dev[leg];

	return d ? state_session(m->s, d->session) : NULL;
}

struct mirror_facts mirror_facts(const struct mirror *m, size_t leg)
{
	const struct state_dev *d = m->dev[leg];
	const char *identity = m->conf->leg[leg].identity;
	bool told = d && d->identity && *d->identity;

	return (struct mirror_facts){
		.disk = m->leg[leg].disk,
		.md = m->leg[leg].md,
		.another = mirror_another(m, leg),
		.tells = told && d->features && strstr(d->features, "durability") &&
			 !(d->unflushed && !strcmp(d->unflushed, "ignore")),
		.known = told && !strcmp(d->identity, identity),
	};
}

int64_t mirror_mismatch(const struct mirror *m)
{
	char *text __free(free) = m->runs ? md_attr(m->md, "mismatch_cnt") : NULL;

	return text ? strtoll(text, NULL, 10) : SYSFS_UNKNOWN;
}

int mirror_lock(const char *name, int seconds)
{
	char *path __free(free) = sysfs_root("/run/ibnbd/mirror-%s.lock", name);
	int fd, err;

	file_mkdirs(path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	err = fd < 0 ? errno : file_lock(fd, false, seconds);
	if (fd >= 0 && err)
		close(fd);
	errno = err;
	return err ? -1 : fd;
}

bool mirror_watched(void)
{
	char *path __free(free) = sysfs_root("/run/ibnbd/mirror-" MIRROR_WATCH_LOCK ".lock");
	struct flock lock = { .l_type = F_WRLCK };
	int fd __free(say_close) = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 ? errno == EACCES : fcntl(fd, F_GETLK, &lock) || lock.l_type != F_UNLCK;
}

int mirror_not_locked(const char *name)
{
	int err = errno == EAGAIN ? EBUSY : errno;

	return say_error(say_exit_of(err), "mirror %s: %s", name,
			 err == EBUSY ? "something else changes it right now" : strerror(err));
}

/* ---- a leg ---- */

static void mirror_second(void)
{
	if (!sysfs_dry_run)
		sleep(1);
}

static int mirror_failed(const struct mirror *m, size_t leg, const char *what, const char *said)
{
	return say_error(SAY_FAILED, "mirror %s: cannot %s %s%s%s", m->conf->name, what,
			 m->conf->leg[leg].name, said && *said ? ": " : "", said ? said : "");
}

/* Only with another leg in sync and open does md answer, and does a copy have a source. */
static int mirror_needs_another(const struct mirror *m, size_t leg)
{
	if (mirror_another(m, leg))
		return SAY_DONE;
	say_error(SAY_BUSY, "mirror %s: %s stays as it is: no other leg is in sync and open",
		  m->conf->name, m->conf->leg[leg].name);
	return say_hint("ibnbd mirror status %s", m->conf->name);
}

/* md lets a member go when no request to it is under way any more. */
int mirror_take_out(struct mirror *m, size_t leg)
{
	char *md __free(free) = NULL, *path __free(free) = NULL, *said __free(free) = NULL;
	int rc = mirror_needs_another(m, leg), tries;

	if (rc || m->leg[leg].md == MIRROR_NONE)
		return rc;
	md = say_fmt("/dev/%s", m->md);
	path = say_dup(m->dev[leg]->path);
	if (m->leg[leg].md != MIRROR_FAULTY && MD_RUN(&said, md, "--fail", path))
		rc = mirror_failed(m, leg, "take out", said);
	for (tries = MIRROR_TRIES; !rc && m->leg[leg].md != MIRROR_NONE; tries--) {
		free(said);
		mirror_second();
		if (!MD_RUN(&said, md, "--remove", path) && sysfs_dry_run)
			break;
		mirror_again(m);
		if (!m->dev[leg] || !m->runs || (!tries && m->leg[leg].md != MIRROR_NONE))
			rc = mirror_failed(m, leg, "take out", said);
	}
	return rc;
}

/* Open it again, if it is fenced. */
static int mirror_open(struct mirror *m, size_t leg)
{
	static const char file[] = "ibnbd/remap_device";
	char *dir __free(free) = say_dup(m->dev[leg]->dir), *why __free(free) = NULL;
	int err = 0, tries = MIRROR_TRIES;

	while (m->leg[leg].disk != MIRROR_OPEN && tries--) {
		err = sysfs_write(dir, file, "1");
		if (sysfs_dry_run)
			break;
		/* a process that looked at it when md let it go may have it open */
		if (err && err != EALREADY)
			mirror_second();
		mirror_again(m);
		if (!m->dev[leg])
			break;
	}
	if (sysfs_dry_run || m->leg[leg].disk == MIRROR_OPEN)
		return SAY_DONE;
	why = m->dev[leg] ? mapping_reason(dir, file, err) : NULL;
	return mirror_failed(m, leg, "open", why);
}

/* Is it the disk that the mirror was made of? It may have been another one behind the fence. */
static int mirror_same_disk(const struct mirror *m, size_t leg)
{
	if (mirror_facts(m, leg).known)
		return SAY_DONE;
	say_error(SAY_FAILED,
		  "mirror %s: %s is not written over, it is not known to be the disk that the mirror was made of: its identity is %s, and was %s",
		  m->conf->name, m->conf->leg[leg].name,
		  m->dev[leg]->identity ? m->dev[leg]->identity : "none",
		  *m->conf->leg[leg].identity ? m->conf->leg[leg].identity : "none");
	return say_hint("look at it on its server, then: ibnbd mirror replace %s %s",
			m->conf->name, m->conf->leg[leg].name);
}

static int mirror_wipe(const struct mirror *m, size_t leg)
{
	const char *path = m->dev[leg]->path;
	struct md_super super;
	char *said __free(free) = NULL;

	MD_RUN(&said, "--zero-superblock", path);	/* an error if there is none */
	if (!sysfs_dry_run && (md_examine(path, &super) || *super.uuid))
		return mirror_failed(m, leg, "wipe the superblock of", said);
	return SAY_DONE;
}

int mirror_copy(struct mirror *m, size_t leg, const char *why, bool typed)
{
	/* what md has had open all the time, and is not fenced, is the same disk */
	bool same = typed || (m->leg[leg].disk == MIRROR_OPEN && m->leg[leg].md != MIRROR_NONE);
	int rc = mirror_needs_another(m, leg);
	char *md __free(free) = NULL, *said __free(free) = NULL;

	if (!rc && !m->dev[leg])
		rc = mirror_failed(m, leg, "copy", "it is not mapped");
	if (rc)
		return rc;
	say_warn("mirror %s: %s is copied whole: %s", m->conf->name, m->conf->leg[leg].name, why);
	rc = mirror_take_out(m, leg);
	rc = rc ? rc : mirror_open(m, leg);
	if (!rc && !same && !sysfs_dry_run)
		rc = mirror_same_disk(m, leg);
	rc = rc ? rc : mirror_needs_another(m, leg);
	rc = rc ? rc : mirror_wipe(m, leg);
	if (rc)
		return rc;
	md = say_fmt("/dev/%s", m->md);
	if (MD_RUN(&said, md, "--add", "--failfast", m->dev[leg]->path))
		rc = mirror_failed(m, leg, "add", said);
	return rc;
}

int mirror_readd(struct mirror *m, size_t leg)
{
	struct mirror_facts f;

	for (int tries = MIRROR_TRIES / 2; tries; tries--) {
		md_readd(m->md, m->dev[leg]->kname);
		if (sysfs_dry_run)
			return SAY_DONE;
		mirror_second();
		mirror_again(m);
		if (m->leg[leg].md == MIRROR_IN_SYNC || m->leg[leg].md == MIRROR_REBUILDING) {
			say_warn("mirror %s: %s is back: what was written meanwhile is copied to it",
				 m->conf->name, m->conf->leg[leg].name);
			return SAY_DONE;
		}
		f = mirror_facts(m, leg);
		if (mirror_decide(&f) != MIRROR_READD)
			return SAY_DONE;	/* it is gone again; the next look decides */
		mirror_second();
	}
	return mirror_copy(m, leg, mirror_why(&f), false);
}

/* ---- the array ---- */

/* Does the superblock speak against what the record says of the leg? */
static bool mirror_believed(const struct mirror *m, size_t leg)
{
	const struct mirror_conf_leg *c = &m->conf->leg[leg];
	struct md_super super;

	if (md_examine(m->dev[leg]->path, &super))
		say_error(SAY_FAILED, "mirror %s: the superblock of %s cannot be read",
			  m->conf->name, c->name);
	else if (strcmp(super.uuid, m->conf->uuid))
		say_error(SAY_FAILED, "mirror %s: %s has the superblock of %s", m->conf->name,
			  c->name, *super.uuid ? super.uuid : "no array");
	else if (!super.active)
		say_error(SAY_FAILED, "mirror %s: %s says itself that it lacks something",
			  m->conf->name, c->name);
	else
		return true;
	return false;
}

/* Does the array have these members, and no other? udev put them together one by one. */
static bool mirror_has(const struct mirror *m, unsigned int mask)
{
	for (size_t i = 0; i < m->conf->nr; i++)
		if ((m->leg[i].md != MIRROR_NONE) != !!(mask & 1u << i))
			return false;
	return true;
}

int mirror_run(struct mirror *m, unsigned int mask, bool trust)
{
	const char *words[8 + MIRROR_LEGS] = { "mdadm", "--assemble", "--run" };
	char *path __free(free) = say_fmt("/dev/md/%s", m->conf->name), *said __free(free) = NULL,
	     *md __free(free) = m->md ? say_fmt("/dev/%s", m->md) : NULL;
	size_t i, n = 3;
	int rc;

	words[n++] = path;
	for (i = 0; i < m->conf->nr; i++) {
		if (!(mask & 1u << i))
			continue;
		if (!trust && !mirror_believed(m, i))
			mask &= ~(1u << i);
		else
			words[n++] = m->dev[i]->path;
	}
	if (md && mask && !mirror_has(m, mask)) {
		rc = MD_RUN(&said, "--stop", md);
		if (!rc) {
			free(said);
			rc = md_run(&said, words);
		}
	} else if (mask) {
		rc = md ? MD_RUN(&said, "--run", md) : md_run(&said, words);
	} else {
		rc = -1;
		said = say_dup("no leg is left to start it from");
	}
	if (!rc)
		return SAY_DONE;
	return say_error(SAY_FAILED, "mirror %s: cannot start it%s%s", m->conf->name,
			 said && *said ? ": " : "", said ? said : "");
}
