// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibnbd-floor: what no protocol over this transport can do without. For the benchmark alone, never
 * installed.
 *
 * Two ends in one kernel, connected by rdma_cm to our own address. An exchange is the two messages
 * of an I/O and nothing else: one RDMA WRITE WITH IMM there (a header, or data and a header), one
 * back (data, or nothing). No block layer, no protocol, no registration, no check. The client's CQ
 * is polled in softirq, the server's in a workqueue, as block drivers do; the next exchange of a
 * slot is posted from the completion of the one before.
 *
 *	echo "REQUEST_BYTES REPLY_BYTES SLOTS COUNT" > /sys/module/ibnbd_floor/parameters/run
 *	cat /sys/module/ibnbd_floor/parameters/run	nanoseconds that COUNT exchanges took
 *
 * REQUEST_BYTES are data; the header comes on top. After a run both sides compare what arrived with
 * what was sent.
 *
 * Locking: a run is exclusive by run_lock; while it lasts, an end is touched by the completions of
 * its own CQ, which never run side by side, and by the run before the first of them. A failure
 * stops the run: no completion posts after `failed` is set.
 */
#include <linux/completion.h>
#include <linux/gfp.h>
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define FLOOR_HDR	48		/* both headers of a 4 KiB I/O */
#define FLOOR_ORDER	10		/* of each memory region */
#define FLOOR_REGION	(PAGE_SIZE << FLOOR_ORDER)
#define FLOOR_MR_PAGE	SZ_8K		/* soft-RoCE registers 512 pages at most */
#define FLOOR_SLOTS	128
#define FLOOR_SIGNAL	64
#define FLOOR_WAIT	(60 * HZ)

static char *addr = "10.0.0.1";
module_param(addr, charp, 0444);
static ushort port = 7777;
module_param(port, ushort, 0444);

struct floor_end {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_mr *mr;
	struct ib_cqe recv_cqe, send_cqe, reg_cqe;
	struct completion event, registered;
	enum rdma_cm_event_type last;
	int reg_err;
	u8 *src, *dst;			/* what we send; where the other end writes */
	u64 src_dma, dst_dma;
	unsigned int len;		/* data of our messages */
	bool header;			/* each is followed by one */
	unsigned int posted;
	struct floor_end *peer;
};

static struct floor_end floor_client, floor_server;
static struct rdma_cm_id *floor_listener;

static DEFINE_MUTEX(run_lock);
static struct completion run_done;
static unsigned int run_count, run_started, run_finished, run_stride;
static ktime_t run_end;
static bool failed;
static u64 run_ns;

static void floor_fail(const char *what, int err)
{
	if (!READ_ONCE(failed))
		pr_err("%s: %d\n", what, err);
	WRITE_ONCE(failed, true);
	complete(&run_done);
}

/* ---- messages ----------------------------------------------------------- */

static int floor_post_recv(struct floor_end *e)
{
	struct ib_recv_wr wr = { .wr_cqe = &e->recv_cqe };

	return ib_post_recv(e->id->qp, &wr, NULL);
}

static int floor_post(struct floor_end *e, u32 slot)
{
	u64 off = (u64)slot * run_stride;
	struct ib_sge sge[2];
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &e->send_cqe,
		.wr.opcode	= IB_WR_RDMA_WRITE_WITH_IMM,
		.wr.sg_list	= sge,
		.wr.ex.imm_data	= cpu_to_be32(slot),
		.remote_addr	= e->peer->mr->iova + off,
		.rkey		= e->peer->mr->rkey,
	};
	int n = 0;

	if (e->len)
		sge[n++] = (struct ib_sge){ e->src_dma + off, e->len, e->pd->local_dma_lkey };
	if (e->header)
		sge[n++] = (struct ib_sge){ e->src_dma + off + e->len, FLOOR_HDR,
					    e->pd->local_dma_lkey };
	wr.wr.num_sge = n;
	if (++e->posted % FLOOR_SIGNAL == 0)
		wr.wr.send_flags = IB_SEND_SIGNALED;
	return ib_post_send(e->id->qp, &wr.wr, NULL);
}

static bool floor_bad(const struct ib_wc *wc)
{
	if (likely(wc->status == IB_WC_SUCCESS))
		return false;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		floor_fail(ib_wc_status_msg(wc->status), -EIO);
	return true;
}

static void floor_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	floor_bad(wc);
}

static void floor_served(struct ib_cq *cq, struct ib_wc *wc)
{
	int err;

	if (floor_bad(wc))
		return;
	err = floor_post_recv(&floor_server) ?:
	      floor_post(&floor_server, be32_to_cpu(wc->ex.imm_data));
	if (unlikely(err))
		floor_fail("a reply cannot be posted", err);
}

static void floor_answered(struct ib_cq *cq, struct ib_wc *wc)
{
	int err;

	if (floor_bad(wc))
		return;
	err = floor_post_recv(&floor_client);
	if (++run_finished == run_count) {
		run_end = ktime_get();
		complete(&run_done);
	} else if (run_started < run_count && !err) {
		run_started++;
		err = floor_post(&floor_client, be32_to_cpu(wc->ex.imm_data));
	}
	if (unlikely(err))
		floor_fail("a request cannot be posted", err);
}

