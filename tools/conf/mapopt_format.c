// SPDX-License-Identifier: GPL-2.0-only
#include "tools/conf/maps_conf.h"

int mapopt_format(const struct ibnbd_map *m, char *buf, size_t size)
{
	const struct ibnbd_mapopt *o = ibnbd_mapopts;
	size_t n = 0;
	char text[IBTRS_PATH_STR_MAX];

	if (size)
		buf[0] = 0;
	for (size_t i = 0; i < IBNBD_MAPOPT_COUNT; i++, o++) {
		const void *field = (const char *)m + o->offset;
		const char *value = text;
		unsigned int times = ibnbd_map_given(m, i);

		if (o->kind == IBNBD_KIND_PATH)
			times *= m->nr_paths;
		else if (o->kind == IBNBD_KIND_INT)
			snprintf(text, sizeof(text), "%d", *(const int *)field);
		else if (o->kind == IBNBD_KIND_WORD)
			ibnbd_mapopt_word(i, *(const int *)field, text, sizeof(text));
		else
			value = field;
		for (unsigned int j = 0; j < times; j++) {
			if (o->kind == IBNBD_KIND_PATH)
				ibtrs_addr_pair_format(&m->path[j], text, sizeof(text));
			n += (size_t)snprintf(buf + n, size - n, "%s%s=%s", n ? " " : "", o->key,
					      value);
			if (n >= size)
				return -EMSGSIZE;
		}
	}
	return size ? (int)n : -EMSGSIZE;
}
