// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Addresses as people write them.
 *
 * Owns: the grammar of one address and of a path (`src@dst`), and the one text form of each that
 * sysfs shows. Called by the transport's sysfs files, by the block client's map line and by the
 * command line tool, so that all three refuse the same text in the same words. No state, any
 * context.
 *
 * IPv4 is four decimal numbers without leading zeros (some libraries read 010 as 8). IPv6 is RFC
 * 4291: eight groups, one `::` in place of one or more zero groups, the last two groups may be a
 * dotted IPv4. Output is RFC 5952: lower case, no leading zeros, the longest run of at least two
 * zero groups (the first of equals) becomes `::`, IPv4-mapped in dotted form. A GID is read like
 * IPv6 and written in full.
 *
 * A scope is kept only for link-local addresses, where it selects the interface. For other
 * addresses it has no meaning: it is checked and then dropped, as the kernel's own parser does.
 * Host names are refused, since nothing here resolves names.
 *
 * Law (tests/fuzz): if a text can be parsed, formatting the address gives a text that parses to the
 * same address.
 */
#include <ibtrs/addr.h>
#include "ibtrs/proto/refuse.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The whole of @s is a dotted IPv4 address. */
static bool ip4_parse(const char *s, size_t len, u8 out[4])
{
	size_t i = 0, start;
	unsigned int n, v;

	for (n = 0; n < 4; n++) {
		if (n && (i >= len || s[i++] != '.'))
			return false;
		v = 0;
		for (start = i; i < len && s[i] >= '0' && s[i] <= '9'; i++) {
			if (i - start == 3 || (i > start && s[start] == '0'))
				return false;
			v = v * 10 + (unsigned int)(s[i] - '0');
		}
		if (i == start || v > 255)
			return false;
		out[n] = (u8)v;
	}
	return i == len;
}

/*
 * The whole of @s is an IPv6 address. Bytes are collected from the left. @gap is the number of
 * bytes before `::`; at the end the bytes that follow the gap move to the right end of the address.
 */
static bool ip6_parse(const char *s, size_t len, u8 out[16])
{
	size_t i = 0, n = 0, gap = SIZE_MAX, start;
	u8 b[16] = { 0 };
	unsigned int v;

	if (len >= 2 && s[0] == ':' && s[1] == ':') {
		gap = 0;
		i = 2;
	}
	while (i < len) {
		if (n == 16)
			return false;
		v = 0;
		for (start = i; i < len && i - start < 4 && ibtrs_hex(s[i]) >= 0; i++)
			v = v << 4 | (unsigned int)ibtrs_hex(s[i]);
		if (i < len && s[i] == '.') {
			if (n > 12 || !ip4_parse(s + start, len - start, b + n))
				return false;
			n += 4;
			break;
		}
		if (i == start)
			return false;
		b[n++] = (u8)(v >> 8);
		b[n++] = (u8)v;
		if (i == len)
			break;
		if (s[i++] != ':' || i == len)
			return false;
		if (s[i] == ':') {
			if (gap != SIZE_MAX)
				return false;
			gap = n;
			i++;
		}
	}
	memset(out, 0, 16);
	if (gap == SIZE_MAX) {
		if (n != 16)
			return false;
		memcpy(out, b, 16);
		return true;
	}
	if (n > 14)	/* `::` stands for at least one group */
		return false;
	memcpy(out, b, gap);
	memcpy(out + 16 - (n - gap), b + gap, n - gap);
	return true;
}

static bool is_link_local(const u8 ip6[16])
{
	return ip6[0] == 0xfe && (ip6[1] & 0xc0) == 0x80;
}

/*
 * May @s follow '%'? Allowed are the number of an interface, and any interface name that the kernel
 * accepts, without the characters that separate addresses here.
 */
static bool scope_ok(const char *s, size_t len)
{
	size_t i;

	if (!len || len >= IBTRS_ADDR_SCOPE_MAX ||
	    (s[0] == '.' && (len == 1 || (len == 2 && s[1] == '.'))))
		return false;
	for (i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] == 0x7f || memchr("/:%@,[]", s[i], 7))
			return false;
	return true;
}

