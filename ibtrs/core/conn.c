// SPDX-License-Identifier: GPL-2.0-only
/*
 * A QP, its CQ and the account of its send queue; the addresses of its ends.
 *
 * Work requests are unsignalled, but for those whose completion is waited for: these return
 * their own credits. The send queue entry of an unsignalled work request is free again only when a
 * later signalled request has completed. So each of them takes one credit, too; when the count of
 * those that were posted crosses a multiple of sig_every, the request that crosses it is signalled,
 * and its completion returns sig_every credits. Posters on several CPUs may reach ib_post_send() in
 * another order than they counted. Then credits return before their entries are free; the slack
 * covers these entries.
 */
#include <linux/delay.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/log2.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib.h>
#include "ibtrs/core/conn.h"

#define CONN_SQ_SLACK	32	/* drain marker, and posters that overtake each other */
#define CONN_SQ_MIN	128
#define CONN_SIG_MIN	16	/* more than the longest chain */
#define CONN_SIG_MAX	64
#define CONN_DRAIN_WARN	(10 * HZ)
#define CONN_DRAIN_BATCH	64

struct drain_watch {
	struct delayed_work work;
	struct workqueue_struct *wq;
	const char *session;
	const char *path;
	unsigned long start;
};

/*
 * A device has limits that depend on each other: mlx5 counts max_qp_wr in units of 64 bytes, of
 * which a work request takes as many as its segments need. Which send queue it can make, it says
 * only by failing. So ask for half as much, down to what a connection needs: a smaller queue makes
 * requests wait for credits, or take another path, and costs nothing else.
 */
static int conn_create_largest(struct ibtrs_conn *c, struct ib_pd *pd, struct ib_qp_init_attr *attr,
			       u32 *send_wr)
{
	const struct ib_qp_cap want = attr->cap;
	int err;

	for (;;) {
		attr->cap = want;
		attr->cap.max_send_wr = *send_wr;
		err = ibtrs_fault_sq_fits(&attr->cap) ? rdma_create_qp(c->id, pd, attr) : -ENOMEM;
		if ((err != -ENOMEM && err != -EINVAL) || *send_wr == CONN_SQ_MIN)
			return err;
		*send_wr = max_t(u32, *send_wr / 2, CONN_SQ_MIN);
	}
}

int ibtrs_conn_create(struct ibtrs_conn *c, struct ib_pd *pd, const struct ibtrs_conn_caps *caps)
{
	struct ib_device *ib = pd->device;
	u32 lim = ib->attrs.max_qp_wr;
	u32 send_wr = min_t(u32, max_t(u32, caps->send_wr + CONN_SQ_SLACK, CONN_SQ_MIN), lim);
	u32 recv_wr = caps->recv_wr + 1;	/* + the drain marker */
	struct ib_qp_init_attr attr = {
		.qp_type	= IB_QPT_RC,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.cap.max_send_sge = min_t(u32, caps->send_sge, ib->attrs.max_send_sge),
		.cap.max_recv_sge = 1,
	};
	int err;

	if (recv_wr > lim || send_wr < CONN_SQ_MIN)
		return -ENOSPC;
	/*
	 * Unsignalled sends complete only with an error. After an error all of them do, so the CQ
	 * has room for all.
	 */
	c->cq = ib_alloc_cq(ib, c, min_t(u32, send_wr + recv_wr, ib->attrs.max_cqe),
			    caps->vector % max_t(int, 1, ib->num_comp_vectors), caps->poll);
	if (IS_ERR(c->cq)) {
		err = PTR_ERR(c->cq);
		c->cq = NULL;
		return err;
	}
	attr.send_cq = c->cq;
	attr.recv_cq = c->cq;
	attr.cap.max_recv_wr = recv_wr;
	err = conn_create_largest(c, pd, &attr, &send_wr);
	if (err) {
		ib_free_cq(c->cq);
		c->cq = NULL;
		return err;
	}
	c->qp = c->id->qp;
	c->stuck = false;
	c->max_send_sge = attr.cap.max_send_sge ?: 1;
	c->sig_every = clamp_t(u32, rounddown_pow_of_two(send_wr / 4), CONN_SIG_MIN, CONN_SIG_MAX);
	atomic_set(&c->sq_free, send_wr - CONN_SQ_SLACK);
	atomic_set(&c->sq_posted, 0);
	return 0;
}
EXPORT_SYMBOL_GPL(ibtrs_conn_create);

