/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Addresses as people write them: `ip:10.0.0.1`, `ip:fd00::1%eth0`, `gid:...`
 * (protocol 2.1, docs/sysfs.md). Pure: text <-> bytes, no resolving, no sockaddr.
 */
#ifndef IBTRS_ADDR_H
#define IBTRS_ADDR_H

#include <ibtrs/pure.h>

#define IBTRS_GID_LEN		16
#define IBTRS_ADDR_SCOPE_MAX	16	/* an interface name, with NUL */
#define IBTRS_ADDR_STR_MAX	64	/* longest text form, with NUL */
#define IBTRS_PATH_STR_MAX	(2 * IBTRS_ADDR_STR_MAX)
#define IBTRS_MAX_PATHS		128	/* per session, protocol 1 */
#define IBTRS_DEFAULT_PORT	1234

enum ibtrs_addr_kind {
	IBTRS_ADDR_NONE	= 0,
	IBTRS_ADDR_IP4	= 4,
	IBTRS_ADDR_IP6	= 6,
	IBTRS_ADDR_GID	= 16,
};

/**
 * struct ibtrs_addr - one end of a path
 * @kind: what @raw holds; IBTRS_ADDR_NONE = not given
 * @raw: network byte order; IPv4 uses the first 4 bytes, others all 16
 * @scope: interface name of a link-local IPv6 address, else empty
 */
struct ibtrs_addr {
	enum ibtrs_addr_kind kind;
	u8 raw[IBTRS_GID_LEN];
	char scope[IBTRS_ADDR_SCOPE_MAX];
};

/* A path as given by a user: source may be absent. */
struct ibtrs_addr_pair {
	struct ibtrs_addr src;
	struct ibtrs_addr dst;
};

/**
 * struct ibtrs_origin - where a client comes from, for the code that decides whether to let it in
 * @addr: the address that the client claims; with RoCE it is that of its GID
 * @gid: the GID of its connection, with InfiniBand; else of kind NONE
 */
struct ibtrs_origin {
	struct ibtrs_addr addr;
	struct ibtrs_addr gid;
};

/**
 * ibtrs_addr_parse() - read one address
 * @s: text, not NUL terminated
 * @len: its length
 * @out: result
 * @why: set to the reason in words when the text is refused
 *
 * Accepts `ip:A.B.C.D`, `ip:V6`, `ip:V6%scope`, `ip:[V6%scope]`, `gid:` + 128 bits in IPv6
 * notation, and the same without prefix where it is unambiguous (IPv4 and IPv6 literals; a bare
 * IPv6 is `ip:`). Host names are refused.
 *
 * Return: 0, -EINVAL (malformed) or -EPROTONOSUPPORT (unknown prefix), docs/sysfs.md.
 */
int ibtrs_addr_parse(const char *s, size_t len, struct ibtrs_addr *out, const char **why);

/**
 * ibtrs_addr_pair_parse() - read `[src(@ or ,)]dst` (docs/sysfs.md): split at the first ',' else at
 * the first '@'
 *
 * Refuses: different families, an unspecified or multicast destination, a link-local IPv6 address
 * without its interface. A source equal to the destination is allowed (a host may map its own disk
 * in tests).
 *
 * Return: 0, -EINVAL or -EPROTONOSUPPORT (unknown prefix of the destination).
 */
int ibtrs_addr_pair_parse(const char *s, size_t len, struct ibtrs_addr_pair *out, const char **why);

/*
 * Text form as sysfs shows it (docs/sysfs.md): `ip:10.0.0.1`, `gid:` in full 8x4 hex. Returns the
 * length written.
 */
int ibtrs_addr_format(const struct ibtrs_addr *a, char *buf, size_t size);
/* `src@dst`, or `dst` when there is no source. */
int ibtrs_addr_pair_format(const struct ibtrs_addr_pair *p, char *buf, size_t size);
/* Are kind, address and scope the same? No conversion between IPv4 and IPv6. */
bool ibtrs_addr_equal(const struct ibtrs_addr *a, const struct ibtrs_addr *b);

#endif
