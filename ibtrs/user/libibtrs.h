/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * libibtrs: the IBTRS transport in user space, client and server (docs/libibtrs.md).
 *
 * Functions return 0 or a negative errno; those with a @why fill it with words that name the
 * object, the cause and what to do. Structs of options begin with their size: zero the struct, set
 * size, and set what shall not have its default. The library has no global state, sends no signals,
 * installs no handlers and does not fork.
 *
 * Threads: a queue (struct ibtrs_q) is used by one thread at a time. Everything else may be called
 * from any thread, but an object is freed when no thread uses it any more.
 */
#ifndef LIBIBTRS_H
#define LIBIBTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IBTRS_API __attribute__((visibility("default")))
#define IBTRS_WHY_LEN 256

struct ibtrs_ctx;	/* what connects, beats and reconnects, for any number of sessions */
struct ibtrs_clt;	/* a session of a client */
struct ibtrs_q;		/* one of its queues */
struct ibtrs_srv;	/* a server */
struct ibtrs_group;	/* several sessions as one */
struct ibtrs_gq;	/* one of its queues */

/* ---- context ------------------------------------------------------------ */

#define IBTRS_CTX_THREAD	0x1u	/* a thread of the library steps the context */

/**
 * struct ibtrs_ctx_opts - options of a context
 * @size: sizeof(struct ibtrs_ctx_opts)
 * @flags: IBTRS_CTX_THREAD; without it the caller calls ibtrs_ctx_step()
 * @now_ms: a clock that does not go back, in milliseconds; NULL: CLOCK_MONOTONIC
 * @priv: handed to @now_ms
 */
struct ibtrs_ctx_opts {
	size_t size;
	uint32_t flags;
	uint64_t (*now_ms)(void *priv);
	void *priv;
};

/* @o may be NULL. */
IBTRS_API int ibtrs_ctx_new(struct ibtrs_ctx **ctx, const struct ibtrs_ctx_opts *o);
/* Return: 0, or -EBUSY: a session is still open. */
IBTRS_API int ibtrs_ctx_free(struct ibtrs_ctx *ctx);
/**
 * ibtrs_ctx_step() - do what is due: connect, heartbeats, reconnect, answers of calls
 * @timeout_ms: how long to wait for something to do; 0: not at all, -1: as long as it takes
 *
 * Return: number of things done, or a negative errno.
 */
IBTRS_API int ibtrs_ctx_step(struct ibtrs_ctx *ctx, int timeout_ms);
/* For a loop of the caller's own: readable when a step has something to do. */
IBTRS_API int ibtrs_ctx_fd(const struct ibtrs_ctx *ctx);
/* For such a loop: milliseconds after which a step is due in any case; -1: none is. */
IBTRS_API int ibtrs_ctx_wait_ms(struct ibtrs_ctx *ctx);

/* ---- keys --------------------------------------------------------------- */

/* A key: random bytes, as many, that two hosts have. A name may have two while it is changed. */
#define IBTRS_SECRET_LEN	32
#define IBTRS_SECRETS		2

/**
 * ibtrs_key_read() - read a key from a file, whose name is that of the key
 * @file: the line that `ibnbd key generate` writes, or IBTRS_SECRET_LEN bytes
 * @key: gets them
 * @name: points to the last part of @file
 * @why: gets the cause of an error, without the name of the file
 *
 * Return: 0; -EINVAL: the file has no key; or the negative errno of open() or read().
 */
IBTRS_API int ibtrs_key_read(const char *file, uint8_t key[IBTRS_SECRET_LEN], const char **name,
			     char why[IBTRS_WHY_LEN]);

/* ---- client ------------------------------------------------------------- */

enum ibtrs_io_dir {
	IBTRS_IO_READ,		/* the answer carries data */
	IBTRS_IO_WRITE,		/* the request carries data, or nothing */
};

