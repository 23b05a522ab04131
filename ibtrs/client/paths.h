/* SPDX-License-Identifier: GPL-2.0-only */
/* The list of a session's paths. */
#ifndef IBTRS_CLIENT_PATHS_H
#define IBTRS_CLIENT_PATHS_H

#include "ibtrs/client/path.h"

/*
 * Create a path and put it on the list, not connected. It cannot be removed while it is starting.
 * @opening: called by open itself; else the session must be open already. ERR_PTR: -ENODEV, -EBUSY,
 * -EEXIST, -ENOSPC, -ENOMEM.
 */
struct ibtrs_clt_path *ibtrs_clt_paths_start(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr, bool opening);
/* add_path of sysfs. Errors as above, or of connecting. Waits for the first attempt, killable. */
int ibtrs_clt_paths_add(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *addr);
/*
 * Claim a path that is in @stage in order to remove it. 0: the caller removes it, alone; it is off
 * clt->paths, and a closing session waits until ibtrs_clt_paths_remove() has ended.
 * -ENODEV: another task removes it, or the session is closing and removes all that are left.
 * -EBUSY: open or add_path still waits for its first attempt.
 */
int ibtrs_clt_paths_claim(struct ibtrs_clt_path *path, enum ibtrs_clt_path_stage stage);
/*
 * Closes and destroys a claimed path. Waits for that, unless the task is killed: then a work does
 * the rest. remove_path of sysfs must have left the attribute that it was called through
 * (sysfs_break_active_protection()).
 */
void ibtrs_clt_paths_remove(struct ibtrs_clt_path *path);

/* path_run.c: the works of a path, and its memory */

/* A new path of @clt, idle, with its sysfs files; the caller puts it on the list. ERR_PTR. */
struct ibtrs_clt_path *ibtrs_clt_path_create(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr);
/*
 * Closes a path that is off the list, removes its sysfs files, which waits for running show and
 * store, and frees it. Waits even if the task is killed.
 */
void ibtrs_clt_path_destroy(struct ibtrs_clt_path *path);

#endif
