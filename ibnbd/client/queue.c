// SPDX-License-Identifier: GPL-2.0-only
/*
 * The path of a request, by the first rule of docs/design.md 8.2: queue_rq and done. inflight.c
 * acts on the requests under way.
 *
 * Locking: what queue_rq reads of a device (device_id, version, flags) changes only while the queue
 * is quiesced; the gate is read once. A record is owned by queue_rq until the submit, by ibtrs
 * until done(), by the block layer after blk_mq_complete_request(). A stray (see below) is owned by
 * the holder of the device's lock.
 *
 * Failure: only a request that was never posted is given back with BLK_STS_RESOURCE (L1). A posted
 * request ends by the server's answer or by ibnbd_clt_inflight_abort(). When the server answers
 * that it does not know the device (after a forced close, or a restart between two requests), the
 * request *strays*: it keeps its slot and waits until the device is opened again. A request strays
 * three times at most, then it ends.
 *
 * Data is sent directly from the pages of the page cache. When a page changes while it is being
 * written, a repetition of the request may carry newer bytes than the first copy. The page is then
 * dirty again and will be written again, so nothing is lost; and the link's checksum covers each
 * packet as it is sent. So stable pages are required only where the server says that its backing
 * store checks the data or copies it twice (identity flag STABLE_PAGES).
 */
#include <linux/jiffies.h>
#include <linux/mm.h>
#include "ibnbd/client/session.h"
#include "ibnbd/client/trace.h"
#include "ibnbd/client/unflushed.h"
#include "ibnbd/proto/msg_io.h"

#define QUEUE_STRAYS_MAX	3
#define QUEUE_WANT_S		10	/* how long refused I/O is likely to be retried */

/* Where a request stores the pointer to its record, from queue_rq on. */
static struct ibnbd_clt_op **queue_op_of(struct request *rq)
{
	return blk_mq_rq_to_pdu(rq);
}

/* The slot is freed before the tag, so there are never more tags in use than slots. */
static void queue_give_slot(struct ibnbd_clt_op *op)
{
	ibtrs_clt_slot_give(op->dev->clt, op->io.slot);
}

bool ibnbd_clt_queue_lets_go(const struct request *rq)
{
	return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_FLUSH ||
	       rq->cmd_flags & REQ_FAILFAST_DEV;
}

/*
 * State FAILFAST: the mirror goes on without this leg. A read is repeated on another leg, whether
 * or not it says FAILFAST. The error of a write makes the mirror drop the leg. A flush ends well:
 * the other leg flushes, and from Linux 6.13 on md would hand the error to the application. The
 * flush cannot wait for the drop, because the block layer sends md's next write, whose error md
 * needs, only behind the flush. The account of unflushed writes takes no notice of it. Return: an
 * errno.
 */
static int queue_let_go(struct ibnbd_clt_dev *dev, const struct request *rq)
{
	if (req_op(rq) == REQ_OP_FLUSH)
		return 0;
	WRITE_ONCE(dev->in_sync, false);
	return -ENOLINK;
}

/* The request waits on the block layer's list until dev_start() runs that list. */
static blk_status_t queue_failfast(struct ibnbd_clt_dev *dev, struct request *rq)
{
	if (!ibnbd_clt_queue_lets_go(rq)) {
		blk_mq_requeue_request(rq, false);
		return BLK_STS_OK;
	}
	blk_mq_start_request(rq);
	blk_mq_end_request(rq, errno_to_blk_status(queue_let_go(dev, rq)));
	return BLK_STS_OK;
}

/* The gate is not open. True: send the request nevertheless. False: return *@status for it. */
static noinline bool queue_gate(struct ibnbd_clt_dev *dev, struct request *rq,
				enum ibnbd_clt_gate gate, blk_status_t *status)
{
	switch (gate) {
	case IBNBD_CLT_GATE_HOLD:
		*status = BLK_STS_RESOURCE;
		return false;
	case IBNBD_CLT_GATE_FAILFAST:
		*status = queue_failfast(dev, rq);
		return false;
	case IBNBD_CLT_GATE_NO_WRITES:
		*status = BLK_STS_IOERR;
		return req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_FLUSH;
	default:
		ibtrs_clt_want(dev->clt, QUEUE_WANT_S);
		*status = BLK_STS_IOERR;
		return false;
	}
}