/**
 * struct ibtrs_io - a request
 * @dir: IBTRS_IO_READ or IBTRS_IO_WRITE
 * @hdr_len: length of @hdr, at least 4
 * @len: length of @data; 0: no data
 * @hdr: the user's header, opaque to the transport
 * @data: written to the server, or to be filled by it
 * @err: result: 0 or a negative errno
 * @user: the caller's own
 * @next, @priv: the library's own
 *
 * The struct, @hdr and @data belong to the library from the submission until ibtrs_q_poll() hands
 * the request back. The server can write to @data of a read during that time, and not later.
 */
struct ibtrs_io {
	uint8_t dir;
	uint16_t hdr_len;
	uint32_t len;
	const void *hdr;
	void *data;
	int32_t err;
	void *user;
	struct ibtrs_io *next;
	uint64_t priv[3];
};

/*
 * When all paths have been lost and one is up again, nothing is sent before ibtrs_clt_replay(),
 * whether it was submitted before or after: the server may be another one now.
 */
#define IBTRS_CLT_ASK_REPLAY	0x1u
/* ibtrs_clt_open() does not wait: ibtrs_clt_info() tells when a path is up. */
#define IBTRS_CLT_NOWAIT	0x2u
/* With a key a TCP stream is always TLS, one of @dial, too. So is a Unix socket by this. */
#define IBTRS_CLT_TLS		0x4u
/*
 * Paths over a stream, too, carry a request of full size there and back before they are used: for
 * networks in which TCP does not find out that large packets are lost.
 */
#define IBTRS_CLT_TRY_STREAMS	0x8u

/**
 * struct ibtrs_clt_opts - options of a session
 * @size: sizeof(struct ibtrs_clt_opts)
 * @flags: IBTRS_CLT_ASK_REPLAY, IBTRS_CLT_NOWAIT, IBTRS_CLT_TRY_STREAMS,
 *	IBTRS_CLT_TLS
 * @name: of the session, as the server will know it: UTF-8 without '/' and '.'
 * @queues: how many queues, one connection per path each; 0: 1
 * @hb_ms: interval of heartbeats; 0: 1000
 * @hb_misses: so many intervals without a sign of life are tolerated; 0: 3
 * @max_attempts: attempts to reconnect a path before it is given up; 0: no limit
 * @dial: gives a connected stream socket for a path, which the library then owns, or a negative
 *	errno; must not block, and must not call the client's side of the library. NULL: the
 *	library connects
 * @priv: handed to @dial and @event
 * @q_depth: requests that a queue has at a time; 0: its share of what the server grants. Over RDMA
 *	each costs a chunk (max_io_size and headers) of locked memory for each path
 * @key_name: of the key that client and server prove to each other before each attempt of a path:
 *	1 to 63 of A-Z a-z 0-9 _ -; NULL: no proof. @dial is asked for a connection with cid 0 once
 *	more then
 * @key: its IBTRS_SECRET_LEN bytes. The library keeps a copy until the session is closed
 * @next_key: the one that will replace it; NULL: there is none
 * @event: the server says something by ibtrs_srv_event(): a hint, which may get lost with a path.
 *	Called with the context locked: must not call the client's side of the library. NULL: the
 *	client does not offer to take events, and asks instead
 * @link: called when a path has come up and there was none, and when the last one was lost; with
 *	the context locked, so it must not call the library. ibtrs_clt_info() says which. NULL: not
 * @link_priv: handed to @link
 * @policy: which path a request goes to: `min-inflight`, the one with the fewest of this queue,
 *	`round-robin`, or `min-latency`, the one whose last heartbeat was answered soonest. NULL:
 *	min-inflight
 */
struct ibtrs_clt_opts {
	size_t size;
	uint32_t flags;
	const char *name;
	uint32_t queues;
	uint32_t hb_ms;
	uint32_t hb_misses;
	uint32_t max_attempts;
	int (*dial)(void *priv, const char *path, unsigned int cid);
	void *priv;
	uint32_t q_depth;
	const char *key_name;
	const uint8_t *key;
	const uint8_t *next_key;
	void (*event)(void *priv, uint32_t kind, uint32_t id);
	void (*link)(void *priv);
	void *link_priv;
	const char *policy;
};

