/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests that the client sends by itself: its own flushes, and writes the server may have lost.
 */
#ifndef IBNBD_CLIENT_REPLAY_H
#define IBNBD_CLIENT_REPLAY_H

#include "ibnbd/client/dev.h"

/* The work of dev->flush_work: sends a flush of our own, if anything is kept or there is a gap. */
void ibnbd_clt_replay_flush_work(struct work_struct *work);

/**
 * ibnbd_clt_replay() - send what is kept to the server that answered @g, then a flush
 *
 * @at_large: set if the server may still execute some of it when this function returns
 *
 * Nothing else of the device may be in flight. Ends early when the device leaves state replaying.
 * Under dev->open_lock, not under dev->lock.
 *
 * Return: 0: all is flushed, and dropped from the log; -EPROTO: the server's disk does not support
 * an operation of the log any more; otherwise what ibtrs_clt_call_io_begin() or
 * ibtrs_clt_call_io_end() returned.
 */
int ibnbd_clt_replay(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g, bool *at_large);

#endif
