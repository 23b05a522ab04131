// SPDX-License-Identifier: GPL-2.0-only
/*
 * The trial of a new connection (decision 11, protocol.md 8.4).
 *
 * A path may carry its handshake and all its heartbeats, and still lose every request: the two ends
 * have different MTUs, a switch drops large packets, or one queue pair is bad. So before a path
 * carries requests, each of its interrupt driven connections carries as much data as the largest
 * request.
 *
 * A server that negotiated TRIAL sends the data back, which proves both directions. Any other
 * server notices nothing: the data are written to a chunk by a plain RDMA WRITE, and its completion
 * proves only the direction to the server. No request may use that chunk during the trial. The
 * in-kernel server shares chunks between paths, so the trial uses the chunk of one of ibtrs' own
 * slots. If no own slot can be spared, which is rare, and chunks are shared, the path does without
 * a trial.
 *
 * When the time of the trial is over, the client sends a heartbeat. Only if the server answers it
 * has the trial failed; otherwise the network is down, and the attempt ends as a timeout.
 *
 * The data are one page of zeroes, repeated. The data that come back are written to one page, too.
 *
 * Called by: handshake.c, rx.c, the drain of the path.
 *
 * Failure: the path fails with -EMSGSIZE and a word about the MTU. If no other path of an open
 * session is up, the failed path is used nevertheless, since small requests may still come through:
 * its next attempt goes without a trial, and the path is shown as marginal.
 */
#include <linux/slab.h>
#include "ibtrs/client/answer.h"
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/msg.h"

#define TRIAL_MSG	0		/* offsets in the buffer */
#define TRIAL_PAGE	SZ_4K
#define TRIAL_BUF	(2 * SZ_4K)
#define TRIAL_SGE	32

static const char trial_why[] =
	"full-size packets are lost: is the MTU the same on both hosts and all switches between?";

static_assert(sizeof(trial_why) <= IBTRS_CLT_REASON_LEN);

static bool trial_echoes(const struct ibtrs_clt_path *path)
{
	return path->ext & IBTRS_EXT_TRIAL;
}

/* A connection has passed the trial, if that is what proves it. */
static void trial_proved(struct ibtrs_clt_path *path, bool by_echo)
{
	if (trial_echoes(path) == by_echo && atomic_dec_return(&path->trial.missing) == 0)
		ibtrs_clt_path_answered(path, IBTRS_CLT_HS_TRIED);
}

static void trial_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(cq->cq_context, struct ibtrs_clt_conn, c);

	if (ibtrs_clt_wc_failed(conn, wc))
		return;
	ibtrs_conn_credit(&conn->c, 1);
	trial_proved(conn->path, false);
}

static int trial_map(struct ibtrs_clt_trial *trial)
{
	u32 n = DIV_ROUND_UP(trial->len, SZ_4K), i;
	struct scatterlist *sg __free(kfree) = kcalloc(n, sizeof(*sg), GFP_KERNEL);

	if (!sg)
		return -ENOMEM;
	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		sg_set_buf(&sg[i], trial->buf.buf + TRIAL_PAGE, SZ_4K);
		sg_dma_address(&sg[i]) = trial->buf.dma + TRIAL_PAGE;
		sg_dma_len(&sg[i]) = SZ_4K;
	}
	return ibtrs_mr_map(trial->mr, sg, n, SZ_4K);
}

int ibtrs_clt_trial_prepare(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_trial *trial = &path->trial;
	struct ib_mr *mr;
	int err;

	trial->slot = -1;
	if (READ_ONCE(path->clt->opened) && ibtrs_clt_path_ask(path, ibtrs_retry_skips_trial))
		return 0;
	err = ibtrs_iu_init(&trial->buf, path->dev->ib, TRIAL_BUF, DMA_BIDIRECTIONAL, trial_sent);
	if (err)
		return err;
	trial->len = path->clt->max_io_size;
	if (!trial_echoes(path))
		return 0;
	mr = ib_alloc_mr(path->dev->pd, IB_MR_TYPE_MEM_REG, DIV_ROUND_UP(trial->len, SZ_4K));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	trial->mr = mr;
	err = trial_map(trial);
	return err ?: ibtrs_clt_mr_post(path, mr);
}

/* Find a chunk that no request uses, for the data. NULL: there is none. */
static const struct ibtrs_chunk *trial_chunk(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_trial *trial = &path->trial;

	trial->slot = ibtrs_clt_slot_get(&path->clt->slots, 1);	/* the last one is for messages */
	if (trial->slot >= 0)
		return &path->hs.chunks[trial->slot];
	/* With FENCE the chunks belong to this path alone, and no request is on the path yet. */
	return path->limits.fence ? &path->hs.chunks[0] : NULL;
}

