/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One path of a session: one incarnation, from its first CONN_REQ to the end of its last op.
 *
 * path.c has the state of a path, path_run.c its works. Each group of fields below names the file
 * that uses it.
 */
#ifndef IBTRS_SERVER_PATH_H
#define IBTRS_SERVER_PATH_H

#include <linux/completion.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <ibtrs/dir.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/core/dev.h"
#include "ibtrs/core/hb.h"
#include "ibtrs/proto/msg.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/chunk.h"

#define IBTRS_SRV_RX_BATCH	16	/* receives are posted again in batches of this size */
#define IBTRS_SRV_RX_SERVICE	(128 + IBTRS_SRV_RX_BATCH)

struct ibtrs_srv_session;
struct ibtrs_srv_opx;
struct ibtrs_srv_path_dir;

/*
 * Reads and their bytes, writes and their bytes. Bytes count what the client wrote, headers
 * included (docs/sysfs.md), or the data that a read asked for and its headers.
 */
struct ibtrs_srv_traffic {
	u64 n[4];
};

/**
 * struct ibtrs_srv_stats - counters of a path (docs/sysfs.md)
 * @pcpu: counters, never reset
 * @lock: protects @base. Process context
 * @base: what the counters were at the last reset
 */
struct ibtrs_srv_stats {
	struct ibtrs_srv_traffic __percpu *pcpu;
	spinlock_t lock;
	struct ibtrs_srv_traffic base;
};

static inline void ibtrs_srv_path_count(struct ibtrs_srv_stats *s, enum ibtrs_dir dir, u32 bytes)
{
	this_cpu_inc(s->pcpu->n[2 * dir]);
	this_cpu_add(s->pcpu->n[2 * dir + 1], bytes);
}

enum ibtrs_srv_path_state {
	IBTRS_SRV_PATH_CONNECTING,	/* from the first CONN_REQ */
	IBTRS_SRV_PATH_CONNECTED,	/* INFO_REQ was good */
	IBTRS_SRV_PATH_CLOSING,		/* the close work takes it apart; still counts (L6) */
	IBTRS_SRV_PATH_LINGERING,	/* waits for ops that the client gave up; blocks none */
	IBTRS_SRV_PATH_CLOSED,
};

/* One connection. No two share a cache line. */
struct ibtrs_srv_conn {
	struct ibtrs_conn c;
	struct ibtrs_srv_path *path;
	struct ib_cqe recv_cqe;
	struct ib_cqe send_cqe;
	u32 recv_due;			/* completion context only: receives to be posted again */
	/* written in completion context: requests in a row that came alone, see rx_count() */
	u32 alone;
	/* completion context only: the first entry of this CQ poll was a send completion */
	bool after_send;

	/* reply.c, to notice a dead send queue */
	struct ibtrs_probe probe;
	/*
	 * a request is being handed to the user, which may wait for a disk; until it returns, no
	 * completion of this connection is handled
	 */
	bool serving;
	u32 sq_size;			/* c.sq_free when nothing is posted */
	u32 probed_at;			/* c.sq_posted at the last probe */

	spinlock_t wait_lock;		/* wait */
	struct list_head wait;		/* ops that wait for send credit, see reply.c */

	struct mutex lock;		/* taken, dead; held while the connection is set up */
	bool taken;
	bool dead;			/* the close work has begun: build nothing */
} ____cacheline_aligned_in_smp;

struct ibtrs_srv_path {
	/* hot, constant while connected */
	/* enum ibtrs_srv_path_state; ibtrs_srv_path_close() begins the end */
	int state;
	u8 ext;
	unsigned int off_bits;
	struct ibtrs_limits limits;
	struct ibtrs_srv_session *session;
	void *ops;			/* struct ibtrs_srv_opx, one per slot, op_stride apart */
	size_t op_stride;
	struct ibtrs_dev *dev;		/* made for cid 0 */
	struct ibtrs_srv_conn *conns;
	u32 nr_conns;

	/* set at creation */
	struct ibtrs_addr_pair addr;	/* src = the client */
	struct ibtrs_origin from;	/* its GID is set with cid 0 */
	char name[IBTRS_PATH_STR_MAX];
	u8 uuid[IBTRS_UUID_LEN];
	u16 recon_cnt;
	bool first_conn;		/* its CONN_REQ may create the session */
	struct ibtrs_srv_proof proof;	/* of cid 0 */
	char hca[IB_DEVICE_NAME_MAX];	/* set with cid 0 */
	u32 port;
	struct list_head entry;		/* session->paths: ibtrs_srv.lock, readers RCU */

