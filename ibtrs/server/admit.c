// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admission of a connection (protocol 2.2, 2.3): checks the caps, the owner of the session, the
 * path, and whether the connection's place is free. handshake.c calls it for each decoded CONN_REQ,
 * and then builds the connection.
 *
 * A refusal is an errno of protocol 2.3, or -EBUSY for "the old one is still there" (L9), with
 * words for the log. A refused CONN_REQ harms no other peer: only a peer that knows both uuids and
 * comes from the same address can end a path by it.
 *
 * A session is found by its uuid and the key that was proved, or by its uuid alone among those
 * without a key. A CONN_REQ with another key, or without one, finds no session of that key and
 * changes nothing of it, but may create a session of its own with the same uuid.
 *
 * Locking: all of it under ibtrs_srv.lock. A connection that is let in is returned with its
 * conn->lock held, so that the path cannot be freed before the connection is built.
 */
#include <linux/slab.h>
#include "ibtrs/server/auth.h"
#include "ibtrs/server/debug.h"
#include "ibtrs/server/handshake.h"
#include "ibtrs/server/quota.h"
#include "ibtrs/server/session.h"

/* A CONN_REQ with cid 0 names a path that exists. Always a refusal. */
static int admit_again(struct ibtrs_srv_path *path, const struct ibtrs_conn_req *req,
		       const struct ibtrs_addr_pair *addr, const char **why)
{
	if (!ibtrs_addr_equal(&path->addr.src, &addr->src))
		return refuse(why, "the path belongs to another client address", -ECONNRESET);
	if (ibtrs_srv_path_state(path) < IBTRS_SRV_PATH_CLOSING &&
	    !ibtrs_msg_conn_req_newer(req, path->recon_cnt))
		return refuse(why, "connection id in use", -ECONNRESET);
	ibtrs_srv_path_close(path, "the client connects anew");
	return refuse(why, "the path's old incarnation is still draining", -EBUSY);
}

static int admit_same_path(struct ibtrs_srv_path *path, const struct ibtrs_conn_req *req,
			   const struct ibtrs_addr_pair *addr, const char **why)
{
	enum ibtrs_srv_path_state state = ibtrs_srv_path_state(path);
	u64 bytes = ibtrs_srv_path_conn_bytes(false);
	int err;

	if (!req->cid)
		return admit_again(path, req, addr, why);
	if (state >= IBTRS_SRV_PATH_CLOSING)
		return refuse(why, "the path is being closed", -EBUSY);
	if (state != IBTRS_SRV_PATH_CONNECTING)
		return refuse(why, "the path is complete", -ECONNRESET);
	*why = "another client address, number of connections, incarnation or set of extensions than cid 0";
	if (!ibtrs_addr_equal(&path->addr.src, &addr->src) || req->cid_num != path->nr_conns ||
	    req->recon_cnt != path->recon_cnt || req->ext != path->ext)
		return -ECONNRESET;
	if (!atomic_read_acquire(&path->nr_accepted))
		return refuse(why, "cid 0 is not accepted yet", -ECONNRESET);
	if (path->conns[req->cid].taken)
		return refuse(why, "connection id in use", -ECONNRESET);
	err = ibtrs_srv_quota_conn(path, bytes, why);
	if (!err)
		path->queue_bytes += bytes;
	return err;
}

static int admit_new_path(struct ibtrs_srv_session *s, const struct ibtrs_conn_req *req,
			  const struct ibtrs_addr_pair *addr, const struct ibtrs_srv_proof *proof,
			  struct ibtrs_srv_path **out, const char **why)
{
	struct ibtrs_srv_path *other =
		list_first_entry_or_null(&s->paths, struct ibtrs_srv_path, entry);
	int err;

	err = ibtrs_srv_session_may_add(s, addr, why);
	if (err)
		return err;
	/* A path without first_conn joins a session and makes no second one: no warning. */
	if (other && other->first_conn && req->first_conn && ibtrs_srv_plain() &&
	    ibtrs_srv_path_state(other) == IBTRS_SRV_PATH_CONNECTING)
		pr_warn("two paths ask to make one session: in-kernel servers may make two\n");
	/* A path without tokens would bypass the fences of the other paths. */
	if (other && other->ext != req->ext)
		return refuse(why, "another set of extensions than the session's other paths",
			      -ECONNRESET);
	*out = ibtrs_srv_path_alloc(s, req, addr, proof);
	if (!*out)
		return refuse(why, "out of memory", -ENOMEM);
	ibtrs_srv_session_add_path(s, *out);
	return 0;
}

