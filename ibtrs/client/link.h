/* SPDX-License-Identifier: GPL-2.0-only */
/* Effects of path changes on their session. */
#ifndef IBTRS_CLIENT_LINK_H
#define IBTRS_CLIENT_LINK_H

#include <linux/atomic.h>
#include <linux/workqueue.h>

struct ibtrs_clt;
struct ibtrs_clt_path;

/*
 * The server has granted limits to a path. The first path of the session allocates the slots; the
 * limits of the other paths must match. 0, or an errno with the reason in *@why.
 */
int ibtrs_clt_link_limits(struct ibtrs_clt *clt, struct ibtrs_clt_path *path, const char **why);
/* Path work: the path is ready / not ready any more. */
int ibtrs_clt_link_path_up(struct ibtrs_clt_path *path);
void ibtrs_clt_link_path_down(struct ibtrs_clt_path *path);
/* Drain of a path: a write leaves the path, and the server may still execute it (law L8). */
void ibtrs_clt_link_path_loose(struct ibtrs_clt_path *path);
/* The walk parked requests: tell the user if the link is up. */
void ibtrs_clt_link_parked(struct ibtrs_clt *clt);
/* The work of clt->want: I/O began to wait for the link. */
void ibtrs_clt_link_retry_work(struct work_struct *work);

struct ibtrs_clt_want {
	unsigned long until;		/* seconds since boot; cmpxchg */
	/* requests posted on the paths that were up at the last look */
	atomic64_t seen;
	struct work_struct work;
};

/*
 * Check whether I/O flows over the paths that are up. If so, the other paths are wanted, too. Call
 * it about once a second. Any context.
 */
void ibtrs_clt_link_look(struct ibtrs_clt *clt);
/* Is I/O waiting for a path, or was it lately? */
bool ibtrs_clt_link_wanted(struct ibtrs_clt *clt);

#endif
