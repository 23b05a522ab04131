// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-lies: a server that says anything.
 *
 *	modprobe ibnbd-lies seed=7 odds=6	one message in six is spoiled, or stands
 *						where none is due; a seed for its numbers
 *	modprobe ibnbd-lies odds=0		all is true
 *	echo 1 > early				but trials: none is answered, and the next time
 *						the path has the answers in the place of INFO_RSP
 *	modprobe ibnbd-lies odds=0 steady=1	one disk of 1 MiB, with the same limits each time
 *	echo 8 > grow				but 8 answers to OPEN say 4 KiB more each, and
 *						each request before brings RESIZED
 *	echo 512 > lacking			but the last 512 bytes of each read do not come
 *	echo 1 > inval				but each read above 8 KiB ends with its key
 *						invalidated, unasked; 2: that is only said
 *	echo 20 > wrong				but the next 20 requests of the operation
 *						wrong_op (255: all) fail with wrong_errno,
 *						and until then each OPEN says 4 KiB more
 *	echo 8193 > depth			but so many slots are granted
 *	cat said				connections, messages, lies, connections that it
 *						proved its key on: how often; and the highest
 *						address at which a client wants data
 *
 * It listens where a server would, has a disk of each name, and keeps none. It shows DEPTH chunks,
 * and answers what it finds in them: with numbers, data, errors, keys and events of its own making.
 * With secret= (64 hex digits) it proves a key of that value, whatever its name, and goes on to lie
 * behind that.
 *
 * Runs in completion works and CM events, one at a time by lies_lock, but for the taking apart of a
 * connection, which waits for both. What a client makes of it is said by
 * tests/cases/trust/server-lies.
 */
#include <linux/hex.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include "ibnbd/proto/msg.h"
#include "ibtrs/core/conn.h"
#include "ibtrs/core/key.h"
#include "ibtrs/logic/auth.h"
#include "ibtrs/proto/auth.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"
#include "tests/speak/lies_disk.h"

#define DEPTH	 16
#define HDR_SIZE SZ_4K
#define CHUNK	 (IO_SIZE + HDR_SIZE)
#define NR_IN	 32
#define NR_OUT	 16
#define ROOM	 SZ_16K
#define IN_ROOM	 512
#define NR_GRANTS 16

static unsigned int seed = 1;
module_param(seed, uint, 0444);
module_param(odds, uint, 0444);
static bool early;
module_param(early, bool, 0644);
static unsigned int inval, depth = DEPTH;
module_param(inval, uint, 0644);
module_param(depth, uint, 0644);
static char *secret = "";
module_param(secret, charp, 0444);

struct lies_conn {
	struct list_head entry;
	struct ibtrs_conn c;
	struct ibtrs_dev *dev;
	struct ibtrs_iu in[NR_IN], out[NR_OUT];
	unsigned int next_out;
	atomic_t outstanding;
	struct ib_cqe cqe;
	struct work_struct end;
	int ending;
	bool is_knock;
	struct ibtrs_conn_req req;
	struct ibtrs_auth auth;
	bool informed;			/* INFO_REQ has come */
	struct ib_mr *mr;
	void *mem;			/* DEPTH chunks */
	u64 dma;
};

static DEFINE_MUTEX(lies_lock);		/* all below, and what is said on any connection */
static LIST_HEAD(lies_conns);
static struct ibtrs_keys keys;
static bool owed;			/* early: trials were not answered */
static unsigned int nr_conns, nr_msgs, nr_proved;
static u64 shown;

/* all connections share a PD: those of a path must; one listener's handler runs at a time */
static struct ibtrs_dev *dev;
static struct workqueue_struct *lies_wq;
static struct rdma_cm_id *listener;

/* ---- saying ------------------------------------------------------------- */

static void lies_end(struct lies_conn *l)
{
	if (!xchg(&l->ending, 1))
		queue_work(lies_wq, &l->end);
}

static void lies_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lies_conn *l = container_of(cq->cq_context, struct lies_conn, c);

	atomic_dec(&l->outstanding);
}