/* ---- a run -------------------------------------------------------------- */

static int floor_compare(const struct floor_end *e, unsigned int slots)
{
	unsigned int i;

	for (i = 0; i < slots; i++) {
		size_t off = (size_t)i * run_stride;

		if (memcmp(e->src + off, e->peer->dst + off, e->len + (e->header ? FLOOR_HDR : 0)))
			return -EIO;
	}
	return 0;
}

static int floor_run(unsigned int request, unsigned int reply, unsigned int slots,
		     unsigned int count)
{
	ktime_t begin;
	unsigned int i;
	int err;

	if (!slots || slots > FLOOR_SLOTS || count < slots || request > FLOOR_REGION / 2 ||
	    reply > FLOOR_REGION / 2)
		return -EINVAL;
	run_stride = roundup_pow_of_two(max(request + FLOOR_HDR, reply));
	if ((u64)run_stride * slots > FLOOR_REGION)
		return -EINVAL;
	get_random_bytes(floor_client.src, FLOOR_REGION);
	get_random_bytes(floor_server.src, FLOOR_REGION);
	floor_client.len = request;
	floor_server.len = reply;
	run_count = count;
	run_started = slots;
	run_finished = 0;
	failed = false;
	reinit_completion(&run_done);
	begin = ktime_get();
	for (i = 0; i < slots; i++) {
		err = floor_post(&floor_client, i);
		if (err)
			return err;
	}
	if (!wait_for_completion_timeout(&run_done, FLOOR_WAIT))
		return -ETIMEDOUT;
	if (failed)
		return -EIO;
	run_ns = ktime_to_ns(ktime_sub(run_end, begin));
	return floor_compare(&floor_client, slots) ?: floor_compare(&floor_server, slots);
}

static int run_set(const char *val, const struct kernel_param *kp)
{
	unsigned int request, reply, slots, count;
	int err;

	if (sscanf(val, "%u %u %u %u", &request, &reply, &slots, &count) != 4)
		return -EINVAL;
	mutex_lock(&run_lock);
	err = floor_run(request, reply, slots, count);
	mutex_unlock(&run_lock);
	return err;
}

static int run_get(char *buf, const struct kernel_param *kp)
{
	return scnprintf(buf, PAGE_SIZE, "%llu\n", run_ns);
}

static const struct kernel_param_ops run_ops = { .set = run_set, .get = run_get };
module_param_cb(run, &run_ops, NULL, 0600);

/* ---- an end ------------------------------------------------------------- */

static void end_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct floor_end *e = container_of(wc->wr_cqe, struct floor_end, reg_cqe);

	e->reg_err = wc->status == IB_WC_SUCCESS ? 0 : -EIO;
	complete(&e->registered);
}

/* Idempotent. */
static void end_free(struct floor_end *e)
{
	if (e->id && e->id->qp) {
		rdma_disconnect(e->id);
		ib_drain_qp(e->id->qp);
		rdma_destroy_qp(e->id);
	}
	if (e->mr)
		ib_dereg_mr(e->mr);
	if (e->cq)
		ib_free_cq(e->cq);
	if (e->src_dma)
		ib_dma_unmap_single(e->id->device, e->src_dma, FLOOR_REGION, DMA_TO_DEVICE);
	if (e->dst_dma)
		ib_dma_unmap_single(e->id->device, e->dst_dma, FLOOR_REGION, DMA_FROM_DEVICE);
	if (e->pd)
		ib_dealloc_pd(e->pd);
	free_pages((unsigned long)e->src, FLOOR_ORDER);
	free_pages((unsigned long)e->dst, FLOOR_ORDER);
	if (e->id)
		rdma_destroy_id(e->id);
	memset(e, 0, sizeof(*e));
}

static int end_alloc_memory(struct floor_end *e, struct ib_device *ib)
{
	e->src = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, FLOOR_ORDER);
	e->dst = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_COMP, FLOOR_ORDER);
	if (!e->src || !e->dst)
		return -ENOMEM;
	e->src_dma = ib_dma_map_single(ib, e->src, FLOOR_REGION, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib, e->src_dma)) {
		e->src_dma = 0;
		return -ENOMEM;
	}
	e->dst_dma = ib_dma_map_single(ib, e->dst, FLOOR_REGION, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(ib, e->dst_dma)) {
		e->dst_dma = 0;
		return -ENOMEM;
	}
	return 0;
}

