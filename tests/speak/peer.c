// SPDX-License-Identifier: GPL-2.0-only
/* Connections of ibnbd-stranger, see peer.h. */
#include <linux/inet.h>
#include <linux/module.h>
#include <net/net_namespace.h>
#include "ibtrs/proto/msg.h"
#include "tests/speak/peer.h"

struct rnd_state stranger_rnd;

void stranger_spoil(u8 *buf, u32 len)
{
	static const u8 odd[] = { 0, 1, 0x7f, 0x80, 0xff };
	u32 n;

	if (len && !any(16)) {
		prandom_bytes_state(&stranger_rnd, buf, len);
		return;
	}
	for (n = 1 + any(3); len && n; n--)
		buf[any(len)] = any(2) ? any(256) : odd[any(ARRAY_SIZE(odd))];
}

static void stranger_gone(struct stranger_conn *s)
{
	WRITE_ONCE(s->gone, true);
	s->len = -ENOTCONN;
	complete(&s->came);
	wake_up(&s->room);
}

static int stranger_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct stranger_conn *s = id->context;

	if (ev->event == RDMA_CM_EVENT_DISCONNECTED || ev->event == RDMA_CM_EVENT_TIMEWAIT_EXIT) {
		stranger_gone(s);
		return 0;
	}
	s->event = ev->event;
	s->priv_len = min_t(size_t, ev->param.conn.private_data_len, sizeof(s->priv));
	if (s->priv_len && ev->param.conn.private_data)
		memcpy(s->priv, ev->param.conn.private_data, s->priv_len);
	complete(&s->told);
	return 0;
}

static int stranger_wait(struct stranger_conn *s, enum rdma_cm_event_type want)
{
	if (!wait_for_completion_timeout(&s->told, msecs_to_jiffies(STRANGER_MS)))
		return -ETIME;
	return s->event == want ? 0 : -EPROTO;
}

void stranger_leave(struct stranger_conn *s)
{
	if (!s->c.id)
		return;
	if (s->c.qp) {
		rdma_disconnect(s->c.id);
		ib_drain_qp(s->c.qp);
	}
	ibtrs_conn_destroy(&s->c);
	ibtrs_iu_free(&s->out);
	ibtrs_iu_free(&s->in);
	ibtrs_dev_put(s->dev);
	rdma_destroy_id(s->c.id);
	memset(s, 0, sizeof(*s));
}

static void stranger_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stranger_conn *s = container_of(cq->cq_context, struct stranger_conn, c);

	if (wc->status != IB_WC_SUCCESS)
		return;
	s->len = wc->byte_len;
	complete(&s->came);
}

static void stranger_sent(struct ib_cq *cq, struct ib_wc *wc)
{
}

int stranger_expect(struct stranger_conn *s)
{
	return ibtrs_iu_post_recv(&s->in, &s->c, s->dev);
}

static int stranger_hear(struct stranger_conn *s)
{
	struct ib_sge sge = { .addr = s->in.dma,
			      .length = STRANGER_ROOM,
			      .lkey = s->dev->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &s->heard, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(s->c.qp, &wr, NULL);
}

/* always_invalidate: the new key of a slot's chunk. Others may overwrite it meanwhile. */
static void stranger_note_key(struct stranger_conn *s)
{
	struct ibtrs_wire_rkey_rsp *rsp = s->in.buf;
	u16 slot;

	ibtrs_iu_sync_cpu(&s->in);
	slot = le16_to_cpu(READ_ONCE(rsp->buf_id));
	if (s->rkey && slot < STRANGER_SLOTS)
		s->rkey[slot] = le32_to_cpu(READ_ONCE(rsp->rkey));
}

static void stranger_heard(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stranger_conn *s = container_of(cq->cq_context, struct stranger_conn, c);

	if (wc->status != IB_WC_SUCCESS) {
		stranger_gone(s);
		return;
	}
	s->answers += !!(wc->wc_flags & IB_WC_WITH_IMM);
	if (wc->opcode == IB_WC_RECV && wc->byte_len == sizeof(struct ibtrs_wire_rkey_rsp))
		stranger_note_key(s);
	if (stranger_hear(s))
		stranger_gone(s);
}

int stranger_listen(struct stranger_conn *s)
{
	int err = 0, i;

	for (i = 0; i < STRANGER_IN && !err; i++)
		err = stranger_hear(s);
	return err;
}

static void stranger_said(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stranger_conn *s = container_of(cq->cq_context, struct stranger_conn, c);

	if (wc->status != IB_WC_SUCCESS)
		stranger_gone(s);
	else
		s->fetched += wc->opcode == IB_WC_RDMA_READ || wc->opcode == IB_WC_FETCH_ADD;
	atomic_dec(&s->outstanding);
	wake_up(&s->room);
}

u8 *stranger_room(struct stranger_conn *s, struct ib_sge *sge)
{
	u32 at = s->next_room++ % STRANGER_OUT * STRANGER_ROOM;

	*sge = (struct ib_sge){ .addr = s->out.dma + at, .lkey = s->dev->pd->local_dma_lkey };
	memset(s->out.buf + at, 0, STRANGER_ROOM);
	return s->out.buf + at;
}

int stranger_post(struct stranger_conn *s, struct ib_send_wr *wr, struct ib_sge *sge)
{
	int err;

	wr->sg_list = sge;
	wr->num_sge = sge && sge->length;
	ibtrs_iu_sync_dev(&s->out);
	wait_event_timeout(s->room, READ_ONCE(s->gone) ||
				    atomic_read(&s->outstanding) < STRANGER_OUT,
			   msecs_to_jiffies(STRANGER_MS));
	if (READ_ONCE(s->gone) || atomic_read(&s->outstanding) >= STRANGER_OUT)
		return -ENOTCONN;
	atomic_inc(&s->outstanding);
	wr->wr_cqe = &s->said;
	wr->send_flags |= IB_SEND_SIGNALED;
	err = ib_post_send(s->c.qp, wr, NULL);
	if (err)
		atomic_dec(&s->outstanding);
	return err;
}

int stranger_post_send(struct stranger_conn *s, struct ib_sge *sge, u32 len, bool with_imm)
{
	struct ib_send_wr wr = { .opcode = with_imm ? IB_WR_SEND_WITH_IMM : IB_WR_SEND };

	if (with_imm)
		wr.ex.imm_data = cpu_to_be32(prandom_u32_state(&stranger_rnd));
	sge->length = len;
	return stranger_post(s, &wr, sge);
}

int stranger_post_imm(struct stranger_conn *s, u32 imm)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
				 .wr.ex.imm_data = cpu_to_be32(imm) };

	return stranger_post(s, &wr.wr, NULL);
}

