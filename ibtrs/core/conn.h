/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One connection: a QP with a CQ of its own, and the account of its send queue. Who may post:
 * anybody between create and drain, but the owner guarantees (RCU or an op reference) that nobody
 * posts after the drain began.
 */
#ifndef IBTRS_CORE_CONN_H
#define IBTRS_CORE_CONN_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/core/fault.h"

#define IBTRS_CONN_ACK_TIMEOUT	17	/* 4.096 us * 2^17 = 0.54 s */

/**
 * struct ibtrs_conn - set before the connection is published, but for the counters
 * @id: CM id; owned by whoever created it
 * @cid: 0 = service
 * @sq_free: work requests that may still be posted (E-45)
 * @stuck: posts are swallowed (fault.h)
 * @sq_posted: work requests posted so far; each time it crosses a multiple of @sig_every the
 *	request is signalled
 */
struct ibtrs_conn {
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *cq;
	u32 cq_size;
	u32 cq_batch;
	u16 cid;
	u16 max_send_sge;
	bool stuck;
	u32 sig_every;
	atomic_t sq_free;
	atomic_t sq_posted;
};

struct ibtrs_conn_caps {
	u32 send_wr;			/* wanted; cut to the device's limit */
	u32 recv_wr;			/* needed; creation fails when the device has less */
	u16 send_sge;			/* wanted; cut to the device's limit */
	u16 recv_sge;
	/* completion vector, any number: taken modulo what the device has */
	int vector;
	enum ib_poll_context poll;
};

/* Makes CQ and QP on conn->id. Sleeps. 0 or negative errno; nothing is left behind on failure. */
int ibtrs_conn_create(struct ibtrs_conn *c, struct ib_pd *pd, const struct ibtrs_conn_caps *caps);
/*
 * Moves the QP to error and waits until no completion can come any more: untimed, but every 10 s
 * the log names session and path (law L10).
 * @wq: for what it says; WQ_MEM_RECLAIM. @fault: the point that can make it late. No-op without a
 *	QP.
 */
void ibtrs_conn_drain(struct ibtrs_conn *c, struct workqueue_struct *wq,
		      enum ibtrs_fault_point fault, const char *session, const char *path);
/* Frees the QP, after the drain; idempotent. */
void ibtrs_conn_destroy_qp(struct ibtrs_conn *c);
/*
 * Frees QP and CQ; idempotent. When softirqs poll the CQ, let a grace period pass after the QP is
 * gone (law L20).
 */
void ibtrs_conn_destroy(struct ibtrs_conn *c);

/*
 * ibtrs_conn_send() - post a chain, taking @nr credits (E-45)
 *
 * @force false: the chain is unsignalled, but each time the number of such work requests crosses a
 *	multiple of sig_every the LAST one is
 * signalled; its done() then calls ibtrs_conn_credit(c, c->sig_every). An unsignalled one reaches
 * done() only with an error. @force true: the last one is signalled whatever the count, and its own
 * done() calls ibtrs_conn_credit(c, nr). Return: 0, -EAGAIN (no credit, nothing posted), or the
 * error of ib_post_send() (the caller must fail the path).
 */
int ibtrs_conn_send(struct ibtrs_conn *c, struct ib_send_wr *first, struct ib_send_wr *last, int nr,
		    bool force);

/*
 * The same, not forced, for a message that is alone. soft-RoCE of many kernels sends from a
 * tasklet: raised in a task it waits for ksoftirqd, which is right where more will come, for all of
 * it is then sent at once, but costs a lone message two context switches. Here it runs before we
 * return.
 */
int ibtrs_conn_send_now(struct ibtrs_conn *c, struct ib_send_wr *first, struct ib_send_wr *last,
			int nr);

/*
 * Takes credits for work requests that must find room later, whatever was posted until then. false:
 * there are not that many.
 */
bool ibtrs_conn_reserve(struct ibtrs_conn *c, int nr);
/* ibtrs_conn_send() for credits that were taken before; never -EAGAIN. */
int ibtrs_conn_send_reserved(struct ibtrs_conn *c, struct ib_send_wr *first,
			     struct ib_send_wr *last, int nr, bool force);

static inline void ibtrs_conn_credit(struct ibtrs_conn *c, int nr)
{
	atomic_add(nr, &c->sq_free);
}

/* Zero-byte RDMA WRITE WITH IMM, unsignalled but by interval. */
int ibtrs_conn_send_imm(struct ibtrs_conn *c, struct ib_cqe *cqe, u32 imm);
/*
 * What a failed completion says: repeated in vain, there was silence; anything else broke the
 * connection at once.
 */
static inline int ibtrs_conn_wc_err(const struct ib_wc *wc)
{
	return wc->status == IB_WC_RETRY_EXC_ERR || wc->status == IB_WC_RNR_RETRY_EXC_ERR ?
		       -ETIMEDOUT :
		       -ECONNRESET;
}

/* Post @nr zero-length receives with one cqe. */
int ibtrs_conn_post_empty(struct ibtrs_conn *c, struct ib_cqe *cqe, u32 nr);
int ibtrs_conn_post_recv(struct ibtrs_conn *c, struct ib_cqe *cqe, struct ib_sge *sge);

#endif
