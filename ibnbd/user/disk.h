/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The objects of libibnbd: a disk, its queues, a request under way.
 *
 * Locks: disk->lock is over the state of the disk; the control thread alone changes it. A queue's
 * lock is over its requests and over what they need to know of the disk; it is taken inside of
 * disk->lock, or alone. news_lock is innermost: libibtrs takes it under its own locks, to tell that
 * there is something to look at. No message is sent under any of them.
 */
#ifndef IBNBD_USER_DISK_H
#define IBNBD_USER_DISK_H

#include <pthread.h>
#include "ibnbd/logic/access.h"
#include "ibnbd/logic/dev_sm.h"
#include "ibnbd/logic/kept.h"
#include "ibnbd/logic/limits.h"
#include "ibnbd/logic/unflushed.h"
#include "ibnbd/user/libibnbd.h"

#define DISK_REASON_LEN	IBTRS_WHY_LEN
#define DISK_HELD_MS	500	/* until a disk that is held is asked for again */

/* An answer to OPEN, and what follows from it. */
struct disk_grant {
	struct ibnbd_open_rsp rsp;
	struct ibnbd_limits lim;
	u64 features;
	u32 ups;			/* the link on which it was given (ibtrs_clt_info()) */
	u8 version;
};

enum disk_keeps {			/* for the case that the server loses writes */
	DISK_KEEPS_NOTHING,
	DISK_KEEPS_ACCOUNT,		/* are there any? */
	DISK_KEEPS_DATA,
};

enum disk_account {			/* what a request means for the account of writes */
	DISK_ACCOUNT_NOTHING,
	DISK_ACCOUNT_WRITE,
	DISK_ACCOUNT_FUA,
	DISK_ACCOUNT_FLUSH,
};

/* In struct ibnbd_req.priv. */
struct disk_op {
	struct ibtrs_io io;
	struct ibnbd_wire_io hdr;
	struct disk_op *prev, *next;	/* in flight, waits */
	u64 held_at;			/* since when it is held; 0: it is not */
	u64 wrote;			/* of a flush: bytes written before it */
	unsigned long flush;		/* its number */
	u8 account;
	u8 tries;			/* how often the server did not know the disk */
	bool sync;			/* a thread waits for it in ibnbd_q_do() .. */
	bool over;			/* .. and this is the end of the wait */
};

static_assert(sizeof(struct disk_op) <= sizeof(((struct ibnbd_req *)NULL)->priv), "room");

static inline struct disk_op *disk_op_of(struct ibnbd_req *req)
{
	return (struct disk_op *)req->priv;
}

static inline struct ibnbd_req *disk_op_req(struct disk_op *op)
{
	return (struct ibnbd_req *)((char *)op - offsetof(struct ibnbd_req, priv));
}

static inline enum ibnbd_op disk_op_kind(const struct disk_op *op)
{
	return (enum ibnbd_op)(le32_to_cpu(op->hdr.rw) & IBNBD_OP_MASK);
}

struct disk_list {
	struct disk_op *first, *last;
	u32 nr;
};

enum disk_gate {			/* what happens to a new request */
	DISK_GATE_OPEN,			/* it is sent */
	DISK_GATE_HOLD,			/* it waits */
	DISK_GATE_FAIL,			/* it ends with an error */
	DISK_GATE_NO_WRITES,		/* the same, if it changes the disk (law L8) */
};

/* What a queue has to know of the disk's grant. */
struct disk_terms {
	struct ibnbd_facts facts;
	enum ibnbd_access access;
	u32 device_id;
	u32 max_bytes;
	u8 version;
	enum disk_keeps keeps;
	bool cache;
	bool fua;
	bool unmap;
};

struct ibnbd_q {
	pthread_mutex_t lock;
	pthread_cond_t news;		/* for ibnbd_q_do() */
	struct ibnbd_disk *disk;
	struct ibtrs_q *q;
	enum disk_gate gate;
	struct disk_terms terms;
	struct disk_list flight;	/* libibtrs has them: sent, or parked */
	struct disk_list waits;		/* sent when the disk is open */
	struct ibnbd_req *done;
	struct ibnbd_req **done_end;
	u32 depth;
	int ep;
	int wake;
	bool woken;
	bool led;			/* a thread of ibnbd_q_do() sleeps on ep */
};

