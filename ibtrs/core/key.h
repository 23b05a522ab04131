/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys and the hash of authentication: what logic/auth.h asks of a kernel. The keys are logon keys
 * of the keyring .ibnbd, which `ibnbd key load` fills and nobody can read.
 */
#ifndef IBTRS_CORE_KEY_H
#define IBTRS_CORE_KEY_H

#include "ibtrs/logic/auth.h"

extern const struct ibtrs_auth_ops ibtrs_auth_kernel;

/**
 * ibtrs_key_get() - the keys of a name
 * @name: one that ibtrs_key_name_ok() likes
 * @keys: result; wipe it after use
 *
 * Looked up anew each time, since nothing tells of a key's rotation. Sleeps, allocates nothing.
 *
 * Return: 0, or -ENOKEY: @keys holds none, and random bytes in the places of those that are not
 * there.
 */
int ibtrs_key_get(const char *name, struct ibtrs_keys *keys);

/* 0, or -ENOMEM: without a keyring nothing else works either. Module init and exit. */
int ibtrs_key_init(void);
void ibtrs_key_exit(void);

#endif
