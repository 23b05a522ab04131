// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a path, and the few ways to change it from outside. What follows from a change is
 * done by path_run.c.
 *
 * Any context may call this file, so it takes no lock and only posts works.
 */
#include "ibtrs/server/session.h"
#include "ibtrs/server/trace.h"

#define PATH_SERVICE_WR	256
/* with core's slack just below 1024: if the queue is too small, replies only wait for credit */
#define PATH_IO_WR_MAX	991

/* Estimates, from soft-RoCE. */
#define PATH_SEND_WR_SIZE	256
#define PATH_RECV_WR_SIZE	128
#define PATH_CQE_SIZE		64

u32 ibtrs_srv_path_send_wr(bool service)
{
	u32 per_req = ibtrs_srv_params.always_invalidate ? 5 : 3;

	return service ? PATH_SERVICE_WR :
			 min_t(u32, per_req * ibtrs_srv_params.queue_depth + 1, PATH_IO_WR_MAX);
}

u64 ibtrs_srv_path_conn_bytes(bool service)
{
	u64 recv_wr = service ? IBTRS_SRV_RX_SERVICE + 1 :
				ibtrs_srv_params.queue_depth + IBTRS_SRV_RX_BATCH;

	return (u64)ibtrs_srv_path_send_wr(service) * (PATH_SEND_WR_SIZE + PATH_CQE_SIZE) +
	       recv_wr * (PATH_RECV_WR_SIZE + PATH_CQE_SIZE);
}

u64 ibtrs_srv_path_first_bytes(u32 nr_conns)
{
	return ibtrs_srv_path_conn_bytes(true) + sizeof(struct ibtrs_srv_path) +
	       (u64)nr_conns * sizeof(struct ibtrs_srv_conn) +
	       (u64)num_possible_cpus() * sizeof(struct ibtrs_srv_traffic);
}

bool ibtrs_srv_path_change(struct ibtrs_srv_path *path, enum ibtrs_srv_path_state from,
			   enum ibtrs_srv_path_state to)
{
	if (cmpxchg(&path->state, from, to) != from)
		return false;
	trace_ibtrs_srv_path_state(path, from, to);
	return true;
}

void ibtrs_srv_path_close(struct ibtrs_srv_path *path, const char *why)
{
	/*
	 * knocked and down_at are written before the state changes, because look.c reads
	 * them once all paths are closing. A client whose paths are up sends no CONN_REQ: an old
	 * knocked must not look like a long silence.
	 */
	if (ibtrs_srv_path_state(path) < IBTRS_SRV_PATH_CLOSING)
		WRITE_ONCE(path->session->knocked, jiffies);
	if (ibtrs_srv_path_up(path))
		WRITE_ONCE(path->session->down_at, jiffies);
	/* In the order of the states: a path that comes up in between is not missed. */
	if (!ibtrs_srv_path_change(path, IBTRS_SRV_PATH_CONNECTING, IBTRS_SRV_PATH_CLOSING) &&
	    !ibtrs_srv_path_change(path, IBTRS_SRV_PATH_CONNECTED, IBTRS_SRV_PATH_CLOSING))
		return;
	path->why = why;
	ibtrs_srv_session_watch(path->session);
	queue_work(ibtrs_srv.wq, &path->close_work);	/* path and session may now be freed */
}

void ibtrs_srv_path_op_ended(struct ibtrs_srv_path *path)
{
	smp_mb();	/* the op's busy was cleared before; pairs with path_begin_waiting() */
	if (READ_ONCE(path->waiting))
		mod_delayed_work(ibtrs_srv.wq, &path->end_work, 0);
}
