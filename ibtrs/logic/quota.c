// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/quota.h"

/* One client gets at most 1/4 of what all clients of its kind may have. */
#define QUOTA_SHARE	4

/* Nothing wraps: @limit - @more is computed only if @more is not above @limit. */
static bool quota_fits(u64 have, u64 more, u64 limit)
{
	return more <= limit && have <= limit - more;
}

/* A quarter of each quota is reserved for clients that have proved a key, or have another one. */
static u64 quota_but_share(u64 all)
{
	return all - all / QUOTA_SHARE;
}

/* Without limits per client the administrator has counted what all of them need. */
static u64 quota_key_bytes(const struct ibtrs_quota_max *max)
{
	if (max->bytes_per_key)
		return max->bytes_per_key;
	return max->bytes_per_peer < max->bytes ? quota_but_share(max->bytes) : max->bytes;
}

/*
 * The limits of a key do not depend on the addresses that use it: a client that has a key takes as
 * many addresses as it likes, and gets no more by that than a key has.
 */
int ibtrs_quota_check(const struct ibtrs_quota_max *max, const struct ibtrs_quota_client *c,
		      enum ibtrs_quota_ask ask, u64 n, const char **why)
{
	u64 half = c->known ? 2 * max->half_bytes : max->half_bytes;
	bool leaves = !c->keyed && c->leaves;
	const struct {
		enum ibtrs_quota_ask ask;
		bool holds;
		u64 have, limit;
		int err;
		const char *why;
	} rules[] = {
		{ IBTRS_QUOTA_SESSION, true, c->all.sessions, max->sessions, -ENOSPC,
		  "as many sessions as max_sessions allows" },
		{ IBTRS_QUOTA_SESSION, true, c->peer.sessions, max->sessions_per_peer, -ENOSPC,
		  "as many sessions of this client as max_sessions_per_peer allows" },
		{ IBTRS_QUOTA_SESSION, c->keyed, c->key.sessions,
		  max->sessions_per_key ?: quota_but_share(max->sessions), -ENOSPC,
		  "as many sessions of this key as max_sessions_per_key allows" },
		{ IBTRS_QUOTA_SESSION, leaves, c->key.sessions, quota_but_share(max->sessions),
		  -ENOSPC, "as many sessions as max_sessions leaves to clients without a key" },

		{ IBTRS_QUOTA_PATH, true, c->peer.ending, max->ending_per_peer, -EBUSY,
		  "too many paths of this client are still coming to their end" },
		{ IBTRS_QUOTA_PATH, !c->known, c->alike.half_open, max->half_open, -ENOSPC,
		  "as many half-open paths as max_paths_half_open allows" },
		{ IBTRS_QUOTA_PATH, true, c->peer.half_open, max->half_open_per_peer, -ENOSPC,
		  "as many half-open paths of this client as max_paths_half_open_per_peer allows" },

		{ IBTRS_QUOTA_CONN, true, c->alike.half_bytes, half, -ENOMEM,
		  c->known ? "as much memory in use for half-open paths of clients that were in as twice max_memory_half_open_mb" :
			     "as much memory in use for half-open paths as max_memory_half_open_mb allows" },
		{ IBTRS_QUOTA_CONN, true, c->peer.half_bytes, half / QUOTA_SHARE, -ENOMEM,
		  c->known ? "as much memory in use for half-open paths of this client as half of max_memory_half_open_mb" :
			     "as much memory in use for half-open paths of this client as a quarter of max_memory_half_open_mb" },
		{ IBTRS_QUOTA_CONN, c->keyed, c->key.half_bytes, max->half_bytes, -ENOMEM,
		  "as much memory in use for half-open paths of this key as max_memory_half_open_mb" },

		{ IBTRS_QUOTA_LET_IN, true, c->peer.bytes, max->bytes_per_peer, -ENOMEM,
		  "as much memory in use of this client as max_memory_per_peer_mb allows" },
		{ IBTRS_QUOTA_LET_IN, c->keyed, c->key.bytes, quota_key_bytes(max), -ENOMEM,
		  "as much memory in use of this key as max_memory_per_key_mb allows" },
		{ IBTRS_QUOTA_LET_IN, leaves, c->key.bytes, quota_but_share(max->bytes), -ENOMEM,
		  "as much memory in use as max_memory_mb leaves to clients without a key" },
		{ IBTRS_QUOTA_LET_IN, true, c->all.bytes, max->bytes, -ENOMEM,
		  "as much memory in use as max_memory_mb allows" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		if (rules[i].ask != ask || !rules[i].holds ||
		    quota_fits(rules[i].have, n, rules[i].limit))
			continue;
		*why = rules[i].why;
		return rules[i].err;
	}
	return 0;
}

bool ibtrs_quota_is_modest(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
			   u64 bytes)
{
	return quota_fits(peer->bytes, bytes, max->bytes / QUOTA_SHARE);
}
