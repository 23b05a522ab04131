/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_POLICY_FILE_H
#define IBNBD_SERVER_POLICY_FILE_H

#include <linux/sysfs.h>

/* ctl/policy */
extern const struct bin_attribute ibnbd_srv_policy_file;

void ibnbd_srv_policy_file_exit(void);

#endif
