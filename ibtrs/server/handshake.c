// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handshake's first half (protocol 2.1-2.3, 8.1): CONN_REQ after CONN_REQ until all connections
 * of a path are there. INFO_REQ follows, info.c.
 *
 * Each CONN_REQ is decoded, then judged under ibtrs_srv.lock (admit.c). Then its connection is
 * built under conn->lock alone (hs_accept()). admit.c has taken conn->lock, so the path cannot be
 * freed in between. A refusal is a REJECT with the errno of protocol 2.3.
 *
 * cid 0 comes first and makes the path; the others come in any order.
 */
#include <linux/delay.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/core/key.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/debug.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/session.h"

#define HS_REFUSED_MAX	256

/* ---- addresses ---------------------------------------------------------- */

/* The listener for IPv6 accepts IPv4, too: turn such an address into an IPv4 one. */
static void hs_addr(struct ibtrs_addr *a, const struct sockaddr_storage *ss)
{
	ibtrs_conn_addr(a, ss, &init_net);
	if (a->kind != IBTRS_ADDR_IP6 || !ipv6_addr_v4mapped((const struct in6_addr *)a->raw))
		return;
	a->kind = IBTRS_ADDR_IP4;
	memmove(a->raw, a->raw + 12, 4);
	memset(a->raw + 4, 0, sizeof(a->raw) - 4);
	a->scope[0] = 0;
}

/*
 * Is the client's address that of its GID? The address is in the private data of the REQ, where its
 * sender can write any address. All packets of the connection are sent to the GID, and with RoCE,
 * v1 and v2, the GID is made of the address. InfiniBand has no such rule: there an IP address
 * cannot be checked.
 */
static bool hs_addr_is_gid(const struct rdma_cm_id *id, const struct ibtrs_addr *claimed)
{
	const struct sa_path_rec *rec = id->route.path_rec;
	struct sockaddr_storage ss = { .ss_family = AF_INET6 };
	struct ibtrs_addr gid;

	if (!rec || (rec->rec_type != SA_PATH_REC_TYPE_ROCE_V1 &&
		     rec->rec_type != SA_PATH_REC_TYPE_ROCE_V2))
		return true;
	memcpy(&((struct sockaddr_in6 *)&ss)->sin6_addr, rec->dgid.raw, sizeof(rec->dgid.raw));
	hs_addr(&gid, &ss);
	/* the scope is not compared: it is a name on this host */
	return gid.kind == claimed->kind && !memcmp(gid.raw, claimed->raw, sizeof(gid.raw));
}

/*
 * With InfiniBand the allow-lists may name GIDs, even of paths that are set up by IP address: add
 * the GID.
 */
static void hs_origin(struct ibtrs_origin *from, const struct rdma_cm_id *id,
		      const struct ibtrs_addr *claimed)
{
	const struct sa_path_rec *rec = id->route.path_rec;

	*from = (struct ibtrs_origin){ .addr = *claimed };
	if (!rec || rec->rec_type != SA_PATH_REC_TYPE_IB)
		return;
	from->gid.kind = IBTRS_ADDR_GID;
	memcpy(from->gid.raw, rec->dgid.raw, sizeof(from->gid.raw));
}

/* ---- acceptance: under conn->lock --------------------------------------- */

/* E-5, E-49 */
static int hs_bind_device(struct ibtrs_srv_conn *conn, struct rdma_cm_id *id, const char **why)
{
	struct ibtrs_srv_path *path = conn->path;
	struct ibtrs_dev *dev;

	if (conn->c.cid) {
		*why = "not on the RDMA device of the path's other connections";
		return path->dev && path->dev->ib == id->device ? 0 : -ECONNRESET;
	}
	dev = ibtrs_dev_get(id->device);
	if (IS_ERR(dev))
		return refuse(why, "the RDMA device cannot be used", PTR_ERR(dev));
	path->dev = dev;
	strscpy(path->hca, dev_name(&id->device->dev), sizeof(path->hca));
	path->port = id->port_num;
	return 0;
}

