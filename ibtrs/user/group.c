// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Groups: making and unmaking them, and what the caller says of a leg, and is told of it. All of it
 * is for any thread; what a queue does is in gq.c.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "ibtrs/user/group.h"

/* ---- legs --------------------------------------------------------------- */

int ibtrs_group_out(struct ibtrs_group *g, unsigned int leg, bool out)
{
	u32 i;

	if (leg >= g->nr)
		return -EINVAL;
	__atomic_store_n(&g->legs[leg].out, out, __ATOMIC_RELEASE);
	for (i = 0; i < g->nr_qs; i++)
		ibtrs_gq_wake(&g->qs[i]);
	return 0;
}

int ibtrs_group_whole(struct ibtrs_group *g, unsigned int leg, uint64_t missed)
{
	if (leg >= g->nr)
		return -EINVAL;
	__atomic_store_n(&g->legs[leg].whole, missed, __ATOMIC_SEQ_CST);
	return 0;
}

int ibtrs_group_leg(struct ibtrs_group *g, unsigned int leg, struct ibtrs_leg_info *info)
{
	struct ibtrs_leg_info i = {};
	struct group_leg *l;

	if (leg >= g->nr)
		return -EINVAL;
	l = &g->legs[leg];
	i.clt = l->clt;
	i.missed = __atomic_load_n(&l->missed, __ATOMIC_SEQ_CST);
	i.whole = __atomic_load_n(&l->whole, __ATOMIC_SEQ_CST);
	i.owes = __atomic_load_n(&l->owes, __ATOMIC_SEQ_CST);
	i.out = __atomic_load_n(&l->out, __ATOMIC_ACQUIRE);
	return ibtrs_user_tell(info, &i, sizeof(i));
}

/* ---- making and unmaking ------------------------------------------------ */

static int gq_init(struct ibtrs_gq *gq, struct ibtrs_group *g, u32 idx)
{
	struct epoll_event ev = { .events = EPOLLIN };
	u32 i;

	gq->g = g;
	gq->ready_end = &gq->ready;
	gq->wake = -1;
	gq->ep = epoll_create1(EPOLL_CLOEXEC);
	if (gq->ep < 0)
		return -errno;
	gq->wake = ibtrs_user_eventfd(gq->ep, gq);
	if (gq->wake < 0)
		return gq->wake;
	for (i = 0; i < g->nr; i++) {
		gq->legs[i].q = ibtrs_clt_q(g->legs[i].clt, idx);
		gq->legs[i].wait_end = &gq->legs[i].wait;
		ev.data.ptr = gq->legs[i].q;
		if (epoll_ctl(gq->ep, EPOLL_CTL_ADD, ibtrs_q_fd(gq->legs[i].q), &ev))
			return -errno;
	}
	return 0;
}

static void group_free(struct ibtrs_group *g)
{
	u32 i;

	for (i = 0; i < g->nr_qs; i++) {
		if (g->qs[i].wake >= 0)
			close(g->qs[i].wake);
		if (g->qs[i].ep >= 0)
			close(g->qs[i].ep);
	}
	free(g->qs);
	free(g);
}

int ibtrs_group_free(struct ibtrs_group *g)
{
	u32 i;

	for (i = 0; g && i < g->nr_qs; i++)
		if (g->qs[i].under_way)
			return -EBUSY;
	if (g)
		group_free(g);
	return 0;
}

static int group_init(struct ibtrs_group *g, struct ibtrs_clt *const *clt)
{
	u32 i;
	int err = 0;

	for (i = 0; i < g->nr; i++)
		g->legs[i].clt = clt[i];
	g->qs = calloc(g->nr_qs, sizeof(*g->qs));
	if (!g->qs) {
		g->nr_qs = 0;
		return -ENOMEM;
	}
	for (i = 0; i < g->nr_qs; i++)
		g->qs[i].ep = g->qs[i].wake = -1;
	for (i = 0; i < g->nr_qs && !err; i++)
		err = gq_init(&g->qs[i], g, i);
	return err;
}

int ibtrs_group_new(struct ibtrs_clt *const *clt, unsigned int nr,
		    const struct ibtrs_group_opts *o, struct ibtrs_group **out,
		    char why[IBTRS_WHY_LEN])
{
	struct ibtrs_group_opts opts;
	struct ibtrs_group *g;
	u32 i, k;
	int err;

	err = ibtrs_user_opts(&opts, sizeof(opts), o);
	if (err)
		return ibtrs_user_why(why, err, "group", "an option that this library does not know");
	if (!nr || nr > IBTRS_GROUP_LEGS)
		return ibtrs_user_why(why, -EINVAL, "group", "it has 1 to %u sessions",
				      IBTRS_GROUP_LEGS);
	if (opts.quorum > nr)
		return ibtrs_user_why(why, -EINVAL, "group", "a quorum of %u, and %u sessions",
				      opts.quorum, nr);
	g = calloc(1, sizeof(*g));
	if (!g)
		return ibtrs_user_why(why, -ENOMEM, "group", "no memory");
	g->nr = nr;
	g->quorum = opts.quorum ?: nr;
	g->early = opts.flags & IBTRS_GROUP_EARLY;
	g->nr_qs = clt[0]->nr_qs - 1;
	for (i = 0; i < nr && !err; i++) {
		for (k = 0; k < i && !err; k++)
			if (clt[k] == clt[i])
				err = ibtrs_user_why(why, -EINVAL, clt[i]->name,
						     "the session is in the group twice");
		if (!err && clt[i]->nr_qs - 1 != g->nr_qs)
			err = ibtrs_user_why(why, -EINVAL, clt[i]->name,
					     "it has %u queues, and the first session of the group %u",
					     clt[i]->nr_qs - 1, g->nr_qs);
	}
	if (!err) {
		err = group_init(g, clt);
		if (err)
			ibtrs_user_why(why, err, "group", "its queues cannot be made: %s",
				       strerror(-err));
	} else {
		g->nr_qs = 0;
	}
	if (err)
		group_free(g);
	else
		*out = g;
	return err;
}

struct ibtrs_gq *ibtrs_group_q(struct ibtrs_group *g, unsigned int i)
{
	return i < g->nr_qs ? &g->qs[i] : NULL;
}