struct ibtrs_clt_info {
	size_t size;			/* in: sizeof(struct ibtrs_clt_info) */
	uint32_t queue_depth;		/* slots of the session */
	uint32_t q_depth;		/* requests that fit a queue */
	uint32_t max_io_size;
	uint32_t max_hdr_size;
	uint32_t paths;
	uint32_t paths_up;
	uint32_t ups;			/* how often it has come up from having no path */
	uint32_t life;			/* of the session at the server; 0: no FENCE */
	uint32_t parked;		/* requests that wait for a path */
	uint32_t rdma_up;		/* of paths_up; 0: requests go over streams */
};

enum ibtrs_phase {		/* what a path that connects waits for, in this order */
	IBTRS_PHASE_TURN,	/* another path asks the server for the session */
	IBTRS_PHASE_KEY,	/* the server's proof that it has the key, too */
	IBTRS_PHASE_CONNECT,	/* the first connection; TLS and the server's policy among it */
	IBTRS_PHASE_OTHERS,	/* those of the other queues */
	IBTRS_PHASE_MEMORY,	/* where the server's memory is */
	IBTRS_PHASE_TRIAL,	/* large packets arrive, too */
	IBTRS_PHASES
};

/* Its word: turn, key, connect, others, memory, trial. */
IBTRS_API const char *ibtrs_phase_name(enum ibtrs_phase phase);

struct ibtrs_path_info {
	size_t size;			/* in: sizeof(struct ibtrs_path_info) */
	const char *path;		/* valid as long as the session */
	const char *state;		/* idle connecting up breaking waiting closing closed */
	int32_t err;			/* why it was lost or not established; 0: never */
	uint32_t established;		/* how often */
	uint32_t attempt;		/* failed attempts since it was up */
	uint32_t wait_ms;		/* until the next attempt */
	uint64_t latency_us;		/* of the last heartbeat, microseconds; 0: there was none */
	char why[IBTRS_WHY_LEN];
	const char *kind;		/* rdma tls plain */
	uint32_t phase_us[8];		/* enum ibtrs_phase: microseconds, of the last attempt */
};

/**
 * ibtrs_clt_open() - open a session
 * @paths: where the server is: `ip:10.0.0.1` (RDMA), `tcp:10.0.0.1:1234`, `tcp:[fd00::1]:1234` or
 *	`unix:/run/name`; with @o->dial any text. No names of hosts. `auto:10.0.0.1:1234` is both
 *	ip: and tcp: there, and what else of RDMA the server has; it needs a key
 * @nr: number of paths
 * @why: reason of a failure
 *
 * Waits until one path is up, or the first attempts of all of them have failed.
 */
IBTRS_API int ibtrs_clt_open(struct ibtrs_ctx *ctx, const char *const *paths, unsigned int nr,
			     const struct ibtrs_clt_opts *o, struct ibtrs_clt **clt,
			     char why[IBTRS_WHY_LEN]);
/*
 * Closes all paths for good: nothing is sent any more, or written to the memory of requests.
 * These are parked then, and ibtrs_q_abort() ends them.
 */
IBTRS_API void ibtrs_clt_shut(struct ibtrs_clt *clt);
/* Shuts and frees. Requests that are not handed back by then never are. */
IBTRS_API void ibtrs_clt_close(struct ibtrs_clt *clt);
/* How the session is now. Return: 0, or -EINVAL: @info does not begin with its size. */
IBTRS_API int ibtrs_clt_info(struct ibtrs_clt *clt, struct ibtrs_clt_info *info);
/* How path @i is now. Return: 0, or -EINVAL: there is no such path, or no size. */
IBTRS_API int ibtrs_clt_path_info(struct ibtrs_clt *clt, unsigned int i,
				  struct ibtrs_path_info *info);
