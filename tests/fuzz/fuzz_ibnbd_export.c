// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whatever a client calls a device, what comes out stays beneath the root. Input: search path,
 * session name and device name, each ended by a NUL; what follows them is an allow-list.
 */
#include <stdlib.h>

#include "ibnbd/logic/export.h"

#define MUST(x)	do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char buf[IBNBD_EXPORT_PATH_MAX];
static struct ibnbd_allow allow;

/* Non-empty components without '.', '..' or control characters, single slashes between them. */
static void clean(const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "/"), i;

		MUST(n);
		MUST(!(s[0] == '.' && (n == 1 || (n == 2 && s[1] == '.'))));
		for (i = 0; i < n; i++)
			MUST((unsigned char)s[i] >= 0x20 && s[i] != 0x7f);
		s += n;
		if (!*s)
			break;
		s++;
		MUST(*s);
	}
}

static void resolve(const char *search, const char *sess, const char *name)
{
	struct ibnbd_export_path p, q;
	const char *why = NULL;
	static char other[IBNBD_EXPORT_PATH_MAX], joined[IBNBD_EXPORT_PATH_MAX + 1];
	int rc = ibnbd_export_resolve(search, sess, name, buf, sizeof(buf), &p, &why);

	if (rc) {
		MUST((rc == -EINVAL || rc == -EACCES) && why);
		return;
	}
	MUST(p.root[0] == '/');
	clean(p.root + 1);
	clean(p.dir);
	clean(p.last);
	MUST(*p.last && !strchr(p.last, '/'));
	MUST(p.follow == ibnbd_export_follows(search));
	MUST(strlen(p.root) + strlen(p.dir) + strlen(p.last) + 2 < IBNBD_EXPORT_PATH_MAX);
	/* The result means the same as the question. */
	snprintf(joined, sizeof(joined), "%s/%s", p.dir, p.last);
	MUST(!ibnbd_export_resolve(search, sess, joined, other, sizeof(other), &q, &why));
	MUST(!strcmp(p.root, q.root) && !strcmp(p.dir, q.dir) && !strcmp(p.last, q.last));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *part[3];
	size_t at = 0, pos = 0, i;
	const char *why = NULL;
	struct ibtrs_origin a = { 0 };

	MUST(copy);
	if (size)
		memcpy(copy, data, size);
	copy[size] = 0;
	for (i = 0; i < 3; i++) {
		part[i] = copy + at;
		at += strlen(part[i]);
		if (at < size)
			at++;
	}
	resolve(part[0], part[1], part[2]);
	ibnbd_glob_match(part[0], part[1]);
	if (at <= size) {
		int rc = ibnbd_allow_parse(copy + at, size - at, &allow, &pos, &why);

		MUST(!rc || (why && pos < size - at && (rc == -EINVAL || rc == -E2BIG)));
		if (!rc && !ibtrs_addr_parse(part[2], strlen(part[2]), &a.addr, &why))
			MUST(ibnbd_allow_match(&allow, &a, part[1]) || allow.nr);
	}
	free(copy);
	return 0;
}
