/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_LOOKUP_H
#define IBNBD_SERVER_LOOKUP_H

struct path;

int ibnbd_srv_lookup(const char *search, const char *session, const char *name, struct path *path,
		     const char **why);

#endif