enum {					/* bits of ibnbd_disk.news */
	DISK_NEWS_LINK	= 1,
	DISK_NEWS_STRAY	= 2,		/* the server did not know the disk */
	DISK_NEWS_FLUSH	= 4,		/* a flush failed */
	DISK_NEWS_STOP	= 8,
	DISK_NEWS_LOW	= 16,		/* more than half of the pool is used */
	DISK_NEWS_RESIZED = 32,		/* events of the server */
	DISK_NEWS_REVOKED = 64,
};

struct ibnbd_disk {
	struct ibtrs_clt *clt;
	struct ibnbd_disk_opts opts;
	enum ibnbd_access access;
	struct ibtrs_clt_opts session;	/* as the caller has it, but for: */
	int (*dial)(void *priv, const char *path, unsigned int cid);
	void *dial_priv;
	char name[IBNBD_NAME_LEN];
	u32 nr_qs;
	struct ibnbd_q *qs;

	struct ibnbd_unflushed unflushed;	/* any thread */
	u64 wrote;			/* bytes, atomic */
	u64 flushed;			/* of these */
	bool flush_failed;		/* atomic: as another epoch, until made good */

	pthread_mutex_t kept_lock;	/* inside of a queue's lock; over pool, kept, kept_mem */
	struct ibnbd_kept_pool pool;
	struct ibnbd_kept kept;
	u8 *kept_mem;

	pthread_mutex_t lock;		/* over all from here to reason */
	enum ibnbd_dev_state state;
	struct disk_grant grant;	/* what the disk lives by */
	enum disk_keeps keeps;
	bool up;			/* the link .. */
	u32 ups;			/* .. that the state belongs to */
	enum ibnbd_open_state remote;
	u32 remote_id;
	struct ibnbd_at_large at_large;
	u64 held_since;
	u64 ask_at;			/* when to send OPEN again */
	u64 look_at;			/* the same while it is open: it was resized; 0: not */
	u64 looked;			/* when OPEN was sent last */
	u64 sweep_at;			/* when to end what is still under way; 0: nothing is */
	u64 close_at;			/* when to send CLOSE; 0: not at all */
	u32 opened;
	u32 replays;
	char reason[DISK_REASON_LEN];

	/* the control thread's own */
	u32 known_ups;			/* the link for which SESS_INFO was answered */
	u64 features;
	u8 version;
	struct ibnbd_open_refused said;

	pthread_t thread;
	bool started;
	pthread_mutex_t news_lock;
	pthread_cond_t news_cond;
	u32 news;
};

/* ---- disk.c ------------------------------------------------------------- */
u64 disk_now(void);
/* Wakes the control thread. Any thread, under any lock. */
void disk_tell(struct ibnbd_disk *d, u32 news);
/* Is it being closed? */
bool disk_stops(struct ibnbd_disk *d);
__printf(3, 4) int disk_why(char why[IBTRS_WHY_LEN], int err, const char *fmt, ...);

/* ---- account.c: writes that no flush has covered ------------------------- */
/* The request is about to be sent; the queue's lock is held, as for the next two. */
void disk_account_send(struct ibnbd_q *q, struct disk_op *op);
/* Before the request is handed back: a flush that is sent afterwards relies on it. */
void disk_account_done(struct ibnbd_q *q, struct disk_op *op);
/* The server's disk has answered with an error. */
void disk_account_failed(struct ibnbd_q *q, struct disk_op *op);
/* A flush of the library itself: it is sent, has succeeded, has failed. */
void disk_account_flush(struct ibnbd_disk *d, struct disk_op *op);
void disk_account_flushed(struct ibnbd_disk *d, const struct disk_op *op);
void disk_account_doubt(struct ibnbd_disk *d);
/* Bytes, for display; disk->lock is held. */
u64 disk_account_unflushed(struct ibnbd_disk *d);