/* Sets operation, size and direction. False: an operation that we did not announce. */
static __always_inline bool queue_translate(struct request *rq, struct ibnbd_io *m,
					    struct ibtrs_clt_io *io)
{
	static const u8 ops[] = {
		[REQ_OP_READ]		= IBNBD_OP_READ,
		[REQ_OP_WRITE]		= IBNBD_OP_WRITE,
		[REQ_OP_FLUSH]		= IBNBD_OP_FLUSH,
		[REQ_OP_DISCARD]	= IBNBD_OP_DISCARD,
		[REQ_OP_SECURE_ERASE]	= IBNBD_OP_SECURE_ERASE,
		[REQ_OP_WRITE_ZEROES]	= IBNBD_OP_WRITE_ZEROES,
	};
	u32 op = (__force u32)req_op(rq);

	if (op >= ARRAY_SIZE(ops) || (!ops[op] && req_op(rq) != REQ_OP_READ))
		return false;
	m->op = ops[op];
	m->bytes = m->op == IBNBD_OP_FLUSH ? 0 : blk_rq_bytes(rq);
	io->dir = ibnbd_msg_op_reads(m->op) ? IBTRS_READ : IBTRS_WRITE;
	io->len = ibnbd_msg_io_data_len(m->op, m->bytes);
	return true;
}

/* For servers that do not know PREFLUSH, FUA is sent in its place (protocol 10.1). */
static __always_inline u32 queue_flags(const struct request *rq, u32 known)
{
	u32 cf = (__force u32)rq->cmd_flags, flags = 0;

	if (cf & (__force u32)REQ_SYNC)
		flags |= IBNBD_F_SYNC;
	if (cf & (__force u32)(REQ_FUA | REQ_PREFLUSH))
		flags |= IBNBD_F_FUA;
	if (cf & (__force u32)REQ_PREFLUSH)
		flags |= IBNBD_F_PREFLUSH;
	if (cf & (__force u32)REQ_NOUNMAP)
		flags |= IBNBD_F_NOUNMAP;
	return flags & known;
}

/* The request has its record and its slot. Return: as queue_send(). */
static __always_inline blk_status_t queue_submit(struct request *rq, struct ibnbd_clt_op *op,
						 struct ibtrs_clt_plug *plug)
{
	struct blk_mq_hw_ctx *hctx = rq->mq_hctx;
	struct ibnbd_clt_dev *dev = rq->q->queuedata;
	struct ibnbd_io m;
	int err;

	if (unlikely(!queue_translate(rq, &m, &op->io)))
		return BLK_STS_NOTSUPP;
	m.device_id = dev->device_id;
	m.sector = blk_rq_pos(rq);
	m.flags = queue_flags(rq, dev->io_flags);
	m.prio = req_get_ioprio(rq);
	op->start = (u32)jiffies;
	op->status = BLK_STS_OK;
	op->tries = 0;
	op->polled = hctx->type == HCTX_TYPE_POLL;
	op->io.poll = 0;
	if (op->polled && rq->cmd_flags & REQ_POLLED)
		op->io.poll = hctx->queue_num - dev->nr_irq + 1;
	ibnbd_clt_unflushed_send(dev, op, m.op, rq->cmd_flags & REQ_FUA);
	op->io.gen = dev->link_gen;
	smp_store_release(&op->io.stay, false);		/* pairs with inflight_stay() */
	op->io.losses = 0;
	op->io.usr_len = ibnbd_msg_io_encode(op->hdr, dev->version, &m);

	blk_mq_start_request(rq);
	op->io.nents = op->io.len ? blk_rq_map_sg(rq, op->io.sgl) : 0;
	err = ibtrs_clt_submit(dev->clt, &op->io, plug);
	if (likely(!err))
		return BLK_STS_OK;
	/* The link is going down and its news is on the way; or the send queue is full. */
	if (err == -ENOTCONN || err == -EAGAIN)
		return BLK_STS_RESOURCE;
	trace_ibnbd_clt_error(dev, op, err);
	return BLK_STS_IOERR;
}

/*
 * BLK_STS_OK: ibtrs owns the request, or it waits for its leg, or it has ended. Any other status:
 * the request was not posted and the block layer still owns it; blk_mq_request_started() tells
 * whether it was started.
 */
static __always_inline blk_status_t queue_send(struct request *rq, struct ibtrs_clt_plug *plug)
{
	struct ibnbd_clt_dev *dev = rq->q->queuedata;
	u8 gate = READ_ONCE(dev->gate);
	struct ibnbd_clt_op *op;
	blk_status_t status;
	int slot;

	if (unlikely(gate != IBNBD_CLT_GATE_OPEN) && !queue_gate(dev, rq, gate, &status))
		return status;
	slot = ibtrs_clt_slot_take(dev->clt);
	if (unlikely(slot < 0))
		return BLK_STS_RESOURCE;
	op = ibnbd_clt_op(dev->ops, dev->op_stride, slot);
	op->dev = dev;
	WRITE_ONCE(op->rq, rq);
	*queue_op_of(rq) = op;
	status = queue_submit(rq, op, plug);
	if (unlikely(status != BLK_STS_OK))
		queue_give_slot(op);
	return status;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	return queue_send(bd->rq, NULL);
}

