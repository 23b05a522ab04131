/* SPDX-License-Identifier: GPL-2.0-only */
/* A mirror as it is: its files, what the driver says of its legs, and what md says. */
#ifndef TOOLS_MIRROR_H
#define TOOLS_MIRROR_H

#include "tools/conf/mirror_conf.h"
#include "tools/host/md.h"
#include "tools/host/state.h"

#define MIRROR_WATCH_LOCK	".watch"	/* no mirror has such a name */

/**
 * struct mirror - a mirror
 * @borrowed: @s is the caller's
 * @conf: its files; not owned
 * @md: kernel name of the array, NULL: there is none
 * @runs: it is started
 * @dev: the disk of each leg; NULL: it is not mapped
 */
struct mirror {
	struct state *s;
	bool borrowed;
	const struct mirror_conf *conf;
	char *md;
	bool runs;
	const struct state_dev *dev[MIRROR_LEGS];
	struct mirror_seen leg[MIRROR_LEGS];
};

/* Look at it. @s: what the drivers show; NULL: read it. */
struct mirror mirror_read(const struct mirror_conf *conf, struct state *s);
void mirror_free(struct mirror m);
DEFINE_FREE(mirror_free, struct mirror)
/* Is the leg in sync, and open? */
bool mirror_whole(const struct mirror *m, size_t leg);
/* Is another leg so, of an array that runs? */
bool mirror_another(const struct mirror *m, size_t leg);
/* The session of its disk, or NULL. */
struct state_session *mirror_session(const struct mirror *m, size_t leg);
struct mirror_facts mirror_facts(const struct mirror *m, size_t leg);
/* Sectors that differed when the legs were compared last, or SYSFS_UNKNOWN. */
int64_t mirror_mismatch(const struct mirror *m);

/*
 * Locks a mirror for a change; NAME, or MIRROR_WATCH_LOCK for the one process that watches. Waits
 * at most @seconds. Returns what close(2) gives back, -1 with errno: EAGAIN: it is taken.
 */
int mirror_lock(const char *name, int seconds);
/* Does a process watch, as far as this one may know? */
bool mirror_watched(void);
/* The error for mirror_lock(); returns the exit status. */
int mirror_not_locked(const char *name);

/*
 * Copy a leg whole: take it out of the array, open it again, wipe its superblock, add it. Refused
 * while no other leg is in sync and open. @typed: an administrator named this very leg, so it may
 * be another disk than the one that the mirror was made of. Returns the exit status.
 */
int mirror_copy(struct mirror *m, size_t leg, const char *why, bool typed);
/* Out of the array, if it is in it. While another leg is in sync and open. */
int mirror_take_out(struct mirror *m, size_t leg);
struct cmd_args;
/*
 * mirror_create.c: the disk that the third word names, mapped and saved as create does it, becomes
 * this leg; @conf is that of @m, and changed. Then it has to be copied.
 */
int mirror_exchange(struct cmd_args *a, struct mirror *m, struct mirror_conf *conf, size_t leg);
/* Marks what was read of it as old. */
void mirror_again(struct mirror *m);
/* Let md take it back by its bitmap; where md refuses, copy it whole. */
int mirror_readd(struct mirror *m, size_t leg);
/* Start the array from the legs of @mask. @trust: whatever their superblocks say. */
int mirror_run(struct mirror *m, unsigned int mask, bool trust);

/* ---- tree.c: mirror status, and list --tree ---- */

struct json;

/* A mirror and its legs; @sessions: also the session and the paths of each leg. */
void tree_mirror(const struct mirror *m, bool sessions);
void tree_mirror_json(struct json *j, const struct mirror *m, bool sessions);
/*
 * All mirrors and sessions, with the disks that are wanted, a flag for each of @s. What has none of
 * these is left out if anything was asked for by its name.
 */
void tree_all(const struct cmd_args *a, struct state *s, const bool *wanted);
/* The array "mirrors", and the array "sessions", in which each has its paths. */
void tree_all_json(struct json *j, const struct cmd_args *a, struct state *s, const bool *wanted);

#endif
