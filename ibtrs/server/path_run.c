// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a path: connecting, connected, closing, sometimes lingering, closed (protocol 2.5).
 *
 * admit.c makes a path for the CONN_REQ of cid 0. Any code may end it, from any context, with
 * ibtrs_srv_path_close(), which only changes the state and queues the close work. Only that work,
 * and the end work behind it, take things apart and free the path.
 *
 * Two kinds of code may post a send: code that sees CONNECTED inside an RCU read section (replies,
 * events), and the works that the close work stops before the drain (INFO work, heartbeat, timer).
 * So once the state has changed, a grace period has passed and these works are stopped, nothing
 * posts during the drain.
 *
 * Order of the end:
 *  1. no connection is set up any more (conn->dead), no reply is posted any more (grace period)
 *  2. every QP is set to error and the peer is told; works are stopped; the path's sysfs directory
 *     is removed; then the path is `stopped`
 *  3. QPs are drained: no completion comes any more, so no request arrives; ops that wait for
 *     credit or for their slot are ended
 *  4. QPs, MRs, PD, then the CM ids are freed: the device can be removed, however long step 5 takes
 *  5. the path waits, without a time limit, until the user has ended all its ops (law L10); no
 *     worker does, since there may be many such paths: the end work runs when an op has ended, and
 *     as a watchdog, which logs which path waits
 *  6. a grace period passes for code that has just ended an op; then chunks and ops are freed, and
 *     the session forgets the path
 * Until step 6 the path counts (law L6), and its client gets -EBUSY. But once it is stopped, and
 * all its executing ops are for disks that the client has given up (or that were given up for it,
 * look.c), the path lingers (docs/design.md 7.2), and the steps above go on. A device made of bios
 * (LVM) can already block the drain, inside the completion of its request; the requests behind it
 * in the queue find the path closing and are not executed.
 */
#include <linux/slab.h>
#include "ibtrs/proto/imm.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/op.h"
#include "ibtrs/server/quota.h"
#include "ibtrs/server/session.h"
#include "ibtrs/server/trace.h"

#define PATH_WATCHDOG	(10 * HZ)

/*
 * First run: after the handshake, or at its deadline: a path whose INFO_RSP is not sent then is
 * closed. Later runs: once per heartbeat interval.
 */
static void path_timer(struct work_struct *work)
{
	struct ibtrs_srv_path *path =
		container_of(to_delayed_work(work), struct ibtrs_srv_path, timer);
	u32 interval_ms = max(READ_ONCE(ibtrs_srv_params.hb_interval_ms), 100u), cid;

	if (!READ_ONCE(path->answered)) {
		ibtrs_srv_path_close(path, "the client did not complete the handshake in time");
		return;
	}
	if (!READ_ONCE(path->hb.running))
		ibtrs_hb_start(&path->hb, &path->conns[0].c, interval_ms,
			       READ_ONCE(ibtrs_srv_params.hb_misses));
	for (cid = 0; cid < path->nr_conns; cid++)
		ibtrs_srv_reply_check(&path->conns[cid]);
	queue_delayed_work(ibtrs_srv.quick_wq, &path->timer, msecs_to_jiffies(interval_ms));
}

static void path_hb_fail(struct ibtrs_hb *hb, int err, const char *why)
{
	ibtrs_srv_path_close(container_of(hb, struct ibtrs_srv_path, hb), why);
}

/* ---- the end ------------------------------------------------------------ */

static void path_stop_posting(struct ibtrs_srv_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++)
		scoped_guard(mutex, &path->conns[cid].lock)
			path->conns[cid].dead = true;
	synchronize_rcu();
	for (cid = 0; cid < path->nr_conns; cid++)
		if (path->conns[cid].c.qp)
			rdma_disconnect(path->conns[cid].c.id);
	cancel_work_sync(&path->info_work);
	cancel_delayed_work_sync(&path->timer);
	ibtrs_hb_stop(&path->hb);
	ibtrs_srv_sysfs_path_del(path);
	smp_store_release(&path->stopped, true);	/* read by look.c */
}

