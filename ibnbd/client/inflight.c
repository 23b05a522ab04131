// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations on the requests of a device that are under way: in flight, parked by ibtrs while there
 * is no path, or strayed (queue.c).
 *
 * All of them run under the device's lock, which owns the strays.
 *
 * The server may still execute a parked request that it has received. A function that ends such a
 * request notes this in the device, so that the request cannot overwrite newer data (L8). ibtrs
 * calls the match functions while it walks all slots; other requests start and end at the same
 * time.
 */
#include <linux/jiffies.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/session.h"
#include "ibnbd/client/unflushed.h"

static bool inflight_match(struct ibtrs_clt_io *io, void *arg)
{
	return container_of(io, struct ibnbd_clt_op, io)->dev == arg;
}

/*
 * The request is not to be sent again when its path is lost. False: it was answered meanwhile, and
 * its record is another device's, whose request has to move.
 */
static bool inflight_stay(struct ibtrs_clt_io *io, void *dev)
{
	WRITE_ONCE(io->stay, true);
	smp_mb();	/* pairs with queue_submit(), which sets the device, then clears @stay */
	if (inflight_match(io, dev))
		return true;
	WRITE_ONCE(io->stay, false);
	return false;
}

static bool inflight_match_for_good(struct ibtrs_clt_io *io, void *arg)
{
	return inflight_match(io, arg) && inflight_stay(io, arg);
}

static bool inflight_match_write(struct ibtrs_clt_io *io, void *arg)
{
	return inflight_match(io, arg) && io->dir == IBTRS_WRITE;
}

/* What some match functions are asked about, and what they find. */
struct inflight_ask {
	struct ibnbd_clt_dev *dev;
	u32 limit;			/* bytes, or jiffies */
	u64 now_ns;
	u64 found;			/* a number, jiffies or ns */
};

static bool inflight_match_larger(struct ibtrs_clt_io *io, void *arg)
{
	struct inflight_ask *m = arg;

	return inflight_match(io, m->dev) && io->len > m->limit;
}

/* Each request breaks a path once per io_timeout, however often it moved. */
static bool inflight_match_slow(struct ibtrs_clt_io *io, void *arg)
{
	struct ibnbd_clt_op *op = container_of(io, struct ibnbd_clt_op, io);
	struct inflight_ask *m = arg;

	if (!inflight_match(io, m->dev) || (u32)jiffies - READ_ONCE(op->start) < m->limit)
		return false;
	WRITE_ONCE(op->start, (u32)jiffies);
	return true;
}

/*
 * The server may have given the device another id, and the account may have begun while the request
 * waited. The submitter does not poll any more, so the request is not polled. One that stayed,
 * because it had been due for too long on its path, is sent again: the device is open.
 */
static void inflight_readdress(struct ibnbd_clt_op *op)
{
	enum ibnbd_op kind = le32_to_cpu(op->hdr->rw) & IBNBD_OP_MASK;

	if (op->account == IBNBD_CLT_ACCOUNT_NOTHING)
		ibnbd_clt_unflushed_send(op->dev, op, kind, op->rq->cmd_flags & REQ_FUA);
	op->io.poll = 0;
	WRITE_ONCE(op->io.stay, false);
	op->io.gen = op->dev->link_gen;
	op->hdr->device_id = cpu_to_le32(op->dev->device_id);
	WRITE_ONCE(op->start, (u32)jiffies);
}

static bool inflight_match_readdress(struct ibtrs_clt_io *io, void *arg)
{
	if (!inflight_match(io, arg))
		return false;
	inflight_readdress(container_of(io, struct ibnbd_clt_op, io));
	return true;
}

/*
 * The next stray of @dev from slot *@slot on; *@slot is set to the slot after it. NULL: none is
 * left.
 */
static struct ibnbd_clt_op *inflight_next_stray(struct ibnbd_clt_dev *dev, u32 *slot)
{
	struct ibnbd_clt_op *op;