/**
 * ibtrs_clt_call() - a message over the service connection, and its answer
 * @reply: filled with @reply_len bytes, unless an error is returned; NULL with 0
 * @timeout_ms: -1: no limit
 *
 * Sent once: a path that is lost meanwhile ends it with -ECONNRESET, and the server may have
 * executed it. Return: what the server answered; -ETIMEDOUT; -ENOTCONN: no path is up; -EAGAIN: too
 * many calls at once.
 */
IBTRS_API int ibtrs_clt_call(struct ibtrs_clt *clt, const void *hdr, size_t hdr_len, void *reply,
			     size_t reply_len, int timeout_ms);
/*
 * The same with the members of @io from dir to data, of which a copy is sent: a call may have data
 * for the server, or neither data nor an answer in it.
 */
IBTRS_API int ibtrs_clt_call_io(struct ibtrs_clt *clt, const struct ibtrs_io *io, int timeout_ms);
/**
 * ibtrs_clt_replay() - the server is the right one: send the parked requests (IBTRS_CLT_ASK_REPLAY)
 * @ups: as ibtrs_clt_info() told it when the server was looked at
 *
 * The data and headers of parked requests may be changed before.
 *
 * Return: 0, or -ESTALE: all paths have been lost since; nothing is sent.
 */
IBTRS_API int ibtrs_clt_replay(struct ibtrs_clt *clt, uint32_t ups);
/*
 * Has the server ended all that was sent over paths which were lost? As long as it has not, a write
 * that was aborted may still be executed.
 */
IBTRS_API bool ibtrs_clt_settled(struct ibtrs_clt *clt);

/* The server may write to it, all of it and at any time: for the data of reads, too. */
#define IBTRS_MEM_READ	0x1u

/**
 * ibtrs_clt_mem_add() - memory whose data an adapter sends, or receives, in place
 * @base: where it begins
 * @len: bytes, below 4 GiB
 * @flags: 0: data of writes alone; IBTRS_MEM_READ
 * @why: reason of a failure
 *
 * Without it data is copied over RDMA, and a server cannot write to the caller's memory. It counts
 * for requests whose data lies there as a whole. It is locked, once for each path; a path that is
 * not up yet and cannot lock it says so then. Over a stream it changes nothing. From any thread.
 *
 * Return: 0; -EBUSY: a request has data in it; -EEXIST: some of it is memory of the session
 * already; -ENOSPC: the session has 16 pieces; -ENOMEM: more than may be locked.
 */
IBTRS_API int ibtrs_clt_mem_add(struct ibtrs_clt *clt, void *base, size_t len, uint32_t flags,
				char why[IBTRS_WHY_LEN]);
/* Return: 0; -EBUSY: a request has data in it; -ENOENT: no memory of the session begins there. */
IBTRS_API int ibtrs_clt_mem_del(struct ibtrs_clt *clt, void *base);

/* Queue @i of the session, 0 .. queues - 1; NULL: there is no such queue. */
IBTRS_API struct ibtrs_q *ibtrs_clt_q(struct ibtrs_clt *clt, unsigned int i);
/**
 * ibtrs_q_submit() - send requests, with one doorbell per path
 *
 * Without a path they are parked, and sent when one is up.
 *
 * Return: how many were taken, fewer than @nr if the queue is full; -EINVAL: the first one is not
 * valid (its lengths, docs/protocol.md 4.3).
 */
IBTRS_API int ibtrs_q_submit(struct ibtrs_q *q, struct ibtrs_io *const *io, unsigned int nr);
/**
 * ibtrs_q_poll() - requests that have ended
 * @timeout_ms: how long to wait for the first one; 0: not at all, -1: as long as it takes
 *
 * A path that is lost is noticed here, too, and its requests are sent again over another one.
 *
 * Return: how many are in @done.
 */
IBTRS_API int ibtrs_q_poll(struct ibtrs_q *q, struct ibtrs_io **done, unsigned int max,
			   int timeout_ms);
