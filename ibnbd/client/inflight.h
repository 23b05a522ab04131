/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations on the requests of a device that are under way. */
#ifndef IBNBD_CLIENT_INFLIGHT_H
#define IBNBD_CLIENT_INFLIGHT_H

#include "ibnbd/client/dev.h"

/* All of these: @dev->lock held. */

/*
 * Posts what is parked and what strayed, with the current device id. Return: how many could not be
 * posted; call again soon.
 */
unsigned int ibnbd_clt_inflight_replay(struct ibnbd_clt_dev *dev);
/*
 * Did the server answer that it does not know the current device id? Strays that were sent before
 * the last OPEN say nothing about that.
 */
bool ibnbd_clt_inflight_unknown(struct ibnbd_clt_dev *dev);
/* Ends what is parked or strayed. Return: what of it the server may still execute (L8). */
enum ibtrs_clt_at_large ibnbd_clt_inflight_abort(struct ibnbd_clt_dev *dev);
/* Ends what is parked or strayed and larger than @max_bytes. Return: as above. */
enum ibtrs_clt_at_large ibnbd_clt_inflight_abort_larger(struct ibnbd_clt_dev *dev, u32 max_bytes);
/*
 * State FAILFAST: ends reads, flushes, and what says FAILFAST, of what is parked or strayed.
 * Return: as above.
 */
enum ibtrs_clt_at_large ibnbd_clt_inflight_let_go(struct ibnbd_clt_dev *dev);
/* Is a request in flight, parked or strayed? */
bool ibnbd_clt_inflight_busy(struct ibnbd_clt_dev *dev);
/* In flight only. */
bool ibnbd_clt_inflight_posted(struct ibnbd_clt_dev *dev);
/* As busy, but only requests that change the disk. */
bool ibnbd_clt_inflight_has_writes(struct ibnbd_clt_dev *dev);
/*
 * Since when, in jiffies, the request that waits longest has been held: since it left a path, or
 * since it came while I/O was held. The current time if no request is held.
 */
unsigned long ibnbd_clt_inflight_held_since(struct ibnbd_clt_dev *dev);
/* Milliseconds since the oldest request came that is not answered; 0: there is none. */
u64 ibnbd_clt_inflight_oldest_ms(struct ibnbd_clt_dev *dev);
/*
 * Breaks the paths that carry overdue requests (ibnbd_clt_queue_is_overdue()); these requests get
 * parked. Return: how many.
 */
unsigned int ibnbd_clt_inflight_break_overdue(struct ibnbd_clt_dev *dev, const char *why);
/*
 * Breaks the paths that carry requests older than @seconds; these requests move to other paths.
 * @seconds 0: requests of any age, and they get parked.
 */
void ibnbd_clt_inflight_break(struct ibnbd_clt_dev *dev, unsigned int seconds, const char *why);

#endif
