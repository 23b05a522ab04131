/* SPDX-License-Identifier: GPL-2.0-only */
/* Is a disk that clients write to, or are about to, used by this machine itself? */
#ifndef IBNBD_SERVER_CLAIM_H
#define IBNBD_SERVER_CLAIM_H

#include "ibnbd/server/export.h"

void *ibnbd_srv_claim_holder(const struct ibnbd_srv_open *open);
const char *ibnbd_srv_claim_taken(dev_t dev);
void ibnbd_srv_claim_file_begin(struct ibnbd_srv_open *open, const struct inode *inode);
int ibnbd_srv_claim_file_check(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_claim_disk(struct ibnbd_srv_open *open);
void ibnbd_srv_claim_end(struct ibnbd_srv_open *open);

#endif
