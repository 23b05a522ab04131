// SPDX-License-Identifier: GPL-2.0-only
/* doctor: do the keys that mappings and the server need exist, are they good, are they loaded? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd/doctor.h"
#include "tools/conf/key_file.h"
#include "tools/conf/server_conf.h"
#include "tools/host/keyring.h"
#include "tools/host/sysfs.h"
#include "tools/out/say.h"

/* A refused file counts as no key. */
static bool key_is_good(struct doctor *d, const char *name, bool next)
{
	char *said __free(free) = NULL, *hint;
	u8 key[IBTRS_KEY_LEN];
	int err = key_look(name, next, key, &said, &hint);

	explicit_bzero(key, sizeof(key));
	if (said)
		doctor_find(d, "key", DOCTOR_ERROR, hint, "%s", said);
	return !err;
}

static size_t keys_files(struct doctor *d, bool ring)
{
	char **names __free(sysfs_list_free) = key_names();
	size_t i, good = 0;
	char *why __free(free) = NULL;

	if (key_dir_check(&why))
		doctor_find(d, "key", DOCTOR_ERROR,
			    say_dup("make it a directory that belongs to root alone"),
			    "cannot read " KEY_FILE_DIR ": %s", why);
	for (i = 0; names[i]; i++) {
		for (int next = 0; next < 2; next++) {
			if (!key_is_good(d, names[i], next))
				continue;
			good++;
			if (ring && !keyring_has(names[i], next))
				doctor_find(d, "key", DOCTOR_WARNING,
					    say_fmt("ibnbd key load %s", names[i]),
					    "key %s%s is not loaded", names[i],
					    next ? KEY_FILE_NEXT : "");
		}
	}
	return good;
}

static bool key_has_file(const char *name)
{
	char *now __free(free) = key_path(name, false), *next __free(free) = key_path(name, true);

	return sysfs_exists(now) || sysfs_exists(next);
}

/* A loaded key whose file was deleted stays valid until `ibnbd key load` or `remove` drops it. */
static void keys_without_file(struct doctor *d)
{
	char **names __free(sysfs_list_free) = keyring_names();
	int next;

	for (size_t i = 0; names[i]; i++) {
		if (i && !strcmp(names[i], names[i - 1]))
			continue;
		for (next = 0; next < 2; next++) {
			char *path __free(free) = key_path(names[i], next);

			if (keyring_has(names[i], next) && !sysfs_exists(path))
				doctor_find(d, "key", DOCTOR_WARNING,
					    say_dup("ibnbd key load drops keys without a file"),
					    "key %s%s is loaded and has no file: hosts that have it are still let in",
					    names[i], next ? KEY_FILE_NEXT : "");
		}
	}
}

/* A key that has a file is skipped: keys_files() checks it. */
static void keys_of_maps(struct doctor *d, bool ring)
{
	for (size_t i = 0; i < d->m->nr; i++) {
		const struct maps_entry *e = &d->m->entries[i];
		const char *key = e->map.auth;

		if (e->bad || !key[0] || key_has_file(key))
			continue;
		doctor_find(d, "key",
			    ring && keyring_has(key, false) ? DOCTOR_WARNING : DOCTOR_ERROR,
			    say_fmt("copy it from the server, or: ibnbd key generate %s", key),
			    "%s needs the key %s, which is not in " KEY_FILE_DIR, e->name, key);
	}
}

static void keys_of_server(struct doctor *d, size_t good)
{
	struct server_conf *c __free(server_conf_free) = server_conf_load(NULL);
	const char *auth = c->value[SERVER_auth];

	if (auth && !strcmp(auth, "required") && !good)
		doctor_find(d, "key", DOCTOR_ERROR,
			    say_dup("ibnbd key generate NAME; copy it to the clients; ibnbd key load"),
			    "server.conf says auth = required, and this host has no key: all clients are refused");
}

void doctor_keys(struct doctor *d)
{
	char *why __free(free) = NULL;
	bool ring = keyring_there();
	size_t good;

	/* The directory has mode 0700: to a user it is no key that is missing, nor a mistake. */
	if (key_dir_check(&why) == EACCES && geteuid()) {
		doctor_find(d, "key", DOCTOR_OK, NULL,
			    "keys are not looked at: " KEY_FILE_DIR " is root's");
		return;
	}
	good = keys_files(d, ring);
	if (ring)
		keys_without_file(d);
	keys_of_maps(d, ring);
	keys_of_server(d, good);
}
