/* SPDX-License-Identifier: GPL-2.0-only */
/* The parameters, and the only server, for all files of the server. */
#ifndef IBTRS_SERVER_SERVER_H
#define IBTRS_SERVER_SERVER_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <ibtrs/srv.h>
#include "ibtrs/core/dev.h"
#include "ibtrs/proto/refuse.h"

/*
 * Module parameters. The first three are fixed at load, the others are read with READ_ONCE() each
 * time they matter.
 */
struct ibtrs_srv_params {
	unsigned int queue_depth;
	unsigned int chunk_size;
	bool always_invalidate;
	bool legacy_clients;
	unsigned int max_sessions;
	unsigned int max_sessions_per_peer;
	unsigned int max_sessions_per_key;
	unsigned int max_half_open;
	unsigned int max_half_open_per_peer;
	unsigned int max_conns;
	unsigned int max_memory_mb;
	unsigned int max_memory_per_peer_mb;
	unsigned int max_memory_per_key_mb;
	unsigned int max_memory_half_open_mb;
	unsigned int handshake_timeout_s;
	unsigned int hb_interval_ms;
	unsigned int hb_misses;
	unsigned int name_keep_s;
};

extern struct ibtrs_srv_params ibtrs_srv_params;

/**
 * struct ibtrs_srv - the server
 * @lock: protects the sessions, their lists of paths and their names. Nothing that waits for the
 *	network or a device runs under it
 * @sessions: written under @lock, read under RCU too
 * @ops: callbacks of the user, between ibtrs_srv_open() and the end of ibtrs_srv_close()
 * @accepting: under @lock; false: all connection requests are refused
 * @gone: woken when a session has been removed from @sessions
 * @wq: ends of paths: they may wait for a disk, and there may be so many that no other work would
 *	run
 * @info_wq: INFO works, session looks and ends of knocks, which may take long, but end
 * @quick_wq: works that do not wait: timers, heartbeats
 */
struct ibtrs_srv {
	struct mutex lock;
	struct list_head sessions;
	const struct ibtrs_srv_ops *ops;
	bool accepting;
	wait_queue_head_t gone;
	struct workqueue_struct *wq;
	struct workqueue_struct *info_wq;
	struct workqueue_struct *quick_wq;
};

extern struct ibtrs_srv ibtrs_srv;

#endif
