/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps of a handshake, and how long each wait for the server may take. */
#ifndef IBTRS_CLIENT_DEADLINE_H
#define IBTRS_CLIENT_DEADLINE_H

#include "ibtrs/client/handshake.h"

/* A wait for the server begins; the server has @ms to answer. */
void ibtrs_clt_deadline_phase(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_phase phase,
			      unsigned int ms);
/*
 * If the path waits for the answer on cid 0, at most @ms are left for it from now on. Nothing
 * changes if the answer has arrived already, or in other phases.
 */
void ibtrs_clt_deadline_hasten(struct ibtrs_clt_path *path, unsigned int ms);
/* The answer has arrived: stop the timer and queue the work for @step. Any context. */
void ibtrs_clt_deadline_step(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_step step);
/* How long one phase of the handshake may take; grows with failed attempts. */
unsigned int ibtrs_clt_deadline_patience_ms(const struct ibtrs_clt_path *path);
/* The same for the server's answer on cid 0. */
unsigned int ibtrs_clt_deadline_first_ms(const struct ibtrs_clt_path *path);

#endif
