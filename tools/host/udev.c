// SPDX-License-Identifier: GPL-2.0-only
/*
 * udev's helper: `ibnbd-udev KERNEL-NAME` prints properties of a disk for 60-ibnbd.rules. It
 * reads sysfs and maps.conf, never waits, and always succeeds: a disk without the properties is
 * better than no disk.
 *
 *	IBNBD_NAME=		below /dev/ibnbd/by-name: the name that the driver shows,
 *				else the name in maps.conf for this device of this
 *				session, unless the driver shows that name for a disk
 *	IBNBD_SESSION= IBNBD_DEVICE_LINK=	below /dev/ibnbd/by-session
 *	IBNBD_PATH=		below /dev/disk/by-path
 *	IBNBD_ID=		hash of the identity, for /dev/disk/by-id
 *	IBNBD_LINK= IBNBD_SCHEDULER= IBNBD_READAHEAD=	as maps.conf says
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host/links.h"
#include "tools/conf/maps_conf.h"
#include "tools/out/say.h"
#include "tools/host/sysfs.h"

static void udev_print(const char *key, const char *value)
{
	if (value && *value)
		printf("%s=%s\n", key, value);
}

/* Frees @value. */
static void udev_print_link(const char *key, char *value)
{
	udev_print(key, value);
	free(value);
}

/* Both parts of the link in by-session, or none. */
static void udev_print_session(const char *session, const char *device)
{
	char *s = links_session(session), *d = links_device(device);

	if (s && d) {
		udev_print("IBNBD_SESSION", s);
		udev_print("IBNBD_DEVICE_LINK", d);
	}
	free(s);
	free(d);
	udev_print_link("IBNBD_PATH", links_by_path(session, device));
}

/*
 * Does a disk have @name from the driver? With one link for two disks, a mount by the link could
 * get either of them.
 */
static bool udev_taken(const char *name)
{
	char *block = sysfs_path("block"), **names = sysfs_list(block, NULL);
	bool taken = false;
	size_t i;

	for (i = 0; names[i] && !taken; i++) {
		char *own = say_fmt("%s/%s/ibnbd", block, names[i]), *has = sysfs_attr(own, "name");

		taken = has && !strcmp(has, name);
		free(has);
		free(own);
	}
	sysfs_list_free(names);
	free(block);
	return taken;
}

static void udev_conf(const char *session, const char *device, bool named)
{
	struct maps *m = maps_load(NULL);
	struct maps_entry *e = maps_find_device(m, session, device);

	if (e && !named && !udev_taken(e->name))
		udev_print_link("IBNBD_NAME", links_by_name(e->name));
	if (e) {
		udev_print("IBNBD_LINK", e->text[MAPS_link]);
		udev_print("IBNBD_SCHEDULER", e->text[MAPS_scheduler]);
		udev_print("IBNBD_READAHEAD", e->text[MAPS_readahead]);
	}
	maps_free(m);
}

int main(int argc, char **argv)
{
	char *own, *session, *device, *name, *identity, *hash;

	if (argc < 2 || strchr(argv[1], '/'))
		return 0;
	own = sysfs_path("block/%s/ibnbd", argv[1]);
	session = sysfs_attr(own, "session");
	device = sysfs_attr(own, "mapping_path");
	name = sysfs_attr(own, "name");
	identity = sysfs_attr(own, "identity");
	if (name)
		udev_print_link("IBNBD_NAME", links_by_name(name));
	if (session && device) {
		udev_print_session(session, device);
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
