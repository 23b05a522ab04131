// SPDX-License-Identifier: GPL-2.0-only
/*
 * maps start and stop: map and unmap what maps.conf names, one mapping at a time.
 *
 * ibnbd-map@NAME.service runs `maps start`. start sends READY=1 to systemd when the device and its
 * links are there. If the line does not say `wait`, start sends READY=1 after ten seconds even
 * without the device, so that a boot never hangs on a dead server. start then goes on trying in the
 * background, with a STATUS text, and exits when it has mapped. The unit stays active
 * (RemainAfterExit) with or without the process, and everything is ordered after the unit.
 *
 * start tries again after 1, 2, 4 .. 60 seconds. Each pause is up to a fifth longer or shorter at
 * random, so that the hosts of a rack do not all call at once. start reports the first failure,
 * each doubling of the number of failures, and the success. If the server refuses, trying again
 * does not help: a `wait` start ends after three refusals.
 *
 * While the driver waits for the server, only a fatal signal interrupts it. So SIGTERM is not
 * caught, and a thread sends READY: a signal handler would not run before write(2) returns.
 *
 * stop touches only what the file names.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/host/mapping.h"
#include "tools/host/notify.h"

#define RUN_FIRST_WAIT	10	/* seconds until the boot goes on */
#define RUN_MAX_PAUSE	60
#define RUN_REFUSALS	3

static double run_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The thread may run longer than the start that created it. A second READY=1 does no harm. */
static void *run_ready(void *unused)
{
	sleep(RUN_FIRST_WAIT);
	notify_systemd("READY=1");
	return NULL;
}

static void run_ready_later(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, run_ready, NULL))
		pthread_detach(thread);
	else
		notify_systemd("READY=1");	/* no memory: too early is better than never */
}

/* The name in the instance of a unit: systemd's %I turns '-' into '/', and no name has a '/'. */
static char *run_name(const char *word)
{
	char *name = say_dup(word), *p;

	for (p = name; *p; p++)
		if (*p == '/')
			*p = '-';
	return name;
}

/* ---- one mapping ---- */

static struct state_dev *run_mapped(struct state *s, const struct maps_entry *e)
{
	return state_dev_of(s, e->map.sessname, e->map.device_path);
}

int maps_run_verify(const struct maps_entry *e)
{
	struct state *s __free(state_free) = state_read();
	struct state_dev *d = run_mapped(s, e);
	int rc = SAY_DONE;
	char *why __free(free) = NULL;

	if (d && maps_given(e, MAPS_size) && d->size != SYSFS_UNKNOWN &&
	    d->size != e->number[MAPS_size])
		why = say_fmt("it has %lld bytes, maps.conf says %lld", (long long)d->size,
			      (long long)e->number[MAPS_size]);
	if (d && !why && maps_given(e, MAPS_uuid))
		why = mapping_wrong_uuid(d, e->text[MAPS_uuid]);
	if (why) {
		rc = say_error(SAY_FAILED, "%s is not the disk of %s: %s; unmapped again", d->path,
			       e->name, why);
		mapping_unmap(d, true, MAPPING_WAIT);
	}
	return rc;
}

enum run_hope {
	RUN_LATER,	/* the server may come */
	RUN_REFUSED,	/* something has to change on the server first */
	RUN_NEVER,	/* it is the wrong disk: do not try again */
};

