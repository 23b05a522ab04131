/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_IDENTITY_H
#define IBNBD_SERVER_IDENTITY_H

#include "ibnbd/proto/msg.h"

struct block_device;
struct file;

/*
 * The kind of an identity that is valid for this boot only, of an object without a lasting name.
 * Clients are never told it.
 */
#define IBNBD_ID_INSTANCE	255

int ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id);
void ibnbd_srv_identity_file(struct file *file, struct ibnbd_identity *id);
int ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				struct ibnbd_identity *id);

#endif
