/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One connection of ibnbd-stranger: what it is told, and what it says. Process context, one caller
 * at a time; completions and CM events only note and wake.
 */
#ifndef STRANGER_PEER_H
#define STRANGER_PEER_H

#include <linux/completion.h>
#include <linux/prandom.h>
#include <linux/wait.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/core/conn.h"
#include "ibtrs/logic/auth.h"

#define STRANGER_MS	8000
#define STRANGER_ROOM	4096		/* of one message */
#define STRANGER_OUT	8		/* messages on their way; each has a room */
#define STRANGER_IN	24		/* receives for what nobody waits for */
#define STRANGER_SLOTS	64		/* whose keys it keeps */

struct stranger_conn {
	struct ibtrs_conn c;
	struct ibtrs_dev *dev;
	__be32 claim;		/* of the caller: an address that is not ours, or 0 */
	struct completion told;
	enum rdma_cm_event_type event;
	u8 priv[256];
	size_t priv_len;
	struct ibtrs_iu out, in;
	struct completion came;		/* a message into @in, of @len bytes, or the end */
	int len;
	/* for who says more than one thing at a time */
	struct ib_cqe said, heard;
	struct wait_queue_head room;
	atomic_t outstanding;
	u32 next_room;
	bool gone;
	u32 *rkey;		/* of its path: the newest that it was told for a slot, or 0 */
	u32 answers;			/* immediates that came */
	u32 fetched;			/* reads and atomics that the server's memory answered */
};

extern struct rnd_state stranger_rnd;	/* under stranger_lock, like all that is left to chance */

static inline u32 any(u32 below)
{
	return prandom_u32_state(&stranger_rnd) % below;
}

/* A few bytes of it are others, or all. */
void stranger_spoil(u8 *buf, u32 len);

/* 0: established. -ECONNREFUSED: rejected, the answer lies in s->priv. */
int stranger_connect(struct stranger_conn *s, const char *to, const void *priv, u8 len);
/* One message, and the answer into s->in, for which a receive has been posted. */
int stranger_send(struct stranger_conn *s, u32 len);
int stranger_expect(struct stranger_conn *s);
/* Receives for any number of answers. */
int stranger_listen(struct stranger_conn *s);
/*
 * What follows waits for room, not for the end of it. A room is zeroed, for one message of
 * STRANGER_ROOM bytes at most.
 */
u8 *stranger_room(struct stranger_conn *s, struct ib_sge *sge);
int stranger_post(struct stranger_conn *s, struct ib_send_wr *wr, struct ib_sge *sge);
int stranger_post_send(struct stranger_conn *s, struct ib_sge *sge, u32 len, bool with_imm);
int stranger_post_imm(struct stranger_conn *s, u32 imm);
/* True: the server has ended the connection, or does so before @ms have passed. */
bool stranger_ended(struct stranger_conn *s, unsigned int ms);
void stranger_leave(struct stranger_conn *s);

#endif