/*
 * The path of a CONN_REQ with AUTH that is not the first one: it names no key, but its proof is
 * made with the session key of its path. Sessions of several keys may have this session uuid, and
 * each of them a path with this path uuid. NULL: the proof is of none of them.
 */
static struct ibtrs_srv_path *admit_proved_path(const struct ibtrs_conn_req *req, const void *wire)
{
	struct ibtrs_srv_session *s;

	list_for_each_entry(s, &ibtrs_srv.sessions, entry) {
		struct ibtrs_srv_path *path;

		if (!s->key[0] || memcmp(s->uuid, req->session_uuid, sizeof(s->uuid)))
			continue;
		path = ibtrs_srv_session_find_path(s, req->path_uuid);
		/* A path that is complete has no Ks any more. */
		if (path && !test_bit(0, &path->info_seen) && ibtrs_srv_auth_next(path, wire))
			return path;
	}
	return NULL;
}

/* The session and the path that a CONN_REQ names, NULL where there is none; or a refusal. */
static int admit_find(const struct ibtrs_conn_req *req, const void *wire, const char *key,
		      struct ibtrs_srv_session **s, struct ibtrs_srv_path **path, const char **why)
{
	if (req->cid && req->ext & IBTRS_EXT_AUTH) {
		*path = admit_proved_path(req, wire);
		if (!*path) {
			/* The answer is the same whether the path exists or not. */
			ibtrs_srv_auth_failed();
			return refuse(why, "the connection has no good proof of its path",
				      -EKEYREJECTED);
		}
		*s = (*path)->session;
		return 0;
	}
	*s = ibtrs_srv_session_find(req->session_uuid, key);
	*path = *s ? ibtrs_srv_session_find_path(*s, req->path_uuid) : NULL;
	return 0;
}

static int admit_find_path(const struct ibtrs_conn_req *req, const void *wire,
			   const struct ibtrs_addr_pair *addr, const struct ibtrs_srv_proof *proof,
			   struct ibtrs_srv_path **out, const char **why)
{
	struct ibtrs_srv_session *s;
	bool created;
	int err;

	err = admit_find(req, wire, proof->key, &s, out, why);
	if (err)
		return err;
	created = !s;
	if (s && !s->nr_paths)
		return refuse(why, "the session is just ending", -EBUSY);
	if (!s && !req->first_conn && !READ_ONCE(ibtrs_srv_params.legacy_clients))
		return refuse(why, "no such session", -ENXIO);
	if (s)
		WRITE_ONCE(s->knocked, jiffies);
	if (*out)
		return admit_same_path(*out, req, addr, why);
	if (req->cid)
		return refuse(why, "the first connection of a path must be cid 0", -ECONNRESET);
	err = ibtrs_srv_quota_path(&addr->src, proof->key,
				   ibtrs_srv_path_first_bytes(req->cid_num), created, why);
	if (err)
		return err;
	if (!s) {
		s = ibtrs_srv_session_create(req->session_uuid, proof->key, why);
		if (IS_ERR(s))
			return PTR_ERR(s);
	}
	err = admit_new_path(s, req, addr, proof, out, why);
	if (err && created)
		ibtrs_srv_session_drop(s);
	return err;
}

int ibtrs_srv_admit(const struct ibtrs_conn_req *req, const void *wire,
		    const struct ibtrs_addr_pair *addr, struct ibtrs_srv_conn **out,
		    const char **why)
{
	struct ibtrs_srv_path *path = NULL;
	struct ibtrs_srv_proof proof = {};
	struct ibtrs_srv_conn *conn;
	int err = 0;

	guard(mutex)(&ibtrs_srv.lock);
	if (!ibtrs_srv.accepting)
		return refuse(why, "the server is closing", -ECONNRESET);
	/* Checked under the lock, so that ibtrs_srv_close_refused() misses no session. */
	if (!req->cid || !(req->ext & IBTRS_EXT_AUTH))
		err = ibtrs_srv_auth_first(req, wire, &addr->src, &proof, why);
	err = err ?: admit_find_path(req, wire, addr, &proof, &path, why);
	memzero_explicit(&proof, sizeof(proof));
	if (err)
		return err;
	conn = &path->conns[req->cid];
	mutex_lock(&conn->lock);
	if (conn->dead) {
		mutex_unlock(&conn->lock);
		return refuse(why, "the path is being closed", -EBUSY);
	}
	conn->taken = true;
	*out = conn;
	return 0;
}
