// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ops: from the arrival of a request to the moment when its slot is free again.
 *
 * rx.c hands over a slot and an offset, both in range. The headers in the chunk are copied once
 * into private memory, decoded there, and never read in the chunk again (E-18). Then this file
 * decides under the slot's lock, once per request: is the op of this path and slot idle (E-13), and
 * may the session's slot execute the request (fence, protocol 8.2)? Each slot of a session has its
 * own lock. Only code that begins, ends or lets go a request of that slot takes it, so the lock
 * usually costs one atomic instruction.
 *
 * A slot parks at most one request: a newer one replaces it, and the replaced one is answered as
 * stale. A parked request runs from a work item, because the earlier op may end in an interrupt,
 * and it runs only if its path is still connected (law L7).
 *
 * An op ends only in ibtrs_srv_op_release(): right before its reply is posted (reply.c), or without
 * a reply when its path is closing. If the peer broke the protocol, the path is closed, and
 * path_run.c waits until no op is busy. In one case an op leaves its slot before it ends: when its
 * path is closing and the client has given up what the op is for (ibtrs_srv_op_let_go()).
 */
#include <linux/slab.h>
#include "ibtrs/server/debug.h"
#include "ibtrs/server/op.h"
#include "ibtrs/server/trace.h"

/* ---- memory ------------------------------------------------------------- */

static void op_parked_work(struct work_struct *work);

static void op_init(struct ibtrs_srv_path *path, u32 slot)
{
	struct ibtrs_srv_opx *x = ibtrs_srv_op_at(path, slot);

	x->op.session = path->session;
	x->op.hdr = x->hdr;
	x->op.data = path->chunks->mem[slot];
	x->op.priv = x->priv;
	x->path = path;
	x->slot = slot;
	x->dma = path->mrs.dma[slot];
	if (path->limits.new_rkey)
		x->mr = path->mrs.mr[slot];
	x->inv_cqe.done = ibtrs_srv_reply_inv_done;
	INIT_WORK(&x->work, op_parked_work);
}

int ibtrs_srv_op_alloc(struct ibtrs_srv_path *path)
{
	u32 slot, nr = path->limits.queue_depth;

	path->op_stride =
		ALIGN(sizeof(struct ibtrs_srv_opx) + ibtrs_srv.ops->op_priv_size, SMP_CACHE_BYTES);
	path->ops = kvzalloc_node(array_size(nr, path->op_stride), GFP_KERNEL, path->dev->node);
	if (!path->ops)
		return -ENOMEM;
	for (slot = 0; slot < nr; slot++)
		op_init(path, slot);
	return 0;
}

/* ---- the end ------------------------------------------------------------ */

/*
 * The slot's lock is held. @x leaves its slot. Returns the op that was parked there, or NULL;
 * *@run: that op runs now, and the slot stays running.
 */
static struct ibtrs_srv_opx *op_leave(struct ibtrs_srv_opx *x, bool *run)
{
	struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);
	struct ibtrs_srv_opx *next = s->parked;

	if (!x->admitted)
		return NULL;
	x->admitted = false;
	s->parked = NULL;
	*run = ibtrs_fence_end(&s->fence, next && next->path->limits.fence, next,
			       next ? next->token : 0,
			       next && ibtrs_srv_path_up(next->path));
	if (*run)
		next->admitted = true;
	else if (next)
		next->err = ibtrs_fence_behind(&s->fence, next->path->limits.fence, next->token);
	return next;
}

/* Queues the work of @next, or answers it with @next->err. */
static noinline void op_next(struct ibtrs_srv_opx *next, bool run)
{
	if (run)
		queue_work(next->path->session->op_wq, &next->work);
	else
		ibtrs_srv_reply(next);
}

void ibtrs_srv_op_release(struct ibtrs_srv_opx *x)
{
	struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);
	struct ibtrs_srv_path *path = x->path;
	struct ibtrs_srv_opx *next;
	bool run = false;

	scoped_guard(spinlock_irqsave, &s->lock) {
		next = op_leave(x, &run);
		smp_store_release(&x->busy, false);	/* pairs with ibtrs_srv_chunk_trim() */
	}
	if (unlikely(!ibtrs_srv_path_up(path)))
		ibtrs_srv_path_op_ended(path);
	if (unlikely(next))
		op_next(next, run);
}

void ibtrs_srv_op_drop(struct ibtrs_srv_opx *x)
{
	guard(rcu)();
	ibtrs_srv_op_release(x);
}

bool ibtrs_srv_op_take(struct ibtrs_srv_opx *x)
{
	struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);

	guard(spinlock_irqsave)(&s->lock);
	if (unlikely(x->busy)) {
		ibtrs_srv_path_close(x->path,
				     "the client used a slot whose request was not answered");
		return false;
	}
	x->busy = true;
	return true;
}

