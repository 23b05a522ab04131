// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much of this server clients use: this file counts, logic/quota judges.
 *
 * There is no table of clients: all sessions and their paths, some hundreds at most, are counted
 * anew each time. So no number stays wrong, and none has to be given back.
 *
 * Called by: admit.c (paths, connections), session.c (names), info.c (let in), path_run.c (end).
 * Locking: ibtrs_srv.lock for all that counts. Failure: a refusal, in words that name the
 * parameter.
 */
#include <linux/mm.h>
#include "ibtrs/logic/quota.h"
#include "ibtrs/server/auth.h"
#include "ibtrs/server/quota.h"

#define QUOTA_ENDING		256	/* each has memory, and waits for a disk */
#define QUOTA_HALF_OPEN_PART	8	/* 1/8 of the memory, when the parameter is 0 */

static void quota_max(struct ibtrs_quota_max *max)
{
	const struct ibtrs_srv_params *p = &ibtrs_srv_params;
	u64 half = READ_ONCE(p->max_memory_half_open_mb), all = ibtrs_srv_chunk_limit(),
	    peer = READ_ONCE(p->max_memory_per_peer_mb);

	max->half_open = READ_ONCE(p->max_half_open);
	max->half_open_per_peer = READ_ONCE(p->max_half_open_per_peer);
	max->sessions = READ_ONCE(p->max_sessions);
	max->sessions_per_peer = READ_ONCE(p->max_sessions_per_peer);
	max->sessions_per_key = READ_ONCE(p->max_sessions_per_key);
	max->ending_per_peer = QUOTA_ENDING;
	max->half_bytes = half ? half << 20 :
				 ((u64)totalram_pages() << PAGE_SHIFT) / QUOTA_HALF_OPEN_PART;
	/*
	 * An administrator who has set max_memory_mb has counted what the clients need: no default
	 * limit per client then.
	 */
	max->bytes = all;
	max->bytes_per_peer = peer			      ? peer << 20 :
			      READ_ONCE(p->max_memory_mb) ? U64_MAX :
							    all / 4 * 3;
	max->bytes_per_key = (u64)READ_ONCE(p->max_memory_per_key_mb) << 20;
}

static void quota_add_path(struct ibtrs_quota_use *use, const struct ibtrs_srv_path *path)
{
	/* The queues of a path that was never let in count until they are freed. */
	if (!path->charged)
		use->half_bytes += path->queue_bytes;
	use->bytes += path->charged + READ_ONCE(path->chunk_bytes);
	switch (ibtrs_srv_path_state(path)) {
	case IBTRS_SRV_PATH_CONNECTING:
		use->half_open++;
		break;
	case IBTRS_SRV_PATH_CONNECTED:
		break;
	default:
		use->ending++;
		break;
	}
}

bool ibtrs_srv_quota_is_known(const struct ibtrs_addr *addr, const char *key)
{
	struct ibtrs_srv_session *s;

	lockdep_assert_held(&ibtrs_srv.lock);
	if (key[0])
		return true;
	list_for_each_entry(s, &ibtrs_srv.sessions, entry)
		if (READ_ONCE(s->up) && !s->key[0] && ibtrs_peers_have(&s->peers, addr))
			return true;
	return ibtrs_srv_name_kept_for(addr);
}

/*
 * The limits, and what all clients use of them, counted for a client from @addr that has proved
 * @key.
 */
static void quota_count(const struct ibtrs_addr *addr, const char *key, bool known,
			struct ibtrs_quota_max *max, struct ibtrs_quota_client *c)
{
	struct ibtrs_srv_session *s;
	struct ibtrs_srv_path *path;

	lockdep_assert_held(&ibtrs_srv.lock);
	quota_max(max);
	*c = (struct ibtrs_quota_client){
		.known	= known,
		.keyed	= key[0],
		.leaves	= ibtrs_srv.ops->auth() == IBTRS_SRV_AUTH_OPTIONAL,
	};
	list_for_each_entry(s, &ibtrs_srv.sessions, entry) {
		bool named = s->name[0], same_key = !strcmp(s->key, key);

		c->all.sessions += named;
		c->key.sessions += named && same_key;
		c->peer.sessions += named && same_key &&
				    ibtrs_addr_equal(&s->peers.addr[0], addr);
		list_for_each_entry(path, &s->paths, entry) {
			if (path->known == known)
				quota_add_path(&c->alike, path);
			if (same_key)
				quota_add_path(&c->key, path);
			if (same_key && ibtrs_addr_equal(&path->addr.src, addr))
				quota_add_path(&c->peer, path);
		}
	}
}

int ibtrs_srv_quota_path(const struct ibtrs_addr *addr, const char *key, u64 bytes, bool fresh,
			 const char **why)
{
	struct ibtrs_quota_client c;
	struct ibtrs_quota_max max;
	int err = 0;

	quota_count(addr, key, ibtrs_srv_quota_is_known(addr, key), &max, &c);
	if (fresh)
		err = ibtrs_quota_check(&max, &c, IBTRS_QUOTA_SESSION, 1, why);
	err = err ?: ibtrs_quota_check(&max, &c, IBTRS_QUOTA_PATH, 1, why);
	return err ?: ibtrs_quota_check(&max, &c, IBTRS_QUOTA_CONN, bytes, why);
}

int ibtrs_srv_quota_conn(const struct ibtrs_srv_path *path, u64 bytes, const char **why)
{
	struct ibtrs_quota_client c;
	struct ibtrs_quota_max max;

	quota_count(&path->addr.src, path->proof.key, path->known, &max, &c);
	return ibtrs_quota_check(&max, &c, IBTRS_QUOTA_CONN, bytes, why);
}

int ibtrs_srv_quota_session(const struct ibtrs_srv_path *path, const char **why)
{
	struct ibtrs_quota_client c;
	struct ibtrs_quota_max max;

	/* A session counts for the address that made it, whichever of its paths names it. */
	quota_count(&path->session->peers.addr[0], path->proof.key, path->known, &max, &c);
	return ibtrs_quota_check(&max, &c, IBTRS_QUOTA_SESSION, 1, why);
}

int ibtrs_srv_quota_let_in(struct ibtrs_srv_path *path, const char **why)
{
	u64 chunks = (u64)path->limits.queue_depth * path->limits.chunk_size;
	u64 bytes = chunks + path->queue_bytes;
	struct ibtrs_quota_client c;
	struct ibtrs_quota_max max;
	int err;

	guard(mutex)(&ibtrs_srv.lock);
	quota_count(&path->addr.src, path->proof.key, path->known, &max, &c);
	/* What all clients use is charged by chunk.c, which knows what lies in its shelf. */
	err = ibtrs_quota_check(&max, &c, IBTRS_QUOTA_LET_IN, bytes, why);
	if (err)
		return err;
	path->modest = ibtrs_quota_is_modest(&max, &c.peer, bytes);
	if (!ibtrs_srv_chunk_charge_queues(path))
		return refuse(why, "as much memory in use as max_memory_mb allows", -ENOMEM);
	path->charged = path->queue_bytes;
	/*
	 * The chunks are not allocated yet. Other paths of this client, which are judged in the
	 * meantime, must see them counted.
	 */
	WRITE_ONCE(path->chunk_bytes, chunks);
	return 0;
}

void ibtrs_srv_quota_end(struct ibtrs_srv_path *path)
{
	guard(mutex)(&ibtrs_srv.lock);
	ibtrs_srv_chunk_reserve_queues(path);
	path->queue_bytes = 0;
	path->charged = 0;
}
