/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IBTRS client API: what a block driver, or any request/reply protocol, sees of the transport.
 *
 * A *session* is a connection to one server over one or more *paths*. The server grants queue_depth
 * *slots*; a slot is the right to one request. Slots 0 .. nr_slots-1 belong to the user, who takes
 * one for each request and gives it back; the few behind them are ibtrs' own, for ibtrs_clt_call().
 * From a successful ibtrs_clt_submit() until done() a slot, its io, its header buffer and the
 * scatterlist belong to ibtrs: when a path dies, its requests move to another path with the same
 * slot, and when no path is left they are *parked*, not failed.
 *
 * Parked requests wait for the user: after LINK_UP it re-opens what the server may have forgotten,
 * then calls ibtrs_clt_replay(); or it gives them up with ibtrs_clt_abort(). A request that was
 * posted once must never be submitted again by the user before done() ran.
 */
#ifndef IBTRS_CLT_H
#define IBTRS_CLT_H

#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/types.h>
#include <ibtrs/addr.h>
#include <ibtrs/dir.h>
#include <ibtrs/key.h>

struct ibtrs_clt;

/*
 * guard(noio)() is for code that brings a path or a disk back: its allocations do not start I/O,
 * which could wait for that path or disk.
 */
DEFINE_LOCK_GUARD_0(noio, _T->flags = memalloc_noio_save(), memalloc_noio_restore(_T->flags),
		    unsigned int flags)

enum ibtrs_clt_link_ev {
	/* the last path is gone: submit returns -ENOTCONN, posted requests will be parked */
	IBTRS_CLT_LINK_DOWN,
	/* a path is there again; the server may be a new one: re-open, then replay */
	IBTRS_CLT_LINK_UP,
	IBTRS_CLT_LINK_REPLAY,	/* requests were parked while the link is up: replay what is open */
};

/**
 * struct ibtrs_clt_ops - news for the user of a session
 * @link: link went down or came back. Never called before ibtrs_clt_connect() returned 0. Process
 *	context, serialized per session; must not wait for requests of this session (queue work
 *	instead).
 * @event: the server sent an event (protocol 8.3): its kind and the device id. Softirq context. May
 *	be NULL.
 */
struct ibtrs_clt_ops {
	void (*link)(void *priv, enum ibtrs_clt_link_ev ev);
	void (*event)(void *priv, u32 kind, u32 id);
};

/* Options of a session that an administrator may set; 0 = the default of decision 11. */
struct ibtrs_clt_opts {
	u16 dest_port;		/* host order, 1234 */
	u32 hb_interval_ms;	/* 1000 */
	u32 hb_misses;		/* 3 */
	/* attempts before a path is given up; -1 = for ever; 0 = do not reconnect, not "default" */
	int max_reconnect_attempts;
	u32 reconnect_delay_ms;	/* 100; before the first attempt, doubling */
	u32 reconnect_max_ms;	/* 1000 while I/O is held; eight times as long when nothing waits */
	u32 nr_poll_queues;	/* polled connections beside the interrupt driven ones */
	u8 policy;		/* enum ibtrs_mpath_policy */
	/* name of the key that both sides prove to have; empty: no authentication */
	char auth[IBTRS_KEY_NAME_LEN];
};

/*
 * Limits that the server granted (protocol 2.3). They are constant while the session lives: a path
 * that is granted less is refused.
 */
struct ibtrs_clt_attrs {
	u32 nr_slots;		/* slots 0 .. nr_slots-1 are the user's */
	u32 max_io_size;	/* bytes of data per request */
	u32 max_segments;	/* entries of a scatterlist, page aligned except at both ends */
	u32 nr_irq_conns;
	u32 nr_poll_conns;
	int numa_node;		/* of the adapter, or NUMA_NO_NODE */
	const char *auth;	/* name of the key that both sides proved to have; or empty */
};

