/* SPDX-License-Identifier: GPL-2.0-only */
/* OPEN, re-OPEN and CLOSE of a device: what is asked, and what the answers do to it. */
#ifndef IBNBD_CLIENT_OPEN_H
#define IBNBD_CLIENT_OPEN_H

#include "ibnbd/client/dev.h"

/* The first OPEN: @dev has its session. 0, or an errno that was said. */
int ibnbd_clt_open_first(struct ibnbd_clt_dev *dev);
/*
 * Ask again and go by the answer; when there is none, try again later. @resized: although the
 * device is open.
 */
void ibnbd_clt_open_again(struct ibnbd_clt_dev *dev, bool resized);
/* remap_device: 0, -EALREADY, -ENODEV, -EBUSY, -ENOTCONN, or what the server said. */
int ibnbd_clt_open_remap(struct ibnbd_clt_dev *dev);
/* CLOSE, if the server has it open and the device is in state @only_in. */
void ibnbd_clt_open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in);
/*
 * CLOSE of an unmapped device whose requests are not answered, towards a server that makes use of
 * it.
 */
void ibnbd_clt_open_give_up(struct ibnbd_clt_dev *dev);

#endif
