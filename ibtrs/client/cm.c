// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connection establishment of a path.
 *
 * If the session authenticates, the first connection does only that, in the place of cid 0
 * (auth.c). Then cid 0 connects: its answer brings the limits that the other connections need. Then
 * all others connect at once. Each connection resolves address and route, makes a QP and connects,
 * driven by CM events; the handshake's deadline bounds each phase. Every failure is one
 * ibtrs_clt_path_fail(); the drain work then tears down whatever was built.
 *
 * conn->lock orders a late CM event against the teardown: an event that finds the connection dead
 * builds nothing. Teardown destroys the ids last, which waits for a handler that still runs.
 */
#include <linux/delay.h>
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>
#include <rdma/ib_cm.h>
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"
#include "ibtrs/core/key.h"
#include "ibtrs/proto/imm.h"

/* times IBTRS_CONN_ACK_TIMEOUT: a dead peer is found in 4 s. On soft-RoCE 7 means "for ever" */
#define CM_RETRIES	6
#define CM_SEND_SGE	32
#define CM_SERVICE_WR	128

static int cm_scope(const struct ibtrs_addr *a)
{
	struct net_device *dev;

	if (!a->scope[0])
		return 0;
	guard(rcu)();
	dev = dev_get_by_name_rcu(&init_net, a->scope);
	return dev ? dev->ifindex : -ENODEV;
}

static int cm_sockaddr(const struct ibtrs_addr *a, u16 port, bool src, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_ib *ib = (struct sockaddr_ib *)ss;
	int scope;

	memset(ss, 0, sizeof(*ss));
	switch (a->kind) {
	case IBTRS_ADDR_IP4:
		in->sin_family = AF_INET;
		in->sin_port = htons(src ? 0 : port);
		memcpy(&in->sin_addr, a->raw, 4);
		return 0;
	case IBTRS_ADDR_IP6:
		scope = cm_scope(a);
		if (scope < 0)
			return scope;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(src ? 0 : port);
		in6->sin6_scope_id = scope;
		memcpy(&in6->sin6_addr, a->raw, 16);
		return 0;
	case IBTRS_ADDR_GID:
		ib->sib_family = AF_IB;
		ib->sib_pkey = cpu_to_be16(0xffff);
		ib->sib_sid_mask = cpu_to_be64(~0ULL);
		ib->sib_sid = cpu_to_be64(RDMA_IB_IP_PS_IB | (src ? 0 : port));
		memcpy(&ib->sib_addr, a->raw, 16);
		return 0;
	default:
		return -EINVAL;
	}
}

static struct ibtrs_conn_caps cm_caps(const struct ibtrs_clt_conn *conn)
{
	struct ibtrs_conn_caps caps = {
		.recv_wr	= ibtrs_clt_rx_depth(conn),
		.poll		= conn->polled ? IB_POLL_DIRECT : IB_POLL_SOFTIRQ,
	};

	if (!conn->c.cid) {
		caps.send_wr = CM_SERVICE_WR;
		caps.send_sge = 2;
	} else {
		/* For every slot at once: the request, its REG_MR and its LOCAL_INV. */
		caps.send_wr = 3 * conn->path->limits.queue_depth;
		caps.send_sge = CM_SEND_SGE;
		caps.vector = conn->c.cid - 1;
	}
	return caps;
}

/* The device is known: cid 0 binds the path to it, the other connections must use the same one. */
static int cm_addr_resolved(struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_dev *dev;

	if (!conn->c.cid) {
		dev = ibtrs_dev_get(conn->c.id->device);
		if (IS_ERR(dev))
			return PTR_ERR(dev);
		path->dev = dev;
		ibtrs_clt_port_watch(path, conn->c.id);
	} else if (path->dev->ib != conn->c.id->device) {
		return -EXDEV;
	}
	return rdma_resolve_route(conn->c.id, IBTRS_RETRY_RESOLVE_MS);
}

/*
 * May this path make a session on the server? Not while another path seems to be up. If the server
 * was restarted, that path belongs to the old session, and its requests carry device ids of the old
 * session, which may mean other devices in a new one. So the server refuses this path, until the
 * other path is found dead, too; then the session comes up anew, and its user opens everything
 * again. A path that was never up could lead to a different server. Without may_create it may make
 * a session only if the server knows our extensions: then the user detects a different server by a
 * disk's identity.
 */
