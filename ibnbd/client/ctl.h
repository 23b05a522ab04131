/* SPDX-License-Identifier: GPL-2.0-only */
/* /sys/class/ibnbd-client/ctl: mapping. */
#ifndef IBNBD_CLIENT_CTL_H
#define IBNBD_CLIENT_CTL_H

int ibnbd_clt_ctl_init(void);
void ibnbd_clt_ctl_exit(void);

#endif
