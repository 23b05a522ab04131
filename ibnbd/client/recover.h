/* SPDX-License-Identifier: GPL-2.0-only */
/* The works of a device, and what an administrator may do to it. */
#ifndef IBNBD_CLIENT_RECOVER_H
#define IBNBD_CLIENT_RECOVER_H

#include "ibnbd/client/dev.h"

/* dev.c gives them to INIT_DELAYED_WORK(). */
void ibnbd_clt_recover_work(struct work_struct *work);
void ibnbd_clt_recover_hold_work(struct work_struct *work);
void ibnbd_clt_recover_group_work(struct work_struct *work);
void ibnbd_clt_recover_sweep_work(struct work_struct *work);
void ibnbd_clt_recover_remove_work(struct work_struct *work);

/**
 * ibnbd_clt_recover_unmap() - start the removal of a device
 * @force: even if it is in use
 *
 * Ends what is held, lets new I/O fail and queues the removal, which sends CLOSE, deletes the disk
 * and frees @dev. Does not wait for the removal (L5): ibnbd_clt_number_wait_deleted() does. Return:
 * 0, -EBUSY (in use), -EALREADY.
 */
int ibnbd_clt_recover_unmap(struct ibnbd_clt_dev *dev, bool force);
/* failfast= counts from now on. */
void ibnbd_clt_recover_set_failfast(struct ibnbd_clt_dev *dev, int seconds);

#endif
