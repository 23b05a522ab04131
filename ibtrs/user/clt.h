/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The client's objects: session, path, connection, queue, request.
 *
 * Locks: ctx->lock is over sessions, paths, and connections that are being made. A queue's lock is
 * over its slots and over the connections that are attached to it; it is taken inside of ctx->lock,
 * or alone. path->fail_lock is innermost.
 */
#ifndef IBTRS_USER_CLT_H
#define IBTRS_USER_CLT_H

#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/logic/mpath.h"
#include "ibtrs/logic/path_sm.h"
#include "ibtrs/logic/retry.h"
#include "ibtrs/user/auth.h"
#include "ibtrs/user/ctx.h"
#include "ibtrs/user/verbs.h"

#define IBTRS_CLT_MEMS	16u		/* pieces of memory of a session */

struct ibtrs_clt_path;
struct ibtrs_transport;

struct ibtrs_clt_conn {
	struct ibtrs_qp *qp;
	struct ibtrs_clt_path *path;
	u16 cid;
	bool accepted;
	bool trying;			/* its trial has not been answered */
	bool attached;			/* to its queue, whose lock then is over it */
	u32 inflight;
	struct ibtrs_wire_conn_req req;	/* as it was sent: a proof covers it */
	struct ibtrs_wr cm;		/* CONN_REQ, INFO_REQ, authentication, trial */
	struct ibtrs_wr hb_msg;
	struct ibtrs_wr hb_ack;
};

enum ibtrs_clt_hs {			/* what a path that connects waits for: enum ibtrs_phase */
	IBTRS_HS_TURN = IBTRS_PHASE_TURN,	/* law L21 */
	IBTRS_HS_AUTH = IBTRS_PHASE_KEY,	/* the server's proof, or its verdict */
	IBTRS_HS_FIRST = IBTRS_PHASE_CONNECT,	/* the answer to cid 0 */
	IBTRS_HS_OTHERS = IBTRS_PHASE_OTHERS,	/* the answers to the others */
	IBTRS_HS_INFO = IBTRS_PHASE_MEMORY,
	IBTRS_HS_TRIAL = IBTRS_PHASE_TRIAL,	/* the answers to trials */
	IBTRS_HS_DOUBT,				/* these are late: a sign of life */
	IBTRS_HS_NR
};

/**
 * struct ibtrs_clt_path
 * @behind: the stream of an auto: path, which begins behind the attempt of RDMA
 * @recon_cnt: of the present attempt
 * @events: bit for each enum ibtrs_path_event that is pending
 * @due: when the timer runs out: of the handshake, of the wait, or of the next heartbeat; 0: none
 * @hs_at: when it began to wait for that, in microseconds
 * @took: microseconds of each such wait, of the last attempt
 * @auth: of the present attempt
 * @tls: it is encrypted; of one that was never tried: most likely
 * @tls_key: which of the session's keys TLS uses
 * @tls_again: the server did not take the other one
 * @map: where the chunk of each slot is; the entry of a slot is its queue's
 * @mem: the session's, with the keys of this path's adapter
 * @regions: @mem, or nothing
 * @trial: data of the trial that is under way
 * @untried: connections whose trial has not been answered
 * @seen: something has arrived since the last heartbeat
 * @loose: it was lost with writes under way, and has not been up since
 * @fail_err: a queue has found the path broken
 */
struct ibtrs_clt_path {
	struct ibtrs_clt *clt;
	u32 idx;
	char *text;
	struct ibtrs_place place;
	bool behind;
	u8 uuid[IBTRS_UUID_LEN];
	u16 recon_cnt;
	enum ibtrs_path_state state;
	u32 events;
	u64 due;
	struct ibtrs_clt_conn **conns;
	enum ibtrs_clt_hs hs;
	u64 hs_at;
	u32 took[IBTRS_HS_NR];
	struct ibtrs_auth auth;
	bool tls;
	u32 tls_key;
	bool tls_again;
	u8 *info;
	struct ibtrs_limits limits;
	struct ibtrs_chunk *map;
	struct ibtrs_region mem[IBTRS_CLT_MEMS];
	struct ibtrs_regions regions;
	u8 *trial;
	u32 untried;
	u32 ext;
	u32 life;
	struct ibtrs_retry retry;
	bool loose;
	bool wary;
	u32 established;
	u32 missed;
	u64 sent_at;
	u64 latency_us;
	bool awaited;
	bool seen;
	int err;
	char why[IBTRS_WHY_LEN];
	pthread_mutex_t fail_lock;
	int fail_err;
	const char *fail_why;
};

