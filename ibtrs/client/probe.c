// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decision 16: a send queue can die without a completion (soft-RoCE after a retransmitted REG_MR),
 * and the heartbeat does not detect it, because it uses the service connection. To the client a
 * dead queue looks like a slow disk, for ever.
 *
 * So once per heartbeat interval each connection with requests in flight, whose send queue has
 * completed nothing since the last check, gets a probe: a signalled zero-byte RDMA write, which the
 * peer's software never sees. If the probe completes, the disk is slow. If it does not complete
 * within hb_misses intervals plus the time that the data in flight need, the path fails; its drain
 * then moves the requests. At most one probe per connection is in flight. A send queue that has no
 * room for a probe counts as silent.
 *
 * The completions of a polled connection are seen only when a task polls, and no task has to: the
 * check polls first.
 *
 * The same work detects that a path has become marginal, or is not marginal any more.
 *
 * The completion of a probe comes before the drain ends or not at all. The check is stopped before
 * the drain, so no probe is posted after the drain has begun.
 */
#include "ibtrs/client/answer.h"
#include "ibtrs/client/paths.h"
#include "ibtrs/client/session.h"

static void probe_check(struct ibtrs_clt_path *path, struct ibtrs_clt_conn *conn)
{
	u32 out = ibtrs_clt_conn_inflight(conn);
	u32 patience = ibtrs_sqwatch_patience(path->clt->opts.hb_misses,
					      (u64)out * path->limits.max_io_size);
	const char *why;
	int err;

	err = ibtrs_probe_look(&conn->probe, &conn->c, out, false, patience, &why);
	if (err < 0)
		ibtrs_clt_path_fail(path, err, why);
}

static void probe_work(struct work_struct *work)
{
	struct ibtrs_clt_path *path =
		container_of(to_delayed_work(work), struct ibtrs_clt_path, probe);
	bool wary = ibtrs_clt_path_ask(path, ibtrs_retry_marginal);
	u32 cid;

	/* Write only a change: requests read `wary`, and a write takes the line from their CPUs. */
	if (wary != READ_ONCE(path->stats.wary))
		WRITE_ONCE(path->stats.wary, wary);
	for (cid = 0; cid < path->nr_conns; cid++) {
		if (path->conns[cid].polled) {
			guard(rcu)();
			ibtrs_clt_conn_poll(&path->conns[cid]);
		}
		probe_check(path, &path->conns[cid]);
	}
	queue_delayed_work(path->clt->wq, &path->probe,
			   msecs_to_jiffies(path->clt->opts.hb_interval_ms));
}

static void probe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_clt_conn *conn = container_of(wc->wr_cqe, struct ibtrs_clt_conn, probe.cqe);

	if (unlikely(ibtrs_clt_wc_failed(conn, wc)))
		return;
	ibtrs_conn_credit(&conn->c, 1);
	WRITE_ONCE(conn->probe.out, false);
}

void ibtrs_clt_probe_init(struct ibtrs_clt_path *path)
{
	INIT_DELAYED_WORK(&path->probe, probe_work);
}

void ibtrs_clt_probe_start(struct ibtrs_clt_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++) {
		struct ibtrs_probe *probe = &path->conns[cid].probe;

		probe->cqe.done = probe_done;
		probe->seen = true;
		probe->out = false;
		probe->watch.silent = 0;
	}
	queue_delayed_work(path->clt->wq, &path->probe,
			   msecs_to_jiffies(path->clt->opts.hb_interval_ms));
}
