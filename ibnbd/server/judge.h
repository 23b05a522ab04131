/* SPDX-License-Identifier: GPL-2.0-only */
/* Applies the policy to the opens of all sessions; the policy as a file. */
#ifndef IBNBD_SERVER_JUDGE_H
#define IBNBD_SERVER_JUDGE_H

#include <linux/sysfs.h>
#include "ibnbd/server/export.h"

bool ibnbd_srv_judge_open(struct ibnbd_srv_open *open);
int ibnbd_srv_judge_peer(void *priv, const struct ibtrs_origin *from, const char **why);

/* ctl/policy */
extern const struct bin_attribute ibnbd_srv_policy_file;

void ibnbd_srv_policy_file_exit(void);

#endif