/* Readable when ibtrs_q_poll() may have something. Poll with timeout 0 before sleeping on it. */
IBTRS_API int ibtrs_q_fd(const struct ibtrs_q *q);
/*
 * Ends the parked requests with @err, a negative errno; ibtrs_q_poll() hands them back. Those that
 * were sent before may still be executed: see ibtrs_clt_settled(). Return: how many.
 */
IBTRS_API int ibtrs_q_abort(struct ibtrs_q *q, int err);

/* ---- several sessions as one -------------------------------------------- */

#define IBTRS_GROUP_LEGS	16

/* ibtrs_gq_poll() hands a write back when its result is certain, too. */
#define IBTRS_GROUP_EARLY	0x1u

/**
 * struct ibtrs_group_opts - options of a group
 * @size: sizeof(struct ibtrs_group_opts)
 * @flags: IBTRS_GROUP_EARLY
 * @quorum: so many legs must have a write; 0: all
 */
struct ibtrs_group_opts {
	size_t size;
	uint32_t flags;
	uint32_t quorum;
};

/**
 * struct ibtrs_gio - a request to a group
 * @dir: IBTRS_IO_WRITE goes to all legs, IBTRS_IO_READ to one, and to another one if that fails
 * @hdr_len, @len, @hdr, @data: as in struct ibtrs_io
 * @legs: bits of the legs that it may go to. Then a write succeeds if all of these have it, and a
 *	read need not care what they have missed. 0: a write goes to all, a read to one that has
 *	missed nothing
 * @err: result. 0: a quorum has the write, or the data is read. Else what the first leg that failed
 *	said, or -ENODATA: there is no leg to read from
 * @left: legs that have not ended. Until it is 0 the struct and all that it refers to belong to the
 *	library
 * @leg: room for a request to each leg of the group. leg[i].err is its result: 0, a negative errno,
 *	-ENOTCONN also if the leg is out, -EINPROGRESS: it has not ended, -ENODATA: it was not asked
 * @user: the caller's own
 * @next, @priv: the library's own
 */
struct ibtrs_gio {
	uint8_t dir;
	uint16_t hdr_len;
	uint32_t len;
	const void *hdr;
	void *data;
	uint32_t legs;
	int32_t err;
	uint32_t left;
	struct ibtrs_io *leg;
	void *user;
	struct ibtrs_gio *next;
	struct {
		uint32_t pending, asked, failed, counted, owed, need, got;
		int32_t first_err;
		uint8_t certain, listed;
	} priv;
};

struct ibtrs_leg_info {
	size_t size;			/* in: sizeof(struct ibtrs_leg_info) */
	struct ibtrs_clt *clt;
	uint64_t missed;		/* writes that were handed back with an error of it */
	uint64_t whole;			/* as ibtrs_group_whole() was told last */
	uint32_t owes;			/* writes that were handed back before it had ended them */
	uint32_t out;
};

/**
 * ibtrs_group_new() - make several sessions one
 * @clt: sessions with the same number of queues. They stay the caller's, who closes them behind
 *	ibtrs_group_free(); their queues are the group's meanwhile
 * @nr: number of legs, 1 .. IBTRS_GROUP_LEGS
 * @o: NULL: all legs must have a write
 */
IBTRS_API int ibtrs_group_new(struct ibtrs_clt *const *clt, unsigned int nr,
			      const struct ibtrs_group_opts *o, struct ibtrs_group **g,
			      char why[IBTRS_WHY_LEN]);
/* No queue may be in use. Return: 0, or -EBUSY: a request has not been handed back with left 0. */
IBTRS_API int ibtrs_group_free(struct ibtrs_group *g);
/* Queue @i, which has queue @i of each leg: used by one thread at a time. NULL: there is none. */
IBTRS_API struct ibtrs_gq *ibtrs_group_q(struct ibtrs_group *g, unsigned int i);
/**
 * ibtrs_gq_submit() - send requests
 *
 * What a leg has no slot for waits in the group, without a limit.
 *
 * Return: how many were taken, fewer than @nr if the next one is not valid; -EINVAL: the first one.
 */
