/* SPDX-License-Identifier: GPL-2.0-only */
/* Connection establishment of a path, and the CM events that come afterwards. */
#ifndef IBTRS_CLIENT_CM_H
#define IBTRS_CLIENT_CM_H

#include <linux/mutex.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/proto/wire.h"

struct ibtrs_clt_path;

/**
 * struct ibtrs_clt_conn - one connection of a path; no two share a cache line
 * @lock: protects @dead: a late CM event must not build what teardown has removed
 * @recv_due: receives consumed and not yet posted again (CQ context of this connection only)
 * @inflight: requests that were posted here, and have not ended or left. Counted by connection and
 *	not by path: a CPU that has a connection of its own then writes to no cache line of other
 *	CPUs
 * @alone: number of requests in a row that found no other request here, see post_is_alone() in
 *	post.c. A hint, like @last; written by the sender
 * @last: the task that sent the last request; only compared, never dereferenced
 */
struct ibtrs_clt_conn {
	struct ibtrs_conn c;
	struct ibtrs_clt_path *path;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
	u32 recv_due;
	atomic_t inflight;
	u32 alone;
	const void *last;
	struct ibtrs_probe probe;
	struct ibtrs_iu *rxbufs;	/* with NEW_RKEY only */
	bool polled;
	/* bit 0: a task polls the CQ; so messages are handled one after another, in order */
	unsigned long polling;

	struct mutex lock;
	bool dead;
	/* the request as sent; the proof in the answer is checked against it */
	struct ibtrs_wire_conn_req req;
} ____cacheline_aligned_in_smp;

/* How many requests are posted on @conn; not exact. Any context. */
static inline u32 ibtrs_clt_conn_inflight(const struct ibtrs_clt_conn *conn)
{
	return max(0, atomic_read(&conn->inflight));
}

#define IBTRS_CLT_POLL_BUDGET	256	/* for more, poll again */

/*
 * Handle what has completed on a polled @conn. Under RCU. Returns how many; 0 also if another task
 * polls the CQ, for both: there is nothing to wait for.
 */
static inline int ibtrs_clt_conn_poll(struct ibtrs_clt_conn *conn)
{
	int n;

	if (test_and_set_bit_lock(0, &conn->polling))
		return 0;
	n = ib_process_cq_direct(conn->c.cq, IBTRS_CLT_POLL_BUDGET);
	clear_bit_unlock(0, &conn->polling);
	return n;
}

/*
 * Start one attempt: creates the id of cid 0 and resolves. A handshake step or FAIL follows. Path
 * work.
 */
int ibtrs_clt_cm_start(struct ibtrs_clt_path *path);
/*
 * The authentication on the first connection has succeeded: destroy that connection, with
 * everything that was bound to its device, and start cid 0 in its place. Handshake work; waits for
 * the drain.
 */
int ibtrs_clt_cm_restart(struct ibtrs_clt_path *path);
/* The limits are known: connect cid 1 .. N-1, all at once. Handshake work. */
int ibtrs_clt_cm_start_io(struct ibtrs_clt_path *path);
/*
 * Mark all connections dead, so that a late event builds nothing any more, and tell the peers. Then
 * drain: no completion comes after that. Drain work.
 */
void ibtrs_clt_cm_disconnect(struct ibtrs_clt_path *path);
/* Destroy QPs and CQs. Drain work, after the requests have left the path. */
void ibtrs_clt_cm_destroy(struct ibtrs_clt_path *path);
/*
 * Leave the RDMA device: end the watch of its port, free the PD, and destroy the ids, which hold
 * the device. Call it when all other objects of the path on that device are gone.
 */
void ibtrs_clt_cm_release(struct ibtrs_clt_path *path);

/* port.c: link events of the host's own ports */

int ibtrs_clt_port_init(void);
void ibtrs_clt_port_exit(void);
/*
 * After this call the path fails when the port that @id is bound to goes down. Call it from the CM
 * handler of cid 0, with a reference to the device.
 */
void ibtrs_clt_port_watch(struct ibtrs_clt_path *path, const struct rdma_cm_id *id);
/* Drain: the QPs of @path may be destroyed when this returns, after 1.5 s at most. */
void ibtrs_clt_port_settle(struct ibtrs_clt_path *path);
/* Ends the watch, if there is one; no event comes after it has returned. */
void ibtrs_clt_port_unwatch(struct ibtrs_clt_path *path);

/* rx.c: receives on a connection */

/*
 * How many receives such a connection posts (protocol 7): for answers, and for the invalidations
 * that come before them.
 */
u32 ibtrs_clt_rx_depth(const struct ibtrs_clt_conn *conn);
/* Post all receives of a connection; with NEW_RKEY allocates their buffers. */
int ibtrs_clt_rx_start(struct ibtrs_clt_conn *conn);
/* After the drain; idempotent. */
void ibtrs_clt_rx_stop(struct ibtrs_clt_conn *conn);
void ibtrs_clt_rx_recv_done(struct ib_cq *cq, struct ib_wc *wc);
void ibtrs_clt_rx_send_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
