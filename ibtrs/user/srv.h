/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The server's objects: session, path, connection, op. One lock, that of the server, is over all
 * of them. What a closed path leaves behind is freed by ibtrs_srv_reap(), which the outermost
 * functions call last, so that no function has to expect its objects to go.
 */
#ifndef IBTRS_USER_SRV_H
#define IBTRS_USER_SRV_H

#include "ibtrs/logic/fence.h"
#include "ibtrs/logic/kept.h"
#include "ibtrs/user/auth.h"
#include "ibtrs/user/ctx.h"
#include "ibtrs/user/verbs.h"

#define IBTRS_SRV_HALF_MS	10000	/* for a handshake; half of it until the CONN_REQ */
#define IBTRS_SRV_REFUSED_MS	2000	/* protocol 8.5 */
#define IBTRS_SRV_EVENTS	8	/* that wait to be sent, for each path */
#define IBTRS_SRV_FEIGNED	"the client's address is not that of its GID"

struct ibtrs_transport;
struct ibtrs_srv_grant;
struct ibtrs_srv_knock;
struct ibtrs_srv_path;

enum ibtrs_srv_kind {			/* what an event is about: first member of both */
	IBTRS_SRV_LISTENER,
	IBTRS_SRV_CONN,
};

struct ibtrs_srv_listener {
	enum ibtrs_srv_kind kind;
	int fd;
	struct ibtrs_place place;
	struct ibtrs_rdma_listener *rdma;	/* NULL: fd is a socket */
	struct ibtrs_srv_listener *next;
};

struct ibtrs_srv_conn {
	enum ibtrs_srv_kind kind;
	struct ibtrs_srv_conn *next;
	struct ibtrs_srv *srv;
	struct ibtrs_srv_path *path;	/* NULL before its CONN_REQ */
	struct ibtrs_srv_knock *knock;	/* its first message was AUTH_REQ */
	u16 cid;
	bool dead;
	bool known;			/* a client was in from its address when it came */
	u64 due;			/* for its CONN_REQ, or for the exchange */
	char peer[IBTRS_ADDR_STR_MAX];
	struct ibtrs_qp *qp;
	struct ibtrs_wr cm;
	struct ibtrs_wr hb_msg;
	struct ibtrs_wr hb_ack;
	struct ibtrs_wr trial;
};

enum ibtrs_srv_op_state {
	IBTRS_OP_FREE,
	IBTRS_OP_PARKED,		/* waits for an earlier request of its slot */
	IBTRS_OP_READY,			/* on srv->ready */
	IBTRS_OP_GIVEN,			/* the user has it */
	IBTRS_OP_ANSWERED,		/* free when wr is sent */
};

struct ibtrs_srv_op {
	struct ibtrs_op op;
	struct ibtrs_srv_path *path;
	struct ibtrs_srv_conn *conn;
	enum ibtrs_srv_op_state state;
	bool admitted;			/* the slot's fence counts it as running */
	bool awaited;			/* the user has it, and its path's next life waits for it */
	bool forgettable;
	bool need_inval;
	u32 slot;
	u64 token;
	struct ibtrs_desc desc;
	struct ibtrs_srv_op *next;	/* on srv->ready */
	struct ibtrs_wr wr;
};

enum ibtrs_srv_path_state {
	IBTRS_SRV_PATH_CONNECTING,
	IBTRS_SRV_PATH_REFUSED,		/* waits for the client to go */
	IBTRS_SRV_PATH_UP,
	IBTRS_SRV_PATH_CLOSED,		/* ops that the user has keep it */
};

struct ibtrs_srv_path {
	struct ibtrs_srv_path *next;	/* of its session */
	struct ibtrs_srv *srv;
	struct ibtrs_srv_session *session;
	u8 uuid[IBTRS_UUID_LEN];
	u16 recon_cnt;
	u16 nr_conns;
	u16 nr_accepted;
	enum ibtrs_srv_path_state state;
	struct ibtrs_srv_conn **conns;
	const struct ibtrs_verbs *verbs;	/* of all of them */
	char peer[IBTRS_ADDR_STR_MAX];
	struct ibtrs_limits limits;
	struct ibtrs_srv_proof proof;
	u8 *chunks;
	size_t chunks_len;
	int memory;			/* the user's number of them, -1: none */
	struct ibtrs_regions regions;
	struct ibtrs_srv_op *ops;
	u8 *hdrs;			/* max_hdr_size for each op */
	struct ibtrs_wr *events;
	u8 *info;			/* INFO_RSP or INFO_REFUSED */
	u32 given;			/* ops that the user has: its memory stays */
	u32 awaited;			/* of these, those that its next life waits for */
	bool known;			/* its client was in, or has proved a key */
	bool told;			/* the client knows where RDMA is */
	u64 due;
	u32 missed;
	bool seen;
};

/* Only its memory is left, for ops that its client waits for no more. */
static inline bool ibtrs_srv_path_lingers(const struct ibtrs_srv_path *path)
{
	return path->state == IBTRS_SRV_PATH_CLOSED && !path->awaited;
}

struct ibtrs_srv_slot {
	struct ibtrs_fence_slot fence;
	struct ibtrs_srv_op *parked;
};

