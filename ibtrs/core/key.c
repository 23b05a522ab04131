// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys of authentication.
 *
 * The keyring belongs to this module, so it lives as long as it can be used. Root adds keys to
 * it by its number (/proc/keys), which takes CAP_SYS_ADMIN, as our files do. Nobody can read them
 * back, because the key type logon has no read. Nobody may link the keyring, and so possess it: who
 * does could change the keys in it, or their permissions. A lookup is made with the rights of the
 * keyring's possessor, whatever task runs the work.
 *
 * The hash is allocated once, when the module is loaded, because the code that brings a path back
 * must load no module and allocate nothing (law L22). Only one caller at a time may use it, since
 * the key is a property of the transform. A use takes microseconds, and there are a few per
 * connection. Without hmac(sha256) in the kernel authentication is not possible; all else works.
 */
#include <crypto/hash.h>
#include <crypto/utils.h>
#include <keys/user-type.h>
#include <linux/cred.h>
#include <linux/key.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <ibtrs/admin.h>
#include "ibtrs/core/key.h"

#define KEY_HASH	"hmac(sha256)"

static struct key *key_ring;
static struct crypto_shash *key_hash;
static DEFINE_MUTEX(key_hash_lock);	/* protects the key that is set in key_hash */

static int key_hmac(const u8 *key, const void *data, size_t len, u8 *mac)
{
	int err;

	if (!key_hash)
		return -EOPNOTSUPP;
	guard(mutex)(&key_hash_lock);
	err = crypto_shash_setkey(key_hash, key, IBTRS_KEY_LEN);
	return err ?: crypto_shash_tfm_digest(key_hash, data, len, mac);
}

static bool key_differ(const void *a, const void *b, size_t len)
{
	return crypto_memneq(a, b, len);
}

const struct ibtrs_auth_ops ibtrs_auth_kernel = {
	.hmac	= key_hmac,
	.differ	= key_differ,
	.wipe	= memzero_explicit,
};
EXPORT_SYMBOL_GPL(ibtrs_auth_kernel);

/* 0, or -ENOKEY. */
static int key_copy(const char *desc, u8 *out)
{
	const struct user_key_payload *payload;
	struct key *key;
	key_ref_t ref;
	int err = -ENOKEY;

	ref = keyring_search(make_key_ref(key_ring, true), &key_type_logon, desc, false);
	if (IS_ERR(ref))
		return -ENOKEY;
	key = key_ref_to_ptr(ref);
	rcu_read_lock();
	payload = key_validate(key) ? NULL : user_key_payload_rcu(key);
	if (payload && payload->datalen == IBTRS_KEY_LEN) {
		memcpy(out, payload->data, IBTRS_KEY_LEN);
		err = 0;
	} else if (payload) {
		pr_warn_ratelimited("key %s has %u bytes, not %u, and is not used: load it by `ibnbd key load`\n",
				    desc, payload->datalen, IBTRS_KEY_LEN);
	}
	rcu_read_unlock();
	key_ref_put(ref);
	return err;
}

int ibtrs_key_get(const char *name, struct ibtrs_keys *keys)
{
	static const char * const suffix[IBTRS_KEYS_PER_NAME] = { "", IBTRS_KEY_NEXT };
	char desc[IBTRS_KEY_DESC_LEN];
	u32 i;

	get_random_bytes(keys->key, sizeof(keys->key));
	keys->nr = 0;
	for (i = 0; i < IBTRS_KEYS_PER_NAME; i++) {
		scnprintf(desc, sizeof(desc), IBTRS_KEY_PREFIX "%s%s", name, suffix[i]);
		/* If only the next key is there, it takes the first place, as the present key. */
		keys->nr += !key_copy(desc, keys->key[keys->nr]);
	}
	return keys->nr ? 0 : -ENOKEY;
}
EXPORT_SYMBOL_GPL(ibtrs_key_get);

static int key_may_add(struct key *ring, const struct key_type *type,
		       const union key_payload *payload, struct key *restriction)
{
	return ibtrs_admin(IBTRS_KEYRING);
}

int ibtrs_key_init(void)
{
	struct key_restriction *restriction = kzalloc(sizeof(*restriction), GFP_KERNEL);

	if (!restriction)
		return -ENOMEM;
	restriction->check = key_may_add;
	key_ring = keyring_alloc(IBTRS_KEYRING, GLOBAL_ROOT_UID, GLOBAL_ROOT_GID, current_cred(),
				 (KEY_POS_ALL & ~KEY_POS_SETATTR) |
					 (KEY_USR_ALL & ~(KEY_USR_SETATTR | KEY_USR_LINK)),
				 KEY_ALLOC_NOT_IN_QUOTA, restriction, NULL);
	if (IS_ERR(key_ring)) {
		kfree(restriction);
		return PTR_ERR(key_ring);
	}
	key_hash = crypto_alloc_shash(KEY_HASH, 0, 0);
	if (IS_ERR(key_hash)) {
		pr_warn("this kernel has no " KEY_HASH " (%ld): authentication is not possible\n",
			PTR_ERR(key_hash));
		key_hash = NULL;
	}
	return 0;
}

void ibtrs_key_exit(void)
{
	if (key_hash)
		crypto_free_shash(key_hash);
	key_revoke(key_ring);
	/* A task that still holds the keyring must not call a check of the unloaded module. */
	down_write(&key_ring->sem);
	key_ring->restrict_link->check = NULL;
	up_write(&key_ring->sem);
	key_put(key_ring);
}

MODULE_SOFTDEP("pre: crypto-hmac crypto-sha256");
