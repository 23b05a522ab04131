// SPDX-License-Identifier: GPL-2.0-only
/*
 * udev's helper: `ibnbd-udev KERNEL-NAME` prints properties of a disk for 60-ibnbd.rules. Reads sysfs and maps.conf, never waits, always succeeds: a disk
 * without them is better than none.
 *
 *	IBNBD_NAME=		name of the mapping: the driver's, or the one that maps.conf has for this device of this session
 *	IBNBD_DEVICE_LINK=	device path that is safe below /dev/ibnbd/by-session/SESSION/
 *	IBNBD_SESSION=		session, likewise
 *	IBNBD_PATH=		ibnbd-SESSION-DEVICE without '/', for /dev/disk/by-path
 *	IBNBD_ID=		hash of the identity, for /dev/disk/by-id
 *	IBNBD_LINK= IBNBD_SCHEDULER= IBNBD_READAHEAD=	as maps.conf says
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/maps_conf.h"
#include "tools/say.h"
#include "tools/sysfs.h"

static bool udev_safe(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || strchr("#+-.:=@_", c);
}

/* What udev would not take becomes '_'; no part is empty, "." or "..": the name comes from a line that anybody may have written. */
static char *udev_path(const char *text, bool parts)
{
	char *out = say_alloc(2 * strlen(text) + 2), *p = out;
	bool begin = true;

	for (; *text; text++) {
		if (*text == '/' && parts) {
			if (!begin)
				*p++ = '/';
			begin = true;
			continue;
		}
		if (begin && *text == '.' && (!strncmp(text, "./", 2) || !strncmp(text, "../", 3) || !strcmp(text, ".") || !strcmp(text, "..")))
			*p++ = '_';
		else
			*p++ = *text && udev_safe(*text) ? *text : '_';
		begin = false;
	}
	while (p > out && p[-1] == '/')
		p--;
	*p = 0;
	return out;
}

static void udev_print(const char *key, const char *value)
{
	if (value && *value)
		printf("%s=%s\n", key, value);
}

static void udev_print_path(const char *session, const char *device)
{
	char *text = say_fmt("ibnbd-%s-%s", session, device), *safe, *p;

	for (p = text; *p; p++)
		if (*p == '/')
			*p = ':';
	safe = udev_path(text, false);
	udev_print("IBNBD_PATH", safe);
	free(safe);
	free(text);
}

static void udev_conf(const char *session, const char *device, bool named)
{
	struct maps *m = maps_load(NULL);
	struct maps_entry *e = maps_find_device(m, session, device);

	if (e && !named)
		udev_print("IBNBD_NAME", e->name);
	if (e) {
		udev_print("IBNBD_LINK", e->text[MAPS_link]);
		udev_print("IBNBD_SCHEDULER", e->text[MAPS_scheduler]);
		udev_print("IBNBD_READAHEAD", e->text[MAPS_readahead]);
	}
	maps_free(m);
}

int main(int argc, char **argv)
{
	char *own, *session, *device, *name, *identity, *safe, *hash;

	if (argc < 2 || strchr(argv[1], '/'))
		return 0;
	own = sysfs_path("block/%s/ibnbd", argv[1]);
	session = sysfs_attr(own, "session");
	device = sysfs_attr(own, "mapping_path");
	name = sysfs_attr(own, "name");
	identity = sysfs_attr(own, "identity");
	udev_print("IBNBD_NAME", name);
	if (session && device) {
		safe = udev_path(session, false);
		udev_print("IBNBD_SESSION", safe);
		free(safe);
		safe = udev_path(device, true);
		udev_print("IBNBD_DEVICE_LINK", safe);
		free(safe);
		udev_print_path(session, device);
		udev_conf(session, device, name);
	}
	/* "kind hash" */
	hash = identity ? strchr(identity, ' ') : NULL;
	if (hash && strspn(hash + 1, "0123456789abcdefABCDEF") == strlen(hash + 1))
		udev_print("IBNBD_ID", hash + 1);
	free(own);
	free(session);
	free(device);
	free(name);
	free(identity);
	return 0;
}