static void lies_post(struct lies_conn *l, struct ib_send_wr *wr)
{
	if (READ_ONCE(l->ending) || atomic_inc_return(&l->outstanding) > 48) {
		atomic_dec(&l->outstanding);
		return;
	}
	wr->wr_cqe = &l->cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	if (ib_post_send(l->c.qp, wr, NULL))
		atomic_dec(&l->outstanding);
	nr_msgs++;
}

static struct ibtrs_iu *lies_out(struct lies_conn *l)
{
	struct ibtrs_iu *iu = &l->out[l->next_out++ % NR_OUT];

	memset(iu->buf, 0, 512);
	return iu;
}

/* With an immediate unless @imm is 0. */
static void lies_send(struct lies_conn *l, struct ibtrs_iu *iu, u32 len, u32 imm)
{
	struct ib_sge sge = { .addr = iu->dma, .length = len, .lkey = l->dev->pd->local_dma_lkey };
	struct ib_send_wr wr = { .sg_list = &sge, .num_sge = !!len, .opcode = IB_WR_SEND };

	if (imm) {
		wr.opcode = IB_WR_SEND_WITH_IMM;
		wr.ex.imm_data = cpu_to_be32(imm);
	}
	ibtrs_iu_sync_dev(iu);
	lies_post(l, &wr);
}

static void lies_imm(struct lies_conn *l, u32 imm)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
				 .wr.ex.imm_data = cpu_to_be32(imm) };

	lies_post(l, &wr.wr);
}

static void lies_invalidate(struct lies_conn *l, u32 rkey)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = rkey };

	lies_post(l, &wr);
}

static void lies_write(struct lies_conn *l, struct ibtrs_iu *iu, const struct ibtrs_desc *d,
		       u32 len, u32 imm)
{
	struct ib_sge sge = { .addr = iu->dma, .length = len, .lkey = l->dev->pd->local_dma_lkey };
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
				 .wr.ex.imm_data = cpu_to_be32(imm),
				 .wr.sg_list = &sge, .wr.num_sge = !!len,
				 .remote_addr = d->addr,
				 .rkey = d->rkey };

	ibtrs_iu_sync_dev(iu);
	if (inval && len > SZ_8K)
		wr.wr.opcode = IB_WR_RDMA_WRITE;
	lies_post(l, &wr.wr);
	if (wr.wr.opcode == IB_WR_RDMA_WRITE) {
		if (inval == 1)
			lies_invalidate(l, d->rkey);
		lies_imm(l, ibtrs_imm_rsp(IBTRS_IMM_IO_RSP_INV, ibtrs_imm_rsp_slot(imm), 0));
	}
}

/* What nobody has asked for. */
static void lies_chatter(struct lies_conn *l, u32 rkey)
{
	struct ibtrs_iu *iu;
	u32 n;

	for (n = any(4); n; n--) {
		switch (any(9)) {
		case 0:
			lies_imm(l, prandom_u32_state(&rnd));
			break;
		case 1:
			lies_imm(l, ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, any(DEPTH + 2),
						  -(int)any(200)));
			break;
		case 2:
			lies_imm(l, ibtrs_imm_rsp(IBTRS_IMM_IO_RSP_INV, any(DEPTH), 0));
			break;
		case 3:
			lies_imm(l, ibtrs_imm_event(any(4), any(4)));
			break;
		case 4:
			lies_imm(l, (u32)IBTRS_IMM_TRIAL << IBTRS_IMM_PAYLOAD_BITS);
			break;
		case 5:
			lies_invalidate(l, rkey ?: prandom_u32_state(&rnd));
			break;
		case 6:
			iu = lies_out(l);
			prandom_bytes_state(&rnd, iu->buf, 512);
			lies_send(l, iu, any(ROOM), any(2) ? prandom_u32_state(&rnd) : 0);
			break;
		case 7:
			lies_imm(l, ibtrs_imm_hb(any(2) ? IBTRS_IMM_HB_MSG : IBTRS_IMM_HB_ACK));
			break;
		default:
			lies_end(l);
		}
	}
}

/* ---- authentication ----------------------------------------------------- */

/* The last who have proved the key. */
static struct lies_grant {
	u8 path_uuid[IBTRS_UUID_LEN];
	u8 ks[IBTRS_KEY_LEN];
} grants[NR_GRANTS];
static unsigned int next_grant;

