/* SPDX-License-Identifier: GPL-2.0-only */
/* The backing object of one open: a block device or a regular file. */
#ifndef IBNBD_SERVER_BACKING_H
#define IBNBD_SERVER_BACKING_H

#include "ibnbd/server/export.h"

/* Resolves the name of @open and opens what it means. 0, or an errno; @why as in export.h. */
int ibnbd_srv_backing_open(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_backing_close(struct ibnbd_srv_open *open);
/* The capacity as it is now. */
u64 ibnbd_srv_backing_nsectors(struct ibnbd_srv_open *open);
/*
 * @id: the disk's identity (protocol 10.1), or kind NONE; @cache_id: the same, or else one for this
 * boot. An errno: it cannot be told at the moment which disk it is; @why as in export.h.
 */
int ibnbd_srv_backing_identity(struct ibnbd_srv_open *open, struct ibnbd_identity *id,
			       struct ibnbd_identity *cache_id, const char **why);
/* Fills in what an answer to OPEN says of the disk, but not what it says of the export. */
void ibnbd_srv_backing_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);

#endif
