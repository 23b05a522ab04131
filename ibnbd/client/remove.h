/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of a mapped device. */
#ifndef IBNBD_CLIENT_REMOVE_H
#define IBNBD_CLIENT_REMOVE_H

struct ibnbd_clt_dev;
struct work_struct;

int ibnbd_clt_remove_setup(void);
/* After the last device is gone: waits for the removals. */
void ibnbd_clt_remove_exit(void);

void ibnbd_clt_remove_init(struct ibnbd_clt_dev *dev);
/* Under dev->lock, once. Drains, sends CLOSE, deletes the disk, leaves the session and frees @dev. Does not wait for any of it. */
void ibnbd_clt_remove_start(struct ibnbd_clt_dev *dev);
/* Something else that may wait for an RDMA device. Module exit waits for it too. */
void ibnbd_clt_remove_queue(struct work_struct *work);

#endif
