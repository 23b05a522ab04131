/* SPDX-License-Identifier: GPL-2.0-only */
/* What the client sends by itself: flushes of its own, and what the server may have lost. */
#ifndef IBNBD_CLIENT_REPLAY_H
#define IBNBD_CLIENT_REPLAY_H

#include "ibnbd/client/dev.h"

/* dev->flush_work: a flush of our own, if anything is kept. */
void ibnbd_clt_replay_flush_work(struct work_struct *work);

/**
 * ibnbd_clt_replay() - send what is kept to the server that answered @g, then a flush
 *
 * @left: the server may still execute some of it, when that is over
 *
 * Nothing else of the device may be in flight. Ends early when the device is not replaying any
 * more. Under dev->open_lock, not under dev->lock.
 *
 * Return: 0: all is flushed, and forgotten. What ibtrs_clt_call_io_end() says otherwise; -EPROTO:
 * the disk of now can not take it.
 */
int ibnbd_clt_replay(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g, bool *at_large);

#endif
