// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handshake of a path (protocol 2.4): what happens between "cid 0 is established" and READY.
 *
 * CM events and completions only queue a step; the work executes it, because the steps allocate and
 * sleep. One timer bounds each wait for the server (decision 11): it is stopped when the answer
 * arrives, not when the answer has been handled. All failures are ibtrs_clt_path_fail(). Nothing
 * here runs after ibtrs_clt_handshake_stop().
 */
#include <linux/slab.h>
#include "ibtrs/client/answer.h"
#include "ibtrs/client/path.h"
#include "ibtrs/client/session.h"

static const char * const hs_phase_names[] = {
	[IBTRS_RETRY_RESOLVE]		= "resolve",
	[IBTRS_RETRY_FIRST_WORD]	= "connect",
	[IBTRS_RETRY_AUTH]		= "authentication",
	[IBTRS_RETRY_CONNECT]		= "connect",
	[IBTRS_RETRY_INFO]		= "info",
	[IBTRS_RETRY_TRIAL]		= "trial",
	[IBTRS_RETRY_DOUBT]		= "trial",
};

void ibtrs_clt_handshake_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(cq->cq_context, struct ibtrs_clt_conn, c);

	if (!ibtrs_clt_wc_failed(conn, wc))
		ibtrs_conn_credit(&conn->c, 1);
}

static void hs_rsp_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_path *path = container_of(wc->wr_cqe, struct ibtrs_clt_path, hs.rsp.cqe);

	if (wc->status == IB_WC_SUCCESS && wc->opcode == IB_WC_RECV) {
		path->hs.rsp_len = wc->byte_len;
		ibtrs_clt_path_answered(path, IBTRS_CLT_HS_RSP);
	} else if (wc->status != IB_WC_WR_FLUSH_ERR) {
		ibtrs_clt_path_fail(path, -EPROTO, "no INFO_RSP where one is due");
	}
}

/* Both sides have proved it: close the authenticating connection and start cid 0. */
static int hs_auth(struct ibtrs_clt_path *path, const char **why)
{
	int err = ibtrs_clt_auth_step(path, why);

	if (err <= 0)
		return err;
	*why = "connections cannot be started";
	return ibtrs_clt_cm_restart(path);
}

static int hs_prepare(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt_handshake *hs = &path->hs;
	int err;

	err = ibtrs_clt_link_limits(path->clt, path, why);
	if (err)
		return err;
	*why = "no memory for the connection";
	hs->chunks = kvcalloc(path->limits.queue_depth, sizeof(*hs->chunks), GFP_KERNEL);
	if (!hs->chunks)
		return -ENOMEM;
	err = ibtrs_clt_mr_alloc(path);
	if (err)
		return err;
	*why = "connections cannot be started";
	return ibtrs_clt_cm_start_io(path);
}

static int hs_info(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt_conn *service = &path->conns[0];
	struct ib_device *ib = path->dev->ib;
	struct ibtrs_clt_handshake *hs = &path->hs;
	size_t room = ibtrs_msg_info_rsp_size(path->limits.queue_depth);
	u32 cid;
	int err;

	ibtrs_clt_auth_forget(path);	/* all connections are there */
	*why = "no memory for the connection";
	if (path->ext & IBTRS_EXT_WORDS)
		room = max_t(size_t, room, sizeof(struct ibtrs_wire_verdict));
	err = ibtrs_iu_init(&hs->req, ib, sizeof(struct ibtrs_wire_info_req), DMA_TO_DEVICE,
			    ibtrs_clt_handshake_sent);
	err = err ?: ibtrs_iu_init(&hs->rsp, ib, room, DMA_FROM_DEVICE, hs_rsp_done);
	if (err)
		return err;
	ibtrs_msg_info_req_encode(hs->req.buf, path->clt->name);

	*why = "the handshake cannot be posted";
	err = ibtrs_iu_post_recv(&hs->rsp, &service->c, path->dev);
	for (cid = 0; cid < path->nr_conns && !err; cid++)
		err = ibtrs_clt_rx_start(&path->conns[cid]);
	err = err ?: ibtrs_clt_mr_post_bounce(path);
	err = err ?: ibtrs_clt_trial_prepare(path);
	if (err)
		return err;
	/* The same work handles the answer, so it runs only after this function has returned. */
	ibtrs_clt_path_await(path, IBTRS_RETRY_INFO);
	return ibtrs_iu_send(&hs->req, &service->c, path->dev, hs->req.size);
}

