// SPDX-License-Identifier: GPL-2.0-only
/* Keys in the kernel's keyring, through libkeyutils. */
#include <errno.h>
#include <keyutils.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/host/keyring.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

static char *keyring_desc(const char *name, bool next)
{
	return say_fmt(IBTRS_KEY_PREFIX "%s%s", name, next ? IBTRS_KEY_NEXT : "");
}

/*
 * The name of a key, if the kernel's description of it, TYPE;UID;GID;PERMISSIONS;NAME, begins so.
 * Allocated, or NULL. The name is whatever the key's maker wrote, also with ';' and newlines, so
 * the fields count from the front.
 */
static char *keyring_name(key_serial_t key, const char *begin)
{
	char *is __free(free) = NULL, *at;

	if (keyctl_describe_alloc(key, &is) < 0 || strncmp(is, begin, strlen(begin)))
		return NULL;
	at = is;
	for (int i = 0; i < 4 && at; i++) {
		at = strchr(at, ';');
		at += !!at;
	}
	return at ? say_dup(at) : NULL;
}

static bool keyring_is(key_serial_t key, const char *begin, const char *name)
{
	char *is __free(free) = keyring_name(key, begin);

	return is && !strcmp(is, name);
}

/* false: it is revoked, that of a driver that was unloaded, and only still listed. */
static bool keyring_lives(key_serial_t ring)
{
	return keyctl_read(ring, NULL, 0) >= 0 || errno != EKEYREVOKED;
}

/*
 * Each line of /proc/keys begins with the serial number of a key, in hex. No more of it is
 * believed: any user can make a key whose name has a newline in it, and a made-up line behind
 * that. A name that begins with '.' is the kernel's alone to give to a keyring. 0: there is no such
 * keyring.
 */
static key_serial_t keyring_look(void)
{
	char *path __free(free) = sysfs_root("/proc/keys"), *line __free(free) = NULL, *end;
	FILE *f __free(say_fclose) = fopen(path, "re");
	key_serial_t ring = 0;
	unsigned long id;
	size_t size = 0;

	while (f && !ring && getline(&line, &size, f) > 0) {
		id = strtoul(line, &end, 16);
		if (*end == ' ' && id && id <= INT32_MAX && strstr(end, IBTRS_KEYRING) &&
		    keyring_is((key_serial_t)id, "keyring;0;0;", IBTRS_KEYRING) &&
		    keyring_lives((key_serial_t)id))
			ring = (key_serial_t)id;
	}
	return ring;
}

static key_serial_t keyring_serial(void)
{
	static key_serial_t ring;

	if (!ring)
		ring = keyring_look();
	return ring;
}

bool keyring_there(void)
{
	return keyring_serial() > 0;
}

/*
 * How many keys it holds, and their serial numbers, allocated. The driver lets no process possess
 * its keyring, or find keys in it by name, so the list is read.
 */
static size_t keyring_keys(key_serial_t **keys)
{
	void *list = NULL;
	long len = keyring_there() ? keyctl_read_alloc(keyring_serial(), &list) : 0;

	*keys = list;
	return len > 0 ? (size_t)len / sizeof(**keys) : 0;
}

/* 0: there is no such key. */
static key_serial_t keyring_find(const char *desc)
{
	key_serial_t *keys __free(free) = NULL, key = 0;
	size_t nr = keyring_keys(&keys);

	for (size_t i = 0; i < nr && !key; i++)
		if (keyring_is(keys[i], "logon;", desc))
			key = keys[i];
	return key;
}

/*
 * A new key, which replaces one of that name in the keyring: one that is there may not be changed.
 * 0 or errno.
 */
static int keyring_put(const char *desc, const u8 *key)
{
	key_serial_t fresh = add_key("logon", desc, key, IBTRS_KEY_LEN, KEY_SPEC_PROCESS_KEYRING);

	if (fresh < 0 || keyctl_link(fresh, keyring_serial()) < 0)
		return errno;
	keyctl_unlink(fresh, KEY_SPEC_PROCESS_KEYRING);
	return 0;
}

bool keyring_has(const char *name, bool next)
{
	char *desc __free(free) = keyring_desc(name, next);

	return keyring_find(desc);
}

int keyring_add(const char *name, bool next, const u8 *key)
{
	char *desc __free(free) = keyring_desc(name, next);

	if (sysfs_dry_run) {
		printf("keyctl add logon %s (from its file) " IBTRS_KEYRING "\n", desc);
		return 0;
	}
	return keyring_there() ? keyring_put(desc, key) : ENOKEY;
}

int keyring_remove(const char *name, bool next)
{
	char *desc __free(free) = keyring_desc(name, next);
	key_serial_t key = keyring_find(desc);

	if (!key)
		return ENOKEY;
	if (sysfs_dry_run) {
		printf("keyctl unlink logon %s " IBTRS_KEYRING "\n", desc);
		return 0;
	}
	return keyctl_unlink(key, keyring_serial()) < 0 ? errno : 0;
}

static int keyring_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

char **keyring_names(void)
{
	key_serial_t *keys __free(free) = NULL;
	size_t nr = keyring_keys(&keys), n = 0;
	char **names = say_alloc((nr + 1) * sizeof(*names));

	for (size_t i = 0; i < nr; i++) {
		char *desc __free(free) = keyring_name(keys[i], "logon;"), *name;

		if (!desc || strncmp(desc, IBTRS_KEY_PREFIX, strlen(IBTRS_KEY_PREFIX)))
			continue;
		name = desc + strlen(IBTRS_KEY_PREFIX);
		name[strcspn(name, ":")] = 0;	/* of the next key: IBTRS_KEY_NEXT */
		if (ibtrs_key_name_ok(name, strlen(name)))
			names[n++] = say_dup(name);
	}
	qsort(names, n, sizeof(*names), keyring_by_name);
	return names;
}
