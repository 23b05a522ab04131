// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Queues of a group: a write goes to all legs, a read to one.
 *
 * A queue of a group has queue i of each leg, and is used by the same thread. It has no lock and
 * allocates nothing: the requests of the legs lie in the caller's memory. What a leg's queue has no
 * slot for waits in a list of that leg, so the slowest leg holds up itself alone.
 *
 * A leg that is out ends what has not been sent to it, and what waits for a path. What its server
 * has is awaited as long as a path is up; when the session is shut, it waits for a path, too. So
 * memory is given back only when no thread can touch it any more.
 */
#include "ibtrs/user/group.h"

#define GROUP_BATCH	16u

static bool leg_is_out(const struct ibtrs_gq *gq, u32 i)
{
	return __atomic_load_n(&gq->g->legs[i].out, __ATOMIC_ACQUIRE);
}

static bool leg_is_up(const struct ibtrs_gq *gq, u32 i)
{
	return __atomic_load_n(&gq->legs[i].q->up, __ATOMIC_RELAXED);
}

/* ---- ends --------------------------------------------------------------- */

static void gio_list(struct ibtrs_gq *gq, struct ibtrs_gio *io)
{
	if (io->priv.listed)
		return;
	io->priv.listed = true;
	io->next = NULL;
	*gq->ready_end = io;
	gq->ready_end = &io->next;
}

/* Is the result certain? Has all of it ended? */
static void gio_judge(struct ibtrs_gq *gq, struct ibtrs_gio *io)
{
	bool certain = io->priv.got >= io->priv.need || io->priv.got + io->left < io->priv.need;

	if (certain && !io->priv.certain) {
		io->priv.certain = true;
		io->err = io->priv.got >= io->priv.need ? 0 : io->priv.first_err;
		if (gq->g->early)
			gio_list(gq, io);
	}
	if (!io->left)
		gio_list(gq, io);
}

static void leg_wait(struct ibtrs_gq *gq, u32 i, struct ibtrs_gio *io)
{
	struct gq_leg *leg = &gq->legs[i];
	struct ibtrs_io *sub = &io->leg[i];

	sub->err = -EINPROGRESS;
	sub->next = NULL;
	*leg->wait_end = sub;
	leg->wait_end = &sub->next;
	leg->nr++;
	gq->more = true;
	io->priv.pending |= 1u << i;
	io->left++;
}

/* Has leg @i all writes that were handed back? */
static bool leg_is_whole(const struct ibtrs_gq *gq, u32 i)
{
	struct group_leg *leg = &gq->g->legs[i];

	return !__atomic_load_n(&leg->owes, __ATOMIC_SEQ_CST) &&
	       __atomic_load_n(&leg->missed, __ATOMIC_SEQ_CST) ==
	       __atomic_load_n(&leg->whole, __ATOMIC_SEQ_CST);
}

/*
 * The leg for a read: among those with a path the one with the fewest requests of this queue, of
 * several the next in turn. Return: -1: there is none. @up: only one with a path.
 */
static int read_pick(const struct ibtrs_gq *gq, const struct ibtrs_gio *io, bool up)
{
	u32 n, i;
	int best = -1;

	for (n = 1; n <= gq->g->nr; n++) {
		i = (gq->cursor + n) % gq->g->nr;
		if (io->priv.asked & 1u << i || leg_is_out(gq, i) || (up && !leg_is_up(gq, i)))
			continue;
		if (io->legs ? !(io->legs & 1u << i) : !leg_is_whole(gq, i))
			continue;
		if (best < 0 || gq->legs[i].nr < gq->legs[best].nr)
			best = (int)i;
	}
	return best;
}

static void read_begin(struct ibtrs_gq *gq, struct ibtrs_gio *io)
{
	int i = read_pick(gq, io, true);

	if (i < 0)
		i = read_pick(gq, io, false);
	if (i < 0) {
		gio_judge(gq, io);
		return;
	}
	gq->cursor = (u32)i;
	io->priv.asked |= 1u << i;
	leg_wait(gq, (u32)i, io);
}

/* Leg @i has ended its part of a request. */
static void leg_end(struct ibtrs_gq *gq, u32 i, struct ibtrs_io *sub, int err)
{
	struct ibtrs_gio *io = sub->user;

	sub->err = err;
	gq->legs[i].nr--;
	io->left--;
	io->priv.pending &= ~(1u << i);
	if (!err)
		io->priv.got++;
	else if (!io->priv.failed)
		io->priv.first_err = err;
	if (err)
		io->priv.failed |= 1u << i;
	if (io->dir == IBTRS_IO_READ && err) {
		read_begin(gq, io);
		return;
	}
	gio_judge(gq, io);
}

/* ---- the queues of the legs --------------------------------------------- */

/* Hands what waits to the leg's queue, as much as it takes, or ends it. */
static void leg_flush(struct ibtrs_gq *gq, u32 i)
{
	struct gq_leg *leg = &gq->legs[i];
	struct ibtrs_io *sub, *batch[GROUP_BATCH];
	u32 nr, taken;
	int n = 1;

	while (leg->wait && n) {
		for (nr = 0, sub = leg->wait; sub && nr < GROUP_BATCH; sub = sub->next)
			batch[nr++] = sub;
		n = leg_is_out(gq, i) ? -ENOTCONN : ibtrs_q_submit(leg->q, batch, nr);
		taken = n < 0 ? 1 : (u32)n;
		leg->wait = taken < nr ? batch[taken] : sub;
		if (!leg->wait)
			leg->wait_end = &leg->wait;
		if (n < 0)
			leg_end(gq, i, batch[0], n);
	}
}

