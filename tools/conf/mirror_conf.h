/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mirror's files. /etc/ibnbd/mirrors.d/NAME.conf, written by `ibnbd mirror create`, says what it
 * is made of:
 *
 *	uuid = 6b8b4567:327b23c6:643c9869:66334873	of the array, as mdadm has it
 *	wait = 30s				a boot waits so long for legs that are missing
 *	leg = NAME IDENTITY			a line for each: its mapping, and which disk it is
 *
 * /var/lib/ibnbd/mirrors/NAME is the record: the names of the legs that have everything, a line for
 * each. A boot starts the array from no other leg.
 */
#ifndef TOOLS_MIRROR_CONF_H
#define TOOLS_MIRROR_CONF_H

#include <stdint.h>
#include "tools/conf/mirror_rule.h"
#include "tools/out/say.h"

#define MIRROR_DIR	"/etc/ibnbd/mirrors.d"	/* below IBNBD_ROOT */
#define MIRROR_RECORDS	"/var/lib/ibnbd/mirrors"
#define MIRROR_NAME_MAX	27	/* what md has room for, behind "any:" */
#define MIRROR_WAIT	30

struct mirror_conf_leg {
	char *name;
	char *identity;		/* "" = its server does not tell */
	bool recorded;
};

struct mirror_conf {
	char *name, *uuid;
	int64_t wait;		/* seconds, MAPS_FOREVER = without end */
	struct mirror_conf_leg leg[MIRROR_LEGS];
	size_t nr;
};

/* Why it cannot be the name of a mirror, or NULL. */
const char *mirror_wrong_name(const char *name);
/*
 * All mirrors with their records; the last one has no name. @refused: how many files are not used;
 * @tell: which, and why.
 */
struct mirror_conf *mirror_conf_load(size_t *refused, bool tell);
void mirror_conf_free(struct mirror_conf *list);
DEFINE_FREE(mirror_conf_free, struct mirror_conf *)
/* The mirror of this name, or NULL. */
struct mirror_conf *mirror_conf_find(struct mirror_conf *list, const char *name);
/* These replace the file, and return the exit status, with an error. In a dry run they tell. */
int mirror_conf_write(const struct mirror_conf *m);
int mirror_record_write(const struct mirror_conf *m, unsigned int healthy);

#endif