/*
 * Sends a list of plugged requests with one doorbell. Kernels before 6.7 do not call this function,
 * because our tags are shared. A request that cannot be sent stays on the list for queue_rq. If it
 * was started already, it is requeued (it was never posted, L1), or ended if the error is final.
 */
DEF_MQ_QUEUE_RQS(queue_rqs, list)
{
	cx_rq_list_t left = CX_RQ_LIST_INIT;
	struct ibtrs_clt_plug plug;
	struct request *rq;
	blk_status_t status;

	ibtrs_clt_plug(&plug);
	while ((rq = cx_rq_list_pop(list))) {
		status = queue_send(rq, &plug);
		if (likely(status == BLK_STS_OK))
			continue;
		if (!blk_mq_request_started(rq))
			cx_rq_list_add_tail(&left, rq);
		else if (status == BLK_STS_RESOURCE)
			blk_mq_requeue_request(rq, true);
		else
			blk_mq_end_request(rq, status);
	}
	ibtrs_clt_unplug(&plug);
	*list = left;
}

/* Ends a request in a context where the block layer takes it back at once. */
static void queue_finish(struct ibnbd_clt_op *op)
{
	struct request *rq = op->rq;
	blk_status_t status = op->status;

	queue_give_slot(op);
	blk_mq_end_request(rq, status);
}

/*
 * May the request wait until its device is opened again? If true, the device owns it from then on.
 */
static noinline bool queue_stray(struct ibnbd_clt_op *op)
{
	struct ibnbd_clt_dev *dev = op->dev;

	if (READ_ONCE(dev->gate) == IBNBD_CLT_GATE_FAIL || op->tries >= QUEUE_STRAYS_MAX)
		return false;
	op->tries++;
	atomic_inc(&dev->nr_strays);
	/*
	 * Pairs with inflight_next_stray(): whoever sees stray also sees the contents of the
	 * record.
	 */
	smp_store_release(&op->stray, 1);
	ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_STRAY);
	return true;
}

/*
 * A flush or a FUA write failed: writes that no flush has covered may be lost. If all of them are
 * kept, the block layer does not hear of the failure: the writes are sent again, and then this
 * request, once. Otherwise the block layer gets the error. In both cases the device is opened again
 * and the loss is judged. True: the device owns the request.
 */
static noinline bool queue_flush_failed(struct ibnbd_clt_op *op)
{
	if (!ibnbd_clt_unflushed_failed(op))
		return false;
	ibnbd_clt_dev_tell(op->dev, IBNBD_CLT_NEWS_FLUSH);
	return !op->tries && ibnbd_clt_kept_whole(op->dev) && queue_stray(op);
}

void ibnbd_clt_queue_end(struct ibnbd_clt_op *op, int err)
{
	if (unlikely(err)) {
		trace_ibnbd_clt_error(op->dev, op, err);
		op->status = errno_to_blk_status(err);
		/*
		 * The server would refuse every other request of this kind, too: the block layer
		 * sends none until the disk is opened again.
		 */
		if (err == -EOPNOTSUPP && cx_disable_op(op->rq))
			cmpxchg(&op->dev->limits, IBNBD_CLT_LIMITS_FIT, IBNBD_CLT_LIMITS_REFUSED);
	}
	if (unlikely(op->polled)) {
		/*
		 * Called by a poller, or by the sender that found the answer at once: complete the
		 * request here, never by an interrupt on another CPU.
		 */
		if (!in_interrupt())
			queue_finish(op);
		else if (llist_add(&op->late, &op->dev->sess->late))
			kblockd_schedule_work(&op->dev->sess->late_work);
		return;
	}
	blk_mq_complete_request(op->rq);
}

void ibnbd_clt_queue_late(struct work_struct *work)
{
	struct ibnbd_clt_session *s = container_of(work, struct ibnbd_clt_session, late_work);
	struct ibnbd_clt_op *op, *next;

	/*
	 * Not blk_mq_complete_request(): it could send the request to the softirq of another CPU.
	 */
	llist_for_each_entry_safe(op, next, llist_del_all(&s->late), late)
		queue_finish(op);
}