/* IPv4, or IPv6 with or without brackets and scope. */
static int ip_parse(const char *s, size_t len, struct ibtrs_addr *out, const char **why)
{
	const char *pct;

	if (ip4_parse(s, len, out->raw)) {
		out->kind = IBTRS_ADDR_IP4;
		return 0;
	}
	if (len && s[0] == '[') {
		if (s[len - 1] != ']' || len < 2)
			return refuse(why, "'[' without ']' at the end of the address", -EINVAL);
		s++;
		len -= 2;
	}
	pct = memchr(s, '%', len);
	if (!ip6_parse(s, pct ? (size_t)(pct - s) : len, out->raw)) {
		if (memchr(s, ':', len))
			return refuse(why, "malformed IPv6 address", -EINVAL);
		if (len && s[0] >= '0' && s[0] <= '9')
			return refuse(why, "malformed IPv4 address", -EINVAL);
		return refuse(why, "not an address, and the driver resolves no names of hosts", -EINVAL);
	}
	if (pct) {
		size_t n = len - (size_t)(pct + 1 - s);

		if (!scope_ok(pct + 1, n))
			return refuse(why, "malformed interface name after '%'", -EINVAL);
		if (is_link_local(out->raw))
			memcpy(out->scope, pct + 1, n);
	}
	out->kind = IBTRS_ADDR_IP6;
	return 0;
}

