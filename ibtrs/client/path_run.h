/* SPDX-License-Identifier: GPL-2.0-only */
/* The works of a path, and its memory. */
#ifndef IBTRS_CLIENT_PATH_RUN_H
#define IBTRS_CLIENT_PATH_RUN_H

#include "ibtrs/client/path.h"

/* A new path on the list of @clt, state idle. ERR_PTR. */
struct ibtrs_clt_path *ibtrs_clt_path_create(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr);
/*
 * Takes a closed path off the list, removes its sysfs files, which waits for those who are in them,
 * and frees it.
 */
void ibtrs_clt_path_destroy(struct ibtrs_clt_path *path);

#endif
