// SPDX-License-Identifier: GPL-2.0-only
#include "tools/conf/mapopt_format.h"

struct mapopt_out {
	char *buf;
	size_t size;
	size_t n;
	bool full;
};

__printf(2, 3)
static void mapopt_print(struct mapopt_out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (o->full)
		return;
	va_start(ap, fmt);
	n = vsnprintf(o->buf + o->n, o->size - o->n, fmt, ap);
	va_end(ap);
	o->full = n < 0 || (size_t)n >= o->size - o->n;
	if (!o->full)
		o->n += (size_t)n;
}

static void mapopt_print_paths(struct mapopt_out *out, const struct ibnbd_map *m)
{
	char text[IBTRS_PATH_STR_MAX];
	unsigned int i;

	for (i = 0; i < m->nr_paths && i < IBNBD_MAP_PATHS; i++) {
		ibtrs_addr_pair_format(&m->path[i], text, sizeof(text));
		mapopt_print(out, "%spath=%s", out->n ? " " : "", text);
	}
}

int mapopt_format(const struct ibnbd_map *m, char *buf, size_t size)
{
	struct mapopt_out out = { .buf = buf, .size = size, .full = !size };
	const struct ibnbd_mapopt *rows;
	char word[32];
	size_t i, nr;

	if (size)
		buf[0] = 0;
	rows = ibnbd_mapopt_table(&nr);
	for (i = 0; i < nr; i++) {
		const struct ibnbd_mapopt *o = &rows[i];
		const void *field = (const char *)m + o->offset;
		const char *blank = out.n ? " " : "";

		if (!ibnbd_map_given(m, i))
			continue;
		switch (o->kind) {
		case IBNBD_KIND_PATH:
			mapopt_print_paths(&out, m);
			break;
		case IBNBD_KIND_INT:
			mapopt_print(&out, "%s%s=%d", blank, o->key, *(const int *)field);
			break;
		case IBNBD_KIND_WORD:
			ibnbd_mapopt_word(i, *(const int *)field, word, sizeof(word));
			mapopt_print(&out, "%s%s=%s", blank, o->key, word);
			break;
		default:
			mapopt_print(&out, "%s%s=%s", blank, o->key, (const char *)field);
			break;
		}
	}
	return out.full ? -EMSGSIZE : (int)out.n;
}
