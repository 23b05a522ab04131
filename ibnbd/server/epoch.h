/* SPDX-License-Identifier: GPL-2.0-only */
/* The cache epochs of exports: an epoch changes when writes that no flush covers may be lost. */
#ifndef IBNBD_SERVER_EPOCH_H
#define IBNBD_SERVER_EPOCH_H

#include <linux/pagemap.h>
#include "ibnbd/server/export.h"
#include "ibnbd/server/session.h"

void ibnbd_srv_epoch_note(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e);
void ibnbd_srv_epoch_kept(struct ibnbd_srv_export *e, bool kept);
void ibnbd_srv_epoch_end(struct ibnbd_srv_export *e, bool flushed);
void ibnbd_srv_epoch_lost(struct ibnbd_srv_export *e, const char *why);
void ibnbd_srv_epoch_join(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open);
void ibnbd_srv_epoch_leave(struct ibnbd_srv_export *e);
void ibnbd_srv_epoch_doubt(struct ibnbd_srv_export *e);
void ibnbd_srv_epoch_look(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open);
void ibnbd_srv_epoch_tell(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
int ibnbd_srv_epoch_flush(struct ibnbd_srv_open *open);

/* Does the client of a session know of epochs? Any context. */
static inline bool ibnbd_srv_epoch_is_known(const struct ibnbd_srv_session *s)
{
	return READ_ONCE(s->features) & IBNBD_FEAT_DURABILITY;
}

/* From now on only later failures of write-back count for this open. */
static inline void ibnbd_srv_epoch_sample_wb_err(struct ibnbd_srv_open *open)
{
	if (open->file)
		WRITE_ONCE(open->wb_err, filemap_sample_wb_err(open->file->f_mapping));
}

/*
 * Has write-back of the file failed since it was opened, or sampled? The page cache may then have
 * dropped data. fsync reports such an error only once; this function returns it every time. Returns
 * 0 or the error. Any context.
 */
static inline int ibnbd_srv_epoch_wb_err(const struct ibnbd_srv_open *open)
{
	return filemap_check_wb_err(open->file->f_mapping, READ_ONCE(open->wb_err));
}

#endif
