/* SPDX-License-Identifier: GPL-2.0-only */
/* OPEN, re-OPEN and CLOSE of a device. */
#ifndef IBNBD_CLIENT_OPEN_H
#define IBNBD_CLIENT_OPEN_H

#include "ibnbd/client/dev.h"
#include "ibnbd/logic/errword.h"

/*
 * Sends the first OPEN of @dev, which has its session. Return: 0, or an errno; the reason was
 * logged.
 */
int ibnbd_clt_open_first(struct ibnbd_clt_dev *dev);
/*
 * Sends OPEN again and acts on the answer; without an answer, tries again later. @resized: do this
 * even if the device is open.
 */
void ibnbd_clt_open_again(struct ibnbd_clt_dev *dev, bool resized);
/* remap_device: 0, -EALREADY, -ENODEV, -EBUSY, -ENOTCONN, or what the server said. */
int ibnbd_clt_open_remap(struct ibnbd_clt_dev *dev);
/* Sends CLOSE if the server has the device open and the device is in state @only_in. */
void ibnbd_clt_open_close(struct ibnbd_clt_dev *dev, enum ibnbd_dev_state only_in);
/*
 * Sends CLOSE for an unmapped device whose requests are not answered, if the server is one of ours,
 * which can use it.
 */
void ibnbd_clt_open_give_up(struct ibnbd_clt_dev *dev);

/* judge.c: decides about answers to OPEN. Called under dev->lock, unless stated otherwise. */

/* when the server is asked again */
#define IBNBD_CLT_RETRY_HELD	(HZ / 2)
#define IBNBD_CLT_RETRY_SOON	(HZ / 20 ?: 1)
#define IBNBD_CLT_RETRY_FAILED	(2 * HZ)

/* The mapping of @g may still execute what a replay had under way. */
bool ibnbd_clt_judge_resent(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/* As above, or requests that the device gave up: send CLOSE before OPEN. */
bool ibnbd_clt_judge_at_large(const struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/* The server answered OPEN: is this still our disk? True: first send the kept writes again. */
bool ibnbd_clt_judge_answer(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/*
 * Does the device judge @g itself, although an administrator remaps it? It holds requests, which
 * must not be written over what another client has written meanwhile; or it can recover without a
 * loss: all that may be lost is kept.
 */
bool ibnbd_clt_judge_itself(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/*
 * Why the disk of @g must not be put under the users of the device, or NULL: it is fenced, or would
 * be if it judged @g itself. A disk without a size could become any disk.
 */
const char *ibnbd_clt_judge_users(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
/* OPEN failed, or its answer cannot be used. */
void ibnbd_clt_judge_error(struct ibnbd_clt_dev *dev, int err, const char *why);

/*
 * Why an OPEN failed: @why if it is not NULL, in the server's words or ours; otherwise the meaning
 * of @err. Valid as long as open_lock is held.
 */
static inline const char *ibnbd_clt_judge_word(int err, const char *why)
{
	return why ?: ibnbd_errword_open(err);
}

/* The prefix that names the server as the source: empty unless @why is the server's own text. */
static inline const char *ibnbd_clt_judge_who(const struct ibnbd_clt_dev *dev, const char *why)
{
	return why == dev->said.text ? "the server says: " : "";
}

/*
 * replay.c: requests that the client sends by itself: its own flushes, and writes the server may
 * have lost.
 */

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
