// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibtrs/logic/mpath.h"

static const struct {
	const char *name, *brief, *sysfs;
} policies[] = {
	[IBTRS_MPATH_RR]		= { "round-robin", "rr", "round-robin (RR: 0)" },
	[IBTRS_MPATH_MIN_INFLIGHT]	= { "min-inflight", "mi", "min-inflight (MI: 1)" },
	[IBTRS_MPATH_MIN_LATENCY]	= { "min-latency", "ml", "min-latency (ML: 2)" },
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool is_word(const char *s, size_t len, const char *word)
{
	size_t i;

	for (i = 0; i < len && word[i]; i++)
		if (lower(s[i]) != lower(word[i]))
			return false;
	return i == len && !word[i];
}

int ibtrs_mpath_parse(const char *s, size_t len)
{
	unsigned int p;

	if (len && s[len - 1] == '\n')
		len--;
	for (p = 0; p < ARRAY_SIZE(policies); p++) {
		if (len == 1 && s[0] == (char)('0' + p))
			return (int)p;
		if (is_word(s, len, policies[p].name) || is_word(s, len, policies[p].brief) ||
		    is_word(s, len, policies[p].sysfs))
			return (int)p;
	}
	return -EINVAL;
}

const char *ibtrs_mpath_sysfs(enum ibtrs_mpath_policy p)
{
	return (unsigned int)p < ARRAY_SIZE(policies) ? policies[p].sysfs : "?";
}
