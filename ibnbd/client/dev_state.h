/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a device. Under dev->lock, where nothing else is said. */
#ifndef IBNBD_CLIENT_DEV_STATE_H
#define IBNBD_CLIENT_DEV_STATE_H

#include "ibnbd/client/dev.h"

/* time to the next sweep of what is parked, or in flight on a path that dies */
#define IBNBD_CLT_SWEEP		(HZ / 10 ?: 1)
#define IBNBD_CLT_SETTLE	(HZ / 2)	/* L8 */

/**
 * ibnbd_clt_dev_post() - the one writer of dev->state
 * @g: with OPENED and REMAPPED, else NULL
 *
 * The caller sets the reason before, by ibnbd_clt_dev_say(). Return: false if the event means
 * nothing in this state, or if the block layer refused the limits of @g; the device is then fenced.
 */
bool ibnbd_clt_dev_post(struct ibnbd_clt_dev *dev, enum ibnbd_dev_event ev,
			const struct ibnbd_clt_grant *g);

/*
 * Is nothing of @dev in flight? The gate is shut, so what is parked stays parked. Under dev->lock.
 */
bool ibnbd_clt_dev_is_quiet(struct ibnbd_clt_dev *dev);

/*
 * State FAILFAST: ends what another leg can do, and lets queue_rq sort the rest; again until none
 * is posted.
 */
void ibnbd_clt_dev_let_go(struct ibnbd_clt_dev *dev);
/* Post what is parked; what cannot be posted is tried again. */
void ibnbd_clt_dev_replay(struct ibnbd_clt_dev *dev);
/* L15: nothing is held before add_disk() has read the partition table. */
int ibnbd_clt_dev_hold_seconds(const struct ibnbd_clt_dev *dev);
/* I/O is held: starts the timer that ends it, with the value that hold= has now. */
void ibnbd_clt_dev_arm(struct ibnbd_clt_dev *dev);
/* I/O is held from now on. With hold=0 the timer expires at once. */
void ibnbd_clt_dev_lose(struct ibnbd_clt_dev *dev, const char *why);

/* The disk is shown. Takes dev->lock. */
void ibnbd_clt_dev_added(struct ibnbd_clt_dev *dev);
/* Called in the session's work, under the session's lock. They take dev->lock. */
void ibnbd_clt_dev_link_down(struct ibnbd_clt_dev *dev);
void ibnbd_clt_dev_link_up(struct ibnbd_clt_dev *dev);

/* inflight.c: operations on the requests of a device that are under way. */

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
/*
 * Ends what is parked or strayed. If the server may still execute a write of these, the device
 * takes no writes (L8). Return: true if something is still in flight.
 */
bool ibnbd_clt_inflight_abort(struct ibnbd_clt_dev *dev);
/* The same of what is larger than @max_bytes. */
void ibnbd_clt_inflight_abort_larger(struct ibnbd_clt_dev *dev, u32 max_bytes);
/* State FAILFAST: the same of reads, flushes, and what says FAILFAST. */
void ibnbd_clt_inflight_let_go(struct ibnbd_clt_dev *dev);
/* Is a request in flight? What is parked or strayed is not. */
bool ibnbd_clt_inflight_posted(struct ibnbd_clt_dev *dev);
/* Is a request that changes the disk in flight, parked or strayed? */
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
