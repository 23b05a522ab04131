/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's keyring .ibnbd, which belongs to ibtrs-core and lives as long as that. Nobody reads
 * a key back from it. With IBNBD_ROOT it is a directory, keyring/, for the tests.
 */
#ifndef TOOLS_KEYRING_H
#define TOOLS_KEYRING_H

#include <stdbool.h>
#include <ibtrs/key.h>

/* Is there such a keyring? No: ibtrs-core is not loaded. */
bool keyring_there(void);
/* Does it have a key of this name? @next: the key that is to follow the one in use. */
bool keyring_has(const char *name, bool next);
/* Loads a key; one of the same name is replaced. 0 or errno. Honours --dry-run. */
int keyring_add(const char *name, bool next, const u8 *key);
/* Takes a key away. 0, or ENOKEY: there was none. Honours --dry-run. */
int keyring_remove(const char *name, bool next);
/* Names that have a key, sorted; free with sysfs_list_free(). */
char **keyring_names(void);

#endif
