// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * How much of a server clients use: this file counts, logic/quota judges (security.md, "Quotas").
 *
 * A client is an address together with the key that was proved from there, if any; all sockets of
 * this host are one address. There is no table of clients: at each request all sessions and their
 * paths are counted anew, so no number stays wrong, and none has to be given back.
 *
 * Connections are counted before it is known whose they are: by their address alone, whatever key
 * is proved later. What logic/quota calls bytes of half-open paths is connections here.
 */
#include "ibtrs/logic/quota.h"
#include "ibtrs/user/srv.h"

#define QUOTA_PATHS	64u		/* that all memory suffices for, unless options say more */
#define QUOTA_SESSIONS	256u
#define QUOTA_HALF_OPEN	256u
#define QUOTA_PER_PEER	64u		/* of each of them */
#define QUOTA_ENDING	256u
#define QUOTA_CONNS	1024u		/* of all strangers, of paths that are not up */

static u64 quota_path_bytes(const struct ibtrs_srv *srv)
{
	return (u64)srv->limits.queue_depth * srv->limits.chunk_size;
}

static void quota_max(const struct ibtrs_srv *srv, struct ibtrs_quota_max *max)
{
	const struct ibtrs_srv_opts *o = &srv->opts;
	u64 all = o->max_memory_mb ? (u64)o->max_memory_mb << 20 :
				     QUOTA_PATHS * quota_path_bytes(srv);

	*max = (struct ibtrs_quota_max){
		.half_open		= o->max_paths_half_open ?: QUOTA_HALF_OPEN,
		.half_open_per_peer	= o->max_paths_half_open_per_peer ?: QUOTA_PER_PEER,
		.sessions		= o->max_sessions ?: QUOTA_SESSIONS,
		.sessions_per_peer	= o->max_sessions_per_peer ?: QUOTA_PER_PEER,
		.sessions_per_key	= o->max_sessions_per_key,
		.ending_per_peer	= QUOTA_ENDING,
		.half_bytes		= QUOTA_CONNS,
		.bytes			= all,
		.bytes_per_peer		= o->max_memory_per_peer_mb ?
					  (u64)o->max_memory_per_peer_mb << 20 :
					  o->max_memory_mb ? U64_MAX : all / 4 * 3,
		.bytes_per_key		= (u64)o->max_memory_per_key_mb << 20,
	};
}

static void quota_add_path(struct ibtrs_quota_use *use, const struct ibtrs_srv_path *path)
{
	switch (path->state) {
	case IBTRS_SRV_PATH_CONNECTING:
	case IBTRS_SRV_PATH_REFUSED:
		use->half_open++;
		break;
	case IBTRS_SRV_PATH_UP:
		break;
	case IBTRS_SRV_PATH_CLOSED:
		if (!path->given)	/* it is freed next */
			return;
		use->ending++;
		break;
	}
	use->bytes += path->chunks_len;
}

/* Is a client in from this address, or was until a moment ago? @key NULL: with whatever key. */
static bool quota_is_in(const struct ibtrs_srv *srv, const char *peer, const char *key)
{
	const struct ibtrs_srv_session *s;
	const struct ibtrs_srv_path *path;

	for (s = srv->sessions; s; s = s->next)
		for (path = s->paths; path; path = path->next)
			if (path->state == IBTRS_SRV_PATH_UP && (!key || !strcmp(s->key, key)) &&
			    ibtrs_srv_name_has_peer(s, peer))
				return true;
	return ibtrs_srv_name_kept_for(srv, peer, key);
}

/* Counts the sessions and paths of all clients, for a client from @peer that has proved @key. */
static struct ibtrs_quota_client quota_count(const struct ibtrs_srv *srv, const char *peer,
					     const char *key, bool known)
{
	struct ibtrs_quota_client c = {
		.known	= known,
		.keyed	= key[0],
		.leaves	= srv->opts.auth == IBTRS_SRV_AUTH_OPTIONAL,
	};
	const struct ibtrs_srv_session *s;
	const struct ibtrs_srv_path *path;

	for (s = srv->sessions; s; s = s->next) {
		bool named = s->name[0], same_key = !strcmp(s->key, key);

		c.all.sessions += named;
		c.key.sessions += named && same_key;
		c.peer.sessions += named && same_key && !strcmp(s->peer, peer);
		for (path = s->paths; path; path = path->next) {
			quota_add_path(&c.all, path);
			if (path->known == known)
				quota_add_path(&c.alike, path);
			if (same_key)
				quota_add_path(&c.key, path);
			if (same_key && !strcmp(path->peer, peer))
				quota_add_path(&c.peer, path);
		}
	}
	return c;
}

int ibtrs_srv_quota_conn(const struct ibtrs_srv *srv, const char *peer, bool *known)
{
	struct ibtrs_quota_client c = { .known = quota_is_in(srv, peer, NULL) };
	const struct ibtrs_srv_conn *conn;
	struct ibtrs_quota_max max;
	const char *why;

	quota_max(srv, &max);
	*known = c.known;
	for (conn = srv->conns; conn; conn = conn->next) {
		if (conn->dead || conn->known != c.known ||
		    (conn->path && conn->path->state == IBTRS_SRV_PATH_UP))
			continue;
		c.alike.half_bytes++;
		c.peer.half_bytes += !strcmp(conn->peer, peer);
	}
	return ibtrs_quota_check(&max, &c, IBTRS_QUOTA_CONN, 1, &why);
}

int ibtrs_srv_quota_path(const struct ibtrs_srv *srv, const char *peer, const char *key, bool fresh,
			 bool *known, const char **why)
{
	struct ibtrs_quota_client c;
	struct ibtrs_quota_max max;
	int err = 0;

	quota_max(srv, &max);
	*known = key[0] || quota_is_in(srv, peer, key);
	c = quota_count(srv, peer, key, *known);
	if (fresh)
		err = ibtrs_quota_check(&max, &c, IBTRS_QUOTA_SESSION, 1, why);
	return err ?: ibtrs_quota_check(&max, &c, IBTRS_QUOTA_PATH, 1, why);
}

int ibtrs_srv_quota_let_in(const struct ibtrs_srv *srv, const struct ibtrs_srv_path *path,
			   const char **why)
{
	const struct ibtrs_srv_session *s = path->session;
	struct ibtrs_quota_client c;
	struct ibtrs_quota_max max;
	int err = 0;

	quota_max(srv, &max);
	if (!s->name[0]) {
		c = quota_count(srv, s->peer, s->key, path->known);
		err = ibtrs_quota_check(&max, &c, IBTRS_QUOTA_SESSION, 1, why);
	}
	c = quota_count(srv, path->peer, s->key, path->known);
	return err ?: ibtrs_quota_check(&max, &c, IBTRS_QUOTA_LET_IN, quota_path_bytes(srv), why);
}
