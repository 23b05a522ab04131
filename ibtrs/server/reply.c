// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replies: the chains of work requests of protocol 5, and the queue of ops that wait for room in
 * the send queue.
 *
 * Called from any context by the code that ends an op (ibtrs_srv_op_reply()), and by completions. A
 * reply is posted only if the path is CONNECTED inside the RCU read section; on any other path the
 * op ends without a reply. So one grace period after the state has changed no task posts on the QP,
 * and the close work can drain it.
 *
 * Order: the op is released before its reply is posted, because the client may use the slot as soon
 * as it has the reply. If the send queue has no room then (rare, because sq_free is checked first),
 * the op is reclaimed and waits. A client that has used the slot in between did not wait for its
 * answer, and its path is closed.
 *
 * Room: core counts work requests and gives their room back in intervals; after that this file
 * looks at conn->wait. Code that adds an op to conn->wait checks for room afterwards. Code that
 * gives room back checks for waiting ops afterwards. Each side has a full barrier between its two
 * steps, so no op waits while there is room. Waiting ops are served in order.
 *
 * A send queue can die without a completion (soft-RoCE after a retransmitted REG_MR), and the
 * client cannot tell this from a slow disk. So if replies were posted and no send has completed for
 * an interval, a signalled zero-byte RDMA write is posted, which the peer's software never sees. If
 * it does not complete either, the path is closed.
 *
 * A chain's memory stays unchanged until the client sends the next request of the slot: the data is
 * in the chunk, and the 8 bytes of RKEY_RSP are in path->rkeys.
 */
#include "ibtrs/proto/imm.h"
#include "ibtrs/server/op.h"
#include "ibtrs/server/trace.h"

#define REPLY_PROBES	16	/* more lone requests in a row: replies are sent at once */

/* ---- building ----------------------------------------------------------- */

/*
 * Does the reply carry data? A read without data has no descriptor, and one with a descriptor has
 * data.
 */
static bool reply_has_data(const struct ibtrs_srv_opx *x)
{
	return x->op.dir == IBTRS_READ && x->has_desc && !x->err;
}

static u32 reply_imm(const struct ibtrs_srv_opx *x)
{
	return ibtrs_imm_rsp(x->need_inval ? IBTRS_IMM_IO_RSP_INV : IBTRS_IMM_IO_RSP, x->slot,
			     x->err);
}

/*
 * Gives the chunk back to the device: it sends the data from there, and receives the next request
 * there.
 */
static void reply_give_chunk(const struct ibtrs_srv_opx *x)
{
	ib_dma_sync_single_for_device(x->path->dev->ib, x->dma, x->off, DMA_BIDIRECTIONAL);
}

/* These two return the WR, in front of @next. */
static struct ib_send_wr *reply_data_wr(const struct ibtrs_srv_opx *x, struct ib_rdma_wr *wr,
					struct ib_sge *sge, struct ib_send_wr *next)
{
	const struct ibtrs_dev *dev = x->path->dev;

	sge->addr = x->dma;
	sge->length = x->op.data_len;
	sge->lkey = dev->pd->local_dma_lkey;
	wr->wr.next = next;
	wr->wr.wr_cqe = &x->conn->send_cqe;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = 1;
	wr->wr.opcode = IB_WR_RDMA_WRITE;
	wr->wr.send_flags = 0;
	wr->remote_addr = x->desc.addr;
	wr->rkey = x->desc.rkey;
	return &wr->wr;
}

static struct ib_send_wr *reply_inv_wr(const struct ibtrs_srv_opx *x, struct ib_send_wr *wr,
				       struct ib_send_wr *next)
{
	wr->next = next;
	wr->wr_cqe = &x->conn->send_cqe;
	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->opcode = IB_WR_SEND_WITH_INV;
	wr->send_flags = 0;
	wr->ex.invalidate_rkey = x->desc.rkey;
	return wr;
}

/* ---- posting ------------------------------------------------------------ */

/*
 * Return: 0: the op has ended; if its reply could not be posted, its path is closing. -EAGAIN: no
 * room, the caller still owns the op.
 */
