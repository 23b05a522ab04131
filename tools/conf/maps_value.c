// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"

#define VALUE_DIGITS	15	/* of a number of bytes */

bool maps_span(const char *s, int64_t *seconds)
{
	static const struct { const char *unit; int factor;
	} units[] = {
		{ "", 1 },     { "s", 1 },    { "sec", 1 },   { "m", 60 },
		{ "min", 60 }, { "h", 3600 }, { "hr", 3600 }, { "d", 86400 },
	};
	size_t i, n = strspn(s, "0123456789");

	if (!strcmp(s, "infinity")) {
		*seconds = MAPS_FOREVER;
		return true;
	}
	*seconds = strtoll(s, NULL, 10);
	for (i = 0; n && n <= 9 && i < ARRAY_SIZE(units); i++) {
		if (!strcmp(s + n, units[i].unit)) {
			*seconds *= units[i].factor;
			return true;
		}
	}
	return false;
}

bool maps_size(const char *s, int64_t *bytes)
{
	static const char units[] = "KMGTPE";
	size_t n = strspn(s, "0123456789");
	const char *u, *rest = s + n;
	int64_t factor = 1;

	*bytes = strtoll(s, NULL, 10);
	if (!n || n > VALUE_DIGITS)
		return false;
	if (*rest == 's' && !rest[1]) {
		factor = 512;
		rest++;
	} else if (*rest) {
		u = strchr(units, *rest >= 'a' && *rest <= 'z' ? *rest - 'a' + 'A' : *rest);
		if (u) {
			factor <<= 10 * (u - units + 1);
			rest++;
			if (!strcmp(rest, "iB") || !strcmp(rest, "B") || !strcmp(rest, "i"))
				rest = "";
		} else if (!strcmp(rest, "B")) {
			rest++;
		}
	}
	return !*rest && !__builtin_mul_overflow(*bytes, factor, bytes);
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
