/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_WRITER_H
#define IBNBD_SERVER_WRITER_H

#include <linux/uuid.h>
#include "ibnbd/logic/epoch.h"
#include "ibnbd/proto/msg.h"
#include "ibnbd/server/export.h"

/**
 * ibnbd_srv_writer_note() - an open is about to be granted (protocol 10.5)
 * @open: its access mode and session are set
 * @e: the export that it will join; its writer generation is set, which this open has just raised
 *	if it writes and another session wrote last
 *
 * Process context, one call at a time. An open that writes may be answered only after
 * ibnbd_srv_writer_file_keep() has returned, and ibnbd_srv_writer_left() is called when it leaves.
 * An open that only reads makes no record.
 *
 * Return: 0, -ENOMEM.
 */
int ibnbd_srv_writer_note(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e);
/* Sets the cache epoch of @e to what is recorded; epoch 0: nothing is. */
void ibnbd_srv_writer_recall_epoch(struct ibnbd_srv_export *e);
/*
 * Records the cache epoch of @e. As long as a writer has it open, there is a record, in which it
 * outlives the export; without one, and after a restart, the file has it.
 */
void ibnbd_srv_writer_store_epoch(const struct ibnbd_srv_export *e);
/*
 * A writer leaves @e. If it was one of two writers (a migration), @last is the one of them that may
 * have written last, and is recorded as the last writer; else @last is NULL. What the one that
 * stays keeps or holds may be older than what the other has flushed, so the generation is raised.
 */
void ibnbd_srv_writer_left(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *last);
/*
 * The server is about to listen. Another server may have had its disks meanwhile, so only what the
 * file says counts. Takes the export lock.
 */
void ibnbd_srv_writer_forget(void);
/* Free all records; nothing is open any more. */
void ibnbd_srv_writer_exit(void);

/*
 * writer_file.c: a file that keeps the last writer and the cache epoch of each disk across
 * restarts of the server.
 */

bool ibnbd_srv_writer_file_is_given(void);
bool ibnbd_srv_writer_file_is_none(void);
int ibnbd_srv_writer_file_load(void);
void ibnbd_srv_writer_file_exit(void);
bool ibnbd_srv_writer_file_recall(const struct ibnbd_identity *id, u64 *gen, uuid_t *writer);
void ibnbd_srv_writer_file_store(const struct ibnbd_identity *id, u64 gen, const uuid_t *writer);
void ibnbd_srv_writer_file_recall_epoch(const struct ibnbd_identity *id, struct ibnbd_epoch *e);
void ibnbd_srv_writer_file_store_epoch(const struct ibnbd_identity *id,
				       const struct ibnbd_epoch *e);
int ibnbd_srv_writer_file_keep(void);

#endif
