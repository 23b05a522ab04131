/* SPDX-License-Identifier: GPL-2.0-only */
/* A group: exports that one of two servers serves, with the records of their disks. docs/pair.md */
#ifndef TOOLS_GROUP_H
#define TOOLS_GROUP_H

#include "tools/conf/server_conf.h"

#define GROUP_CONF	"/etc/ibnbd/groups"

/**
 * struct group - a file of GROUP_CONF
 * @name: of the group; the file is NAME.conf
 * @c: the file, whose writer_file is the one in @dir
 * @dir: its state_dir; NULL: the file has mistakes or is not there
 * @served: the state_dir that it was started with on this host, whatever the file says by now;
 *	NULL: it is not started
 */
struct group {
	const char *name;
	struct server_conf *c;
	const char *dir;
	char *served;
};

/* The name of the group that is served here. Allocated; NULL: there is none. */
char *group_active(void);

/*
 * group_state.c: what is in the directory besides the records of the driver. Each returns an exit
 * status, and has said why it is not SAY_DONE.
 */
int group_state_create(const struct group *g);
/* Is it the group's, and on storage that can go to the other server? */
int group_state_check(const struct group *g);
/* The host that serves the group, or died while it did. Allocated; NULL: none. */
char *group_state_owner(const struct group *g, bool *us);
/* This host serves it from now on. @force: the owner that the directory names does not. */
int group_state_take(const struct group *g, bool force);
/* Where this host notes that it serves the group: its @served. Allocated. */
char *group_state_here(const char *name);
/* It does not any more. */
int group_state_leave(const struct group *g);

/* group_disks.c: may this host write to each of the group's disks, and is each free? */
int group_disks_check(const struct group *g);
/*
 * Does the group answer within @seconds: its disks, its records' file system, the driver? The
 * exit status: SAY_DONE, SAY_FAILED or SAY_UNREACHABLE.
 */
int group_disks_answer(const struct group *g, int64_t seconds);
/* As group_state_owner(), and NULL if state_dir does not answer within @seconds. */
char *group_disks_owner(const struct group *g, int64_t seconds, bool *us);

#endif