void ibtrs_srv_op_let_go(struct ibtrs_srv_opx *x)
{
	struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);
	struct ibtrs_srv_opx *next;
	bool run = false;

	guard(rcu)();
	scoped_guard(spinlock_irq, &s->lock)
		next = op_leave(x, &run);
	if (next)
		op_next(next, run);
}

/* ---- the beginning ------------------------------------------------------ */

#ifdef IBTRS_TESTS
struct op_later {
	struct delayed_work work;
	struct ibtrs_srv_opx *x;
	void (*fn)(struct ibtrs_srv_opx *x);
};

static void op_later_work(struct work_struct *work)
{
	struct op_later *later = container_of(to_delayed_work(work), struct op_later, work);

	later->fn(later->x);
	kfree(later);
}

bool ibtrs_srv_op_later(struct ibtrs_srv_opx *x, void (*fn)(struct ibtrs_srv_opx *x), u32 ms)
{
	struct op_later *later = kmalloc(sizeof(*later), GFP_ATOMIC);

	if (!later)
		return false;
	INIT_DELAYED_WORK(&later->work, op_later_work);
	later->x = x;
	later->fn = fn;
	return queue_delayed_work(x->path->session->op_wq, &later->work, msecs_to_jiffies(ms));
}
#endif

static void op_request(struct ibtrs_srv_opx *x)
{
	ibtrs_srv.ops->request(x->path->session->priv, &x->op);
}

/* True: the request was answered, or runs later. */
static noinline bool op_fault(struct ibtrs_srv_opx *x)
{
	struct ibtrs_fault f = ibtrs_fault_at(
		IBTRS_FAULT_SRV_REQUEST, ibtrs_srv_session_label(x->path->session), x->path->name);

	if (f.action == IBTRS_FAULT_DELAY)
		return ibtrs_srv_op_later(x, op_request, f.ms);
	if (f.action != IBTRS_FAULT_ERROR)
		return false;
	x->err = f.err;
	ibtrs_srv_reply(x);
	return true;
}

static void op_run(struct ibtrs_srv_opx *x)
{
	struct ibtrs_srv_path *path = x->path;

	trace_ibtrs_srv_request(x);
	ibtrs_srv_path_count(&path->stats, x->op.dir, x->off);
	if (ibtrs_fault_armed() && op_fault(x))
		return;
	op_request(x);
}

static void op_parked_work(struct work_struct *work)
{
	struct ibtrs_srv_opx *x = container_of(work, struct ibtrs_srv_opx, work);

	if (ibtrs_srv_path_up(x->path))
		op_run(x);
	else
		ibtrs_srv_op_drop(x);
}

/* The caller owns @x: it is busy, and no other context uses it. */
static void op_fill(struct ibtrs_srv_opx *x, struct ibtrs_srv_conn *conn, u32 off,
		    const struct ibtrs_io_hdr *h)
{
	x->conn = conn;
	x->off = off;
	x->err = 0;
	x->token = h->token;
	x->need_inval = h->need_inval;
	x->has_desc = h->has_desc;
	if (h->has_desc)
		x->desc = h->desc;
	x->op.dir = h->read ? IBTRS_READ : IBTRS_WRITE;
	x->op.service = !conn->c.cid;
	x->op.hdr_len = h->usr_len;
	x->op.data_len = h->data_len;
	if (likely(h->usr_len <= sizeof(x->hdr)))
		memcpy(x->hdr, x->op.data + h->data_len, h->usr_len);
}

/*
 * Makes @x busy and asks the slot's fence. False: @x is still busy with an earlier request. On PARK
 * and STALE @x is filled here; on PARK other contexts may already use it on return. *@old: the
 * request that @x replaced as the parked one; its answer is in its err.
 */
static bool op_admit(struct ibtrs_srv_opx *x, struct ibtrs_srv_conn *conn, u32 off,
		     const struct ibtrs_io_hdr *h, enum ibtrs_fence_verdict *verdict,
		     struct ibtrs_srv_opx **old)
{
	struct ibtrs_srv_slot *s = ibtrs_srv_op_slot(x);
	bool invalidated = conn->path->limits.new_rkey;

