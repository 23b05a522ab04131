// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include "ibtrs/logic/kept.h"
#include "unit.h"

static struct ibtrs_addr addr(u8 last)
{
	struct ibtrs_addr a = { .kind = IBTRS_ADDR_IP4 };

	a.raw[3] = last;
	return a;
}

static struct ibtrs_kept *kept(unsigned int n, const char *key, u8 host)
{
	struct ibtrs_kept *k = calloc(1, sizeof(*k));
	struct ibtrs_addr a = addr(host);

	k->uuid[0] = (u8)n;
	k->uuid[1] = (u8)(n >> 8);
	k->since_s = n;
	ibtrs_peers_add(&k->peers, &a);
	snprintf(k->key, sizeof(k->key), "%s", key);
	snprintf(k->name, sizeof(k->name), "n%u", n);
	return k;
}

/* Adds it, frees what goes for it. Return: how many went; the number of the first in @n. */
static unsigned int add(struct ibtrs_keeper *keeper, struct ibtrs_kept *k, unsigned int *n)
{
	struct ibtrs_kept *gone = ibtrs_kept_add(keeper, k), *next;
	unsigned int nr = 0;

	for (; gone; gone = next, nr++) {
		*n = (unsigned int)gone->since_s;
		next = gone->next;
		free(gone);
	}
	return nr;
}

static void forget(struct ibtrs_keeper *keeper)
{
	struct ibtrs_kept *k;

	while ((k = keeper->first)) {
		keeper->first = k->next;
		free(k);
	}
}

UNIT_TEST(shares)
{
	static const struct {
		const char *what;
		unsigned int hosts, keys, most;
	} rows[] = {
		{ "one host", 1, 1, IBTRS_KEPT_PER_HOST },
		{ "one key, many hosts", 250, 1, IBTRS_KEPT_PER_KEY },
		{ "many of both", 250, 2, IBTRS_KEPT_MAX },
	};
	struct ibtrs_keeper keeper = { .keep_s = 1000 };
	unsigned int i, j, n = 0;
	char key[16];

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].what);
		for (j = 0; j < rows[i].most + 3; j++) {
			snprintf(key, sizeof(key), "k%u", j % rows[i].keys);
			CHECK_EQ(add(&keeper, kept(j, key, (u8)(j % rows[i].hosts)), &n),
				 j >= rows[i].most);
			if (j >= rows[i].most)
				CHECK_EQ(n, j - rows[i].most);	/* the oldest */
		}
		forget(&keeper);
	}
	UNIT_ROW("another host, and another key, lose none");
	add(&keeper, kept(1000, "k", 2), &n);
	add(&keeper, kept(1001, "other", 1), &n);
	for (j = 0; j < 2 * IBTRS_KEPT_PER_HOST; j++)
		if (add(&keeper, kept(j, "k", 1), &n))
			CHECK_EQ(n, j - IBTRS_KEPT_PER_HOST);
	forget(&keeper);
}

UNIT_TEST(whose)
{
	static const struct {
		const char *what, *name, *key;
		u8 uuid, host;
		u64 now;
		enum ibtrs_kept_whose whose;
	} rows[] = {
		{ "another name", "n8", "k", 7, 1, 10, IBTRS_KEPT_NOBODY },
		{ "another key", "n7", "", 7, 1, 10, IBTRS_KEPT_NOBODY },
		{ "another client", "n7", "k", 8, 2, 10, IBTRS_KEPT_ANOTHER },
		{ "the same session", "n7", "k", 7, 2, 10, IBTRS_KEPT_YOURS },
		{ "the same host", "n7", "k", 8, 1, 10, IBTRS_KEPT_YOURS },
		{ "not yet over", "n7", "k", 8, 2, 106, IBTRS_KEPT_ANOTHER },
		{ "over", "n7", "k", 8, 2, 107, IBTRS_KEPT_OLD },
	};
	struct ibtrs_keeper keeper = { .keep_s = 100 };
	struct ibtrs_kept *mine, *k;
	u8 uuid[IBTRS_UUID_LEN] = {};
	struct ibtrs_addr a;
	char why[200];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].what);
		mine = kept(7, "k", 1);
		add(&keeper, mine, &n);
		uuid[0] = rows[i].uuid;
		a = addr(rows[i].host);
		CHECK_EQ(ibtrs_kept_take(&keeper, rows[i].now, rows[i].name, rows[i].key, uuid, &a,
					 &k), rows[i].whose);
		CHECK(k == (rows[i].whose == IBTRS_KEPT_NOBODY ? NULL : mine));
		if (rows[i].whose == IBTRS_KEPT_YOURS || rows[i].whose == IBTRS_KEPT_OLD) {
			CHECK(!keeper.first);
			free(k);
		} else {
			CHECK(keeper.first == mine);
		}
		forget(&keeper);
	}
	UNIT_ROW("words");
	add(&keeper, kept(7, "k", 1), &n);
	ibtrs_kept_words(&keeper, keeper.first, 17, why, sizeof(why));
	CHECK_STR(why, "the session name is kept for ip:0.0.0.1, lost 10 s ago, for 90 s more: wait, or use another name here");
	forget(&keeper);
}

UNIT_TEST(callers)
{
	static const struct {
		const char *what;
		bool with_key, says_uuid;
		u8 uuid, host;
		u64 now;
		enum ibtrs_caller caller;
	} rows[] = {
		{ "the session", true, true, 1, 9, 10, IBTRS_CALLER_BACK },
		{ "the host", true, true, 9, 1, 10, IBTRS_CALLER_HOST },
		{ "both, of two sessions", true, true, 2, 1, 10, IBTRS_CALLER_BACK },
		{ "one of no key", true, true, 3, 3, 10, IBTRS_CALLER_STRANGER },
		{ "the same, asked for", false, false, 0, 3, 10, IBTRS_CALLER_HOST },
		{ "nobody", true, true, 9, 9, 10, IBTRS_CALLER_STRANGER },
		{ "too late", true, true, 1, 1, 300, IBTRS_CALLER_STRANGER },
	};
	struct ibtrs_keeper keeper = { .keep_s = 100 };
	u8 uuid[IBTRS_UUID_LEN] = {};
	struct ibtrs_addr a;
	unsigned int i, n;

	add(&keeper, kept(1, "k", 1), &n);
	add(&keeper, kept(2, "k", 2), &n);
	add(&keeper, kept(3, "", 3), &n);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("%s", rows[i].what);
		uuid[0] = rows[i].uuid;
		a = addr(rows[i].host);
		CHECK_EQ(ibtrs_kept_caller(&keeper, rows[i].now, rows[i].with_key,
					   rows[i].says_uuid ? uuid : NULL, &a), rows[i].caller);
	}
	forget(&keeper);
}

UNIT_TEST(peers)
{
	struct ibtrs_peers p = {}, more = {};
	struct ibtrs_addr a;
	u8 i;

	for (i = 0; i < 2 * (IBTRS_PEERS + 1); i++) {
		a = addr(i / 2);
		ibtrs_peers_add(&p, &a);
	}
	CHECK_EQ(p.nr, IBTRS_PEERS);
	a = addr(IBTRS_PEERS - 1);
	CHECK(ibtrs_peers_have(&p, &a));
	a = addr(IBTRS_PEERS);
	CHECK(!ibtrs_peers_have(&p, &a));

	p.nr = 2;
	ibtrs_peers_add(&more, &p.addr[1]);
	ibtrs_peers_add(&more, &a);
	ibtrs_peers_join(&p, &more);
	CHECK_EQ(p.nr, 3);
	CHECK(ibtrs_peers_have(&p, &a));
}
