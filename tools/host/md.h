/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * md arrays as sysfs shows them, and mdadm, which is run and never linked.
 *
 * A change of an array waits for its members, so ask for one only while another leg is open.
 * Reading these files waits for nothing.
 */
#ifndef TOOLS_MD_H
#define TOOLS_MD_H

#include "tools/conf/mirror_rule.h"

/* The RAID 1 that has the disk @kname as a member, started or not; allocated, or NULL. */
char *md_over(const char *kname);
/* The file @name of its directory md in sysfs; allocated, or NULL. */
char *md_attr(const char *md, const char *name);
bool md_runs(const char *md);
enum mirror_md md_member(const char *md, const char *kname);
/* Was it added with --failfast? */
bool md_failfast(const char *md, const char *kname);
/* How much of a resync is done, in percent; -1: there is none. */
int md_progress(const char *md);
/* Let md take a dropped member back by its bitmap. 0 or errno. */
int md_readd(const char *md, const char *kname);

/*
 * Run mdadm, the first of these words, the last of which is NULL, for at most a minute. Returns its
 * exit status, -1: it was not run, or had no end. *@said gets what it said, allocated. A dry run
 * prints the command.
 */
int md_run(char **said, const char *const words[]);
#define MD_RUN(said, ...)	md_run(said, (const char *const[]){ "mdadm", __VA_ARGS__, NULL })

/**
 * struct md_super - what the superblock of a disk says, "" and false if there is none
 * @uuid: of its array
 * @active: the disk has a slot in the array, and everything, as far as it knows
 */
struct md_super {
	char uuid[64];
	bool active;
};

/* 0, or -1: it could not be read. */
int md_examine(const char *path, struct md_super *super);

#endif
