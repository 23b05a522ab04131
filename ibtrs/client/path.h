/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One path of a session: its state machine, and the structs in which the other rooms keep what
 * belongs to this path. Each embedded struct is used by its own file only.
 */
#ifndef IBTRS_CLIENT_PATH_H
#define IBTRS_CLIENT_PATH_H

#include <linux/ktime.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "ibtrs/client/auth.h"
#include "ibtrs/client/cm.h"
#include "ibtrs/client/handshake.h"
#include "ibtrs/client/mr.h"
#include "ibtrs/client/stats.h"
#include "ibtrs/client/dirs.h"
#include "ibtrs/client/trial.h"
#include "ibtrs/core/hb.h"
#include "ibtrs/logic/path_sm.h"
#include "ibtrs/logic/retry.h"
#include "ibtrs/proto/msg.h"

struct ibtrs_clt;

#define IBTRS_CLT_REASON_LEN	(32 + IBTRS_WORDS_LEN)

/* The stage of a path in its session, which limits what may be done with it. */
enum ibtrs_clt_path_stage {
	IBTRS_CLT_PATH_STARTING,	/* open or add_path waits for the first attempt: it stays */
	IBTRS_CLT_PATH_MEMBER,
	IBTRS_CLT_PATH_LEAVING,		/* it is being removed: it must not connect again */
};

struct ibtrs_clt_path {
	/* set before publish */
	struct ibtrs_clt *clt;
	struct ibtrs_addr_pair addr;
	u8 uuid[IBTRS_UUID_LEN];
	char name[IBTRS_PATH_STR_MAX];	/* as given, "src@dst" or dst alone: for the log */
	u32 nr_conns;
	struct ibtrs_clt_conn *conns;

	/* under clt->lock */
	struct list_head entry;		/* clt->paths; empty: claimed by its remover */
	enum ibtrs_clt_path_stage stage;	/* READ_ONCE outside */
	bool loose;			/* it broke with writes posted, and is not up again */

	/* path work only; others may READ_ONCE() state */
	enum ibtrs_path_state state;
	int told_err;			/* errno of the last failure that was logged */
	u32 nr_closed;			/* times it became CLOSED */

	/* posted from anywhere, consumed by the path work */
	unsigned long events;
	spinlock_t reason_lock;		/* reason, err, retry; hs.phase and its deadline */
	struct ibtrs_retry retry;
	int err;
	char reason[IBTRS_CLT_REASON_LEN];
	struct work_struct work;
	struct delayed_work timer;
	struct work_struct drain;
	struct work_struct remove;	/* paths.c: the task that removed it was killed */
	wait_queue_head_t wait;		/* state changed, or the first attempt has ended */

	/* one incarnation of the connection: set while connecting, cleared by the drain */
	/*
	 * its PD is used by no other path: when the QPs of this path are gone, no peer can use its
	 * keys any more
	 */
	struct ibtrs_dev *dev;
	struct ibtrs_limits limits;
	unsigned int off_bits;
	u32 life;			/* of the session at the server (protocol 8.2) */
	u32 ext;
	bool may_create;		/* protocol 2.2 */
	/* the request on cid 0 was not allowed to make the session: another path has the turn */
	bool early;
	u16 recon_cnt;

	struct {
		struct ib_event_handler handler;	/* its device is NULL: not watched */
		u32 num;
		int ifindex;
	} port;				/* port.c */
	struct ibtrs_clt_auth auth;
	struct ibtrs_clt_handshake hs;
	struct ibtrs_clt_mrs mrs;
	struct ibtrs_clt_trial trial;
	struct ibtrs_hb hb;
	struct delayed_work probe;	/* once per heartbeat interval while it is up */
	struct ibtrs_clt_stats stats;
	struct ibtrs_clt_path_sysfs sysfs;
};

