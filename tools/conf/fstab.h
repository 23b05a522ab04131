/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /etc/fstab and /etc/crypttab: which lines use our disks, and do they say that these need the
 * network?
 */
#ifndef TOOLS_FSTAB_H
#define TOOLS_FSTAB_H

#include "tools/conf/maps_conf.h"

struct fstab_use {
	char *file;		/* /etc/fstab or /etc/crypttab */
	char *source;		/* of the line, without quotes */
	char *target;		/* mount point, or name of the mapping */
	char *via;		/* not on our disk, but on what that line mounts; or NULL */
	bool netdev;
	char *options, *key;	/* of the line, for fstab.c */
};

/*
 * Lines that lead to one of our devices, also through LVM, LUKS and md, and lines that need what
 * those mount. The list ends with file ==
 * NULL. The two files and their mistakes are added to @said. A line that cannot be read is left
 * out.
 */
struct fstab_use *fstab_uses(const struct maps *m, struct maps *said);
void fstab_free(struct fstab_use *uses);
/* Warn of such lines without _netdev. */
void fstab_check(struct maps *m);

#endif
