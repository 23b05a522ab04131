/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * libibnbd: disks of an IBNBD server in user space, without a kernel device (docs/libibnbd.md).
 *
 * It stands on libibtrs, whose rules hold here, too: functions return 0 or a negative errno; those
 * with a @why fill it with words that name the object, the cause and what to do. Structs of options
 * and answers begin with their size: zero the struct and set size. No global state, no signals, no
 * handlers, no fork. An object is freed when no thread uses it any more.
 *
 * Any thread may call any function. Requests of a queue that were submitted with
 * ibnbd_q_submit() are handed back to the caller of ibnbd_q_poll() for that queue.
 */
#ifndef LIBIBNBD_H
#define LIBIBNBD_H

#include <libibtrs.h>

#ifdef __cplusplus
extern "C" {
#endif

#define IBNBD_API __attribute__((visibility("default")))

struct ibnbd_disk;	/* a disk of a server, with a session of its own */
struct ibnbd_q;		/* one of its queues */

/* ---- disk --------------------------------------------------------------- */

enum ibnbd_disk_access {
	IBNBD_DISK_RW,		/* the only writer */
	IBNBD_DISK_RO,
	IBNBD_DISK_MIGRATION,	/* up to two writers, while a machine moves from one to the other */
};

/* As the options of the kernel's client, docs/protocol.md 10.8. */
enum ibnbd_disk_auto {
	IBNBD_DISK_AUTO,
	IBNBD_DISK_ON,
	IBNBD_DISK_OFF,
};

/* What if the server may have lost writes that were answered, and that no flush has covered? */
enum ibnbd_disk_unflushed {
	/* as REPLAY, if the server tells of its cache; else as IGNORE */
	IBNBD_DISK_UNFLUSHED_AUTO,
	/*
	 * fence the disk, also where a server says nothing of its cache and the session was lost
	 */
	IBNBD_DISK_UNFLUSHED_FENCE,
	IBNBD_DISK_UNFLUSHED_IGNORE,	/* go on, as with a disk of this machine */
	/* keep a copy of each write until a flush has covered it, and send it again; or as FENCE */
	IBNBD_DISK_UNFLUSHED_REPLAY,
};

#define IBNBD_HOLD_DEFAULT	0		/* 100 s, as the kernel's client */
#define IBNBD_HOLD_FOREVER	(-1)
#define IBNBD_HOLD_NONE		(-2)		/* requests fail as soon as no path is up */

/**
 * struct ibnbd_disk_opts - options of a disk
 * @size: sizeof(struct ibnbd_disk_opts)
 * @access: enum ibnbd_disk_access
 * @hold_ms: how long requests wait while no path is up, or while the server does not open the disk
 *	again; then they fail until it does. Or IBNBD_HOLD_*
 * @write_zeroes, @write_cache: enum ibnbd_disk_auto
 * @unflushed: enum ibnbd_disk_unflushed
 * @retain_mb: memory for these copies; 0: 64 MiB. When half of it is used, the library flushes
 */
struct ibnbd_disk_opts {
	size_t size;
	uint32_t access;
	int32_t hold_ms;
	uint32_t write_zeroes;
	uint32_t write_cache;
	uint32_t unflushed;
	uint32_t retain_mb;
};

/**
 * struct ibnbd_disk_info - a disk as it is now
 * @size: in: sizeof(struct ibnbd_disk_info)
 * @bytes: capacity, which may change while the disk is open
 * @block_size: offsets and lengths are multiples of it
 * @physical_block_size, @io_min, @io_opt: 0: not known
 * @max_bytes: of a read or a write
 * @max_discard, @max_zeroes: bytes of one request; 0: the disk has no such operation
 * @discard_granularity, @discard_alignment: bytes
 * @q_depth: requests that a queue takes at a time
 * @paths, @paths_up: of the session
 * @read_only: writes fail
 * @rotational: the server's disk has a seek time
 * @cache: a write may be lost with the server's power until a flush has covered it
 * @fua: IBNBD_REQ_FUA is passed on to the disk; otherwise flush
 * @unmap: zeroes may free blocks, and IBNBD_REQ_NOUNMAP has a meaning
 * @state: init open closed unmapped, the word of the kernel client's attribute of that name
 * @state_detail: init open held replaying failed fenced unmapped
 * @unflushed: bytes written that no flush has covered
 * @opened: how often the server has opened it for us and was believed
 * @reason: of the state, or empty
 * @replays: how often writes that the server may have lost were sent again
 */
struct ibnbd_disk_info {
	size_t size;
	uint64_t bytes;
	uint32_t block_size;
	uint32_t physical_block_size;
	uint32_t io_min;
	uint32_t io_opt;
	uint32_t max_bytes;
	uint32_t max_discard;
	uint32_t max_zeroes;
	uint32_t discard_granularity;
	uint32_t discard_alignment;
	uint32_t q_depth;
	uint32_t paths;
	uint32_t paths_up;
	bool read_only;
	bool rotational;
	bool cache;
	bool fua;
	bool unmap;
	const char *state;
	const char *state_detail;
	uint64_t unflushed;
	uint32_t opened;
	char reason[IBTRS_WHY_LEN];
	uint32_t replays;
};

/**
 * ibnbd_disk_open() - open a disk of a server
 * @ctx: of libibtrs, with a thread of its own or stepped by the caller
 * @name: as the server exports it
 * @paths: where the server is, as in ibtrs_clt_open()
 * @nr: number of paths
 * @session: options of the session: its name, keys, queues, heartbeats, dial. flags, link and event
 *	are the library's
 * @o: options, or NULL
 *
 * Waits until a path is up and the server has answered. A thread of the library then watches over
 * the disk until it is closed.
 */
IBNBD_API int ibnbd_disk_open(struct ibtrs_ctx *ctx, const char *name, const char *const *paths,
			      unsigned int nr, const struct ibtrs_clt_opts *session,
			      const struct ibnbd_disk_opts *o, struct ibnbd_disk **disk,
			      char why[IBTRS_WHY_LEN]);
/*
 * Tells the server, and ends the session. Does not flush. Requests that are not handed back by then
 * never are. May take 5 s if the server does not answer.
 */
IBNBD_API void ibnbd_disk_close(struct ibnbd_disk *disk);
IBNBD_API int ibnbd_disk_info(struct ibnbd_disk *disk, struct ibnbd_disk_info *info);
/*
 * For ibtrs_clt_info(), ibtrs_clt_path_info(), ibtrs_clt_mem_add() and ibtrs_clt_mem_del(); nothing
 * else may be done with it.
 */
IBNBD_API struct ibtrs_clt *ibnbd_disk_session(struct ibnbd_disk *disk);

/* ---- requests ----------------------------------------------------------- */

enum ibnbd_req_op {
	IBNBD_REQ_READ,
	IBNBD_REQ_WRITE,
	IBNBD_REQ_FLUSH,	/* offset and len are 0 */
	IBNBD_REQ_DISCARD,	/* no data; what is read afterwards is anything */
	IBNBD_REQ_ZEROES,	/* no data */
};

#define IBNBD_REQ_FUA		0x1u	/* write: it is safe when it has ended */
#define IBNBD_REQ_NOUNMAP	0x2u	/* zeroes: the blocks stay allocated */

/**
 * struct ibnbd_req - a request
 * @op: enum ibnbd_req_op
 * @flags: IBNBD_REQ_FUA, IBNBD_REQ_NOUNMAP
 * @len: bytes
 * @offset: bytes
 * @data: of a read or a write
 * @err: result: 0 or a negative errno
 * @why: a constant text about @err, or NULL
 * @user: the caller's own
 * @next, @priv: the library's own; @priv need not be zeroed
 *
 * The struct and @data belong to the library from the submission until the request is handed back.
 * A request may be executed twice, one after the other (see docs/libibtrs.md).
 */
struct ibnbd_req {
	uint8_t op;
	uint8_t flags;
	uint32_t len;
	uint64_t offset;
	void *data;
	int32_t err;
	const char *why;
	void *user;
	struct ibnbd_req *next;
	uint64_t priv[24];
};

/* Queue @i of the disk, 0 .. queues of the session - 1; NULL: there is no such queue. */
IBNBD_API struct ibnbd_q *ibnbd_disk_q(struct ibnbd_disk *disk, unsigned int i);
/**
 * ibnbd_q_submit() - send requests
 *
 * While the disk is held they wait. While it has failed or is fenced they end at once.
 *
 * Return: how many were taken, fewer than @nr if the queue is full; or, if the first one is not
 * valid, what is in its err, with words in its why: -EINVAL, -EIO (beyond the end), -EROFS,
 * -EOPNOTSUPP.
 */
IBNBD_API int ibnbd_q_submit(struct ibnbd_q *q, struct ibnbd_req *const *req, unsigned int nr);
/**
 * ibnbd_q_poll() - requests that have ended
 * @timeout_ms: how long to wait for the first one; 0: not at all, -1: as long as it takes
 *
 * Return: how many are in @done.
 */
IBNBD_API int ibnbd_q_poll(struct ibnbd_q *q, struct ibnbd_req **done, unsigned int max,
			   int timeout_ms);
/* Readable when ibnbd_q_poll() may have something. Poll with timeout 0 before sleeping on it. */
IBNBD_API int ibnbd_q_fd(const struct ibnbd_q *q);

/* ---- the same, waiting -------------------------------------------------- */

/*
 * Any number of threads may wait on one queue. Return: the result of the request; its words in
 * @req->why.
 */
IBNBD_API int ibnbd_q_do(struct ibnbd_q *q, struct ibnbd_req *req);
/*
 * Of any length, which is split as the disk needs it, and with IBNBD_REQ_FUA also where the disk
 * has no FUA. @why: constant words of a failure, may be NULL.
 */
IBNBD_API int ibnbd_read(struct ibnbd_q *q, void *data, size_t len, uint64_t offset,
			 const char **why);
IBNBD_API int ibnbd_write(struct ibnbd_q *q, const void *data, size_t len, uint64_t offset,
			  unsigned int flags, const char **why);
IBNBD_API int ibnbd_flush(struct ibnbd_q *q, const char **why);
IBNBD_API int ibnbd_discard(struct ibnbd_q *q, uint64_t len, uint64_t offset, const char **why);
IBNBD_API int ibnbd_zeroes(struct ibnbd_q *q, uint64_t len, uint64_t offset, unsigned int flags,
			   const char **why);

#ifdef __cplusplus
}
#endif
#endif