static void lies_grant(const struct lies_conn *l)
{
	struct lies_grant *g = &grants[next_grant++ % NR_GRANTS];

	memcpy(g->path_uuid, l->req.path_uuid, sizeof(g->path_uuid));
	memcpy(g->ks, l->auth.ks, sizeof(g->ks));
}

/* A connection of a path that has proved the key: its answer has to prove it, too. */
static void lies_prove(const struct lies_conn *l, const void *req, void *rsp)
{
	const struct lies_grant *g;
	unsigned int i;

	if (!(l->req.ext & IBTRS_EXT_AUTH) || chance(8))
		return;
	for (i = 1; i <= NR_GRANTS; i++) {
		g = &grants[(next_grant - i) % NR_GRANTS];
		if (memcmp(g->path_uuid, l->req.path_uuid, sizeof(g->path_uuid)))
			continue;
		ibtrs_auth_rsp_sign(&ibtrs_auth_kernel, g->ks, req, rsp);
		nr_proved++;
		return;
	}
}

static void lies_knock(struct lies_conn *l, struct ibtrs_iu *in, u32 len)
{
	struct ibtrs_iu *iu = lies_out(l);
	u8 nonce[IBTRS_NONCE_LEN];
	const char *why;
	u32 n;

	if (l->auth.state == IBTRS_AUTH_NEW) {
		prandom_bytes_state(&rnd, nonce, sizeof(nonce));
		if (ibtrs_auth_srv_hello(&l->auth, in->buf, len, &why) ||
		    ibtrs_auth_srv_challenge(&l->auth, &ibtrs_auth_kernel, &keys, nonce, iu->buf))
			return;
		n = sizeof(struct ibtrs_wire_auth_challenge);
	} else {
		if (!ibtrs_auth_srv_proof(&l->auth, &ibtrs_auth_kernel, in->buf, len, &why))
			lies_grant(l);
		ibtrs_msg_verdict_encode(iu->buf, IBTRS_MSG_AUTH_VERDICT,
					 chance(2) ? -(int)any(5000) : 0, "\x1b[2J%s%n");
		n = sizeof(struct ibtrs_wire_verdict);
	}
	spoil(iu->buf, n);
	lies_send(l, iu, spoil_len(n, IBTRS_AUTH_MSG_MAX), 0);
	if (chance(2))
		lies_chatter(l, 0);
}

static bool lies_same_path(const struct lies_conn *a, const struct lies_conn *b)
{
	return !memcmp(a->req.path_uuid, b->req.path_uuid, sizeof(a->req.path_uuid));
}

/* ---- requests ----------------------------------------------------------- */

static void lies_request(struct lies_conn *l, u32 imm)
{
	unsigned int bits = ibtrs_imm_off_bits(DEPTH);
	u32 slot = ibtrs_imm_req_slot(imm, bits), off = ibtrs_imm_req_off(imm, bits), n;
	struct ibtrs_limits limits = { .queue_depth = DEPTH, .max_io_size = IO_SIZE,
				       .max_hdr_size = HDR_SIZE, .chunk_size = CHUNK,
				       .fence = l->req.ext & IBTRS_EXT_FENCE };
	struct ibtrs_iu *iu = lies_out(l);
	struct lies_conn *service;
	struct ibtrs_io_hdr h = {};
	const char *why;
	void *chunk = NULL;

	list_for_each_entry(service, &lies_conns, entry) {
		if (!service->mem || !lies_same_path(service, l))
			continue;
		chunk = service->mem + (size_t)slot * CHUNK;
		for (n = 0; grow && n < 8; n++)
			lies_imm(service, ibtrs_imm_event(IBNBD_EVENT_RESIZED, STEADY_ID));
	}
	if (!chunk || slot >= DEPTH || off >= CHUNK ||
	    ibtrs_msg_io_decode(chunk + off, CHUNK - off, off, &limits, &h, &why))
		return;
	shown = max(shown, h.desc.addr);
	if (chance(1))
		lies_chatter(l, h.desc.rkey);
	if (chance(8))
		return;		/* it is never answered */
	imm = ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, slot, chance(2) ? -(int)any(512) : 0);
	if (lies_wrong(chunk + off - h.usr_len, h.usr_len)) {
		imm = ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, slot, -(int)wrong_errno);
		lies_imm(l, imm);
	} else if (!h.has_desc) {
		lies_imm(l, imm);
	} else {
		n = lies_block_answer(chunk + off - h.usr_len, h.usr_len, h.data_len, iu->buf);
		spoil(iu->buf, min_t(u32, n, 256));
		lies_write(l, iu, &h.desc, min_t(u32, spoil_len(n, n + 8), ROOM), imm);
	}
	if (chance(4))
		lies_imm(l, imm);	/* once more */
}