static int end_alloc(struct floor_end *e, enum ib_poll_context poll,
		     void (*recv)(struct ib_cq *, struct ib_wc *))
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 4 * FLOOR_SLOTS, .max_recv_wr = 2 * FLOOR_SLOTS,
			 .max_send_sge = 2, .max_recv_sge = 1 },
	};
	struct ib_device *ib = e->id->device;
	int err, i;

	e->recv_cqe.done = recv;
	e->send_cqe.done = floor_sent;
	e->reg_cqe.done = end_registered;
	err = end_alloc_memory(e, ib);
	if (err)
		return err;
	e->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(e->pd)) {
		err = PTR_ERR(e->pd);
		e->pd = NULL;
		return err;
	}
	e->cq = ib_alloc_cq(ib, e, 8 * FLOOR_SLOTS, 0, poll);
	if (IS_ERR(e->cq)) {
		err = PTR_ERR(e->cq);
		e->cq = NULL;
		return err;
	}
	attr.send_cq = e->cq;
	attr.recv_cq = e->cq;
	err = rdma_create_qp(e->id, e->pd, &attr);
	for (i = 0; i < 3 * FLOOR_SLOTS / 2 && !err; i++)
		err = floor_post_recv(e);
	return err;
}

/* The whole region under one key, which the peer may write with from now on. */
static int end_register(struct floor_end *e)
{
	struct ib_reg_wr wr = {
		.wr.wr_cqe	= &e->reg_cqe,
		.wr.opcode	= IB_WR_REG_MR,
		.wr.send_flags	= IB_SEND_SIGNALED,
		.access		= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	struct scatterlist sg;
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(e->pd, IB_MR_TYPE_MEM_REG, FLOOR_REGION / FLOOR_MR_PAGE);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	e->mr = mr;
	sg_init_one(&sg, e->dst, FLOOR_REGION);
	sg_dma_address(&sg) = e->dst_dma;
	sg_dma_len(&sg) = FLOOR_REGION;
	n = ib_map_mr_sg(mr, &sg, 1, NULL, FLOOR_MR_PAGE);
	if (n != 1)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.mr = mr;
	wr.key = mr->rkey;
	n = ib_post_send(e->id->qp, &wr.wr, NULL);
	if (n)
		return n;
	return wait_for_completion_timeout(&e->registered, FLOOR_WAIT) ? e->reg_err : -ETIMEDOUT;
}

/* ---- connecting --------------------------------------------------------- */

static int floor_accept(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	int err;

	if (floor_server.id)
		return -EBUSY;
	floor_server.id = id;
	err = end_alloc(&floor_server, IB_POLL_WORKQUEUE, floor_served) ?: rdma_accept(id, &param);
	if (err) {
		/* floor_stop() takes away what there is */
		floor_client.last = RDMA_CM_EVENT_REJECTED;
		complete(&floor_client.event);
	}
	return 0;
}

static int floor_event(struct rdma_cm_id *id, struct rdma_cm_event *ev)
{
	struct floor_end *e = id == floor_client.id ? &floor_client : &floor_server;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return floor_accept(id);
	e->last = ev->event;
	complete(&e->event);
	return 0;
}

static int floor_expect(struct floor_end *e, enum rdma_cm_event_type want)
{
	if (!wait_for_completion_timeout(&e->event, FLOOR_WAIT))
		return -ETIMEDOUT;
	return e->last == want ? 0 : -ECONNREFUSED;
}

static struct rdma_cm_id *floor_id(void)
{
	return rdma_create_id(&init_net, floor_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
}

static int floor_connect(struct sockaddr *sa)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	int err;

	floor_listener = floor_id();
	if (IS_ERR(floor_listener)) {
		err = PTR_ERR(floor_listener);
		floor_listener = NULL;
		return err;
	}
	err = rdma_bind_addr(floor_listener, sa) ?: rdma_listen(floor_listener, 1);
	if (err)
		return err;
	id = floor_id();
	if (IS_ERR(id))
		return PTR_ERR(id);
	floor_client.id = id;
	err = rdma_resolve_addr(id, NULL, sa, 5000) ?:
	      floor_expect(&floor_client, RDMA_CM_EVENT_ADDR_RESOLVED);
	err = err ?: rdma_resolve_route(id, 5000) ?:
	      floor_expect(&floor_client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	err = err ?: end_alloc(&floor_client, IB_POLL_SOFTIRQ, floor_answered) ?:
	      rdma_connect(id, &param);
	err = err ?: floor_expect(&floor_client, RDMA_CM_EVENT_ESTABLISHED) ?:
	      floor_expect(&floor_server, RDMA_CM_EVENT_ESTABLISHED);
	return err ?: end_register(&floor_client) ?: end_register(&floor_server);
}

static void floor_stop(void)
{
	if (floor_listener)
		rdma_destroy_id(floor_listener);
	end_free(&floor_client);
	end_free(&floor_server);
}

static void end_init(struct floor_end *e, struct floor_end *peer)
{
	init_completion(&e->event);
	init_completion(&e->registered);
	e->peer = peer;
}

static int __init floor_init(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port),
				   .sin_addr.s_addr = in_aton(addr) };
	int err;

	init_completion(&run_done);
	end_init(&floor_client, &floor_server);
	end_init(&floor_server, &floor_client);
	floor_client.header = true;
	err = floor_connect((struct sockaddr *)&sin);
	if (err)
		floor_stop();
	return err;
}

static void __exit floor_exit(void)
{
	floor_stop();
}

module_init(floor_init);
module_exit(floor_exit);
MODULE_DESCRIPTION("the two bare RDMA messages of an I/O, for the benchmark");
MODULE_LICENSE("GPL");
