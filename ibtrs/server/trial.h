/* SPDX-License-Identifier: GPL-2.0-only */
/* The server's half of a trial: the probe of a new path with packets of full size. */
#ifndef IBTRS_SERVER_TRIAL_H
#define IBTRS_SERVER_TRIAL_H

#include <linux/types.h>

struct ibtrs_srv_conn;

/* A trial came on @conn: @imm says where it is. Completion context. */
void ibtrs_srv_trial(struct ibtrs_srv_conn *conn, u32 imm);

#endif