static int run_try(struct maps_entry *e, char **why, enum run_hope *hope)
{
	struct state *s __free(state_free) = state_read();
	struct state_dev *there = run_mapped(s, e);
	char *kname __free(free) = NULL;
	int rc, err;

	if (there)
		settle_made(there->kname, 0);
	*why = NULL;
	*hope = RUN_LATER;
	if (there)
		return SAY_DONE;
	rc = mapping_map(&e->map, e->host, e->nr_hosts, &kname, &err, why);
	if (!rc && kname) {
		rc = maps_run_verify(e);
		if (rc) {
			*hope = RUN_NEVER;
			*why = say_dup("it is another disk");
		}
	}
	if (err == EEXIST) {
		struct state *now __free(state_free) = state_read();

		/* Another process has mapped it: a success. One that still maps it is none. */
		rc = run_mapped(now, e) ? SAY_DONE : rc;
	}
	if (err == EINVAL || err == EPERM || err == EACCES || err == EROFS || err == ENOENT ||
	    err == EPROTONOSUPPORT)
		*hope = RUN_REFUSED;
	if (!rc && kname && !sysfs_dry_run)
		printf("%s: /dev/%s\n", e->name, kname);
	fflush(stdout);
	return rc;
}

static int run_until(struct maps_entry *e, int64_t timeout)
{
	double begin = run_now(), pause = 1;
	unsigned int tries = 0, refused = 0;
	bool wait = maps_given(e, MAPS_wait);
	enum run_hope hope;
	int rc;

	for (;;) {
		char *why __free(free) = NULL;

		rc = run_try(e, &why, &hope);
		if (!rc) {
			if (tries)
				say_warn("%s: mapped at last, after %u failures and %.0f seconds",
					 e->name, tries, run_now() - begin);
			notify_systemd("READY=1\nSTATUS=mapped");
			return SAY_DONE;
		}
		tries++;
		refused += hope == RUN_REFUSED;
		if (!(tries & (tries - 1))) {	/* a power of two */
			say_error(rc, "%s: cannot map %s of session %s: %s", e->name,
				  e->map.device_path, e->map.sessname, why ? why : "?");
			if (tries == 1 && rc == SAY_UNREACHABLE)
				say_hint("%s", mapping_hint(NULL, NULL, ETIMEDOUT));
		}
		notify_systemd("STATUS=not mapped yet, tried %u times: %s", tries, why ? why : "?");
		if (timeout == 0 || hope == RUN_NEVER || sysfs_dry_run ||
		    (wait && refused >= RUN_REFUSALS))
			return rc;
		if (timeout != MAPS_FOREVER && run_now() - begin + pause > (double)timeout)
			return say_error(SAY_UNREACHABLE, "%s: given up after %.0f seconds",
					 e->name, run_now() - begin);
		usleep((useconds_t)(1e6 * pause * (0.8 + 0.4 * drand48())));
		pause = pause * 2 < RUN_MAX_PAUSE ? pause * 2 : RUN_MAX_PAUSE;
	}
}

/*
 * With nofail the start of the unit succeeds even if the device could not be mapped.
 * ibnbd-retry.service tries again when a device arrives.
 */
static int run_content(const struct maps_entry *e, int rc)
{
	if (!rc || !maps_given(e, MAPS_nofail) || !getenv("NOTIFY_SOCKET"))
		return rc;
	notify_systemd("READY=1\nSTATUS=not mapped");
	return SAY_DONE;
}

int maps_run_start(struct maps_entry *e, int64_t timeout)
{
	if (notify_on() && !maps_given(e, MAPS_wait))
		run_ready_later();
	return run_content(e, run_until(e, timeout));
}

/* ---- start ---- */

/* @driver: SAY_DONE if the driver is loaded, else the status to return. */
static int run_start_named(struct cmd_args *a, struct maps *m, const char *word, int driver)
{
	char *name __free(free) = run_name(word);
	struct maps_entry *e = maps_find(m, name);
	int64_t timeout;
	int rc;

	if (!e) {
		maps_say_refused(m);
		say_error(SAY_NOTHING, "maps start: maps.conf has no usable line \"%s\"", name);
		return say_hint("ibnbd maps check");
	}
	if (driver)
		return run_content(e, driver);
	timeout = maps_start_timeout(e);
	rc = cmd_wait(a, true, &timeout);
	return rc ? rc : maps_run_start(e, timeout);
}

