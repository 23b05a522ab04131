// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text of path=: an address, a name of a host, or two of them; and what is wrong with any other
 * text. Nothing is resolved here.
 */
#include <string.h>
#include "tools/host/host.h"
#include "tools/out/say.h"

size_t host_cut(const char *s)
{
	size_t cut = strcspn(s, ",");

	return s[cut] ? cut : strcspn(s, "@");
}

#define HOST_NAME_MAX_LEN	253
#define HOST_LABEL_MAX_LEN	63

/* Is the last label, which ends at @end, hexadecimal: 0x and digits? */
static bool host_hex(const char *s, const char *end)
{
	const char *p = end;

	while (p > s && ibtrs_hex(p[-1]) >= 0)
		p--;
	return p < end && p - s >= 2 && (p[-1] | 0x20) == 'x' && p[-2] == '0' &&
	       (p - s == 2 || p[-3] == '.');
}

/*
 * Names that getaddrinfo(3) looks up: RFC 1123, also with '_', which RFC 1123 forbids and people
 * use, and with a dot at the end, which stands for the root. The last label must not be a number:
 * 10.0.0.300 is a mistake, not a name, and 0x0a000001 would mean 10.0.0.1. Returns NULL for a name,
 * else why it is none.
 */
static const char *host_name_wrong(const char *s, size_t len)
{
	bool letter = false;
	size_t i, label = 0;

	if (len && s[len - 1] == '.')
		len--;
	if (len > HOST_NAME_MAX_LEN)
		return "a name of a host has at most 253 bytes";
	for (i = 0; i < len; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9', other = s[i] == '-' || s[i] == '_';

		if (s[i] == '.') {
			if (!label)
				return "a name of a host has something between its dots";
			letter = false;
			label = 0;
			continue;
		}
		if (!digit && !other && !((s[i] | 32) >= 'a' && (s[i] | 32) <= 'z'))
			return "neither an address nor a name of a host, which is made of letters, digits, '-', '_' and '.'";
		if (s[i] == '-' && (!label || i + 1 == len || s[i + 1] == '.'))
			return "no part of a name of a host begins or ends with '-'";
		if (++label > HOST_LABEL_MAX_LEN)
			return "a part of a name of a host has at most 63 bytes";
		letter |= !digit;
	}
	if (!label)
		return "a name of a host has something between its dots";
	return letter && !host_hex(s, s + len) ? NULL : "malformed IPv4 address";
}

static bool host_name(const char *s, size_t len)
{
	return !host_name_wrong(s, len);
}

/* Does @s end with a port, after an address or a name? */
static bool host_port(const char *s, size_t len)
{
	const char *colon = memrchr(s, ':', len);
	struct ibtrs_addr addr;
	const char *why;
	size_t head = colon ? (size_t)(colon - s) : 0;

	if (!head || head + 1 == len || len - head > sizeof(":65535") - 1)
		return false;
	while (--len > head)
		if (s[len] < '0' || s[len] > '9')
			return false;
	if (head > 3 && !memcmp(s, "ip:", 3) && host_name(s + 3, head - 3))
		return true;
	return host_name(s, head) || !ibtrs_addr_parse(s, head, &addr, &why);
}

/* Describes the mistake in one part of a path. NULL = it is an address or a name. */
static const char *host_part_wrong(const char *s, size_t len)
{
	struct ibtrs_addr addr;
	const char *why;

	if (host_name(s, len) || !ibtrs_addr_parse(s, len, &addr, &why))
		return NULL;
	if (len > 5 && !memcmp(s, "path=", 5))
		return "path= stands in the middle of a word: several paths are words of their own";
	if (len > 3 && !memcmp(s, "ip:", 3) && host_name(s + 3, len - 3))
		return "behind ip: stands an address; a name of a host stands alone";
	if (host_port(s, len))
		return "a port is no part of an address: dest_port= gives it, once for the session";
	if (memchr(s, ':', len))
		return why;
	if (*s == '[')
		return "only an IPv6 address stands in brackets";
	if (memchr(s, '%', len))
		return "an interface stands behind a link-local address only, as in fe80::1%eth2";
	return host_name_wrong(s, len);
}

const char *host_wrong(const char *s, const char *why)
{
	const char *part_why = NULL, *rest = s;
	unsigned int nr = 0;
	size_t len;

	do {
		len = strcspn(rest, ",@");
		if (!len)
			return !nr ? "empty source address" : "empty destination address";
		part_why = part_why ? part_why : host_part_wrong(rest, len);
		nr++;
		rest += len;
	} while (*rest++);
	if (nr > 2)
		return "a path is an address, or two of them: SOURCE,DESTINATION";
	/* If each part alone is right, the mistake is that they stand together. */
	return part_why ? part_why : why;
}

char *host_names(const char *s)
{
	size_t cut = host_cut(s);
	const char *dst = s[cut] ? s + cut + 1 : s;

	if (!s[cut] || !host_name(s, cut))
		return say_fmt("the name \"%s\"", dst);
	if (!host_name(dst, strlen(dst)))
		return say_fmt("the name \"%.*s\"", (int)cut, s);
	return say_fmt("the names \"%.*s\" and \"%s\"", (int)cut, s, dst);
}

bool host_is_name(const char *s)
{
	size_t cut = host_cut(s);
	const char *dst = s[cut] ? s + cut + 1 : s;

	return !host_wrong(s, NULL) && (host_name(s, cut) || host_name(dst, strlen(dst)));
}
