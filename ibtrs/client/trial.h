/* SPDX-License-Identifier: GPL-2.0-only */
/* The trial of a new connection: a probe of full size, before it carries requests. */
#ifndef IBTRS_CLIENT_TRIAL_H
#define IBTRS_CLIENT_TRIAL_H

#include <linux/atomic.h>
#include "ibtrs/core/conn.h"

struct ibtrs_clt_conn;
struct ibtrs_clt_path;

/**
 * struct ibtrs_clt_trial - the trial of one attempt
 * @buf: the message, and one page that is used for all pages of the data
 * @mr: maps that page as often as the data need it, for the server to write to
 * @len: bytes of data; 0: nothing was prepared
 * @slot: one of ibtrs' own slots; the data are written to its chunk. Negative: none
 * @missing: number of connections that have not passed the trial yet
 */
struct ibtrs_clt_trial {
	struct ibtrs_iu buf;
	struct ib_mr *mr;
	u32 len;
	int slot;
	atomic_t missing;
};

/* Allocate memory and keys; post the registration on cid 0, before INFO_REQ. Handshake work. */
int ibtrs_clt_trial_prepare(struct ibtrs_clt_path *path);
/*
 * The chunks are known: post the trial on each interrupt driven connection. 0: the step
 * IBTRS_CLT_HS_TRIED follows, or the deadline. 1: the path does without a trial. Else an errno.
 * Handshake work.
 */
int ibtrs_clt_trial_start(struct ibtrs_clt_path *path);
/* The server sent the data back on @conn. CQ context. */
void ibtrs_clt_trial_answered(struct ibtrs_clt_conn *conn);
/* All connections have passed the trial. Handshake work. */
void ibtrs_clt_trial_passed(struct ibtrs_clt_path *path);
/*
 * The trial's time is over: send a heartbeat to see whether small messages come through; the next
 * phase is IBTRS_RETRY_DOUBT. Deadline's work.
 */
void ibtrs_clt_trial_late(struct ibtrs_clt_path *path);
/*
 * The time of IBTRS_RETRY_DOUBT is over, too. True: small messages come through, and the path has
 * been failed. Deadline's work.
 */
bool ibtrs_clt_trial_in_vain(struct ibtrs_clt_path *path);
/* After the drain. Idempotent. */
void ibtrs_clt_trial_free(struct ibtrs_clt_path *path);

#endif
