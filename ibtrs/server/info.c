// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handshake's second half (protocol 2.2-2.4): INFO_REQ, which names the session, and the memory
 * that a path gets when it is let in.
 *
 * handshake.c posts the buffer for INFO_REQ before cid 0 is accepted. The INFO work allocates what
 * a path needs (chunks, ops, keys); none of it is allocated before. If anything fails there, the
 * path ends: the client sees a disconnect, or is sent the reason in place of INFO_RSP (WORDS).
 */
#include "ibtrs/server/auth.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/op.h"
#include "ibtrs/server/quota.h"

#define INFO_HB_DELAY	(HZ / 10)	/* time for the client to post its receives */
#define INFO_REFUSED	(2 * HZ)	/* time for a refused client to leave by itself */

static void info_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_path *path = container_of(wc->wr_cqe, struct ibtrs_srv_path, info_req.cqe);

	if (ibtrs_srv_path_failed(path, wc))
		return;
	if (wc->opcode != IB_WC_RECV || wc->wc_flags & IB_WC_WITH_IMM) {
		ibtrs_srv_path_close(path, "a request came before INFO_REQ");
		return;
	}
	path->info_len = wc->byte_len;
	/* The close work cancels info_work a grace period after the state has changed. */
	guard(rcu)();
	if (ibtrs_srv_path_state(path) == IBTRS_SRV_PATH_CONNECTING)
		queue_work(ibtrs_srv.info_wq, &path->info_work);
}

int ibtrs_srv_info_expect(struct ibtrs_srv_path *path)
{
	int err;

	err = ibtrs_iu_init(&path->info_req, path->dev->ib, sizeof(struct ibtrs_wire_info_req),
			    DMA_FROM_DEVICE, info_recv_done);
	return err ?: ibtrs_iu_post_recv(&path->info_req, &path->conns[0].c, path->dev);
}

static void info_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_path *path = container_of(wc->wr_cqe, struct ibtrs_srv_path, info_rsp.cqe);

	if (!ibtrs_srv_path_failed(path, wc))
		ibtrs_conn_credit(&path->conns[0].c, 1);
}

static int info_resources(struct ibtrs_srv_path *path, const char **why)
{
	int err;

	err = ibtrs_srv_chunk_get(path, why);
	if (err)
		WRITE_ONCE(path->chunk_bytes, 0);
	err = err ?: ibtrs_srv_chunk_map(path, why);
	if (err)
		return err;
	*why = "out of memory";
	err = ibtrs_srv_op_alloc(path);
	return err   ?:
		       ibtrs_iu_init(&path->info_rsp, path->dev->ib,
				     ibtrs_msg_info_rsp_size(path->mrs.nr), DMA_TO_DEVICE,
				     info_send_done);
}

static int info_answer(struct ibtrs_srv_path *path, const char **why)
{
	u32 cid;
	int err;

	for (cid = 0; cid < path->nr_conns; cid++) {
		err = ibtrs_srv_rx_start(&path->conns[cid]);
		if (err)
			return refuse(why, "receives cannot be posted", err);
	}
	err = ibtrs_srv_chunk_register(path, why);
	if (err)
		return err;
	err = ibtrs_srv_chunk_describe(path, path->info_rsp.buf);
	if (err)
		return refuse(why, "out of memory", err);
	if (!ibtrs_srv_path_change(path, IBTRS_SRV_PATH_CONNECTING, IBTRS_SRV_PATH_CONNECTED))
		return refuse(why, "it was closed meanwhile", -ECONNABORTED);
	/*
	 * Asked again: what the session was given since the first time was not checked for this
	 * address.
	 */
	err = ibtrs_srv_session_admit_peer(path, why);
	if (err)
		return err;
	err = ibtrs_iu_send(&path->info_rsp, &path->conns[0].c, path->dev, path->info_rsp.size);
	if (err)
		return refuse(why, "INFO_RSP cannot be posted", err);
	/*
	 * The handshake is over and the heartbeat follows. Not earlier: the client's first receive
	 * on cid 0 is for INFO_RSP, and a heartbeat in it ends the path.
	 */
	WRITE_ONCE(path->answered, true);
	mod_delayed_work(ibtrs_srv.quick_wq, &path->timer, INFO_HB_DELAY);
	return 0;
}

