/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy in force: what may this client do with this export? And the policy as a file. */
#ifndef IBNBD_SERVER_POLICY_H
#define IBNBD_SERVER_POLICY_H

#include <linux/sysfs.h>
#include "ibnbd/logic/policy.h"
#include "ibnbd/server/export.h"

void ibnbd_srv_policy_of(const struct ibnbd_srv_session *s, const struct ibtrs_origin *from,
			 const char *name, struct ibnbd_policy_verdict *v);
bool ibnbd_srv_policy_judge(struct ibnbd_srv_open *open);
int ibnbd_srv_policy_peer(void *priv, const struct ibtrs_origin *from, const char **why);

/* ctl/policy */
extern const struct bin_attribute ibnbd_srv_policy_file;

void ibnbd_srv_policy_file_exit(void);

#endif