	guard(spinlock_irq)(&s->lock);
	if (unlikely(x->busy != invalidated))
		return false;
	x->busy = true;
	x->op.group = 0;
	/*
	 * A path that is closing executes nothing more: it may linger, and then its ops no longer
	 * hold their slots. The code that lets it linger checks its ops under this lock too.
	 */
	if (unlikely(!ibtrs_srv_path_up(conn->path)))
		*verdict = IBTRS_FENCE_STALE;
	else
		*verdict = ibtrs_srv_unfenced() ? IBTRS_FENCE_RUN :
			   ibtrs_fence_arrive(&s->fence, conn->path->limits.fence, h->token);
	if (likely(*verdict == IBTRS_FENCE_RUN)) {
		x->admitted = true;
	} else if (*verdict == IBTRS_FENCE_PARK) {
		op_fill(x, conn, off, h);
		*old = s->parked;
		if (*old)
			(*old)->err = ibtrs_fence_behind(&s->fence, (*old)->path->limits.fence,
							 (*old)->token);
		s->parked = x;
	} else if (*verdict == IBTRS_FENCE_STALE) {
		op_fill(x, conn, off, h);
		x->err = ibtrs_fence_behind(&s->fence, conn->path->limits.fence, h->token);
	}
	return true;
}

static noinline void op_refuse(struct ibtrs_srv_opx *x, struct ibtrs_srv_conn *conn, u32 off,
			       const struct ibtrs_io_hdr *h, int err, const char *why)
{
	struct ibtrs_srv_path *path = conn->path;

	if (!path->limits.new_rkey && !ibtrs_srv_op_take(x))
		return;
	pr_warn_ratelimited("session %s: %s: slot %u: request refused: %s (%d)\n",
			    ibtrs_srv_session_label(path->session), path->name, x->slot, why, err);
	op_fill(x, conn, off, h);
	x->err = err;
	ibtrs_srv_reply(x);
}

/*
 * The header cannot be understood: close the path. With always_invalidate the op is already busy,
 * so end it.
 */
static noinline void op_nonsense(struct ibtrs_srv_opx *x, struct ibtrs_srv_path *path,
				 const char *why)
{
	ibtrs_srv_path_close(path, why);
	if (path->limits.new_rkey)
		ibtrs_srv_op_drop(x);
}

/* Decodes the header and acts on it. */
static void op_decode(struct ibtrs_srv_opx *x, struct ibtrs_srv_conn *conn, u32 off)
{
	struct ibtrs_srv_path *path = conn->path;
	u32 len = min_t(u32, path->limits.chunk_size - off, IBTRS_IO_HDR_MAX);
	enum ibtrs_fence_verdict verdict;
	struct ibtrs_srv_opx *old = NULL;
	u8 raw[IBTRS_IO_HDR_MAX];
	struct ibtrs_io_hdr h;
	const char *why;
	int err;

	ib_dma_sync_single_for_cpu(path->dev->ib, x->dma, off + len, DMA_BIDIRECTIONAL);
	if (likely(len == sizeof(raw)))
		memcpy(raw, x->op.data + off, sizeof(raw));
	else
		memcpy(raw, x->op.data + off, len);
	err = ibtrs_msg_io_decode(raw, len, off, &path->limits, &h, &why);
	if (unlikely(err == -EPROTO)) {
		op_nonsense(x, path, why);
		return;
	}
	if (unlikely(!err && h.usr_len > IBTRS_SRV_USR_HDR_MAX)) {
		err = -EMSGSIZE;
		why = "its user header is longer than " __stringify(IBTRS_SRV_USR_HDR_MAX) " bytes";
	}
	if (unlikely(err)) {
		op_refuse(x, conn, off, &h, err, why);
		return;
	}
	if (unlikely(!op_admit(x, conn, off, &h, &verdict, &old))) {
		ibtrs_srv_path_close(path, "the client used a slot whose request was not answered");
		return;
	}
	if (unlikely(verdict == IBTRS_FENCE_PARK)) {
		if (old)
			op_next(old, false);
		return;
	}
	/*
	 * No client counts that far, so the request is not the client's own. The slot, which all
	 * paths of the session share, stays as it was.
	 */
	if (unlikely(verdict == IBTRS_FENCE_FAR)) {
		ibtrs_srv_path_close(path, "a request's number is far ahead of its slot's");
		ibtrs_srv_op_drop(x);
		return;
	}
	if (unlikely(verdict == IBTRS_FENCE_STALE)) {
		ibtrs_srv_reply(x);
		return;
	}
	op_fill(x, conn, off, &h);
	op_run(x);
}

void ibtrs_srv_op_begin(struct ibtrs_srv_conn *conn, u32 slot, u32 off)
{
	struct ibtrs_srv_opx *x = ibtrs_srv_op_at(conn->path, slot);

	if (likely(!conn->path->limits.new_rkey)) {
		op_decode(x, conn, off);
		return;
	}
	if (unlikely(!ibtrs_srv_op_take(x)))
		return;
	x->conn = conn;
	x->off = off;
	ibtrs_srv_reply_invalidate(x);
}

void ibtrs_srv_op_invalidated(struct ibtrs_srv_opx *x)
{
	op_decode(x, x->conn, x->off);
}
