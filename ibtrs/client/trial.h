/* SPDX-License-Identifier: GPL-2.0-only */
/* The trial of a new connection: a probe of full size, before it carries requests. */
#ifndef IBTRS_CLIENT_TRIAL_H
#define IBTRS_CLIENT_TRIAL_H

#include <linux/atomic.h>
#include "ibtrs/core/iu.h"

struct ibtrs_clt_conn;
struct ibtrs_clt_path;

/**
 * struct ibtrs_clt_trial - one attempt's, but for @failed
 * @buf: the message, and a page that stands for all pages of the data
 * @mr: the page as often as the data need it, for the server to write to
 * @len: bytes of data; 0: nothing was prepared
 * @slot: of ibtrs' own, in whose chunk the data are written; negative: none
 * @missing: connections that have not shown yet that they carry it
 * @failed: the last trial of this path was in vain. Handshake and path work; others READ_ONCE()
 */
struct ibtrs_clt_trial {
	struct ibtrs_iu buf;
	struct ib_mr *mr;
	u32 len;
	int slot;
	atomic_t missing;
	bool failed;
};

/* Memory and keys; the registration goes out on cid 0, ahead of INFO_REQ. Handshake work. */
int ibtrs_clt_trial_prepare(struct ibtrs_clt_path *path);
/*
 * The chunks are known: post it on each connection that interrupts. 0: the step IBTRS_CLT_HS_TRIED
 * follows, or the deadline. 1: the path does without. Else an errno. Handshake work.
 */
int ibtrs_clt_trial_start(struct ibtrs_clt_path *path);
/* The server sent the data back on @conn. CQ context. */
void ibtrs_clt_trial_answered(struct ibtrs_clt_conn *conn);
/* All connections carry it. Handshake work. */
void ibtrs_clt_trial_passed(struct ibtrs_clt_path *path);
/*
 * Its time is over: asks with a heartbeat whether small messages come through; IBTRS_CLT_HS_DOUBT
 * is the next phase. Deadline's work.
 */
void ibtrs_clt_trial_late(struct ibtrs_clt_path *path);
/* That time is over, too. True: they do, and the path has been failed. Deadline's work. */
bool ibtrs_clt_trial_in_vain(struct ibtrs_clt_path *path);
/* After the drain. Idempotent. */
void ibtrs_clt_trial_free(struct ibtrs_clt_path *path);

#endif
