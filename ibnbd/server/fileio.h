/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_FILEIO_H
#define IBNBD_SERVER_FILEIO_H

#include <linux/path.h>
#include "ibnbd/server/export.h"
#include "ibnbd/server/io.h"

int ibnbd_srv_fileio_open(struct ibnbd_srv_open *open, const struct path *path, const char **why);
void ibnbd_srv_fileio_close(struct ibnbd_srv_open *open);
u64 ibnbd_srv_fileio_nsectors(struct ibnbd_srv_open *open);
void ibnbd_srv_fileio_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
void ibnbd_srv_fileio_submit(struct ibnbd_srv_io *io, const struct ibnbd_io *m);

#endif