static int reply_send(struct ibtrs_srv_opx *x, struct ib_send_wr *first, struct ib_send_wr *last,
		      int nr)
{
	struct ibtrs_srv_conn *conn = x->conn;
	int err;

	if (unlikely(atomic_read(&conn->c.sq_free) < nr))
		return -EAGAIN;
	last->next = NULL;
	trace_ibtrs_srv_reply(x);
	ibtrs_srv_op_release(x);
	if (READ_ONCE(conn->alone) > REPLY_PROBES)
		err = ibtrs_conn_send_now(&conn->c, first, last, nr, false);
	else
		err = ibtrs_conn_send(&conn->c, first, last, nr, false);
	if (likely(!err))
		return 0;
	if (err == -EAGAIN)
		return ibtrs_srv_op_take(x) ? -EAGAIN : 0;
	ibtrs_srv_path_close(conn->path, "a reply cannot be posted");
	return 0;
}

/*
 * Posts one message, two, or three. The data carry the immediate if no invalidation has to come
 * between them (decision 7).
 */
static int reply_plain(struct ibtrs_srv_opx *x)
{
	struct ib_rdma_wr data, imm;
	struct ib_send_wr inv, *first = &imm.wr;
	struct ib_sge sge;
	int nr = 1;

	reply_give_chunk(x);
	if (!x->need_inval && reply_has_data(x)) {
		reply_data_wr(x, &imm, &sge, NULL);
		imm.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		imm.wr.ex.imm_data = cpu_to_be32(reply_imm(x));
		return reply_send(x, &imm.wr, &imm.wr, 1);
	}
	imm = (struct ib_rdma_wr){
		.wr.wr_cqe	= &x->conn->send_cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data	= cpu_to_be32(reply_imm(x)),
	};
	if (x->need_inval) {
		first = reply_inv_wr(x, &inv, first);
		nr++;
		if (reply_has_data(x)) {
			first = reply_data_wr(x, &data, &sge, first);
			nr++;
		}
	}
	return reply_send(x, first, &imm.wr, nr);
}

/*
 * always_invalidate: the chunk gets a new key. The message that carries the immediate tells it to
 * the client in 8 bytes.
 */
static int reply_rekey(struct ibtrs_srv_opx *x)
{
	struct ibtrs_wire_rkey_rsp *rsp = x->path->rkeys.buf;
	struct ib_send_wr inv, imm, *first = &imm;
	struct ib_cqe *cqe = &x->conn->send_cqe;
	struct ib_sge data_sge, rsp_sge;
	struct ib_rdma_wr data;
	struct ib_reg_wr reg;
	int nr = 2;

	reply_give_chunk(x);
	ib_update_fast_reg_key(x->mr, ib_inc_rkey(x->mr->rkey));
	ibtrs_msg_rkey_encode(&rsp[x->slot], x->slot, x->mr->rkey);
	rsp_sge = (struct ib_sge){
		.addr	= x->path->rkeys.dma + x->slot * sizeof(*rsp),
		.length	= sizeof(*rsp),
		.lkey	= x->path->dev->pd->local_dma_lkey,
	};
	ib_dma_sync_single_for_device(x->path->dev->ib, rsp_sge.addr, sizeof(*rsp), DMA_TO_DEVICE);
	ibtrs_srv_chunk_reg_wr(&reg, x->mr, cqe);

	imm = (struct ib_send_wr){
		.wr_cqe		= cqe,
		.sg_list	= &rsp_sge,
		.num_sge	= 1,
		.opcode		= IB_WR_SEND_WITH_IMM,
		.ex.imm_data	= cpu_to_be32(reply_imm(x)),
	};
	/* From the end: an error invalidates first, a success registers first (protocol 5). */
	if (x->need_inval && !x->err)
		first = reply_inv_wr(x, &inv, first);
	reg.wr.next = first;
	first = &reg.wr;
	if (x->need_inval && x->err)
		first = reply_inv_wr(x, &inv, first);
	nr += x->need_inval;
	if (reply_has_data(x)) {
		first = reply_data_wr(x, &data, &data_sge, first);
		nr++;
	}
	return reply_send(x, first, &imm, nr);
}

