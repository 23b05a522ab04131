/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_BLOCKIO_H
#define IBNBD_SERVER_BLOCKIO_H

#include "ibnbd/server/export.h"
#include "ibnbd/server/io.h"

int ibnbd_srv_blockio_open(struct ibnbd_srv_open *open, dev_t dev, const char **why);
bool ibnbd_srv_blockio_claim_is_due(const struct ibnbd_srv_open *open);
cx_bdev_t ibnbd_srv_blockio_claim(const struct ibnbd_srv_open *open, void *holder);
cx_bdev_t ibnbd_srv_blockio_claimed(struct ibnbd_srv_open *open, cx_bdev_t handle, void *holder);
void ibnbd_srv_blockio_close(struct ibnbd_srv_open *open);
u64 ibnbd_srv_blockio_nsectors(struct ibnbd_srv_open *open);
void ibnbd_srv_blockio_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
void ibnbd_srv_blockio_init_export(struct ibnbd_srv_export *e);
void ibnbd_srv_blockio_submit(struct ibnbd_srv_io *io, const struct ibnbd_io *m);

#endif