IBTRS_API int ibtrs_gq_submit(struct ibtrs_gq *gq, struct ibtrs_gio *const *io, unsigned int nr);
/**
 * ibtrs_gq_poll() - requests of which all legs have ended
 * @timeout_ms: as in ibtrs_q_poll()
 *
 * With IBTRS_GROUP_EARLY a write is handed back when @err is certain, too: with @left not 0, unless
 * all legs have ended by then. Behind that it comes once more, with @left 0.
 *
 * Return: how many are in @done.
 */
IBTRS_API int ibtrs_gq_poll(struct ibtrs_gq *gq, struct ibtrs_gio **done, unsigned int max,
			    int timeout_ms);
/* Readable when ibtrs_gq_poll() may have something. Poll with timeout 0 before sleeping on it. */
IBTRS_API int ibtrs_gq_fd(const struct ibtrs_gq *gq);
/*
 * A leg that is out has no part in new requests, and ends those that wait for a path, with
 * -ENOTCONN; what its server has is awaited as long as it has a path (ibtrs_clt_shut() ends that).
 * From any thread; the queues notice by their next poll.
 */
IBTRS_API int ibtrs_group_out(struct ibtrs_group *g, unsigned int leg, bool out);
/*
 * The caller has made up for @missed writes that were handed back with an error of the leg, counted
 * from the beginning. If there are no others, it may be read from. From any thread.
 */
IBTRS_API int ibtrs_group_whole(struct ibtrs_group *g, unsigned int leg, uint64_t missed);
/* How leg @leg is now. Return: 0, or -EINVAL: there is no such leg, or no size. */
IBTRS_API int ibtrs_group_leg(struct ibtrs_group *g, unsigned int leg, struct ibtrs_leg_info *info);

/* ---- server ------------------------------------------------------------- */

#define IBTRS_EVENT_KIND_MAX	0xfu
#define IBTRS_EVENT_ID_MAX	0xffffffu
#define IBTRS_SESSION_UUID	16

/**
 * struct ibtrs_op - a request, seen by the server
 * @dir: IBTRS_IO_READ: fill @data, all of which is sent on success. IBTRS_IO_WRITE: @data holds the
 *	client's bytes
 * @service: it came over the service connection
 * @hdr_len: length of @hdr
 * @len: length of @data
 * @hdr: a private copy of the user's header
 * @data: the client can still write to it: read each byte at most once before trusting it
 * @memory: the number that the caller gave the memory which @data is in (memory of struct
 *	ibtrs_srv_opts); -1: none
 * @session: number of the session, never used twice by a server
 * @name: of the session
 * @user: the caller's own
 * @key: name of the key that the client has proved; empty: none
 * @uuid: which client it is, IBTRS_SESSION_UUID bytes: a client that was away comes back with the
 *	same, in a session of another number. The client has drawn it, but nobody has that of a
 *	client with a key without that key. Never all zeros
 *
 * Valid until ibtrs_op_reply().
 */
struct ibtrs_op {
	uint8_t dir;
	bool service;
	uint16_t hdr_len;
	uint32_t len;
	int memory;
	const void *hdr;
	void *data;
	uint64_t session;
	const char *name;
	void *user;
	const char *key;
	const uint8_t *uuid;
};

/* Must a client prove that it has a key? One that offers to is refused with OFF. */
enum ibtrs_srv_auth {
	IBTRS_SRV_AUTH_OFF,
	IBTRS_SRV_AUTH_OPTIONAL,
	IBTRS_SRV_AUTH_REQUIRED,
};

/* What a session had open that has ended, whatever the application means by open. */
enum ibtrs_srv_left {
	IBTRS_SRV_LEFT_CLOSED,		/* it had closed all that it had opened */
	IBTRS_SRV_LEFT_OPEN,
	IBTRS_SRV_LEFT_UNUSED,		/* it had never opened anything */
};

