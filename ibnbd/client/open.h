/* SPDX-License-Identifier: GPL-2.0-only */
/* OPEN, re-OPEN and CLOSE of a device: what is asked, and what the answers do to it. */
#ifndef IBNBD_CLIENT_OPEN_H
#define IBNBD_CLIENT_OPEN_H

#include "ibnbd/client/dev.h"

/* Sends the first OPEN of @dev, which has its session. 0, or an errno; the reason was told. */
int ibnbd_clt_open_first(struct ibnbd_clt_dev *dev);
/*
 * Ask again and go by the answer; when there is none, try again later. @resized: although the
 * device is open.
 */
void ibnbd_clt_open_again(struct ibnbd_clt_dev *dev, bool resized);
/* remap_device: 0, -EALREADY, -ENODEV, -EBUSY, -ENOTCONN, or what the server said. */
int ibnbd_clt_open_remap(struct ibnbd_clt_dev *dev);
/* Sends CLOSE, if the server has it open and the device is in state @only_in. */
void ibnbd_clt_open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in);
/*
 * Sends CLOSE for an unmapped device whose requests are not answered, if the server makes use of
 * that.
 */
void ibnbd_clt_open_give_up(struct ibnbd_clt_dev *dev);

#endif
