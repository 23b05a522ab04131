/* SPDX-License-Identifier: GPL-2.0-only */
/* The backing object of one open: a block device or a regular file. */
#ifndef IBNBD_SERVER_BACKING_H
#define IBNBD_SERVER_BACKING_H

#include "ibnbd/server/export.h"

/* Resolves the name of @open and opens what it means. 0, or an errno; @why as in export.h. */
int ibnbd_srv_backing_open(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_backing_close(struct ibnbd_srv_open *open);
/* As it is now. */
u64 ibnbd_srv_backing_nsectors(struct ibnbd_srv_open *open);
/* @id: which disk it is (F.4), or none; @cache_id: the same, or which one of this boot. */
void ibnbd_srv_backing_identity(const struct ibnbd_srv_open *open, struct ibnbd_identity *id,
				struct ibnbd_identity *cache_id);
/* What an answer to OPEN says of the disk; of its export it says nothing. */
void ibnbd_srv_backing_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);

#endif
