/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From "cid 0 is established" to READY: limits, receives, keys, INFO exchange (protocol 2.4),
 * trial.
 */
#ifndef IBTRS_CLIENT_HANDSHAKE_H
#define IBTRS_CLIENT_HANDSHAKE_H

#include <linux/workqueue.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/logic/chunkmap.h"

struct ibtrs_clt_path;

enum ibtrs_clt_hs_step {
	IBTRS_CLT_HS_AUTH_STEP,	/* the next step of authentication */
	IBTRS_CLT_HS_CID0,	/* cid 0 established: prepare, connect the others */
	IBTRS_CLT_HS_INFO,	/* all established: send INFO_REQ */
	IBTRS_CLT_HS_RSP,	/* INFO_RSP has arrived */
	IBTRS_CLT_HS_TRIED,	/* the trial has passed on all connections */
};

enum ibtrs_clt_hs_phase {
	IBTRS_CLT_HS_RESOLVE,
	IBTRS_CLT_HS_FIRST_WORD,	/* cid 0 connects: nothing has come from the server yet */
	/* authentication, before any connection of the path exists */
	IBTRS_CLT_HS_AUTH,
	IBTRS_CLT_HS_CONNECT,		/* the other connections */
	IBTRS_CLT_HS_INFO_EXCHANGE,
	IBTRS_CLT_HS_TRIAL,
	/* the trial got no answer in time: does a heartbeat get one? */
	IBTRS_CLT_HS_DOUBT,
};

/**
 * struct ibtrs_clt_handshake
 * @chunks: where each slot's chunk is on this path; hot, read by submit
 * @todo: steps that are due, bit per &enum ibtrs_clt_hs_step
 * @deadline: bounds each wait for the server (decision 11)
 */
struct ibtrs_clt_handshake {
	struct ibtrs_chunk *chunks;
	struct ibtrs_iu req;
	struct ibtrs_iu rsp;
	u32 rsp_len;
	atomic_t established;
	spinlock_t lock;		/* once stopped is set, no step is queued */
	bool stopped;
	unsigned long todo;
	struct work_struct work;
	struct delayed_work deadline;
	enum ibtrs_clt_hs_phase phase;
};

void ibtrs_clt_handshake_init(struct ibtrs_clt_path *path);	/* once per path object */
/* An attempt starts: steps and deadlines are accepted again. Path work. */
void ibtrs_clt_handshake_begin(struct ibtrs_clt_path *path);
/*
 * After it, neither the work nor the timer runs or can be started, so nothing is built or posted
 * while the path drains. Drain work.
 */
void ibtrs_clt_handshake_stop(struct ibtrs_clt_path *path);
void ibtrs_clt_handshake_free(struct ibtrs_clt_path *path);

#endif
