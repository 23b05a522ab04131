// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs-server: its parameters, and the order in which its parts are started and stopped. Nothing
 * listens, and no memory is held for any client, until a user (ibnbd-server) calls
 * ibtrs_srv_open().
 */
#include <linux/module.h>
#include <linux/sizes.h>
#include <ibtrs/admin.h>
#include <ibtrs/version.h>
#include "ibtrs/proto/imm.h"
#include "ibtrs/proto/wire.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/chunk.h"
#include "ibtrs/server/debug.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/quota.h"
#include "ibtrs/server/session.h"

#define CREATE_TRACE_POINTS
#include "ibtrs/server/trace.h"

#define PARAMS_MAX_CHUNK	SZ_4M	/* physically contiguous */

struct ibtrs_srv_params ibtrs_srv_params = {
	.queue_depth		= 512,
	.chunk_size		= SZ_128K + IBTRS_HDR_SIZE,	/* an I/O of 128 KiB in one piece */
	.max_sessions		= 256,
	.max_sessions_per_peer	= 64,
	.max_half_open		= 256,
	.max_half_open_per_peer	= 64,
	.max_conns		= 513,
	.handshake_timeout_s	= 30,
	.hb_interval_ms		= 1000,
	.hb_misses		= 5,
	.name_keep_s		= 120,
};

module_param_named(sess_queue_depth, ibtrs_srv_params.queue_depth, uint, 0444);
MODULE_PARM_DESC(sess_queue_depth,
		 "slots per session, 1..65535; each costs a chunk of memory per path (default: 512)");
module_param_named(max_chunk_size, ibtrs_srv_params.chunk_size, uint, 0444);
MODULE_PARM_DESC(max_chunk_size,
		 "bytes of a chunk: the largest I/O and 4096; a multiple of 4096, at least 8192 (default: 135168)");
module_param_named(always_invalidate, ibtrs_srv_params.always_invalidate, bool, 0444);
MODULE_PARM_DESC(always_invalidate,
		 "take the client's right to write to a chunk away while it is processed (default: N)");
IBTRS_ADMIN_PARAM(legacy_clients, ibtrs_srv_params.legacy_clients, bool, 0644);
MODULE_PARM_DESC(legacy_clients,
		 "let clients of 2018-2019 in, which do not say that a connection is the first (default: N)");
IBTRS_ADMIN_PARAM(max_sessions, ibtrs_srv_params.max_sessions, uint, 0644);
MODULE_PARM_DESC(max_sessions, "sessions of all clients together (default: 256)");
IBTRS_ADMIN_PARAM(max_sessions_per_peer, ibtrs_srv_params.max_sessions_per_peer, uint, 0644);
MODULE_PARM_DESC(max_sessions_per_peer, "sessions that one client address may open (default: 64)");
IBTRS_ADMIN_PARAM(max_sessions_per_key, ibtrs_srv_params.max_sessions_per_key, uint, 0644);
MODULE_PARM_DESC(max_sessions_per_key,
		 "sessions of one key, from however many addresses; 0 = three quarters of max_sessions (default: 0)");
IBTRS_ADMIN_PARAM(max_paths_half_open, ibtrs_srv_params.max_half_open, uint, 0644);
MODULE_PARM_DESC(max_paths_half_open,
		 "paths that may be in the handshake at a time (default: 256)");
IBTRS_ADMIN_PARAM(max_paths_half_open_per_peer, ibtrs_srv_params.max_half_open_per_peer, uint,
		  0644);
MODULE_PARM_DESC(max_paths_half_open_per_peer, "the same for one client address (default: 64)");
IBTRS_ADMIN_PARAM(max_conns, ibtrs_srv_params.max_conns, uint, 0644);
MODULE_PARM_DESC(max_conns,
		 "connections of a path, at most 4096; a client opens one per CPU and one more (default: 513)");
IBTRS_ADMIN_PARAM(max_memory_mb, ibtrs_srv_params.max_memory_mb, uint, 0644);
MODULE_PARM_DESC(max_memory_mb,
		 "MiB for chunks and connection queues of all clients; 0 = half of the memory (default: 0)");
IBTRS_ADMIN_PARAM(max_memory_per_peer_mb, ibtrs_srv_params.max_memory_per_peer_mb, uint, 0644);
MODULE_PARM_DESC(max_memory_per_peer_mb,
		 "MiB of these for one client address; 0 = three quarters of half of the memory, or all of max_memory_mb if that is set (default: 0)");
IBTRS_ADMIN_PARAM(max_memory_per_key_mb, ibtrs_srv_params.max_memory_per_key_mb, uint, 0644);
MODULE_PARM_DESC(max_memory_per_key_mb,
		 "MiB of these for one key, from however many addresses; 0 = three quarters of all where one address has a limit, else no limit (default: 0)");
IBTRS_ADMIN_PARAM(max_memory_half_open_mb, ibtrs_srv_params.max_memory_half_open_mb, uint, 0644);
MODULE_PARM_DESC(max_memory_half_open_mb,
		 "MiB for the queues of all paths in the handshake, whose clients are not let in yet; one address has a quarter of it; 0 = an eighth of the memory (default: 0)");
