// SPDX-License-Identifier: GPL-2.0-only
/*
 * mirror watch: keeps mirrors whole. One process, started by ibnbd-mirror.service.
 *
 * It looks at each mirror when the kernel has news of a disk or of md, and every few seconds. What
 * it does follows from what it sees then (conf/mirror_rule.c), so nothing is lost if it was not
 * there for a while. In each look, in this order:
 *
 *	the record	which legs have everything. A leg to which no path leads is out of it at
 *			once, seconds before the driver lets its requests fail, and md drops it: so
 *			a boot never starts from a leg that was left behind.
 *	in_sync		tells the driver what md says of a leg. Only with another leg in_sync does
 *			the driver let requests of a leg fail. While the record cannot be written,
 *			and when this process ends, it is 0 for all legs: they wait for their paths.
 *	hold=		The driver does not end writes without FAILFAST, which md sends while it has
 *			one leg: to that leg, and to one that it copies to. When md has dropped the
 *			leg, or was copying to it, hold=0 ends these, too, until it is back.
 *	a leg		is taken back, or copied whole, or the array is started: by a process of
 *			its own, so that the record is kept meanwhile. It has the mirror's lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/mirror.h"
#include "tools/conf/maps_conf.h"
#include "tools/host/mapping.h"
#include "tools/host/notify.h"

#define WATCH_MS	2000
#define WATCH_PAUSE	10	/* seconds until what failed is tried again; doubles */
#define WATCH_MAX_PAUSE	320
#define WATCH_IN_SYNC	"ibnbd/in_sync"

/**
 * struct watched_leg - what is remembered of a leg
 * @taken: when it was taken back last, 0: never
 * @pause: seconds from then until it may be taken back again
 * @whole: the look since which it is open and in sync, 0: it is not
 * @told: disk of which the driver was told that it is in sync, NULL: it was told that it is not
 */
struct watched_leg {
	int64_t taken;
	unsigned int pause;
	int64_t whole;
	char *told;
};

/**
 * struct watched_work - what a worker does: something with a leg, or start the array
 * @not_before, @pause: after a failure
 */
struct watched_work {
	int64_t not_before;
	unsigned int pause;
};

#define WATCH_START	MIRROR_LEGS

/**
 * struct watched - what is remembered of a mirror
 * @worker: the process that does something with it, 0: none; @at: with which leg, or WATCH_START
 * @first: when it was first seen
 * @ran: it has been running since then: it was stopped on purpose
 * @copied: legs that were seen out of the array that runs, or behind, a bit for each
 * @said: what it waits for, said last
 */
struct watched {
	char *name;
	pid_t worker;
	size_t at;
	int64_t first;
	unsigned int copied;
	bool ran;
	char *said;
	struct watched_leg leg[MIRROR_LEGS];
	struct watched_work work[MIRROR_LEGS + 1];
};

struct watch {
	struct watched *list;
	size_t nr;
	size_t refused;		/* files, which have been told */
};

static volatile sig_atomic_t watch_end;

static void watch_signal(int signal)
{
	watch_end = signal;
}

static struct watched *watch_of(struct watch *w, const char *name)
{
	for (size_t i = 0; i < w->nr; i++)
		if (!strcmp(w->list[i].name, name))
			return &w->list[i];
	w->list = say_grow(w->list, (w->nr + 1) * sizeof(*w->list));
	w->list[w->nr] = (struct watched){ .name = say_dup(name), .first = sysfs_now() };
	return &w->list[w->nr++];
}

/* Once, until it is something else. Takes the text; NULL: there is nothing to say. */
static void watch_say(struct watched *o, char *text)
{
	if (text && (!o->said || strcmp(o->said, text)))
		say_warn("mirror %s: %s", o->name, text);
	free(o->said);
	o->said = text;
}

/* ---- the record, and what the driver is told ---- */

/* The disk that was this leg is none any more, as far as this process can tell. */
static void watch_untell(struct watched_leg *leg)
{
	if (leg->told)
		sysfs_write(leg->told, WATCH_IN_SYNC, "0");
	free(leg->told);
	leg->told = NULL;
}