enum ibtrs_req_state {
	IBTRS_REQ_FREE,
	IBTRS_REQ_POSTED,		/* on a connection */
	IBTRS_REQ_PARKED,		/* waits for a path */
};

struct ibtrs_req {
	struct ibtrs_io *io;
	struct ibtrs_clt_conn *conn;
	u8 state;
	u32 slot;
	u32 life;
	u32 behind;
	u64 token;
	u32 next_free;
	struct ibtrs_wr wr;
};

/* Queue 0 is the service queue: calls, heartbeats. */
struct ibtrs_q {
	pthread_mutex_t lock;
	struct ibtrs_clt *clt;
	u32 idx;
	u32 first;			/* slot */
	u32 nr;				/* slots; 0: nothing is granted yet */
	struct ibtrs_req *reqs;
	u32 free;			/* index + 1 of a free one, 0: none */
	u32 parked;
	u32 up;				/* connections */
	u32 cursor;
	u64 posted;			/* ever */
	int ep;
	int wake;
	bool woken;			/* wake is readable */
	struct ibtrs_clt_conn **conns;	/* of each path; NULL: it is not up */
	u32 rdma;			/* of them */
	struct ibtrs_io *done;
	struct ibtrs_io **done_end;
};

struct ibtrs_clt {
	struct ibtrs_clt *next;
	struct ibtrs_ctx *ctx;
	char name[IBTRS_NAME_LEN];
	u8 uuid[IBTRS_UUID_LEN];
	struct ibtrs_clt_opts opts;
	char key_name[IBTRS_KEY_NAME_LEN];	/* empty: it proves nothing */
	struct ibtrs_keys keys;
	const struct ibtrs_transport *rdma;
	enum ibtrs_mpath_policy policy;
	bool finds;				/* auto: the server is asked where RDMA is */
	u32 max_paths;				/* that there is room for; queues look at all */
	u32 nr_paths;
	struct ibtrs_clt_path *paths;
	u32 nr_qs;			/* with the service queue */
	struct ibtrs_q *qs;
	u32 depth;			/* 0: nothing is granted yet */
	u32 max_io_size;
	u32 max_hdr_size;
	u32 nr_up;
	u32 ups;
	u32 cleared;			/* the ups in which queues may send */
	u32 life;
	bool opened;			/* a path was up */
	bool one_asks;			/* law L21: the server may not be ours */
	u64 flowed;			/* sum of posted, when a path was waited for */
	u32 want;			/* a request has just been parked: try the paths */
	struct ibtrs_region mem[IBTRS_CLT_MEMS];	/* len 0: none; key: its flags */
};

/* ---- clt.c: a session --------------------------------------------------- */
int ibtrs_clt_grant(struct ibtrs_clt *clt, const struct ibtrs_clt_path *path, const char **why);
void ibtrs_clt_calls_end(struct ibtrs_clt *clt, struct ibtrs_io *done);
int ibtrs_clt_work(struct ibtrs_clt *clt);
u64 ibtrs_clt_due(const struct ibtrs_clt *clt);
u32 ibtrs_clt_parked(struct ibtrs_clt *clt);
/* Do requests wait for a path, or have some been sent since the last question? */
bool ibtrs_clt_flows(struct ibtrs_clt *clt);

/* A path of the place @text, with @kind before it. 0, or an errno and @why. */
int ibtrs_clt_path_new(struct ibtrs_clt *clt, const char *kind, const char *text,
		       char why[IBTRS_WHY_LEN]);