IBTRS_ADMIN_PARAM(handshake_timeout_s, ibtrs_srv_params.handshake_timeout_s, uint, 0644);
MODULE_PARM_DESC(handshake_timeout_s,
		 "seconds after which a path that was never completed is closed (default: 30)");
IBTRS_ADMIN_PARAM(hb_interval_ms, ibtrs_srv_params.hb_interval_ms, uint, 0644);
MODULE_PARM_DESC(hb_interval_ms, "milliseconds between heartbeats (default: 1000)");
IBTRS_ADMIN_PARAM(hb_misses, ibtrs_srv_params.hb_misses, uint, 0644);
MODULE_PARM_DESC(hb_misses,
		 "heartbeat intervals that a client may be silent; after one more its path is closed (default: 5)");
IBTRS_ADMIN_PARAM(name_keep_s, ibtrs_srv_params.name_keep_s, uint, 0644);
MODULE_PARM_DESC(name_keep_s,
		 "seconds for which the session name of a lost client is reserved for it (default: 120)");

static int params_check(void)
{
	const struct ibtrs_srv_params *p = &ibtrs_srv_params;

	if (!p->queue_depth || p->queue_depth > IBTRS_MAX_QD) {
		pr_err("sess_queue_depth=%u: must be 1..%u\n", p->queue_depth, IBTRS_MAX_QD);
		return -EINVAL;
	}
	if (p->chunk_size < IBTRS_MIN_CHUNK || p->chunk_size > PARAMS_MAX_CHUNK ||
	    p->chunk_size % IBTRS_HDR_SIZE) {
		pr_err("max_chunk_size=%u: must be a multiple of %u from %u to %u\n", p->chunk_size,
		       IBTRS_HDR_SIZE, IBTRS_MIN_CHUNK, PARAMS_MAX_CHUNK);
		return -EINVAL;
	}
	if (ibtrs_bits(p->queue_depth) + ibtrs_bits(p->chunk_size) > IBTRS_IMM_PAYLOAD_BITS) {
		pr_err("sess_queue_depth=%u and max_chunk_size=%u together need %u bits, %u are there: make one of them smaller\n",
		       p->queue_depth, p->chunk_size,
		       ibtrs_bits(p->queue_depth) + ibtrs_bits(p->chunk_size),
		       IBTRS_IMM_PAYLOAD_BITS);
		return -EINVAL;
	}
	return 0;
}

struct ibtrs_srv ibtrs_srv;

int ibtrs_srv_open(const struct ibtrs_srv_ops *ops, u16 port)
{
	int err;

	scoped_guard(mutex, &ibtrs_srv.lock) {
		if (ibtrs_srv.ops)
			return -EBUSY;
		ibtrs_srv.ops = ops;
		ibtrs_srv.accepting = true;
	}
	err = ibtrs_srv_handshake_start(port);
	if (err)
		ibtrs_srv_close();
	return err;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_open);

void ibtrs_srv_close(void)
{
	scoped_guard(mutex, &ibtrs_srv.lock)
		ibtrs_srv.accepting = false;
	ibtrs_srv_handshake_stop();
	ibtrs_srv_knock_end_all();
	ibtrs_srv_auth_forget_all();
	ibtrs_srv_session_close_all();
	ibtrs_srv_chunk_stop();
	guard(mutex)(&ibtrs_srv.lock);
	ibtrs_srv_name_forget_all();
	ibtrs_srv.ops = NULL;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_close);

static int __init ibtrs_srv_init(void)
{
	int err;

	err = params_check();
	if (err)
		return err;
	mutex_init(&ibtrs_srv.lock);
	INIT_LIST_HEAD(&ibtrs_srv.sessions);
	init_waitqueue_head(&ibtrs_srv.gone);
	/* a device made of bios that hangs blocks one work for each path */
	ibtrs_srv.wq = alloc_workqueue("ibtrs-srv", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	if (!ibtrs_srv.wq)
		return -ENOMEM;
	ibtrs_srv.quick_wq =
		alloc_workqueue("ibtrs-srv-quick", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	err = -ENOMEM;
	if (!ibtrs_srv.quick_wq)
		goto free_wq;
	ibtrs_srv.info_wq = alloc_workqueue("ibtrs-srv-info", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ibtrs_srv.info_wq)
		goto free_quick;
	err = ibtrs_srv_sysfs_init();
	if (err)
		goto free_info;
	ibtrs_srv_debug_init();
	return 0;

free_info:
	destroy_workqueue(ibtrs_srv.info_wq);
free_quick:
	destroy_workqueue(ibtrs_srv.quick_wq);
free_wq:
	destroy_workqueue(ibtrs_srv.wq);
	return err;
}

static void __exit ibtrs_srv_exit(void)
{
	ibtrs_srv_debug_exit();
	ibtrs_srv_sysfs_exit();
	destroy_workqueue(ibtrs_srv.info_wq);
	destroy_workqueue(ibtrs_srv.quick_wq);
	destroy_workqueue(ibtrs_srv.wq);
}

module_init(ibtrs_srv_init);
module_exit(ibtrs_srv_exit);

MODULE_DESCRIPTION("IBTRS: RDMA transport, server");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