/**
 * struct ibtrs_clt_io - one request of the user
 * @slot: 0 .. nr_slots-1; one io per slot at a time
 * @gen: number of the link (ibtrs_clt_gen()) on which the header is valid, if it names something
 *	that the server forgets with a session; 0: valid on any link. On another link the request is
 *	not posted: submit returns -ENOTCONN, replay leaves the request parked.
 * @dir: see &enum ibtrs_dir; a request that carries no data and whose answer is only a status may
 *	be either (protocol 10.1 says which)
 * @poll: 0: answered by interrupt; n: on polled connection n - 1, which ibtrs_clt_poll(n - 1)
 *	harvests. A request that leaves its path is answered by interrupt from then on.
 * @losses: how often the request had to leave a path; the user sets it to 0 before submit
 * @lost_at: jiffies when the request left a path for the first time
 * @stay: the user may set it until done(): when the path of the request dies, the request is parked
 *	even if another path is up
 * @message: for ibtrs_clt_call() alone: not a request of the user, changes no data
 * @usr_len: bytes of user header, which the user wrote at ibtrs_clt_hdr() before submit
 * @nents: scatterlist entries; 0 when @len is 0
 * @len: bytes of data
 * @sgl: the data
 * @done: called exactly once after a successful submit; softirq or process context. @err: 0 or
 *	negative errno from the server, or the error given to ibtrs_clt_abort().
 *
 * The memory of an io must stay valid while the session lives (use an array indexed by slot): a
 * match function may still look at the io of a slot that has become idle.
 */
struct ibtrs_clt_io {
	u32 slot;
	u32 gen;
	u32 nents;
	u32 len;
	u16 usr_len;
	u16 poll;
	u8 dir;
	bool stay;
	bool message;
	u8 losses;
	u32 lost_at;
	struct scatterlist *sgl;
	void (*done)(struct ibtrs_clt_io *io, int err);
};

#define IBTRS_CLT_WHY_LEN	352	/* of ibtrs_clt_why() */
#define IBTRS_CLT_USR_HDR_MAX	320	/* room at ibtrs_clt_hdr() */

/**
 * ibtrs_clt_create() - a session that is not connected yet
 * @name: session name, unique among live sessions of this host
 * @opts: copied
 * @ops: callbacks
 * @priv: handed to @ops
 *
 * Process context.
 *
 * Return: the session, or ERR_PTR: -EEXIST (name in use), -EINVAL (no name), -ENOMEM.
 */
struct ibtrs_clt *ibtrs_clt_create(const char *name, const struct ibtrs_clt_opts *opts,
				   const struct ibtrs_clt_ops *ops, void *priv);

/**
 * ibtrs_clt_connect() - connect a session, once
 * @paths: addresses, @nr of them
 *
 * Tries all paths at once and waits, killable and bounded, until each is up or has failed its first
 * attempt. One path up is success; the others go on trying. After an error the session is good for
 * ibtrs_clt_close() only. Process context.
 *
 * Return: 0, -EINVAL, -ETIMEDOUT, -ECONNREFUSED, -EHOSTUNREACH, -ENODEV, -EINTR (killed), or the
 * errno with which the server rejected (protocol 2.3).
 */
int ibtrs_clt_connect(struct ibtrs_clt *clt, const struct ibtrs_addr_pair *paths, unsigned int nr);

/**
 * ibtrs_clt_why() - the reason why a path is not up
 * @buf: result: the first path that is not up and has a reason, and the reason why its last attempt
 *	failed; a refusal by the server is in the server's words; empty if there is no such path
 * @size: of @buf, %IBTRS_CLT_WHY_LEN is enough
 *
 * May be called after a failed ibtrs_clt_connect(), or at any other time. Process context.
 */
void ibtrs_clt_why(struct ibtrs_clt *clt, char *buf, size_t size);

/**
 * ibtrs_clt_close() - end a session
 *
 * All requests must be done, except parked ones, which end with -ECONNABORTED. No callback runs
 * after it returned. Waits until all connections are drained, however long the RDMA device takes;
 * so a command of the administrator lets a work item call it. Process context.
 */
void ibtrs_clt_close(struct ibtrs_clt *clt);

void ibtrs_clt_query(struct ibtrs_clt *clt, struct ibtrs_clt_attrs *attrs);
bool ibtrs_clt_is_up(struct ibtrs_clt *clt);
/*
 * Number of the link that is up, or was up last. It changes each time a path comes up while no
 * other path is up. Never 0 once a path was up.
 */
u32 ibtrs_clt_gen(struct ibtrs_clt *clt);
/*
 * The user calls this just before it acts upon news of the link. The fault point client/news
 * (core/fault.h), if armed, delays it here. May sleep.
 */
