// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * RDMA: work requests and completions of an adapter, by libibverbs.
 *
 * Receiving: all receives have 8 bytes, for RKEY_RSP; on a connection of authentication there are
 * two, for its messages. They are posted again when a turn ends.
 *
 * Sleeping: the descriptors of the CM and of the completion channel are in an epoll set, which is
 * what the owner's set watches. When the completion queue is empty the channel is emptied, the
 * queue armed, and polled once more: what came between is not reported. A queue whose owner comes
 * again leaves that to the first turn that finds nothing, so one that is busy is spared the calls.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "ibtrs/proto/auth.h"
#include "ibtrs/user/rdma_qp.h"

#define RDMA_RECV	8u		/* RKEY_RSP */
#define RDMA_SMALL	(2 * IBTRS_RECV_LEN)	/* in msgs: where these begin */
#define RDMA_SERVICE	192u		/* receives: an answer for each slot, heartbeats */
#define RDMA_SLACK	64u
#define RDMA_RECV_CHAIN	16u
#define RDMA_LAST	(1ull << 34)	/* wr_id: of the last work requests */
#define RDMA_DRAIN_US	500000u

/* ---- receives ----------------------------------------------------------- */

/* Posts small receives of which @which has the numbers; NULL: 0 .. @nr - 1. */
static int rdma_post_recvs(struct ibtrs_rdma *r, const u32 *which, u32 nr)
{
	struct ibv_recv_wr wr[RDMA_RECV_CHAIN], *bad;
	struct ibv_sge sge[RDMA_RECV_CHAIN];
	u32 done, n, i;
	int err;

	for (done = 0; done < nr; done += n) {
		n = nr - done < RDMA_RECV_CHAIN ? nr - done : RDMA_RECV_CHAIN;
		for (i = 0; i < n; i++) {
			u32 x = which ? which[done + i] : done + i;

			sge[i] = ibtrs_rdma_area_sge(&r->msgs, RDMA_SMALL + x * r->recv_len,
						     r->recv_len);
			wr[i] = (struct ibv_recv_wr){
				.wr_id = x, .next = i + 1 < n ? &wr[i + 1] : NULL,
				.sg_list = &sge[i], .num_sge = 1,
			};
		}
		err = ibv_post_recv(r->id->qp, wr, &bad);
		if (err)
			return ibtrs_rdma_break(r, -err);
	}
	return 0;
}

/* The one receive that takes a message. */
static int rdma_post_first(struct ibtrs_rdma *r, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = r->nr_recv, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = ibv_post_recv(r->id->qp, &wr, &bad);

	if (err)
		return ibtrs_rdma_break(r, -err);
	return rdma_post_recvs(r, NULL, r->nr_recv);
}

static int rdma_expect(struct ibtrs_qp *qp, void *room, u32 len)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	/* There is one message, and it is copied from here. */
	if (!room)
		return 0;
	if (ibtrs_rdma_area_new(r, &r->info, len))
		return qp->err;
	return rdma_post_first(r, ibtrs_rdma_area_sge(&r->info, 0, len));
}

static int rdma_post_due(struct ibtrs_rdma *r)
{
	u32 n = r->nr_due;

	r->nr_due = 0;
	return n ? rdma_post_recvs(r, r->due, n) : 0;
}

/* ---- completions -------------------------------------------------------- */

static int rdma_failed(struct ibtrs_rdma *r, const struct ibv_wc *c)
{
	switch (c->status) {
	case IBV_WC_RETRY_EXC_ERR:
		return ibtrs_qp_break(&r->qp, -ETIMEDOUT, "what was sent is not acknowledged");
	case IBV_WC_REM_ACCESS_ERR:
		return ibtrs_qp_break(&r->qp, -EACCES, "the peer does not take the key it has given");
	case IBV_WC_WR_FLUSH_ERR:
		return ibtrs_qp_break(&r->qp, -ECONNRESET, "the connection has ended");
	default:
		return ibtrs_qp_break(&r->qp, -EIO, ibv_wc_status_str(c->status));
	}
}

