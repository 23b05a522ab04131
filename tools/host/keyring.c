// SPDX-License-Identifier: GPL-2.0-only
/* Keys in the kernel's keyring, through libkeyutils. */
#include <errno.h>
#include <fcntl.h>
#include <keyutils.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/host/keyring.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

static char *keyring_desc(const char *name, bool next)
{
	return say_fmt(IBTRS_KEY_PREFIX "%s%s", name, next ? IBTRS_KEY_NEXT : "");
}

static char *keyring_file(const char *desc)
{
	return sysfs_root("/keyring%s%s", desc ? "/" : "", desc ? desc : "");
}

/*
 * Does the kernel's description of it, TYPE;UID;GID;PERMISSIONS;NAME, begin so and end with this
 * name? The name is whatever the key's maker wrote, also with ';' and newlines, so the fields count
 * from the front.
 */
static bool keyring_is(key_serial_t key, const char *begin, const char *name)
{
	char *is __free(free) = NULL, *at;

	if (keyctl_describe_alloc(key, &is) < 0 || strncmp(is, begin, strlen(begin)))
		return false;
	at = is;
	for (int i = 0; i < 4 && at; i++) {
		at = strchr(at, ';');
		at += !!at;
	}
	return at && !strcmp(at, name);
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
 * The serial number of a key, or -1 and errno. The driver lets no process possess its keyring, or
 * find keys in it by name, so the list is read.
 */
static long keyring_find(const char *desc)
{
	void *list = NULL;
	long len = keyring_there() ? keyctl_read_alloc(keyring_serial(), &list) : 0, i, key = -1;

	for (i = 0; i < len / (long)sizeof(key_serial_t) && key < 0; i++)
		if (keyring_is(((key_serial_t *)list)[i], "logon;", desc))
			key = ((key_serial_t *)list)[i];
	if (len >= 0)
		free(list);
	if (key < 0)
		errno = ENOKEY;
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
	char *desc __free(free) = keyring_desc(name, next), *file __free(free) = keyring_file(desc);

	return sysfs_redirected() ? sysfs_exists(file) : keyring_find(desc) > 0;
}

int keyring_add(const char *name, bool next, const u8 *key)
{
	char *desc __free(free) = keyring_desc(name, next), *file __free(free) = keyring_file(desc);
	int fd __free(say_close) = -1;

	if (sysfs_dry_run) {
		printf("keyctl add logon %s (from its file) " IBTRS_KEYRING "\n", desc);
		return 0;
	}
	if (!keyring_there())
		return ENOKEY;
	if (!sysfs_redirected())
		return keyring_put(desc, key);
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, key, IBTRS_KEY_LEN) != IBTRS_KEY_LEN ? errno : 0;
}

int keyring_remove(const char *name, bool next)
{
	char *desc __free(free) = keyring_desc(name, next), *file __free(free) = keyring_file(desc);
	long key;

	if (sysfs_dry_run && !keyring_has(name, next))
		return ENOKEY;
	if (sysfs_dry_run) {
		printf("keyctl unlink logon %s " IBTRS_KEYRING "\n", desc);
		return 0;
	}
	if (sysfs_redirected())
		return !unlink(file) ? 0 : errno == ENOENT ? ENOKEY : errno;
	key = keyring_find(desc);
	return key < 0 || keyctl_unlink((key_serial_t)key, keyring_serial()) < 0 ? errno : 0;
}

static int keyring_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/*
 * Names that a key of ours may have, of /proc/keys: the kernel lists there the keys that the reader
 * may see. Other keyrings' keys and lines that a user made up are among them: the caller asks
 * keyring_has().
 */
static char **keyring_lines(void)
{
	FILE *f __free(say_fclose) = fopen("/proc/keys", "re");
	char **names = say_alloc(sizeof(*names)), *line __free(free) = NULL, *at;
	size_t nr = 0, size = 0;

	while (f && getline(&line, &size, f) > 0) {
		at = strstr(line, " logon ");
		at = at ? strstr(at, " " IBTRS_KEY_PREFIX) : NULL;
		if (!at)
			continue;
		at += sizeof(IBTRS_KEY_PREFIX);
		at[strcspn(at, ": \n")] = 0;	/* cut off ":next" and the length */
		if (!ibtrs_key_name_ok(at, strlen(at)))
			continue;
		names = say_grow(names, (nr + 2) * sizeof(*names));
		names[nr++] = say_dup(at);
		names[nr] = NULL;
	}
	qsort(names, nr, sizeof(*names), keyring_by_name);
	return names;
}

char **keyring_names(void)
{
	char *dir __free(free) = keyring_file(NULL), **names;

	if (!sysfs_redirected())
		return keyring_lines();
	names = sysfs_list(dir, NULL);
	for (size_t i = 0; names[i]; i++) {
		char *desc __free(free) = names[i];

		names[i] = say_dup(desc + (strncmp(desc, IBTRS_KEY_PREFIX, 6) ? 0 : 6));
		names[i][strcspn(names[i], ":")] = 0;
	}
	return names;
}
