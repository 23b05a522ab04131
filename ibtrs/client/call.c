// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs_clt_call(): one synchronous message with a slot of ibtrs' own.
 *
 * The answer lands in the slot's bounce buffer. When the caller leaves before it comes (timeout,
 * signal), the record stays with the slot until the answer, or the drain of its path, ends it: the
 * last of the two owners frees it and gives the slot back.
 */
#include <linux/slab.h>
#include "ibtrs/client/session.h"

#define CALL_RETRY_MS	2

struct ibtrs_clt_call {
	struct ibtrs_clt_io io;
	struct ibtrs_clt *clt;
	struct completion done;
	refcount_t ref;
	int err;
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

	call->err = err;
	complete(&call->done);
	call_put(call);
}

/* Time left until @end, at least 1 so that a wait looks once; 0 when it is over. */
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
		clt->slots.wait, (slot = ibtrs_clt_slot_get(&clt->slots)) >= 0, call_left(end) + 1);
	if (slot >= 0)
		return slot;
	return left < 0 ? -EINTR : -ETIMEDOUT;
}

static int call_submit(struct ibtrs_clt *clt, struct ibtrs_clt_call *call, unsigned long end)
{
	int err;

	for (;;) {
		err = ibtrs_clt_submit(clt, &call->io);
		if (err != -EAGAIN)
			return err;
		if (!call_left(end))
			return -ETIMEDOUT;
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(msecs_to_jiffies(CALL_RETRY_MS) ?: 1);
	}
}

int ibtrs_clt_call(struct ibtrs_clt *clt, enum ibtrs_dir dir, const void *hdr, size_t hdr_len,
		   void *reply, size_t reply_len, unsigned int timeout_ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	struct ibtrs_clt_call *call;
	struct ibtrs_clt_req *req;
	long left;
	int slot, err;

	if (hdr_len > IBTRS_CLT_USR_HDR_MAX || reply_len > SZ_4K)
		return -EMSGSIZE;
	slot = call_wait_slot(clt, end);
	if (slot < 0)
		return slot;
	call = kzalloc(sizeof(*call), GFP_NOIO);
	if (!call) {
		ibtrs_clt_slot_put(&clt->slots, slot);
		return -ENOMEM;
	}
	call->clt = clt;
	call->io.slot = slot;
	call->io.dir = dir;
	call->io.usr_len = hdr_len;
	call->io.len = reply_len;
	call->io.done = call_done;
	init_completion(&call->done);
	refcount_set(&call->ref, 2);
	req = &clt->slots.reqs[slot];
	memcpy(req->hdr, hdr, hdr_len);
	memset(req->bounce, 0, reply_len);

	err = call_submit(clt, call, end);
	if (err) {
		call_put(call);		/* the share of call_done() */
		goto out;
	}
	left = wait_for_completion_killable_timeout(&call->done, call_left(end) + 1);
	if (left <= 0) {
		err = left ? -EINTR : -ETIMEDOUT;
		goto out;
	}
	err = call->err;
	if (!err)
		memcpy(reply, req->bounce, reply_len);
out:
	call_put(call);
	return err;
}
EXPORT_SYMBOL_GPL(ibtrs_clt_call);