bool stranger_ended(struct stranger_conn *s, unsigned int ms)
{
	return wait_event_timeout(s->room, READ_ONCE(s->gone), msecs_to_jiffies(ms));
}

static int stranger_resolve(struct stranger_conn *s, const char *to)
{
	struct sockaddr_storage dst;
	int err;

	if (strncmp(to, "ip:", 3) ||
	    inet_pton_with_scope(&init_net, AF_UNSPEC, to + 3, "1234", &dst))
		return -EINVAL;
	err = rdma_resolve_addr(s->c.id, NULL, (struct sockaddr *)&dst, STRANGER_MS);
	err = err ?: stranger_wait(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	err = err ?: rdma_resolve_route(s->c.id, STRANGER_MS);
	return err ?: stranger_wait(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int stranger_build(struct stranger_conn *s)
{
	const struct ibtrs_conn_caps caps = { .send_wr = 2 * STRANGER_OUT,
					      .recv_wr = STRANGER_IN + 2,
					      .send_sge = 1,
					      .poll = IB_POLL_WORKQUEUE };
	int err;

	s->dev = ibtrs_dev_get(s->c.id->device);
	if (IS_ERR(s->dev)) {
		err = PTR_ERR(s->dev);
		s->dev = NULL;
		return err;
	}
	err = ibtrs_conn_create(&s->c, s->dev->pd, &caps);
	err = err ?: ibtrs_iu_init(&s->out, s->dev->ib, STRANGER_OUT * STRANGER_ROOM,
				   DMA_BIDIRECTIONAL, stranger_sent);
	err = err ?: ibtrs_iu_init(&s->in, s->dev->ib, STRANGER_ROOM, DMA_FROM_DEVICE,
				   stranger_received);
	return err ?: stranger_expect(s);
}

int stranger_connect(struct stranger_conn *s, const char *to, const void *priv, u8 len)
{
	struct rdma_conn_param param = { .private_data = priv,
					 .private_data_len = len,
					 .retry_count = 6,
					 .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	int err;

	init_completion(&s->told);
	init_completion(&s->came);
	init_waitqueue_head(&s->room);
	s->said.done = stranger_said;
	s->heard.done = stranger_heard;
	id = rdma_create_id(&init_net, stranger_event, s, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	s->c.id = id;
	err = stranger_resolve(s, to);
	err = err ?: stranger_build(s);
	/* what the connection manager writes into the request; the path has been found already */
	if (s->claim)
		((struct sockaddr_in *)&id->route.addr.src_addr)->sin_addr.s_addr = s->claim;
	err = err ?: rdma_connect(id, &param);
	if (err)
		return err;
	err = stranger_wait(s, RDMA_CM_EVENT_ESTABLISHED);
	return err == -EPROTO && s->event == RDMA_CM_EVENT_REJECTED ? -ECONNREFUSED : err;
}

int stranger_send(struct stranger_conn *s, u32 len)
{
	int err = ibtrs_iu_send(&s->out, &s->c, s->dev, len);

	if (err)
		return err;
	if (!wait_for_completion_timeout(&s->came, msecs_to_jiffies(STRANGER_MS)))
		return -ETIME;
	ibtrs_iu_sync_cpu(&s->in);
	return s->len < 0 ? s->len : 0;
}