/* ---- resend.c: what is sent again if the server has lost it ---------------- */
int disk_kept_init(struct ibnbd_disk *d);
void disk_kept_free(struct ibnbd_disk *d);
/* A write has been answered; the queue's lock is held. */
void disk_kept_add(struct ibnbd_q *q, const struct disk_op *op);
void disk_kept_flushed(struct ibnbd_disk *d, unsigned long number);
/* @gap: writes up to now are unflushed, and not kept */
void disk_kept_forget(struct ibnbd_disk *d, bool gap);
/* Is all there that no flush has covered? disk->lock is held. */
bool disk_kept_whole(struct ibnbd_disk *d);
/* The control thread, without a lock: flushes to make room; sends all of it again. */
void disk_kept_low(struct ibnbd_disk *d);
void disk_kept_replay(struct ibnbd_disk *d, const struct disk_grant *g);

/* ---- ask.c: messages ---------------------------------------------------- */
/* SESS_INFO, if this link has not had one, and OPEN. */
int disk_ask(struct ibnbd_disk *d, u32 ups, struct disk_grant *g, int timeout_ms, const char **why);
/* CLOSE, if one is due and the disk is in @only_in. */
void disk_ask_close(struct ibnbd_disk *d, enum ibnbd_dev_state only_in, bool nowait,
		    int timeout_ms);
/* The server was not reached, or has not answered. */
bool disk_ask_unreached(int err);
/* Is the session still on the link that came up as number @ups? */
bool disk_ask_on(struct ibnbd_disk *d, u32 ups);

/* ---- judge.c: what the answers mean; disk->lock is held ----------------- */
/* Law L8: not while the server may still execute a write that was given up. */
static inline bool disk_takes_writes(const struct ibnbd_disk *d)
{
	return d->at_large.given_up != IBNBD_GIVEN_UP_WRITES;
}

/* The server may still execute what was given up: CLOSE comes before OPEN. */
bool disk_judge_at_large(const struct ibnbd_disk *d, const struct disk_grant *g);
/* Return: true: send the kept writes again. */
bool disk_judge_answer(struct ibnbd_disk *d, const struct disk_grant *g);
void disk_judge_error(struct ibnbd_disk *d, int err, const char *why);
/* What is kept with a server that answers @g? */
enum disk_keeps disk_judge_keeps(const struct ibnbd_disk *d, const struct disk_grant *g);

/* ---- state.c: the driver of logic/dev_sm; disk->lock is held ------------ */
__printf(2, 3) void disk_say(struct ibnbd_disk *d, const char *fmt, ...);
/* @g: with OPENED. Return: false if the event means nothing in this state. */
bool disk_post(struct ibnbd_disk *d, enum ibnbd_dev_event ev, const struct disk_grant *g);
void disk_remote(struct ibnbd_disk *d, enum ibnbd_open_event ev);
void disk_lose(struct ibnbd_disk *d, const char *why);
void disk_ask_later(struct ibnbd_disk *d, u32 ms);
/* Ends what is held. */
void disk_abort(struct ibnbd_disk *d);

/* ---- watch.c: the control thread ---------------------------------------- */
void *disk_watch(void *disk);
/* Looks at the link, without any lock. */
void disk_watch_link(struct ibnbd_disk *d);

/* ---- queue.c ------------------------------------------------------------ */
int disk_q_init(struct ibnbd_q *q, struct ibnbd_disk *d, u32 i);
void disk_q_free(struct ibnbd_q *q);
void disk_q_gate(struct ibnbd_q *q, enum disk_gate gate);
void disk_q_terms(struct ibnbd_q *q, const struct disk_terms *terms);
/* Gives the requests that libibtrs has parked the device's present number. None is on the wire. */
void disk_q_readdress(struct ibnbd_q *q);
/* Sends what waits. */
void disk_q_resume(struct ibnbd_q *q);

/* What a queue has under way, after all answers that have come were accounted. */
struct disk_q_sum {
	u32 flight;
	u32 waits;
	u32 strays;			/* of waits: the server did not know the present number */
	bool writes;
	u64 held_since;			/* of the oldest; U64_MAX: none is held */
};

void disk_q_look(struct ibnbd_q *q, struct disk_q_sum *sum);
/* All that is under way is held from @now on, unless it was before. */
void disk_q_hold(struct ibnbd_q *q, u64 now);

/* Ends what waits and what is parked. */
struct disk_q_given_up {
	bool any;			/* the server may still execute it */
	bool writes;
	u32 left;			/* still under way */
};

void disk_q_abort(struct ibnbd_q *q, struct disk_q_given_up *g);

#endif
