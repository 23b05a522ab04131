/* SPDX-License-Identifier: GPL-2.0-only */
/* The works of a path, and its memory. */
#ifndef IBTRS_CLIENT_PATH_RUN_H
#define IBTRS_CLIENT_PATH_RUN_H

#include "ibtrs/client/path.h"

/* A new path of @clt, idle, with its sysfs files; the caller puts it on the list. ERR_PTR. */
struct ibtrs_clt_path *ibtrs_clt_path_create(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr);
/*
 * Removes the sysfs files of a path that is off the list, which waits for running show and store,
 * waits until the path is closed, and frees it.
 */
void ibtrs_clt_path_destroy(struct ibtrs_clt_path *path);

#endif
