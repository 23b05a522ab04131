// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * A server: listening, the loop, timers. The thread that polls it drives it; there is no thread of
 * its own, and none between the socket and the one that executes a request.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibtrs/logic/beat.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/user/rdma.h"
#include "ibtrs/user/sock.h"
#include "ibtrs/user/srv.h"
#include "ibtrs/user/stream.h"

#define SRV_DEPTH	128
#define SRV_IO_SIZE	126976
#define SRV_HB_MS	1000
#define SRV_HB_MISSES	5
#define SRV_EVENTS	16

/* ---- connections -------------------------------------------------------- */

/* The client's address, without its port; sockets of this host are all one client. */
static void srv_peer(int fd, char peer[IBTRS_ADDR_STR_MAX])
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	snprintf(peer, IBTRS_ADDR_STR_MAX, "local");
	if (!getpeername(fd, (struct sockaddr *)&from, &len))
		ibtrs_place_peer((struct sockaddr *)&from, peer);
}

/* The lock is held. Owns @qp in any case; NULL: there was no memory for it. */
static struct ibtrs_srv_conn *srv_add(struct ibtrs_srv *srv, struct ibtrs_qp *qp, const char *peer)
{
	struct ibtrs_srv_conn *conn = NULL;
	bool known;

	if (qp && !ibtrs_srv_quota_conn(srv, peer, &known))
		conn = calloc(1, sizeof(*conn));
	if (!conn) {
		if (qp) {
			qp->verbs->close(qp);
			qp->verbs->free(qp);
		}
		return NULL;
	}
	conn->kind = IBTRS_SRV_CONN;
	conn->srv = srv;
	conn->known = known;
	conn->due = ibtrs_srv_now(srv) + IBTRS_SRV_HALF_MS / 2;
	snprintf(conn->peer, sizeof(conn->peer), "%s", peer);
	conn->qp = qp;
	conn->next = srv->conns;
	srv->conns = conn;
	if (qp->verbs->watch(qp, srv->ep, conn))
		ibtrs_srv_conn_kill(conn);
	return conn;
}

static int srv_add_socket(struct ibtrs_srv *srv, int fd)
{
	char peer[IBTRS_ADDR_STR_MAX];
	struct ibtrs_srv_conn *conn;

	srv_peer(fd, peer);
	conn = srv_add(srv, ibtrs_stream_take(fd, ibtrs_srv_tls_keys, srv), peer);
	if (!conn)
		return -ENOMEM;
	return conn->dead ? conn->qp->err : 0;
}

int ibtrs_srv_take(struct ibtrs_srv *srv, int fd)
{
	int err;

	pthread_mutex_lock(&srv->lock);
	err = srv_add_socket(srv, fd);
	/* A thread that sleeps must see when its CONN_REQ is due. */
	ibtrs_user_signal(srv->wake);
	pthread_mutex_unlock(&srv->lock);
	return err;
}

