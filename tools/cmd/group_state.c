// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state_dir of a group. The driver writes `writers` there; these files are ours:
 *
 *	group	its name: made once, so that an empty directory, over which there is no mount of the
 *		file system, is not taken for a new group's
 *	owner	the host that serves the group, from before it listens until it has stopped. It
 *		goes with the storage, so it tells of a host that died, or that still has the group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/cmd/cmd.h"
#include "tools/cmd/group.h"
#include "tools/conf/file.h"
#include "tools/host/sysfs.h"

static int state_put(const char *path, const char *line)
{
	char *text __free(free) = say_fmt("%s\n", line);
	int err = sysfs_dry_run ? 0 : file_replace(path, text, strlen(text));

	return err ? say_error(SAY_FAILED, "cannot write %s: %s", path, strerror(err)) : SAY_DONE;
}

static int state_write(const struct group *g, const char *name, const char *line)
{
	char *path __free(free) = say_fmt("%s/%s", g->dir, name);

	if (sysfs_dry_run)
		say_print("%s: %s", path, line);
	return state_put(path, line);
}

static char *state_read_text(const struct group *g, const char *name)
{
	char *path __free(free) = say_fmt("%s/%s", g->dir, name);

	return sysfs_text(path);
}

static int state_is_there(const struct group *g)
{
	char *own __free(free) = sysfs_root("/etc/ibnbd");
	struct stat here, there;
	int err = stat(g->dir, &there) ? errno : S_ISDIR(there.st_mode) ? 0 : ENOTDIR;

	if (err)
		say_error(SAY_NOTHING, "state_dir %s of group %s: %s", g->dir, g->name,
			  strerror(err));
	else if (!stat(own, &here) && here.st_dev == there.st_dev)
		say_error(SAY_FAILED,
			  "state_dir %s of group %s is on this host's own file system, which does not go to the other server",
			  g->dir, g->name);
	else
		return SAY_DONE;
	return say_hint("mount the file system of the group first");
}

int group_state_create(const struct group *g)
{
	char *text __free(free) = NULL;
	int rc;

	if (sysfs_dry_run && access(g->dir, F_OK))
		return state_write(g, "group", g->name);
	if (!sysfs_dry_run && mkdir(g->dir, 0700) && errno != EEXIST && errno != ENOENT)
		say_warn("cannot make %s: %s", g->dir, strerror(errno));
	rc = state_is_there(g);
	text = rc ? NULL : state_read_text(g, "group");
	if (text && strcmp(text, g->name))
		rc = say_error(SAY_BUSY, "%s has the state of group %s", g->dir, text);
	else if (!rc && !text)
		rc = state_write(g, "group", g->name);
	return rc;
}

int group_state_check(const struct group *g)
{
	int rc = state_is_there(g);
	char *text __free(free) = rc ? NULL : state_read_text(g, "group");

	if (rc)
		return rc;
	if (!text) {
		say_error(SAY_NOTHING, "%s has no state of group %s (%s/group)", g->dir, g->name,
			  g->dir);
		return say_hint("is its file system mounted here? For a new group: ibnbd group create %s",
				g->name);
	}
	if (strcmp(text, g->name))
		rc = say_error(SAY_USAGE, "%s has the state of group %s, not of %s", g->dir, text,
			       g->name);
	return rc;
}

char *group_state_here(const char *name)
{
	return sysfs_root("/run/ibnbd/group-%s", name);
}

/* "HOST ID": machines that were cloned share the id, others the name. */
static char *state_us(void)
{
	char *path __free(free) = sysfs_root("/etc/machine-id"),
	     *id __free(free) = sysfs_text(path), host[256] = "";

	gethostname(host, sizeof(host) - 1);
	return say_fmt("%s %s", host, id ? id : "-");
}

char *group_state_owner(const struct group *g, bool *us)
{
	char *owner = state_read_text(g, "owner"), *we __free(free) = state_us();

	*us = owner && !strcmp(owner, we);
	if (owner)
		owner[strcspn(owner, " ")] = 0;
	return owner;
}

int group_state_take(const struct group *g, bool force)
{
	bool us;
	char *we __free(free) = state_us(), *owner __free(free) = group_state_owner(g, &us),
	     *here __free(free) = group_state_here(g->name);
	int rc;

	if (owner && !us && !force) {
		say_error(SAY_BUSY, "group %s: %s serves it, or was switched off while it did",
			  g->name, owner);
		return say_hint("--force when that host is off, fenced, or has lost the disks for certain: with two servers they are destroyed");
	}
	if (owner && !us)
		say_warn("group %s is taken over from %s, which has not stopped it", g->name,
			 owner);
	rc = state_write(g, "owner", we);
	if (!rc && !sysfs_dry_run)
		file_mkdirs(here);
	/* Before the driver has the records: a stop and a status go by it, not by the file. */
	return rc ? rc : state_put(here, g->dir);
}

int group_state_leave(const struct group *g)
{
	char *owner __free(free) = NULL, *path __free(free) = say_fmt("%s/owner", g->dir),
	     *here __free(free) = group_state_here(g->name);
	int err = 0;
	bool us;

	if (!sysfs_dry_run)
		file_remove(here, NULL);
	owner = group_state_owner(g, &us);
	if (us && sysfs_dry_run)
		say_print("%s is removed", path);
	else if (us)
		err = file_remove(path, NULL);
	/* The exports are closed, so the stop has succeeded. */
	if (err)
		say_warn("cannot remove %s: %s; the next server has to be started with --force",
			 path, strerror(err));
	return SAY_DONE;
}
