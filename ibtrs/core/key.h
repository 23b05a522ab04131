/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys and the hash of authentication: what logic/auth.h needs from the kernel. The keys are logon
 * keys of the keyring .ibnbd, which `ibnbd key load` fills and no user can read.
 */
#ifndef IBTRS_CORE_KEY_H
#define IBTRS_CORE_KEY_H

#include "ibtrs/logic/auth.h"

extern const struct ibtrs_auth_ops ibtrs_auth_kernel;

/**
 * ibtrs_key_get() - get the keys of a name
 * @name: a valid name, see ibtrs_key_name_ok()
 * @keys: result; wipe it after use
 *
 * Looks the keys up anew each time, since nothing reports that a key was rotated. Sleeps, allocates
 * nothing.
 *
 * Return: 0, or -ENOKEY: @keys holds no key. The place of a key that does not exist is filled with
 * random bytes.
 */
int ibtrs_key_get(const char *name, struct ibtrs_keys *keys);

/*
 * For module init and exit. Return: 0, or a negative errno: no keyring, so the module is not
 * loaded.
 */
int ibtrs_key_init(void);
void ibtrs_key_exit(void);

#endif