static int hs_rsp(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt_handshake *hs = &path->hs;
	const struct ibtrs_wire_info_rsp *rsp = hs->rsp.buf;
	char text[IBTRS_WORDS_LEN];
	u16 sg_cnt;
	u32 life;
	int err;

	ibtrs_iu_sync_cpu(&hs->rsp);
	if (path->ext & IBTRS_EXT_WORDS &&
	    ibtrs_msg_info_refused_decode(hs->rsp.buf, hs->rsp_len, &err, text)) {
		ibtrs_clt_path_refused(path, err, text);
		return 0;
	}
	err = ibtrs_msg_info_rsp_decode(hs->rsp.buf, hs->rsp_len, &sg_cnt, &life, why);
	err = err ?: ibtrs_chunkmap_build(rsp->desc, sg_cnt, &path->limits, hs->chunks, why);
	if (err)
		return err;
	path->life = path->limits.fence ? life : 0;
	WRITE_ONCE(path->clt->life, path->life);
	*why = "the trial of the connection cannot be posted";
	err = ibtrs_clt_trial_start(path);
	if (err > 0)
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_READY, 0, NULL);
	return min(err, 0);
}

static void hs_tried(struct ibtrs_clt_path *path)
{
	/* It may just have found the trial late, and be about to doubt the connections. */
	cancel_delayed_work_sync(&path->hs.deadline);
	ibtrs_clt_trial_passed(path);
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_READY, 0, NULL);
}

static void hs_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path = container_of(work, struct ibtrs_clt_path, hs.work);
	const char *why = NULL;
	int err = 0;

	guard(noio)();
	if (test_and_clear_bit(IBTRS_CLT_HS_AUTH_STEP, &path->hs.todo))
		err = hs_auth(path, &why);
	if (!err && test_and_clear_bit(IBTRS_CLT_HS_CID0, &path->hs.todo))
		err = hs_prepare(path, &why);
	if (!err && test_and_clear_bit(IBTRS_CLT_HS_INFO, &path->hs.todo))
		err = hs_info(path, &why);
	if (!err && test_and_clear_bit(IBTRS_CLT_HS_RSP, &path->hs.todo))
		err = hs_rsp(path, &why);
	if (!err && test_and_clear_bit(IBTRS_CLT_HS_TRIED, &path->hs.todo))
		hs_tried(path);
	if (err)
		ibtrs_clt_path_fail(path, err, why);
}

static void hs_deadline(struct work_struct *work)
{
	struct ibtrs_clt_path *path =
		container_of(to_delayed_work(work), struct ibtrs_clt_path, hs.deadline);
	enum ibtrs_retry_phase phase = READ_ONCE(path->hs.phase);
	char why[IBTRS_CLT_REASON_LEN];

	if (phase == IBTRS_RETRY_TRIAL) {
		ibtrs_clt_trial_late(path);
		return;
	}
	if (phase == IBTRS_RETRY_STOPPED ||
	    (phase == IBTRS_RETRY_DOUBT && ibtrs_clt_trial_in_vain(path)))
		return;
	snprintf(why, sizeof(why), "no answer in phase '%s' of the connection",
		 hs_phase_names[phase]);
	ibtrs_clt_path_fail(path, -ETIMEDOUT, why);
}

void ibtrs_clt_handshake_init(struct ibtrs_clt_path *path)
{
	INIT_WORK(&path->hs.work, hs_work);
	INIT_DELAYED_WORK(&path->hs.deadline, hs_deadline);
}

void ibtrs_clt_handshake_begin(struct ibtrs_clt_path *path)
{
	guard(spinlock_irqsave)(&path->reason_lock);
	WRITE_ONCE(path->hs.phase, IBTRS_RETRY_RESOLVE);
}

void ibtrs_clt_handshake_stop(struct ibtrs_clt_path *path)
{
	scoped_guard(spinlock_irqsave, &path->reason_lock)
		WRITE_ONCE(path->hs.phase, IBTRS_RETRY_STOPPED);
	cancel_delayed_work_sync(&path->hs.deadline);
	cancel_work_sync(&path->hs.work);
	path->hs.todo = 0;
}

void ibtrs_clt_handshake_free(struct ibtrs_clt_path *path)
{
	ibtrs_clt_auth_free(path);
	ibtrs_clt_auth_forget(path);
	ibtrs_iu_free(&path->hs.req);
	ibtrs_iu_free(&path->hs.rsp);
	kvfree(path->hs.chunks);
	path->hs.chunks = NULL;
}