static int reply_local_inv(struct ibtrs_srv_opx *x)
{
	struct ib_send_wr wr = {
		.wr_cqe			= &x->inv_cqe,
		.opcode			= IB_WR_LOCAL_INV,
		.ex.invalidate_rkey	= x->mr->rkey,
	};
	int err;

	err = ibtrs_conn_send(&x->conn->c, &wr, &wr, 1, true);
	if (likely(!err) || err == -EAGAIN)
		return err;
	ibtrs_srv_path_close(x->path, "the right to a chunk cannot be taken back");
	ibtrs_srv_op_release(x);
	return 0;
}

static int reply_post(struct ibtrs_srv_opx *x)
{
	if (likely(!x->path->limits.new_rkey))
		return reply_plain(x);
	return x->invalidating ? reply_local_inv(x) : reply_rekey(x);
}

/* ---- waiting for room --------------------------------------------------- */

static struct ibtrs_srv_opx *reply_pop(struct ibtrs_srv_conn *conn)
{
	struct ibtrs_srv_opx *x;

	guard(spinlock_irqsave)(&conn->wait_lock);
	x = list_first_entry_or_null(&conn->wait, struct ibtrs_srv_opx, wait);
	if (x)
		list_del(&x->wait);
	return x;
}

static bool reply_has_room(const struct ibtrs_srv_conn *conn)
{
	smp_mb();	/* pairs with the one in reply_credit() */
	return atomic_read(&conn->c.sq_free) >= IBTRS_SRV_REPLY_WR;
}

static void reply_flush(struct ibtrs_srv_conn *conn)
{
	struct ibtrs_srv_opx *x;

	while ((x = reply_pop(conn))) {
		if (!ibtrs_srv_path_up(conn->path)) {
			ibtrs_srv_op_release(x);
			continue;
		}
		if (reply_post(x) != -EAGAIN)
			continue;
		/* A client that has not waited for its answer has used the slot elsewhere. */
		if (unlikely(x->conn != conn)) {
			ibtrs_srv_path_close(conn->path, "a slot is used twice at a time");
			ibtrs_srv_op_release(x);
			continue;
		}
		scoped_guard(spinlock_irqsave, &conn->wait_lock)
			list_add(&x->wait, &conn->wait);
		if (!reply_has_room(conn))
			return;
	}
}

static noinline void reply_wait(struct ibtrs_srv_opx *x)
{
	struct ibtrs_srv_conn *conn = x->conn;

	scoped_guard(spinlock_irqsave, &conn->wait_lock)
		list_add_tail(&x->wait, &conn->wait);
	if (reply_has_room(conn))
		reply_flush(conn);
}

/* Called under RCU: the close work waits for a grace period before it drains the QP. */
static void reply_or_wait(struct ibtrs_srv_opx *x)
{
	if (unlikely(!ibtrs_srv_path_up(x->path)))
		ibtrs_srv_op_release(x);
	else if (unlikely(!list_empty_careful(&x->conn->wait)) ||
		 unlikely(reply_post(x) == -EAGAIN))
		reply_wait(x);
}

void ibtrs_srv_reply(struct ibtrs_srv_opx *x)
{
	guard(rcu)();
	x->invalidating = false;
	reply_or_wait(x);
}

void ibtrs_srv_reply_invalidate(struct ibtrs_srv_opx *x)
{
	guard(rcu)();
	x->invalidating = true;
	reply_or_wait(x);
}

void ibtrs_srv_reply_kick(struct ibtrs_srv_conn *conn)
{
	guard(rcu)();
	reply_flush(conn);
}

void ibtrs_srv_reply_drop(struct ibtrs_srv_conn *conn)
{
	struct ibtrs_srv_opx *x;

	while ((x = reply_pop(conn)))
		ibtrs_srv_op_release(x);
}

/* ---- completions -------------------------------------------------------- */

