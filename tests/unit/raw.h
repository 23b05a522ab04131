/* SPDX-License-Identifier: GPL-2.0-only */
/* A peer that speaks the stream frame by frame (protocol 12), and need not be right. */
#ifndef TEST_RAW_H
#define TEST_RAW_H

#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/user/frame.h"
#include "user.h"

struct raw {
	int fd;
	struct ibtrs_frame f;	/* the last one that came in */
	uint8_t data[8192 + 64];
};

static void raw_bytes(struct raw *r, const void *data, size_t len)
{
	/* The peer may have gone. */
	if (send(r->fd, data, len, MSG_NOSIGNAL) < 0)
		return;
}

__attribute__((unused))
static void raw_send(struct raw *r, uint16_t op, uint32_t imm, uint32_t key, uint64_t addr,
		     const void *data, uint32_t len)
{
	const struct ibtrs_frame f = {
		.op = op, .imm = imm, .key = key, .addr = addr, .len = len,
	};
	uint8_t head[IBTRS_FRAME_LEN];

	ibtrs_frame_encode(head, &f);
	raw_bytes(r, head, sizeof(head));
	if (len)
		raw_bytes(r, data, len);
}

/* Return: 1: r->f and r->data; 0: nothing; -1: the peer has ended the connection. */
__attribute__((unused))
static int raw_recv(struct raw *r)
{
	uint8_t head[IBTRS_FRAME_LEN];
	ssize_t n = recv(r->fd, head, sizeof(head), 0);

	if (n <= 0)
		return n && errno == EAGAIN ? 0 : -1;
	if (n != sizeof(head))
		abort();
	ibtrs_frame_decode(head, &r->f);
	if (r->f.len > sizeof(r->data))
		abort();
	if (r->f.len && recv(r->fd, r->data, r->f.len, 0) != (ssize_t)r->f.len)
		abort();
	return 1;
}

/* ---- a client without a library ----------------------------------------- */

struct raw_path {
	struct raw r;
	struct ibtrs_srv *srv;
	struct ibtrs_conn_rsp rsp;
	uint32_t key;
	uint32_t chunk;
	uint32_t life;
	unsigned int off_bits;
};

static struct ibtrs_op *raw_poll(struct raw_path *p)
{
	struct ibtrs_op *op = NULL;

	return ibtrs_srv_poll(p->srv, &op, 1, 0) == 1 ? op : NULL;
}

static void raw_dial(struct raw_path *p, struct ibtrs_srv *srv)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) || ibtrs_srv_take(srv, fd[1]))
		abort();
	memset(p, 0, sizeof(*p));
	p->srv = srv;
	p->r.fd = fd[0];
}

/* Sends a CONN_REQ, and turns the server once. Return: what raw_recv() does. */
__attribute__((unused))
static int raw_conn_req(struct raw_path *p, const struct ibtrs_conn_req *m)
{
	struct ibtrs_wire_conn_req w;

	ibtrs_msg_conn_req_encode(&w, m);
	raw_send(&p->r, IBTRS_FRAME_REQ, 0, 0, 0, &w, sizeof(w));
	raw_poll(p);
	return raw_recv(&p->r);
}

/* One connection, let in. */
__attribute__((unused))
static bool raw_path_up(struct raw_path *p, struct ibtrs_srv *srv, uint8_t ext, uint8_t id)
{
	const struct ibtrs_conn_req m = {
		.cid_num = 1, .recon_cnt = 1, .first_conn = true, .ext = ext,
		.path_uuid = { id }, .session_uuid = { id },
	};
	struct ibtrs_wire_info_req info;
	const struct ibtrs_wire_info_rsp *rsp;
	char name[16];

	raw_dial(p, srv);
	if (!CHECK_EQ(raw_conn_req(p, &m), 1) || !CHECK_EQ(p->r.f.op, IBTRS_FRAME_REP) ||
	    !CHECK_EQ(ibtrs_msg_conn_rsp_decode(p->r.data, p->r.f.len, false, true, &p->rsp, NULL),
		      0))
		return false;
	snprintf(name, sizeof(name), "raw%u", id);
	ibtrs_msg_info_req_encode(&info, name);
	raw_send(&p->r, IBTRS_FRAME_SEND, 0, 0, 0, &info, sizeof(info));
	raw_poll(p);
	if (!CHECK_EQ(raw_recv(&p->r), 1) || !CHECK_EQ(p->r.f.op, IBTRS_FRAME_SEND) ||
	    !CHECK_EQ(p->r.f.len, ibtrs_msg_info_rsp_size(1)))
		return false;
	rsp = (const void *)p->r.data;
	p->key = le32_to_cpu(rsp->desc[0].rkey);
	p->life = le32_to_cpu(rsp->life);
	p->chunk = p->rsp.limits.chunk_size;
	p->off_bits = ibtrs_imm_off_bits(p->rsp.limits.queue_depth);
	/* its heart beats at once */
	CHECK_EQ(raw_recv(&p->r), 1);
	CHECK_EQ(p->r.f.imm, 0x80000000);
	return true;
}

__attribute__((unused))
static void raw_path_end(struct raw_path *p)
{
	close(p->r.fd);
	raw_poll(p);
}

#endif
