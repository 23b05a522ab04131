/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_WRITER_H
#define IBNBD_SERVER_WRITER_H

#include "ibnbd/server/export.h"

/**
 * ibnbd_srv_writer_note() - an open is about to be granted (spec F.4)
 * @open: its backing object is open, its access mode and session are set
 * @gen: the object's writer generation, which this open has just raised if it writes and another session wrote last
 *
 * Process context, one call at a time.
 *
 * Return: 0, -ENOMEM.
 */
int ibnbd_srv_writer_note(const struct ibnbd_srv_open *open, u64 *gen);
/*
 * Of two writers (a migration) @gone leaves, @stays may write on. Should @gone's session come back with writes that it holds, it is not the last
 * writer any more.
 */
void ibnbd_srv_writer_left(const struct ibnbd_srv_open *gone, const struct ibnbd_srv_open *stays);
/* Forget all; nothing is open. */
void ibnbd_srv_writer_exit(void);

#endif
