// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The stream: verbs in software over a TCP or Unix socket (protocol 12).
 *
 * Sending: work requests are chained, and a flush hands as many as the socket takes to one
 * sendmsg(). They are not copied, so a work request that is still `posted` must stay as it is. What
 * the socket does not take is sent when epoll says that there is room.
 *
 * Receiving: bytes are read into a small buffer, since frames of answers are short. The payload of
 * a WRITE goes from the socket into the memory that its key names, but for what the buffer has.
 * Key, address and length are checked before the first byte of a payload is taken, and nothing is
 * allocated because a peer says so: a length is compared with the room that there is.
 *
 * The handshake of TLS (sock.c) comes before all that. Flush and poll drive it.
 *
 * Failure: the first one breaks the stream, with a reason; each later call returns the same error.
 */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "ibtrs/user/sock.h"
#include "ibtrs/user/ctx.h"
#include "ibtrs/user/stream.h"

#define OUT_IOVS	64

struct stream {
	struct ibtrs_qp qp;
	struct ibtrs_sock sock;
	int ep;
	void *ep_ptr;
	bool ep_out;
	struct ibtrs_regions slots;	/* of a client: where its answers go */
	void *recv;			/* for a SEND; its length is recv_max */
	u32 recv_max;
	struct ibtrs_frame f;
	u8 *into;			/* where the rest of the payload goes */
	u32 left;
	bool in_frame;
	u32 in_at;
	u32 in_len;
	u32 turn;			/* reads of the socket that are left in this turn */
	u8 recv_room[IBTRS_RECV_LEN];
	u8 in[4096];
};

static struct stream *stream_of(struct ibtrs_qp *qp)
{
	return (struct stream *)qp;
}

static int stream_break(struct stream *s, int err, const char *why)
{
	return ibtrs_qp_break(&s->qp, err, why);
}

/* ---- memory ------------------------------------------------------------- */

/* Return: the key. The last one for @i is void. */
static u32 region_set(struct ibtrs_regions *r, u32 i, void *base, u32 len)
{
	struct ibtrs_region *g = &r->v[i];

	if (!++g->gen)
		g->gen = 1;
	g->base = base;
	g->len = len;
	g->key = (u32)g->gen << 16 | i;
	return g->key;
}

/* Where @len bytes at @addr of @key are; NULL: the peer may not write there. */
static u8 *region_find(const struct ibtrs_regions *r, u32 key, u64 addr, u32 len)
{
	const struct ibtrs_region *g;

	if (!r || !key || (key & 0xffff) >= r->nr)
		return NULL;
	g = &r->v[key & 0xffff];
	if (g->key != key || addr > g->len || len > g->len - addr)
		return NULL;
	return g->base + addr;
}

static int stream_reg(struct ibtrs_qp *qp, struct ibtrs_regions *r, u32 i, void *base, u32 len)
{
	region_set(r, i, base, len);
	return 0;
}

static void stream_dereg(struct ibtrs_region *g)
{
	g->key = 0;
}

static int stream_slots(struct ibtrs_qp *qp, u32 nr, u32 size)
{
	struct stream *s = stream_of(qp);

	s->slots.v = calloc(nr, sizeof(*s->slots.v));
	if (!s->slots.v)
		return ibtrs_qp_break(qp, -ENOMEM, "no memory for its connections");
	s->slots.nr = nr;
	qp->regions = &s->slots;
	return 0;
}

static void stream_expose(struct ibtrs_qp *qp, u32 i, void *data, struct ibtrs_desc *desc)
{
	desc->rkey = region_set(&stream_of(qp)->slots, i, data, desc->len);
}

static void stream_conceal(struct ibtrs_qp *qp, u32 i, void *data, u32 len)
{
	stream_dereg(&stream_of(qp)->slots.v[i]);
}

static int stream_expect(struct ibtrs_qp *qp, void *room, u32 len)
{
	struct stream *s = stream_of(qp);

	s->recv = room ?: s->recv_room;
	s->recv_max = room ? len : sizeof(s->recv_room);
	return 0;
}

/* ---- sending ------------------------------------------------------------ */

static bool stream_shakes(const struct stream *s)
{
	return s->sock.tls && !ibtrs_tls_up(s->sock.tls);
}

/* A handshake says what it waits for; what is posted waits for its end. */
static bool stream_wants_out(const struct stream *s)
{
	return stream_shakes(s) ? ibtrs_tls_wants_out(s->sock.tls) : !!s->qp.out;
}

static int stream_watch(struct ibtrs_qp *qp, int ep, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };
	struct stream *s = stream_of(qp);

	if (s->ep >= 0)
		epoll_ctl(s->ep, EPOLL_CTL_DEL, s->sock.fd, NULL);
	s->ep = ep;
	s->ep_ptr = ptr;
	s->ep_out = stream_wants_out(s);
	if (s->ep_out)
		ev.events |= EPOLLOUT;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, s->sock.fd, &ev)) {
		s->ep = -1;
		return stream_break(s, -errno, "the socket cannot be watched");
	}
	return 0;
}