#ifdef IBTRS_TESTS
void ibtrs_clt_news_fault(struct ibtrs_clt *clt);
#else
static inline void ibtrs_clt_news_fault(struct ibtrs_clt *clt) {}
#endif

/**
 * ibtrs_clt_want() - I/O waits for the link, or was refused because it is down
 * @seconds: for how many seconds from now this holds
 *
 * The user calls this because the session does not know what its user holds. During @seconds the
 * paths are tried as often as while requests are parked (decision 11). The call changes shared
 * state once per second at most, so it may be called for each refused request. Any context.
 */
void ibtrs_clt_want(struct ibtrs_clt *clt, unsigned int seconds);

/**
 * ibtrs_clt_slot_take() - a slot for a request
 *
 * Prefers a slot that this CPU used last. Any context; takes no lock.
 *
 * Return: the slot, or -EAGAIN: all are taken. A user hardly ever sees -EAGAIN if it holds less
 * than nr_slots slots and gives a slot back before it stops counting the slot as held; it may try
 * again soon.
 */
int ibtrs_clt_slot_take(struct ibtrs_clt *clt);
/* The slot is free again: its request was never submitted, or done() has run. Any context. */
void ibtrs_clt_slot_give(struct ibtrs_clt *clt, u32 slot);

/*
 * The user header buffer of a slot: IBTRS_CLT_USR_HDR_MAX bytes, 8-byte aligned. Write it before
 * submit; keep it until done().
 */
void *ibtrs_clt_hdr(struct ibtrs_clt *clt, u32 slot);

/*
 * Requests that wait to be posted together. The submitter keeps it on its stack; only ibtrs touches
 * the fields.
 */
struct ibtrs_clt_plug {
	struct ibtrs_clt_conn *conn;
	struct ib_send_wr *first, *last;
	struct ib_send_wr *plain;	/* the last one whose completion is not waited for */
	int nr, nr_plain;
};

/**
 * ibtrs_clt_plug() - several requests follow
 *
 * Between this and ibtrs_clt_unplug(), which posts what is left, the caller may not sleep: it is in
 * an RCU read section. Requests of one connection reach the device as one chain, with one doorbell.
 */
void ibtrs_clt_plug(struct ibtrs_clt_plug *plug);
void ibtrs_clt_unplug(struct ibtrs_clt_plug *plug);

/**
 * ibtrs_clt_submit() - send a request
 * @plug: collects the request; NULL: it is posted at once
 *
 * Any context that may not sleep, softirq included. The connection is chosen by the current CPU.
 *
 * Return: 0: ibtrs owns @io until done(). Else nothing was posted and the caller still owns it:
 * -ENOTCONN (no path up), -EAGAIN (no room in the send queue, or out of memory: try again soon),
 * -EMSGSIZE, -EINVAL, -EBUSY (the slot has a request already).
 */
int ibtrs_clt_submit(struct ibtrs_clt *clt, struct ibtrs_clt_io *io, struct ibtrs_clt_plug *plug);

/*
 * Harvest completions of polled connection @index (0 .. nr_poll_conns-1) of every path. Returns how
 * many.
 */
int ibtrs_clt_poll(struct ibtrs_clt *clt, unsigned int index);

/**
 * ibtrs_clt_call() - one synchronous message on the service connection, with a slot of ibtrs' own
 * @gen: number of the link for which the message is meant, see &struct ibtrs_clt_io; 0: for any
 * @dir: IBTRS_READ when an answer of @reply_len bytes is expected
 * @hdr: message, @hdr_len <= IBTRS_CLT_USR_HDR_MAX
 * @reply: zeroed first, then filled
 * @reply_len: <= 4096
 * @timeout_ms: bound on everything, waiting for a slot included
 *
 * Killable. Never parked or repeated: when the path dies it ends with -ECONNRESET. After a timeout,
 * an answer that still comes is ignored.
 *
 * Return: 0, the errno of the server, -ENOTCONN (also when the link is not @gen), -ECONNRESET,
 * -ETIMEDOUT, -EINTR, -EMSGSIZE.
 */
int ibtrs_clt_call(struct ibtrs_clt *clt, u32 gen, enum ibtrs_dir dir, const void *hdr,
		   size_t hdr_len, void *reply, size_t reply_len, unsigned int timeout_ms);