static void rdma_received(struct ibtrs_rdma *r, const struct ibv_wc *c, struct ibtrs_wc *wc)
{
	const u8 *first = r->info.base ?: r->msgs.base + IBTRS_RECV_LEN;

	wc->imm = c->wc_flags & IBV_WC_WITH_IMM ? be32toh(c->imm_data) : 0;
	wc->len = c->byte_len;
	wc->data = c->wr_id == r->nr_recv ? first :
		   r->msgs.base + RDMA_SMALL + c->wr_id * r->recv_len;
	if (c->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		wc->op = IBTRS_FRAME_WRITE_IMM;
	else if (c->wc_flags & IBV_WC_WITH_IMM)
		wc->op = IBTRS_FRAME_SEND_IMM;
	else
		wc->op = c->wc_flags & IBV_WC_WITH_INV ? IBTRS_FRAME_SEND_INV : IBTRS_FRAME_SEND;
	if (c->wr_id != r->nr_recv)
		r->due[r->nr_due++] = (u32)c->wr_id;
}

/* Return: 1: @wc is filled; 0: the queue is empty; or why the connection is broken. */
static int rdma_completion(struct ibtrs_rdma *r, struct ibtrs_wc *wc)
{
	struct ibv_wc c;
	int n;

	while (!r->qp.err) {
		n = ibv_poll_cq(r->cq, 1, &c);
		if (!n)
			return 0;
		if (n < 0)
			return ibtrs_rdma_break(r, -EIO);
		r->dirty = true;
		if (c.status != IBV_WC_SUCCESS)
			return rdma_failed(r, &c);
		if (!(c.wr_id & IBTRS_RDMA_WR_SEND)) {
			rdma_received(r, &c, wc);
			return 1;
		}
		ibtrs_rdma_sent(r, c.wr_id);
	}
	return r->qp.err;
}

/* A loss of the link breaks the connection at once, as the kernel's client does. */
static void rdma_port_look(struct ibtrs_rdma *r)
{
	struct ibv_async_event ev;

	while (!ibv_get_async_event(r->port, &ev)) {
		if (ev.event_type == IBV_EVENT_DEVICE_FATAL)
			ibtrs_qp_break(&r->qp, -EIO, "the RDMA device broke down");
		else if (ev.event_type == IBV_EVENT_PORT_ERR &&
			 ev.element.port_num == r->id->port_num)
			ibtrs_qp_break(&r->qp, -ENETDOWN, "the port has no link");
		ibv_ack_async_event(&ev);
	}
}

/* Once in a turn: what do the descriptors say? */
static int rdma_look(struct ibtrs_rdma *r)
{
	struct epoll_event ev[3];
	struct ibv_cq *cq;
	void *priv;
	int n, err;

	r->looked = true;
	n = epoll_wait(r->ep, ev, 3, 0);
	while (n-- > 0) {
		if (ev[n].data.u32 == IBTRS_RDMA_FD_CM) {
			r->cm_ready = true;
			continue;
		}
		if (ev[n].data.u32 == IBTRS_RDMA_FD_PORT) {
			rdma_port_look(r);
			continue;
		}
		while (!ibv_get_cq_event(r->comp, &cq, &priv))
			ibv_ack_cq_events(cq, 1);
		r->armed = false;
	}
	if (!r->cq || (r->armed && !r->dirty))
		return 0;
	err = ibv_req_notify_cq(r->cq, 0);
	if (err)
		return ibtrs_rdma_break(r, -err);
	r->armed = true;
	r->dirty = false;
	return 0;
}

static void rdma_turn(struct ibtrs_qp *qp, bool again)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	r->looked = false;
	r->again = again;
}

/*
 * Must the turn look at the descriptors, which takes system calls? Not if it had something, and the
 * owner comes again: an armed channel has reported that, or will report what comes.
 */
static bool rdma_must_look(const struct ibtrs_rdma *r)
{
	return !r->looked && !(r->again && r->armed && r->nr_due);
}

static int rdma_poll(struct ibtrs_qp *qp, struct ibtrs_wc *wc)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);
	int n;

	if (r->asked) {
		r->asked = false;
		*wc = (struct ibtrs_wc){
			.op = IBTRS_FRAME_REQ, .len = r->priv_len, .data = r->priv,
		};
		return 1;
	}
	while (!qp->err) {
		n = r->cq ? rdma_completion(r, wc) : 0;
		if (n)
			return n;
		/* Events come behind what arrived before them. */
		if (rdma_must_look(r)) {
			rdma_look(r);
			continue;
		}
		if (!r->cm_ready)
			return rdma_post_due(r);
		r->cm_ready = false;
		r->looked = false;
		n = ibtrs_rdma_cm_event(r, wc);
		if (n)
			return n;
	}
	return qp->err;
}

