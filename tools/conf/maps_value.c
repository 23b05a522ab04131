// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <fnmatch.h>
#include <string.h>
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

#define VALUE_DIGITS	15	/* of a number of bytes */

bool maps_span(const char *s, int64_t *seconds)
{
	size_t n = strspn(s, "0123456789");
	int factor = s[n] == 'm' ? 60 : s[n] == 'h' ? 3600 : s[n] == 'd' ? 86400 : 1;

	if (!strcmp(s, "infinity")) {
		*seconds = MAPS_FOREVER;
		return true;
	}
	if (!n || n > 9 || fnmatch("@(|s|sec|m|min|h|hr|d)", s + n, FNM_EXTMATCH))
		return false;
	*seconds = strtoll(s, NULL, 10) * factor;
	return true;
}

bool maps_size(const char *s, int64_t *bytes)
{
	static const char units[] = "KMGTPE";
	size_t n = strspn(s, "0123456789");
	const char *u = s[n] ? strchr(units, toupper((unsigned char)s[n])) : NULL;
	int64_t factor = s[n] == 's' ? 512 : 1;

	*bytes = strtoll(s, NULL, 10);
	if (!n || n > VALUE_DIGITS ||
	    fnmatch("@(|s|B|[KMGTPEkmgtpe]@(|i|B|iB))", s + n, FNM_EXTMATCH))
		return false;
	if (u)
		factor <<= 10 * (u - units + 1);
	return !__builtin_mul_overflow(*bytes, factor, bytes);
}

bool maps_same_value(const struct ibnbd_map *a, const struct ibnbd_map *b,
		     enum ibnbd_mapopt_id id)
{
	const struct ibnbd_mapopt *o = &ibnbd_mapopts[id];
	const char *x = (const char *)a + o->offset, *y = (const char *)b + o->offset;

	return o->kind == IBNBD_KIND_INT || o->kind == IBNBD_KIND_WORD ?
		!memcmp(x, y, o->size) : !strcmp(x, y);
}

void maps_take_values(struct ibnbd_map *to, const struct ibnbd_map *from, uint32_t opts)
{
	const struct ibnbd_mapopt *o = ibnbd_mapopts;

	for (size_t id = 0; id < IBNBD_MAPOPT_COUNT; id++)
		if (opts & 1u << id)
			memcpy((char *)to + o[id].offset, (const char *)from + o[id].offset,
			       o[id].size);
	to->given |= opts;
}

bool maps_made_of(const char *s, const char *others)
{
	while (*s && ((*s >= '0' && *s <= '9') || ((*s | 32) >= 'a' && (*s | 32) <= 'z') ||
		      strchr(others, *s)))
		s++;
	return !*s;
}

/* Turns all but letters, digits, ':', '_' and '.' into \xNN. */
char *maps_unit_escape(const char *name)
{
	char *out = say_alloc(4 * strlen(name) + 1), *p = out;
	const char *s;

	for (s = name; *s; s++) {
		if ((*s >= '0' && *s <= '9') || ((*s | 32) >= 'a' && (*s | 32) <= 'z') ||
		    *s == '_' || *s == ':' || (*s == '.' && s > name))
			*p++ = *s;
		else
			p += sprintf(p, "\\x%02x", (unsigned char)*s);
	}
	return out;
}
