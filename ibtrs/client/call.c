// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs_clt_call(): one synchronous message in one of ibtrs' own slots. ibtrs_clt_call_io_begin()
 * and _end() are its two halves, for a caller that has several messages in flight.
 *
 * The answer arrives in the slot's bounce buffer; the data of a write lie at the end of the record.
 * The caller may leave before the answer comes (timeout, signal). Then the record keeps the slot
 * until the answer, or the drain of the path, ends the request. The last of the two owners, caller
 * and request, frees the record and the slot.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "ibtrs/client/session.h"

#define CALL_RETRY_MS	2

struct ibtrs_clt_call {
	struct ibtrs_clt_io io;
	struct scatterlist sg;
	struct ibtrs_clt *clt;
	struct completion done;
	refcount_t ref;
	unsigned long end;		/* jiffies */
	int err;
	/*
	 * Copy of the data that are sent, kept until the request has ended: a caller that has left
	 * may reuse its own buffer.
	 */
	u8 data[];
};

static void call_put(struct ibtrs_clt_call *call)
{
	if (!refcount_dec_and_test(&call->ref))
		return;
	ibtrs_clt_slot_put(&call->clt->slots, call->io.slot);
	kfree(call);
}

static void call_done(struct ibtrs_clt_io *io, int err)
{
	struct ibtrs_clt_call *call = container_of(io, struct ibtrs_clt_call, io);

	/* A server may answer with the number that says here that there was no answer. */
	if (!io->message && !io->losses && ibtrs_clt_call_unanswered(err))
		err = -EIO;
	call->err = err;
	complete(&call->done);
	call_put(call);
}

/* Jiffies left until @end, or 0. Waiters add 1, so that each wait checks at least once. */
static long call_left(unsigned long end)
{
	long left = end - jiffies;

	return left > 0 ? left : 0;
}

static int call_wait_slot(struct ibtrs_clt *clt, unsigned long end)
{
	long left;
	int slot;

	left = wait_event_killable_timeout(
		clt->slots.wait, (slot = ibtrs_clt_slot_get(&clt->slots, 0)) >= 0,
		call_left(end) + 1);
	if (slot >= 0)
		return slot;
	return left < 0 ? -EINTR : -ETIMEDOUT;
}

static int call_submit(struct ibtrs_clt_call *call)
{
	int err;

	for (;;) {
		err = ibtrs_clt_submit(call->clt, &call->io, NULL);
		if (err != -EAGAIN)
			return err;
		if (!call_left(call->end))
			return -ETIMEDOUT;
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(msecs_to_jiffies(CALL_RETRY_MS) ?: 1);
	}
}

/* A call with a slot. @more: see ibtrs_clt_call_io_begin(). */
static struct ibtrs_clt_call *call_new(struct ibtrs_clt *clt, size_t data_len,
				       unsigned int timeout_ms, bool more)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	struct ibtrs_clt_slots *s = &clt->slots;
	struct ibtrs_clt_call *call;
	int slot;

	slot = more ? ibtrs_clt_slot_get(s, DIV_ROUND_UP(s->depth - s->nr_user, 2)) :
		      call_wait_slot(clt, end);
	if (slot < 0)
		return ERR_PTR(slot);
	call = kzalloc(struct_size(call, data, data_len), GFP_NOIO);
	if (!call) {
		ibtrs_clt_slot_put(s, slot);
		return ERR_PTR(-ENOMEM);
	}
	call->clt = clt;
	call->io.slot = slot;
	call->io.done = call_done;
	call->end = end;
	init_completion(&call->done);
	refcount_set(&call->ref, 2);
	return call;
}

/* On failure the call is freed. */
static int call_send(struct ibtrs_clt_call *call, const void *hdr, size_t hdr_len)
{
	int err;

	memcpy(call->clt->slots.reqs[call->io.slot].hdr, hdr, hdr_len);
	call->io.usr_len = hdr_len;
	err = call_submit(call);
	if (err) {
		call_put(call);		/* the reference of call_done(), which will not run */
		call_put(call);
	}
	return err;
}

static int call_end(struct ibtrs_clt_call *call, void *reply, size_t reply_len)
{
	long left = wait_for_completion_killable_timeout(&call->done, call_left(call->end) + 1);
	int err;

	if (left > 0)
		err = call->err;
	else
		err = left ? -EINTR : -ETIMEDOUT;
	if (!err && reply_len)
		memcpy(reply, call->clt->slots.reqs[call->io.slot].bounce, reply_len);
	call_put(call);
	return err;
}

int ibtrs_clt_call(struct ibtrs_clt *clt, u32 gen, enum ibtrs_dir dir, const void *hdr,
		   size_t hdr_len, void *reply, size_t reply_len, unsigned int timeout_ms)
{
	struct ibtrs_clt_call *call;

	if (hdr_len > IBTRS_CLT_USR_HDR_MAX || reply_len > SZ_4K)
		return -EMSGSIZE;
	call = call_new(clt, 0, timeout_ms, false);
	if (IS_ERR(call))
		return PTR_ERR(call);
	call->io.gen = gen;
	call->io.dir = dir;
	call->io.message = true;
	call->io.len = reply_len;
	memset(clt->slots.reqs[call->io.slot].bounce, 0, reply_len);
	return call_send(call, hdr, hdr_len) ?: call_end(call, reply, reply_len);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_call);

struct ibtrs_clt_call *ibtrs_clt_call_io_begin(struct ibtrs_clt *clt, u32 gen, enum ibtrs_dir dir,
					       const void *hdr, size_t hdr_len, const void *data,
					       size_t data_len, unsigned int timeout_ms, bool more)
{
	struct ibtrs_clt_call *call;
	int err;

	if (hdr_len > IBTRS_CLT_USR_HDR_MAX || data_len > IBTRS_CLT_CALL_DATA_MAX)
		return ERR_PTR(-EMSGSIZE);
	call = call_new(clt, data_len, timeout_ms, more);
	if (IS_ERR(call))
		return call;
	call->io.gen = gen;
	call->io.dir = dir;
	call->io.len = data_len;
	if (data_len) {
		memcpy(call->data, data, data_len);
		sg_init_one(&call->sg, call->data, data_len);
		call->io.sgl = &call->sg;
		call->io.nents = 1;
	}
	err = call_send(call, hdr, hdr_len);
	return err ? ERR_PTR(err) : call;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_call_io_begin);

int ibtrs_clt_call_io_end(struct ibtrs_clt_call *call)
{
	return call_end(call, NULL, 0);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_call_io_end);
