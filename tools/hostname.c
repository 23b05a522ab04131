// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include "tools/host.h"

static bool host_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* RFC 1123, and a last label that is not a number: 10.0.0.300 is a mistake, not a name. */
static bool host_name(const char *s, size_t len)
{
	bool letter = false, edge = true;
	size_t i;

	if (!len || len > 253)
		return false;
	for (i = 0; i < len; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9';

		if (s[i] == '.' || s[i] == '-') {
			if (edge)
				return false;
			edge = s[i] == '.';
			if (edge)
				letter = false;
			continue;
		}
		if (!digit && !host_letter(s[i]))
			return false;
		letter |= !digit;
		edge = false;
	}
	return letter && s[len - 1] != '.' && s[len - 1] != '-';
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
	return (host_name(cut, left) && (host_name(s, len) || !ibtrs_addr_parse(s, len, &addr, &why))) ||
	       (host_name(s, len) && !ibtrs_addr_parse(cut, left, &addr, &why));
}
