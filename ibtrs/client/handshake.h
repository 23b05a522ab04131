/* SPDX-License-Identifier: GPL-2.0-only */
/* What happens between "cid 0 is established" and READY (protocol 2.4). */
#ifndef IBTRS_CLIENT_HANDSHAKE_H
#define IBTRS_CLIENT_HANDSHAKE_H

#include <linux/workqueue.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/logic/retry.h"

struct ibtrs_clt_path;

enum ibtrs_clt_hs_step {
	IBTRS_CLT_HS_AUTH_STEP,	/* the next step of authentication */
	IBTRS_CLT_HS_CID0,	/* cid 0 established: prepare, connect the others */
	IBTRS_CLT_HS_INFO,	/* all established: send INFO_REQ */
	IBTRS_CLT_HS_RSP,	/* INFO_RSP has arrived */
	IBTRS_CLT_HS_TRIED,	/* the trial has passed on all connections */
};

/**
 * struct ibtrs_clt_handshake
 * @chunks: where each slot's chunk is on this path; hot, read by submit
 * @todo: steps that are due, bit per &enum ibtrs_clt_hs_step
 * @deadline: bounds each wait for the server (decision 11)
 * @phase: what it waits for; STOPPED: no step is queued, no timer is started
 */
struct ibtrs_clt_handshake {
	struct ibtrs_chunk *chunks;
	struct ibtrs_iu req;
	struct ibtrs_iu rsp;
	u32 rsp_len;
	atomic_t established;
	unsigned long todo;
	struct work_struct work;
	struct delayed_work deadline;
	enum ibtrs_retry_phase phase;
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
/* done() of what the handshake posts on the first connection: messages and registrations. */
void ibtrs_clt_handshake_sent(struct ib_cq *cq, struct ib_wc *wc);

#endif
