// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * RDMA: what is sent.
 *
 * A work request is done with as soon as the adapter has it. What it sends from is a slot or a
 * chunk, which is used again only after an answer or the next request of the peer, that is, when
 * the peer has all of it; what the adapter then still repeats is discarded there. Not every
 * operation asks for a completion: one does for all since the last one. What does not fit the send
 * queue waits in qp.out.
 */
#include "ibtrs/user/rdma_qp.h"

#define RDMA_SIG_EVERY	16u
#define RDMA_WR_PROBE	(1ull << 33)

static bool rdma_in_place(const struct ibtrs_rdma *r, const struct iovec *v, struct ibv_sge *sge)
{
	const struct ibtrs_region *g;
	u64 addr;

	g = ibtrs_rdma_in_place(r, v->iov_base, v->iov_len, &addr);
	if (g)
		*sge = (struct ibv_sge){
			.addr = addr, .length = (u32)v->iov_len,
			.lkey = ((struct ibv_mr *)g->mr)->lkey,
		};
	return g;
}

/*
 * Where the payload of operation @k is for the adapter: data in registered memory stays there, what
 * follows it and all else is copied. Return: how many pieces, or why the connection is broken.
 */
static int rdma_payload(struct ibtrs_rdma *r, const struct ibtrs_wr *wr, u32 k,
			struct ibv_sge sge[IBTRS_RDMA_SGES])
{
	u32 i = wr->op[k].iov, end = k + 1 < wr->nr_ops ? wr->op[k + 1].iov : wr->nr;
	const struct ibtrs_rdma_area *a = wr->slot ? &r->slots : &r->msgs;
	size_t at = wr->slot ? (size_t)(wr->slot - 1) * r->slot_size + wr->slot_at : 0;
	size_t max = wr->slot ? r->slot_size - wr->slot_at : IBTRS_RECV_LEN;
	u32 len = wr->op[k].f.len;
	struct iovec v = wr->iov[i];
	int n = 0;
	u8 *to;

	v.iov_base = (u8 *)v.iov_base + IBTRS_FRAME_LEN;
	v.iov_len -= IBTRS_FRAME_LEN;
	if (!v.iov_len && end - i > 1 && rdma_in_place(r, &wr->iov[i + 1], sge)) {
		len -= sge->length;
		i++;
		n++;
	}
	if (!len)
		return n;
	if (len > max)
		return ibtrs_qp_break(&r->qp, -EMSGSIZE, "a message is longer than there is room");
	for (to = a->base + at;;) {
		memcpy(to, v.iov_base, v.iov_len);
		to += v.iov_len;
		if (++i == end)
			break;
		v = wr->iov[i];
	}
	sge[n] = ibtrs_rdma_area_sge(a, at, len);
	return n + 1;
}

static void rdma_opcode(struct ibv_send_wr *s, const struct ibtrs_frame *f)
{
	s->wr.rdma.remote_addr = f->addr;
	s->wr.rdma.rkey = f->key;
	switch (f->op) {
	case IBTRS_FRAME_SEND:
		s->opcode = IBV_WR_SEND;
		break;
	case IBTRS_FRAME_SEND_IMM:
		s->opcode = IBV_WR_SEND_WITH_IMM;
		s->imm_data = htobe32(f->imm);
		break;
	case IBTRS_FRAME_SEND_INV:
		s->opcode = IBV_WR_SEND_WITH_INV;
		s->invalidate_rkey = f->key;
		break;
	case IBTRS_FRAME_WRITE:
		s->opcode = IBV_WR_RDMA_WRITE;
		break;
	default:
		s->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		s->imm_data = htobe32(f->imm);
	}
}

static int rdma_send(struct ibtrs_rdma *r, const struct ibtrs_wr *wr)
{
	struct ibv_send_wr s[IBTRS_WR_OPS] = {}, *last = &s[wr->nr_ops - 1], *bad;
	struct ibv_sge sge[IBTRS_WR_OPS][IBTRS_RDMA_SGES];
	u32 i;
	int err;

	for (i = 0; i < wr->nr_ops; i++) {
		rdma_opcode(&s[i], &wr->op[i].f);
		s[i].next = &s[i] == last ? NULL : &s[i + 1];
		if (!wr->op[i].f.len)
			continue;
		s[i].sg_list = sge[i];
		s[i].num_sge = rdma_payload(r, wr, i, sge[i]);
		if (s[i].num_sge < 0)
			return s[i].num_sge;
	}
	r->unsignalled += wr->nr_ops;
	if (r->unsignalled >= RDMA_SIG_EVERY) {
		last->send_flags = IBV_SEND_SIGNALED;
		last->wr_id = IBTRS_RDMA_WR_SEND | r->unsignalled;
		r->unsignalled = 0;
	} else {
		last->wr_id = IBTRS_RDMA_WR_SEND;
	}
	err = ibv_post_send(r->id->qp, s, &bad);
	if (err)
		return ibtrs_rdma_break(r, -err);
	r->sq_free -= wr->nr_ops;
	r->fresh = true;
	return 0;
}

int ibtrs_rdma_flush(struct ibtrs_qp *qp)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	while (qp->out && !qp->err) {
		if (r->state == IBTRS_RDMA_ASKED)
			ibtrs_rdma_cm_answer(r, qp->out);
		else if (r->state == IBTRS_RDMA_UP && r->sq_free >= qp->out->nr_ops)
			rdma_send(r, qp->out);
		else
			break;
		ibtrs_qp_taken(qp);
	}
	return qp->err;
}

/* ---- is the send queue dead? -------------------------------------------- */

/* A write of no bytes, of which the peer's software sees nothing. A full queue shows it without. */
static int rdma_probe(struct ibtrs_rdma *r)
{
	struct ibv_send_wr s = {
		.wr_id = IBTRS_RDMA_WR_SEND | RDMA_WR_PROBE | (r->unsignalled + 1),
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	int err;

	if (!r->sq_free)
		return 0;
	err = ibv_post_send(r->id->qp, &s, &bad);
	if (err)
		return ibtrs_rdma_break(r, -err);
	r->sq_free--;
	r->unsignalled = 0;
	r->fresh = false;
	r->probing = true;
	return 0;
}

void ibtrs_rdma_sent(struct ibtrs_rdma *r, u64 wr_id)
{
	r->sq_free += (u32)wr_id;
	r->sent = true;
	r->probing &= !(wr_id & RDMA_WR_PROBE);
	ibtrs_rdma_flush(&r->qp);
}

/* Decision 16: a send queue can die without a completion, and then looks like a slow peer. */
int ibtrs_rdma_check(struct ibtrs_qp *qp, u32 misses, u32 size)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);
	u32 patience = ibtrs_sqwatch_patience(misses, (u64)(r->nr_recv - r->sq_free) * size);
	bool seen = r->sent;

	r->sent = false;
	switch (ibtrs_sqwatch_look(&r->watch, r->fresh || r->probing, seen, r->probing, patience)) {
	case IBTRS_SQWATCH_PROBE:
		return rdma_probe(r);
	case IBTRS_SQWATCH_DEAD:
		return ibtrs_qp_break(qp, -ETIMEDOUT, "a send queue is stuck");
	case IBTRS_SQWATCH_FINE:
		break;
	}
	return 0;
}
