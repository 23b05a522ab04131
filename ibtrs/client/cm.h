/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connection establishment of a path: resolve, route, QP, REQ, and the news that the CM brings
 * afterwards.
 */
#ifndef IBTRS_CLIENT_CM_H
#define IBTRS_CLIENT_CM_H

#include <linux/mutex.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/iu.h"
#include "ibtrs/logic/sqwatch.h"
#include "ibtrs/proto/wire.h"

struct ibtrs_clt_path;
struct ibtrs_clt_rxbuf;

/**
 * struct ibtrs_clt_conn - one connection of a path; no two share a cache line
 * @lock: dead, against a late CM event that would build on what teardown removes
 * @recv_due: receives consumed and not yet given back (CQ context of this connection only)
 * @inv_rkey: key that the peer invalidated last (same)
 * @inflight: requests that were posted here, and have not ended or left. Counted by connection and
 *	not by path, so that a CPU, which has one of its own, writes to no line of others
 * @seen: written by every completion, cleared by the check of probe.c
 * @alone: requests in a row that found nobody else here, see post_is_alone() in post.c. A hint, as
 *	is @last; by whoever sends
 * @last: the task that sent the last request; compared, never followed
 * @probing: a probe is out
 * @watch: the check's
 */
struct ibtrs_clt_conn {
	struct ibtrs_conn c;
	struct ibtrs_clt_path *path;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
	u32 recv_due;
	u32 inv_rkey;
	atomic_t inflight;
	u32 alone;
	const void *last;
	bool seen;
	bool probing;
	struct ibtrs_sqwatch watch;
	struct ib_cqe probe_cqe;
	struct ibtrs_clt_rxbuf *rxbufs;	/* with NEW_RKEY only */
	u32 nr_rxbufs;
	bool polled;
	/* bit 0: a task is in the CQ; messages are taken one after another, in order */
	unsigned long polling;

	struct mutex lock;
	bool dead;
	bool established;
	struct ibtrs_wire_conn_req req;	/* what was said; its answer may have to prove something */
} ____cacheline_aligned_in_smp;

/* Requests that are posted on @conn, of no exact moment. Any context. */
static inline u32 ibtrs_clt_conn_inflight(const struct ibtrs_clt_conn *conn)
{
	return max(0, atomic_read(&conn->inflight));
}

/* Something was completed on @conn. CQ context. */
static inline void ibtrs_clt_conn_seen(struct ibtrs_clt_conn *conn)
{
	if (!READ_ONCE(conn->seen))
		WRITE_ONCE(conn->seen, true);
}

/*
 * Start one attempt: creates the id of cid 0 and resolves. Ends in handshake news or in FAIL. Path
 * work.
 */
int ibtrs_clt_cm_start(struct ibtrs_clt_path *path);
/*
 * The first connection has brought the proof: it goes, with all that was bound to its device, and
 * cid 0 takes its place. Handshake work; waits for the drain.
 */
int ibtrs_clt_cm_restart(struct ibtrs_clt_path *path);
/* The limits are known: connect cid 1 .. N-1, all at once. Handshake work. */
int ibtrs_clt_cm_start_io(struct ibtrs_clt_path *path);
/*
 * No late event can build anything any more, peers are told. Then: no completion can come. Drain
 * work.
 */
void ibtrs_clt_cm_disconnect(struct ibtrs_clt_path *path);
/* QPs, CQs. Drain work, after the requests are off the path. */
void ibtrs_clt_cm_destroy(struct ibtrs_clt_path *path);
/* The ids, which hold the RDMA device: when all else of the path that lies on it is gone. */
void ibtrs_clt_cm_release(struct ibtrs_clt_path *path);

#endif
