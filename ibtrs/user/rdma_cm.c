// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * RDMA: connecting, by librdmacm.
 *
 * Each connection has an event channel, so that its owner takes its events and no others.
 * A client resolves address and route, makes its QP, and sends the CONN_REQ that was posted as the
 * private data of the CM's request. A listener hands each request on to a connection with a channel
 * of its own; it makes its QP when it is answered. Nothing here waits: timers are the owner's.
 */
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "ibtrs/user/rdma_qp.h"

#define CM_RESOLVE_MS	2000
#define CM_BACKLOG	128
#define CM_REJ_NOBODY	8		/* no such service */
#define CM_REJ_CONSUMER	28

struct ibtrs_rdma_listener {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

/* An event channel whose reads do not wait; NULL: errno says why. */
static struct rdma_event_channel *cm_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	if (ch) {
		fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK);
		fcntl(ch->fd, F_SETFD, FD_CLOEXEC);
	}
	return ch;
}

static const char *cm_no_channel(int err)
{
	return err == -ENODEV || err == -ENOENT ?
	       "this host has no RDMA: load rdma_ucm and the driver of an adapter, and give /dev/infiniband to a container" :
	       ibtrs_rdma_words(err);
}

/* A connection with a channel and an epoll set; NULL: @err. */
static struct ibtrs_rdma *cm_new(u32 depth, int *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = IBTRS_RDMA_FD_CM };
	struct ibtrs_rdma *r = calloc(1, sizeof(*r));

	*err = -ENOMEM;
	if (!r)
		return NULL;
	ibtrs_qp_init(&r->qp, &ibtrs_rdma_verbs);
	r->depth = depth;
	r->set = -1;
	r->ep = epoll_create1(EPOLL_CLOEXEC);
	r->channel = r->ep < 0 ? NULL : cm_channel();
	if (r->channel && !epoll_ctl(r->ep, EPOLL_CTL_ADD, r->channel->fd, &ev))
		return r;
	*err = errno ? -errno : -ENODEV;
	r->qp.verbs->close(&r->qp);
	r->qp.verbs->free(&r->qp);
	return NULL;
}

static struct ibtrs_qp *cm_connect(const struct ibtrs_place *p, u32 depth, int *err,
				   const char **why)
{
	struct sockaddr_storage to;
	struct ibtrs_rdma *r = cm_new(depth, err);

	ibtrs_place_sockaddr(p, &to);
	*why = cm_no_channel(*err);
	if (!r)
		return NULL;
	if (!rdma_create_id(r->channel, &r->id, r, RDMA_PS_TCP) &&
	    !rdma_resolve_addr(r->id, NULL, (struct sockaddr *)&to, CM_RESOLVE_MS))
		return &r->qp;
	*err = -errno;
	*why = ibtrs_rdma_words(*err);
	r->qp.verbs->close(&r->qp);
	r->qp.verbs->free(&r->qp);
	return NULL;
}

/* ---- events ------------------------------------------------------------- */

/* For ever: a peer may send before there are receives (protocol 2.1). */
static struct rdma_conn_param cm_param(const void *data, u32 len)
{
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = (u8)len,
		.retry_count = 7, .rnr_retry_count = 7,
	};
}

/* The message of a CM: it stands behind its frame. */
static const void *cm_message(const struct ibtrs_wr *wr)
{
	return (const u8 *)wr->iov[0].iov_base + IBTRS_FRAME_LEN;
}

static int cm_call(struct ibtrs_rdma *r, int err)
{
	return err ? ibtrs_qp_break(&r->qp, -errno, ibtrs_rdma_words(-errno)) : 0;
}

static int cm_send_req(struct ibtrs_rdma *r)
{
	const struct ibtrs_wr *wr = r->qp.out;
	struct rdma_conn_param param;
	int err;

	if (!wr)
		return ibtrs_qp_break(&r->qp, -EPROTO, "nothing was posted that asks for it");
	err = ibtrs_rdma_qp_create(r, false);
	if (err)
		return err;
	param = cm_param(cm_message(wr), wr->op[0].f.len);
	r->state = IBTRS_RDMA_CONNECTING;
	err = cm_call(r, rdma_connect(r->id, &param));
	ibtrs_qp_taken(&r->qp);
	return err;
}

