/* SPDX-License-Identifier: GPL-2.0-only */
/* Legs of one mirror know of each other: the group rule (docs/design.md, decision 21). */
#ifndef IBNBD_CLIENT_GROUP_H
#define IBNBD_CLIENT_GROUP_H

#include "ibnbd/client/dev.h"

/* From here to ibnbd_clt_group_leave() the device is a leg of its group=, if it names one. */
void ibnbd_clt_group_join(struct ibnbd_clt_dev *dev);
/* No other leg tells @dev anything from here on. */
void ibnbd_clt_group_leave(struct ibnbd_clt_dev *dev);
/* State or in_sync of @dev changed: all legs of its group get NEWS_GROUP. Any context. */
void ibnbd_clt_group_changed(struct ibnbd_clt_dev *dev);
/* Can another leg stand for @dev? Any context. */
bool ibnbd_clt_group_another(struct ibnbd_clt_dev *dev);

#endif
