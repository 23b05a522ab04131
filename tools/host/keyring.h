/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's keyring .ibnbd. It belongs to ibtrs-core and exists as long as that is loaded. User
 * space cannot read a key back from it.
 */
#ifndef TOOLS_KEYRING_H
#define TOOLS_KEYRING_H

#include <stdbool.h>
#include <ibtrs/key.h>

/* Does the keyring exist? If not, ibtrs-core is not loaded. */
bool keyring_there(void);
/* Does it have a key of this name? @next: the key that is to follow the one in use. */
bool keyring_has(const char *name, bool next);
/* Loads a key; one of the same name is replaced. 0 or errno. Honours --dry-run. */
int keyring_add(const char *name, bool next, const u8 *key);
/* Removes a key. 0 or errno; ENOKEY: there was none. Honours --dry-run. */
int keyring_remove(const char *name, bool next);
/*
 * Names of its keys, sorted; one with a present and a next key is there twice. Free with
 * sysfs_list_free().
 */
char **keyring_names(void);

#endif