	lockdep_assert_held(&dev->lock);
	/* A stray is counted before it is one; most devices have none, and look at no slot. */
	while (atomic_read_acquire(&dev->nr_strays) && *slot < dev->sess->attrs.nr_slots) {
		op = ibnbd_clt_op(dev->ops, dev->op_stride, (*slot)++);
		/* Pairs with queue_stray() of queue.c. */
		if (smp_load_acquire(&op->stray) && op->dev == dev)
			return op;
	}
	return NULL;
}

static void inflight_unstray(struct ibnbd_clt_op *op)
{
	op->stray = 0;
	atomic_dec(&op->dev->nr_strays);
}

unsigned int ibnbd_clt_inflight_replay(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_op *op;
	unsigned int left = 0;
	u32 slot = 0;
	int err;

	while ((op = inflight_next_stray(dev, &slot))) {
		inflight_readdress(op);
		inflight_unstray(op);
		err = ibtrs_clt_submit(dev->clt, &op->io, NULL);
		if (!err)
			continue;
		if (err == -ENOTCONN || err == -EAGAIN) {
			atomic_inc(&dev->nr_strays);
			op->stray = 1;
			left++;
		} else {
			ibnbd_clt_queue_end(op, -EIO);
		}
	}
	return left + ibtrs_clt_replay(dev->clt, inflight_match_readdress, dev);
}

bool ibnbd_clt_inflight_unknown(struct ibnbd_clt_dev *dev)
{
	struct ibnbd_clt_op *op;
	u32 slot = 0;

	while ((op = inflight_next_stray(dev, &slot)))
		if (le32_to_cpu(op->hdr->device_id) == dev->device_id)
			return true;
	return false;
}

/*
 * Ends what is parked or strayed and matches. Strays were answered, so the server cannot execute
 * them any more; what of the others it may still execute is noted.
 */
static void inflight_end(struct ibnbd_clt_dev *dev, ibtrs_clt_match_fn match, void *arg)
{
	struct ibnbd_clt_op *op;
	enum ibnbd_given_up up;
	u32 slot = 0;

	while ((op = inflight_next_stray(dev, &slot))) {
		if (!match(&op->io, arg))
			continue;
		inflight_unstray(op);
		op->io.done(&op->io, -ECONNABORTED);
	}
	static_assert(IBNBD_GIVEN_UP_WRITES == (int)IBTRS_AT_LARGE_WRITES);
	up = (enum ibnbd_given_up)ibtrs_clt_abort(dev->clt, match, arg, -ECONNABORTED);
	if (up > dev->at_large.given_up)
		WRITE_ONCE(dev->at_large.given_up, up);
}

/* Does a request that is in flight, parked or strayed match? */
static bool inflight_any(struct ibnbd_clt_dev *dev, ibtrs_clt_match_fn match, void *arg)
{
	struct ibnbd_clt_op *op;
	u32 slot = 0;

	lockdep_assert_held(&dev->lock);
	if (ibtrs_clt_any(dev->clt, match, arg))
		return true;
	while ((op = inflight_next_stray(dev, &slot)))
		if (match(&op->io, arg))
			return true;
	return false;
}

bool ibnbd_clt_inflight_abort(struct ibnbd_clt_dev *dev)
{
	inflight_end(dev, inflight_match, dev);
	return inflight_any(dev, inflight_match, dev);
}

void ibnbd_clt_inflight_abort_larger(struct ibnbd_clt_dev *dev, u32 max_bytes)
{
	struct inflight_ask m = { .dev = dev, .limit = max_bytes };

	inflight_end(dev, inflight_match_larger, &m);
}

static bool inflight_match_failfast(struct ibtrs_clt_io *io, void *dev)
{
	return inflight_match(io, dev) &&
	       ibnbd_clt_queue_lets_go(READ_ONCE(container_of(io, struct ibnbd_clt_op, io)->rq));
}

