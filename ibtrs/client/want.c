// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does any I/O wait for the link? (decision 11: if so, one attempt per second, else every 8 s)
 *
 * Called by: path_run.c (before each wait, and during the wait of an idle path), the user and any
 * code that sees a sign of life (want). This file sees parked requests itself; the user reports
 * requests that it holds or refuses. A wish is never withdrawn: a wish that has become void costs
 * one attempt per second until it expires.
 */
#include <linux/ktime.h>
#include "ibtrs/client/session.h"

bool ibtrs_clt_wanted(struct ibtrs_clt *clt)
{
	return atomic_read(&clt->nr_parked) || !READ_ONCE(clt->opened) ||
	       (unsigned long)ktime_get_seconds() < READ_ONCE(clt->want.until);
}

/*
 * A session in use needs all its paths: if only one path is up and it breaks, too, all I/O stops.
 * Traffic shows as counters that differ from those of the last look. A path that came or went looks
 * like traffic, too, which costs one attempt.
 */
void ibtrs_clt_want_look(struct ibtrs_clt *clt)
{
	const struct ibtrs_clt_pathset *set;
	struct ibtrs_clt_path *path;
	bool flows = false;
	u64 sum = 0;
	u32 i, n;

	rcu_read_lock();
	set = rcu_dereference(clt->up);
	/* Pairs with the shrinking in place in pathset.c. */
	n = smp_load_acquire(&set->n);
	for (i = 0; i < n; i++) {
		path = READ_ONCE(set->path[i]);
		sum += ibtrs_clt_stats_posted_ever(&path->stats);
		flows |= ibtrs_clt_path_inflight(path) != 0;
	}
	rcu_read_unlock();
	flows |= n && atomic64_xchg(&clt->want.seen, sum) != sum;
	if (flows)
		ibtrs_clt_want(clt, IBTRS_CLT_WANT_NEWS_S);
}

/*
 * ibtrs_clt_want() - see <ibtrs/clt.h>
 */
void ibtrs_clt_want(struct ibtrs_clt *clt, unsigned int seconds)
{
	unsigned long now = ktime_get_seconds(), end = now + seconds, old,
		      seen = READ_ONCE(clt->want.until);

	do {
		old = seen;
		if (old >= end)
			return;
		seen = cmpxchg(&clt->want.until, old, end);
	} while (seen != old);
	/* Up to now the timers ran at the slow pace of an unused session. */
	if (old <= now)
		queue_work(clt->wq, &clt->want.work);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_want);
