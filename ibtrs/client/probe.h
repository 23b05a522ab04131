/* SPDX-License-Identifier: GPL-2.0-only */
/* Notices a connection whose send queue died without a completion (decision 16). */
#ifndef IBTRS_CLIENT_PROBE_H
#define IBTRS_CLIENT_PROBE_H

#include "ibtrs/client/path.h"

void ibtrs_clt_probe_init(struct ibtrs_clt_path *path);		/* once per path object */
void ibtrs_clt_probe_start(struct ibtrs_clt_path *path);	/* path work, the path is up */
void ibtrs_clt_probe_done(struct ib_cq *cq, struct ib_wc *wc);

#endif
