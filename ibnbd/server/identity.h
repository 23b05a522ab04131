/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_IDENTITY_H
#define IBNBD_SERVER_IDENTITY_H

#include "ibnbd/logic/identity.h"

struct block_device;
struct file;

int ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id);
void ibnbd_srv_identity_file(struct file *file, struct ibnbd_identity *id);
int ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				struct ibnbd_identity *id);

#endif