static void gq_flush(struct ibtrs_gq *gq)
{
	u32 i;

	/* A read that one leg refuses goes to another one. */
	do {
		gq->more = false;
		for (i = 0; i < gq->g->nr; i++)
			leg_flush(gq, i);
	} while (gq->more);
}

static void leg_poll(struct ibtrs_gq *gq, u32 i)
{
	struct ibtrs_io *done[GROUP_BATCH];
	int n, k;

	do {
		n = ibtrs_q_poll(gq->legs[i].q, done, GROUP_BATCH, 0);
		for (k = 0; k < n; k++)
			leg_end(gq, i, done[k], done[k]->err);
	} while (n == GROUP_BATCH);
}

/* A read that waits for a path: does another leg have one? */
static bool leg_moves(const struct ibtrs_io *sub, void *gq)
{
	const struct ibtrs_gio *io = sub->user;

	return io->dir == IBTRS_IO_READ && read_pick(gq, io, true) >= 0;
}

static void leg_turn(struct ibtrs_gq *gq, u32 i)
{
	struct ibtrs_q *q = gq->legs[i].q;

	leg_poll(gq, i);
	if (__atomic_load_n(&q->parked, __ATOMIC_RELAXED) &&
	    ibtrs_q_abort_if(q, -ENOTCONN, leg_is_out(gq, i) ? NULL : leg_moves, gq))
		leg_poll(gq, i);
}

/* ---- the owner's side --------------------------------------------------- */

static bool gio_valid(const struct ibtrs_group *g, const struct ibtrs_gio *io)
{
	return io->dir <= IBTRS_IO_WRITE && io->leg && io->hdr && io->hdr_len >= 4 &&
	       (!io->len || io->data) && !(io->legs >> g->nr);
}

static void gio_begin(struct ibtrs_gq *gq, struct ibtrs_gio *io)
{
	struct ibtrs_group *g = gq->g;
	u32 legs = io->legs ?: (1u << g->nr) - 1, i;

	memset(&io->priv, 0, sizeof(io->priv));
	io->err = -EINPROGRESS;
	io->left = 0;
	io->priv.first_err = -ENODATA;
	for (i = 0; i < g->nr; i++)
		io->leg[i] = (struct ibtrs_io){
			.dir = io->dir, .hdr = io->hdr, .hdr_len = io->hdr_len,
			.data = io->data, .len = io->len, .err = -ENODATA, .user = io,
		};
	gq->under_way++;
	if (io->dir == IBTRS_IO_READ) {
		io->priv.need = 1;
		read_begin(gq, io);
		return;
	}
	io->priv.need = io->legs ? (u32)__builtin_popcount(legs) : g->quorum;
	for (i = 0; i < g->nr; i++)
		if (legs & 1u << i)
			leg_wait(gq, i, io);
}

/* What cannot wait for a leg's descriptor is told by the queue's own. */
static void gq_wake_if_ready(struct ibtrs_gq *gq)
{
	if (gq->ready && !__atomic_load_n(&gq->woken, __ATOMIC_ACQUIRE))
		ibtrs_gq_wake(gq);
}

int ibtrs_gq_submit(struct ibtrs_gq *gq, struct ibtrs_gio *const *io, unsigned int nr)
{
	unsigned int n;

	for (n = 0; n < nr && gio_valid(gq->g, io[n]); n++)
		gio_begin(gq, io[n]);
	gq_flush(gq);
	gq_wake_if_ready(gq);
	return n || !nr ? (int)n : -EINVAL;
}

/* @io is handed back: what does that say of the legs? */
static void gio_count(struct ibtrs_gq *gq, struct ibtrs_gio *io)
{
	u32 i, bit;

	for (i = 0; i < gq->g->nr; i++) {
		struct group_leg *leg = &gq->g->legs[i];

		bit = 1u << i;
		if (io->priv.failed & ~io->priv.counted & bit)
			__atomic_fetch_add(&leg->missed, 1, __ATOMIC_SEQ_CST);
		if (io->priv.pending & ~io->priv.owed & bit)
			__atomic_fetch_add(&leg->owes, 1, __ATOMIC_SEQ_CST);
		/* Behind what it has missed. */
		if (io->priv.owed & ~io->priv.pending & bit)
			__atomic_fetch_sub(&leg->owes, 1, __ATOMIC_SEQ_CST);
	}
	io->priv.counted = io->priv.failed;
	io->priv.owed = io->priv.pending;
}

static struct ibtrs_gio *gq_take(struct ibtrs_gq *gq)
{
	struct ibtrs_gio *io = gq->ready;

	if (!io)
		return NULL;
	gq->ready = io->next;
	if (!gq->ready)
		gq->ready_end = &gq->ready;
	io->priv.listed = false;
	if (io->dir == IBTRS_IO_WRITE)
		gio_count(gq, io);
	gq->under_way -= !io->left;
	return io;
}

int ibtrs_gq_poll(struct ibtrs_gq *gq, struct ibtrs_gio **done, unsigned int max, int timeout_ms)
{
	u64 end = ibtrs_user_end(timeout_ms);
	unsigned int n = 0;
	int err;
	u32 i;

	for (;;) {
		if (__atomic_exchange_n(&gq->woken, false, __ATOMIC_ACQUIRE))
			ibtrs_user_settle(gq->wake);
		for (i = 0; i < gq->g->nr; i++)
			leg_turn(gq, i);
		gq_flush(gq);
		while (n < max && (done[n] = gq_take(gq)))
			n++;
		gq_wake_if_ready(gq);
		if (n || !timeout_ms || !max)
			return (int)n;
		err = ibtrs_user_sleep(gq->ep, end, -1);
		if (err <= 0)
			return err;
	}
}

int ibtrs_gq_fd(const struct ibtrs_gq *gq)
{
	return gq->ep;
}