static void drain_is_late(struct work_struct *work)
{
	struct drain_watch *w = container_of(to_delayed_work(work), struct drain_watch, work);

	pr_warn("ibtrs %s: %s: since %u s the RDMA device has not given back the work requests of this path; it cannot be used before, the others can\n",
		w->session, w->path, jiffies_to_msecs(jiffies - w->start) / 1000);
	queue_delayed_work(w->wq, &w->work, CONN_DRAIN_WARN);
}

struct drain_marker {
	struct ib_cqe cqe;
	bool seen;
};

static void drain_marker_done(struct ib_cq *cq, struct ib_wc *wc)
{
	container_of(wc->wr_cqe, struct drain_marker, cqe)->seen = true;
}

/*
 * ib_drain_qp() for a CQ that has no other poller any more: that one sleeps a tenth of a second for
 * each queue before it polls, and it polls outside a read section, on which those rely that wait
 * for the end of all completions. False: no marker can be posted.
 */
static bool drain_polled(struct ibtrs_conn *c)
{
	struct drain_marker sent = { .cqe.done = drain_marker_done };
	struct drain_marker received = { .cqe.done = drain_marker_done };
	struct ib_rdma_wr last_send = { .wr.wr_cqe = &sent.cqe, .wr.opcode = IB_WR_RDMA_WRITE };
	struct ib_recv_wr last_recv = { .wr_cqe = &received.cqe };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	bool posted;
	int n;

	if (ib_modify_qp(c->qp, &attr, IB_QP_STATE))
		return false;
	sent.seen = ib_post_send(c->qp, &last_send.wr, NULL);
	received.seen = ib_post_recv(c->qp, &last_recv, NULL);
	posted = !sent.seen && !received.seen;
	while (!sent.seen || !received.seen) {
		scoped_guard(rcu)
			n = ib_process_cq_direct(c->cq, CONN_DRAIN_BATCH);
		if (n < CONN_DRAIN_BATCH)
			usleep_range(100, 500);
	}
	return posted;
}

void ibtrs_conn_drain(struct ibtrs_conn *c, struct workqueue_struct *wq,
		      enum ibtrs_fault_point fault, const char *session, const char *path)
{
	struct drain_watch w = { .wq = wq, .session = session, .path = path, .start = jiffies };

	if (!c->qp)
		return;
	INIT_DELAYED_WORK_ONSTACK(&w.work, drain_is_late);
	queue_delayed_work(wq, &w.work, CONN_DRAIN_WARN);
	ibtrs_fault_wait(fault, session, path);
	if (c->cq->poll_ctx != IB_POLL_DIRECT || !drain_polled(c))
		ib_drain_qp(c->qp);
	cancel_delayed_work_sync(&w.work);
	destroy_delayed_work_on_stack(&w.work);
}
EXPORT_SYMBOL_GPL(ibtrs_conn_drain);

void ibtrs_conn_destroy_qp(struct ibtrs_conn *c)
{
	if (c->qp) {
		rdma_destroy_qp(c->id);
		c->qp = NULL;
	}
}
EXPORT_SYMBOL_GPL(ibtrs_conn_destroy_qp);

void ibtrs_conn_destroy(struct ibtrs_conn *c)
{
	ibtrs_conn_destroy_qp(c);
	if (c->cq) {
		ib_free_cq(c->cq);
		c->cq = NULL;
	}
}
EXPORT_SYMBOL_GPL(ibtrs_conn_destroy);

