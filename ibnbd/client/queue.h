/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a request. */
#ifndef IBNBD_CLIENT_QUEUE_H
#define IBNBD_CLIENT_QUEUE_H

#include <linux/blk-mq.h>
#include "ibnbd/client/dev.h"

extern const struct blk_mq_ops ibnbd_clt_queue_ops;

int ibnbd_clt_queue_alloc_ops(struct ibnbd_clt_session *s);
void ibnbd_clt_queue_free_ops(struct ibnbd_clt_session *s);
/* Work: completes what is on @s->late. */
void ibnbd_clt_queue_late(struct work_struct *work);

/* The end of a request that the server has answered, or cannot execute any more. */
void ibnbd_clt_queue_end(struct ibnbd_clt_op *op, int err);
/* Has it lost one path after the other for hold= seconds? */
bool ibnbd_clt_queue_is_overdue(const struct ibnbd_clt_op *op);

#endif
