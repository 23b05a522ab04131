/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be done with the requests of a device that are under way. */
#ifndef IBNBD_CLIENT_INFLIGHT_H
#define IBNBD_CLIENT_INFLIGHT_H

#include "ibnbd/client/dev.h"

/* All of these: @dev->lock held. */

/*
 * Post what is parked, and what strayed, with the device id of now. Return how many could not be
 * posted: call again soon.
 */
unsigned int ibnbd_clt_inflight_replay(struct ibnbd_clt_dev *dev);
/*
 * Did the server not know the device by the id it has now? Strays sent before the last OPEN say
 * nothing about that.
 */
bool ibnbd_clt_inflight_unknown(struct ibnbd_clt_dev *dev);
/* End what is parked or strayed. Return true if a write among it may still be executed (L8). */
enum ibtrs_clt_at_large ibnbd_clt_inflight_abort(struct ibnbd_clt_dev *dev);
/* End what is parked or strayed and larger than @max_bytes. Return as above. */
enum ibtrs_clt_at_large ibnbd_clt_inflight_abort_larger(struct ibnbd_clt_dev *dev, u32 max_bytes);
/* In flight, parked or strayed. */
unsigned int ibnbd_clt_inflight_busy(struct ibnbd_clt_dev *dev);
/* In flight alone. */
unsigned int ibnbd_clt_inflight_posted(struct ibnbd_clt_dev *dev);
/* The same as busy, only what changes the disk. */
bool ibnbd_clt_inflight_has_writes(struct ibnbd_clt_dev *dev);
/*
 * Jiffies since when the request that waits longest has been held: it left a path then, or came
 * while I/O was held. Now, if there is none.
 */
unsigned long ibnbd_clt_inflight_held_since(struct ibnbd_clt_dev *dev);
/*
 * Break the paths that carry requests which path after path has lost, for hold= seconds; they get
 * parked. Return: how many.
 */
unsigned int ibnbd_clt_inflight_break_overdue(struct ibnbd_clt_dev *dev, const char *why);
/*
 * Break the paths that carry requests older than @seconds; they move on. 0: of any age, and they
 * get parked.
 */
void ibnbd_clt_inflight_break(struct ibnbd_clt_dev *dev, unsigned int seconds, const char *why);

#endif
