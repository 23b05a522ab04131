/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One connection: a QP with a CQ of its own, and the account of its send queue. Any task may post
 * between create and drain, but the owner guarantees (RCU or an op reference) that no task posts
 * after the drain began.
 */
#ifndef IBTRS_CORE_CONN_H
#define IBTRS_CORE_CONN_H

#include <linux/atomic.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <ibtrs/addr.h>
#include "ibtrs/core/dev.h"
#include "ibtrs/core/fault.h"
#include "ibtrs/logic/beat.h"

#define IBTRS_CONN_ACK_TIMEOUT	17	/* 4.096 us * 2^17 = 0.54 s */

/**
 * struct ibtrs_conn - all but the counters and @stuck is set before the connection is published
 * @id: CM id; owned by its creator
 * @cid: 0 = service
 * @sq_free: work requests that may still be posted (E-45)
 * @stuck: posts succeed but nothing is sent (IBTRS_FAULT_STUCK)
 * @sq_posted: work requests posted so far, without those sent with force; a request with which the
 *	number crosses a multiple of @sig_every is signalled
 */
struct ibtrs_conn {
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct ib_cq *cq;
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
	u16 send_sge;			/* wanted; cut to the device's limit; receives have one */
	/* completion vector, any number: taken modulo what the device has */
	int vector;
	enum ib_poll_context poll;
};

/*
 * Have both ends of @id, whose route is known, a GID? If not, there is nothing to which an exchange
 * of proofs could be bound.
 */
static inline bool ibtrs_conn_has_gids(const struct rdma_cm_id *id)
{
	const struct sa_path_rec *rec = id->route.path_rec;

	return rec && memchr_inv(rec->sgid.raw, 0, sizeof(rec->sgid.raw)) &&
	       memchr_inv(rec->dgid.raw, 0, sizeof(rec->dgid.raw));
}

/*
 * The GIDs of both ends of @id, which has some. Packets go to the peer's GID, whatever its address
 * claims to be.
 */
static inline void ibtrs_conn_gids(const struct rdma_cm_id *id, u8 *own, u8 *peer)
{
	const struct sa_path_rec *rec = id->route.path_rec;

	memcpy(own, rec->sgid.raw, sizeof(rec->sgid.raw));
	memcpy(peer, rec->dgid.raw, sizeof(rec->dgid.raw));
}

/*
 * Converts the address of one end, as the CM has it, to one of <ibtrs/addr.h>, which is pure and
 * knows no sockaddr. @net: where the interface of a link-local address is looked up. Any context
 * but NMI.
 */
void ibtrs_conn_addr(struct ibtrs_addr *a, const struct sockaddr_storage *ss, struct net *net);

/* Makes CQ and QP on conn->id. Sleeps. 0 or negative errno; nothing is left behind on failure. */
int ibtrs_conn_create(struct ibtrs_conn *c, struct ib_pd *pd, const struct ibtrs_conn_caps *caps);
/*
 * Moves the QP to error and waits until no completion can come any more. There is no timeout, but
 * every 10 s the log names session and path (law L10). No-op without a QP.
 * @wq: runs the work that writes to the log; WQ_MEM_RECLAIM.
 * @fault: the fault point that can delay the drain.
 */
void ibtrs_conn_drain(struct ibtrs_conn *c, struct workqueue_struct *wq,
		      enum ibtrs_fault_point fault, const char *session, const char *path);
/* Frees the QP, after the drain; idempotent. */
void ibtrs_conn_destroy_qp(struct ibtrs_conn *c);
/*
 * Frees QP and CQ; idempotent. If softirqs poll the CQ, the caller first calls
 * ibtrs_conn_destroy_qp() and waits for a grace period (law L20).
 */
void ibtrs_conn_destroy(struct ibtrs_conn *c);

/*
 * ibtrs_conn_send() - post a chain, taking @nr credits (E-45)
 *
 * @force false: the last work request of the chain is signalled only if the count of work requests
 *	posted this way crosses a multiple of sig_every with the chain. Its done() then calls
 *	ibtrs_conn_credit(c, c->sig_every). An unsignalled one reaches done() only with an error.
 * @force true: the last work request is signalled whatever the count, and its done() calls
 *	ibtrs_conn_credit(c, nr).
 *
 * Return: 0, -EAGAIN (no credit, nothing posted), or the error of ib_post_send() (the caller must
 * fail the path).
 */
int ibtrs_conn_send(struct ibtrs_conn *c, struct ib_send_wr *first, struct ib_send_wr *last, int nr,
		    bool force);

