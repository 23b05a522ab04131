/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_IDENTITY_H
#define IBNBD_SERVER_IDENTITY_H

#include "ibnbd/proto/msg.h"

struct block_device;
struct file;

/* Of what has no name that lasts: who it is in this boot of the machine. Clients never hear it. */
#define IBNBD_ID_INSTANCE	255

void ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id);
void ibnbd_srv_identity_file(struct file *file, struct ibnbd_identity *id);
void ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				 struct ibnbd_identity *id);

#endif
