/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /etc/fstab and /etc/crypttab: which lines expect our disks, and do they know that those need the
 * network?
 */
#ifndef TOOLS_FSTAB_H
#define TOOLS_FSTAB_H

#include "tools/conf/maps_conf.h"

struct fstab_use {
	char *file;		/* /etc/fstab or /etc/crypttab */
	char *source;		/* as it stands there */
	char *target;		/* mount point, or name of the mapping */
	bool netdev;
	bool nofail;
};

/*
 * Lines that lead to one of our devices, also through LVM, LUKS and md. NULL-terminated by file ==
 * NULL. The two files, and what is wrong with them, are added to @said; a line that cannot be read
 * is left out.
 */
struct fstab_use *fstab_uses(const struct maps *m, struct maps *said);
void fstab_free(struct fstab_use *uses);
/* Warn of those without _netdev. */
void fstab_check(struct maps *m);

#endif