static int trial_post(struct ibtrs_clt_path *path, struct ibtrs_clt_conn *conn,
		      const struct ibtrs_chunk *chunk)
{
	struct ibtrs_clt_trial *trial = &path->trial;
	u32 max = min_t(u32, conn->c.max_send_sge, TRIAL_SGE), done = 0, n, part;
	bool echoes = trial_echoes(path);
	struct ib_sge sge[TRIAL_SGE];
	struct ib_rdma_wr wr = {
		.wr.wr_cqe	= &conn->send_cqe,
		.wr.sg_list	= sge,
		.wr.opcode	= IB_WR_RDMA_WRITE,
		.rkey		= chunk->rkey,
	};
	int err;

	while (done < trial->len) {
		wr.remote_addr = chunk->addr + done;
		for (n = 0; n < max && done < trial->len; n++, done += part) {
			part = min_t(u32, trial->len - done, SZ_4K);
			sge[n] = (struct ib_sge){ .addr = trial->buf.dma + TRIAL_PAGE,
						  .length = part,
						  .lkey = path->dev->pd->local_dma_lkey };
		}
		wr.wr.num_sge = n;
		if (done == trial->len && !echoes)
			wr.wr.wr_cqe = &trial->buf.cqe;
		err = ibtrs_conn_send(&conn->c, &wr.wr, &wr.wr, 1, done == trial->len && !echoes);
		if (err)
			return err;
		wr.wr.send_flags = 0;
	}
	if (!echoes)
		return 0;
	sge[0] = (struct ib_sge){ .addr = trial->buf.dma + TRIAL_MSG,
				  .length = sizeof(struct ibtrs_wire_trial),
				  .lkey = path->dev->pd->local_dma_lkey };
	wr.wr.wr_cqe = &trial->buf.cqe;
	wr.wr.num_sge = 1;
	wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.ex.imm_data =
		cpu_to_be32(ibtrs_imm_trial(max(trial->slot, 0), trial->len, path->off_bits));
	wr.remote_addr = chunk->addr + trial->len;
	return ibtrs_conn_send(&conn->c, &wr.wr, &wr.wr, 1, true);
}

int ibtrs_clt_trial_start(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_trial *trial = &path->trial;
	u32 conns = path->clt->nr_irq_conns, cid;
	const struct ibtrs_chunk *chunk;
	struct ibtrs_desc desc;
	int err = 0;

	if (!trial->len)
		return 1;
	chunk = trial_chunk(path);
	if (!chunk)
		return 1;
	if (trial->mr) {
		desc = (struct ibtrs_desc){ .addr = trial->mr->iova,
					    .rkey = trial->mr->rkey,
					    .len = trial->len };
		ibtrs_trial_encode(trial->buf.buf + TRIAL_MSG, &desc);
		ibtrs_iu_sync_dev(&trial->buf);
	}
	atomic_set(&trial->missing, conns);
	ibtrs_clt_path_await(path, IBTRS_RETRY_TRIAL);
	for (cid = 1; cid <= conns && !err; cid++)
		err = trial_post(path, &path->conns[cid], chunk);
	return err;
}

void ibtrs_clt_trial_answered(struct ibtrs_clt_conn *conn)
{
	trial_proved(conn->path, true);
}

static void trial_give_slot(struct ibtrs_clt_path *path)
{
	if (path->trial.slot >= 0)
		ibtrs_clt_slot_put(&path->clt->slots, path->trial.slot);
	path->trial.slot = -1;
}

void ibtrs_clt_trial_passed(struct ibtrs_clt_path *path)
{
	trial_give_slot(path);
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_TRIAL_PASSED);
}

void ibtrs_clt_trial_late(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_conn *service = &path->conns[0];
	int err;

	WRITE_ONCE(path->hb.seen, false);
	ibtrs_clt_path_await(path, IBTRS_RETRY_DOUBT);
	err = ibtrs_conn_send_imm(&service->c, &service->send_cqe, ibtrs_imm_hb(IBTRS_IMM_HB_MSG));
	if (err)
		ibtrs_clt_path_fail(path, err, "heartbeat cannot be posted");
}

bool ibtrs_clt_trial_in_vain(struct ibtrs_clt_path *path)
{
	if (!READ_ONCE(path->hb.seen))
		return false;
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_TRIAL_FAILED);
	ibtrs_clt_path_fail(path, -EMSGSIZE, trial_why);
	return true;
}

void ibtrs_clt_trial_free(struct ibtrs_clt_path *path)
{
	struct ibtrs_clt_trial *trial = &path->trial;

	/* The QPs are gone: nothing writes to the chunk any more. */
	trial_give_slot(path);
	if (trial->mr)
		ib_dereg_mr(trial->mr);
	trial->mr = NULL;
	trial->len = 0;
	/* An answer that arrives before the next trial starts must not end that trial. */
	atomic_set(&trial->missing, 0);
	ibtrs_iu_free(&trial->buf);
}