struct ibtrs_srv_session {
	struct ibtrs_srv_session *next;
	u8 uuid[IBTRS_UUID_LEN];
	char key[IBTRS_KEY_NAME_LEN];	/* that it belongs to; empty: to none */
	u8 identity[IBTRS_UUID_LEN];	/* of both */
	u64 id;
	u32 life;
	u32 ext;
	char peer[IBTRS_ADDR_STR_MAX];	/* that made it */
	char name[IBTRS_NAME_LEN];	/* empty: not let in yet */
	bool given_up;			/* the name: only ops that nobody waits for are left */
	struct ibtrs_peers peers;
	u64 down_ms;			/* since then no path is up */
	struct ibtrs_kept *kept;	/* the name was kept for it; or NULL */
	struct ibtrs_srv_path *paths;
	struct ibtrs_srv_slot *slots;
};

struct ibtrs_srv {
	pthread_mutex_t lock;
	struct ibtrs_srv_opts opts;
	struct ibtrs_limits limits;
	int ep;
	int wake;
	const struct ibtrs_transport *rdma;
	struct ibtrs_srv_listener *listeners;
	struct ibtrs_srv_conn *conns;
	struct ibtrs_srv_session *sessions;
	struct ibtrs_srv_grant *grants;
	struct ibtrs_keeper keeper;
	struct ibtrs_srv_op *ready;
	struct ibtrs_srv_op **ready_end;
	u64 next_id;
	u64 due;			/* of the next timer */
	u64 looked_at;			/* when timers were looked at last */
	bool reap;
};

/* ---- op.c --------------------------------------------------------------- */
void ibtrs_srv_rx(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc);
/* The path is closed: its ops that the user does not have end. */
void ibtrs_srv_ops_end(struct ibtrs_srv_path *path);
void ibtrs_srv_hb_send(struct ibtrs_srv_conn *conn);

/* ---- admit.c ------------------------------------------------------------ */
/* For the application's log. */
void ibtrs_srv_refused(const struct ibtrs_srv *srv, const char *peer, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ibtrs_srv_admit(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc);
void ibtrs_srv_info(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc);

/* ---- where.c ------------------------------------------------------------ */
/* A client asks where RDMA is. False: it may not. */
bool ibtrs_srv_where(struct ibtrs_srv_conn *conn, const struct ibtrs_wc *wc);

/* ---- srvname.c: who may have which name ---------------------------------- */
/* The session comes from there. */
void ibtrs_srv_name_peer(struct ibtrs_srv_session *s, const char *peer);
/* Has it a path from there, or had? */
bool ibtrs_srv_name_has_peer(const struct ibtrs_srv_session *s, const char *peer);
/* Gives the session of @path its name. Else an errno, and @why, which may be in @said. */
int ibtrs_srv_name_take(struct ibtrs_srv *srv, struct ibtrs_srv_path *path, const char *name,
			char said[IBTRS_WHY_LEN], const char **why);
/* The session has ended. */
void ibtrs_srv_name_end(struct ibtrs_srv *srv, struct ibtrs_srv_session *s,
			enum ibtrs_srv_left left);
/* Is a name kept for a client that came from there, and has proved no key; @key NULL: or one? */
bool ibtrs_srv_name_kept_for(const struct ibtrs_srv *srv, const char *peer, const char *key);
void ibtrs_srv_names_free(struct ibtrs_srv *srv);

/* ---- srvquota.c: how much a client may use ------------------------------ */
/* May an address have another connection? 0 or -ENOMEM. @known: a client is in from there. */
int ibtrs_srv_quota_conn(const struct ibtrs_srv *srv, const char *peer, bool *known);
/* May a client begin a path, of a session that is @fresh? 0, or an errno and @why. */
int ibtrs_srv_quota_path(const struct ibtrs_srv *srv, const char *peer, const char *key, bool fresh,
			 bool *known, const char **why);
/* May the path, whose session may have no name yet, have its chunks? 0, or an errno and @why. */
int ibtrs_srv_quota_let_in(const struct ibtrs_srv *srv, const struct ibtrs_srv_path *path,
			   const char **why);

/* ---- srvpath.c: making and unmaking ------------------------------------- */
struct ibtrs_srv_path *ibtrs_srv_path_new(struct ibtrs_srv *srv, struct ibtrs_srv_session *s,
					  const struct ibtrs_conn_req *req, const char *peer,
					  const struct ibtrs_srv_proof *proof);
struct ibtrs_srv_session *ibtrs_srv_session_new(struct ibtrs_srv *srv, const u8 *uuid,
						const char *peer, const char *key, u32 ext);
/* Chunks and ops: only for a path that is let in. */
int ibtrs_srv_path_memory(struct ibtrs_srv *srv, struct ibtrs_srv_path *path, const char **why);
void ibtrs_srv_path_close(struct ibtrs_srv *srv, struct ibtrs_srv_path *path);
void ibtrs_srv_conn_kill(struct ibtrs_srv_conn *conn);
/* The session of this number, or NULL. */
struct ibtrs_srv_session *ibtrs_srv_session_of(struct ibtrs_srv *srv, u64 id);
void ibtrs_srv_reap(struct ibtrs_srv *srv);
u64 ibtrs_srv_now(const struct ibtrs_srv *srv);

#endif