void ibnbd_clt_inflight_let_go(struct ibnbd_clt_dev *dev)
{
	inflight_end(dev, inflight_match_failfast, dev);
}

bool ibnbd_clt_inflight_posted(struct ibnbd_clt_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	return ibtrs_clt_posted(dev->clt, inflight_match, dev);
}

bool ibnbd_clt_inflight_has_writes(struct ibnbd_clt_dev *dev)
{
	return inflight_any(dev, inflight_match_write, dev);
}

static bool inflight_match_overdue(struct ibtrs_clt_io *io, void *arg)
{
	struct inflight_ask *m = arg;

	if (!inflight_match(io, m->dev) ||
	    !ibnbd_clt_queue_is_overdue(container_of(io, struct ibnbd_clt_op, io)) ||
	    !inflight_stay(io, m->dev))
		return false;
	m->found++;
	return true;
}

unsigned int ibnbd_clt_inflight_break_overdue(struct ibnbd_clt_dev *dev, const char *why)
{
	struct inflight_ask m = { .dev = dev };

	lockdep_assert_held(&dev->lock);
	ibtrs_clt_break(dev->clt, inflight_match_overdue, &m, why);
	return m.found;
}

static bool inflight_match_held(struct ibtrs_clt_io *io, void *arg)
{
	struct ibnbd_clt_op *op = container_of(io, struct ibnbd_clt_op, io);
	struct inflight_ask *m = arg;
	unsigned long held = jiffies - m->dev->held_since, waited;
	u64 came;

	if (!inflight_match(io, m->dev))
		return false;
	if (READ_ONCE(io->losses)) {
		waited = (u32)jiffies - READ_ONCE(io->lost_at);
	} else {
		/*
		 * start_time_ns is 0 if the block layer does not record it. A request that came
		 * after the last resume has not been held at all.
		 */
		came = op->rq->start_time_ns;
		if (!came || came >= m->dev->resumed_ns)
			return false;
		waited = nsecs_to_jiffies(m->now_ns - came);
		waited = min(waited, held);
	}
	m->found = max_t(u64, m->found, waited);
	return false;
}

unsigned long ibnbd_clt_inflight_held_since(struct ibnbd_clt_dev *dev)
{
	struct inflight_ask m = { .dev = dev, .now_ns = ktime_get_ns() };

	lockdep_assert_held(&dev->lock);
	ibtrs_clt_any(dev->clt, inflight_match_held, &m);
	return jiffies - (unsigned long)m.found;
}

static bool inflight_match_oldest(struct ibtrs_clt_io *io, void *arg)
{
	struct ibnbd_clt_op *op = container_of(io, struct ibnbd_clt_op, io);
	struct inflight_ask *m = arg;
	u64 came;

	if (!inflight_match(io, m->dev))
		return false;
	came = READ_ONCE(op->rq)->start_time_ns;
	/* Without the block layer's records: since it was sent last. */
	if (!came)
		came = m->now_ns - jiffies_to_nsecs((u32)jiffies - READ_ONCE(op->start));
	if (came < m->now_ns)
		m->found = max(m->found, m->now_ns - came);
	return false;
}

u64 ibnbd_clt_inflight_oldest_ms(struct ibnbd_clt_dev *dev)
{
	struct inflight_ask m = { .dev = dev, .now_ns = ktime_get_ns() };

	inflight_any(dev, inflight_match_oldest, &m);
	return div_u64(m.found, NSEC_PER_MSEC);
}

void ibnbd_clt_inflight_break(struct ibnbd_clt_dev *dev, unsigned int seconds, const char *why)
{
	struct inflight_ask m = { .dev = dev, .limit = seconds * HZ };

	if (seconds)
		ibtrs_clt_break(dev->clt, inflight_match_slow, &m, why);
	else
		ibtrs_clt_break(dev->clt, inflight_match_for_good, dev, why);
}