/* Is there a line that should be mapped and is not? If there is none, the driver is not loaded. */
static bool run_missing(const struct maps *m)
{
	struct state *s __free(state_free) = state_read();
	bool any = false;

	for (size_t i = 0; i < m->nr; i++)
		any |= !m->entries[i].bad && !maps_given(&m->entries[i], MAPS_noauto) &&
		       !run_mapped(s, &m->entries[i]);
	return any;
}

int cmd_maps_start_run(struct cmd_args *a)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	int driver = ARG(a, missing) && !run_missing(m) ? SAY_DONE :
							  mapping_driver(!ARG(a, no_modprobe));
	struct say_sum sum = { 0 };

	notify_open();
	srand48((long)getpid() ^ (long)time(NULL));
	if (ARG(a, missing)) {
		maps_say_refused(m);
		sum.rc = driver;
	}
	for (size_t i = 0; !driver && ARG(a, missing) && i < m->nr; i++) {
		struct maps_entry *e = &m->entries[i];

		if (e->bad || maps_given(e, MAPS_noauto))
			continue;
		say_sum(&sum, maps_run_start(e, 0));
	}
	for (size_t i = 0; !ARG(a, missing) && i < a->nr_words; i++)
		say_sum(&sum, run_start_named(a, m, a->words[i], driver));
	return sum.rc;
}

/* ---- stop ---- */

/*
 * udev may be reading a disk whose server is gone, and then keeps it open until hold= is over.
 * hold=0 makes that I/O fail at once. This is done only if udev alone has the disk open: the I/O of
 * other users must not fail, and for them the kernel refuses the unmap. If the unmap still returns
 * busy, the old hold= is written back.
 */
static int run_unmap(struct cmd_args *a, const struct state_dev *d, int wait)
{
	bool let_go = d->paths_up == 0 && d->hold != 0 && d->hold != SYSFS_UNKNOWN &&
		      !ARG(a, force) && mapping_only_udev(d);
	char *before __free(free) = say_fmt("%lld", (long long)d->hold);
	int rc;

	if (let_go)
		sysfs_write(d->dir, "ibnbd/hold", "0");
	rc = mapping_unmap(d, ARG(a, force), wait);
	if (let_go && rc == SAY_BUSY)
		sysfs_write(d->dir, "ibnbd/hold", before);
	return rc;
}

/*
 * systemd stops the units after the mounts. A device that is still in use then stays mapped, and
 * its I/O goes on: shutdown ends it later. A device without a server and without a user does not
 * delay the shutdown: the unmap ends the I/O that waits.
 */
static int run_stop_one(struct cmd_args *a, struct state *s, const struct maps_entry *e, int wait)
{
	struct state_dev *d = run_mapped(s, e);

	if (!d)
		return SAY_DONE;
	if (mapping_vital(d) && !ARG(a, force)) {
		say_warn("%s (%s) is left alone: the system runs on it", e->name, d->path);
		return SAY_DONE;
	}
	if (!ARG(a, force) && mapping_built_upon(d)) {
		say_error(SAY_BUSY, "%s (%s) is in use and stays mapped", e->name, d->path);
		mapping_tell_users(d);
		return SAY_BUSY;
	}
	return run_unmap(a, d, wait);
}

int cmd_maps_stop_run(struct cmd_args *a)
{
	struct maps *m __free(maps_free) = maps_load(VALUE(a, file));
	struct state *s __free(state_free) = state_read();
	int64_t wait = MAPPING_WAIT;
	struct say_sum sum = { cmd_wait(a, false, &wait) };
	int rc;

	for (size_t i = 0; i < a->nr_words && sum.rc != SAY_USAGE; i++) {
		char *name __free(free) = run_name(a->words[i]);
		struct maps_entry *e = maps_find(m, name);

		if (e)
			rc = run_stop_one(a, s, e, (int)wait);
		else
			rc = say_error(
				SAY_NOTHING,
				"maps stop: maps.conf has no usable line \"%s\", and nothing else is touched",
				name);
		say_sum(&sum, rc);
	}
	return sum.rc;
}
