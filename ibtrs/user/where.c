// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Where a server has RDMA: auto: paths of a client, and the server's answer (protocol 12.2).
 *
 * auto:ADDRESS is two paths, ip:ADDRESS and tcp:ADDRESS. Both connect, the stream a little behind:
 * a connection is the only proof that RDMA leads there. Over the stream the client asks for the
 * addresses at which the server has RDMA, which may be others, and each of them becomes one more
 * path of the session. Requests use streams while no path of RDMA is up (q_pick() in queue.c).
 *
 * There is no auto: without a key. A host that drops the packets of RDMA would get plain text.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include "ibtrs/user/clt.h"
#include "ibtrs/user/rdma.h"
#include "ibtrs/user/srv.h"

#define AUTO		"auto:"
#define AUTO_BEHIND_MS	250		/* RFC 8305 */

/* ---- the client --------------------------------------------------------- */

bool ibtrs_auto_is(const struct ibtrs_clt *clt, const char *text)
{
	return !clt->opts.dial && !strncmp(text, AUTO, strlen(AUTO));
}

int ibtrs_auto_paths(struct ibtrs_clt *clt, const char *text, char why[IBTRS_WHY_LEN])
{
	const char *at = text + strlen(AUTO);
	int err;

	if (!clt->keys.nr)
		return ibtrs_user_why(why, -EINVAL, text,
				      "it may come to a stream, which would be plain text: give a key, or name ip: or tcp: yourself");
	err = ibtrs_clt_path_new(clt, "ip:", at, why) ?: ibtrs_clt_path_new(clt, "tcp:", at, why);
	if (err)
		return err;
	clt->paths[clt->nr_paths - 1].behind = true;
	clt->finds = true;
	return 0;
}

void ibtrs_auto_start(struct ibtrs_clt_path *path)
{
	if (path->behind)
		path->due = ibtrs_ctx_now(path->clt->ctx) + AUTO_BEHIND_MS;
	else
		ibtrs_clt_path_post(path, IBTRS_PATH_EV_CONNECT);
}

void ibtrs_auto_hurry(struct ibtrs_clt *clt)
{
	u32 i;

	for (i = 0; i < clt->nr_paths; i++)
		if (clt->paths[i].behind && clt->paths[i].state == IBTRS_PATH_IDLE)
			ibtrs_clt_path_post(&clt->paths[i], IBTRS_PATH_EV_CONNECT);
}

void ibtrs_auto_ask(struct ibtrs_clt_path *path)
{
	const struct ibtrs_frame f = { .op = IBTRS_FRAME_WHERE };
	struct ibtrs_q *q = &path->clt->qs[0];
	struct ibtrs_clt_conn *conn;

	if (!path->clt->finds || path->place.rdma)
		return;
	pthread_mutex_lock(&q->lock);
	conn = q->conns[path->idx];
	if (conn && !conn->cm.posted) {
		ibtrs_wr_init(&conn->cm);
		ibtrs_wr_frame(&conn->cm, &f);
		ibtrs_qp_post(conn->qp, &conn->cm);
		conn->qp->verbs->flush(conn->qp);
	}
	pthread_mutex_unlock(&q->lock);
}

/* False: no such address leads to a host. */
static bool where_text(const struct ibtrs_wire_where *w, char text[IBTRS_PATH_STR_MAX])
{
	static const u8 mapped[12] = { [10] = 0xff, 0xff };
	bool ip4 = !memcmp(w->gid, mapped, sizeof(mapped));
	struct ibtrs_addr a = { .kind = ip4 ? IBTRS_ADDR_IP4 : IBTRS_ADDR_IP6 };
	struct ibtrs_addr_pair pair;
	char at[IBTRS_ADDR_STR_MAX];
	const char *why;

	memcpy(a.raw, ip4 ? w->gid + sizeof(mapped) : w->gid, ip4 ? 4 : sizeof(w->gid));
	ibtrs_addr_format(&a, at, sizeof(at));
	if (!w->port || ibtrs_addr_pair_parse(at, strlen(at), &pair, &why))
		return false;
	snprintf(text, IBTRS_PATH_STR_MAX, ip4 ? "ip:%s:%u" : "ip:[%s]:%u", at + strlen("ip:"),
		 le16_to_cpu(w->port));
	return true;
}

static void where_add(struct ibtrs_clt *clt, const char *text)
{
	const struct ibtrs_place *at;
	struct ibtrs_place p;
	const char *why;
	u32 i;

	if (clt->nr_paths == clt->max_paths || ibtrs_place_parse(text, &p, &why))
		return;
	for (i = 0; i < clt->nr_paths; i++) {
		at = &clt->paths[i].place;
		if (at->rdma && at->port == p.port && ibtrs_addr_equal(&at->addr, &p.addr))
			return;
	}
	if (!ibtrs_clt_path_new(clt, "", text, NULL))
		ibtrs_clt_path_post(&clt->paths[clt->nr_paths - 1], IBTRS_PATH_EV_CONNECT);
}

const char *ibtrs_auto_told(struct ibtrs_clt_path *path, const struct ibtrs_wc *wc)
{
	const struct ibtrs_wire_where *w = wc->data;
	char text[IBTRS_PATH_STR_MAX];
	u32 nr = wc->len / sizeof(*w), i;

	if (!path->clt->finds || path->place.rdma)
		return "an answer to what was not asked";
	if (wc->len % sizeof(*w) || nr > IBTRS_WHERE_MAX)
		return "a list of addresses that is no list";
	for (i = 0; i < nr; i++)
		if (where_text(&w[i], text))
			where_add(path->clt, text);
	ibtrs_ctx_wake(path->clt->ctx);
	return NULL;
}

/* ---- the server --------------------------------------------------------- */

static bool place_is_any(const struct ibtrs_place *p)
{
	static const u8 none[IBTRS_GID_LEN];

	return !memcmp(p->addr.raw, none, sizeof(none));
}

static u32 where_listens(const struct ibtrs_srv *srv, const struct ibtrs_srv_listener *l,
			 struct ibtrs_wire_where *w, u32 max)
{
	u8 gid[IBTRS_WHERE_MAX][IBTRS_GID_LEN];
	struct sockaddr_storage at;
	u32 nr = 1, i;

	if (!l->rdma || !max)
		return 0;
	if (place_is_any(&l->place)) {
		nr = srv->rdma->where(l->place.family, gid, max);
	} else {
		ibtrs_place_sockaddr(&l->place, &at);
		ibtrs_place_gid((struct sockaddr *)&at, gid[0]);
	}
	for (i = 0; i < nr; i++) {
		w[i] = (struct ibtrs_wire_where){ .port = cpu_to_le16(l->place.port) };
		memcpy(w[i].gid, gid[i], sizeof(w[i].gid));
	}
	return nr;
}

/* Once for each life of a path: looking costs something. */
bool ibtrs_srv_where(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc)
{
	struct ibtrs_wire_where w[IBTRS_WHERE_MAX];
	struct ibtrs_srv *srv = conn->srv;
	struct ibtrs_srv_listener *l;
	const char *why;
	u32 nr = 0;

	if (conn->cid || wc->len || conn->path->told)
		return false;
	conn->path->told = true;
	for (l = srv->listeners; l; l = l->next)
		nr += where_listens(srv, l, w + nr, IBTRS_WHERE_MAX - nr);
	return !ibtrs_auth_say(conn->qp, &conn->cm, IBTRS_FRAME_WHERE, w, nr * sizeof(*w), &why);
}