static void watch_tell(struct watched *o, const struct mirror *m, size_t leg, bool in_sync)
{
	const struct state_dev *d = m->dev[leg];
	char **told = &o->leg[leg].told;

	if (*told && (!d || strcmp(*told, d->dir)))
		watch_untell(&o->leg[leg]);
	free(*told);
	*told = d && in_sync ? say_dup(d->dir) : NULL;
	if (d && m->leg[leg].noted != in_sync)
		sysfs_write(d->dir, WATCH_IN_SYNC, in_sync ? "1" : "0");
}

/* A mirror whose file is gone, or has mistakes, has no record: so no leg of it is let go. */
static void watch_gone(struct watch *w, struct mirror_conf *list)
{
	for (size_t i = 0; i < w->nr; i++) {
		bool gone = !list || !mirror_conf_find(list, w->list[i].name);

		for (size_t j = 0; gone && j < MIRROR_LEGS; j++)
			watch_untell(&w->list[i].leg[j]);
	}
}

static void watch_release(const struct mirror *m, size_t leg)
{
	const struct state_dev *d = m->dev[leg];
	bool let_go = d && d->state_detail && !strcmp(d->state_detail, "failfast") &&
		      mirror_another(m, leg) && (m->leg[leg].md == MIRROR_FAULTY ||
						 m->leg[leg].md == MIRROR_REBUILDING);

	if (d && (let_go ? d->hold != 0 : d->hold == 0))
		sysfs_write(d->dir, "ibnbd/hold", let_go ? "0" : "-1");
}

/* md's state of a leg counts if the record agrees, or if md had another state a while ago. */
static void watch_doubt(struct watched *o, struct mirror *m)
{
	unsigned int doubted;

	if (!m->runs) {
		o->copied = 0;
		return;
	}
	for (size_t i = 0; i < m->conf->nr; i++) {
		if (m->leg[i].md != MIRROR_IN_SYNC)
			o->copied |= 1u << i;
		m->leg[i].copied = o->copied & 1u << i;
	}
	doubted = mirror_doubted(m->leg, m->conf->nr);
	for (size_t i = 0; i < m->conf->nr; i++)
		if (doubted & 1u << i)
			m->leg[i].md = MIRROR_DOUBTED;
}

static void watch_record(struct watched *o, const struct mirror *m)
{
	unsigned int healthy, recorded = 0;
	bool kept = true;

	for (size_t i = 0; i < m->conf->nr; i++)
		recorded |= (unsigned int)m->leg[i].recorded << i;
	healthy = m->runs ? mirror_healthy(m->leg, m->conf->nr) : recorded;
	if (healthy != recorded)
		kept = !mirror_record_write(m->conf, healthy);
	for (size_t i = 0; i < m->conf->nr; i++)
		watch_tell(o, m, i, kept && m->runs && m->leg[i].md == MIRROR_IN_SYNC);
	for (size_t i = 0; kept && i < m->conf->nr; i++)
		watch_release(m, i);
}

/* ---- a worker ---- */

/* Does what is due now, under the lock: it may be less than before. */
static int watch_leg(struct watched *o, const struct mirror_conf *conf, size_t leg)
{
	struct mirror m __free(mirror_free) = mirror_read(conf, NULL);
	struct mirror_facts f;

	watch_doubt(o, &m);
	f = mirror_facts(&m, leg);
	switch (mirror_decide(&f)) {
	case MIRROR_READD:
		return mirror_readd(&m, leg);
	case MIRROR_COPY:
		return mirror_copy(&m, leg, mirror_why(&f), false);
	default:
		return SAY_DONE;
	}
}

static int watch_start(const struct mirror_conf *conf, unsigned int mask)
{
	struct mirror m __free(mirror_free) = mirror_read(conf, NULL);

	return m.runs ? SAY_DONE : mirror_run(&m, mask, false);
}

