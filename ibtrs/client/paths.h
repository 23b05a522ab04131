/* SPDX-License-Identifier: GPL-2.0-only */
/* The list of a session's paths. */
#ifndef IBTRS_CLIENT_PATHS_H
#define IBTRS_CLIENT_PATHS_H

#include <ibtrs/addr.h>

struct ibtrs_clt;
struct ibtrs_clt_path;

int ibtrs_clt_paths_init(void);
void ibtrs_clt_paths_exit(void);	/* no session is left */

/*
 * A path on the list, not connected, that nobody can remove while it is starting. @opening: by open
 * itself; else the session must be open. ERR_PTR: -ENODEV, -EBUSY, -EEXIST, -ENOSPC, -ENOMEM.
 */
struct ibtrs_clt_path *ibtrs_clt_paths_start(struct ibtrs_clt *clt,
					     const struct ibtrs_addr_pair *addr, bool opening);
/* add_path of sysfs: as above, and connect errors. Waits for the first attempt, killable. */
int ibtrs_clt_paths_add(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *addr);
/*
 * Who removes a path? 0: the caller, alone; it is off clt->paths. -ENODEV: somebody else does, or
 * the session is closing and takes all that are left. -EBUSY: open or add_path still waits for its
 * first attempt.
 */
int ibtrs_clt_paths_claim(struct ibtrs_clt_path *path);
/*
 * Closes and destroys a claimed path, and says removed() then (dirs.h). Waits for that, unless it
 * is killed: a work does the rest. remove_path of sysfs: the caller has stepped out of the
 * attribute that it was called through.
 */
void ibtrs_clt_paths_remove(struct ibtrs_clt_path *path);
/*
 * The same for a path of a closing session, which is off the list: waits in any case, and says
 * nothing.
 */
void ibtrs_clt_paths_destroy(struct ibtrs_clt_path *path);

#endif
