// SPDX-License-Identifier: GPL-2.0-only
/*
 * Authentication, as admission sees it (protocol.md 8.6).
 *
 * knock.c does the exchange, on a connection of its own, before the path has any. Its result is a
 * grant: a client that has the session key of this exchange may set up this path, in this
 * incarnation, from this address. The CONN_REQ of cid 0 must carry a proof made with the session
 * key. A good proof uses up the grant, however the CONN_REQ is answered then: a proof that somebody
 * has overheard is worth nothing. A wrong proof does not use up the grant, otherwise any stranger
 * could keep a client out. The path keeps the session key for its other connections. The key of the
 * grant has to be loaded still: then, and when the path is let in.
 *
 * Called by: admit.c under ibtrs_srv.lock, knock.c, the user. Locking: auth_lock, innermost.
 *
 * Failure: a refusal in words, counted in the parameter auth_failures. For cid 0 nothing of the
 * session or path that the CONN_REQ names has been looked at by then.
 *
 * It also counts for each key, and says who may write a line to the log about who came in and who
 * did not: so many from each peer, so that the lines of one do not hide those of others.
 */
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/once.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include "ibtrs/core/key.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/session.h"

#define AUTH_GRANTS_MAX	256
#define AUTH_GRANTS_PER_KEY	128	/* so that one key does not keep others out */
#define AUTH_GRANT_LIFE	(30 * HZ)
#define AUTH_KEYS_MAX	128	/* keys that are counted */
#define AUTH_PEERS	32	/* peers whose lines are limited apart; others share by chance */

struct auth_grant {
	struct list_head entry;
	unsigned long end;		/* jiffies */
	struct ibtrs_auth_req req;
	struct ibtrs_addr peer;
	struct ibtrs_srv_proof proof;
};

static DEFINE_MUTEX(auth_lock);
static LIST_HEAD(auth_grants);		/* the oldest first */
static unsigned int auth_nr;

static atomic_t auth_failures;

static int failures_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%u\n", atomic_read(&auth_failures));
}

static const struct kernel_param_ops failures_ops = { .get = failures_get };
module_param_cb(auth_failures, &failures_ops, NULL, 0444);
MODULE_PARM_DESC(auth_failures,
		 "connections refused for a missing key, a wrong key or a wrong proof");

void ibtrs_srv_auth_failed(void)
{
	atomic_inc(&auth_failures);
}

/* Under auth_lock. Only names of keys that were loaded come here: no stranger makes entries. */
static struct {
	char name[IBTRS_KEY_NAME_LEN];
	u32 let_in;
	u32 refused;
} auth_keys[AUTH_KEYS_MAX];

void ibtrs_srv_auth_count(const char *key, bool let_in)
{
	u32 i;

	guard(mutex)(&auth_lock);
	for (i = 0; i < AUTH_KEYS_MAX && auth_keys[i].name[0] && strcmp(auth_keys[i].name, key);
	     i++)
		;
	if (i == AUTH_KEYS_MAX || !key[0])
		return;
	strscpy(auth_keys[i].name, key, sizeof(auth_keys[i].name));
	if (let_in)
		auth_keys[i].let_in++;
	else
		auth_keys[i].refused++;
}

static int keys_get(char *buf, const struct kernel_param *kp)
{
	int at = 0;
	u32 i;

	guard(mutex)(&auth_lock);
	for (i = 0; i < AUTH_KEYS_MAX && auth_keys[i].name[0]; i++) {
		if (at + IBTRS_KEY_NAME_LEN + 24 > PAGE_SIZE)
			break;
		at += sysfs_emit_at(buf, at, "%s %u %u\n", auth_keys[i].name, auth_keys[i].let_in,
				    auth_keys[i].refused);
	}
	return at;
}

static const struct kernel_param_ops keys_ops = { .get = keys_get };
module_param_cb(auth_keys, &keys_ops, NULL, 0444);
MODULE_PARM_DESC(auth_keys, "of each key: its name, paths let in by it, attempts refused");

bool ibtrs_srv_auth_may_log(enum ibtrs_srv_line line, const struct ibtrs_addr *peer)
{
	static struct ratelimit_state limit[IBTRS_SRV_LINES][AUTH_PEERS] = {
		[0 ... IBTRS_SRV_LINES - 1][0 ... AUTH_PEERS - 1] =
			RATELIMIT_STATE_INIT(limit, DEFAULT_RATELIMIT_INTERVAL,
					     DEFAULT_RATELIMIT_BURST),
	};
	static u32 seed;

	get_random_once(&seed, sizeof(seed));
	return __ratelimit(&limit[line][jhash(peer->raw, sizeof(peer->raw), seed) % AUTH_PEERS]);
}