/**
 * struct ibtrs_srv_opts - options of a server
 * @size: sizeof(struct ibtrs_srv_opts)
 * @queue_depth: slots of a session, 2 .. 65535; 0: 128
 * @max_io_size: largest data of a request, 4096 ..; 0: 126976
 * @hb_ms: interval of heartbeats; 0: 1000
 * @hb_misses: so many intervals without a sign of life are tolerated; 0: 5
 * @max_memory_mb: MiB for the chunks of all clients: each path has queue_depth of them, of
 *	max_io_size and 4096 bytes; 0: what 64 paths need
 * @admit: may a session of this name come from this address? @key is the name of the key that it
 *	has proved, or empty. 0, or a negative errno and words, which the client is told. NULL: yes.
 *	Called with the server locked: must not call the library
 * @now_ms: as in struct ibtrs_ctx_opts
 * @priv: handed to @admit, @now_ms and @key
 * @auth: IBTRS_SRV_AUTH_OFF, .._OPTIONAL or .._REQUIRED; the others need @key
 * @key: fills in the keys of a name, the present one first. Return: how many there are; 0: none has
 *	that name. Asked for each proof, and again when the path is let in: a key that is gone by
 *	then counts no more. Called as @admit is; the library wipes what it got
 * @max_memory_per_peer_mb: the same for one client: an address, and the key that was proved from
 *	there. 0: three quarters of it, or all if max_memory_mb is set
 * @max_memory_per_key_mb: for one key, from however many addresses; 0: three quarters where one
 *	client has a limit, else all
 * @max_sessions, @max_sessions_per_peer, @max_sessions_per_key: 0: 256, 64, three quarters
 * @max_paths_half_open: paths in the handshake, of all clients together that have no key and are
 *	not in from their address; 0: 256
 * @max_paths_half_open_per_peer: of any client; 0: 64
 * @gone: a session of this number has ended, and so has each request of it. Return: what its
 *	client left, which may have been lost. Called as @admit is, by ibtrs_srv_poll(),
 *	ibtrs_op_reply() or ibtrs_srv_free(). NULL: nothing
 * @name_keep_s: seconds for which the name of a session that left something open is kept for its
 *	client or its host; 0: it is not
 * @memory: here is the data of a path's requests from now on: @len bytes that its adapter keeps
 *	locked, such as io_uring can register, too. Return: a number of the caller's, for struct
 *	ibtrs_op; -1: none. Called as @admit is, and never for a stream. NULL: none
 * @memory_gone: none of those requests is left, and their memory is freed next. Called as @gone is
 * @refused: a client from @peer was refused: what, and why, as a line for a log. Strangers can
 *	cause it as often as they like. Called as @admit is. NULL: nobody is told
 */
struct ibtrs_srv_opts {
	size_t size;
	uint32_t queue_depth;
	uint32_t max_io_size;
	uint32_t hb_ms;
	uint32_t hb_misses;
	uint32_t max_memory_mb;
	int (*admit)(void *priv, const char *name, const char *peer, const char *key,
		     char why[IBTRS_WHY_LEN]);
	uint64_t (*now_ms)(void *priv);
	void *priv;
	uint32_t auth;
	unsigned int (*key)(void *priv, const char *name,
			    uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN]);
	enum ibtrs_srv_left (*gone)(void *priv, uint64_t session);
	int (*memory)(void *priv, void *addr, size_t len);
	void (*memory_gone)(void *priv, int memory);
	uint32_t max_memory_per_peer_mb;
	uint32_t max_memory_per_key_mb;
	uint32_t max_sessions;
	uint32_t max_sessions_per_peer;
	uint32_t max_sessions_per_key;
	uint32_t max_paths_half_open;
	uint32_t max_paths_half_open_per_peer;
	uint32_t name_keep_s;
	void (*refused)(void *priv, const char *peer, const char *what);
};

/* @o may be NULL. Nothing listens before ibtrs_srv_listen(). */
IBTRS_API int ibtrs_srv_new(const struct ibtrs_srv_opts *o, struct ibtrs_srv **srv,
			    char why[IBTRS_WHY_LEN]);
