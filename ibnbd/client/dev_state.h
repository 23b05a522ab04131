/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of a device. Under dev->lock, where nothing else is said. */
#ifndef IBNBD_CLIENT_DEV_STATE_H
#define IBNBD_CLIENT_DEV_STATE_H

#include "ibnbd/client/dev.h"

/* time to the next sweep of what is parked, or in flight on a path that dies */
#define IBNBD_CLT_SWEEP		(HZ / 10 ?: 1)
#define IBNBD_CLT_SETTLE	(HZ / 2)	/* L8 */

/*
 * Ends what is parked or strayed. If the server may still execute a write of these, the device
 * takes no writes (L8). Return: true if something is still in flight.
 */
bool ibnbd_clt_dev_abort(struct ibnbd_clt_dev *dev);

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

#endif
