// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws of the mapping grammar on any bytes: an accepted line formats to an accepted line with
 * the same meaning, formatting is stable, a refusal names a place within the line and a reason that
 * can be printed.
 */
#include <stdlib.h>

#include "ibnbd/logic/mapopt.h"
#include "tools/conf/maps_conf.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ibnbd_map a, b;
static char line[IBNBD_MAP_LINE_MAX + 1], again[IBNBD_MAP_LINE_MAX + 1];

static void refused(const struct ibnbd_mapopt_err *err, size_t size, int rc)
{
	size_t i;

	MUST(rc == -EINVAL || rc == -ENOMEM || rc == -EPROTONOSUPPORT);
	MUST(err->pos <= size && err->len <= size - err->pos);
	MUST(memchr(err->msg, 0, sizeof(err->msg)) && err->msg[0]);
	for (i = 0; err->msg[i]; i++)
		MUST((unsigned char)err->msg[i] >= 0x20 && err->msg[i] != 0x7f);
}

/* Setting the keys one by one is the same as parsing the line. */
static void key_by_key(const struct ibnbd_map *want)
{
	struct ibnbd_mapopt_err err;
	char *word, *save = NULL;

	ibnbd_mapopt_init(&b);
	memcpy(again, line, sizeof(line));
	for (word = strtok_r(again, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		char *eq = strchr(word, '=');

		MUST(eq);
		*eq = 0;
		MUST(!ibnbd_mapopt_set(&b, word, eq + 1, &err));
	}
	MUST(!ibnbd_mapopt_finish(&b, &err));
	MUST(!memcmp(want, &b, sizeof(b)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibnbd_mapopt_err err;
	int rc, n;
	char *copy = malloc(size ? size : 1);

	MUST(copy);
	if (size)
		memcpy(copy, data, size);
	memset(&err, 0xa5, sizeof(err));
	rc = ibnbd_mapopt_parse(copy, size, &a, &err);
	free(copy);
	if (rc) {
		refused(&err, size, rc);
		return 0;
	}
	n = mapopt_format(&a, line, sizeof(line));
	MUST(n > 0 && (size_t)n == strlen(line));
	MUST(!ibnbd_mapopt_parse(line, (size_t)n, &b, &err));
	MUST(!memcmp(&a, &b, sizeof(a)));
	MUST(mapopt_format(&b, again, sizeof(again)) == n && !strcmp(line, again));
	key_by_key(&a);
	return 0;
}