/* Closes all connections. Return: 0, or -EBUSY: an op has not been replied to yet; try again. */
IBTRS_API int ibtrs_srv_free(struct ibtrs_srv *srv);
/**
 * ibtrs_srv_listen() - accept connections at an address
 * @at: `ip:ADDRESS[:PORT]`, `tcp:ADDRESS[:PORT]` or `unix:/path`, as in ibtrs_clt_open(); port 0:
 *	any that is free
 *
 * Return: the port (0 for unix:), or a negative errno.
 */
IBTRS_API int ibtrs_srv_listen(struct ibtrs_srv *srv, const char *at, char why[IBTRS_WHY_LEN]);
/* Takes over a connected stream socket that the caller has accepted or made. */
IBTRS_API int ibtrs_srv_take(struct ibtrs_srv *srv, int fd);
/**
 * ibtrs_srv_poll() - serve connections, and get requests to execute
 * @timeout_ms: how long to wait for the first one; 0: not at all, -1: as long as it takes
 *
 * The thread that polls drives the server: without polls it answers no heartbeat. Several threads
 * may poll.
 *
 * Return: how many are in @op. Each must get its ibtrs_op_reply(), however late.
 */
IBTRS_API int ibtrs_srv_poll(struct ibtrs_srv *srv, struct ibtrs_op **op, unsigned int max,
			     int timeout_ms);
/* Readable when ibtrs_srv_poll() may have something, heartbeats aside: poll each hb_ms, too. */
IBTRS_API int ibtrs_srv_fd(const struct ibtrs_srv *srv);
/**
 * ibtrs_srv_event() - tell the client of a session something
 * @session: its number, of struct ibtrs_op
 * @kind: up to IBTRS_EVENT_KIND_MAX
 * @id: up to IBTRS_EVENT_ID_MAX. Both are the application's, and opaque to the transport; with
 *	clients of ibnbd they mean what docs/protocol.md 8.3 says
 *
 * A hint: it is lost with the path that it is on. From any thread.
 *
 * Return: 0; -ENOENT: there is no such session any more; -EOPNOTSUPP: its client does not take
 * events; -ENOTCONN: no path is up; -EAGAIN: events on all paths still wait to be sent.
 */
IBTRS_API int ibtrs_srv_event(struct ibtrs_srv *srv, uint64_t session, uint32_t kind, uint32_t id);
/**
 * ibtrs_srv_peers() - the addresses that a session comes from at the moment
 * @session: its number, of an op
 * @each: called for each path that is up, with the address that @admit was called with, and with
 *	the server locked: must not call the library. NULL: they are only counted
 *
 * Return: how many paths of the session are up; 0: its client is away, or there is no such session.
 */
IBTRS_API unsigned int ibtrs_srv_peers(struct ibtrs_srv *srv, uint64_t session,
				       void (*each)(void *priv, const char *peer), void *priv);
/**
 * ibtrs_srv_disconnect() - close the paths of a session that come from an address
 * @session: its number, of an op
 * @peer: as of ibtrs_srv_peers(); NULL: all paths
 *
 * The client is not kept out, and comes back. From any thread. Return: how many were up.
 */
IBTRS_API unsigned int ibtrs_srv_disconnect(struct ibtrs_srv *srv, uint64_t session,
					    const char *peer);
/**
 * ibtrs_op_reply() - answer a request, exactly once
 * @err: 0 or a negative errno
 *
 * From any thread, also when the client is gone; @op must not be touched afterwards. Return: false:
 * its path is lost, and nobody hears it.
 */
IBTRS_API bool ibtrs_op_reply(struct ibtrs_op *op, int err);
/**
 * ibtrs_op_may_forget() - if its path is lost, the client waits for this request no more
 *
 * The path is then let in again, and the request's slot is used again, before ibtrs_op_reply(),
 * which is still due. For a question that the client repeats, and for what it has given up. A write
 * may change @data's destination after later ones: its owner keeps those away. From any thread.
 */
IBTRS_API void ibtrs_op_may_forget(struct ibtrs_op *op);

#ifdef __cplusplus
}
#endif
#endif
