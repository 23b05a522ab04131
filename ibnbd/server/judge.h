/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_JUDGE_H
#define IBNBD_SERVER_JUDGE_H

#include "ibnbd/server/export.h"

bool ibnbd_srv_judge_open(struct ibnbd_srv_open *open);
int ibnbd_srv_judge_peer(void *priv, const struct ibtrs_origin *from, const char **why);

#endif
