/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of the links that udev makes. Each is a one-to-one image of the name that it stands for:
 * two disks never have the same link, and the name can be read from the link. ibnbd(8), LINKS.
 */
#ifndef TOOLS_LINKS_H
#define TOOLS_LINKS_H

/* All allocated; NULL: too long for a file name, or for udev. */
char *links_by_name(const char *name);		/* below /dev/ibnbd/by-name/ */
char *links_session(const char *session);	/* below /dev/ibnbd/by-session/ */
char *links_device(const char *device);		/* below that directory; with '/' */
char *links_by_path(const char *session, const char *device);	/* below /dev/disk/by-path/ */

#endif
