/* SPDX-License-Identifier: GPL-2.0-only */
/* Decides about answers to OPEN. Called under dev->lock, unless stated otherwise. */
#ifndef IBNBD_CLIENT_JUDGE_H
#define IBNBD_CLIENT_JUDGE_H

#include "ibnbd/client/dev.h"
#include "ibnbd/logic/errword.h"

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
/* The server may have lost writes, and all of them are kept and may be sent again. */
bool ibnbd_clt_judge_resends(struct ibnbd_clt_dev *dev, const struct ibnbd_clt_grant *g);
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

#endif