/* *@named: this work has taken the session's name. */
static int info_serve(struct ibtrs_srv_path *path, bool *named, const char **why)
{
	const char *name;
	int err;

	if (ibtrs_srv_path_state(path) != IBTRS_SRV_PATH_CONNECTING ||
	    test_and_set_bit(0, &path->info_seen))
		return refuse(why, "INFO_REQ in the wrong state", -EPROTO);
	/* pairs with the release of handshake.c: rx_start() sees all QPs */
	if (atomic_read_acquire(&path->nr_accepted) != path->nr_conns)
		return refuse(why, "INFO_REQ before all connections of the path are there",
			      -EPROTO);
	/* All connections are there, so none will be proved with it (admit.c). */
	scoped_guard(mutex, &ibtrs_srv.lock)
		memzero_explicit(path->proof.ks, sizeof(path->proof.ks));
	ibtrs_iu_sync_cpu(&path->info_req);
	err = ibtrs_msg_info_req_decode(path->info_req.buf, path->info_len, &name, why);
	/* First, before anything is allocated: a client that waits for a name asks often. */
	err = err ?: ibtrs_srv_session_take_name(path, name, why);
	*named = !err;
	err = err ?: ibtrs_srv_session_admit_peer(path, why);
	err = err ?: ibtrs_srv_quota_let_in(path, why);
	err = err ?: info_resources(path, why);
	err = err ?: ibtrs_srv_session_bring_up(path, why);
	err = err ?: ibtrs_srv_session_admit_peer(path, why);
	if (err)
		return err;
	*why = "its directory in sysfs cannot be made";
	err = ibtrs_srv_sysfs_path_add(path);
	/*
	 * Behind that: a task that removes a key, and then closes its paths, has seen this one, or
	 * the key is missed here.
	 */
	err = err ?: ibtrs_srv_auth_still(&path->proof, why);
	return err ?: info_answer(path, why);
}

static void info_refused_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_path *path = container_of(wc->wr_cqe, struct ibtrs_srv_path, info_rsp.cqe);

	if (wc->status == IB_WC_SUCCESS)
		ibtrs_conn_credit(&path->conns[0].c, 1);
	else
		ibtrs_srv_path_close(path, "refused, and its client was gone");
}

/*
 * Sends the reason in place of INFO_RSP. The client closes the path when it has read the reason. If
 * the server closed the path first, the disconnect might overtake the reason. False: the reason
 * could not be sent.
 */
static bool info_say_refused(struct ibtrs_srv_path *path, int err, const char *why)
{
	if (!(path->ext & IBTRS_EXT_WORDS) ||
	    ibtrs_srv_path_state(path) != IBTRS_SRV_PATH_CONNECTING)
		return false;
	ibtrs_iu_free(&path->info_rsp);
	if (ibtrs_iu_init(&path->info_rsp, path->dev->ib, sizeof(struct ibtrs_wire_verdict),
			  DMA_TO_DEVICE, info_refused_done))
		return false;
	ibtrs_msg_verdict_encode(path->info_rsp.buf, IBTRS_MSG_INFO_REFUSED, err, why);
	if (ibtrs_iu_send(&path->info_rsp, &path->conns[0].c, path->dev, path->info_rsp.size))
		return false;
	/* Close the path soon if the client does not. */
	mod_delayed_work(ibtrs_srv.quick_wq, &path->timer, INFO_REFUSED);
	return true;
}

/* One line for each that comes in, or does not: by which key, if it has one. */
static void info_log(const struct ibtrs_srv_path *path, int err, const char *why)
{
	const char *label = ibtrs_srv_session_label(path->session), *key = path->proof.key;

	ibtrs_srv_auth_count(key, !err);
	if (!ibtrs_srv_auth_may_log(IBTRS_SRV_LINE_PATH, &path->addr.src))
		return;
	if (!err)
		pr_info("session %s: %s: path up on %s port %u, %u connections%s, let in %s%s\n",
			label, path->name, path->hca, path->port, path->nr_conns,
			path->limits.fence ? ", fenced" : "", key[0] ? "by key " : "without a key",
			key);
	else
		pr_warn("session %s: %s: path refused%s%s: %s (%d)\n", label, path->name,
			key[0] ? ", key " : "", key, why, err);
}

/*
 * The path is up or refused: log that while the session has its name, and tell a refused client
 * why.
 */
static void info_end(struct ibtrs_srv_path *path, int err, const char *why)
{
	/* The INFO work failed because the path was closed: the close work logs why. */
	if (err && ibtrs_srv_path_state(path) == IBTRS_SRV_PATH_CLOSING)
		return;
	/* A client that waits for the end of its earlier session asks ten times a second. */
	if (err != -EBUSY)
		info_log(path, err, why);
	if (!err)
		return;
	if (!info_say_refused(path, err, why))
		ibtrs_srv_path_close(path, why);
}

void ibtrs_srv_info_work(struct work_struct *work)
{
	struct ibtrs_srv_path *path = container_of(work, struct ibtrs_srv_path, info_work);
	const char *why = "";
	bool named = false;
	int err;

	err = info_serve(path, &named, &why);
	info_end(path, err, why);
	if (named)
		ibtrs_srv_session_named(path, !err);
}