static bool cm_may_create(struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt_path *path = conn->path;

	if (ibtrs_clt_is_up(path->clt) || !(path->may_create || READ_ONCE(path->clt->ours)))
		return false;
	return conn->c.cid || ibtrs_clt_turn_take(path);
}

static int cm_connect(struct ibtrs_clt_conn *conn, const void *wire, u8 len)
{
	struct rdma_conn_param param = {
		.private_data		= wire,
		.private_data_len	= len,
		.retry_count		= CM_RETRIES,
		.rnr_retry_count	= 7,
	};

	return rdma_connect_locked(conn->c.id, &param);
}

static int cm_knock(struct ibtrs_clt_conn *conn, const char **why)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_wire_auth_req wire;
	int err;

	ibtrs_clt_dirs_path_route(path, conn->c.id);
	err = ibtrs_clt_auth_prepare(path, &wire, why);
	if (err)
		return err;
	ibtrs_clt_path_await(path, IBTRS_RETRY_FIRST_WORD);
	return cm_connect(conn, &wire, sizeof(wire));
}

static u8 cm_offer(const struct ibtrs_clt_path *path)
{
	return IBTRS_EXT_OFFERED | (ibtrs_clt_auth_wanted(path) ? IBTRS_EXT_AUTH : 0);
}

static int cm_route_resolved(struct ibtrs_clt_conn *conn, const char **why)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_conn_caps caps = cm_caps(conn);
	struct ibtrs_conn_req req = {
		.cid		= conn->c.cid,
		.cid_num	= path->nr_conns,
		.recon_cnt	= path->recon_cnt,
		.ext		= cm_offer(path),
	};
	int err;

	if (!conn->c.cid)
		ibtrs_clt_dirs_path_route(path, conn->c.id);
	*why = "the RDMA device of this host has no queue pair for so many requests, or no memory for it: lower sess_queue_depth of the server";
	err = ibtrs_conn_create(&conn->c, path->dev->pd, &caps);
	if (err)
		return err;
	*why = "connection cannot be set up";
	req.first_conn = cm_may_create(conn);
	memcpy(req.path_uuid, path->uuid, sizeof(req.path_uuid));
	memcpy(req.session_uuid, path->clt->uuid, sizeof(req.session_uuid));
	ibtrs_msg_conn_req_encode(&conn->req, &req);
	if (req.ext & IBTRS_EXT_AUTH)
		err = ibtrs_auth_req_sign(&ibtrs_auth_kernel, path->auth.a.ks, &conn->req);
	if (err)
		return err;
	if (!conn->c.cid) {
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_ASKED);
		ibtrs_clt_path_await(path, IBTRS_RETRY_FIRST_WORD);
	}
	return cm_connect(conn, &conn->req, sizeof(conn->req));
}

static int cm_established(struct ibtrs_clt_conn *conn, const struct rdma_conn_param *param,
			  const char **why)
{
	struct ibtrs_clt_path *path = conn->path;
	struct ibtrs_conn_rsp rsp;
	int err;

	err = ibtrs_msg_conn_rsp_decode(param->private_data, param->private_data_len, false,
					!conn->c.cid, &rsp, why);
	if (err)
		return err;
	if (rsp.err)
		return rsp.err;
	rsp.ext &= cm_offer(path);
	if (ibtrs_clt_auth_wanted(path) &&
	    !(rsp.ext & IBTRS_EXT_AUTH &&
	      ibtrs_auth_rsp_good(&ibtrs_auth_kernel, path->auth.a.ks, &conn->req,
				  param->private_data))) {
		*why = "the server's answer does not carry the proof that it has the key";
		return -EKEYREJECTED;
	}
	if (!conn->c.cid) {
		path->limits = rsp.limits;
		path->limits.fence = rsp.ext & IBTRS_EXT_FENCE;
		path->off_bits = ibtrs_imm_off_bits(rsp.limits.queue_depth);
		path->ext = rsp.ext;
		path->may_create = true;
		if (rsp.ext)
			WRITE_ONCE(path->clt->ours, true);
		ibtrs_clt_path_note(path, IBTRS_RETRY_EV_ANSWERED);
		ibtrs_clt_path_answered(path, IBTRS_CLT_HS_CID0);
	} else if (rsp.ext != path->ext) {
		*why = "connections of one path negotiated different extensions";
		return -EPROTO;
	}
	if (atomic_inc_return(&path->hs.established) == path->nr_conns)
		ibtrs_clt_path_answered(path, IBTRS_CLT_HS_INFO);
	return 0;
}