static void srv_accept(struct ibtrs_srv *srv, const struct ibtrs_srv_listener *l)
{
	int fd, one = 1;

	fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	if (l->place.family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ibtrs_sock_patience(fd, srv->opts.hb_ms, srv->opts.hb_misses);
	srv_add_socket(srv, fd);
}

static void srv_conn_fail(struct ibtrs_srv_conn *conn)
{
	if (conn->path)
		ibtrs_srv_path_close(conn->srv, conn->path);
	else
		ibtrs_srv_conn_kill(conn);
}

static void srv_conn_event(struct ibtrs_srv_conn *conn)
{
	struct ibtrs_wc wc;
	int n = 1;

	conn->qp->verbs->turn(conn->qp, false);
	conn->qp->verbs->flush(conn->qp);
	while (!conn->dead && n > 0) {
		n = conn->qp->verbs->poll(conn->qp, &wc);
		if (n > 0 && conn->path)
			ibtrs_srv_rx(conn, &wc);
		else if (n > 0 && conn->knock)
			ibtrs_srv_knock_message(conn, &wc);
		else if (n > 0)
			ibtrs_srv_admit(conn, &wc);
		else if (n < 0)
			srv_conn_fail(conn);
	}
}

/* An adapter brings the CONN_REQ with the connection: nothing more will be reported for it. */
static void srv_accept_rdma(struct ibtrs_srv *srv, const struct ibtrs_srv_listener *l)
{
	char peer[IBTRS_ADDR_STR_MAX];
	struct ibtrs_srv_conn *conn;
	struct ibtrs_qp *qp;

	qp = srv->rdma->accept(l->rdma, srv->limits.queue_depth, peer);
	conn = qp ? srv_add(srv, qp, peer) : NULL;
	if (conn && !conn->dead)
		srv_conn_event(conn);
}

static void srv_listener_event(struct ibtrs_srv *srv, const struct ibtrs_srv_listener *l)
{
	if (l->rdma)
		srv_accept_rdma(srv, l);
	else
		srv_accept(srv, l);
}

/* ---- timers ------------------------------------------------------------- */

static void srv_path_timer(struct ibtrs_srv *srv, struct ibtrs_srv_path *path, u64 now)
{
	const struct ibtrs_limits *l = &path->limits;
	bool seen = path->seen;
	u32 cid;

	if (path->state != IBTRS_SRV_PATH_UP) {
		if (path->state == IBTRS_SRV_PATH_CONNECTING)
			ibtrs_srv_refused(srv, path->peer,
					  "the client did not complete the handshake in time");
		ibtrs_srv_path_close(srv, path);
		return;
	}
	path->seen = false;
	path->due = now + srv->opts.hb_ms;
	switch (ibtrs_beat_tick(&path->missed, seen, srv->opts.hb_misses)) {
	case IBTRS_BEAT_DEAD:
		ibtrs_srv_path_close(srv, path);
		break;
	case IBTRS_BEAT_SEND:
		ibtrs_srv_hb_send(path->conns[0]);
		break;
	case IBTRS_BEAT_QUIET:
		break;
	}
	/* Heartbeats go over the first connection, and say nothing of the others. */
	for (cid = 1; cid < path->nr_conns && path->state == IBTRS_SRV_PATH_UP; cid++)
		if (ibtrs_qp_check(path->conns[cid]->qp, srv->opts.hb_misses, l->max_io_size))
			ibtrs_srv_path_close(srv, path);
}

/* Return: when a timer is due next. */
static u64 srv_timers(struct ibtrs_srv *srv, u64 now)
{
	struct ibtrs_srv_session *s;
	struct ibtrs_srv_conn *conn;
	struct ibtrs_srv_path *path;
	u64 due = U64_MAX;

	for (s = srv->sessions; s; s = s->next) {
		for (path = s->paths; path; path = path->next) {
			if (path->due && path->due <= now)
				srv_path_timer(srv, path, now);
			if (path->due && path->due < due)
				due = path->due;
		}
	}
	for (conn = srv->conns; conn; conn = conn->next) {
		if (!conn->dead && conn->due && conn->due <= now)
			ibtrs_srv_knock_timer(conn);
		if (!conn->dead && conn->due && conn->due < due)
			due = conn->due;
	}
	return due;
}

/* ---- the loop ----------------------------------------------------------- */

/* The lock is held. Return: milliseconds until a timer is due. */
static int srv_work(struct ibtrs_srv *srv)
{
	struct epoll_event ev[SRV_EVENTS];
	u64 now, due;
	int i, n;

	n = epoll_wait(srv->ep, ev, SRV_EVENTS, 0);
	for (i = 0; i < n; i++) {
		enum ibtrs_srv_kind *kind = ev[i].data.ptr;

		if (ev[i].data.ptr == srv)
			ibtrs_user_settle(srv->wake);
		else if (*kind == IBTRS_SRV_LISTENER)
			srv_listener_event(srv, ev[i].data.ptr);
		else if (!((struct ibtrs_srv_conn *)ev[i].data.ptr)->dead)
			srv_conn_event(ev[i].data.ptr);
	}
	now = ibtrs_srv_now(srv);
	if (now != srv->looked_at || n > 0)
		srv->due = srv_timers(srv, now);
	srv->looked_at = now;
	due = srv->due;
	ibtrs_srv_reap(srv);
	if (due == U64_MAX)
		return -1;
	return due <= now ? 0 : due - now > 60000 ? 60000 : (int)(due - now);
}

static unsigned int srv_take_ready(struct ibtrs_srv *srv, struct ibtrs_op **op, unsigned int max)
{
	struct ibtrs_srv_op *x;
	unsigned int n = 0;

	while (n < max && (x = srv->ready)) {
		srv->ready = x->next;
		if (!srv->ready)
			srv->ready_end = &srv->ready;
		x->state = IBTRS_OP_GIVEN;
		x->awaited = true;
		x->forgettable = false;
		x->path->given++;
		x->path->awaited++;
		op[n++] = &x->op;
	}
	/* For another thread, which may sleep. */
	if (srv->ready)
		ibtrs_user_signal(srv->wake);
	return n;
}

int ibtrs_srv_poll(struct ibtrs_srv *srv, struct ibtrs_op **op, unsigned int max, int timeout_ms)
{
	u64 end = ibtrs_user_end(timeout_ms);
	unsigned int n;
	int ms, err;

	for (;;) {
		pthread_mutex_lock(&srv->lock);
		ms = srv_work(srv);
		n = srv_take_ready(srv, op, max);
		pthread_mutex_unlock(&srv->lock);
		if (n || !timeout_ms)
			return (int)n;
		err = ibtrs_user_sleep(srv->ep, end, ms);
		if (err <= 0)
			return err;
	}
}

int ibtrs_srv_fd(const struct ibtrs_srv *srv)
{
	return srv->ep;
}

struct ibtrs_srv_session *ibtrs_srv_session_of(struct ibtrs_srv *srv, u64 id)
{
	struct ibtrs_srv_session *s = srv->sessions;

	while (s && s->id != id)
		s = s->next;
	return s;
}

unsigned int ibtrs_srv_disconnect(struct ibtrs_srv *srv, uint64_t session, const char *peer)
{
	const struct ibtrs_srv_session *s;
	struct ibtrs_srv_path *path;
	unsigned int n = 0;

	pthread_mutex_lock(&srv->lock);
	s = ibtrs_srv_session_of(srv, session);
	for (path = s ? s->paths : NULL; path; path = path->next) {
		if (path->state != IBTRS_SRV_PATH_UP || (peer && strcmp(path->peer, peer)))
			continue;
		n++;
		ibtrs_srv_path_close(srv, path);
	}
	ibtrs_srv_reap(srv);
	pthread_mutex_unlock(&srv->lock);
	return n;
}

unsigned int ibtrs_srv_peers(struct ibtrs_srv *srv, uint64_t session,
			     void (*each)(void *priv, const char *peer), void *priv)
{
	const struct ibtrs_srv_session *s;
	const struct ibtrs_srv_path *path;
	unsigned int n = 0;

	pthread_mutex_lock(&srv->lock);
	s = ibtrs_srv_session_of(srv, session);
	for (path = s ? s->paths : NULL; path; path = path->next) {
		if (path->state != IBTRS_SRV_PATH_UP)
			continue;
		n++;
		if (each)
			each(priv, path->peer);
	}
	pthread_mutex_unlock(&srv->lock);
	return n;
}

static void srv_unlisten(struct ibtrs_srv *srv, struct ibtrs_srv_listener *l)
{
	if (l->rdma)
		srv->rdma->unlisten(l->rdma);
	else if (l->fd >= 0)
		close(l->fd);
	if (l->fd >= 0 && l->place.family == AF_UNIX)
		unlink(l->place.path);
	free(l);
}

/* Return: the port or an error. */
static int srv_bind(struct ibtrs_srv *srv, struct ibtrs_srv_listener *l, const char **why)
{
	int port = 0;

	if (l->place.rdma) {
		l->rdma = srv->rdma->listen(&l->place, &port, why);
		l->fd = l->rdma ? srv->rdma->listen_fd(l->rdma) : -1;
		return port;
	}
	l->fd = ibtrs_place_listen(&l->place, &port);
	*why = l->fd < 0 ? ibtrs_place_words(l->fd, true) : NULL;
	return l->fd < 0 ? l->fd : port;
}

int ibtrs_srv_listen(struct ibtrs_srv *srv, const char *at, char why[IBTRS_WHY_LEN])
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ibtrs_srv_listener *l;
	const char *reason;
	int port, err;

	l = calloc(1, sizeof(*l));
	if (!l)
		return ibtrs_user_why(why, -ENOMEM, at, "no memory");
	l->kind = IBTRS_SRV_LISTENER;
	l->fd = -1;
	err = ibtrs_place_parse(at, &l->place, &reason);
	if (err) {
		srv_unlisten(srv, l);
		return ibtrs_user_why(why, err, at, "%s", reason);
	}
	port = srv_bind(srv, l, &reason);
	ev.data.ptr = l;
	if (port >= 0 && epoll_ctl(srv->ep, EPOLL_CTL_ADD, l->fd, &ev)) {
		port = -errno;
		reason = ibtrs_place_words(port, true);
	}
	if (port < 0) {
		srv_unlisten(srv, l);
		return ibtrs_user_why(why, port, at, "cannot listen there: %s", reason);
	}
	l->place.port = (u16)port;
	pthread_mutex_lock(&srv->lock);
	l->next = srv->listeners;
	srv->listeners = l;
	pthread_mutex_unlock(&srv->lock);
	return port;
}

