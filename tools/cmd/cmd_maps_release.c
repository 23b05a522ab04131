// SPDX-License-Identifier: GPL-2.0-only
/*
 * maps release and restore: shorten hold= of every device for a while.
 *
 * I/O that waits for a dead server must not wait longer than a shutdown or a suspend may take. At
 * shutdown an unmount waits for such I/O; at suspend the sync and the freezing of processes do.
 * ibnbd-shutdown.service releases before the file systems are unmounted. ibnbd-suspend.service
 * releases before sleep.target with --remember, and restores when the machine is awake again, or
 * could not sleep.
 *
 * With --remember the old hold= of each device is written to RELEASE_FILE, one line for each:
 *
 *	BEFORE SET DEVICE@SESSION
 *
 * The file is complete before the first hold= is changed, so each shortened hold= can be restored.
 * The file lies in /run: a reboot removes it together with the mappings. restore skips a device
 * whose hold= is no longer SET: it was changed since.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/conf/file.h"
#include "tools/host/mapping.h"
#include "tools/host/state.h"

#define RELEASE_DIR	"/run/ibnbd"
#define RELEASE_FILE	RELEASE_DIR "/released"
#define RELEASE_UP	10	/* seconds of hold= with a path */
#define RELEASE_DOWN	5	/* and without */

/* The hold= for @d: as it is if that is unknown or short enough, or the machine needs @d to run. */
static int64_t release_hold(const struct state_dev *d)
{
	int64_t limit = d->paths_up ? RELEASE_UP : RELEASE_DOWN;

	if (d->hold == SYSFS_UNKNOWN || (d->hold >= 0 && d->hold <= limit) || mapping_vital(d))
		return d->hold;
	return limit;
}

static int release_write(const struct state_dev *d, int64_t hold)
{
	char *text __free(free) = say_fmt("%" PRId64, hold);

	return say_errno(sysfs_write(d->dir, "ibnbd/hold", text), "%s: cannot set hold", d->path);
}

/*
 * One line of the file: @d is its disk, if that still has the hold= that was set, else NULL. False:
 * it is no such line.
 */
static bool release_parse(struct state *s, const char *line, int64_t *before, struct state_dev **d)
{
	int64_t set;
	int n = 0;

	*d = NULL;
	if (sscanf(line, "%" SCNd64 " %" SCNd64 " %n", before, &set, &n) != 2 || !n || !line[n])
		return false;
	for (size_t i = 0; i < s->nr_devs && !*d; i++) {
		char *link __free(free) =
			state_dev_link(s->devs[i].session, s->devs[i].device_path);

		if (!strcmp(link, line + n) && s->devs[i].hold == set)
			*d = &s->devs[i];
	}
	return true;
}

/* ---- release ---- */

/* Lines to keep: their devices have the hold= that was set, and need no shorter. Allocated. */
static char *release_still(struct state *s, const char *file)
{
	char *text __free(free) = sysfs_text(file), *kept = say_dup(""), *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		struct state_dev *d;
		int64_t before;

		if (release_parse(s, line, &before, &d) && d && release_hold(d) == d->hold)
			say_append(&kept, "%s\n", line);
	}
	return kept;
}

/* 0 or errno. An error leaves the old file; otherwise the whole new file replaces it. */
static int release_put(const char *file, const char *text)
{
	char *dir __free(free) = sysfs_root(RELEASE_DIR);
	int err = mkdir(dir, 0755) && errno != EEXIST ? errno : 0;

	return err ? err : file_replace(file, text, strlen(text));
}

static int release_remember(struct state *s)
{
	char *file __free(free) = sysfs_root(RELEASE_FILE),
	     *text __free(free) = release_still(s, file);
	int rc = SAY_DONE, err;

	for (size_t i = 0; i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];
		char *link __free(free) = NULL;

		if (release_hold(d) == d->hold)
			continue;
		link = state_dev_link(d->session, d->device_path);
		say_append(&text, "%" PRId64 " %" PRId64 " %s\n", d->hold, release_hold(d), link);
	}
	err = *text && !sysfs_dry_run ? release_put(file, text) : 0;
	if (err)
		rc = say_error(SAY_FAILED, "cannot note hold= in %s: %s; it stays as it is", file,
			       strerror(err));
	return rc;
}

int cmd_maps_release_run(struct cmd_args *a)
{
	struct state *s __free(state_free) = state_read();
	int sum = ARG(a, remember) ? release_remember(s) : SAY_DONE;
	bool go = !sum;

	for (size_t i = 0; go && i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];
		int64_t hold = release_hold(d);

		if (hold == d->hold)
			continue;
		if (release_write(d, hold))
			sum = SAY_FAILED;
		else
			say_warn("%s: I/O without a path fails after %" PRId64
				 " seconds from now on",
				 d->path, hold);
	}
	return sum;
}

/* ---- restore ---- */

static int release_restore(struct state *s, const char *line)
{
	struct state_dev *d;
	int64_t before;
	int rc;

	if (!release_parse(s, line, &before, &d))
		return say_error(SAY_FAILED, "%s: \"%s\" is no line of ibnbd maps release",
				 RELEASE_FILE, line);
	rc = d ? release_write(d, before) : SAY_DONE;
	if (d && !rc && before < 0)
		say_warn("%s: I/O without a path waits for ever again", d->path);
	else if (d && !rc)
		say_warn("%s: I/O without a path fails after %" PRId64 " seconds again", d->path,
			 before);
	return rc;
}

int cmd_maps_restore_run(struct cmd_args *a)
{
	char *file __free(free) = sysfs_root(RELEASE_FILE), *text __free(free) = sysfs_text(file),
	     *line, *save = NULL;
	struct state *s __free(state_free) = NULL;
	int sum = SAY_DONE;

	if (!text && errno != ENOENT)
		sum = say_error(SAY_FAILED, "cannot read %s: %s", file, strerror(errno));
	s = state_read();
	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (release_restore(s, line))
			sum = SAY_FAILED;
	if (text && !sum && !sysfs_dry_run)
		unlink(file);
	return sum;
}
