/* SPDX-License-Identifier: GPL-2.0-only */
/* Does any I/O wait for the link? That decides how often paths are tried. */
#ifndef IBTRS_CLIENT_WANT_H
#define IBTRS_CLIENT_WANT_H

#include <linux/atomic.h>
#include <linux/workqueue.h>

struct ibtrs_clt;

/* after a sign of life (a port or another path came up), paths are tried often for so long */
#define IBTRS_CLT_WANT_NEWS_S	10

struct ibtrs_clt_want {
	unsigned long until;		/* seconds since boot; cmpxchg */
	/* requests posted on the paths that were up at the last look */
	atomic64_t seen;
	struct work_struct work;	/* link.c */
};

/*
 * Check whether I/O flows over the paths that are up. If so, the other paths are wanted, too. Call
 * it about once a second. Any context.
 */
void ibtrs_clt_want_look(struct ibtrs_clt *clt);
/* Is I/O waiting for a path, or was it lately? (backoff) */
bool ibtrs_clt_wanted(struct ibtrs_clt *clt);

#endif