static void queue_done(struct ibtrs_clt_io *io, int err)
{
	struct ibnbd_clt_op *op = container_of(io, struct ibnbd_clt_op, io);

	/* No disk has answered: a flush of these has not failed, it has covered nothing. */
	if (unlikely(err == -ENOTCONN || err == -ECONNABORTED)) {
		if (err == -ECONNABORTED && READ_ONCE(op->dev->gate) == IBNBD_CLT_GATE_FAILFAST)
			ibnbd_clt_queue_end(op, queue_let_go(op->dev, op->rq));
		else if (err == -ECONNABORTED || !queue_stray(op))
			ibnbd_clt_queue_end(op, -EIO);
		return;
	}
	if (likely(!err))
		ibnbd_clt_unflushed_done(op);
	else if (queue_flush_failed(op))
		return;
	ibnbd_clt_queue_end(op, err);
}

static void queue_complete(struct request *rq)
{
	queue_finish(*queue_op_of(rq));
}

/*
 * Several paths, one after the other, lost the request. A slow disk does not explain this, so hold=
 * limits the time, as it limits the time without any path. With hold=0 only the time without a path
 * is limited; otherwise no request could change its path.
 */
bool ibnbd_clt_queue_is_overdue(const struct ibnbd_clt_op *op)
{
	int hold = READ_ONCE(op->dev->map.hold);

	return READ_ONCE(op->io.losses) > 1 && hold > 0 && hold < INT_MAX / HZ &&
	       (u32)jiffies - READ_ONCE(op->io.lost_at) >= (u32)hold * HZ;
}

/*
 * A slow disk is no fault, and a single request is never taken from its path: the timer is only
 * restarted (L1). If the administrator set io_timeout=, the path that carries the request is broken
 * (L19).
 */
DEF_MQ_TIMEOUT(queue_timeout, rq)
{
	struct ibnbd_clt_dev *dev = rq->q->queuedata;
	struct ibnbd_clt_op *op = *queue_op_of(rq);
	u32 limit = READ_ONCE(dev->map.io_timeout);

	/* The request may be ending now, and another request may already have its slot. */
	if (READ_ONCE(op->rq) != rq)
		return BLK_EH_RESET_TIMER;
	if (limit && (u32)jiffies - READ_ONCE(op->start) >= limit * HZ)
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_SLOW);
	if (ibnbd_clt_queue_is_overdue(op))
		ibnbd_clt_dev_tell(dev, IBNBD_CLT_NEWS_OVERDUE);
	return BLK_EH_RESET_TIMER;
}

DEF_MQ_POLL(queue_poll, hctx)
{
	struct ibnbd_clt_dev *dev = hctx->queue->queuedata;

	return ibtrs_clt_poll(dev->clt, hctx->queue_num - dev->nr_irq);
}

DEF_MQ_MAP_QUEUES(queue_map, set)
{
	struct ibnbd_clt_session *s = set->driver_data;
	unsigned int poll = set->nr_maps > HCTX_TYPE_POLL ? s->attrs.nr_poll_conns : 0;
	unsigned int irq = set->nr_hw_queues - poll;

	set->map[HCTX_TYPE_DEFAULT].nr_queues = irq;
	set->map[HCTX_TYPE_DEFAULT].queue_offset = 0;
	blk_mq_map_queues(&set->map[HCTX_TYPE_DEFAULT]);
	if (poll) {
		set->map[HCTX_TYPE_READ].nr_queues = 0;
		set->map[HCTX_TYPE_POLL].nr_queues = poll;
		set->map[HCTX_TYPE_POLL].queue_offset = irq;
		blk_mq_map_queues(&set->map[HCTX_TYPE_POLL]);
	}
	MQ_MAP_QUEUES_END
}

const struct blk_mq_ops ibnbd_clt_queue_ops = {
	.queue_rq	= queue_rq,
	MQ_QUEUE_RQS(queue_rqs)
	.complete	= queue_complete,
	.timeout	= queue_timeout,
	.poll		= queue_poll,
	.map_queues	= queue_map,
};

int ibnbd_clt_queue_alloc_ops(struct ibnbd_clt_session *s)
{
	struct ibnbd_clt_op *op;
	u32 i, nr = s->attrs.nr_slots;

	s->op_stride = ALIGN(sizeof(*op) + s->attrs.max_segments * sizeof(struct scatterlist),
			     SMP_CACHE_BYTES);
	s->ops = kvzalloc_node(array_size(nr, s->op_stride), GFP_KERNEL, s->attrs.numa_node);
	if (!s->ops)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		op = ibnbd_clt_op(s->ops, s->op_stride, i);
		op->hdr = ibtrs_clt_hdr(s->clt, i);
		op->io.slot = i;
		op->io.sgl = (struct scatterlist *)(op + 1);
		op->io.done = queue_done;
		sg_init_table(op->io.sgl, s->attrs.max_segments);
	}
	return 0;
}
