// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include "tools/host/host.h"

static bool host_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

#define HOST_NAME_MAX_LEN	253
#define HOST_LABEL_MAX_LEN	63

/*
 * What getaddrinfo(3) looks up: RFC 1123, '_' that RFC 1123 forbids and people use, and the dot at
 * the end that stands for the root. The last label is not a number: 10.0.0.300 is a mistake, not a
 * name. NULL = a name, or why not.
 */
static const char *host_name_wrong(const char *s, size_t len)
{
	bool letter = false;
	size_t i, label = 0;

	if (len && s[len - 1] == '.')
		len--;
	if (!len)
		return "empty";
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
		if (!digit && !other && !host_letter(s[i]))
			return "neither an address nor a name of a host, which is made of letters, digits, '-', '_' and '.'";
		if (s[i] == '-' && (!label || i + 1 == len || s[i + 1] == '.'))
			return "no part of a name of a host begins or ends with '-'";
		if (++label > HOST_LABEL_MAX_LEN)
			return "a part of a name of a host has at most 63 bytes";
		letter |= !digit;
	}
	return letter ? NULL : "malformed IPv4 address";
}

static bool host_name(const char *s, size_t len)
{
	return !host_name_wrong(s, len);
}

const char *host_wrong(const char *s, size_t len, const char *why)
{
	size_t i;

	/*
	 * An address that went wrong has said what is wrong; a name has no colon, and what is all
	 * digits is no name.
	 */
	for (i = 0; i < len && s[i] != ',' && s[i] != '@'; i++)
		if (s[i] == ':' || s[i] == '%' || s[i] == '[')
			return why;
	if (i < len || strspn(s, "0123456789.") == len)
		return why;
	return host_name_wrong(s, len) ? host_name_wrong(s, len) : why;
}

bool host_is_name(const char *s, size_t len)
{
	const char *cut = memchr(s, ',', len);
	struct ibtrs_addr addr;
	const char *why;
	size_t left;

	if (!cut)
		cut = memchr(s, '@', len);
	if (!cut)
		return host_name(s, len);
	left = (size_t)(cut - s);
	s = cut + 1;
	len -= left + 1;
	cut -= left;
	return (host_name(cut, left) &&
		(host_name(s, len) || !ibtrs_addr_parse(s, len, &addr, &why))) ||
	       (host_name(s, len) && !ibtrs_addr_parse(cut, left, &addr, &why));
}