static int hs_build_conn(struct ibtrs_srv_conn *conn, const char **why)
{
	const struct ibtrs_conn_caps caps = {
		.send_wr = ibtrs_srv_path_send_wr(!conn->c.cid),
		.recv_wr = ibtrs_srv_rx_depth(conn) + !conn->c.cid,
		.send_sge = 1,
		.vector = conn->c.cid ? conn->c.cid - 1 : 0,
		.poll = IB_POLL_WORKQUEUE,
	};
	struct ibtrs_srv_path *path = conn->path;
	int err;

	*why = "the RDMA device has no room for the connection: lower the server's sess_queue_depth";
	err = ibtrs_conn_create(&conn->c, path->dev->pd, &caps);
	if (err)
		return err;
	conn->sq_size = atomic_read(&conn->c.sq_free);
	if (conn->c.cid)
		return 0;
	*why = "out of memory";
	return ibtrs_srv_info_expect(path);
}

static int hs_reply_accept(struct ibtrs_srv_conn *conn, const void *req)
{
	struct ibtrs_srv_path *path = conn->path;
	struct ibtrs_wire_conn_rsp wire;
	const struct ibtrs_conn_rsp rsp = { .ext = path->ext, .limits = path->limits };
	struct rdma_conn_param param = {
		.private_data		= &wire,
		.private_data_len	= sizeof(wire),
		.rnr_retry_count	= 7,
	};
	int err;

	ibtrs_msg_conn_rsp_encode(&wire, &rsp);
	if (path->ext & IBTRS_EXT_AUTH) {
		err = ibtrs_auth_rsp_sign(&ibtrs_auth_kernel, path->proof.ks, req, &wire);
		if (err)
			return err;
	}
	rdma_set_ack_timeout(conn->c.id, IBTRS_CONN_ACK_TIMEOUT);
	rdma_set_min_rnr_timer(conn->c.id, IB_RNR_TIMER_000_64);
	return rdma_accept(conn->c.id, &param);
}

/*
 * From here on the path owns the id: if anything fails, the close work destroys the id, after all
 * that needs its device.
 */
static int hs_accept(struct ibtrs_srv_conn *conn, struct rdma_cm_id *id, const void *req,
		     const char **why)
{
	unsigned int s = max(READ_ONCE(ibtrs_srv_params.handshake_timeout_s), 1u);
	struct ibtrs_srv_path *path = conn->path;
	int err;

	lockdep_assert_held(&conn->lock);
	conn->c.id = id;
	id->context = conn;
	err = hs_bind_device(conn, id, why);
	err = err ?: hs_build_conn(conn, why);
	if (err)
		return err;
	/* One deadline for all connections (E-4): a further connection does not extend it. */
	if (!conn->c.cid)
		mod_delayed_work(ibtrs_srv.quick_wq, &path->timer, secs_to_jiffies(s));
	/* INFO_REQ may be there before rdma_accept() returns. */
	atomic_fetch_inc_release(&path->nr_accepted);
	*why = "the connection manager cannot accept";
	return hs_reply_accept(conn, req);
}

/* @ext: what the client offered, or 0 if the client must not be told why. */
static void hs_refuse(struct rdma_cm_id *id, const struct ibtrs_addr *client, u8 ext, int err,
		      const char *why)
{
	struct ibtrs_wire_conn_refused wire;
	char text[IBTRS_ADDR_STR_MAX];

	ibtrs_addr_format(client, text, sizeof(text));
	/*
	 * A client that waits for its old path to drain, or for another path to make its session,
	 * asks ten times a second.
	 */
	if (err == -EBUSY || err == -ENXIO)
		pr_debug_ratelimited("%s: connection refused: %s (%d)\n", text, why, err);
	else if (ibtrs_srv_auth_may_log(IBTRS_SRV_LINE_REFUSED, client))
		pr_warn("%s: connection refused: %s (%d)\n", text, why, err);
	rdma_reject(id, &wire, ibtrs_msg_conn_refused_encode(&wire, err, ext, why),
		    IB_CM_REJ_CONSUMER_DEFINED);
}

/* ---- refusal ------------------------------------------------------------ */

static DEFINE_SPINLOCK(hs_refused_lock);
static struct rdma_cm_id *hs_refused;	/* chained by their contexts */
static unsigned int hs_refused_nr;

static void hs_refused_work(struct work_struct *work)
{
	struct rdma_cm_id *id;

	do {
		scoped_guard(spinlock, &hs_refused_lock) {
			id = hs_refused;
			if (id) {
				hs_refused = id->context;
				hs_refused_nr--;
			}
		}
		if (id)
			rdma_destroy_id(id);
	} while (id);
}
static DECLARE_WORK(hs_refused_destroy, hs_refused_work);

