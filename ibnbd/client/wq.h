/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_CLIENT_WQ_H
#define IBNBD_CLIENT_WQ_H

struct workqueue_struct;

/* News and timers of devices: memory reclaim may wait for these works. */
extern struct workqueue_struct *ibnbd_clt_dev_wq;
/* Removals, and other works that may wait for an RDMA device or for memory. */
extern struct workqueue_struct *ibnbd_clt_remove_wq;

int ibnbd_clt_wq_init(void);
void ibnbd_clt_wq_exit(void);

#endif
