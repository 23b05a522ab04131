// SPDX-License-Identifier: GPL-2.0-only
/*
 * A request becomes work requests (spec A.10-A.13).
 *
 * Called by req.c, with a request that it owns and a connection that RCU keeps; may run in any
 * context that may submit I/O, and never sleeps.
 *
 * A write gathers its pages and the header: one RDMA_WRITE_WITH_IMM, preceded by plain RDMA_WRITEs
 * when the device can not gather that many pages in one work request. Nothing is registered. A read
 * of up to 8 KiB is answered into the slot's bounce buffer, a larger one into the request's pages
 * through the slot's MR, whose key answer.c takes back: that is a work request which never leaves
 * the host, while asking the server for it would keep the answer from travelling with the data, and
 * make three messages of one.
 */
#include "ibtrs/client/answer.h"
#include "ibtrs/client/post.h"
#include "ibtrs/client/session.h"
#include "ibtrs/proto/imm.h"

#define POST_STACK_SGE	9	/* eight pages and the header */
#define POST_PROBES	512	/* see post_is_alone() */
#define POST_AT_ONCE	8192
#define POST_PLUGGED	15	/* work requests of one chain, see CONN_SIG_MIN */

/*
 * Does the submitter on this connection wait for each answer before it sends again? A guess, and
 * either answer is correct: only the cost differs. That nothing else is in flight is no proof: a
 * request sent at once is often answered before the next one comes, even from a submitter that
 * fills a queue. So a run of requests is sent the other way, which lets a queue show, and only if
 * none of them had company the next ones go at once; then it is tried anew. The run is long because
 * the scheduler favours tasks that slept: a ksoftirqd that had nothing to do lately goes before the
 * submitter, and hides a queue for hundreds of requests.
 */
static bool post_is_alone(struct ibtrs_clt_conn *conn)
{
	u32 alone = READ_ONCE(conn->alone) + 1;

	if (ibtrs_clt_conn_inflight(conn) > 1 || READ_ONCE(conn->last) != current ||
	    alone > POST_PROBES + POST_AT_ONCE) {
		WRITE_ONCE(conn->last, current);
		alone = 0;
	}
	WRITE_ONCE(conn->alone, alone);
	return alone > POST_PROBES;
}

/* Something lies in the plug. If it can not be posted, the drain of its path moves it. */
static void post_plugged(struct ibtrs_clt_plug *plug)
{
	struct ib_send_wr *wr = plug->first, *next;
	struct ibtrs_clt_conn *conn = plug->conn;
	int err;

	WRITE_ONCE(conn->alone, 0);
	err = ibtrs_conn_send_reserved(&conn->c, plug->first, plug->last, plug->nr, false);
	plug->nr = 0;
	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "requests can not be posted");
	/* Each request, and with it its part of the chain, is ours up to here. */
	for (; wr; wr = next) {
		next = wr->next;
		if (wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
			ibtrs_clt_answer_posted(container_of(wr, struct ibtrs_clt_req, wrs.rdma.wr),
						conn);
	}
}

static int post_plug(struct ibtrs_clt_plug *plug, struct ibtrs_clt_conn *conn,
		     struct ib_send_wr *first, struct ib_send_wr *last, int nr)
{
	if (plug->nr && (plug->conn != conn || plug->nr + nr > POST_PLUGGED))
		post_plugged(plug);
	if (unlikely(!ibtrs_conn_reserve(&conn->c, nr)))
		return -EAGAIN;
	if (plug->nr)
		plug->last->next = first;
	else
		plug->first = first;
	plug->conn = conn;
	plug->last = last;
	plug->nr += nr;
	return 0;
}

/* The last, or only, message of a request. */
static int post_send(struct ibtrs_clt_conn *conn, struct ib_send_wr *first, struct ib_send_wr *last,
		     int nr, struct ibtrs_clt_plug *plug)
{
	if (plug)
		return post_plug(plug, conn, first, last, nr);
	if (post_is_alone(conn))
		return ibtrs_conn_send_now(&conn->c, first, last, nr);
	return ibtrs_conn_send(&conn->c, first, last, nr, false);
}

static u64 post_hdr_dma(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path, u32 len)
{
	u64 dma = path->mrs.hdr_dma[req->slot / IBTRS_CLT_HDRS_PER_PAGE] +
		  req->slot % IBTRS_CLT_HDRS_PER_PAGE * IBTRS_CLT_HDR_SIZE;

	ib_dma_sync_single_for_device(path->dev->ib, dma, len, DMA_TO_DEVICE);
	return dma;
}

static void post_rdma_wr(struct ib_rdma_wr *wr, struct ib_sge *sge, u32 nr, u64 addr, u32 rkey,
			 struct ibtrs_clt_conn *conn)
{
	memset(wr, 0, sizeof(*wr));
	wr->wr.wr_cqe = &conn->send_cqe;
	wr->wr.opcode = IB_WR_RDMA_WRITE;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = nr;
	wr->remote_addr = addr;
	wr->rkey = rkey;
}

/* The pages as SGEs, then the header. Returns how many. */
static u32 post_fill_sge(struct ibtrs_clt_req *req, struct ib_sge *sge, u64 hdr_dma, u32 hdr_len,
			 u32 lkey)
{
	struct scatterlist *sg;
	u32 n = 0;
	int i;

	for_each_sg(req->io->sgl, sg, req->nr_dma, i) {
		sge[n].addr = sg_dma_address(sg);
		sge[n].length = sg_dma_len(sg);
		sge[n++].lkey = lkey;
	}
	sge[n].addr = hdr_dma;
	sge[n].length = hdr_len;
	sge[n++].lkey = lkey;
	return n;
}