/* ---- making and unmaking ------------------------------------------------ */

static int srv_options(struct ibtrs_srv *srv, char *why)
{
	struct ibtrs_srv_opts *o = &srv->opts;
	struct ibtrs_limits *l = &srv->limits;

	o->queue_depth = o->queue_depth ?: SRV_DEPTH;
	o->max_io_size = o->max_io_size ?: SRV_IO_SIZE;
	o->hb_ms = o->hb_ms ?: SRV_HB_MS;
	o->hb_misses = o->hb_misses ?: SRV_HB_MISSES;
	srv->keeper.keep_s = o->name_keep_s;
	if (o->queue_depth < 2 || o->queue_depth > IBTRS_MAX_QD)
		return ibtrs_user_why(why, -EINVAL, "server", "queue_depth is 2 to 65535");
	if (o->max_io_size < IBTRS_USER_IO_MIN || o->max_io_size > 1u << 27)
		return ibtrs_user_why(why, -EINVAL, "server", "max_io_size is 4096 to 134217728");
	if (o->auth > IBTRS_SRV_AUTH_REQUIRED || (o->auth && !o->key))
		return ibtrs_user_why(why, -EINVAL, "server",
				      "auth is off, optional or required, and needs keys");
	l->queue_depth = o->queue_depth;
	l->max_io_size = o->max_io_size;
	l->max_hdr_size = IBTRS_HDR_SIZE;
	l->chunk_size = l->max_io_size + l->max_hdr_size;
	if (ibtrs_bits(l->queue_depth) + ibtrs_bits(l->chunk_size) > IBTRS_IMM_PAYLOAD_BITS)
		return ibtrs_user_why(why, -EINVAL, "server",
				      "queue_depth and max_io_size are too large together");
	return 0;
}

