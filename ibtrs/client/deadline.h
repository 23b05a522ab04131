/* SPDX-License-Identifier: GPL-2.0-only */
/* The steps of a handshake, and how long each wait for the server may take. */
#ifndef IBTRS_CLIENT_DEADLINE_H
#define IBTRS_CLIENT_DEADLINE_H

#include "ibtrs/client/handshake.h"

/* We begin to wait for the server, which has @ms to answer. */
void ibtrs_clt_deadline_phase(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_phase phase,
			      unsigned int ms);
/*
 * A first word that is being waited for has @ms left at most. What the server has answered already
 * is on its way, and not disturbed.
 */
void ibtrs_clt_deadline_hasten(struct ibtrs_clt_path *path, unsigned int ms);
/* The answer is there: the wait ends, and the work goes on. Any context. */
void ibtrs_clt_deadline_step(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_step step);
/* What one phase of the handshake may take; grows with failed attempts. */
unsigned int ibtrs_clt_deadline_patience_ms(const struct ibtrs_clt_path *path);
/* The same for the first word of the server. */
unsigned int ibtrs_clt_deadline_first_ms(const struct ibtrs_clt_path *path);

#endif