/* Ends the ops that wait for credit, or for the end of another execution. */
static void path_drop_waiting(struct ibtrs_srv_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++)
		ibtrs_srv_reply_drop(&path->conns[cid]);
	ibtrs_srv_look_ops_unpark(path);
}

static void path_drain(struct ibtrs_srv_path *path)
{
	u32 cid;

	path_drop_waiting(path);	/* the drain may take long */
	for (cid = 0; cid < path->nr_conns; cid++)
		ibtrs_conn_drain(&path->conns[cid].c, ibtrs_srv.quick_wq, IBTRS_FAULT_SRV_DRAIN,
				 ibtrs_srv_session_label(path->session), path->name);
	path_drop_waiting(path);
}

/* The CM ids keep the device, so they are destroyed after all else. */
static void path_release_device(struct ibtrs_srv_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++)
		ibtrs_conn_destroy(&path->conns[cid].c);
	ibtrs_srv_quota_end(path);
	ibtrs_iu_free(&path->info_req);
	ibtrs_iu_free(&path->info_rsp);
	ibtrs_srv_chunk_unmap(path);
	ibtrs_dev_put(path->dev);
	path->dev = NULL;
	for (cid = 0; cid < path->nr_conns; cid++)
		if (path->conns[cid].c.id)
			rdma_destroy_id(path->conns[cid].c.id);
}

static void path_begin_waiting(struct ibtrs_srv_path *path)
{
	path->waits_since = jiffies;
	path->told_at = jiffies;
	/* An op that ends may queue the end work first, which then waits for this reader. */
	guard(rcu)();
	smp_store_mb(path->waiting, true);	/* pairs with ibtrs_srv_path_op_ended() */
	queue_delayed_work(ibtrs_srv.wq, &path->end_work, 0);
}

/* The op of slot @busy_from has not ended. */
static void path_watchdog(struct ibtrs_srv_path *path)
{
	path->told_at = jiffies;
	/* The path may have begun to linger meanwhile. */
	if (ibtrs_srv_path_state(path) == IBTRS_SRV_PATH_LINGERING)
		ibtrs_srv_chunk_trim(path);
	pr_warn_ratelimited("session %s: %s: closed since %u s, but the storage has not ended a request of slot %u: look at its disk\n",
		ibtrs_srv_session_label(path->session), path->name,
		jiffies_to_msecs(jiffies - path->waits_since) / 1000, path->busy_from);
}

static void path_close_work(struct work_struct *work)
{
	struct ibtrs_srv_path *path = container_of(work, struct ibtrs_srv_path, close_work);

	pr_info_ratelimited("session %s: %s: path closed: %s\n",
			    ibtrs_srv_session_label(path->session), path->name, path->why);
	path_stop_posting(path);
	path_drain(path);
	path_release_device(path);
	mod_delayed_work(ibtrs_srv.info_wq, &path->session->look, 0);
	path_begin_waiting(path);
}

static void path_free(struct ibtrs_srv_path *path)
{
	free_percpu(path->stats.pcpu);
	kvfree(path->conns);
	memzero_explicit(&path->proof, sizeof(path->proof));
	kfree(path);
}