/* @nr work requests have completed: there is room for what waits. */
static void reply_credit(struct ibtrs_srv_conn *conn, u32 nr)
{
	ibtrs_probe_seen(&conn->probe);
	ibtrs_conn_credit(&conn->c, nr);
	smp_mb__after_atomic();	/* with the one in reply_has_room() */
	if (unlikely(!list_empty(&conn->wait)))
		ibtrs_srv_reply_kick(conn);
}

void ibtrs_srv_reply_check(struct ibtrs_srv_conn *conn)
{
	u64 out = max_t(int, conn->sq_size - atomic_read(&conn->c.sq_free), 0);
	u32 patience = ibtrs_sqwatch_patience(READ_ONCE(ibtrs_srv_params.hb_misses),
					      out * conn->path->limits.max_io_size);
	u32 posted = atomic_read(&conn->c.sq_posted);
	bool waits = READ_ONCE(conn->probe.out) || posted != conn->probed_at;
	const char *why;
	int err;

	/*
	 * While a request is handed to the user, no completion of this connection is handled: that
	 * none was seen says nothing about the send queue.
	 */
	err = ibtrs_probe_look(&conn->probe, &conn->c, waits, READ_ONCE(conn->serving), patience,
			       &why);
	if (err < 0)
		ibtrs_srv_path_close(conn->path, why);
	else if (err)
		conn->probed_at = posted;
}

void ibtrs_srv_reply_probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_conn *conn = container_of(wc->wr_cqe, struct ibtrs_srv_conn, probe.cqe);

	if (ibtrs_srv_path_failed(conn->path, wc))
		return;
	WRITE_ONCE(conn->probe.out, false);
	reply_credit(conn, 1);
}

void ibtrs_srv_reply_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_conn *conn = container_of(wc->wr_cqe, struct ibtrs_srv_conn, send_cqe);

	if (unlikely(ibtrs_srv_path_failed(conn->path, wc)))
		return;
	conn->after_send = wc == cq->wc;
	reply_credit(conn, conn->c.sig_every);
}

void ibtrs_srv_reply_inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_opx *x = container_of(wc->wr_cqe, struct ibtrs_srv_opx, inv_cqe);
	struct ibtrs_srv_conn *conn = x->conn;

	if (unlikely(ibtrs_srv_path_failed(conn->path, wc))) {
		ibtrs_srv_op_drop(x);
		return;
	}
	reply_credit(conn, 1);
	WRITE_ONCE(conn->serving, true);
	ibtrs_srv_op_invalidated(x);
	WRITE_ONCE(conn->serving, false);
}

/* True: the reply comes later, or never. */
static noinline bool reply_fault(struct ibtrs_srv_opx *x)
{
	struct ibtrs_fault f = ibtrs_fault_at(
		IBTRS_FAULT_SRV_REPLY, ibtrs_srv_session_label(x->path->session), x->path->name);

	switch (f.action) {
	case IBTRS_FAULT_DELAY:
		return ibtrs_srv_op_later(x, ibtrs_srv_reply, f.ms);
	case IBTRS_FAULT_DROP:
		ibtrs_srv_op_drop(x);
		return true;
	case IBTRS_FAULT_STUCK:
		WRITE_ONCE(x->conn->c.stuck, true);
		return false;
	case IBTRS_FAULT_ERROR:
		x->err = f.err;
		return false;
	default:
		return false;
	}
}

void ibtrs_srv_op_reply(struct ibtrs_srv_op *op, int err)
{
	struct ibtrs_srv_opx *x = container_of(op, struct ibtrs_srv_opx, op);

	/*
	 * A file of a network file system can return -ESTALE, too. On the wire that errno, and
	 * those of ibtrs_fence_is_behind(), mean that the request was not executed. Only the fence
	 * may say so; from the user such an answer would cost the client its path.
	 */
	x->err = unlikely(err == -ESTALE || ibtrs_fence_is_behind(err)) ? -EIO : err;
	if (ibtrs_fault_armed() && reply_fault(x))
		return;
	ibtrs_srv_reply(x);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_op_reply);

bool ibtrs_srv_op_answerable(const struct ibtrs_srv_op *op)
{
	return ibtrs_srv_path_up(container_of(op, struct ibtrs_srv_opx, op)->path);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_op_answerable);