static void lies_trial(struct lies_conn *l)
{
	owed = early;
	if (early)
		lies_end(l);
	else if (!chance(4))
		lies_imm(l, (u32)IBTRS_IMM_TRIAL << IBTRS_IMM_PAYLOAD_BITS);
}

static int lies_show_chunks(struct lies_conn *l)
{
	struct ib_reg_wr wr = { .wr.opcode = IB_WR_REG_MR,
				.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE };
	struct scatterlist sg;

	l->mem = kzalloc(DEPTH * CHUNK, GFP_KERNEL);
	l->mr = ib_alloc_mr(l->dev->pd, IB_MR_TYPE_MEM_REG, DEPTH * CHUNK / SZ_4K);
	if (!l->mem || IS_ERR(l->mr)) {
		l->mr = NULL;
		return -ENOMEM;
	}
	l->dma = ib_dma_map_single(l->dev->ib, l->mem, DEPTH * CHUNK, DMA_BIDIRECTIONAL);
	sg_init_one(&sg, l->mem, DEPTH * CHUNK);
	sg_dma_address(&sg) = l->dma;
	sg_dma_len(&sg) = DEPTH * CHUNK;
	if (ib_map_mr_sg(l->mr, &sg, 1, NULL, SZ_4K) != 1)
		return -EINVAL;
	ib_update_fast_reg_key(l->mr, ib_inc_rkey(l->mr->rkey));
	wr.mr = l->mr;
	wr.key = l->mr->rkey;
	lies_post(l, &wr.wr);
	return 0;
}

static void lies_info(struct lies_conn *l)
{
	u16 nr = any(2) ? 1 : DEPTH, i;
	struct ibtrs_iu *iu = lies_out(l);
	struct ibtrs_desc desc[DEPTH];
	struct lies_conn *io;
	u32 n;

	l->informed = true;
	if (lies_show_chunks(l))
		return;
	for (i = 0; i < nr; i++)
		desc[i] = (struct ibtrs_desc){ .addr = l->mr->iova + (u64)i * CHUNK,
					       .rkey = l->mr->rkey,
					       .len = DEPTH / nr * CHUNK };
	ibtrs_msg_info_rsp_encode(iu->buf, desc, nr, 1);
	n = ibtrs_msg_info_rsp_size(nr);
	if (chance(4)) {
		ibtrs_msg_verdict_encode(iu->buf, IBTRS_MSG_INFO_REFUSED, -(int)any(5000),
					 "\x1b[2J%s%n");
		n = sizeof(struct ibtrs_wire_verdict);
	}
	spoil(iu->buf, n);
	if (owed) {
		list_for_each_entry(io, &lies_conns, entry)
			if (io->req.cid && lies_same_path(io, l))
				lies_imm(io, (u32)IBTRS_IMM_TRIAL << IBTRS_IMM_PAYLOAD_BITS);
		return;
	}
	lies_send(l, iu, spoil_len(n, ROOM), 0);
}

static void lies_said_to(struct lies_conn *l, struct ibtrs_iu *iu, const struct ib_wc *wc)
{
	u32 imm = wc->wc_flags & IB_WC_WITH_IMM ? be32_to_cpu(wc->ex.imm_data) : 0;

	nr_msgs++;
	if (l->is_knock)
		lies_knock(l, iu, wc->byte_len);
	else if (wc->opcode == IB_WC_RECV && !l->informed)
		lies_info(l);
	else if (wc->opcode != IB_WC_RECV_RDMA_WITH_IMM)
		return;
	else if (ibtrs_imm_type(imm) == IBTRS_IMM_IO_REQ)
		lies_request(l, imm);
	else if (ibtrs_imm_type(imm) == IBTRS_IMM_TRIAL)
		lies_trial(l);
	else if (ibtrs_imm_type(imm) == IBTRS_IMM_HB_MSG && !chance(4))
		lies_imm(l, ibtrs_imm_hb(IBTRS_IMM_HB_ACK));
}

