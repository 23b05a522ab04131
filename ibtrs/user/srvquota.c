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

/* What a client uses; @peer NULL: all who have that key, or none; @key NULL: all. */
static struct ibtrs_quota_use quota_use(const struct ibtrs_srv *srv, const char *peer,
					const char *key)
{
	const struct ibtrs_srv_session *s;
	const struct ibtrs_srv_path *path;
	struct ibtrs_quota_use use = {};

	for (s = srv->sessions; s; s = s->next) {
		if (key && strcmp(s->key, key))
			continue;
		use.sessions += s->name[0] && (!peer || !strcmp(s->peer, peer));
		for (path = s->paths; path; path = path->next)
			if (!peer || !strcmp(path->peer, peer))
				quota_add_path(&use, path);
	}
	return use;
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

static struct ibtrs_quota_use quota_strangers(const struct ibtrs_srv *srv)
{
	const struct ibtrs_srv_session *s;
	const struct ibtrs_srv_path *path;
	struct ibtrs_quota_use use = {};

	for (s = srv->sessions; s; s = s->next)
		for (path = s->paths; path; path = path->next)
			if (!path->known)
				quota_add_path(&use, path);
	return use;
}

int ibtrs_srv_quota_conn(const struct ibtrs_srv *srv, const char *peer, bool *known)
{
	struct ibtrs_quota_use alike = {}, own = {};
	const struct ibtrs_srv_conn *conn;
	struct ibtrs_quota_max max;
	const char *why;

	quota_max(srv, &max);
	*known = quota_is_in(srv, peer, NULL);
	for (conn = srv->conns; conn; conn = conn->next) {
		if (conn->dead || conn->known != *known ||
		    (conn->path && conn->path->state == IBTRS_SRV_PATH_UP))
			continue;
		alike.half_bytes++;
		own.half_bytes += !strcmp(conn->peer, peer);
	}
	return ibtrs_quota_conn(&max, &alike, &own, *known, 1, &why);
}

static int quota_session(const struct ibtrs_srv *srv, const char *peer, const char *key,
			 const struct ibtrs_quota_max *max, const char **why)
{
	const struct ibtrs_quota_use own = quota_use(srv, peer, key);
	const struct ibtrs_quota_use alike = quota_use(srv, NULL, key);
	const struct ibtrs_quota_use all = quota_use(srv, NULL, NULL);
	int err;

	err = ibtrs_quota_session(max, all.sessions, &own, why);
	if (!err && key[0])
		err = ibtrs_quota_key_session(max, &alike, why);
	else if (!err && srv->opts.auth == IBTRS_SRV_AUTH_OPTIONAL)
		err = ibtrs_quota_session_without_key(max, &alike, why);
	return err;
}

int ibtrs_srv_quota_path(const struct ibtrs_srv *srv, const char *peer, const char *key, bool fresh,
			 bool *known, const char **why)
{
	const struct ibtrs_quota_use own = quota_use(srv, peer, key);
	const struct ibtrs_quota_use strangers = quota_strangers(srv);
	struct ibtrs_quota_max max;
	int err;

	quota_max(srv, &max);
	*known = key[0] || quota_is_in(srv, peer, key);
	err = fresh ? quota_session(srv, peer, key, &max, why) : 0;
	return err ?: ibtrs_quota_path(&max, &strangers, &own, *known, why);
}

int ibtrs_srv_quota_let_in(const struct ibtrs_srv *srv, const struct ibtrs_srv_path *path,
			   const char **why)
{
	const struct ibtrs_srv_session *s = path->session;
	const struct ibtrs_quota_use own = quota_use(srv, path->peer, s->key);
	const struct ibtrs_quota_use alike = quota_use(srv, NULL, s->key);
	const struct ibtrs_quota_use all = quota_use(srv, NULL, NULL);
	u64 bytes = quota_path_bytes(srv);
	struct ibtrs_quota_max max;
	int err;

	quota_max(srv, &max);
	err = s->name[0] ? 0 : quota_session(srv, s->peer, s->key, &max, why);
	err = err ?: ibtrs_quota_let_in(&max, &own, bytes, why);
	if (!err && s->key[0])
		err = ibtrs_quota_key_let_in(&max, &alike, bytes, why);
	else if (!err && srv->opts.auth == IBTRS_SRV_AUTH_OPTIONAL)
		err = ibtrs_quota_let_in_without_key(&max, &alike, bytes, why);
	if (err)
		return err;
	*why = "as much memory in use as max_memory_mb allows";
	return bytes > max.bytes || all.bytes > max.bytes - bytes ? -ENOMEM : 0;
}