/**
 * ibtrs_clt_path_post() - tell a path what happened
 * @err: negative errno, 0 = none
 * @why: reason in words, copied; may be NULL
 *
 * Any context. A state changes in no other way.
 */
void ibtrs_clt_path_post(struct ibtrs_clt_path *path, enum ibtrs_path_event ev, int err,
			 const char *why);

static inline void ibtrs_clt_path_fail(struct ibtrs_clt_path *path, int err, const char *why)
{
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_FAIL, err, why);
}

/*
 * The same for a refusal by the server. @text: the server's own words, which come from a peer; if
 * empty, our words for @err are used.
 */
void ibtrs_clt_path_refused(struct ibtrs_clt_path *path, int err, const char *text);
/* The last failure: errno, and words in @buf. Any context. */
int ibtrs_clt_path_reason(struct ibtrs_clt_path *path, char *buf, size_t size);
/* Its words behind the name of the path; empty: there was none. Any context. */
void ibtrs_clt_path_why(struct ibtrs_clt_path *path, char *buf, size_t size);

/*
 * The circumstances of a path, except whether it is wanted; and telling its retry record what
 * happened in them. Any context.
 */
struct ibtrs_retry_now ibtrs_clt_path_now(struct ibtrs_clt_path *path);
void ibtrs_clt_path_note(struct ibtrs_clt_path *path, enum ibtrs_retry_event ev);

/*
 * How many requests are posted on the path; not exact, since each connection counts its own. Any
 * context.
 */
static inline u32 ibtrs_clt_path_inflight(const struct ibtrs_clt_path *path)
{
	u32 cid, n = 0;

	for (cid = 0; cid < path->nr_conns; cid++)
		n += ibtrs_clt_conn_inflight(&path->conns[cid]);
	return n;
}

static inline enum ibtrs_path_state ibtrs_clt_path_state(const struct ibtrs_clt_path *path)
{
	return READ_ONCE(path->state);
}

/*
 * Try to connect now. Return: 0 when the path came up, else an errno. Killable, bounded (decision
 * 5, sysfs reconnect and add_path).
 */
int ibtrs_clt_path_reconnect(struct ibtrs_clt_path *path);
/*
 * Close the path and wait until nothing is left of the connection. @killable: the wait ends with
 * -EINTR when the task is killed; the close continues.
 */
int ibtrs_clt_path_close(struct ibtrs_clt_path *path, bool killable);
/*
 * Wait until the first attempt has ended, with a time limit. Return: 0: the path is up; its errno;
 * -EINTR.
 */
int ibtrs_clt_path_wait_first(struct ibtrs_clt_path *path);
/* A question of logic/retry.h about the path as it is now. Any context. */
bool ibtrs_clt_path_ask(struct ibtrs_clt_path *path,
			bool (*ask)(const struct ibtrs_retry *, const struct ibtrs_retry_now *));
/* Connect now: do not wait for the timer. A closed path connects, too. */
void ibtrs_clt_path_kick(struct ibtrs_clt_path *path);
/*
 * A port came up (any port), or the first path of the session came up: the next attempt starts
 * without delay. @alive: the server can be reached, so an attempt that began before that is given
 * up soon.
 */
void ibtrs_clt_path_hurry(struct ibtrs_clt_path *path, bool alive);

/*
 * A wait of the handshake for the server begins, and a timer; logic/retry.c says how long it may
 * take.
 */
void ibtrs_clt_path_await(struct ibtrs_clt_path *path, enum ibtrs_retry_phase phase);
/* The answer has arrived: stop the timer and queue the work for @step. Any context. */
void ibtrs_clt_path_answered(struct ibtrs_clt_path *path, enum ibtrs_clt_hs_step step);
/*
 * If the path still waits for the answer on cid 0, no more time than @limit says is left for that
 * from now on. Any context.
 */
void ibtrs_clt_path_hasten(struct ibtrs_clt_path *path, u32 (*limit)(const struct ibtrs_retry *r));

#endif
