/* SPDX-License-Identifier: GPL-2.0-only */
/* The path of a request from the block layer to ibtrs and back. */
#ifndef IBNBD_CLIENT_QUEUE_H
#define IBNBD_CLIENT_QUEUE_H

#include <linux/blk-mq.h>
#include "ibnbd/client/dev.h"

extern const struct blk_mq_ops ibnbd_clt_queue_ops;

int ibnbd_clt_queue_alloc_ops(struct ibnbd_clt_session *s);
void ibnbd_clt_queue_free_ops(struct ibnbd_clt_session *s);
/* Work: completes what is on @s->late. */
void ibnbd_clt_queue_late(struct work_struct *work);

/* Ends a request that the server has answered, or that the server cannot execute any more. */
void ibnbd_clt_queue_end(struct ibnbd_clt_op *op, int err);
/*
 * Does the request end in state FAILFAST? It is a read, which another leg can answer, or a flush;
 * or its sender says that it can do without this disk, as md does and the device mapper does not.
 */
bool ibnbd_clt_queue_lets_go(const struct request *rq);
/* Has the request lost several paths, one after the other, for hold= seconds? */
bool ibnbd_clt_queue_is_overdue(const struct ibnbd_clt_op *op);

#endif