/* A server that refuses without giving a reason does not know authentication. */
static bool cm_knows_no_auth(const struct ibtrs_clt_conn *conn, const struct ibtrs_conn_rsp *rsp,
			     const char *text)
{
	return !conn->c.cid && ibtrs_clt_auth_due(conn->path) && !text[0] &&
	       rsp->err == -ECONNRESET;
}

static int cm_rejected(struct ibtrs_clt_conn *conn, struct rdma_cm_event *ev, const char **why)
{
	const struct rdma_conn_param *param = &ev->param.conn;
	char text[IBTRS_WORDS_LEN];
	struct ibtrs_conn_rsp rsp;

	if (ev->status == IBTRS_REJ_REASON &&
	    !ibtrs_msg_conn_rsp_decode(param->private_data, param->private_data_len, true,
				       !conn->c.cid, &rsp, why)) {
		if (rsp.err == -ENXIO && ibtrs_clt_turn_early(conn->path)) {
			*why = "another path makes the session at the server first";
			return -EBUSY;
		}
		ibtrs_msg_conn_refused_words(param->private_data, param->private_data_len, text);
		if (cm_knows_no_auth(conn, &rsp, text)) {
			*why = "the server cannot authenticate, it is an in-kernel one or an old one: map without auth=, or with another server";
			return -EKEYREJECTED;
		}
		ibtrs_clt_path_refused(conn->path, rsp.err, text);
		return 0;
	}
	if (ev->status == IB_CM_REJ_INVALID_SERVICE_ID) {
		*why = "the server is not started, or another host serves its group";
		return -ECONNREFUSED;
	}
	*why = rdma_reject_msg(conn->c.id, ev->status);
	return -ECONNRESET;
}

static int cm_event(struct ibtrs_clt_conn *conn, struct rdma_cm_event *ev, const char **why)
{
	*why = rdma_event_msg(ev->event);
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		*why = "RDMA device cannot be used";
		return cm_addr_resolved(conn);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		*why = "connection cannot be set up";
		if (!conn->c.cid && ibtrs_clt_auth_due(conn->path))
			return cm_knock(conn, why);
		return cm_route_resolved(conn, why);
	case RDMA_CM_EVENT_ESTABLISHED:
		*why = "refused answer of the server";
		if (!conn->c.cid && ibtrs_clt_auth_due(conn->path))
			return ibtrs_clt_auth_established(conn->path, &ev->param.conn, why);
		return cm_established(conn, &ev->param.conn, why);
	case RDMA_CM_EVENT_REJECTED:
		return cm_rejected(conn, ev, why);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return ev->status < 0 ? ev->status : -EHOSTUNREACH;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return -ECONNRESET;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	default:
		return 0;
	}
}

/* True: the event must be ignored. */
static bool cm_fault(const struct ibtrs_clt_path *path, int *err, const char **why)
{
	struct ibtrs_fault f = ibtrs_fault_at(IBTRS_FAULT_CLT_CM, path->clt->name, path->name);

	if (f.action == IBTRS_FAULT_DELAY)
		msleep(f.ms);
	*err = f.err;
	*why = "failed on demand";
	return f.action == IBTRS_FAULT_ERROR || f.action == IBTRS_FAULT_DROP;
}

static int cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct ibtrs_clt_conn *conn = id->context;
	const char *why = NULL;
	int err = 0;

	guard(noio)();
	scoped_guard(mutex, &conn->lock)
		if (!conn->dead && !cm_fault(conn->path, &err, &why))
			err = cm_event(conn, ev, &why);
	if (err)
		ibtrs_clt_path_fail(conn->path, err, why);
	return 0;
}

