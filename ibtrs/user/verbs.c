// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Work requests, and what the providers of connections have in common.
 *
 * A work request is kept in the form in which a stream sends it: each operation is an iovec with
 * its frame, and iovecs with its payload. A provider that does not send frames skips them.
 */
#include "ibtrs/user/verbs.h"

void ibtrs_wr_init(struct ibtrs_wr *wr)
{
	wr->next = NULL;
	wr->nr_ops = 0;
	wr->nr = 0;
	wr->at = 0;
	wr->used = 0;
	wr->slot = 0;
	wr->slot_at = 0;
	wr->posted = false;
}

void ibtrs_wr_ref(struct ibtrs_wr *wr, const void *data, size_t len)
{
	if (!len)
		return;
	wr->iov[wr->nr++] = (struct iovec){ .iov_base = (void *)data, .iov_len = len };
}

void ibtrs_wr_copy(struct ibtrs_wr *wr, const void *data, size_t len)
{
	u8 *to = wr->room + wr->used;
	struct iovec *last = wr->nr ? &wr->iov[wr->nr - 1] : NULL;

	memcpy(to, data, len);
	wr->used += len;
	if (last && (u8 *)last->iov_base + last->iov_len == to)
		last->iov_len += len;
	else
		ibtrs_wr_ref(wr, to, len);
}

void ibtrs_wr_frame(struct ibtrs_wr *wr, const struct ibtrs_frame *f)
{
	u8 *to = wr->room + wr->used;

	wr->op[wr->nr_ops++] = (struct ibtrs_wr_op){ .f = *f, .iov = wr->nr };
	ibtrs_frame_encode(to, f);
	wr->used += IBTRS_FRAME_LEN;
	ibtrs_wr_ref(wr, to, IBTRS_FRAME_LEN);
}

void ibtrs_qp_init(struct ibtrs_qp *qp, const struct ibtrs_verbs *verbs)
{
	*qp = (struct ibtrs_qp){ .verbs = verbs, .out_end = &qp->out };
}

int ibtrs_qp_break(struct ibtrs_qp *qp, int err, const char *why)
{
	if (!qp->err) {
		qp->err = err;
		qp->why = why;
	}
	return qp->err;
}

int ibtrs_qp_check(struct ibtrs_qp *qp, u32 misses, u32 size)
{
	if (!qp->err && qp->verbs->check)
		qp->verbs->check(qp, misses, size);
	return qp->err;
}

void ibtrs_qp_post(struct ibtrs_qp *qp, struct ibtrs_wr *wr)
{
	if (qp->err)
		return;
	wr->next = NULL;
	wr->posted = true;
	*qp->out_end = wr;
	qp->out_end = &wr->next;
}

void ibtrs_qp_post_imm(struct ibtrs_qp *qp, struct ibtrs_wr *wr, u32 imm)
{
	const struct ibtrs_frame f = { .op = IBTRS_FRAME_WRITE_IMM, .imm = imm };

	if (wr->posted)
		return;
	ibtrs_wr_init(wr);
	ibtrs_wr_frame(wr, &f);
	ibtrs_qp_post(qp, wr);
}

void ibtrs_qp_taken(struct ibtrs_qp *qp)
{
	struct ibtrs_wr *wr = qp->out;

	qp->out = wr->next;
	if (!qp->out)
		qp->out_end = &qp->out;
	wr->posted = false;
}

void ibtrs_qp_end(struct ibtrs_qp *qp)
{
	ibtrs_qp_break(qp, -ECONNABORTED, "closed here");
	while (qp->out)
		ibtrs_qp_taken(qp);
}
