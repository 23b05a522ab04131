// SPDX-License-Identifier: GPL-2.0-only
/*
 * systemd generator: makes a unit for each line of maps.conf. It runs before anything else does,
 * and at each daemon-reload. It reads files, writes files below its directory, and ends in
 * milliseconds. It uses no network and no syslog; in sysfs it only looks whether the session of a
 * "-" exists.
 *
 *	NORMAL/ibnbd-maps.target.wants/ibnbd-map@NAME.service		-> the template, unless
 *									noauto
 *	NORMAL/ibnbd-map@NAME.service.d/50-maps.conf			what the line says beyond
 *									the template
 *
 * A line with a mistake gets no unit. A file that is refused gets no unit for any of its lines. The
 * exit status is then 1, which systemd logs; it is also 1 if a unit cannot be written. With
 * ibnbd=no on the kernel's command line no unit is made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/out/escape.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

#define GENERATOR_TOLD	20	/* mistakes */
#ifndef GENERATOR_TEMPLATE	/* tools/Makefile knows better */
#define GENERATOR_TEMPLATE	"/usr/lib/systemd/system/ibnbd-map@.service"
#endif

/* The journal does not run yet: write to the kernel's log. */
static void generator_log(const char *fmt, const char *what)
{
	char *path __free(free) = sysfs_root("/dev/kmsg");
	FILE *f __free(say_fclose) = fopen(path, "ae");

	if (f) {
		fputs("<4>ibnbd-generator: ", f);
		fprintf(f, fmt, what);
		fputc('\n', f);
	}
}

static bool generator_off(void)
{
	char *path __free(free) = sysfs_root("/proc/cmdline"),
	     *text __free(free) = sysfs_text(path), *word, *rest = text;
	char *initrd __free(free) = sysfs_root("/etc/initrd-release");
	bool off = false, early = sysfs_exists(initrd);

	while ((word = strsep(&rest, " \n"))) {
		const char *value = word + strcspn(word, "=");

		if (!strncmp(word, "ibnbd=", 6) || (early && !strncmp(word, "rd.ibnbd=", 9)))
			off = !strcmp(value, "=no") || !strcmp(value, "=0") ||
			      !strcmp(value, "=off");
	}
	return off;
}

static int generator_dropin(const char *dir, const char *unit, const struct maps_entry *e)
{
	int64_t timeout = maps_start_timeout(e);
	char *sub __free(free) = say_fmt("%s/%s.d", dir, unit),
	     *path __free(free) = say_fmt("%s/50-maps.conf", sub);
	char *device __free(free) = NULL, *session __free(free) = NULL;
	FILE *f;

	mkdir(sub, 0755);
	f = fopen(path, "we");
	if (!f) {
		generator_log("cannot write %s", path);
		return 1;
	}
	/* systemd wants UTF-8, and shows this text to people. */
	device = escape_text(ESCAPE_TEXT, e->map.device_path);
	session = escape_text(ESCAPE_TEXT, e->map.sessname);
	fprintf(f,
		"# made by ibnbd-generator of maps.conf\n[Unit]\n"
		"Description=Remote disk %s (%s of session %s)\n",
		e->name, device, session);
	if (e->text[MAPS_requires])
		fprintf(f, "Requires=%s\nAfter=%s\n", e->text[MAPS_requires],
			e->text[MAPS_requires]);
	if (e->text[MAPS_after])
		fprintf(f, "After=%s\n", e->text[MAPS_after]);
	fprintf(f, "\n[Service]\n");
	/*
	 * `maps start` ends by itself at start-timeout, with a better message than systemd's, so
	 * systemd waits longer.
	 */
	if (maps_given(e, MAPS_wait) && timeout != MAPS_FOREVER)
		fprintf(f, "TimeoutStartSec=%lld\n", (long long)timeout + 60);
	else if (maps_given(e, MAPS_wait))
		fprintf(f, "TimeoutStartSec=infinity\n");
	return fclose(f) != 0;
}

static int generator_entry(const char *dir, const char *wants, const struct maps_entry *e)
{
	char *instance __free(free) = maps_unit_escape(e->name),
	     *unit __free(free) = say_fmt("ibnbd-map@%s.service", instance),
	     *link __free(free) = say_fmt("%s/%s", wants, unit);
	struct maps_entry plain = *e;
	int rc;

	/* '%' begins a specifier in a unit */
	if (strpbrk(e->map.device_path, "%\\") || strchr(e->map.sessname, '%')) {
		snprintf(plain.map.device_path, sizeof(plain.map.device_path), "a device");
		snprintf(plain.map.sessname, sizeof(plain.map.sessname), "a session");
	}
	rc = generator_dropin(dir, unit, &plain);
	if (!maps_given(e, MAPS_noauto) && symlink(GENERATOR_TEMPLATE, link) && errno != EEXIST) {
		generator_log("cannot make %s", link);
		rc = 1;
	}
	return rc;
}

/* The kernel's log takes few lines from us at a time: write only the first mistakes. */
static void generator_mistakes(const struct maps *m)
{
	size_t i, told = 0;

	for (i = 0; i < m->nr_diags && told < GENERATOR_TOLD; i++) {
		const struct maps_diag *d = &m->diags[i];
		const struct maps_file *f = &m->files[d->at.file];
		char *text __free(free) = NULL, *where __free(free) = NULL;

		if (d->level != MAPS_ERROR)
			continue;
		if (d->at.off == SIZE_MAX) {
			text = say_fmt("%s: %s%s", f->path, d->msg,
				       f->refused ? "; nothing of it is mapped" : "");
		} else {
			where = maps_where(m, d->at);
			text = say_fmt("%s: %s; the line is left out", where, d->msg);
		}
		generator_log("%s", text);
		told++;
	}
	if (m->nr_errors > told)
		generator_log("%s", "there are more mistakes: ibnbd maps check");
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 && *argv[1] ? argv[1] : NULL;
	struct maps *m __free(maps_free) = NULL;
	char *wants __free(free) = NULL;
	int rc;

	if (!dir) {
		say_error(SAY_USAGE, "the generator is run by systemd, with the directory for its units");
		return say_hint("%s DIRECTORY writes them there, to be looked at",
				argc ? argv[0] : "");
	}
	if (generator_off())
		return 0;
	m = maps_load(NULL);
	rc = m->nr_refused != 0;
	generator_mistakes(m);
	wants = say_fmt("%s/ibnbd-maps.target.wants", dir);
	for (size_t i = 0; i < m->nr; i++) {
		if (m->entries[i].bad)
			continue;
		mkdir(wants, 0755);
		rc |= generator_entry(dir, wants, &m->entries[i]);
	}
	return rc;
}
