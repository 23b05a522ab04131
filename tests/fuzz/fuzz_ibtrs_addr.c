// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses and paths. Law: an accepted text formats to a text that is accepted, means the same,
 * and formats to itself; a refused text comes with a reason. Where the C library has an opinion
 * (plain IPv4 and IPv6), it is the same.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <ibtrs/addr.h>

#define REQUIRE(cond)	do { if (!(cond)) __builtin_trap(); } while (0)

static void one(const char *s, size_t len)
{
	struct ibtrs_addr a, b;
	char text[IBTRS_ADDR_STR_MAX], twice[IBTRS_ADDR_STR_MAX];
	const char *why = NULL;
	int n, err = ibtrs_addr_parse(s, len, &a, &why);

	REQUIRE(err == 0 || err == -EINVAL || err == -EPROTONOSUPPORT);
	REQUIRE(!err == !why);
	if (err)
		return;
	REQUIRE(a.kind == IBTRS_ADDR_IP4 || a.kind == IBTRS_ADDR_IP6 || a.kind == IBTRS_ADDR_GID);
	REQUIRE(!a.scope[IBTRS_ADDR_SCOPE_MAX - 1]);
	REQUIRE(!a.scope[0] || a.kind == IBTRS_ADDR_IP6);
	n = ibtrs_addr_format(&a, text, sizeof(text));
	REQUIRE(n > 0 && n < IBTRS_ADDR_STR_MAX - 1 && (size_t)n == strlen(text));
	REQUIRE(!strpbrk(text, "@, []"));
	REQUIRE(!ibtrs_addr_parse(text, (size_t)n, &b, NULL));
	REQUIRE(ibtrs_addr_equal(&a, &b));
	ibtrs_addr_format(&b, twice, sizeof(twice));
	REQUIRE(!strcmp(text, twice));
}

static void against_libc(const char *s, size_t len)
{
	struct ibtrs_addr a;
	char text[64], ours[64];
	u8 raw[16];
	bool ok;

	if (len >= sizeof(text) || memchr(s, 0, len))
		return;
	memcpy(text, s, len);
	text[len] = 0;
	if (memchr(s, ':', len)) {
		ok = inet_pton(AF_INET6, text, raw) == 1;
		memcpy(ours, "gid:", 4);
		memcpy(ours + 4, s, len < 60 ? len : 60);
		if (len >= 60)
			return;
		REQUIRE(ok == !ibtrs_addr_parse(ours, len + 4, &a, NULL));
		REQUIRE(!ok || !memcmp(raw, a.raw, 16));
	} else {
		ok = inet_pton(AF_INET, text, raw) == 1;
		REQUIRE(ok == !ibtrs_addr_parse(text, len, &a, NULL));
		REQUIRE(!ok || !memcmp(raw, a.raw, 4));
	}
}

static void pair(const char *s, size_t len)
{
	struct ibtrs_addr_pair p, q;
	char text[IBTRS_PATH_STR_MAX];
	const char *why = NULL;
	int n, err = ibtrs_addr_pair_parse(s, len, &p, &why);

	REQUIRE(err == 0 || err == -EINVAL || err == -EPROTONOSUPPORT);
	REQUIRE(!err == !why);
	if (err)
		return;
	REQUIRE(p.dst.kind != IBTRS_ADDR_NONE);
	REQUIRE(p.src.kind == IBTRS_ADDR_NONE || p.src.kind == p.dst.kind);
	n = ibtrs_addr_pair_format(&p, text, sizeof(text));
	REQUIRE(n > 0 && n < IBTRS_PATH_STR_MAX - 1);
	REQUIRE(!ibtrs_addr_pair_parse(text, (size_t)n, &q, NULL));
	REQUIRE(ibtrs_addr_equal(&p.src, &q.src) && ibtrs_addr_equal(&p.dst, &q.dst));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *s = malloc(size);

	if (size)
		memcpy(s, data, size);
	one(s, size);
	pair(s, size);
	against_libc(s, size);
	free(s);
	return 0;
}
