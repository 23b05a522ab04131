/* SPDX-License-Identifier: GPL-2.0-only */
/* The message of a trial: a probe of full size that the server sends back (protocol.md 8.4). */
#ifndef IBTRS_PROTO_TRIAL_H
#define IBTRS_PROTO_TRIAL_H

#include "ibtrs/proto/msg.h"

void ibtrs_trial_encode(struct ibtrs_wire_trial *w, const struct ibtrs_desc *desc);
int ibtrs_trial_decode(const struct ibtrs_wire_trial *w, u32 off, const struct ibtrs_limits *l,
		       struct ibtrs_desc *desc, const char **why);

#endif
