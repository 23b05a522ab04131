// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits for udev, so that the links of a disk are there when the command returns that mapped it,
 * and are gone when the command returns that unmapped it.
 *
 * udev keeps a record of each block device that it has handled, /run/udev/data/bMAJOR:MINOR, with
 * the links (S:) and the time of its first event (I:, µs of the monotonic clock). It writes the
 * record anew at each event, behind the links, and deletes it before them. So the files say when
 * udev has done its part for this disk and its partitions, whatever it does for others meanwhile.
 * A host or container without udev has no /run/udev/control, and does not wait.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/host/mapping.h"
#include "tools/out/say.h"

#define SETTLE_WAIT	10	/* seconds */
#define SETTLE_STEP	10000	/* µs */

/* A disk or partition, and its record as it was. */
struct settle_dev {
	char *kname;
	char *record;
	char *text;		/* NULL: there was none */
	struct stat st;
	int64_t since;		/* that the record's first event must not be older than */
};

struct settle {
	struct settle_dev *list;
	size_t nr;
};

static void settle_read(struct settle_dev *d)
{
	free(d->text);
	d->text = stat(d->record, &d->st) ? NULL : sysfs_text(d->record);
}

static void settle_add(struct settle *s, const char *dir, const char *kname)
{
	char *dev __free(free) = sysfs_attr(dir, "dev");
	struct settle_dev *d;

	if (dev) {
		s->list = say_grow(s->list, (s->nr + 1) * sizeof(*s->list));
		d = &s->list[s->nr++];
		*d = (struct settle_dev){ .kname = say_dup(kname) };
		d->record = sysfs_root("/run/udev/data/b%s", dev);
		settle_read(d);
	}
}

struct settle *settle_look(const char *kname)
{
	struct settle *s = say_alloc(sizeof(*s));
	char *dir __free(free) = sysfs_path("block/%s", kname),
	     *control __free(free) = sysfs_root("/run/udev/control"),
	     **names __free(sysfs_list_free) = NULL;

	if (!sysfs_dry_run && sysfs_exists(control))
		names = sysfs_list(dir, NULL);
	if (names)
		settle_add(s, dir, kname);
	for (size_t i = 0; names && names[i]; i++) {
		char *part __free(free) = say_fmt("%s/%s/partition", dir, names[i]);

		if (sysfs_exists(part)) {
			part[strlen(part) - strlen("/partition")] = 0;
			settle_add(s, part, names[i]);
		}
	}
	return s;
}

static void settle_free(struct settle *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		free(s->list[i].kname);
		free(s->list[i].record);
		free(s->list[i].text);
	}
	free(s->list);
	free(s);
}

/* The next line of a record that begins with @key; *@at is where to look from. Allocated. */
static char *settle_line(const char **at, char key)
{
	const char *line = *at;
	size_t n;

	for (; *line; line += n + !!line[n]) {
		n = strcspn(line, "\n");
		if (line[0] != key || line[1] != ':')
			continue;
		*at = line + n;
		return say_fmt("%.*s", (int)n - 2, line + 2);
	}
	return NULL;
}

/* When udev handled the first event of the device; 0: the record does not say it. */
static int64_t settle_first(const char *text)
{
	char *word __free(free) = settle_line(&text, 'I');

	return word ? strtoll(word, NULL, 10) : 0;
}

/* Which device the next link of a record leads to, "": none; NULL: there is no link. Allocated. */
static char *settle_leads(const char **at)
{
	char *link __free(free) = settle_line(at, 'S'),
	     *path __free(free) = sysfs_root("/dev/%s", link ? link : ""),
	     *to = link ? sysfs_link(path) : NULL;

	return link && !to ? say_dup("") : to;
}

/*
 * Are all links there? A container may see the host's records without its /dev: the links are
 * looked for where the node is.
 */
static bool settle_linked(const struct settle_dev *d)
{
	char *path __free(free) = sysfs_root("/dev/%s", d->kname), *to;
	const char *at = d->text;
	bool all = true;

	while (sysfs_exists(path) && all && (to = settle_leads(&at))) {
		all = *to;
		free(to);
	}
	return all;
}

/*
 * The record is written before udev watches the node, and who writes to the node between the two,
 * as mkfs does, would not be noticed. A rule may forbid the watch: then udev has to be idle.
 */
static bool settle_watched(const struct settle_dev *d)
{
	char *watch __free(free) = sysfs_root("/run/udev/watch%s", strrchr(d->record, '/')),
	     *queue __free(free) = sysfs_root("/run/udev/queue"),
	     *mark __free(free) = sysfs_link(watch);

	return mark || !sysfs_exists(queue);
}

static bool settle_made_now(struct settle_dev *d)
{
	int64_t first;

	settle_read(d);
	first = d->text ? settle_first(d->text) : 0;
	return d->text && (!first || first >= d->since) && settle_linked(d) && settle_watched(d);
}

static bool settle_changed_now(struct settle_dev *d)
{
	struct stat st;

	if (stat(d->record, &st))
		return true;
	return (st.st_ino != d->st.st_ino || st.st_ctim.tv_sec != d->st.st_ctim.tv_sec ||
		st.st_ctim.tv_nsec != d->st.st_ctim.tv_nsec) &&
	       settle_watched(d);
}

/* A record of another time is that of the next disk with this number. */
static bool settle_gone_now(struct settle_dev *d)
{
	char *now __free(free) = d->text ? sysfs_text(d->record) : NULL, *to;
	bool gone = !now || settle_first(now) != settle_first(d->text);
	const char *at = d->text;

	while (d->text && !now && gone && (to = settle_leads(&at))) {
		gone = strcmp(to, d->kname);
		free(to);
	}
	return gone;
}

/* Wait until udev has done @what for the first @nr devices, and free @s. */
static void settle_wait(struct settle *s, size_t nr, bool (*done)(struct settle_dev *d),
			const char *what)
{
	int64_t end = sysfs_now() + SETTLE_WAIT * 1000000;
	size_t i = 0;

	while (i < nr && sysfs_now() < end) {
		if (done(&s->list[i]))
			i++;
		else
			usleep(SETTLE_STEP);
	}
	if (i < nr) {
		say_warn("/dev/%s: udev has not %s after %d seconds", s->list[i].kname, what,
			 SETTLE_WAIT);
		say_hint("udevadm settle waits for it");
	}
	settle_free(s);
}

void settle_made(const char *kname, int64_t since)
{
	struct settle *s = settle_look(kname);

	for (size_t i = 0; i < s->nr; i++)
		s->list[i].since = since;
	settle_wait(s, s->nr, settle_made_now, "made its links");
}

void settle_changed(struct settle *s, bool wait)
{
	settle_wait(s, wait && s->nr, settle_changed_now, "heard of it");
}

void settle_gone(struct settle *s, bool wait)
{
	settle_wait(s, wait ? s->nr : 0, settle_gone_now, "removed its links");
}