	atomic_t nr_accepted;		/* handshake.c: connections */

	/* quota.c */
	bool known;			/* set at creation: its client is no stranger */
	u64 queue_bytes;		/* under ibtrs_srv.lock: of its connections' queues */
	u64 charged;			/* likewise: queue_bytes once it is let in, else 0 */
	u64 chunk_bytes;		/* of its chunks; a path that lingers gives some back */
	bool modest;			/* INFO work: its client has little memory so far */

	/* info.c */
	struct ibtrs_iu info_req;
	struct ibtrs_iu info_rsp;
	unsigned long info_seen;	/* bit 0 */
	bool answered;			/* INFO_RSP is sent, so the heartbeat may begin */
	u32 info_len;
	struct work_struct info_work;

	/* chunk.c */
	struct ibtrs_srv_chunks *chunks;
	struct ibtrs_srv_mrs mrs;
	struct ibtrs_iu rkeys;		/* payload of RKEY_RSP, 8 bytes per slot */
	struct completion reg_done;
	u32 reg_left;			/* completion context; else only while no WR is posted */
	int reg_err;
	struct ib_cqe reg_cqe;

	/* path.c posts them, path_run.c runs them */
	/*
	 * closes a path that is half open too long; later: starts the heartbeat, checks the send
	 * queues
	 */
	struct delayed_work timer;
	struct work_struct close_work;
	bool stopped;			/* nothing new is set up, executed or answered */
	const char *why;		/* reason for the close, in words */
	char said[IBTRS_WORDS_LEN];	/* INFO work: text of a refusal that names another client */
	bool waiting;			/* only ops that have not ended hold it */
	/* once it is waiting: runs when an op has ended, and for the watchdog; frees the path */
	struct delayed_work end_work;
	u32 busy_from;			/* end_work: all ops before this slot have ended */
	unsigned long waits_since;	/* end_work: jiffies */
	unsigned long told_at;		/* end_work: jiffies, last message of the watchdog */

	struct ibtrs_srv_path_dir *dir;	/* sysfs.c */
	struct ibtrs_hb hb ____cacheline_aligned_in_smp;
	struct ibtrs_srv_stats stats;
};

static inline enum ibtrs_srv_path_state ibtrs_srv_path_state(const struct ibtrs_srv_path *path)
{
	return READ_ONCE(path->state);
}

static inline bool ibtrs_srv_path_up(const struct ibtrs_srv_path *path)
{
	return ibtrs_srv_path_state(path) == IBTRS_SRV_PATH_CONNECTED;
}

/* Number of send work requests of the service connection, or of another one. */
u32 ibtrs_srv_path_send_wr(bool service);
/* Estimated bytes of both queues of such a connection. */
u64 ibtrs_srv_path_conn_bytes(bool service);
/* The same for cid 0, plus the path's own memory before it is let in. */
u64 ibtrs_srv_path_first_bytes(u32 nr_conns);

/**
 * ibtrs_srv_path_close() - begin the end of a path
 * @path: any state
 * @why: reason in words, valid as long as @path; if there are several callers, the first reason
 *	counts
 *
 * Any context; does not wait.
 */
void ibtrs_srv_path_close(struct ibtrs_srv_path *path, const char *why);
/**
 * ibtrs_srv_path_change() - one step of the state
 * @path: any state
 * @from: what the state must be
 * @to: what it becomes
 *
 * Any context; atomic. Return: false: the state was another one.
 */
bool ibtrs_srv_path_change(struct ibtrs_srv_path *path, enum ibtrs_srv_path_state from,
			   enum ibtrs_srv_path_state to);
/* RCU read section: an op of the path, which is not up, has ended. Any context. */
void ibtrs_srv_path_op_ended(struct ibtrs_srv_path *path);

/* True: the completion failed. The path is closed then, unless the request was only flushed. */
static inline bool ibtrs_srv_path_failed(struct ibtrs_srv_path *path, const struct ib_wc *wc)
{
	if (likely(wc->status == IB_WC_SUCCESS))
		return false;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		ibtrs_srv_path_close(path, ib_wc_status_msg(wc->status));
	return true;
}

#endif
