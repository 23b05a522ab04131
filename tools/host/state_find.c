// SPDX-License-Identifier: GPL-2.0-only
/* Finds an object of state.h by a word that the user gave. */
#include <stdlib.h>
#include <string.h>
#include "ibnbd/logic/text.h"
#include "tools/out/escape.h"
#include "tools/out/say.h"
#include "tools/host/state.h"

struct state_session *state_session(struct state *s, const char *name)
{
	for (size_t i = 0; name && i < s->nr_sessions; i++)
		if (!strcmp(s->sessions[i].name, name))
			return &s->sessions[i];
	return NULL;
}

void *state_meant(const void *all, size_t nr, size_t size, state_is is, const char *word,
		  char **why)
{
	char *undone __free(free) = escape_undo(word);
	const char *o, *end = (const char *)all + nr * size, *plain = NULL, *escape = NULL;

	*why = NULL;
	for (o = all; o < end; o += size) {
		if (!plain && is(o, word))
			plain = o;
		if (!escape && is(o, undone))
			escape = o;
	}
	if (plain && escape && plain != escape)
		*why = say_fmt(
			"%s: one is called so as it is, another one as an escape: write the backslash of the first one as \\x5c, the second one without escapes",
			word);
	if (*why)
		return NULL;
	return (void *)(plain ? plain : escape);
}

bool state_is_session(const void *session, const char *word)
{
	return !strcmp(((const struct state_session *)session)->name, word);
}

bool state_is_of_session(const void *dev, const char *word)
{
	const struct state_dev *d = dev;

	return d->session && !strcmp(d->session, word);
}

/* Is this its path? The directory of a file is called after that. */
static bool state_export_at(const struct state_export *e, const char *path)
{
	char name[IBNBD_LINKNAME_MAX];

	if (e->block_dev)
		return !strncmp(path, "/dev/", 5) && !strcmp(e->block_dev, path + 5);
	ibnbd_linkname(path, '#', name, sizeof(name));
	return *path == '/' && !strcmp(e->name, name);
}

bool state_is_export(const void *export, const char *word)
{
	const struct state_export *e = export;
	char *file __free(free) = sysfs_root("%s", word),
	     *real __free(free) = *word == '/' ? realpath(file, NULL) : NULL;
	size_t skip = strlen(sysfs_prefix());

	return !strcmp(e->name, word) || state_export_at(e, word) ||
	       (real && !strncmp(real, sysfs_prefix(), skip) && state_export_at(e, real + skip));
}

bool state_is_open(const void *open, const char *word)
{
	return !strcmp(((const struct state_open *)open)->session, word);
}

struct state_session *state_session_said(struct state *s, const char *word)
{
	struct state_session *found = state_session(s, word);
	char *undone __free(free) = escape_undo(word);

	return found ? found : state_session(s, undone);
}

struct state_dev *state_dev_of(struct state *s, const char *session, const char *device_path)
{
	for (size_t i = 0; i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];

		if (d->session && d->device_path && !strcmp(d->session, session) &&
		    !strcmp(d->device_path, device_path))
			return d;
	}
	return NULL;
}

const struct state_dev *state_dev_called(const struct state *s, const char *kname)
{
	for (size_t i = 0; i < s->nr_devs; i++)
		if (!strcmp(s->devs[i].kname, kname))
			return &s->devs[i];
	return NULL;
}

const struct state_path *state_path_then(struct state *then, const struct state_path *p)
{
	struct state_session *s = state_session(then, p->session);

	for (size_t i = 0; s && i < (size_t)s->nr_paths; i++)
		if (!strcmp(s->paths[i].name, p->name))
			return &s->paths[i];
	return NULL;
}

char *state_dev_link(const char *session, const char *device_path)
{
	char link[IBNBD_LINKNAME_MAX];

	ibnbd_linkname_dev(device_path, session, link, sizeof(link));
	return say_dup(link);
}

/* DEVICE@SESSION. Both may hold an '@' too: each is tried. */
static bool state_dev_at(const struct state_dev *d, const char *word)
{
	const char *at;

	for (at = strchr(word, '@'); at && d->session && d->device_path; at = strchr(at + 1, '@'))
		if (!strcmp(at + 1, d->session) && strlen(d->device_path) == (size_t)(at - word) &&
		    !strncmp(word, d->device_path, (size_t)(at - word)))
			return true;
	return false;
}

static bool state_dev_is(const struct state_dev *d, const char *word)
{
	char *full __free(free) = word[0] == '/' ? realpath(word, NULL) : NULL;

	return !strcmp(word, d->kname) || !strcmp(full ? full : word, d->path) ||
	       (d->name && !strcmp(word, d->name)) || state_dev_at(d, word);
}

static char *state_dev_unknown(struct state *s, const char *word)
{
	const char *near = NULL;

	for (size_t i = 0; i < s->nr_devs; i++) {
		struct state_dev *d = &s->devs[i];

		near = say_nearest(word, near, d->kname);
		if (d->name)
			near = say_nearest(word, near, d->name);
		if (d->device_path)
			near = say_nearest(word, near, d->device_path);
	}
	if (!s->nr_devs)
		return say_fmt("%s: no such device, nothing is mapped", word);
	return near ? say_fmt("%s: no such device, did you mean \"%s\"?", word, near) :
		      say_fmt("%s: no such device", word);
}

/*
 * The device of exactly this name; without one, the only device whose DEVICE is @word. *@nr counts
 * the devices with that DEVICE.
 */
static struct state_dev *state_dev_exact(struct state *s, const char *word, unsigned int *nr)
{
	struct state_dev *found = NULL;

	*nr = 0;
	for (size_t i = 0; i < s->nr_devs; i++)
		if (state_dev_is(&s->devs[i], word))
			return &s->devs[i];
	for (size_t i = 0; i < s->nr_devs; i++) {
		if (!s->devs[i].device_path || strcmp(word, s->devs[i].device_path))
			continue;
		found = &s->devs[i];
		++*nr;
	}
	return *nr == 1 ? found : NULL;
}

struct state_dev *state_dev(struct state *s, const char *word, char **why)
{
	char *undone __free(free) = escape_undo(word);
	unsigned int nr, nr_undone = 0;
	struct state_dev *d = state_dev_exact(s, word, &nr), *u = NULL;

	if (strcmp(undone, word))
		u = state_dev_exact(s, undone, &nr_undone);
	if (d && u && d != u) {
		*why = say_fmt("%s: as it is this is %s, and as an escape %s: name one of these",
			       word, d->path, u->path);
		return NULL;
	}
	if (d || u)
		return d ? d : u;
	nr += nr_undone;
	*why = nr ? say_fmt("%s: mapped from %u sessions, say DEVICE@SESSION", word, nr) :
		    state_dev_unknown(s, word);
	return NULL;
}
