// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/kept.h"

bool ibtrs_peers_have(const struct ibtrs_peers *peers, const struct ibtrs_addr *addr)
{
	u32 i;

	for (i = 0; i < peers->nr; i++)
		if (ibtrs_addr_equal(&peers->addr[i], addr))
			return true;
	return false;
}

void ibtrs_peers_add(struct ibtrs_peers *peers, const struct ibtrs_addr *addr)
{
	if (peers->nr < IBTRS_PEERS && !ibtrs_peers_have(peers, addr))
		peers->addr[peers->nr++] = *addr;
}

void ibtrs_peers_join(struct ibtrs_peers *peers, const struct ibtrs_peers *more)
{
	u32 i;

	for (i = 0; i < more->nr; i++)
		ibtrs_peers_add(peers, &more->addr[i]);
}

struct ibtrs_kept *ibtrs_kept_add(struct ibtrs_keeper *keeper, struct ibtrs_kept *new)
{
	struct ibtrs_kept **at = &keeper->first, *k, *gone = NULL;
	u32 all = 0, of_key = 0, of_host = 0;
	bool key, host;

	new->next = keeper->first;
	keeper->first = new;
	while ((k = *at)) {
		key = !strcmp(k->key, new->key);
		host = key && ibtrs_peers_have(&k->peers, &new->peers.addr[0]);
		of_key += key;
		of_host += host;
		if (++all <= IBTRS_KEPT_MAX && !(key && of_key > IBTRS_KEPT_PER_KEY) &&
		    !(host && of_host > IBTRS_KEPT_PER_HOST)) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		k->next = gone;
		gone = k;
		all--;
	}
	return gone;
}

static bool kept_is_old(const struct ibtrs_keeper *keeper, const struct ibtrs_kept *k, u64 now_s)
{
	return now_s >= k->since_s + keeper->keep_s;
}

static enum ibtrs_caller kept_of(const struct ibtrs_kept *k, const u8 *uuid,
				 const struct ibtrs_addr *addr)
{
	if (uuid && !memcmp(k->uuid, uuid, sizeof(k->uuid)))
		return IBTRS_CALLER_BACK;
	return ibtrs_peers_have(&k->peers, addr) ? IBTRS_CALLER_HOST : IBTRS_CALLER_STRANGER;
}

enum ibtrs_kept_whose ibtrs_kept_take(struct ibtrs_keeper *keeper, u64 now_s, const char *name,
				      const char *key, const u8 *uuid,
				      const struct ibtrs_addr *addr, struct ibtrs_kept **k)
{
	struct ibtrs_kept **at = &keeper->first;
	bool old;

	while (*at && (strcmp((*at)->name, name) || strcmp((*at)->key, key)))
		at = &(*at)->next;
	*k = *at;
	if (!*k)
		return IBTRS_KEPT_NOBODY;
	old = kept_is_old(keeper, *k, now_s);
	if (!old && kept_of(*k, uuid, addr) == IBTRS_CALLER_STRANGER)
		return IBTRS_KEPT_ANOTHER;
	*at = (*k)->next;
	(*k)->next = NULL;
	return old ? IBTRS_KEPT_OLD : IBTRS_KEPT_YOURS;
}

void ibtrs_kept_words(const struct ibtrs_keeper *keeper, const struct ibtrs_kept *k, u64 now_s,
		      char *why, size_t size)
{
	u64 age = now_s - k->since_s;
	char addr[IBTRS_ADDR_STR_MAX];

	ibtrs_addr_format(&k->peers.addr[0], addr, sizeof(addr));
	snprintf(why, size,
		 "the session name is kept for %s, lost %llu s ago, for %llu s more: wait, or use another name here",
		 addr, (unsigned long long)age, (unsigned long long)(keeper->keep_s - age));
}

enum ibtrs_caller ibtrs_kept_caller(const struct ibtrs_keeper *keeper, u64 now_s, bool with_key,
				    const u8 *uuid, const struct ibtrs_addr *addr)
{
	enum ibtrs_caller caller = IBTRS_CALLER_STRANGER, of;
	const struct ibtrs_kept *k;

	for (k = keeper->first; k && caller != IBTRS_CALLER_BACK; k = k->next) {
		if (!k->key[0] == with_key || kept_is_old(keeper, k, now_s))
			continue;
		of = kept_of(k, uuid, addr);
		caller = of < caller ? of : caller;
	}
	return caller;
}
