// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Making and unmaking sessions, paths and connections of a server.
 *
 * A path that is closed sends and receives nothing more. It, its chunks and its session stay until
 * the user has replied to all of its ops (law L6), since these may still be executed.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/user/srv.h"

u64 ibtrs_srv_now(const struct ibtrs_srv *srv)
{
	return srv->opts.now_ms ? srv->opts.now_ms(srv->opts.priv) : ibtrs_user_clock();
}

struct ibtrs_srv_session *ibtrs_srv_session_new(struct ibtrs_srv *srv, const u8 *uuid,
						const char *peer, const char *key, u32 ext)
{
	struct ibtrs_srv_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->slots = calloc(srv->limits.queue_depth, sizeof(*s->slots));
	if (!s->slots || ibtrs_user_random(&s->life, sizeof(s->life)) ||
	    ibtrs_auth_identity(&ibtrs_auth_user, uuid, key, s->identity)) {
		free(s->slots);
		free(s);
		return NULL;
	}
	s->life |= 1;			/* not 0 */
	memcpy(s->uuid, uuid, sizeof(s->uuid));
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
	snprintf(s->key, sizeof(s->key), "%s", key);
	s->id = ++srv->next_id;
	s->ext = ext;
	s->next = srv->sessions;
	srv->sessions = s;
	srv->reap = true;		/* if it gets no path after all */
	return s;
}

struct ibtrs_srv_path *ibtrs_srv_path_new(struct ibtrs_srv *srv, struct ibtrs_srv_session *s,
					  const struct ibtrs_conn_req *req, const char *peer,
					  const struct ibtrs_srv_proof *proof)
{
	struct ibtrs_srv_path *path = calloc(1, sizeof(*path));

	if (!path)
		return NULL;
	path->conns = calloc(req->cid_num, sizeof(*path->conns));
	if (!path->conns) {
		free(path);
		return NULL;
	}
	path->srv = srv;
	path->session = s;
	path->memory = -1;
	memcpy(path->uuid, req->path_uuid, sizeof(path->uuid));
	path->proof = *proof;
	path->recon_cnt = req->recon_cnt;
	path->nr_conns = req->cid_num;
	snprintf(path->peer, sizeof(path->peer), "%s", peer);
	path->limits = srv->limits;
	path->limits.fence = s->ext & IBTRS_EXT_FENCE;
	path->due = ibtrs_srv_now(srv) + IBTRS_SRV_HALF_MS;
	ibtrs_srv_name_peer(s, peer);
	path->next = s->paths;
	s->paths = path;
	return path;
}

static void path_ops_init(struct ibtrs_srv_path *path)
{
	const struct ibtrs_limits *l = &path->limits;
	u32 slot;

	for (slot = 0; slot < l->queue_depth; slot++) {
		struct ibtrs_srv_op *x = &path->ops[slot];

		x->path = path;
		x->slot = slot;
		x->op.hdr = path->hdrs + (size_t)slot * l->max_hdr_size;
		x->op.data = path->chunks + (size_t)slot * l->chunk_size;
		x->op.memory = path->memory;
		x->op.session = path->session->id;
		x->op.name = path->session->name;
		x->op.key = path->session->key;
		x->op.uuid = path->session->identity;
	}
}

int ibtrs_srv_path_memory(struct ibtrs_srv *srv, struct ibtrs_srv_path *path, const char **why)
{
	struct ibtrs_qp *qp = path->conns[0]->qp;
	const struct ibtrs_limits *l = &path->limits;
	u32 nr = ibtrs_chunkmap_mr_count(l->queue_depth, U32_MAX / l->chunk_size), i;
	u32 len = l->queue_depth / nr * l->chunk_size;
	int err = 0;

	*why = "the server has no memory for the chunks of this path";
	path->ops = calloc(l->queue_depth, sizeof(*path->ops));
	path->hdrs = calloc(l->queue_depth, l->max_hdr_size);
	path->events = calloc(IBTRS_SRV_EVENTS, sizeof(*path->events));
	path->regions.v = calloc(nr, sizeof(*path->regions.v));
	path->chunks_len = (size_t)l->queue_depth * l->chunk_size;
	/* Zeroed, and page aligned: a client must not read what was here before (E-14). */
	path->chunks = mmap(NULL, path->chunks_len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (path->chunks == MAP_FAILED)
		path->chunks = NULL;
	if (!path->ops || !path->hdrs || !path->events || !path->regions.v || !path->chunks)
		return -ENOMEM;		/* what there is goes with the path */
	path->regions.nr = nr;
	for (i = 0; i < nr && !err; i++)
		err = path->verbs->reg(qp, &path->regions, i, path->chunks + (size_t)i * len, len);
	if (err)
		*why = qp->why;
	else if (srv->opts.memory && path->regions.locked)
		path->memory = srv->opts.memory(srv->opts.priv, path->chunks, path->chunks_len);
	path_ops_init(path);
	return err;
}

void ibtrs_srv_conn_kill(struct ibtrs_srv_conn *conn)
{
	conn->qp->verbs->close(conn->qp);
	conn->dead = true;
	conn->srv->reap = true;
}

void ibtrs_srv_path_close(struct ibtrs_srv *srv, struct ibtrs_srv_path *path)
{
	u32 i;

	if (path->state == IBTRS_SRV_PATH_CLOSED)
		return;
	if (path->state == IBTRS_SRV_PATH_UP)
		path->session->down_ms = ibtrs_srv_now(srv);
	path->state = IBTRS_SRV_PATH_CLOSED;
	path->due = 0;
	for (i = 0; i < path->nr_conns; i++)
		if (path->conns[i])
			ibtrs_srv_conn_kill(path->conns[i]);
	for (i = 0; i < path->regions.nr; i++)
		path->verbs->dereg(&path->regions.v[i]);
	ibtrs_srv_ops_end(path);
	srv->reap = true;
}

static void path_free(struct ibtrs_srv_path *path)
{
	if (path->memory >= 0)
		path->srv->opts.memory_gone(path->srv->opts.priv, path->memory);
	if (path->chunks)
		munmap(path->chunks, path->chunks_len);
	free(path->regions.v);
	free(path->ops);
	free(path->hdrs);
	free(path->events);
	free(path->info);
	free(path->conns);
	explicit_bzero(&path->proof, sizeof(path->proof));
	free(path);
}

static void session_reap(struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_path **at = &s->paths, *path;

	while ((path = *at)) {
		if (path->state != IBTRS_SRV_PATH_CLOSED || path->given) {
			at = &path->next;
			continue;
		}
		*at = path->next;
		path_free(path);
	}
}

void ibtrs_srv_reap(struct ibtrs_srv *srv)
{
	struct ibtrs_srv_conn **conn = &srv->conns, *c;
	struct ibtrs_srv_session **at = &srv->sessions, *s;
	enum ibtrs_srv_left left;

	if (!srv->reap)
		return;
	srv->reap = false;
	while ((c = *conn)) {
		if (!c->dead) {
			conn = &c->next;
			continue;
		}
		*conn = c->next;
		c->qp->verbs->free(c->qp);
		ibtrs_srv_knock_free(c);
		free(c);
	}
	while ((s = *at)) {
		session_reap(s);
		if (s->paths) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		/* One without a name was never let in. */
		left = s->name[0] && srv->opts.gone ? srv->opts.gone(srv->opts.priv, s->id) :
						      IBTRS_SRV_LEFT_CLOSED;
		ibtrs_srv_name_end(srv, s, left);
		free(s->slots);
		free(s);
	}
}