/* Asks epoll for room to send only while there is something to be sent. */
static void stream_watch_out(struct stream *s)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s->ep_ptr };

	if (s->ep < 0 || s->ep_out == stream_wants_out(s))
		return;
	s->ep_out = !s->ep_out;
	if (s->ep_out)
		ev.events |= EPOLLOUT;
	epoll_ctl(s->ep, EPOLL_CTL_MOD, s->sock.fd, &ev);
}

/* May frames be sent and received? Return: 1, 0: not yet, or an error. */
static int stream_ready(struct stream *s)
{
	const char *why = NULL;
	int n;

	if (s->qp.err || (!s->sock.ask && !stream_shakes(s)))
		return s->qp.err ?: 1;
	n = ibtrs_sock_ready(&s->sock, &why);
	if (n < 0)
		return stream_break(s, n, why);
	s->qp.bare = s->sock.bare;
	stream_watch_out(s);
	return n;
}

/* @n bytes have been sent. */
static void stream_sent(struct stream *s, size_t n)
{
	struct ibtrs_wr *wr;

	while ((wr = s->qp.out)) {
		struct iovec *v = &wr->iov[wr->at];

		if (n < v->iov_len) {
			v->iov_base = (u8 *)v->iov_base + n;
			v->iov_len -= n;
			return;
		}
		n -= v->iov_len;
		if (++wr->at < wr->nr)
			continue;
		ibtrs_qp_taken(&s->qp);
	}
}

static int stream_flush(struct ibtrs_qp *qp)
{
	struct stream *s = stream_of(qp);
	ssize_t n = stream_ready(s);

	while (s->qp.out && n > 0) {
		struct iovec iov[OUT_IOVS];
		const char *why = NULL;
		struct ibtrs_wr *wr;
		u32 nr = 0, i;

		for (wr = s->qp.out; wr; wr = wr->next)
			for (i = wr->at; i < wr->nr && nr < OUT_IOVS; i++)
				iov[nr++] = wr->iov[i];
		n = ibtrs_sock_send(&s->sock, iov, nr, &why);
		if (n > 0)
			stream_sent(s, n);
		else if (n < 0)
			stream_break(s, (int)n, why);
	}
	if (s->qp.err)
		return s->qp.err;
	stream_watch_out(s);
	return 0;
}

/* ---- receiving ---------------------------------------------------------- */

/*
 * Up to @len bytes to @to; @to may be the buffer itself. Return: how many, 0: none are there, or an
 * error.
 */
static ssize_t stream_recv(struct stream *s, void *to, size_t len)
{
	const char *why;
	ssize_t n = stream_ready(s);

	if (n <= 0 || (!s->turn && !(s->sock.tls && ibtrs_tls_pending(s->sock.tls))))
		return n < 0 ? n : 0;
	s->turn -= !!s->turn;
	n = ibtrs_sock_recv(&s->sock, to, len, &why);
	if (n >= 0)
		return n;
	return stream_break(s, (int)n, why ?: s->in_frame || s->in_at < s->in_len ?
				       "the peer ended the connection within a frame" :
				       "the peer ended the connection");
}

/* Room for the payload of s->f, or why there is none. */
static int stream_begin(struct stream *s)
{
	const struct ibtrs_frame *f = &s->f;

	s->left = f->len;
	switch (f->op) {
	case IBTRS_FRAME_REQ:
	case IBTRS_FRAME_REP:
	case IBTRS_FRAME_REJ:
	case IBTRS_FRAME_SEND:
	case IBTRS_FRAME_SEND_IMM:
	case IBTRS_FRAME_SEND_INV:
	case IBTRS_FRAME_WHERE:
		if (f->len > s->recv_max)
			return stream_break(s, -EPROTO, "a message is longer than allowed");
		s->into = s->recv;
		return 0;
	case IBTRS_FRAME_WRITE:
	case IBTRS_FRAME_WRITE_IMM:
		/* As with RDMA: nothing is written, so no key is needed. */
		s->into = f->len ? region_find(s->qp.regions, f->key, f->addr, f->len) : s->recv;
		if (!s->into)
			return stream_break(s, -EACCES,
						  "the peer wrote outside of the memory it was given");
		return 0;
	}
	return stream_break(s, -EPROTO, "a frame of an unknown kind");
}

