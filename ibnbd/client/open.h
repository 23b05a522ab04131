/* SPDX-License-Identifier: GPL-2.0-only */
/* OPEN, re-OPEN and CLOSE of a device. */
#ifndef IBNBD_CLIENT_OPEN_H
#define IBNBD_CLIENT_OPEN_H

#include "ibnbd/client/dev.h"

/*
 * Sends the first OPEN of @dev, which has its session. Return: 0, or an errno; the reason was
 * logged.
 */
int ibnbd_clt_open_first(struct ibnbd_clt_dev *dev);
/*
 * Sends OPEN again and acts on the answer; without an answer, tries again later. @resized: do this
 * even if the device is open.
 */
void ibnbd_clt_open_again(struct ibnbd_clt_dev *dev, bool resized);
/* remap_device: 0, -EALREADY, -ENODEV, -EBUSY, -ENOTCONN, or what the server said. */
int ibnbd_clt_open_remap(struct ibnbd_clt_dev *dev);
/* Sends CLOSE if the server has the device open and the device is in state @only_in. */
void ibnbd_clt_open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in);
/*
 * Sends CLOSE for an unmapped device whose requests are not answered, if the server is one of ours,
 * which can use it.
 */
void ibnbd_clt_open_give_up(struct ibnbd_clt_dev *dev);

#endif
