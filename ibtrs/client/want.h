/* SPDX-License-Identifier: GPL-2.0-only */
/* Does anybody wait for the link? It decides how often paths are tried. */
#ifndef IBTRS_CLIENT_WANT_H
#define IBTRS_CLIENT_WANT_H

#include <linux/atomic.h>
#include <linux/workqueue.h>

struct ibtrs_clt;

/* after a sign of life (a port, another path) everything is tried often */
#define IBTRS_CLT_WANT_NEWS_S	10

struct ibtrs_clt_want {
	unsigned long until;		/* seconds since boot; cmpxchg */
	/* requests that went over paths that were up at the last look */
	atomic64_t seen;
	struct work_struct work;	/* link.c */
};

/*
 * Does I/O flow over the paths that are up? Then it wants the others, too: so often is this to be
 * asked, about once a second. Any context.
 */
void ibtrs_clt_want_look(struct ibtrs_clt *clt);
/* Is I/O waiting for a path, or was it lately? (backoff) */
bool ibtrs_clt_wanted(struct ibtrs_clt *clt);

#endif
