// SPDX-License-Identifier: GPL-2.0-only
/*
 * The set of paths that are up.
 *
 * Readers (submit) see one immutable array and choose from it; writers (path works, under
 * clt->lock) publish a new one. Removal cannot fail: with no memory for a smaller array the old
 * one is shrunk in place. Readers tolerate that, because entries only move towards the front and
 * `n` is written last. A reader that still sees the old `n` may pick a path twice, or a path that
 * is being removed. The caller waits a grace period after every removal before it drains the path.
 */
#include <linux/slab.h>
#include "ibtrs/client/session.h"
#include "ibtrs/logic/mpath.h"

static struct ibtrs_clt_pathset *pathset_locked(struct ibtrs_clt *clt)
{
	return rcu_dereference_protected(clt->up, lockdep_is_held(&clt->lock));
}

static struct ibtrs_clt_pathset *pathset_alloc(u32 n, gfp_t gfp)
{
	struct ibtrs_clt_pathset *set = kzalloc(struct_size(set, path, n), gfp);

	if (set)
		set->n = n;
	return set;
}

int ibtrs_clt_pathset_init(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_pathset *set = pathset_alloc(0, GFP_KERNEL);

	RCU_INIT_POINTER(clt->up, set);
	clt->cursor = alloc_percpu(unsigned int);
	return set && clt->cursor ? 0 : -ENOMEM;
}

void ibtrs_clt_pathset_free(struct ibtrs_clt *clt)
{
	kfree(rcu_dereference_protected(clt->up, 1));
	free_percpu(clt->cursor);
}

int ibtrs_clt_pathset_add(struct ibtrs_clt *clt, struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_pathset *old = pathset_locked(clt), *set;

	set = pathset_alloc(old->n + 1, GFP_NOIO);
	if (!set)
		return -ENOMEM;
	memcpy(set->path, old->path, old->n * sizeof(old->path[0]));
	set->path[old->n] = path;
	set->gen = old->n ? old->gen : old->gen + 1;
	rcu_assign_pointer(clt->up, set);
	kfree_rcu(old, rcu);
	return set->n;
}

int ibtrs_clt_pathset_del(struct ibtrs_clt *clt, struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_pathset *old = pathset_locked(clt), *set;
	u32 i, n = 0;

	for (i = 0; i < old->n && old->path[i] != path; i++)
		;
	if (i == old->n)
		return old->n;
	set = pathset_alloc(old->n - 1, GFP_NOIO);
	if (!set) {
		for (; i + 1 < old->n; i++)
			WRITE_ONCE(old->path[i], old->path[i + 1]);
		/* A reader that sees the new n also sees the moved entries. */
		smp_store_release(&old->n, old->n - 1);
		return old->n;
	}
	for (i = 0; i < old->n; i++)
		if (old->path[i] != path)
			set->path[n++] = old->path[i];
	set->gen = old->gen;
	rcu_assign_pointer(clt->up, set);
	kfree_rcu(old, rcu);
	return set->n;
}

bool ibtrs_clt_is_up(struct ibtrs_clt *clt)
{
	guard(rcu)();
	return rcu_dereference(clt->up)->n;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_is_up);

u32 ibtrs_clt_gen(struct ibtrs_clt *clt)
{
	guard(rcu)();
	return rcu_dereference(clt->up)->gen;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_gen);

bool ibtrs_clt_settled(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_path *path;
	bool loose;

	guard(mutex)(&clt->lock);
	loose = clt->loose;
	list_for_each_entry(path, &clt->paths, entry)
		loose |= path->loose;
	return !loose;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_settled);

/*
 * A marginal path gets one request, and the next one only when that is answered: if the path loses
 * a request, the other requests are not affected.
 */
static bool pathset_is_taken(const struct ibtrs_clt_path *path)
{
	return unlikely(READ_ONCE(path->stats.wary)) && ibtrs_clt_path_inflight(path);
}

struct pathset_question {
	const struct ibtrs_clt_pathset *set;
	u32 cid;
	u8 policy;
};

/*
 * With min-inflight the load is what is in flight on connection @cid only. A sum over all
 * connections would need a cache line that every request of every CPU writes to. If each CPU
 * divides its own requests evenly, the total is divided evenly, too.
 */
static __always_inline u64 pathset_load(const void *priv, unsigned int i)
{
	const struct pathset_question *q = priv;
	const struct ibtrs_clt_path *path = READ_ONCE(q->set->path[i]);
	u64 avoid = pathset_is_taken(path) ? IBTRS_MPATH_AVOID : 0;

	if (q->policy == IBTRS_MPATH_RR)
		return avoid;
	if (q->policy == IBTRS_MPATH_MIN_LATENCY)
		return READ_ONCE(path->hb.latency_ns) | avoid;
	return ibtrs_clt_conn_inflight(&path->conns[q->cid]) | avoid;
}

struct ibtrs_clt_path *ibtrs_clt_pathset_pick(struct ibtrs_clt *clt,
					      const struct ibtrs_clt_pathset *set, u32 cid,
					      u64 tried[2])
{
	/* Pairs with the shrinking in place. */
	u32 n = smp_load_acquire(&set->n);
	const struct pathset_question q = {
		.set = set, .cid = cid, .policy = READ_ONCE(clt->policy),
	};
	bool rr = q.policy == IBTRS_MPATH_RR;
	int best = 0;

	if (likely(n == 1)) {
		if (tried[0])
			return NULL;
	} else {
		best = ibtrs_mpath_least(rr ? this_cpu_read(*clt->cursor) + 1 : cid, n, tried,
					 pathset_load, &q);
		if (rr && best >= 0)
			this_cpu_write(*clt->cursor, best);
	}
	if (best < 0)
		return NULL;
	ibtrs_mpath_mark(tried, best);
	return READ_ONCE(set->path[best]);
}
