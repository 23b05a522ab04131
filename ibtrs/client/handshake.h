/* SPDX-License-Identifier: GPL-2.0-only */
/* From "cid 0 is established" to READY: limits, receives, keys, INFO exchange (spec A.9), trial. */
#ifndef IBTRS_CLIENT_HANDSHAKE_H
#define IBTRS_CLIENT_HANDSHAKE_H

#include <linux/workqueue.h>
#include "ibtrs/core/iu.h"
#include "ibtrs/logic/chunkmap.h"

struct ibtrs_clt_path;

enum ibtrs_clt_hs_step {
	IBTRS_CLT_HS_AUTH_STEP,	/* the next one of authentication */
	IBTRS_CLT_HS_CID0,	/* cid 0 established: prepare, connect the others */
	IBTRS_CLT_HS_INFO,	/* all established: send INFO_REQ */
	IBTRS_CLT_HS_RSP,	/* INFO_RSP is here */
	IBTRS_CLT_HS_TRIED,	/* all connections carry data of full size */
};

enum ibtrs_clt_hs_phase {
	IBTRS_CLT_HS_RESOLVE,
	IBTRS_CLT_HS_FIRST_WORD,	/* cid 0 asks: nothing says yet that the server is there */
	IBTRS_CLT_HS_AUTH,		/* proofs, before there is any connection of the path */
	IBTRS_CLT_HS_CONNECT,		/* the other connections */
	IBTRS_CLT_HS_INFO_EXCHANGE,
	IBTRS_CLT_HS_TRIAL,
	/* the trial was in vain: is anything left of the network? */
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
	spinlock_t lock;		/* stopped, against a step that is being queued */
	bool stopped;
	unsigned long todo;
	struct work_struct work;
	struct delayed_work deadline;
	enum ibtrs_clt_hs_phase phase;
};

void ibtrs_clt_handshake_init(struct ibtrs_clt_path *path);	/* once per path object */
/* An attempt starts: steps and deadlines count again. Path work. */
void ibtrs_clt_handshake_begin(struct ibtrs_clt_path *path);
/*
 * Neither work nor timer runs, or can be started, after it: so nothing is built or posted while the
 * path drains. Drain work.
 */
void ibtrs_clt_handshake_stop(struct ibtrs_clt_path *path);
void ibtrs_clt_handshake_free(struct ibtrs_clt_path *path);

#endif