/* ---- making and unmaking ------------------------------------------------ */

static int rdma_cq_create(struct ibtrs_rdma *r, u32 nr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = IBTRS_RDMA_FD_CQ };

	r->comp = ibv_create_comp_channel(r->id->verbs);
	if (!r->comp)
		return ibtrs_rdma_break(r, -errno);
	fcntl(r->comp->fd, F_SETFL, fcntl(r->comp->fd, F_GETFL) | O_NONBLOCK);
	if (epoll_ctl(r->ep, EPOLL_CTL_ADD, r->comp->fd, &ev))
		return ibtrs_rdma_break(r, -errno);
	r->cq = ibv_create_cq(r->id->verbs, (int)nr, NULL, r->comp, 0);
	return r->cq ? 0 : ibtrs_rdma_break(r, -errno);
}

/*
 * Events of a port are read once for each context, and the application may read those of the one
 * that librdmacm shares. Without a context of its own the connection still has heartbeats.
 */
static void rdma_port_watch(struct ibtrs_rdma *r)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = IBTRS_RDMA_FD_PORT };
	int fd;

	r->port = ibv_open_device(r->id->verbs->device);
	if (!r->port)
		return;
	fd = r->port->async_fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	epoll_ctl(r->ep, EPOLL_CTL_ADD, fd, &ev);
}

static int rdma_pd_get(struct ibtrs_rdma *r)
{
	r->pd = r->qp.beside ? ibtrs_rdma_of(r->qp.beside)->pd : calloc(1, sizeof(*r->pd));
	if (!r->pd)
		return ibtrs_rdma_break(r, -ENOMEM);
	if (!r->pd->refs++)
		r->pd->pd = ibv_alloc_pd(r->id->verbs);
	return r->pd->pd ? 0 : ibtrs_rdma_break(r, errno ? -errno : -ENOMEM);
}

/* Its QPs and the memory in it are gone. */
static void rdma_pd_put(struct ibtrs_rdma_pd *pd)
{
	if (!pd || --pd->refs)
		return;
	if (pd->pd)
		ibv_dealloc_pd(pd->pd);
	free(pd);
}

int ibtrs_rdma_qp_create(struct ibtrs_rdma *r, bool server)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct ibv_sge first;
	u32 send;
	int err;

	err = ibv_query_device(r->id->verbs, &dev);
	if (err)
		return ibtrs_rdma_break(r, -err);
	r->nr_recv = r->depth ? r->depth + RDMA_SLACK : RDMA_SERVICE;
	r->recv_len = RDMA_RECV;
	if (r->qp.talks) {
		r->nr_recv = IBTRS_AUTH_MSGS;
		r->recv_len = IBTRS_AUTH_MSG_MAX;
	}
	send = r->nr_recv;
	if (r->nr_recv >= (u32)dev.max_qp_wr || 2 * send + 3 > (u32)dev.max_cqe)
		return ibtrs_qp_break(&r->qp, -ENOSPC,
				      "more requests at a time than the RDMA device has room for");
	err = rdma_cq_create(r, send + r->nr_recv + 3);
	if (!err)
		err = rdma_pd_get(r);
	if (err)
		return err;
	attr.send_cq = r->cq;
	attr.recv_cq = r->cq;
	attr.cap = (struct ibv_qp_cap){
		.max_send_wr = send + 1, .max_recv_wr = r->nr_recv + 2,
		.max_send_sge = IBTRS_RDMA_SGES, .max_recv_sge = 1,
	};
	if (rdma_create_qp(r->id, r->pd->pd, &attr))
		return ibtrs_rdma_break(r, -errno);
	r->sq_free = send;
	r->due = calloc(r->nr_recv, sizeof(*r->due));
	if (!r->due)
		return ibtrs_rdma_break(r, -ENOMEM);
	err = ibtrs_rdma_area_new(r, &r->msgs, RDMA_SMALL + (size_t)r->nr_recv * r->recv_len);
	if (err)
		return err;
	if (r->qp.talks)
		return rdma_post_recvs(r, NULL, r->nr_recv);
	first = ibtrs_rdma_area_sge(&r->msgs, IBTRS_RECV_LEN, IBTRS_RECV_LEN);
	if (server)
		return rdma_post_first(r, first);
	if (r->depth)
		return rdma_post_recvs(r, NULL, r->nr_recv);
	/* A client's service connection has to know first how long INFO_RSP may be. */
	rdma_port_watch(r);
	return 0;
}

