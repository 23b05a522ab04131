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
 * struct ibtrs_quota_use - what one client uses, or all strangers, or all known clients
 * @half_open: paths in the handshake
 * @half_bytes: memory of the queues of their connections
 * @ending: closed paths whose teardown has not finished
 * @sessions: sessions that have been let in
 * @bytes: memory of the paths that have been let in: chunks and queues
 */
struct ibtrs_quota_use {
	u32 half_open;
	u32 ending;
	u32 sessions;
	u64 half_bytes;
	u64 bytes;
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
	u64 bytes_per_key;
};

/* One client gets at most 1/4 of what all clients of its kind may have. */
#define IBTRS_QUOTA_SHARE	4

/**
 * ibtrs_quota_path() - may an address begin another path?
 * @strangers: what all strangers use
 * @peer: what the client uses that asks
 * @known: the client is no stranger
 * @why: reason of a refusal, with the parameter to raise
 *
 * Return: 0, -ENOSPC, or -EBUSY: too many closed paths of the client have not ended yet.
 */
int ibtrs_quota_path(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *strangers,
		     const struct ibtrs_quota_use *peer, bool known, const char **why);
/**
 * ibtrs_quota_conn() - may a path in the handshake have another connection?
 * @alike: what all strangers use, or all known clients if @known
 * @bytes: memory of the connection's queues
 *
 * Return: 0 or -ENOMEM.
 */
int ibtrs_quota_conn(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *alike,
		     const struct ibtrs_quota_use *peer, bool known, u64 bytes, const char **why);
/**
 * ibtrs_quota_session() - may another session be let in?
 * @sessions: number of all sessions that are in
 *
 * Return: 0 or -ENOSPC.
 */
int ibtrs_quota_session(const struct ibtrs_quota_max *max, u32 sessions,
			const struct ibtrs_quota_use *peer, const char **why);
/**
 * ibtrs_quota_let_in() - may a path of an address have its chunks?
 * @bytes: memory of the path's chunks and queues
 *
 * Return: 0 or -ENOMEM.
 */
int ibtrs_quota_let_in(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
		       u64 bytes, const char **why);
/**
 * ibtrs_quota_session_without_key() - the same, for a client that has proved no key where others do
 * @keyless: what all clients without a key use; a quarter is kept from them
 *
 * Return: 0 or -ENOSPC.
 */
int ibtrs_quota_session_without_key(const struct ibtrs_quota_max *max,
				    const struct ibtrs_quota_use *keyless, const char **why);
/* As ibtrs_quota_let_in(), for such a client. 0 or -ENOMEM. */
int ibtrs_quota_let_in_without_key(const struct ibtrs_quota_max *max,
				   const struct ibtrs_quota_use *keyless, u64 bytes,
				   const char **why);
/**
 * ibtrs_quota_key_conn() - ibtrs_quota_conn() for a key, whichever addresses use it
 * @key: what all clients with the key use
 *
 * A client that has a key takes as many addresses as it likes: it gets no more by that than a key
 * has. Return: 0 or -ENOMEM.
 */
int ibtrs_quota_key_conn(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *key,
			 u64 bytes, const char **why);
/* As ibtrs_quota_session(), for a key. 0 or -ENOSPC. */
int ibtrs_quota_key_session(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *key,
			    const char **why);
/* As ibtrs_quota_let_in(), for a key. 0 or -ENOMEM. */
int ibtrs_quota_key_let_in(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *key,
			   u64 bytes, const char **why);
/**
 * ibtrs_quota_is_modest() - may memory kept for other, lost clients be freed for this one?
 * @bytes: what the client asks for
 *
 * Return: true if the client then has at most a quarter of what all clients may have.
 */
bool ibtrs_quota_is_modest(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
			   u64 bytes);

#endif