static bool conn_crosses(struct ibtrs_conn *c, int nr)
{
	u32 now = atomic_add_return(nr, &c->sq_posted);

	return (now ^ (now - nr)) & ~(c->sig_every - 1);
}

static int conn_post(struct ibtrs_conn *c, struct ib_send_wr *first)
{
	int err;

	if (ibtrs_fault_armed() && READ_ONCE(c->stuck))
		return 0;
	err = ib_post_send(c->qp, first, NULL);
	return err > 0 ? -EIO : err;
}

bool ibtrs_conn_reserve(struct ibtrs_conn *c, int nr)
{
	if (likely(atomic_sub_return(nr, &c->sq_free) >= 0))
		return true;
	atomic_add(nr, &c->sq_free);
	return false;
}
EXPORT_SYMBOL_GPL(ibtrs_conn_reserve);

int ibtrs_conn_send_reserved(struct ibtrs_conn *c, struct ib_send_wr *first,
			     struct ib_send_wr *last, int nr, bool force)
{
	if (force || conn_crosses(c, nr))
		last->send_flags |= IB_SEND_SIGNALED;
	return conn_post(c, first);
}
EXPORT_SYMBOL_GPL(ibtrs_conn_send_reserved);

int ibtrs_conn_send(struct ibtrs_conn *c, struct ib_send_wr *first, struct ib_send_wr *last, int nr,
		    bool force)
{
	if (unlikely(!ibtrs_conn_reserve(c, nr)))
		return -EAGAIN;
	return ibtrs_conn_send_reserved(c, first, last, nr, force);
}
EXPORT_SYMBOL_GPL(ibtrs_conn_send);

int ibtrs_conn_send_now(struct ibtrs_conn *c, struct ib_send_wr *first, struct ib_send_wr *last,
			int nr, bool force)
{
	int err;

	if (!in_task() || irqs_disabled())
		return ibtrs_conn_send(c, first, last, nr, force);
	local_bh_disable();
	err = ibtrs_conn_send(c, first, last, nr, force);
	local_bh_enable();
	return err;
}
EXPORT_SYMBOL_GPL(ibtrs_conn_send_now);

int ibtrs_conn_send_imm(struct ibtrs_conn *c, struct ib_cqe *cqe, u32 imm)
{
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.ex.imm_data	= cpu_to_be32(imm),
	};

	return ibtrs_conn_send(c, &wr.wr, &wr.wr, 1, false);
}
EXPORT_SYMBOL_GPL(ibtrs_conn_send_imm);

#define CONN_RECV_CHAIN	16

