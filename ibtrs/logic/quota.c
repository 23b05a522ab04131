// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/quota.h"

int ibtrs_quota_path(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *strangers,
		     const struct ibtrs_quota_use *peer, bool known, const char **why)
{
	if (peer->ending >= max->ending_per_peer) {
		*why = "too many paths of this client are still coming to their end";
		return -EBUSY;
	}
	if (!known && strangers->half_open >= max->half_open) {
		*why = "as many half-open paths as max_paths_half_open allows";
		return -ENOSPC;
	}
	if (peer->half_open >= max->half_open_per_peer) {
		*why = "as many half-open paths of this client as max_paths_half_open_per_peer allows";
		return -ENOSPC;
	}
	return 0;
}

/* Nothing wraps: @limit - @more is computed only if @more is not above @limit. */
static bool quota_fits(u64 have, u64 more, u64 limit)
{
	return more <= limit && have <= limit - more;
}

int ibtrs_quota_conn(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *alike,
		     const struct ibtrs_quota_use *peer, bool known, u64 bytes, const char **why)
{
	u64 all = known ? 2 * max->half_bytes : max->half_bytes;

	*why = known ? "as much memory in use for half-open paths of clients that were in as twice max_memory_half_open_mb" :
		       "as much memory in use for half-open paths as max_memory_half_open_mb allows";
	if (!quota_fits(alike->half_bytes, bytes, all))
		return -ENOMEM;
	*why = known ? "as much memory in use for half-open paths of this client as half of max_memory_half_open_mb" :
		       "as much memory in use for half-open paths of this client as a quarter of max_memory_half_open_mb";
	return quota_fits(peer->half_bytes, bytes, all / IBTRS_QUOTA_SHARE) ? 0 : -ENOMEM;
}

int ibtrs_quota_session(const struct ibtrs_quota_max *max, u32 sessions,
			const struct ibtrs_quota_use *peer, const char **why)
{
	if (sessions >= max->sessions) {
		*why = "as many sessions as max_sessions allows";
		return -ENOSPC;
	}
	if (peer->sessions >= max->sessions_per_peer) {
		*why = "as many sessions of this client as max_sessions_per_peer allows";
		return -ENOSPC;
	}
	return 0;
}

/* A quarter of each quota is reserved for clients that have proved a key, or have another one. */
static u64 quota_but_share(u64 all)
{
	return all - all / IBTRS_QUOTA_SHARE;
}

int ibtrs_quota_session_without_key(const struct ibtrs_quota_max *max,
				    const struct ibtrs_quota_use *keyless, const char **why)
{
	*why = "as many sessions as max_sessions leaves to clients without a key";
	return keyless->sessions < quota_but_share(max->sessions) ? 0 : -ENOSPC;
}

int ibtrs_quota_let_in_without_key(const struct ibtrs_quota_max *max,
				   const struct ibtrs_quota_use *keyless, u64 bytes,
				   const char **why)
{
	*why = "as much memory in use as max_memory_mb leaves to clients without a key";
	return quota_fits(keyless->bytes, bytes, quota_but_share(max->bytes)) ? 0 : -ENOMEM;
}

int ibtrs_quota_key_conn(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *key,
			 u64 bytes, const char **why)
{
	*why = "as much memory in use for half-open paths of this key as max_memory_half_open_mb";
	return quota_fits(key->half_bytes, bytes, max->half_bytes) ? 0 : -ENOMEM;
}

int ibtrs_quota_key_session(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *key,
			    const char **why)
{
	u64 all = max->sessions_per_key ?: quota_but_share(max->sessions);

	*why = "as many sessions of this key as max_sessions_per_key allows";
	return key->sessions < all ? 0 : -ENOSPC;
}

int ibtrs_quota_key_let_in(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *key,
			   u64 bytes, const char **why)
{
	u64 all = max->bytes_per_key;

	/* Without limits per client the administrator has counted what all of them need. */
	if (!all)
		all = max->bytes_per_peer < max->bytes ? quota_but_share(max->bytes) : max->bytes;
	*why = "as much memory in use of this key as max_memory_per_key_mb allows";
	return quota_fits(key->bytes, bytes, all) ? 0 : -ENOMEM;
}

int ibtrs_quota_let_in(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
		       u64 bytes, const char **why)
{
	*why = "as much memory in use of this client as max_memory_per_peer_mb allows";
	return quota_fits(peer->bytes, bytes, max->bytes_per_peer) ? 0 : -ENOMEM;
}

bool ibtrs_quota_is_modest(const struct ibtrs_quota_max *max, const struct ibtrs_quota_use *peer,
			   u64 bytes)
{
	return quota_fits(peer->bytes, bytes, max->bytes / IBTRS_QUOTA_SHARE);
}