static int cm_resolve(struct ibtrs_clt_conn *conn)
{
	struct ibtrs_clt_path *path = conn->path;
	bool gid = path->addr.dst.kind == IBTRS_ADDR_GID;
	bool has_src = path->addr.src.kind != IBTRS_ADDR_NONE;
	struct sockaddr_storage src, dst;
	struct rdma_cm_id *id;
	int err;

	err = cm_sockaddr(&path->addr.dst, path->clt->opts.dest_port, false, &dst);
	if (!err && has_src)
		err = cm_sockaddr(&path->addr.src, 0, true, &src);
	if (err)
		return err;
	id = rdma_create_id(&init_net, cm_handler, conn, gid ? RDMA_PS_IB : RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->c.id = id;
	err = rdma_set_reuseaddr(id, 1);
	err = err ?: rdma_set_ack_timeout(id, IBTRS_CONN_ACK_TIMEOUT);
	return err   ?:
		       rdma_resolve_addr(id, has_src ? (struct sockaddr *)&src : NULL,
					 (struct sockaddr *)&dst, IBTRS_RETRY_RESOLVE_MS);
}

static int cm_start_one(struct ibtrs_clt_path *path, u32 cid)
{
	struct ibtrs_clt_conn *conn = &path->conns[cid];

	guard(mutex)(&conn->lock);
	conn->path = path;
	conn->c.cid = cid;
	conn->polled = cid > path->clt->nr_irq_conns;
	conn->recv_cqe.done = ibtrs_clt_rx_recv_done;
	conn->send_cqe.done = ibtrs_clt_rx_send_done;
	conn->dead = false;
	return cm_resolve(conn);
}

int ibtrs_clt_cm_start(struct ibtrs_clt_path *path)
{
	path->early = false;
	path->auth.a.state = IBTRS_AUTH_NEW;
	atomic_set(&path->hs.established, 0);
	ibtrs_clt_path_await(path, IBTRS_RETRY_RESOLVE);
	return cm_start_one(path, 0);
}

int ibtrs_clt_cm_restart(struct ibtrs_clt_path *path)
{
	/* The path has no other connection yet. */
	ibtrs_clt_cm_disconnect(path);
	ibtrs_conn_destroy(&path->conns[0].c);
	ibtrs_clt_auth_free(path);
	ibtrs_clt_cm_release(path);
	ibtrs_clt_path_await(path, IBTRS_RETRY_RESOLVE);
	return cm_start_one(path, 0);
}

int ibtrs_clt_cm_start_io(struct ibtrs_clt_path *path)
{
	int err = 0;
	u32 cid;

	ibtrs_clt_path_await(path, IBTRS_RETRY_CONNECT);
	for (cid = 1; cid < path->nr_conns && !err; cid++)
		err = cm_start_one(path, cid);
	return err;
}

void ibtrs_clt_cm_disconnect(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_conn *conn;
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++) {
		conn = &path->conns[cid];
		scoped_guard(mutex, &conn->lock)
			conn->dead = true;
		if (conn->c.id && conn->c.qp)
			rdma_disconnect(conn->c.id);
	}
	for (cid = 0; cid < path->nr_conns; cid++)
		ibtrs_conn_drain(&path->conns[cid].c, path->clt->wq, IBTRS_FAULT_CLT_DRAIN,
				 path->clt->name, path->name);
}

void ibtrs_clt_cm_destroy(struct ibtrs_clt_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++)
		ibtrs_conn_destroy_qp(&path->conns[cid].c);
	synchronize_rcu();	/* law L20 */
	for (cid = 0; cid < path->nr_conns; cid++) {
		ibtrs_conn_destroy(&path->conns[cid].c);
		ibtrs_clt_rx_stop(&path->conns[cid]);
	}
}

void ibtrs_clt_cm_release(struct ibtrs_clt_path *path)
{
	u32 cid;

	ibtrs_clt_port_unwatch(path);
	ibtrs_dev_put(path->dev);
	path->dev = NULL;
	for (cid = 0; cid < path->nr_conns; cid++) {
		struct ibtrs_clt_conn *conn = &path->conns[cid];
		struct rdma_cm_id *id = conn->c.id;

		if (!id)
			continue;
		WRITE_ONCE(conn->c.id, NULL);
		rdma_destroy_id(id);
	}
	/* Up to here the CM could still repeat what the path had sent. */
	ibtrs_clt_turn_end(path, false);
}