static void path_end_work(struct work_struct *work)
{
	struct ibtrs_srv_path *path =
		container_of(to_delayed_work(work), struct ibtrs_srv_path, end_work);

	if (ibtrs_srv_look_ops_any_busy(path, &path->busy_from)) {
		if (time_after_eq(jiffies, path->told_at + PATH_WATCHDOG))
			path_watchdog(path);
		queue_delayed_work(ibtrs_srv.wq, &path->end_work, PATH_WATCHDOG);
		return;
	}
	synchronize_rcu();		/* tasks that have just ended an op, and the close work */
	cancel_delayed_work(&path->end_work);	/* which they may have queued */
	/* A path that lingers, which look.c begins under the lock, keeps that state to the end. */
	scoped_guard(mutex, &ibtrs_srv.lock)
		ibtrs_srv_path_change(path, IBTRS_SRV_PATH_CLOSING, IBTRS_SRV_PATH_CLOSED);
	kvfree(path->ops);
	path->ops = NULL;
	ibtrs_srv_chunk_put(path, true);
	ibtrs_srv_session_del_path(path);
	synchronize_rcu();	/* code that sends an event may still see the path in the list */
	path_free(path);
}

/* ---- the beginning ------------------------------------------------------ */

static void path_init_conns(struct ibtrs_srv_path *path)
{
	u32 cid;

	for (cid = 0; cid < path->nr_conns; cid++) {
		struct ibtrs_srv_conn *conn = &path->conns[cid];

		conn->path = path;
		conn->c.cid = cid;
		conn->recv_cqe.done = ibtrs_srv_rx_done;
		conn->send_cqe.done = ibtrs_srv_reply_send_done;
		conn->probe.cqe.done = ibtrs_srv_reply_probe_done;
		spin_lock_init(&conn->wait_lock);
		INIT_LIST_HEAD(&conn->wait);
		mutex_init(&conn->lock);
	}
}

struct ibtrs_srv_path *ibtrs_srv_path_alloc(struct ibtrs_srv_session *session,
					    const struct ibtrs_conn_req *req,
					    const struct ibtrs_addr_pair *addr,
					    const struct ibtrs_srv_proof *proof)
{
	const struct ibtrs_srv_params *p = &ibtrs_srv_params;
	struct ibtrs_srv_path *path;

	path = kzalloc(sizeof(*path), GFP_KERNEL);
	if (!path)
		return NULL;
	path->conns = kvcalloc(req->cid_num, sizeof(*path->conns), GFP_KERNEL);
	path->stats.pcpu = alloc_percpu(struct ibtrs_srv_traffic);
	if (!path->conns || !path->stats.pcpu) {
		path_free(path);
		return NULL;
	}
	spin_lock_init(&path->stats.lock);
	path->known = ibtrs_srv_quota_is_known(&addr->src, proof->key);
	path->queue_bytes = ibtrs_srv_path_first_bytes(req->cid_num);
	path->state = IBTRS_SRV_PATH_CONNECTING;
	path->session = session;
	path->nr_conns = req->cid_num;
	path->recon_cnt = req->recon_cnt;
	path->first_conn = req->first_conn;
	path->addr = *addr;
	path->from.addr = addr->src;
	path->proof = *proof;
	ibtrs_addr_pair_format(addr, path->name, sizeof(path->name));
	memcpy(path->uuid, req->path_uuid, sizeof(path->uuid));
	path->ext = req->ext;
	path->limits.new_rkey = p->always_invalidate;
	path->limits.queue_depth = p->queue_depth;
	path->limits.chunk_size = p->chunk_size;
	path->limits.max_hdr_size = IBTRS_HDR_SIZE;
	path->limits.max_io_size = p->chunk_size - IBTRS_HDR_SIZE;
	path->limits.fence = req->ext & IBTRS_EXT_FENCE;
	path->off_bits = ibtrs_imm_off_bits(p->queue_depth);
	INIT_DELAYED_WORK(&path->timer, path_timer);
	INIT_WORK(&path->info_work, ibtrs_srv_info_work);
	INIT_WORK(&path->close_work, path_close_work);
	INIT_DELAYED_WORK(&path->end_work, path_end_work);
	ibtrs_hb_init(&path->hb, ibtrs_srv.quick_wq, path_hb_fail);
	path->hb.fault = IBTRS_FAULT_SRV_HEARTBEAT;
	path->hb.session = session->name;
	path->hb.path = path->name;
	path_init_conns(path);
	return path;
}