/* @mask: start the array from these legs; 0: see to @leg. */
static void watch_work(struct watched *o, const struct mirror_conf *conf, size_t leg,
		       unsigned int mask)
{
	int rc;

	fflush(NULL);
	o->at = leg;
	o->worker = sysfs_dry_run ? -1 : fork();
	if (o->worker > 0)
		return;
	if (!o->worker) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		if (mirror_lock(conf->name, 0) < 0)
			_exit(SAY_BUSY);	/* a verb is at it */
	}
	rc = mask ? watch_start(conf, mask) : watch_leg(o, conf, leg);
	fflush(NULL);
	if (!o->worker)
		_exit(rc);
	o->worker = 0;		/* without a process, for this once */
}

/* Has it ended? What failed is tried again later; another leg does not wait for that. */
static bool watch_done(struct watched *o, bool wait)
{
	struct watched_work *work = &o->work[o->at];
	int status;

	if (!o->worker)
		return true;
	if (waitpid(o->worker, &status, wait ? 0 : WNOHANG) != o->worker)
		return false;
	o->worker = 0;
	if (!status || (WIFEXITED(status) && WEXITSTATUS(status) == SAY_BUSY)) {
		work->pause = 0;
		work->not_before = sysfs_now() + (status ? 1000000 : 0);
		if (status && o->at != WATCH_START)
			o->leg[o->at].taken = o->leg[o->at].pause = 0;
		return true;
	}
	work->pause = !work->pause		    ? WATCH_PAUSE :
		      work->pause < WATCH_MAX_PAUSE ? work->pause * 2 :
						      work->pause;
	work->not_before = sysfs_now() + work->pause * 1000000LL;
	return true;
}

/* ---- a look ---- */

/* May it be taken back now? Then it is. */
static bool watch_take(struct watched_leg *leg)
{
	int64_t now = sysfs_now(), calm = (now - leg->taken) / 1000000;

	if (leg->taken && calm < leg->pause)
		return false;
	leg->pause = leg->taken ? mirror_pause(leg->pause, calm) : 0;
	leg->taken = now;
	return true;
}

static void watch_whole(struct watched *o, size_t leg)
{
	struct watched_leg *l = &o->leg[leg];

	o->work[leg] = (struct watched_work){ 0 };
	l->whole = l->whole ? l->whole : sysfs_now();
	if (sysfs_now() - l->whole >= MIRROR_WELL * 1000000LL)
		l->taken = l->pause = 0;
}

static void watch_legs(struct watched *o, const struct mirror *m)
{
	char *text = NULL;

	for (size_t i = 0; i < m->conf->nr; i++) {
		const char *name = m->conf->leg[i].name;
		struct mirror_facts f = mirror_facts(m, i);
		enum mirror_act act = mirror_decide(&f);

		if (mirror_whole(m, i))
			watch_whole(o, i);
		else
			o->leg[i].whole = 0;
		if (act == MIRROR_READD || act == MIRROR_COPY) {
			if (sysfs_now() < o->work[i].not_before)
				continue;
			if (watch_take(&o->leg[i])) {
				watch_work(o, m->conf, i, 0);
				free(text);
				return;
			}
			free(text);
			text = say_fmt("%s was dropped again soon after it was taken back: it is tried every %u seconds; look at the disk of its server",
				       name, o->leg[i].pause);
		}
		if (!text && act == MIRROR_ASK)
			text = say_fmt("%s is not known to be the disk that the mirror was made of; to write over it: ibnbd mirror replace %s %s",
				       name, o->name, name);
		if (!text && act == MIRROR_BAD)
			text = say_fmt("%s is fenced, and no other leg is in sync and open: see ibnbd(8), MIRRORS",
				       name);
	}
	watch_say(o, text);
}

/* Which legs are missing. Allocated. */
static char *watch_missing(const struct mirror *m, bool late)
{
	char *text = say_dup(late ? "not started, no leg that is there has everything; it waits for" :
				    "not started, it waits for");

	for (size_t i = 0; i < m->conf->nr; i++)
		if (m->leg[i].recorded && m->leg[i].disk != MIRROR_OPEN)
			say_append(&text, " %s", m->conf->leg[i].name);
	return text;
}