static void auth_forget(struct auth_grant *g)
{
	list_del(&g->entry);
	auth_nr--;
	kfree_sensitive(g);
}

void ibtrs_srv_auth_forget_all(void)
{
	struct auth_grant *g, *next;

	guard(mutex)(&auth_lock);
	list_for_each_entry_safe(g, next, &auth_grants, entry)
		auth_forget(g);
}

/* Frees the grants whose time is over, and as many of the oldest as @room new ones need. */
static void auth_make_room(unsigned int room)
{
	struct auth_grant *g, *next;

	list_for_each_entry_safe(g, next, &auth_grants, entry) {
		if (time_before(jiffies, g->end) && auth_nr + room <= AUTH_GRANTS_MAX)
			return;
		auth_forget(g);
	}
}

/* Frees the oldest grant of @key, if that key has its full share. */
static void auth_make_room_of(const char *key)
{
	struct auth_grant *g, *oldest = NULL;
	unsigned int nr = 0;

	list_for_each_entry(g, &auth_grants, entry) {
		if (strcmp(g->proof.key, key))
			continue;
		oldest = oldest ?: g;
		nr++;
	}
	if (nr >= AUTH_GRANTS_PER_KEY)
		auth_forget(oldest);
}

int ibtrs_srv_auth_grant(const struct ibtrs_auth_req *req, const struct ibtrs_addr *peer,
			 const struct ibtrs_auth *a)
{
	struct auth_grant *g = kzalloc(sizeof(*g), GFP_KERNEL);

	if (!g)
		return -ENOMEM;
	g->req = *req;
	g->peer = *peer;
	memcpy(g->proof.key, a->t.name, sizeof(g->proof.key));
	memcpy(g->proof.ks, a->ks, sizeof(g->proof.ks));
	memcpy(g->proof.mark, a->mark, sizeof(g->proof.mark));
	g->end = jiffies + AUTH_GRANT_LIFE;
	guard(mutex)(&auth_lock);
	auth_make_room_of(g->proof.key);
	auth_make_room(1);
	list_add_tail(&g->entry, &auth_grants);
	auth_nr++;
	return 0;
}

static bool auth_is_for(const struct auth_grant *g, const struct ibtrs_conn_req *req,
			const struct ibtrs_addr *peer)
{
	return g->req.recon_cnt == req->recon_cnt && ibtrs_addr_equal(&g->peer, peer) &&
	       !memcmp(g->req.path_uuid, req->path_uuid, sizeof(g->req.path_uuid)) &&
	       !memcmp(g->req.session_uuid, req->session_uuid, sizeof(g->req.session_uuid));
}

static int auth_refuse(int err, const char **why, const char *text)
{
	ibtrs_srv_auth_failed();
	return refuse(why, text, err);
}

int ibtrs_srv_auth_still(const struct ibtrs_srv_proof *proof, const char **why)
{
	struct ibtrs_keys keys;
	bool there;

	if (!proof->key[0])
		return 0;
	there = !ibtrs_key_get(proof->key, &keys) &&
		ibtrs_auth_has_mark(&ibtrs_auth_kernel, &keys, proof->mark);
	memzero_explicit(&keys, sizeof(keys));
	return there ? 0 : auth_refuse(-EKEYREJECTED, why,
				       "the key that was proved is not loaded here any more");
}

int ibtrs_srv_auth_first(const struct ibtrs_conn_req *req, const void *wire,
			 const struct ibtrs_addr *peer, struct ibtrs_srv_proof *proof,
			 const char **why)
{
	struct auth_grant *g, *next;

	memset(proof, 0, sizeof(*proof));
	if (!(req->ext & IBTRS_EXT_AUTH)) {
		if (ibtrs_srv.ops->auth() != IBTRS_SRV_AUTH_REQUIRED)
			return 0;
		return auth_refuse(-EACCES, why,
				   "authentication is required here: map with auth=KEY");
	}
	guard(mutex)(&auth_lock);
	auth_make_room(0);
	list_for_each_entry_safe(g, next, &auth_grants, entry) {
		if (!auth_is_for(g, req, peer) ||
		    !ibtrs_auth_req_good(&ibtrs_auth_kernel, g->proof.ks, wire))
			continue;
		*proof = g->proof;
		auth_forget(g);
		return ibtrs_srv_auth_still(proof, why);
	}
	return auth_refuse(-EKEYREJECTED, why, "the first connection of the path has no good proof");
}

bool ibtrs_srv_auth_next(const struct ibtrs_srv_path *path, const void *wire)
{
	return path->ext & IBTRS_EXT_AUTH &&
	       ibtrs_auth_req_good(&ibtrs_auth_kernel, path->proof.ks, wire);
}