static int rdma_watch(struct ibtrs_qp *qp, int ep, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	if (r->set >= 0)
		epoll_ctl(r->set, EPOLL_CTL_DEL, r->ep, NULL);
	r->set = ep;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, r->ep, &ev)) {
		r->set = -1;
		return ibtrs_rdma_break(r, -errno);
	}
	return 0;
}

/*
 * Tells the peer, and takes the QP to its end: when the last work requests have come back nothing
 * is sent or written any more. Return: false: that is not sure.
 */
static bool rdma_drain(struct ibtrs_rdma *r)
{
	struct ibv_qp_attr end = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr send = { .wr_id = RDMA_LAST, .opcode = IBV_WR_RDMA_WRITE,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = RDMA_LAST }, *bad_recv;
	u64 begun = ibtrs_user_clock_us();
	struct ibv_wc wc;
	int n, left = 2;
	bool posted;

	/* Before the end: soft-RoCE does not look at what a program posts later. */
	posted = !ibv_post_recv(r->id->qp, &recv, &bad_recv) &&
		 !ibv_post_send(r->id->qp, &send, &bad_send);
	rdma_disconnect(r->id);
	if (!posted || ibv_modify_qp(r->id->qp, &end, IBV_QP_STATE))
		return false;
	while (left && ibtrs_user_clock_us() - begun < RDMA_DRAIN_US) {
		n = ibv_poll_cq(r->cq, 1, &wc);
		if (n < 0)
			return false;
		if (!n)
			usleep(50);
		else if (wc.wr_id == RDMA_LAST)
			left--;
	}
	return !left;
}

static void rdma_destroy(struct ibtrs_rdma *r)
{
	if (r->id && r->id->qp)
		rdma_destroy_qp(r->id);
	if (r->cq)
		ibv_destroy_cq(r->cq);
	r->cq = NULL;
	if (r->comp)
		ibv_destroy_comp_channel(r->comp);
	r->comp = NULL;
}

/*
 * Requests wait for this before they move to another path, so the QP is destroyed later if that is
 * possible: soft-RoCE takes seconds for it when packets wait at a port that has lost its link.
 */
static void rdma_close(struct ibtrs_qp *qp)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	if (r->ep >= 0 && (r->state != IBTRS_RDMA_UP || !rdma_drain(r)))
		rdma_destroy(r);
	ibtrs_rdma_area_free(&r->msgs);
	ibtrs_rdma_area_free(&r->info);
	ibtrs_rdma_area_free(&r->slots);
	/* A child that was forked may have it: then close() does not take it out of the set. */
	if (r->set >= 0)
		epoll_ctl(r->set, EPOLL_CTL_DEL, r->ep, NULL);
	if (r->ep >= 0)
		close(r->ep);
	r->set = -1;
	r->ep = -1;
	if (r->port)
		ibv_close_device(r->port);
	r->port = NULL;
	ibtrs_qp_end(qp);
}

static void rdma_free(struct ibtrs_qp *qp)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	rdma_destroy(r);
	rdma_pd_put(r->pd);
	if (r->id)
		rdma_destroy_id(r->id);
	if (r->channel)
		rdma_destroy_event_channel(r->channel);
	free(r->due);
	free(r);
}

const struct ibtrs_verbs ibtrs_rdma_verbs = {
	.packets	= true,
	.watch		= rdma_watch,
	.flush		= ibtrs_rdma_flush,
	.turn		= rdma_turn,
	.poll		= rdma_poll,
	.expect		= rdma_expect,
	.slots		= ibtrs_rdma_slots,
	.expose		= ibtrs_rdma_expose,
	.conceal	= ibtrs_rdma_conceal,
	.own		= ibtrs_rdma_own,
	.check		= ibtrs_rdma_check,
	.reg		= ibtrs_rdma_reg,
	.dereg		= ibtrs_rdma_dereg,
	.ends		= ibtrs_rdma_ends,
	.close		= rdma_close,
	.free		= rdma_free,
};