static void watch_array(struct watched *o, const struct mirror *m)
{
	int64_t waited = (sysfs_now() - o->first) / 1000000;
	bool late = m->conf->wait != MAPS_FOREVER && waited >= m->conf->wait;
	unsigned int mask;

	if (o->ran) {
		watch_say(o, say_dup("it was stopped"));
		return;
	}
	if (sysfs_now() < o->work[WATCH_START].not_before)
		return;
	mask = mirror_start(m->leg, m->conf->nr, late);
	if (mask)
		watch_work(o, m->conf, WATCH_START, mask);
	else
		watch_say(o, watch_missing(m, late));
}

static void watch_look(struct watch *w)
{
	struct mirror_conf *list __free(mirror_conf_free) =
		mirror_conf_load(&w->refused, !w->refused), *c;
	struct state *s __free(state_free) = state_read();

	watch_gone(w, list);
	for (c = list; c->name; c++) {
		struct watched *o = watch_of(w, c->name);
		struct mirror m __free(mirror_free) = mirror_read(c, s);

		o->ran |= m.runs;
		watch_doubt(o, &m);
		watch_record(o, &m);
		if (!watch_done(o, false))
			continue;
		if (m.runs)
			watch_legs(o, &m);
		else
			watch_array(o, &m);
	}
}

/* Without a watch no leg is let go; a worker may take its time. */
static void watch_leave(struct watch *w)
{
	if (!sysfs_dry_run)
		watch_gone(w, NULL);
	for (size_t i = 0; i < w->nr; i++) {
		watch_done(&w->list[i], true);
		for (size_t j = 0; j < MIRROR_LEGS; j++)
			free(w->list[i].leg[j].told);
		free(w->list[i].name);
		free(w->list[i].said);
	}
	free(w->list);
}

/* Is there news of a disk of ours, or of an array? */
static bool watch_news(int uevents)
{
	char buf[8192];
	bool news = false;
	ssize_t n;

	while (uevents >= 0 && (n = recv(uevents, buf, sizeof(buf) - 1, 0)) > 0) {
		buf[n] = 0;
		news |= strstr(buf, "/block/ibnbd") || strstr(buf, "/block/md");
	}
	return news || (uevents >= 0 && errno == ENOBUFS);
}

/* Until there is news: a uevent, an event of md, or time has passed. */
static void watch_sleep(int uevents)
{
	char *path __free(free) = sysfs_root("/proc/mdstat");
	/* An event of md is new to each process that has opened the file before it. */
	struct pollfd p[] = { { .fd = uevents, .events = POLLIN },
			      { .fd = open(path, O_RDONLY | O_CLOEXEC), .events = POLLPRI } };
	int64_t end = sysfs_now() + WATCH_MS * 1000;

	while (!watch_end && sysfs_now() < end && poll(p, 2, WATCH_MS) > 0)
		if (watch_news(uevents) || p[1].revents)
			break;
	say_close(p[1].fd);
}

int cmd_mirror_watch_run(struct cmd_args *a)
{
	struct sigaction end = { .sa_handler = watch_signal };
	long left = sysfs_dry_run ? 1 : -1;
	struct watch w = { 0 };
	int lock __free(say_close) = -1, uevents __free(say_close) = -1, rc = cmd_count(a, &left);

	if (rc)
		return rc;
	if (!sysfs_dry_run) {
		lock = mirror_lock(MIRROR_WATCH_LOCK, 0);
		if (lock < 0)
			return say_error(say_exit_of(errno == EAGAIN ? EBUSY : errno), "mirror watch: %s",
					 errno == EAGAIN ? "another process watches already" :
							   strerror(errno));
	}
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	notify_open();
	uevents = mapping_uevents();
	if (uevents < 0)
		say_warn("no uevents: %s; mirrors are looked at every two seconds", strerror(errno));
	while (!watch_end && left) {
		watch_look(&w);
		/* Not from a thread of its own: a look that hangs is to be noticed. */
		notify_systemd("READY=1\nWATCHDOG=1");
		if (left > 0)
			left--;
		if (left && !watch_end)
			watch_sleep(uevents);
	}
	watch_leave(&w);
	return SAY_DONE;
}
