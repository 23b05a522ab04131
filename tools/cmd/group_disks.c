// SPDX-License-Identifier: GPL-2.0-only
/*
 * The disks of a group: may this host have them, and do they answer?
 *
 * A disk that hangs holds up the process that asks it, and cannot be killed. So a child asks,
 * and says in memory that it shares with its parent which object it is asking; the parent waits for
 * as long as it was told to, and leaves the child behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tools/cmd/group.h"
#include "tools/cmd/server.h"
#include "tools/host/sysfs.h"

#define DISKS_BLOCK	4096
#define DISKS_POLL	20000	/* µs */

/* ---- before the group is started ---- */

static void disks_refuse(const struct server_offer *o, const char *to, int err)
{
	bool drbd = !strncmp(to, "/dev/drbd", 9);

	if (drbd && (err == EROFS || err == EMEDIUMTYPE || err == EACCES)) {
		say_error(SAY_BUSY, "%s (%s) is a DRBD Secondary on this host", o->shown, to);
		say_hint("drbdadm primary of its resource, which DRBD refuses while the other host is Primary");
	} else if (err == EBUSY) {
		say_error(SAY_BUSY, "%s (%s) is in use on this host", o->shown, to);
		say_hint("ibnbd doctor names the mount, swap or device that has it");
	} else {
		say_error(SAY_BUSY, "%s (%s) cannot be written to by this host: %s", o->shown, to,
			  strerror(err));
	}
}

/* As the driver opens it for a client that writes. */
static bool disks_check_one(const struct server_offer *o, void *arg)
{
	char *to __free(free) = realpath(o->path, NULL);
	int fd __free(say_close) = -1, *rc = arg;
	struct stat st;

	if (o->is_dir || stat(o->path, &st))
		return false;
	fd = open(o->path, O_RDWR | O_CLOEXEC | (S_ISBLK(st.st_mode) ? O_EXCL : 0));
	if (fd < 0) {
		disks_refuse(o, to ? to : o->path, errno);
		*rc = SAY_BUSY;
	}
	return false;
}

int group_disks_check(const struct group *g)
{
	const char *search = g->c->value[SERVER_dev_search_path];
	char *late __free(free) = server_offers_late(search);
	int rc = SAY_DONE;

	if (late) {
		say_error(SAY_NOTHING, "group %s: what %s leads to is not there", g->name, late);
		return say_hint("activate its volume group, or make its DRBD resource Primary, first");
	}
	server_offers(search, disks_check_one, &rc);
	return rc;
}

/* ---- while it is active ---- */

struct disks_ask {
	char *now;		/* shared with the parent: what is being asked */
	void *block;
	int rc;
};

static void disks_now(struct disks_ask *ask, const char *what)
{
	snprintf(ask->now, DISKS_BLOCK, "%s", what);
}

static bool disks_read_one(const struct server_offer *o, void *arg)
{
	int fd __free(say_close) = -1;
	struct disks_ask *ask = arg;

	if (o->is_dir)
		return false;
	disks_now(ask, o->shown);
	fd = open(o->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0 && errno == EINVAL)
		fd = open(o->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, ask->block, DISKS_BLOCK, 0) < 0)
		ask->rc = say_error(SAY_FAILED, "%s cannot be read: %s", o->shown,
				    strerror(errno));
	return false;
}

/* An OPEN is answered when its record has been written there. */
static void disks_write_state(struct disks_ask *ask, const struct group *g)
{
	char *path __free(free) = say_fmt("%s/alive", g->dir),
	     *text __free(free) = say_fmt("%lld\n", (long long)time(NULL));
	int fd __free(say_close) = -1;

	disks_now(ask, g->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || pwrite(fd, text, strlen(text), 0) < 0 || fsync(fd))
		ask->rc = say_error(SAY_FAILED, "%s cannot be written: %s", path, strerror(errno));
}

static int disks_ask_all(struct disks_ask *ask, const struct group *g)
{
	char *dir __free(free) = sysfs_path(SERVER_PARAMETERS), *search __free(free) = NULL,
	     *late __free(free) = NULL;
	struct state *s __free(state_free) = NULL;

	disks_now(ask, "the driver ibnbd-server");
	s = state_read();
	if (!s->server)
		ask->rc = say_error(SAY_FAILED, "the driver ibnbd-server is not loaded");
	search = sysfs_attr(dir, "dev_search_path");	/* the file may say something else by now */
	if (!sysfs_dry_run)
		disks_write_state(ask, g);
	late = search ? server_offers_late(search) : NULL;
	if (late)
		ask->rc = say_error(SAY_FAILED, "what %s leads to is gone", late);
	if (search)
		server_offers(search, disks_read_one, ask);
	return ask->rc;
}

enum { DISKS_NOBODY, DISKS_US, DISKS_OTHER };

static int disks_ask_owner(struct disks_ask *ask, const struct group *g)
{
	bool us;
	char *owner = group_state_owner(g, &us);

	disks_now(ask, owner ? owner : "");
	return !owner ? DISKS_NOBODY : us ? DISKS_US : DISKS_OTHER;
}

/* The exit status of the child; -1: it has not ended within @seconds. */
static int disks_wait(pid_t child, int64_t seconds)
{
	int64_t end = sysfs_now() + seconds * 1000000;
	int status;

	for (;;) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : SAY_FAILED;
		if (seconds != MAPS_FOREVER && sysfs_now() > end)
			return -1;
		usleep(DISKS_POLL);
	}
}

/* Runs @ask in a child. Returns its result; -1: late. @now: of disks_now(), allocated. */
static int disks_child(const struct group *g, int64_t seconds,
		       int (*ask)(struct disks_ask *, const struct group *), char **now)
{
	char *shared = mmap(NULL, 2 * DISKS_BLOCK, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct disks_ask asked = { shared, shared + DISKS_BLOCK, SAY_DONE };
	pid_t child;
	int rc;

	if (shared == MAP_FAILED)
		exit(say_error(SAY_FAILED, "%s", strerror(errno)));
	child = fork();
	if (child < 0)
		exit(say_error(SAY_FAILED, "%s", strerror(errno)));
	if (!child)
		_exit(ask(&asked, g));
	rc = disks_wait(child, seconds);
	if (rc < 0)
		kill(child, SIGKILL);
	*now = say_fmt("%.*s", DISKS_BLOCK, asked.now);
	munmap(shared, 2 * DISKS_BLOCK);
	return rc;
}

int group_disks_answer(const struct group *g, int64_t seconds)
{
	char *now __free(free) = NULL;
	int rc = disks_child(g, seconds, disks_ask_all, &now);

	if (rc < 0)
		rc = say_error(SAY_UNREACHABLE, "group %s: %s has not answered for %lld seconds",
			       g->name, now, (long long)seconds);
	return rc;
}

char *group_disks_owner(const struct group *g, int64_t seconds, bool *us)
{
	char *owner;
	int rc = disks_child(g, seconds, disks_ask_owner, &owner);

	*us = rc == DISKS_US;
	if (rc == DISKS_US || rc == DISKS_OTHER)
		return owner;
	free(owner);
	return NULL;
}