/* ---- where.c: finding RDMA ---------------------------------------------- */
/* Does @text stand for two paths, and room for those that the server tells of? */
bool ibtrs_auto_is(const struct ibtrs_clt *clt, const char *text);
int ibtrs_auto_paths(struct ibtrs_clt *clt, const char *text, char why[IBTRS_WHY_LEN]);
/* Begins to connect, now or soon. */
void ibtrs_auto_start(struct ibtrs_clt_path *path);
/* An attempt of RDMA has failed: streams need not wait any longer. */
void ibtrs_auto_hurry(struct ibtrs_clt *clt);
/* A stream is up: asks where RDMA is. */
void ibtrs_auto_ask(struct ibtrs_clt_path *path);
/* The answer, with the locks of context and service queue held. NULL, or what is wrong with it. */
const char *ibtrs_auto_told(struct ibtrs_clt_path *path, const struct ibtrs_wc *wc);

/* ---- path.c: the states of a path --------------------------------------- */
int ibtrs_clt_path_work(struct ibtrs_clt_path *path);
void ibtrs_clt_path_post(struct ibtrs_clt_path *path, enum ibtrs_path_event ev);
/* ctx->lock is held. */
void ibtrs_clt_path_fail(struct ibtrs_clt_path *path, int err, const char *why);
/* What logic/retry has to know of the path, and what has happened to it. */
struct ibtrs_retry_now ibtrs_clt_path_now(const struct ibtrs_clt_path *path);
void ibtrs_clt_path_note(struct ibtrs_clt_path *path, enum ibtrs_retry_event ev);
/* What a path that connects waits for from now on. */
void ibtrs_clt_path_await(struct ibtrs_clt_path *path, enum ibtrs_clt_hs hs);
/* From a queue; the next step does the rest. */
void ibtrs_clt_path_lost(struct ibtrs_clt_path *path, int err, const char *why);
void ibtrs_clt_hb_msg(struct ibtrs_clt_conn *conn);
void ibtrs_clt_hb_ack(struct ibtrs_clt_conn *conn);
void ibtrs_clt_event(struct ibtrs_clt_conn *conn, u32 imm);

/* ---- cm.c: an attempt to connect ---------------------------------------- */
void ibtrs_clt_cm_start(struct ibtrs_clt_path *path);
void ibtrs_clt_cm_event(struct ibtrs_clt_conn *conn);
void ibtrs_clt_cm_free(struct ibtrs_clt_path *path);
/* Of the epoll set of the context. */
void ibtrs_clt_conn_event(struct ibtrs_clt_conn *conn);

/* ---- mem.c: memory that adapters use in place ----------------------------- */
/* @path can carry requests from now on, or has been closed. */
int ibtrs_clt_mem_start(struct ibtrs_clt_path *path, const char **why);
void ibtrs_clt_mem_end(struct ibtrs_clt_path *path);

/* ---- trial.c: does the path carry large requests? ------------------------ */
/* Posts READY if there is none to be made. */
int ibtrs_clt_trial_start(struct ibtrs_clt_path *path, const char **why);
int ibtrs_clt_trial_message(struct ibtrs_clt_conn *conn, const struct ibtrs_wc *wc,
			    const char **why);
/* Its time is over: asks for a sign of life. */
void ibtrs_clt_trial_late(struct ibtrs_clt_path *path);
/* That time is over, too. Return: there was one, so the path has failed in its trial. */
bool ibtrs_clt_trial_in_vain(struct ibtrs_clt_path *path);

/* ---- queue.c ------------------------------------------------------------ */
int ibtrs_q_attach(struct ibtrs_q *q, struct ibtrs_clt_conn *conn);
/* Takes the connection away, and moves or parks what was on it. Return: requests that were. */
u32 ibtrs_q_detach(struct ibtrs_q *q, struct ibtrs_clt_conn *conn);
/* Does what is on the connection get anywhere? Else the path is lost. */
void ibtrs_q_check(struct ibtrs_q *q, struct ibtrs_clt_conn *conn);
/* Sends what is parked, if the queues may send. */
void ibtrs_q_resume(struct ibtrs_q *q);
/* Ends the parked requests that @pick says, or all. For the owner of the queue. */
int ibtrs_q_abort_if(struct ibtrs_q *q, int err,
		     bool (*pick)(const struct ibtrs_io *io, void *priv), void *priv);
/* Requests of the service queue that have ended. */
struct ibtrs_io *ibtrs_q_serve(struct ibtrs_q *q);

#endif