#define IBTRS_CLT_CALL_DATA_MAX	8192	/* of ibtrs_clt_call_io_begin() */

struct ibtrs_clt_call;

/**
 * ibtrs_clt_call_io_begin() - ibtrs_clt_call() in two halves, for a request of the user whose
 * answer is only a status
 * @gen: number of the link on which @hdr is valid, see &struct ibtrs_clt_io; 0: valid on any
 * @data: @data_len bytes that are sent with it, at most IBTRS_CLT_CALL_DATA_MAX. They are copied,
 *	so the caller may leave before they are sent
 * @timeout_ms: bound on both halves
 * @more: the caller has other calls under way: do not wait for a slot, but return -EAGAIN when less
 *	than half of the slots for calls are free
 *
 * For a request that the user must send while all its own slots are taken by requests that wait for
 * that request.
 *
 * Return: the argument of ibtrs_clt_call_io_end(); or an ERR_PTR, and nothing was sent: the errors
 * of ibtrs_clt_call().
 */
struct ibtrs_clt_call *ibtrs_clt_call_io_begin(struct ibtrs_clt *clt, u32 gen, enum ibtrs_dir dir,
					       const void *hdr, size_t hdr_len, const void *data,
					       size_t data_len, unsigned int timeout_ms, bool more);
/*
 * Waits for the answer. Returns what ibtrs_clt_call() returns. If that is unanswered, the server
 * may still execute the request. An answer with such a number is -EIO here; ibtrs_clt_call() leaves
 * it as it is, so a message that is unanswered may have been answered so.
 */
int ibtrs_clt_call_io_end(struct ibtrs_clt_call *call);
static inline bool ibtrs_clt_call_unanswered(int err)
{
	return err == -ETIMEDOUT || err == -EINTR || err == -ECONNRESET;
}

/*
 * @io belongs to a slot that is in flight or parked at the moment of the call. For parked ones the
 * function may rewrite the user header.
 */
typedef bool (*ibtrs_clt_match_fn)(struct ibtrs_clt_io *io, void *arg);

/**
 * ibtrs_clt_replay() - post the parked requests for which @match says yes
 *
 * Call it when the server knows again what the requests refer to. A request that cannot be posted
 * stays parked. Process context. Return: number of requests that stay parked among the matching
 * ones.
 */
unsigned int ibtrs_clt_replay(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg);

enum ibtrs_clt_at_large {
	IBTRS_AT_LARGE_NOTHING,
	IBTRS_AT_LARGE_READS,
	IBTRS_AT_LARGE_WRITES,
};

/**
 * ibtrs_clt_abort() - end with @err the parked requests for which @match says yes
 *
 * Law L8: a request that was posted may still be executed by the server. Process context; done()
 * runs before return.
 *
 * Return: the kind of ended requests that the server may still execute. After WRITES the caller
 * must let the device write nothing until ibtrs_clt_settled() says yes, or the server has said that
 * all of them have ended. After READS or WRITES the caller should tell the server that the requests
 * are given up: while the server executes one, no other request can use its slot.
 */
enum ibtrs_clt_at_large ibtrs_clt_abort(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg,
				    int err);

/**
 * ibtrs_clt_settled() - is no copy of a given-up write executed any more (law L8)?
 *
 * The server may execute a copy as long as it holds the path on which the copy was sent. So the
 * answer is yes when each path that writes had to leave is up again: the server lets a path in
 * again only when the old incarnation has ended (protocol 2.5). A path that is removed before that
 * makes the answer no for ever. Process context.
 */
bool ibtrs_clt_settled(struct ibtrs_clt *clt);

/*
 * Is a request in flight or parked for which @match says yes? The first one ends the walk: a @match
 * that says no looks at all of them.
 */
bool ibtrs_clt_any(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg);

/* As ibtrs_clt_any(), but in flight, not parked: the request may be answered at any time. */
bool ibtrs_clt_posted(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg);

/*
 * Law L3, step 3: break every path that carries a matching request. Requests on such a path move to
 * another path, or are parked. @match may set io->stay of a matching request, so that it is parked
 * and does not move.
 */
void ibtrs_clt_break(struct ibtrs_clt *clt, ibtrs_clt_match_fn match, void *arg, const char *why);

#endif