static int post_write(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path,
		      struct ibtrs_clt_conn *conn, struct ibtrs_clt_plug *plug)
{
	struct ib_sge stack[POST_STACK_SGE],
		*sge = req->nr_dma < POST_STACK_SGE && !plug ? stack : req->sge;
	struct ibtrs_clt_io *io = req->io;
	struct ibtrs_chunk *chunk = &path->hs.chunks[req->slot];
	u32 hdr_len, n, more, take, done = 0, i;
	struct ib_rdma_wr one, *wr = plug ? &req->wrs.rdma : &one;
	int err;

	hdr_len = io->usr_len + ibtrs_msg_write_encode(req->hdr + io->usr_len, path->limits.fence,
						       io->usr_len, req->token);
	n = post_fill_sge(req, sge, post_hdr_dma(req, path, hdr_len), hdr_len,
			  path->dev->pd->local_dma_lkey);
	more = (n - 1) / conn->c.max_send_sge;
	/* All or nothing: a queue that is full in the middle would cost the path. */
	if (unlikely(more && !ibtrs_conn_reserve(&conn->c, more + 1)))
		return -EAGAIN;
	for (;;) {
		take = min_t(u32, n, conn->c.max_send_sge);
		post_rdma_wr(wr, sge, take, chunk->addr + done, chunk->rkey, conn);
		if (take == n)
			break;
		err = ibtrs_conn_send_reserved(&conn->c, &wr->wr, &wr->wr, 1, false);
		if (unlikely(err))
			return -ECONNRESET;
		for (i = 0; i < take; i++)
			done += sge[i].length;
		sge += take;
		n -= take;
	}
	wr->wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	wr->wr.ex.imm_data =
		cpu_to_be32(ibtrs_imm_req(req->slot, io->len + io->usr_len, path->off_bits));
	if (likely(!more))
		return post_send(conn, &wr->wr, &wr->wr, 1, plug);
	err = ibtrs_conn_send_reserved(&conn->c, &wr->wr, &wr->wr, 1, false);
	return unlikely(err) ? -ECONNRESET : 1;
}

static int post_read(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path,
		     struct ibtrs_clt_conn *conn, struct ibtrs_clt_plug *plug)
{
	struct ibtrs_clt_io *io = req->io;
	struct ibtrs_chunk *chunk = &path->hs.chunks[req->slot];
	struct ibtrs_clt_wrs stack, *w = plug ? &req->wrs : &stack;
	bool registers = io->len && !req->bounced;
	struct ibtrs_desc desc;
	u32 hdr_len;
	int err;

	if (req->bounced) {
		ibtrs_clt_mr_bounce_desc(path, req->slot, io->len, &desc);
	} else if (registers) {
		memset(&w->reg, 0, sizeof(w->reg));
		err = ibtrs_clt_mr_map(path, req, &w->reg, &desc);
		if (unlikely(err))
			return err;
	}
	hdr_len = io->usr_len + ibtrs_msg_read_encode(req->hdr + io->usr_len, path->limits.fence,
						      io->usr_len, req->token, false,
						      io->len ? &desc : NULL);
	w->hdr.addr = post_hdr_dma(req, path, hdr_len);
	w->hdr.length = hdr_len;
	w->hdr.lkey = path->dev->pd->local_dma_lkey;
	post_rdma_wr(&w->rdma, &w->hdr, 1, chunk->addr + io->len, chunk->rkey, conn);
	w->rdma.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	w->rdma.wr.ex.imm_data =
		cpu_to_be32(ibtrs_imm_req(req->slot, io->len + io->usr_len, path->off_bits));
	if (!registers)
		return post_send(conn, &w->rdma.wr, &w->rdma.wr, 1, plug);

	/* The invalidation comes with the answer, from where nobody can wait for room. */
	if (unlikely(!ibtrs_conn_reserve(&conn->c, 1)))
		return -EAGAIN;
	req->mr = true;
	w->reg.wr.wr_cqe = &conn->send_cqe;
	w->reg.wr.next = &w->rdma.wr;
	err = post_send(conn, &w->reg.wr, &w->rdma.wr, 2, plug);
	if (unlikely(err == -EAGAIN))
		ibtrs_conn_credit(&conn->c, 1);
	return err;
}

int ibtrs_clt_post(struct ibtrs_clt_req *req, struct ibtrs_clt_path *path,
		   struct ibtrs_clt_conn *conn, struct ibtrs_clt_plug *plug)
{
	return req->io->dir == IBTRS_WRITE ? post_write(req, path, conn, plug) :
					     post_read(req, path, conn, plug);
}

void ibtrs_clt_plug(struct ibtrs_clt_plug *plug) __acquires(RCU)
{
	rcu_read_lock();
	*plug = (struct ibtrs_clt_plug){};
}
EXPORT_SYMBOL_GPL(ibtrs_clt_plug);

void ibtrs_clt_unplug(struct ibtrs_clt_plug *plug) __releases(RCU)
{
	if (plug->nr)
		post_plugged(plug);
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(ibtrs_clt_unplug);