/* Fills the buffer until it has a frame. Return: 1, 0 or an error. */
static int stream_head(struct stream *s)
{
	while (s->in_len - s->in_at < IBTRS_FRAME_LEN) {
		ssize_t n;

		memmove(s->in, s->in + s->in_at, s->in_len - s->in_at);
		s->in_len -= s->in_at;
		s->in_at = 0;
		n = stream_recv(s, s->in + s->in_len, sizeof(s->in) - s->in_len);
		if (n <= 0)
			return (int)n;
		s->in_len += n;
	}
	ibtrs_frame_decode(s->in + s->in_at, &s->f);
	s->in_at += IBTRS_FRAME_LEN;
	s->in_frame = true;
	return stream_begin(s) ?: 1;
}

/* Takes what there is of the payload. Return: 1: all of it, 0 or an error. */
static int stream_payload(struct stream *s)
{
	while (s->left) {
		u32 has = s->in_len - s->in_at;
		ssize_t n = has < s->left ? has : s->left;

		if (n) {
			memcpy(s->into, s->in + s->in_at, n);
			s->in_at += n;
		} else {
			n = stream_recv(s, s->into, s->left);
			if (n <= 0)
				return (int)n;
		}
		s->into += n;
		s->left -= n;
	}
	s->in_frame = false;
	return 1;
}

static int stream_poll(struct ibtrs_qp *qp, struct ibtrs_wc *wc)
{
	struct stream *s = stream_of(qp);
	int err;

	do {
		if (s->qp.err)
			return s->qp.err;
		if (!s->in_frame) {
			err = stream_head(s);
			if (err <= 0)
				return err;
		}
		err = stream_payload(s);
		if (err <= 0)
			return err;
	} while (s->f.op == IBTRS_FRAME_WRITE);
	wc->op = s->f.op;
	wc->imm = s->f.imm;
	wc->len = s->f.len;
	wc->data = s->recv;
	return 1;
}

static void stream_turn(struct ibtrs_qp *qp, bool again)
{
	stream_of(qp)->turn = 256;
}

/* ---- making and unmaking ------------------------------------------------ */

/*
 * Of IP: where the packets go, as with a GID of RoCE. A Unix socket has zeros at both ends; it does
 * not leave the host.
 */
static bool stream_ends(struct ibtrs_qp *qp, u8 own[IBTRS_GID_LEN], u8 peer[IBTRS_GID_LEN])
{
	int (*const name[])(int fd, struct sockaddr *at, socklen_t *len) = {
		getsockname, getpeername,
	};
	u8 *const to[] = { own, peer };
	struct sockaddr_storage at;
	socklen_t len;
	int i;

	for (i = 0; i < 2; i++) {
		len = sizeof(at);
		if (name[i](stream_of(qp)->sock.fd, (struct sockaddr *)&at, &len))
			return false;
		ibtrs_place_gid((struct sockaddr *)&at, to[i]);
	}
	return true;
}

static void stream_close(struct ibtrs_qp *qp)
{
	struct stream *s = stream_of(qp);

	/* There may be another descriptor of the socket: then it would stay in the set. */
	if (s->ep >= 0)
		epoll_ctl(s->ep, EPOLL_CTL_DEL, s->sock.fd, NULL);
	ibtrs_sock_close(&s->sock);
	s->ep = -1;
	ibtrs_qp_end(qp);
}

static void stream_free(struct ibtrs_qp *qp)
{
	ibtrs_tls_free(stream_of(qp)->sock.tls);
	free(stream_of(qp)->slots.v);
	free(qp);
}

static const struct ibtrs_verbs stream_verbs = {
	.watch		= stream_watch,
	.flush		= stream_flush,
	.turn		= stream_turn,
	.poll		= stream_poll,
	.expect		= stream_expect,
	.slots		= stream_slots,
	.expose		= stream_expose,
	.conceal	= stream_conceal,
	.reg		= stream_reg,
	.dereg		= stream_dereg,
	.ends		= stream_ends,
	.close		= stream_close,
	.free		= stream_free,
};

struct ibtrs_qp *ibtrs_stream_new(int fd, struct ibtrs_tls *tls)
{
	struct stream *s = malloc(sizeof(*s));

	if (!s) {
		ibtrs_tls_free(tls);
		close(fd);
		return NULL;
	}
	memset(s, 0, offsetof(struct stream, recv_room));
	ibtrs_qp_init(&s->qp, &stream_verbs);
	s->sock.fd = fd;
	s->sock.tls = tls;
	s->ep = -1;
	stream_expect(&s->qp, NULL, 0);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return &s->qp;
}

struct ibtrs_qp *ibtrs_stream_take(int fd, ibtrs_tls_ask *ask, void *priv)
{
	struct ibtrs_qp *qp = ibtrs_stream_new(fd, NULL);

	if (qp) {
		stream_of(qp)->sock.ask = ask;
		stream_of(qp)->sock.priv = priv;
	}
	return qp;
}