static void lies_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct lies_conn *l = container_of(cq->cq_context, struct lies_conn, c);
	struct ibtrs_iu *iu = container_of(wc->wr_cqe, struct ibtrs_iu, cqe);

	if (wc->status != IB_WC_SUCCESS) {
		lies_end(l);
		return;
	}
	guard(mutex)(&lies_lock);
	if (READ_ONCE(l->ending))
		return;
	ibtrs_iu_sync_cpu(iu);
	lies_said_to(l, iu, wc);
	if (ibtrs_iu_post_recv(iu, &l->c, l->dev))
		lies_end(l);
}

/* ---- connections -------------------------------------------------------- */

static void lies_end_work(struct work_struct *work)
{
	struct lies_conn *l = container_of(work, struct lies_conn, end);
	unsigned int i;

	mutex_lock(&lies_lock);
	list_del(&l->entry);
	mutex_unlock(&lies_lock);
	if (l->c.qp) {
		rdma_disconnect(l->c.id);
		ib_drain_qp(l->c.qp);
	}
	ibtrs_conn_destroy(&l->c);
	for (i = 0; i < NR_IN; i++)
		ibtrs_iu_free(&l->in[i]);
	for (i = 0; i < NR_OUT; i++)
		ibtrs_iu_free(&l->out[i]);
	if (l->mr)
		ib_dereg_mr(l->mr);
	if (l->dma)
		ib_dma_unmap_single(l->dev->ib, l->dma, DEPTH * CHUNK, DMA_BIDIRECTIONAL);
	kfree(l->mem);
	rdma_destroy_id(l->c.id);
	kfree(l);
}

static int lies_build(struct lies_conn *l)
{
	const struct ibtrs_conn_caps caps = {
		.send_wr = 64, .recv_wr = NR_IN, .send_sge = 1,
		.poll = IB_POLL_WORKQUEUE
	};
	unsigned int i;
	int err;

	err = ibtrs_conn_create(&l->c, l->dev->pd, &caps);
	for (i = 0; i < NR_OUT && !err; i++)
		err = ibtrs_iu_init(&l->out[i], l->dev->ib, ROOM, DMA_TO_DEVICE, lies_sent);
	for (i = 0; i < NR_IN && !err; i++) {
		err = ibtrs_iu_init(&l->in[i], l->dev->ib, IN_ROOM, DMA_FROM_DEVICE, lies_received);
		err = err ?: ibtrs_iu_post_recv(&l->in[i], &l->c, l->dev);
	}
	return err;
}

static int lies_accept(struct lies_conn *l, const void *req)
{
	/* More slots are to fit an immediate beside their chunks. */
	struct ibtrs_conn_rsp rsp = { .limits = { .queue_depth = depth,
						  .max_io_size = depth > DEPTH ? SZ_4K : IO_SIZE,
						  .max_hdr_size = HDR_SIZE,
						  .new_rkey = chance(4) } };
	u8 priv[sizeof(struct ibtrs_wire_conn_refused)] = {};
	struct rdma_conn_param param = { .private_data = priv, .rnr_retry_count = 7 };
	u32 len = sizeof(struct ibtrs_wire_conn_rsp);

	if (l->is_knock) {
		ibtrs_auth_rsp_encode((void *)priv);
		ibtrs_auth_srv_init(&l->auth, req, (void *)priv);
		ibtrs_conn_gids(l->c.id, l->auth.t.server, l->auth.t.client);
	} else {
		/* mostly the same on all connections of a path */
		l->req.ext &= IBTRS_EXT_KNOWN & ~(steady ? 0 : l->req.path_uuid[0] & 3);
		if (chance(8))
			l->req.ext &= any(256);
		rsp.ext = l->req.ext;
		ibtrs_msg_conn_rsp_encode((void *)priv, &rsp);
		lies_prove(l, req, priv);
	}
	if (chance(4)) {
		len = ibtrs_msg_conn_refused_encode((void *)priv, -(int)any(5000),
						    any(256), "\x1b[2J%s%n");
		spoil(priv, len);
		return rdma_reject(l->c.id, priv, len, IB_CM_REJ_CONSUMER_DEFINED) ?: -EPERM;
	}
	spoil(priv, len);
	param.private_data_len = spoil_len(len, sizeof(priv));
	return rdma_accept(l->c.id, &param);
}

