/* SPDX-License-Identifier: GPL-2.0-only */
/* The backing object of one open: a block device (blockio.c) or a regular file (fileio.c). */
#ifndef IBNBD_SERVER_BACKING_H
#define IBNBD_SERVER_BACKING_H

#include <linux/path.h>
#include "ibnbd/server/export.h"
#include "ibnbd/server/io.h"

/* Resolves the name of @open and opens what it means. 0, or an errno; @why as in export.h. */
int ibnbd_srv_backing_open(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_backing_close(struct ibnbd_srv_open *open);
/* The capacity as it is now. */
u64 ibnbd_srv_backing_nsectors(struct ibnbd_srv_open *open);
/*
 * Fills in the identities of @e, which is new. An errno: it cannot be told at the moment which disk
 * it is; @why as in export.h.
 */
int ibnbd_srv_backing_identity(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e,
			       const char **why);
/* Fills in what an answer to OPEN says of the disk, but not what it says of the export. */
void ibnbd_srv_backing_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);

int ibnbd_srv_blockio_open(struct ibnbd_srv_open *open, dev_t dev, const char **why);
bool ibnbd_srv_blockio_claim_is_due(const struct ibnbd_srv_open *open);
cx_bdev_t ibnbd_srv_blockio_claim(const struct ibnbd_srv_open *open, void *holder);
cx_bdev_t ibnbd_srv_blockio_claimed(struct ibnbd_srv_open *open, cx_bdev_t handle, void *holder);
void ibnbd_srv_blockio_close(struct ibnbd_srv_open *open);
u64 ibnbd_srv_blockio_nsectors(struct ibnbd_srv_open *open);
void ibnbd_srv_blockio_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
void ibnbd_srv_blockio_later_work(struct work_struct *work);
void ibnbd_srv_blockio_submit(struct ibnbd_srv_io *io, const struct ibnbd_io *m);

int ibnbd_srv_fileio_open(struct ibnbd_srv_open *open, const struct path *path, const char **why);
void ibnbd_srv_fileio_close(struct ibnbd_srv_open *open);
u64 ibnbd_srv_fileio_nsectors(struct ibnbd_srv_open *open);
void ibnbd_srv_fileio_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
void ibnbd_srv_fileio_submit(struct ibnbd_srv_io *io, const struct ibnbd_io *m);

int ibnbd_srv_identity_bdev(struct block_device *bdev, struct ibnbd_identity *id);
void ibnbd_srv_identity_file(struct file *file, struct ibnbd_identity *id);
int ibnbd_srv_identity_instance(struct block_device *bdev, struct file *file,
				struct ibnbd_identity *id);

/* claim.c: is a disk that clients write to, or are about to, used by this machine itself? */

void *ibnbd_srv_claim_holder(const struct ibnbd_srv_open *open);
const char *ibnbd_srv_claim_taken(dev_t dev);
void ibnbd_srv_claim_file_begin(struct ibnbd_srv_open *open, const struct inode *inode);
int ibnbd_srv_claim_file_check(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_claim_disk(struct ibnbd_srv_open *open);
void ibnbd_srv_claim_end(struct ibnbd_srv_open *open);

#endif
