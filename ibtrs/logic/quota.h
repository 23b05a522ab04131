/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Limits on a client's use of a server, before and after its admission. Pure: the caller counts
 * under the lock of the sessions and passes the numbers.
 *
 * A *client* is an address together with the key that was proved from there, if any. A *stranger*
 * is a client that has proved no key, and no client without a key is in from its address, or was a
 * moment ago: it has sent CONN_REQs, but no good INFO_REQ. All strangers together share one small
 * budget of paths and of memory, and one stranger gets at most a quarter of that memory. All other
 * clients are *known*. Known clients do not use the strangers' budget; they share one of their own.
 * So a client that was in can come back in, however many strangers connect.
 */
#ifndef IBTRS_LOGIC_QUOTA_H
#define IBTRS_LOGIC_QUOTA_H

#include <ibtrs/pure.h>

/**
 * struct ibtrs_quota_use - what a client, or several clients, use
 * @half_open: paths in the handshake
 * @ending: closed paths whose teardown has not finished
 * @sessions: sessions that have been let in
 * @half_bytes: memory of the queues of connections of paths in the handshake
 * @bytes: memory of the paths that have been let in: chunks and queues
 */
struct ibtrs_quota_use {
	u32 half_open;
	u32 ending;
	u32 sessions;
	u64 half_bytes;
	u64 bytes;
};

/**
 * struct ibtrs_quota_client - a client that asks for something, and what is in use
 * @known: it is no stranger
 * @keyed: it has proved a key
 * @leaves: if it has not: others can prove one here, and a quarter is reserved for them
 * @peer: what the client uses
 * @alike: what all strangers use, or all known clients if @known
 * @key: what all clients with its key use, or all without a key
 * @all: what all clients use
 */
struct ibtrs_quota_client {
	bool known;
	bool keyed;
	bool leaves;
	struct ibtrs_quota_use peer;
	struct ibtrs_quota_use alike;
	struct ibtrs_quota_use key;
	struct ibtrs_quota_use all;
};

struct ibtrs_quota_max {
	u32 half_open;		/* of all strangers together */
	u32 half_open_per_peer;
	u32 sessions;		/* of all clients together */
	u32 sessions_per_peer;
	u32 sessions_per_key;	/* 0: all but a share */
	u32 ending_per_peer;
	u64 half_bytes;		/* of all strangers; all known clients get twice as much */
	u64 bytes;		/* of all that have been let in */
	u64 bytes_per_peer;
	u64 bytes_per_key;	/* 0: all but a share */
};

enum ibtrs_quota_ask {
	IBTRS_QUOTA_SESSION,	/* another session that is let in */
	IBTRS_QUOTA_PATH,	/* another path in the handshake */
	IBTRS_QUOTA_CONN,	/* another connection of such a path: memory of its queues */
	IBTRS_QUOTA_LET_IN,	/* a path that is let in: memory of its chunks and queues */
};

/**
 * ibtrs_quota_check() - may a client have what it asks for?
 * @max: the limits
 * @c: the client
 * @ask: what it asks for
 * @n: how much of it: 1, or bytes
 * @why: reason of a refusal, with the parameter to raise
 *
 * Return: 0; -ENOSPC or, for memory, -ENOMEM: a limit is reached; -EBUSY: too many closed paths of
 * the client have not ended yet.
 */
int ibtrs_quota_check(const struct ibtrs_quota_max *max, const struct ibtrs_quota_client *c,
		      enum ibtrs_quota_ask ask, u64 n, const char **why);
/**
 * ibtrs_quota_is_modest() - may memory kept for other, lost clients be freed for this one?
 * @bytes: what the client asks for
 *
 * Return: true if the client then has at most a quarter of what all clients may have.
 */
bool ibtrs_quota_is_modest(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
			   u64 bytes);

#endif