int ibtrs_rdma_cm_answer(struct ibtrs_rdma *r, const struct ibtrs_wr *wr)
{
	struct rdma_conn_param param = cm_param(cm_message(wr), wr->op[0].f.len);
	int err;

	if (wr->op[0].f.op == IBTRS_FRAME_REJ)
		return cm_call(r, rdma_reject(r->id, param.private_data, param.private_data_len));
	err = ibtrs_rdma_qp_create(r, true);
	if (err)
		return err;
	r->state = IBTRS_RDMA_UP;
	return cm_call(r, rdma_accept(r->id, &param));
}

static void cm_keep(struct ibtrs_rdma *r, const struct rdma_cm_event *ev)
{
	r->priv_len = ev->param.conn.private_data ? ev->param.conn.private_data_len : 0;
	if (r->priv_len)
		memcpy(r->priv, ev->param.conn.private_data, r->priv_len);
}

static int cm_rejected(struct ibtrs_rdma *r, int reason)
{
	if (reason == CM_REJ_NOBODY)
		return ibtrs_qp_break(&r->qp, -ECONNREFUSED, "nothing listens there");
	return ibtrs_qp_break(&r->qp, -ECONNRESET, "the host refused the connection");
}

static int cm_failed(struct ibtrs_rdma *r, int status)
{
	int err = status < 0 ? status : -ETIMEDOUT;

	return ibtrs_qp_break(&r->qp, err, ibtrs_rdma_words(err));
}

/* Return: 0; a frame that the owner has to see; or why the connection is broken. */
static int cm_handle(struct ibtrs_rdma *r, const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return cm_call(r, rdma_resolve_route(r->id, CM_RESOLVE_MS));
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return cm_send_req(r);
	case RDMA_CM_EVENT_ESTABLISHED:
		if (r->state != IBTRS_RDMA_CONNECTING)
			return 0;
		r->state = IBTRS_RDMA_UP;
		cm_keep(r, ev);
		return IBTRS_FRAME_REP;
	case RDMA_CM_EVENT_REJECTED:
		cm_keep(r, ev);
		if (ev->status == CM_REJ_CONSUMER && r->state == IBTRS_RDMA_CONNECTING)
			return IBTRS_FRAME_REJ;
		return cm_rejected(r, ev->status);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return cm_failed(r, ev->status);
	case RDMA_CM_EVENT_DISCONNECTED:
		return ibtrs_qp_break(&r->qp, -ECONNRESET, "the peer ended the connection");
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ibtrs_qp_break(&r->qp, -ENODEV, "the RDMA device is being removed");
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return ibtrs_qp_break(&r->qp, -ECONNRESET, "the address has moved to another device");
	default:
		return 0;
	}
}

int ibtrs_rdma_cm_event(struct ibtrs_rdma *r, struct ibtrs_wc *wc)
{
	struct rdma_cm_event *ev;
	int n;

	if (rdma_get_cm_event(r->channel, &ev)) {
		if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
			return 0;
		return cm_call(r, -1);
	}
	n = cm_handle(r, ev);
	rdma_ack_cm_event(ev);
	if (n <= 0)
		return n;
	*wc = (struct ibtrs_wc){ .op = (u16)n, .len = r->priv_len, .data = r->priv };
	return 1;
}

/* Known when the route is resolved, or the request has arrived. */
bool ibtrs_rdma_ends(struct ibtrs_qp *qp, u8 own[IBTRS_GID_LEN], u8 peer[IBTRS_GID_LEN])
{
	static const u8 none[IBTRS_GID_LEN];
	const struct rdma_ib_addr *at = &ibtrs_rdma_of(qp)->id->route.addr.addr.ibaddr;

	memcpy(own, at->sgid.raw, IBTRS_GID_LEN);
	memcpy(peer, at->dgid.raw, IBTRS_GID_LEN);
	return memcmp(own, none, IBTRS_GID_LEN) && memcmp(peer, none, IBTRS_GID_LEN);
}

/* ---- a server ----------------------------------------------------------- */

static void cm_unlisten(struct ibtrs_rdma_listener *l)
{
	if (l->id)
		rdma_destroy_id(l->id);
	if (l->channel)
		rdma_destroy_event_channel(l->channel);
	free(l);
}