static int lies_event(struct rdma_cm_id *id, struct rdma_cm_event *ev);

/* Not 0: the connection manager destroys the id. */
static int lies_connect(struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct lies_conn *l = kzalloc(sizeof(*l), GFP_KERNEL);
	struct ibtrs_auth_req asks;
	const char *why;

	if (!l)
		return -ENOMEM;
	l->is_knock = ibtrs_auth_req_is(param->private_data, param->private_data_len);
	if (!l->is_knock)
		ibtrs_msg_conn_req_decode(param->private_data, param->private_data_len, 4096,
					  &l->req, &why);
	else if (ibtrs_auth_req_decode(param->private_data, param->private_data_len, &asks, &why))
		memcpy(l->req.path_uuid, asks.path_uuid, sizeof(l->req.path_uuid));
	INIT_WORK(&l->end, lies_end_work);
	l->cqe.done = lies_sent;
	l->dev = dev ?: ibtrs_dev_get(id->device);
	if (IS_ERR(l->dev)) {
		kfree(l);
		return -ENOMEM;
	}
	dev = l->dev;
	l->c.id = id;
	id->context = l;
	guard(mutex)(&lies_lock);
	nr_conns++;
	list_add(&l->entry, &lies_conns);
	if (lies_build(l) || lies_accept(l, param->private_data))
		lies_end(l);
	return 0;
}

static int lies_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct lies_conn *l = id->context;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return lies_connect(id, &ev->param.conn);
	if (!l)
		return 0;
	if (ev->event != RDMA_CM_EVENT_ESTABLISHED) {
		lies_end(l);
		return 0;
	}
	guard(mutex)(&lies_lock);
	if (!READ_ONCE(l->ending) && chance(4))
		lies_chatter(l, 0);
	return 0;
}

static int said_get(char *text, const struct kernel_param *kp)
{
	guard(mutex)(&lies_lock);
	return sysfs_emit(text, "%u %u %u %u %#llx\n", nr_conns, nr_msgs, nr_lies, nr_proved,
			  shown);
}

static const struct kernel_param_ops said_ops = { .get = said_get };
module_param_cb(said, &said_ops, NULL, 0444);

static int __init lies_init(void)
{
	struct sockaddr_in6 any_addr = { .sin6_family = AF_INET6, .sin6_port = htons(1234) };
	int err;

	keys.nr = 1;
	if (*secret && hex2bin(keys.key[0], secret, IBTRS_KEY_LEN))
		return -EINVAL;
	prandom_seed_state(&rnd, seed);
	lies_wq = alloc_workqueue("lies", WQ_UNBOUND, 0);
	if (!lies_wq)
		return -ENOMEM;
	listener = rdma_create_id(&init_net, lies_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		destroy_workqueue(lies_wq);
		return PTR_ERR(listener);
	}
	err = rdma_bind_addr(listener, (struct sockaddr *)&any_addr) ?: rdma_listen(listener, 64);
	if (err) {
		rdma_destroy_id(listener);
		destroy_workqueue(lies_wq);
	}
	return err;
}

static void __exit lies_exit(void)
{
	struct lies_conn *l;

	rdma_destroy_id(listener);
	mutex_lock(&lies_lock);
	list_for_each_entry(l, &lies_conns, entry)
		lies_end(l);
	mutex_unlock(&lies_lock);
	destroy_workqueue(lies_wq);	/* runs what was posted */
	ibtrs_dev_put(dev);
}

module_init(lies_init);
module_exit(lies_exit);
MODULE_DESCRIPTION("a server that says anything, for tests");
MODULE_LICENSE("GPL");