static int hs_refused_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	return 0;
}

/*
 * @id was refused. Its destruction waits until the answer has been sent, and in the handler all
 * other requests would wait for that: in a flood, clients that are let in as well. So a work
 * destroys it. Return: 0, or @err: there are too many, and the connection manager destroys @id.
 */
static int hs_dismiss(struct rdma_cm_id *id, int err)
{
	scoped_guard(spinlock, &hs_refused_lock) {
		if (hs_refused_nr >= HS_REFUSED_MAX)
			return err;
		id->event_handler = hs_refused_event;
		id->context = hs_refused;
		hs_refused = id;
		hs_refused_nr++;
	}
	queue_work(ibtrs_srv.info_wq, &hs_refused_destroy);
	return 0;
}

/* The session has no name yet. */
static int hs_fault(const struct ibtrs_addr_pair *addr, const char **why)
{
	char name[IBTRS_PATH_STR_MAX];

	if (!ibtrs_fault_armed())
		return 0;
	ibtrs_addr_pair_format(addr, name, sizeof(name));
	*why = "failed on demand";
	return ibtrs_fault_wait(IBTRS_FAULT_SRV_CM, "", name);
}

/*
 * Checks a sender before anything is done for it. @err: of the decoding. @ext: what the sender
 * offers; set to 0 for one that is not on the allow-list and sends nonsense, so that it learns no
 * reason.
 */
static int hs_judge(const struct rdma_cm_id *id, const struct ibtrs_addr_pair *addr, int err,
		    u8 *ext, const char **why)
{
	struct ibtrs_origin from;
	bool allowed;

	hs_origin(&from, id, &addr->src);
	allowed = ibtrs_srv.ops->peer_allowed(&from);
	if (err && !allowed)
		*ext = 0;
	if (err)
		return err;
	if (!allowed)
		return refuse(why, "the client's address is not on the allow-list", -EACCES);
	if (!hs_addr_is_gid(id, &addr->src))
		return refuse(why, "the client's address is not that of its GID", -EACCES);
	return hs_fault(addr, why);
}

/* A client wants to prove that it has a key. Not 0: it was refused, and the id has no owner. */
static int hs_knock(struct rdma_cm_id *id, const struct rdma_conn_param *param,
		    const struct ibtrs_addr_pair *addr)
{
	struct ibtrs_srv_knock *k = NULL;
	struct ibtrs_auth_req req;
	const char *why = "";
	int err = 0;

	if (!ibtrs_auth_req_decode(param->private_data, param->private_data_len, &req, &why))
		err = -ECONNRESET;
	err = hs_judge(id, addr, err, &req.ext, &why);
	err = err ?: ibtrs_srv_knock(id, &req, param->private_data, &addr->src, &k, &why);
	if (err)
		hs_refuse(id, &addr->src, req.ext, err, why);
	if (err && k)
		ibtrs_srv_knock_end(k);
	return k ? 0 : err;
}

/* Not 0: it was refused, and the id has no owner. */
static int hs_connect(struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct ibtrs_srv_conn *conn;
	struct ibtrs_addr_pair addr;
	struct ibtrs_conn_req req;
	const char *why = "";
	int err;

	hs_addr(&addr.src, &id->route.addr.dst_addr);
	hs_addr(&addr.dst, &id->route.addr.src_addr);
	if (!ibtrs_srv_plain() && ibtrs_auth_req_is(param->private_data, param->private_data_len))
		return hs_knock(id, param, &addr);
	err = ibtrs_msg_conn_req_decode(param->private_data, param->private_data_len,
					READ_ONCE(ibtrs_srv_params.max_conns), &req, &why);
	if (ibtrs_srv_plain())
		req.ext = 0;
	err = hs_judge(id, &addr, err, &req.ext, &why);
	err = err ?: ibtrs_srv_admit(&req, param->private_data, &addr, &conn, &why);
	if (err) {
		hs_refuse(id, &addr.src, req.ext, err, why);
		return err;
	}
	if (!req.cid)
		hs_origin(&conn->path->from, id, &addr.src);
	err = hs_accept(conn, id, param->private_data, &why);
	if (err) {
		hs_refuse(id, &addr.src, req.ext, err, why);
		ibtrs_srv_path_close(conn->path, why);
	}
	mutex_unlock(&conn->lock);
	return 0;
}