static struct ibtrs_rdma_listener *cm_listen(const struct ibtrs_place *p, int *port,
					     const char **why)
{
	struct ibtrs_rdma_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage at;

	*port = -ENOMEM;
	*why = "no memory";
	if (!l)
		return NULL;
	ibtrs_place_sockaddr(p, &at);
	l->channel = cm_channel();
	if (!l->channel) {
		*port = errno ? -errno : -ENODEV;
		*why = cm_no_channel(*port);
	} else if (rdma_create_id(l->channel, &l->id, l, RDMA_PS_TCP) ||
		   rdma_bind_addr(l->id, (struct sockaddr *)&at) ||
		   rdma_listen(l->id, CM_BACKLOG)) {
		*port = -errno;
		*why = ibtrs_rdma_words(*port);
	} else {
		*port = be16toh(rdma_get_src_port(l->id));
		return l;
	}
	cm_unlisten(l);
	return NULL;
}

static int cm_listen_fd(const struct ibtrs_rdma_listener *l)
{
	return l->channel->fd;
}

/*
 * With RoCE the GID, which all packets go to, is made of the address, and that is in the private
 * data of the REQ, where its sender can write any. InfiniBand has no such rule. The path has the
 * real GID; what ibtrs_rdma_ends() tells is made of the claim.
 */
static bool cm_is_feigned(struct rdma_cm_id *id)
{
	struct ibv_port_attr port;
	u8 claimed[IBTRS_GID_LEN];

	if (id->verbs->device->transport_type != IBV_TRANSPORT_IB ||
	    ibv_query_port(id->verbs, id->port_num, &port) ||
	    port.link_layer != IBV_LINK_LAYER_ETHERNET || !id->route.num_paths)
		return false;
	ibtrs_place_gid(rdma_get_peer_addr(id), claimed);
	return memcmp(id->route.path_rec->dgid.raw, claimed, IBTRS_GID_LEN);
}

static struct ibtrs_qp *cm_accept(struct ibtrs_rdma_listener *l, u32 depth,
				  char peer[IBTRS_ADDR_STR_MAX])
{
	struct rdma_cm_id *id = NULL;
	struct rdma_cm_event *ev;
	struct ibtrs_rdma *r;
	int err;

	if (rdma_get_cm_event(l->channel, &ev))
		return NULL;
	r = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST ? cm_new(depth, &err) : NULL;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		id = ev->id;
	if (r)
		cm_keep(r, ev);
	rdma_ack_cm_event(ev);
	/* The event must be acknowledged before its id can move, or go. */
	if (!r || rdma_migrate_id(id, r->channel)) {
		if (id)
			rdma_destroy_id(id);
		if (r) {
			r->qp.verbs->close(&r->qp);
			r->qp.verbs->free(&r->qp);
		}
		return NULL;
	}
	snprintf(peer, IBTRS_ADDR_STR_MAX, "unknown");
	ibtrs_place_peer(rdma_get_peer_addr(id), peer);
	r->id = id;
	r->state = IBTRS_RDMA_ASKED;
	r->asked = true;
	r->qp.feigned = cm_is_feigned(id);
	return &r->qp;
}

/* ---- where -------------------------------------------------------------- */

/* An address that no other host has, or that means another one there, leads nobody here. */
static bool cm_is_global(const struct ifaddrs *a, int family)
{
	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || a->ifa_flags & IFF_LOOPBACK)
		return false;
	if (a->ifa_addr->sa_family == AF_INET6)
		return family == AF_INET6 &&
		       !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr);
	return a->ifa_addr->sa_family == AF_INET;
}

/* Binding finds the adapter of an address, or that it has none. */
static bool cm_has_adapter(struct rdma_event_channel *ch, struct sockaddr *at)
{
	struct rdma_cm_id *id;
	bool has;

	if (rdma_create_id(ch, &id, NULL, RDMA_PS_TCP))
		return false;
	has = !rdma_bind_addr(id, at) && id->verbs;
	rdma_destroy_id(id);
	return has;
}

static u32 cm_where(int family, u8 gid[][IBTRS_GID_LEN], u32 max)
{
	struct rdma_event_channel *ch = cm_channel();
	struct ifaddrs *all = NULL, *a;
	u32 n = 0;

	if (ch && !getifaddrs(&all))
		for (a = all; a && n < max; a = a->ifa_next)
			if (cm_is_global(a, family) && cm_has_adapter(ch, a->ifa_addr))
				ibtrs_place_gid(a->ifa_addr, gid[n++]);
	freeifaddrs(all);
	if (ch)
		rdma_destroy_event_channel(ch);
	return n;
}

const struct ibtrs_transport ibtrs_rdma = {
	.connect	= cm_connect,
	.listen		= cm_listen,
	.listen_fd	= cm_listen_fd,
	.unlisten	= cm_unlisten,
	.accept		= cm_accept,
	.where		= cm_where,
};