int ibtrs_conn_post_empty(struct ibtrs_conn *c, struct ib_cqe *cqe, u32 nr)
{
	struct ib_recv_wr wr[CONN_RECV_CHAIN];
	u32 i, n;
	int err;

	while (nr) {
		n = min_t(u32, nr, CONN_RECV_CHAIN);
		for (i = 0; i < n; i++) {
			wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
			wr[i].wr_cqe = cqe;
			wr[i].sg_list = NULL;
			wr[i].num_sge = 0;
		}
		err = ib_post_recv(c->qp, wr, NULL);
		if (err)
			return err;
		nr -= n;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(ibtrs_conn_post_empty);

int ibtrs_probe_look(struct ibtrs_probe *p, struct ibtrs_conn *c, bool waits, bool seen,
		     u32 patience, const char **why)
{
	struct ib_rdma_wr wr = { .wr.wr_cqe = &p->cqe, .wr.opcode = IB_WR_RDMA_WRITE };
	int err;

	if (READ_ONCE(p->seen)) {
		WRITE_ONCE(p->seen, false);
		seen = true;
	}
	switch (ibtrs_sqwatch_look(&p->watch, waits, seen, READ_ONCE(p->out), patience)) {
	case IBTRS_SQWATCH_FINE:
		return 0;
	case IBTRS_SQWATCH_DEAD:
		*why = "a send queue is stuck";
		return -ETIMEDOUT;
	case IBTRS_SQWATCH_PROBE:
		break;
	}
	WRITE_ONCE(p->out, true);
	err = ibtrs_conn_send(c, &wr.wr, &wr.wr, 1, true);
	if (!err)
		return 1;
	WRITE_ONCE(p->out, false);
	*why = "a send queue cannot be probed";
	return err == -EAGAIN ? 0 : err;
}
EXPORT_SYMBOL_GPL(ibtrs_probe_look);

int ibtrs_iu_init(struct ibtrs_iu *iu, struct ib_device *ib, u32 size, enum dma_data_direction dir,
		  void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	iu->buf = kzalloc(size, GFP_KERNEL);
	if (!iu->buf)
		return -ENOMEM;
	iu->dma = ib_dma_map_single(ib, iu->buf, size, dir);
	if (ib_dma_mapping_error(ib, iu->dma)) {
		kfree(iu->buf);
		iu->buf = NULL;
		return -ENOMEM;
	}
	iu->cqe.done = done;
	iu->size = size;
	iu->dir = dir;
	iu->ib = ib;
	return 0;
}

void ibtrs_iu_free(struct ibtrs_iu *iu)
{
	if (!iu->buf)
		return;
	ib_dma_unmap_single(iu->ib, iu->dma, iu->size, iu->dir);
	kfree(iu->buf);
	iu->buf = NULL;
}

void ibtrs_iu_sync_cpu(struct ibtrs_iu *iu)
{
	ib_dma_sync_single_for_cpu(iu->ib, iu->dma, iu->size, iu->dir);
}

void ibtrs_iu_sync_dev(struct ibtrs_iu *iu)
{
	ib_dma_sync_single_for_device(iu->ib, iu->dma, iu->size, iu->dir);
}

static struct ib_sge iu_sge(const struct ibtrs_iu *iu, const struct ibtrs_dev *dev)
{
	return (struct ib_sge){ .addr = iu->dma,
				.length = iu->size,
				.lkey = dev->pd->local_dma_lkey };
}

int ibtrs_iu_post_recv(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev)
{
	struct ib_sge sge = iu_sge(iu, dev);
	struct ib_recv_wr wr = { .wr_cqe = &iu->cqe, .sg_list = &sge, .num_sge = 1 };

	ibtrs_iu_sync_dev(iu);
	return ib_post_recv(c->qp, &wr, NULL);
}

int ibtrs_iu_send(struct ibtrs_iu *iu, struct ibtrs_conn *c, const struct ibtrs_dev *dev, u32 len)
{
	struct ib_sge sge = iu_sge(iu, dev);
	struct ib_send_wr wr = {
		.wr_cqe = &iu->cqe, .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1
	};

	sge.length = len;
	ibtrs_iu_sync_dev(iu);
	return ibtrs_conn_send(c, &wr, &wr, 1, true);
}

void ibtrs_conn_addr(struct ibtrs_addr *a, const struct sockaddr_storage *ss, struct net *net)
{
	const struct sockaddr_in6 *in6 = (const void *)ss;
	struct net_device *dev;

	memset(a, 0, sizeof(*a));
	switch (ss->ss_family) {
	case AF_INET:
		a->kind = IBTRS_ADDR_IP4;
		memcpy(a->raw, &((const struct sockaddr_in *)ss)->sin_addr, 4);
		break;
	case AF_INET6:
		a->kind = IBTRS_ADDR_IP6;
		memcpy(a->raw, &in6->sin6_addr, sizeof(a->raw));
		dev = dev_get_by_index(net, in6->sin6_scope_id);
		if (dev) {
			strscpy(a->scope, dev->name, sizeof(a->scope));
			dev_put(dev);
		}
		break;
	case AF_IB:
		a->kind = IBTRS_ADDR_GID;
		memcpy(a->raw, &((const struct sockaddr_ib *)ss)->sib_addr, sizeof(a->raw));
		break;
	}
}
EXPORT_SYMBOL_GPL(ibtrs_conn_addr);
