// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Names of sessions: each belongs to one session among those of its key, or among those without a
 * key. Names of clients that were lost are kept for name_keep_s (logic/kept), as by the kernel's
 * server (ibtrs/server/name.c). All under the server's lock.
 */
#include <stdlib.h>
#include "ibtrs/user/srv.h"

/* A Unix socket has no address: all clients of this host are one. */
static struct ibtrs_addr name_addr(const char *peer)
{
	struct ibtrs_addr addr;
	const char *why;

	if (ibtrs_addr_parse(peer, strlen(peer), &addr, &why))
		memset(&addr, 0, sizeof(addr));
	return addr;
}

static u64 name_now(const struct ibtrs_srv *srv)
{
	return ibtrs_srv_now(srv) / 1000;
}

static void name_free(struct ibtrs_kept *k)
{
	struct ibtrs_kept *next;

	for (; k; k = next) {
		next = k->next;
		free(k);
	}
}

void ibtrs_srv_names_free(struct ibtrs_srv *srv)
{
	name_free(srv->keeper.first);
	srv->keeper.first = NULL;
}

void ibtrs_srv_name_peer(struct ibtrs_srv_session *s, const char *peer)
{
	const struct ibtrs_addr addr = name_addr(peer);

	ibtrs_peers_add(&s->peers, &addr);
}

bool ibtrs_srv_name_has_peer(const struct ibtrs_srv_session *s, const char *peer)
{
	const struct ibtrs_addr addr = name_addr(peer);

	return ibtrs_peers_have(&s->peers, &addr);
}

bool ibtrs_srv_name_kept_for(const struct ibtrs_srv *srv, const char *peer, const char *key)
{
	const struct ibtrs_addr addr = name_addr(peer);
	u64 now = name_now(srv);

	return ibtrs_kept_caller(&srv->keeper, now, false, NULL, &addr) != IBTRS_CALLER_STRANGER ||
	       (!key && ibtrs_kept_caller(&srv->keeper, now, true, NULL, &addr) !=
			IBTRS_CALLER_STRANGER);
}

static void name_keep(struct ibtrs_srv *srv, struct ibtrs_srv_session *s)
{
	struct ibtrs_kept *k = srv->keeper.keep_s ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return;
	k->since_s = s->down_ms / 1000;
	k->peers = s->peers;
	memcpy(k->uuid, s->uuid, sizeof(k->uuid));
	snprintf(k->key, sizeof(k->key), "%s", s->key);
	snprintf(k->name, sizeof(k->name), "%s", s->name);
	name_free(s->kept);
	s->kept = NULL;
	name_free(ibtrs_kept_add(&srv->keeper, k));
}

void ibtrs_srv_name_end(struct ibtrs_srv *srv, struct ibtrs_srv_session *s,
			enum ibtrs_srv_left left)
{
	if (left == IBTRS_SRV_LEFT_OPEN && !s->given_up)
		name_keep(srv, s);
	else if (left == IBTRS_SRV_LEFT_UNUSED && s->kept)
		name_free(ibtrs_kept_add(&srv->keeper, s->kept));
	else
		name_free(s->kept);
	s->kept = NULL;
}

/*
 * May a client from @peer have the name of the session @other? 0, or an errno and @why. A session
 * of which only requests are left that its client has given up gives its name up.
 */
static int name_taken(struct ibtrs_srv *srv, struct ibtrs_srv_session *other, const char *peer,
		      const char **why)
{
	bool there = false, here = false, up = false;
	const struct ibtrs_srv_path *path;

	for (path = other->paths; path; path = path->next) {
		there |= !ibtrs_srv_path_lingers(path);
		here |= !strcmp(path->peer, peer);
		up |= path->state == IBTRS_SRV_PATH_UP;
	}
	if (!there) {
		name_keep(srv, other);
		other->given_up = true;
		return 0;
	}
	/* No two hosts have the same address. */
	*why = here ? "an earlier session of this host has this name, and has not ended yet" :
	       up   ? "another host has a session of this name" :
		      "a session that has this name is about to end, or to begin";
	return up && !here ? -EEXIST : -EBUSY;
}

/* Is the name kept for another client? Else a record of it is the session's. */
static int name_ask_kept(struct ibtrs_srv *srv, const struct ibtrs_srv_path *path,
			 const char *name, char *said, const char **why)
{
	const struct ibtrs_addr addr = name_addr(path->peer);
	struct ibtrs_srv_session *s = path->session;
	enum ibtrs_kept_whose whose;
	u64 now = name_now(srv);
	struct ibtrs_kept *k;

	whose = ibtrs_kept_take(&srv->keeper, now, name, s->key, s->uuid, &addr, &k);
	if (whose == IBTRS_KEPT_ANOTHER) {
		ibtrs_kept_words(&srv->keeper, k, now, said, IBTRS_WHY_LEN);
		*why = said;
		return -EEXIST;
	}
	if (whose == IBTRS_KEPT_OLD)
		name_free(k);
	if (whose == IBTRS_KEPT_YOURS) {
		name_free(s->kept);
		ibtrs_peers_join(&s->peers, &k->peers);
		s->kept = k;
	}
	return 0;
}

int ibtrs_srv_name_take(struct ibtrs_srv *srv, struct ibtrs_srv_path *path, const char *name,
			char said[IBTRS_WHY_LEN], const char **why)
{
	struct ibtrs_srv_session *s = path->session, *other;
	int err = 0;

	*why = "the session's other paths have another name";
	if (s->name[0] && strcmp(s->name, name))
		return -EPROTO;
	if (s->name[0] && !s->given_up)
		return 0;
	for (other = srv->sessions; other && !err; other = other->next)
		if (other != s && !other->given_up && !strcmp(other->key, s->key) &&
		    !strcmp(other->name, name))
			err = name_taken(srv, other, path->peer, why);
	err = err ?: name_ask_kept(srv, path, name, said, why);
	if (err)
		return err;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->given_up = false;
	return 0;
}
