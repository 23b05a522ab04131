/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a client may have of a server before and after it is let in. Pure: the caller counts, under
 * the lock of the sessions, and hands in the numbers.
 *
 * A *client* is an address together with the key that was proved there, or without one. A
 * *stranger* has proved no key, and nobody has been let in from its address: it has sent CONN_REQs,
 * and no INFO_REQ that was good. All strangers share one small budget, of paths and of memory, and
 * a single one gets a quarter of that memory at most. A client that has a key, or has been let in
 * from an address that is still here, or was lost a moment ago, draws on no budget of the
 * strangers, but on one of those who are known. So however many strangers knock, a client that was
 * in comes back in.
 */
#ifndef IBTRS_LOGIC_QUOTA_H
#define IBTRS_LOGIC_QUOTA_H

#include <ibtrs/pure.h>

/**
 * struct ibtrs_quota_use - what somebody has: one address, or all strangers together
 * @half_open: paths in the handshake
 * @half_bytes: of the queues of their connections
 * @ending: paths that are closed, and not at their end
 * @sessions: that have been let in
 * @bytes: of the paths that have been let in, chunks and queues
 */
struct ibtrs_quota_use {
	u32 half_open;
	u32 ending;
	u32 sessions;
	u64 half_bytes;
	u64 bytes;
};

struct ibtrs_quota_max {
	u32 half_open;		/* of all strangers */
	u32 half_open_per_peer;
	u32 sessions;		/* of all */
	u32 sessions_per_peer;
	u32 ending_per_peer;
	u64 half_bytes;		/* of all strangers; of all who are known twice as much */
	u64 bytes;		/* of all that have been let in */
	u64 bytes_per_peer;
};

/* One client gets that part of what all of its kind may have. */
#define IBTRS_QUOTA_SHARE	4

/**
 * ibtrs_quota_path() - may an address begin another path?
 * @strangers: all of them
 * @peer: who asks
 * @known: is no stranger
 * @why: reason of a refusal, with the parameter to raise
 *
 * Return: 0, -ENOSPC, or -EBUSY: when some of its paths have come to their end.
 */
int ibtrs_quota_path(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *strangers,
		     const struct ibtrs_quota_use *peer, bool known, const char **why);
/**
 * ibtrs_quota_conn() - may a path in the handshake have another connection?
 * @alike: all strangers, or all who are @known
 * @bytes: of its queues
 *
 * Return: 0 or -ENOMEM.
 */
int ibtrs_quota_conn(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *alike,
		     const struct ibtrs_quota_use *peer, bool known, u64 bytes, const char **why);
/**
 * ibtrs_quota_session() - may another session be let in?
 * @sessions: of all that are in
 *
 * Return: 0 or -ENOSPC.
 */
int ibtrs_quota_session(const struct ibtrs_quota_max *max, u32 sessions,
			const struct ibtrs_quota_use *peer, const char **why);
/**
 * ibtrs_quota_let_in() - may a path of an address have its chunks?
 * @bytes: of chunks and queues
 *
 * Return: 0 or -ENOMEM.
 */
int ibtrs_quota_let_in(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
		       u64 bytes, const char **why);
/**
 * ibtrs_quota_is_modest() - may what is kept for other clients that were lost go for this one?
 * @bytes: that it asks for
 *
 * Return: whether it has a quarter of all then, or less.
 */
bool ibtrs_quota_is_modest(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
			   u64 bytes);

#endif