/* Of the listeners and of all connections that come from them. */
static int hs_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct ibtrs_srv_conn *conn = id->context;
	struct ibtrs_fault fault;
	int err;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		err = hs_connect(id, &ev->param.conn);
		return err ? hs_dismiss(id, err) : 0;
	}
	if (!conn)
		return 0;	/* a listener */
	fault = ibtrs_fault_at(IBTRS_FAULT_SRV_CM, conn->path->session->name, conn->path->name);
	if (fault.action == IBTRS_FAULT_ERROR)
		ibtrs_srv_path_close(conn->path, "the connection manager failed on demand");
	else if (fault.action == IBTRS_FAULT_DELAY)
		msleep(fault.ms);
	if (fault.action == IBTRS_FAULT_ERROR || fault.action == IBTRS_FAULT_DROP)
		return 0;
	switch (ev->event) {
	case RDMA_CM_EVENT_DISCONNECTED:
		ibtrs_srv_path_close(conn->path, "the client disconnected");
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ibtrs_srv_path_close(conn->path, rdma_event_msg(ev->event));
		break;
	default:
		break;
	}
	return 0;
}

/*
 * The listeners: IPv6-any, which accepts IPv4 too, and AF_IB for paths given as GIDs (protocol
 * 2.1).
 *
 * Both are wildcards: the connection manager listens on every RDMA device, also on one that is
 * added later, and stops when a device is removed. Each connection on a removed device gets
 * DEVICE_REMOVAL. The close work of its path first frees all that the path has of the device, then
 * the CM ids. The connection manager lets the device go when the last id is destroyed. So this
 * module needs no ib_client of its own.
 *
 * The AF_IB listener may fail: most machines do not need it.
 */

#define LISTEN_BACKLOG	256

static struct rdma_cm_id *listen_ip;
static struct rdma_cm_id *listen_ib;

static struct rdma_cm_id *listen_on(struct sockaddr *addr, enum rdma_ucm_port_space ps)
{
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(&init_net, hs_event, NULL, ps, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	err = rdma_bind_addr(id, addr);
	err = err ?: rdma_listen(id, LISTEN_BACKLOG);
	if (err) {
		rdma_destroy_id(id);
		return ERR_PTR(err);
	}
	return id;
}

static struct rdma_cm_id *listen_on_ip(u16 port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port),
				    .sin6_addr = IN6ADDR_ANY_INIT };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_ANY) };
	struct rdma_cm_id *id;

	id = listen_on((struct sockaddr *)&in6, RDMA_PS_TCP);
	/* Perhaps a kernel without IPv6: try IPv4. */
	if (IS_ERR(id) && PTR_ERR(id) != -EADDRINUSE)
		id = listen_on((struct sockaddr *)&in, RDMA_PS_TCP);
	return id;
}

static struct rdma_cm_id *listen_on_ib(u16 port)
{
	struct sockaddr_ib ib = {
		.sib_family	= AF_IB,
		.sib_pkey	= cpu_to_be16(0xffff),
		.sib_sid	= cpu_to_be64(RDMA_IB_IP_PS_IB | port),
		.sib_sid_mask	= cpu_to_be64(~0ULL),
	};

	return listen_on((struct sockaddr *)&ib, RDMA_PS_IB);
}

int ibtrs_srv_handshake_start(u16 port)
{
	int err;

	listen_ip = listen_on_ip(port);
	err = PTR_ERR_OR_ZERO(listen_ip);
	if (err) {
		pr_err("cannot listen on port %u: %s (%d)\n", port,
		       err == -EADDRINUSE ? "in use, perhaps by rtrs-server" :
					    "refused by the connection manager",
		       err);
		return err;
	}
	listen_ib = listen_on_ib(port);
	if (IS_ERR(listen_ib))
		pr_debug("no listener for GID paths (%ld)\n", PTR_ERR(listen_ib));
	return 0;
}

void ibtrs_srv_handshake_stop(void)
{
	if (!IS_ERR_OR_NULL(listen_ip))
		rdma_destroy_id(listen_ip);
	if (!IS_ERR_OR_NULL(listen_ib))
		rdma_destroy_id(listen_ib);
	listen_ip = NULL;
	listen_ib = NULL;
}
