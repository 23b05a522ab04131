// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The trial of a new path (protocol 8.4): each connection for requests carries as much data as the
 * largest request, there and back, before it carries requests.
 *
 * Handshakes and heartbeats are small. A network that loses large packets alone lets them pass, and
 * swallows the first large request. When a trial is not answered in time, a heartbeat is sent: only
 * if the server answers that has the trial failed. ibtrs/logic/retry.c says when it is skipped.
 *
 * The trial goes through the first slot of the connection's queue and the chunk of that slot, which
 * are idle: the chunks of a server that knows trials belong to this path alone, and it is not up.
 *
 * Runs under ctx->lock.
 */
#include <stdlib.h>
#include "ibtrs/proto/imm.h"
#include "ibtrs/user/clt.h"

static void trial_await(struct ibtrs_clt_path *path, enum ibtrs_clt_hs hs,
			enum ibtrs_retry_phase phase)
{
	const struct ibtrs_clt *clt = path->clt;
	u64 bytes = (u64)clt->max_io_size * path->untried;

	ibtrs_clt_path_await(path, hs);
	path->due = ibtrs_ctx_now(clt->ctx) +
		    ibtrs_retry_patience_ms(&path->retry, phase, clt->nr_up, path->ext, bytes);
}

static bool trial_is_due(const struct ibtrs_clt_path *path)
{
	const struct ibtrs_clt *clt = path->clt;
	const struct ibtrs_retry_now now = ibtrs_clt_path_now(path);

	if (!(path->ext & IBTRS_EXT_TRIAL) ||
	    !(path->conns[0]->qp->verbs->packets || clt->opts.flags & IBTRS_CLT_TRY_STREAMS))
		return false;
	return !(clt->opened && ibtrs_retry_skips_trial(&path->retry, &now));
}

static int trial_post(struct ibtrs_clt_conn *conn)
{
	const struct ibtrs_clt_path *path = conn->path;
	const struct ibtrs_q *q = &path->clt->qs[conn->cid];
	const struct ibtrs_chunk *chunk = &path->map[q->first];
	struct ibtrs_desc desc = { .len = path->clt->max_io_size };
	struct ibtrs_wire_trial w;
	const struct ibtrs_frame f = {
		.op	= IBTRS_FRAME_WRITE_IMM,
		.imm	= ibtrs_imm_trial(q->first, desc.len,
					  ibtrs_imm_off_bits(path->limits.queue_depth)),
		.key	= chunk->rkey,
		.addr	= chunk->addr,
		.len	= desc.len + sizeof(w),
	};

	conn->qp->verbs->expose(conn->qp, 0, path->trial, &desc);
	ibtrs_trial_encode(&w, &desc);
	ibtrs_wr_init(&conn->cm);
	conn->cm.slot = 1;
	ibtrs_wr_frame(&conn->cm, &f);
	ibtrs_wr_ref(&conn->cm, path->trial, desc.len);
	ibtrs_wr_copy(&conn->cm, &w, sizeof(w));
	ibtrs_qp_post(conn->qp, &conn->cm);
	conn->trying = true;
	return conn->qp->verbs->flush(conn->qp);
}

int ibtrs_clt_trial_start(struct ibtrs_clt_path *path, const char **why)
{
	u32 i;

	if (!trial_is_due(path)) {
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_READY);
		return 0;
	}
	*why = "no memory for the trial of its connections";
	path->trial = calloc(1, path->clt->max_io_size);
	if (!path->trial)
		return -ENOMEM;
	path->untried = path->clt->nr_qs - 1;
	trial_await(path, IBTRS_HS_TRIAL, IBTRS_RETRY_TRIAL);
	for (i = 1; i < path->clt->nr_qs; i++) {
		if (trial_post(path->conns[i])) {
			*why = path->conns[i]->qp->why;
			return path->conns[i]->qp->err;
		}
	}
	return 0;
}

static void trial_passed(struct ibtrs_clt_path *path)
{
	free(path->trial);
	path->trial = NULL;
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_TRIAL_PASSED);
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_READY);
}

int ibtrs_clt_trial_message(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc,
			    const char **why)
{
	struct ibtrs_clt_path *path = conn->path;

	*why = "the server sent something else than the answer to a trial";
	if (wc->op != IBTRS_FRAME_WRITE_IMM)
		return -EPROTO;
	__atomic_store_n(&path->seen, true, __ATOMIC_RELAXED);
	if (!conn->cid) {
		if (ibtrs_imm_type(wc->imm) == IBTRS_IMM_HB_MSG) {
			ibtrs_clt_hb_msg(conn);
			conn->qp->verbs->flush(conn->qp);
		}
		return wc->len ? -EPROTO : 0;
	}
	if (ibtrs_imm_type(wc->imm) != IBTRS_IMM_TRIAL || !conn->trying || conn->cm.posted ||
	    wc->len != path->clt->max_io_size)
		return -EPROTO;
	conn->trying = false;
	conn->qp->verbs->conceal(conn->qp, 0, NULL, 0);
	if (!--path->untried)
		trial_passed(path);
	return 0;
}

void ibtrs_clt_trial_late(struct ibtrs_clt_path *path)
{
	struct ibtrs_qp *qp = path->conns[0]->qp;

	__atomic_store_n(&path->seen, false, __ATOMIC_RELAXED);
	trial_await(path, IBTRS_HS_DOUBT, IBTRS_RETRY_DOUBT);
	ibtrs_qp_post_imm(qp, &path->conns[0]->hb_msg, ibtrs_imm_hb(IBTRS_IMM_HB_MSG));
	if (qp->verbs->flush(qp))
		ibtrs_clt_path_fail(path, qp->err, qp->why);
}

bool ibtrs_clt_trial_in_vain(struct ibtrs_clt_path *path)
{
	if (!__atomic_load_n(&path->seen, __ATOMIC_RELAXED))
		return false;
	ibtrs_clt_path_note(path, IBTRS_RETRY_EV_TRIAL_FAILED);
	ibtrs_clt_path_fail(path, -EMSGSIZE,
			    "full-size packets are lost: is the MTU the same on both hosts and all switches between?");
	return true;
}
