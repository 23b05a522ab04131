/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_WRITER_H
#define IBNBD_SERVER_WRITER_H

#include "ibnbd/server/export.h"

/**
 * ibnbd_srv_writer_note() - an open is about to be granted (spec F.4)
 * @open: its backing object is open, its access mode and session are set
 * @e: the export that it will join
 * @gen: the object's writer generation, which this open has just raised if it writes and another
 *	session wrote last
 *
 * Process context, one call at a time. An open that writes may be answered when
 * ibnbd_srv_writer_file_keep() has returned, and ends in ibnbd_srv_writer_left(); one that reads
 * leaves nothing behind.
 *
 * Return: 0, -ENOMEM.
 */
int ibnbd_srv_writer_note(const struct ibnbd_srv_open *open, const struct ibnbd_srv_export *e,
			  u64 *gen);
/*
 * What is recorded of its cache: there is something as long as a writer has it open. NULL: nothing.
 * Until the next call for another object.
 */
struct ibnbd_epoch *ibnbd_srv_writer_cache(const struct ibnbd_srv_open *open,
					   const struct ibnbd_srv_export *e);
/*
 * A writer leaves. Of two (a migration) @last, one of them, may have written last; else it is NULL.
 * Should the other one's session come back with writes that it holds, it hears of another writer.
 */
void ibnbd_srv_writer_left(const struct ibnbd_srv_open *gone, const struct ibnbd_srv_open *last);
/* Forget all; nothing is open. */
void ibnbd_srv_writer_exit(void);

#endif