int ibtrs_srv_new(const struct ibtrs_srv_opts *o, struct ibtrs_srv **out, char why[IBTRS_WHY_LEN])
{
	struct ibtrs_srv *srv = calloc(1, sizeof(*srv));
	int err;

	if (!srv)
		return ibtrs_user_why(why, -ENOMEM, "server", "no memory");
	pthread_mutex_init(&srv->lock, NULL);
	srv->ready_end = &srv->ready;
	srv->rdma = &ibtrs_rdma;
	srv->ep = -1;
	srv->wake = -1;
	srv->due = U64_MAX;
	err = ibtrs_user_opts(&srv->opts, sizeof(srv->opts), o);
	if (err)
		ibtrs_user_why(why, err, "server", "an option that this library does not know");
	else
		err = srv_options(srv, why);
	if (!err) {
		srv->ep = epoll_create1(EPOLL_CLOEXEC);
		srv->wake = srv->ep < 0 ? -errno : ibtrs_user_eventfd(srv->ep, srv);
		if (srv->wake < 0)
			err = ibtrs_user_why(why, srv->wake, "server", "no epoll set: %s",
					     strerror(-srv->wake));
	}
	if (err)
		ibtrs_srv_free(srv);
	else
		*out = srv;
	return err;
}

int ibtrs_srv_free(struct ibtrs_srv *srv)
{
	struct ibtrs_srv_listener *l;
	struct ibtrs_srv_session *s;
	struct ibtrs_srv_conn *conn;
	struct ibtrs_srv_path *path;
	bool busy;

	if (!srv)
		return 0;
	pthread_mutex_lock(&srv->lock);
	while ((l = srv->listeners)) {
		srv->listeners = l->next;
		srv_unlisten(srv, l);
	}
	for (s = srv->sessions; s; s = s->next)
		for (path = s->paths; path; path = path->next)
			ibtrs_srv_path_close(srv, path);
	for (conn = srv->conns; conn; conn = conn->next)
		if (!conn->dead)
			ibtrs_srv_conn_kill(conn);
	ibtrs_srv_auth_forget_all(srv);
	srv->reap = true;
	ibtrs_srv_reap(srv);
	busy = srv->sessions;
	pthread_mutex_unlock(&srv->lock);
	if (busy)
		return -EBUSY;
	ibtrs_srv_names_free(srv);
	if (srv->wake >= 0)
		close(srv->wake);
	if (srv->ep >= 0)
		close(srv->ep);
	pthread_mutex_destroy(&srv->lock);
	free(srv);
	return 0;
}