/*
 * ibtrs_conn_send() for a message that is alone. In many kernels soft-RoCE sends from a tasklet,
 * and a tasklet that is raised in a task waits for ksoftirqd. That is good if more messages follow,
 * because all are then sent at once, but it costs a lone message two context switches. Here the
 * tasklet runs before the function returns.
 */
int ibtrs_conn_send_now(struct ibtrs_conn *c, struct ib_send_wr *first, struct ib_send_wr *last,
			int nr, bool force);

/*
 * Takes @nr credits in advance for work requests that must find room later, whatever is posted
 * until then. Returns false if there are not so many credits.
 */
bool ibtrs_conn_reserve(struct ibtrs_conn *c, int nr);
/* ibtrs_conn_send() for credits that were taken before; never -EAGAIN. */
int ibtrs_conn_send_reserved(struct ibtrs_conn *c, struct ib_send_wr *first,
			     struct ib_send_wr *last, int nr, bool force);

static inline void ibtrs_conn_credit(struct ibtrs_conn *c, int nr)
{
	atomic_add(nr, &c->sq_free);
}

/* Posts a zero-byte RDMA WRITE WITH IMM, as ibtrs_conn_send() with @force false. */
int ibtrs_conn_send_imm(struct ibtrs_conn *c, struct ib_cqe *cqe, u32 imm);
/*
 * The errno for a failed completion: -ETIMEDOUT if the device ran out of retries (the peer was
 * silent or not ready), -ECONNRESET for anything else, which broke the connection at once.
 */
static inline int ibtrs_conn_wc_err(const struct ib_wc *wc)
{
	return wc->status == IB_WC_RETRY_EXC_ERR || wc->status == IB_WC_RNR_RETRY_EXC_ERR ?
		       -ETIMEDOUT :
		       -ECONNRESET;
}

/* Post @nr zero-length receives with one cqe. */
int ibtrs_conn_post_empty(struct ibtrs_conn *c, struct ib_cqe *cqe, u32 nr);

/**
 * struct ibtrs_probe - notices a send queue that died without a completion (decision 16)
 * @cqe: of a probe, a signalled zero-byte RDMA write, which the peer's software never sees
 * @watch: what earlier looks saw; used by the looks only
 * @seen: written by every completion of the send queue, cleared by a look
 * @out: a probe is posted and not complete. Its done() clears it and gives back one credit
 */
struct ibtrs_probe {
	struct ib_cqe cqe;
	struct ibtrs_sqwatch watch;
	bool seen;
	bool out;
};

static inline void ibtrs_probe_seen(struct ibtrs_probe *p)
{
	if (!READ_ONCE(p->seen))
		WRITE_ONCE(p->seen, true);
}

/**
 * ibtrs_probe_look() - one look at the send queue of @c, once per heartbeat interval
 * @waits: something was posted that must complete
 * @seen: the queue moves, or nothing can be said
 * @patience: see ibtrs_sqwatch_patience()
 * @why: reason of an error
 *
 * A queue without room gets no probe: the work requests in it show whether it still moves.
 *
 * Return: 0; 1: a probe was posted; a negative errno: the path must fail.
 */
int ibtrs_probe_look(struct ibtrs_probe *p, struct ibtrs_conn *c, bool waits, bool seen,
		     u32 patience, const char **why);

/* A zeroed, DMA-mapped buffer with its completion entry: control messages and small receives. */
struct ibtrs_iu {
	struct ib_cqe cqe;
	void *buf;
	u64 dma;
	u32 size;
	enum dma_data_direction dir;
	struct ib_device *ib;
};

int ibtrs_iu_init(struct ibtrs_iu *iu, struct ib_device *ib, u32 size, enum dma_data_direction dir,
		  void (*done)(struct ib_cq *cq, struct ib_wc *wc));
void ibtrs_iu_free(struct ibtrs_iu *iu);	/* idempotent */
void ibtrs_iu_sync_cpu(struct ibtrs_iu *iu);
void ibtrs_iu_sync_dev(struct ibtrs_iu *iu);
/* Posts the whole buffer as a receive on @c. Any context. Return: 0 or an errno. */
int ibtrs_iu_post_recv(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev);
/*
 * Sends the first @len bytes on @c as one signalled SEND, which takes one credit; its completion
 * calls iu->cqe.done(). Any context. Return: as ibtrs_conn_send().
 */
int ibtrs_iu_send(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev, u32 len);

#endif
