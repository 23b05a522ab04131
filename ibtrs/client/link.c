// SPDX-License-Identifier: GPL-2.0-only
/*
 * Effects of path changes on their session: the published set, the limits that the server granted,
 * and the link events for the user.
 *
 * clt->lock orders what happens to a session as a whole: its list of paths, the published set, and
 * the link events. Link events are delivered under this lock and so arrive in order. Path works
 * take it for a short time; no code that waits for the network runs under it.
 */
#include <linux/ktime.h>
#include "ibtrs/client/session.h"
#include "ibtrs/logic/chunkmap.h"

#define LINK_MAX_SEGMENTS	128

/*
 * Does any I/O wait for the link? (decision 11: if so, one attempt per second, else every 8 s)
 *
 * Called by: path_run.c (before each wait, and during the wait of an idle path), the user and any
 * code that sees a sign of life (want). This file sees parked requests itself; the user reports
 * requests that it holds or refuses. A wish is never withdrawn: a wish that has become void costs
 * one attempt per second until it expires.
 */

bool ibtrs_clt_link_wanted(struct ibtrs_clt *clt)
{
	return atomic_read(&clt->nr_parked) || !READ_ONCE(clt->opened) ||
	       (unsigned long)ktime_get_seconds() < READ_ONCE(clt->want.until);
}

/*
 * A session in use needs all its paths: if only one path is up and it breaks, too, all I/O stops.
 * Traffic shows as counters that differ from those of the last look. A path that came or went looks
 * like traffic, too, which costs one attempt.
 */
void ibtrs_clt_link_look(struct ibtrs_clt *clt)
{
	const struct ibtrs_clt_pathset *set;
	struct ibtrs_clt_path *path;
	u64 sum = 0, counts[IBTRS_CLT_COUNTS];
	bool flows = false;
	u32 i, n;

	rcu_read_lock();
	set = rcu_dereference(clt->up);
	/* Pairs with the shrinking in place in pathset.c. */
	n = smp_load_acquire(&set->n);
	for (i = 0; i < n; i++) {
		path = READ_ONCE(set->path[i]);
		ibtrs_clt_stats_sum(&path->stats, counts);
		sum += counts[IBTRS_CLT_REQUESTS + IBTRS_READ] +
		       counts[IBTRS_CLT_REQUESTS + IBTRS_WRITE];
		flows |= ibtrs_clt_path_inflight(path) != 0;
	}
	rcu_read_unlock();
	flows |= n && atomic64_xchg(&clt->want.seen, sum) != sum;
	if (flows)
		ibtrs_clt_want(clt, IBTRS_RETRY_NEWS_S);
}

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

int ibtrs_clt_link_limits(struct ibtrs_clt *clt, struct ibtrs_clt_path *path, const char **why)
{
	u32 pages_max = path->dev->ib->attrs.max_fast_reg_page_list_len;
	struct ibtrs_limits *l = &path->limits;
	int err = ibtrs_grant_check(l, path->nr_conns, PAGE_SIZE, why);

	if (err)
		return err;
	guard(mutex)(&clt->lock);
	if (!clt->slots.depth) {
		/* An unaligned I/O touches one page more than its length says. */
		clt->max_segments =
			min3(l->max_io_size / SZ_4K + 1, pages_max, (u32)LINK_MAX_SEGMENTS);
		clt->max_io_size = min(l->max_io_size, (clt->max_segments - 1) * SZ_4K);
		*why = "no memory for the slots";
		return ibtrs_clt_slots_init(&clt->slots, l->queue_depth, clt->max_segments,
					    path->dev->node, clt->nr_cpus);
	}
	*why = "the server changed its queue depth: unmap and map again";
	if (l->queue_depth != clt->slots.depth)
		return -EPROTO;
	*why = "the server or the RDMA device accepts only smaller I/O on this path: unmap and map again";
	if (l->max_io_size < clt->max_io_size || pages_max < clt->max_segments)
		return -EPROTO;
	return 0;
}

int ibtrs_clt_link_path_up(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	struct ibtrs_clt_path *other;
	int n;

	guard(mutex)(&clt->lock);
	/* The server accepted the path: nothing of its last incarnation is executed any more. */
	path->loose = false;
	n = ibtrs_clt_pathset_add(clt, path);
	if (n == 1 && clt->opened) {
		clt->ops->link(clt->priv, IBTRS_CLT_LINK_UP);
		/*
		 * The server can be reached again. The other paths would notice that late, because
		 * no request is held any more: try them now.
		 */
		ibtrs_clt_want(clt, IBTRS_RETRY_NEWS_S);
		list_for_each_entry(other, &clt->paths, entry)
			if (other != path)
				ibtrs_clt_path_hurry(other, true);
	}
	return min(n, 0);
}

void ibtrs_clt_link_path_loose(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;

	guard(mutex)(&clt->lock);
	path->loose = true;
	/* The task that took the path off the list has read path->loose already. */
	if (list_empty(&path->entry))
		clt->loose = true;
}

/* Paths that wait for their next attempt start it now; the others ignore the event. */
static void link_retry(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_path *path;

	lockdep_assert_held(&clt->lock);
	/* A closing session walks the list without the lock. */
	if (clt->closing)
		return;
	list_for_each_entry(path, &clt->paths, entry)
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
}

void ibtrs_clt_link_path_down(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt *clt = path->clt;
	int n;

	mutex_lock(&clt->lock);
	n = ibtrs_clt_pathset_del(clt, path);
	if (!n && clt->opened)
		clt->ops->link(clt->priv, IBTRS_CLT_LINK_DOWN);
	/*
	 * The server may have refused the other paths while this path seemed to be up
	 * (cm_may_create()): try them now.
	 */
	if (!n)
		link_retry(clt);
	mutex_unlock(&clt->lock);
	synchronize_rcu();
}

void ibtrs_clt_link_parked(struct ibtrs_clt *clt)
{
	guard(mutex)(&clt->lock);
	if (clt->opened && ibtrs_clt_is_up(clt))
		clt->ops->link(clt->priv, IBTRS_CLT_LINK_REPLAY);
}

void ibtrs_clt_link_retry_work(struct work_struct *work)
{
	struct ibtrs_clt *clt = container_of(work, struct ibtrs_clt, want.work);

	guard(mutex)(&clt->lock);
	link_retry(clt);
}
