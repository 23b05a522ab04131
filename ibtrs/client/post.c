// SPDX-License-Identifier: GPL-2.0-only
/*
 * A request becomes work requests (protocol 4.1-4.3).
 *
 * Called by req.c, with a request that it owns and a connection that RCU keeps; may run in any
 * context that may submit I/O, and never sleeps.
 *
 * A write gathers its pages and the header: one RDMA_WRITE_WITH_IMM, preceded by plain RDMA_WRITEs
 * when the device cannot gather that many pages in one work request. A write registers no memory.
 * With acked_writes its last work request is signalled, and answer.c waits for that, too.
 * The answer to a read of up to 8 KiB arrives in the slot's bounce buffer; the answer to a larger
 * read arrives in the request's pages, through the slot's MR. answer.c then invalidates the key of
 * that MR with a work request that never leaves the host. If the server were asked to invalidate
 * the key, the answer could not travel with the data: three messages would be needed instead of
 * one.
 */
#include "ibtrs/client/answer.h"
#include "ibtrs/client/session.h"
#include "ibtrs/proto/imm.h"

#define POST_STACK_SGE	9	/* eight pages and the header */
#define POST_PROBES	512	/* see post_is_alone() */
#define POST_AT_ONCE	8192
#define POST_PLUGGED	15	/* longest chain of work requests, below CONN_SIG_MIN */

/*
 * Does the submitter on this connection wait for each answer before it sends the next request? The
 * result is a guess. Either result is correct, only the cost differs. An empty connection proves
 * nothing: a request that is sent with ibtrs_conn_send_now() is often answered before the next one
 * comes, even if the submitter fills a queue. So POST_PROBES requests in a row are sent with
 * ibtrs_conn_send(), which lets a queue build up. Only if each of them was alone in flight and came
 * from the same task, the next POST_AT_ONCE requests are sent with ibtrs_conn_send_now(); then the
 * probing starts again. POST_PROBES is large because the scheduler favours tasks that slept: a
 * ksoftirqd that had little to do lately runs before the submitter, and then no queue is visible
 * for hundreds of requests.
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

/* Post the requests in the plug. If that fails, the drain of the path moves them. */
static void post_plugged(struct ibtrs_clt_plug *plug)
{
	struct ib_send_wr *wr = plug->first, *next;
	struct ibtrs_clt_conn *conn = plug->conn;
	int err;

	WRITE_ONCE(conn->alone, 0);
	err = ibtrs_conn_send_reserved(&conn->c, plug->first, plug->plain, plug->nr_plain, false);
	*plug = (struct ibtrs_clt_plug){};
	if (unlikely(err))
		ibtrs_clt_path_fail(conn->path, err, "requests cannot be posted");
	/*
	 * ibtrs_clt_answer_posted() gives the request and its work requests away: read `next`
	 * first.
	 */
	for (; wr; wr = next) {
		next = wr->next;
		if (wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
			ibtrs_clt_answer_posted(container_of(wr, struct ibtrs_clt_req, wrs.rdma.wr),
						conn);
	}
}

static int post_plug(struct ibtrs_clt_plug *plug, struct ibtrs_clt_conn *conn,
		     struct ib_send_wr *first, struct ib_send_wr *last, int nr, bool signalled)
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
	if (signalled) {
		last->send_flags |= IB_SEND_SIGNALED;
	} else {
		plug->plain = last;
		plug->nr_plain += nr;
	}
	return 0;
}

/* The last, or only, message of a request. @signalled: its completion ends the request. */
static int post_send(struct ibtrs_clt_conn *conn, struct ib_send_wr *first, struct ib_send_wr *last,
		     int nr, bool signalled, struct ibtrs_clt_plug *plug)
{
	if (plug)
		return post_plug(plug, conn, first, last, nr, signalled);
	if (post_is_alone(conn))
		return ibtrs_conn_send_now(&conn->c, first, last, nr, signalled);
	return ibtrs_conn_send(&conn->c, first, last, nr, signalled);
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

/* Fill in the SGEs: the pages, then the header. Returns the number of SGEs. */
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
	bool signalled = unlikely(path->clt->acked) && req->nr_dma;
	int err;

	hdr_len = io->usr_len + ibtrs_msg_write_encode(req->hdr + io->usr_len, path->limits.fence,
						       io->usr_len, req->token);
	n = post_fill_sge(req, sge, post_hdr_dma(req, path, hdr_len), hdr_len,
			  path->dev->pd->local_dma_lkey);
	more = (n - 1) / conn->c.max_send_sge;
	/*
	 * Reserve room for all work requests first: if the queue became full after some of them,
	 * the path would have to fail.
	 */
	if (unlikely(more && !ibtrs_conn_reserve(&conn->c, more + 1)))
		return -EAGAIN;
	if (signalled) {
		req->cqe.done = ibtrs_clt_answer_sent;
		atomic_set(&req->awaits, 2);
	}
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
	if (signalled)
		wr->wr.wr_cqe = &req->cqe;
	if (likely(!more))
		return post_send(conn, &wr->wr, &wr->wr, 1, signalled, plug);
	err = ibtrs_conn_send_reserved(&conn->c, &wr->wr, &wr->wr, 1, signalled);
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
		return post_send(conn, &w->rdma.wr, &w->rdma.wr, 1, false, plug);

	/*
	 * Reserve room for the LOCAL_INV now: it is posted when the answer arrives, where no code
	 * can wait for room.
	 */
	if (unlikely(!ibtrs_conn_reserve(&conn->c, 1)))
		return -EAGAIN;
	req->mr = true;
	w->reg.wr.wr_cqe = &conn->send_cqe;
	w->reg.wr.next = &w->rdma.wr;
	err = post_send(conn, &w->reg.wr, &w->rdma.wr, 2, false, plug);
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
