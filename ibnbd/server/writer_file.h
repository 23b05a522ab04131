/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file that keeps the last writer and the cache epoch of each disk across restarts of the server.
 */
#ifndef IBNBD_SERVER_WRITER_FILE_H
#define IBNBD_SERVER_WRITER_FILE_H

#include <linux/uuid.h>
#include "ibnbd/logic/epoch.h"
#include "ibnbd/proto/msg.h"

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