static bool has_prefix(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

/* `word:` where word cannot be the first group of an IPv6 address. */
static bool is_unknown_prefix(const char *s, size_t len)
{
	bool foreign = false;
	size_t i;

	for (i = 0; i < len && s[i] != ':'; i++) {
		if (!is_letter(s[i]) && (s[i] < '0' || s[i] > '9'))
			return false;
		if (ibtrs_hex(s[i]) < 0)
			foreign = true;
	}
	return i < len && foreign;
}

int ibtrs_addr_parse(const char *s, size_t len, struct ibtrs_addr *out, const char **why)
{
	memset(out, 0, sizeof(*out));
	if (!len)
		return refuse(why, "empty address", -EINVAL);
	if (has_prefix(s, len, "gid:")) {
		if (!ip6_parse(s + 4, len - 4, out->raw))
			return refuse(why, "malformed GID: 128 bits in IPv6 notation expected",
				      -EINVAL);
		out->kind = IBTRS_ADDR_GID;
		return 0;
	}
	if (has_prefix(s, len, "ip:"))
		return ip_parse(s + 3, len - 3, out, why);
	if (is_unknown_prefix(s, len))
		return refuse(why, "unknown kind of address: 'ip:' or 'gid:' expected",
			      -EPROTONOSUPPORT);
	return ip_parse(s, len, out, why);
}

static bool all_zero(const u8 *p, size_t n)
{
	while (n--)
		if (*p++)
			return false;
	return true;
}

static bool is_mapped(const u8 ip6[16])
{
	return all_zero(ip6, 10) && ip6[10] == 0xff && ip6[11] == 0xff;
}

/* Refuse addresses to which no connection can be made. */
static int addr_check_dst(const struct ibtrs_addr *a, const char **why)
{
	const u8 *ip4 = a->kind == IBTRS_ADDR_IP4 ? a->raw : is_mapped(a->raw) ? a->raw + 12 : NULL;

	if (all_zero(ip4 ?: a->raw, ip4 ? 4 : 16))
		return refuse(why, "destination is the unspecified address", -EINVAL);
	if (ip4 && ip4[0] >= 224 && (ip4[0] < 240 || (ip4[0] & ip4[1] & ip4[2] & ip4[3]) == 255))
		return refuse(why, "destination is a multicast or broadcast address", -EINVAL);
	if (!ip4 && a->raw[0] == 0xff)
		return refuse(why, "destination is a multicast address", -EINVAL);
	return 0;
}

/* A link-local address says nothing without its interface: each link has its own. */
static bool lacks_interface(const struct ibtrs_addr *a)
{
	return a->kind == IBTRS_ADDR_IP6 && is_link_local(a->raw) && !a->scope[0];
}

int ibtrs_addr_pair_parse(const char *s, size_t len, struct ibtrs_addr_pair *out, const char **why)
{
	const char *sep, *dst = s;
	int err;

	memset(out, 0, sizeof(*out));
	if (!len)
		return refuse(why, "empty path", -EINVAL);
	sep = memchr(s, ',', len) ?: memchr(s, '@', len);
	if (sep) {
		if (sep == s)
			return refuse(why, "empty source address", -EINVAL);
		if (ibtrs_addr_parse(s, (size_t)(sep - s), &out->src, why))
			return -EINVAL;
		dst = sep + 1;
		if (dst == s + len)
			return refuse(why, "empty destination address", -EINVAL);
	}
	err = ibtrs_addr_parse(dst, len - (size_t)(dst - s), &out->dst, why);
	if (err)
		return err;
	if (sep && out->src.kind != out->dst.kind)
		return refuse(why, "source and destination are of different kinds", -EINVAL);
	if (lacks_interface(&out->src) || lacks_interface(&out->dst))
		return refuse(why, "a link-local address needs its interface, as in fe80::1%eth2",
			      -EINVAL);
	return addr_check_dst(&out->dst, why);
}

static int ip6_format(const u8 raw[16], char *buf, size_t size)
{
	unsigned int i, run, best = 0, best_run = 1, groups = is_mapped(raw) ? 6 : 8;
	int n = 0;

	for (i = 0; i < groups; i += run ? run : 1) {
		for (run = 0; i + run < groups && all_zero(raw + 2 * (i + run), 2); run++)
			;
		if (run > best_run) {
			best = i;
			best_run = run;
		}
	}
	for (i = 0; i < groups; i++) {
		if (best_run > 1 && i == best) {
			n += scnprintf(buf + n, size - (size_t)n, "::");
			i += best_run - 1;
			continue;
		}
		if (i && !(best_run > 1 && i == best + best_run))
			n += scnprintf(buf + n, size - (size_t)n, ":");
		n += scnprintf(buf + n, size - (size_t)n, "%x", raw[2 * i] << 8 | raw[2 * i + 1]);
	}
	if (groups == 6)
		n += scnprintf(buf + n, size - (size_t)n, ":%u.%u.%u.%u", raw[12], raw[13], raw[14],
			       raw[15]);
	return n;
}

int ibtrs_addr_format(const struct ibtrs_addr *a, char *buf, size_t size)
{
	char text[IBTRS_ADDR_STR_MAX] = "";
	unsigned int i;
	int n;

	switch (a->kind) {
	case IBTRS_ADDR_NONE:
		break;
	case IBTRS_ADDR_IP4:
		scnprintf(text, sizeof(text), "ip:%u.%u.%u.%u", a->raw[0], a->raw[1], a->raw[2],
			  a->raw[3]);
		break;
	case IBTRS_ADDR_IP6:
		n = scnprintf(text, sizeof(text), "ip:");
		n += ip6_format(a->raw, text + n, sizeof(text) - (size_t)n);
		if (a->scope[0])
			scnprintf(text + n, sizeof(text) - (size_t)n, "%%%.*s",
				  IBTRS_ADDR_SCOPE_MAX - 1, a->scope);
		break;
	case IBTRS_ADDR_GID:
		n = scnprintf(text, sizeof(text), "gid:");
		for (i = 0; i < 16; i += 2)
			n += scnprintf(text + n, sizeof(text) - (size_t)n, "%s%04x", i ? ":" : "",
				       a->raw[i] << 8 | a->raw[i + 1]);
		break;
	}
	return scnprintf(buf, size, "%s", text);
}

int ibtrs_addr_pair_format(const struct ibtrs_addr_pair *p, char *buf, size_t size)
{
	char src[IBTRS_ADDR_STR_MAX], dst[IBTRS_ADDR_STR_MAX];

	ibtrs_addr_format(&p->dst, dst, sizeof(dst));
	if (p->src.kind == IBTRS_ADDR_NONE)
		return scnprintf(buf, size, "%s", dst);
	ibtrs_addr_format(&p->src, src, sizeof(src));
	return scnprintf(buf, size, "%s@%s", src, dst);
}

bool ibtrs_addr_equal(const struct ibtrs_addr *a, const struct ibtrs_addr *b)
{
	size_t n = a->kind == IBTRS_ADDR_NONE ? 0 : a->kind == IBTRS_ADDR_IP4 ? 4 : sizeof(a->raw);

	return a->kind == b->kind && !memcmp(a->raw, b->raw, n) &&
	       !strncmp(a->scope, b->scope, sizeof(a->scope));
}
