/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ibnbd-serverd: the server of IBNBD in user space.
 *
 * One thread, that of main.c, has all objects, so there is no lock over them. What may take long is
 * done by the kernel (ring.c) or by a worker (job.c), and continues in that thread. A worker
 * touches what its job brings along and nothing else.
 */
#ifndef IBNBD_USER_SERVERD_H
#define IBNBD_USER_SERVERD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include "ibnbd/logic/access.h"
#include "ibnbd/logic/epoch.h"
#include "ibnbd/logic/export.h"
#include "ibnbd/logic/policy.h"
#include "ibnbd/logic/record.h"
#include "ibnbd/logic/text.h"
#include "ibtrs/user/libibtrs.h"

#define SERVERD_BUCKETS		64	/* of a session's table of ids */
#define SERVERD_RINGS		129	/* of as many paths, and one */
#define SERVERD_WORKERS		4
#define SERVERD_WORKERS_MAX	64	/* while disks do not answer */
#define SERVERD_LOOK_MS		500
#define SERVERD_UNCLAIMED_MS	20000
/* A disk that hangs keeps out a client whose paths were lost: for so long, as in the kernel. */
#define SERVERD_AWAY_MS		30000
#define SERVERD_BLOCK_MAX	32768u	/* the wire has 16 bits for it */
#define SERVERD_KEY_LEN		64

struct serverd;
struct serverd_open;

/* ---- job.c: what may take long --------------------------------------------- */

/**
 * struct serverd_job - work for a worker
 * @run: in a worker
 * @done: in the thread of the server; the job may be gone afterwards
 */
struct serverd_job {
	void (*run)(struct serverd_job *job);
	void (*done)(struct serverd *d, struct serverd_job *job);
	struct serverd_job *next;
};

int serverd_jobs_start(struct serverd *d);
void serverd_job(struct serverd *d, struct serverd_job *job);
/* Continue the jobs that have ended. */
void serverd_jobs_done(struct serverd *d);

/* ---- conf.c ---------------------------------------------------------------- */

enum serverd_copy { SERVERD_COPY_AUTO, SERVERD_COPY_ALWAYS, SERVERD_COPY_NEVER };
enum serverd_io_mode { SERVERD_IO_AUTO, SERVERD_IO_BLOCK, SERVERD_IO_FILE };

/**
 * struct serverd_conf - server.conf and policy.conf, as they are in force
 * @allow: NULL: everybody
 * @policy: NULL: there is none
 */
struct serverd_conf {
	char *search;
	struct ibnbd_allow *allow;
	struct ibnbd_policy_rules *policy;
	uint32_t auth;
	unsigned int port;
	enum serverd_copy copy;
	enum serverd_io_mode io_mode;
	u32 file_block;
	bool claim;
	bool zeroes_for_all;
	u32 max_maps;
	char *writer_file;		/* NULL: the default */
};

/**
 * struct serverd_opts - the command line
 * @config, @policy: files; NULL: those of /etc/ibnbd
 * @listen: addresses, @nr_listen of them
 */
struct serverd_opts {
	const char *config;
	const char *policy;
	const char **listen;
	unsigned int nr_listen;
	u32 queue_depth;
	u32 max_memory_mb;
	u32 max_memory_per_peer_mb;
	u32 max_memory_per_key_mb;
	u32 max_sessions;
	u32 max_sessions_per_peer;
	u32 max_sessions_per_key;
	u32 max_paths_half_open;
	u32 max_paths_half_open_per_peer;
	u32 hb_ms;
	u32 hb_misses;
	u32 name_keep_s;
};

/* What is wrong was printed. NULL: there is a mistake. */
struct serverd_conf *serverd_conf_load(const struct serverd_opts *o);
void serverd_conf_free(struct serverd_conf *c);
/* As the options of libibtrs of the same name. @priv: struct serverd. */
unsigned int serverd_conf_key(void *priv, const char *name,
			      uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN]);

/* ---- backing.c, lookup.c: the object behind an open -------------------------- */

enum serverd_kind { SERVERD_FILE, SERVERD_DISK, SERVERD_NBD };

/**
 * struct serverd_backing - a file, a block device or an NBD server's disk that is open
 * @nbd: of the last; it has no @fd
 * @fd: for everything that fits @align; @page_fd: through the page cache; -1: it has none
 * @align: of direct I/O; 0: it cannot do any, and @fd is @page_fd
 * @dev, @ino, @generation: the inode, or the number of the device; as the kernel counts devices; or
 *	what stands for it in the records
 * @disk_dev: the whole disk
 * @sysfs: directory of the whole disk below /sys, or of the disk below its file system; or empty
 * @boot: this boot and this disk as a number, for its record; 0: it is not known
 * @claim_fd: keeps this host from the disk, until its export has it; -errno: it could not be had
 */
struct serverd_backing {
	int fd;
	int page_fd;
	struct serverd_nbd *nbd;
	enum serverd_kind kind;
	bool writes;
	u32 align;
	u32 block;
	u32 dev;
	u64 ino;
	u32 generation;
	u32 disk_dev;
	bool has_volatile;
	bool stable;			/* checks what it writes: needs data that does not change */
	int claim_fd;
	bool used_here;			/* another program had it open for writing, or claimed it */
	char sysfs[64];
	u64 boot;
	struct ibnbd_identity id;
	struct ibnbd_identity cache_id;
	int id_unknown;			/* why @id is NONE, an errno; 0: it has none */
};

/**
 * struct serverd_find - what is to be opened, for a worker
 * @search, @session, @name, @io_mode, @file_block, @writes, @claims: in
 * @b, @err, @why: out; @why: a constant, may be empty
 */
struct serverd_find {
	char *search;
	char session[IBNBD_NAME_LEN];
	char name[IBNBD_NAME_LEN];
	enum serverd_io_mode io_mode;
	u32 file_block;
	bool writes;
	bool claims;
	struct serverd_backing b;
	int err;
	const char *why;
};

/* In a worker. */
void serverd_backing_open(struct serverd_find *f);
void serverd_backing_close(struct serverd_backing *b);
/* 0 or an errno: the path of what the name means, as a descriptor without access. */
int serverd_lookup(struct serverd_find *f);
u64 serverd_backing_nsectors(const struct serverd_backing *b);
void serverd_backing_describe(const struct serverd_backing *b, bool no_punch, bool copies,
			      struct ibnbd_open_rsp *rsp);
bool serverd_backing_volatile(const struct serverd_backing *b);
/* Make what was written durable; waits. */
int serverd_backing_flush(const struct serverd_backing *b);
/* A number below the disk's directory in /sys; 0: there is none. */
u64 serverd_sysfs_number(const char *dir, const char *attr);
int serverd_sysfs_text(const char *dir, const char *attr, char *buf, size_t size);

/* ---- identity.c ------------------------------------------------------------- */
void serverd_identity(struct serverd_backing *b);
/* Id of this boot, as text; empty: it is not known. */
const char *serverd_identity_boot(void);

/* ---- record.c: who wrote last, and the cache epochs -------------------------- */

struct serverd_keep {			/* waits until the records are on disk */
	void (*kept)(struct serverd *d, struct serverd_keep *k, int err);
	struct serverd_keep *next;
};

struct serverd_records;
/* 0, or the reason was printed. */
int serverd_records_load(struct serverd *d);
bool serverd_record_writer(struct serverd *d, const struct ibnbd_identity *id, u64 *gen,
			   u8 writer[16]);
void serverd_record_set_writer(struct serverd *d, const struct ibnbd_identity *id, u64 gen,
			       const u8 writer[16]);
/* @boot: of the backing; with the one that is recorded, its writers have lost nothing. */
void serverd_record_epoch(struct serverd *d, const struct ibnbd_identity *id, u64 boot,
			  struct ibnbd_epoch *e);
void serverd_record_set_epoch(struct serverd *d, const struct ibnbd_identity *id, u64 boot,
			      const struct ibnbd_epoch *e);
u64 serverd_record_new_gen(struct serverd *d);
void serverd_records_keep(struct serverd *d, struct serverd_keep *k);
/* The same, and wait for it: the server stops. */
void serverd_records_keep_now(struct serverd *d);

/* ---- export.c --------------------------------------------------------------- */

struct serverd_io;

/**
 * struct serverd_export - a disk or file that is open
 * @kind, @dev, @ino, @generation: which
 * @writers: W of protocol 10.4
 * @claim_fd: keeps this host from the disk; @claims: opens that want it
 * @directs: direct writes that are under way; @mixed: a write through the page cache is
 * @waiting: writes that wait for that
 */
struct serverd_export {
	struct serverd_export *next;
	enum serverd_kind kind;
	u32 dev;
	u64 ino;
	u32 generation;
	u32 disk_dev;
	struct serverd_open *opens;
	u32 writers;
	int claim_fd;
	u32 claims;
	u64 nsectors;
	u64 writer_gen;
	struct ibnbd_identity identity;
	struct ibnbd_identity cache_id;
	u64 boot;
	struct ibnbd_epoch cache;
	bool cache_volatile;
	bool cache_seen;
	bool no_punch;
	u64 clean_epoch;
	u32 directs;
	bool mixed;
	struct serverd_io *waiting;
	struct serverd_io **waiting_end;
};

enum serverd_open_state {
	SERVERD_OPEN_NEW,
	SERVERD_OPEN_LIVE,
	SERVERD_OPEN_CLOSING,
	SERVERD_OPEN_RELEASED,
};

/**
 * struct serverd_open - one mapping of one session
 * @next: of its session's bucket, or of its list of those that are being opened
 * @of_export: next of the export
 * @flush_tried, @flushed: the flush behind the last writer was sent, and has succeeded
 * @unclaimed: when it was opened, if its client has not come for it yet; 0: its client has
 */
struct serverd_open {
	struct serverd_open *next;
	struct serverd_open *of_export;
	struct serverd_session *session;
	struct serverd_export *export;
	u32 id;
	enum serverd_open_state state;
	enum ibnbd_access access;
	bool exclusive;
	bool beside;
	bool claims;
	bool copies;
	bool given_up;
	bool lost;
	bool asked_again;
	bool flush_tried;
	bool flushed;
	u64 unclaimed;
	u32 tries;
	struct serverd_io *ios;		/* in flight */
	u64 epoch;
	struct ibnbd_facts facts;
	struct serverd_backing b;
	struct serverd_find find;
	struct serverd_job job;
	struct serverd_keep keep;
	struct ibtrs_op *op;		/* the OPEN, or the CLOSE that waits */
	bool identity, durability, words;
	char name[IBNBD_NAME_LEN];
};

/* Does an export of it keep this host from it? */
bool serverd_export_claimed(struct serverd *d, const struct serverd_backing *b);
int serverd_export_attach(struct serverd *d, struct serverd_open *open, const char **why);
void serverd_export_detach(struct serverd *d, struct serverd_open *open);
bool serverd_export_last_writer(const struct serverd_open *open);
bool serverd_export_beside(const struct serverd_open *open);
void serverd_export_describe(struct serverd *d, struct serverd_open *open,
			     struct ibnbd_open_rsp *rsp);
void serverd_export_kept(struct serverd *d, struct serverd_export *e, bool kept);
/* A flush has failed: the cache of the disk may have dropped what it could not write. */
void serverd_export_doubt(struct serverd *d, struct serverd_export *e);
#define SERVERD_CUT	"the connection to its NBD server broke"

/* It did: clients that have the disk open must open it again. */
void serverd_export_cut(struct serverd *d, const struct serverd_nbd *n);
/* Sizes, and caches that were switched on. */
void serverd_exports_look(struct serverd *d);

/* ---- session.c --------------------------------------------------------------- */

struct serverd_session {
	struct serverd_session *next;
	u64 number;
	u8 uuid[IBTRS_SESSION_UUID];
	char name[IBNBD_NAME_LEN];
	char label[IBNBD_LINKNAME_MAX];	/* that the log and status.c call it by */
	char key[SERVERD_KEY_LEN];
	u8 version;
	u64 features;
	u32 next_id;
	u32 nr;				/* opens in the table */
	u64 away;			/* since then no path is up; 0: one is */
	bool gone;
	bool used;			/* it has opened something */
	bool left_open;			/* and was lost with it */
	struct serverd_open *opening;
	struct serverd_open *table[SERVERD_BUCKETS];
};

struct serverd_session *serverd_session_of(struct serverd *d, const struct ibtrs_op *op);
struct serverd_open *serverd_session_find(struct serverd_session *s, u32 id);
struct serverd_open *serverd_session_named(struct serverd_session *s, const char *name);
bool serverd_session_knows_epochs(const struct serverd_session *s);
bool serverd_session_is_here(struct serverd *d, const struct serverd_session *s);
void serverd_session_publish(struct serverd_open *open);
void serverd_session_close(struct serverd *d, struct serverd_session *s, u32 id,
			   struct ibtrs_op *op, bool nowait);
void serverd_session_policy(struct serverd *d, const struct serverd_session *s, const char *name,
			    struct ibnbd_policy_verdict *v);
/* As the options of libibtrs of the same names. */
int serverd_session_admit(void *priv, const char *name, const char *peer, const char *key,
			  char why[IBTRS_WHY_LEN]);
enum ibtrs_srv_left serverd_session_gone(void *priv, uint64_t number);
void serverd_sessions_reap(struct serverd *d);
/* The policy has changed, or this open has got its place. False: it is closed. */
bool serverd_session_judge(struct serverd *d, struct serverd_open *open);
/* The configuration has changed: close what it does not allow any more. */
void serverd_sessions_judge(struct serverd *d);
/* An event, for a client that takes them and is there. False: it does not hear of it. */
bool serverd_open_tell(struct serverd *d, const struct serverd_open *open, u32 kind);
void serverd_open_lose(struct serverd *d, struct serverd_open *open, const char *why);
void serverd_open_put(struct serverd *d, struct serverd_open *open);	/* an I/O has ended */
void serverd_open_release(struct serverd *d, struct serverd_open *open);
void serverd_open_free(struct serverd_open *open);
void serverd_sessions_look(struct serverd *d);

/* ---- msg.c, io.c ------------------------------------------------------- */
void serverd_msg(struct serverd *d, struct ibtrs_op *op);
bool serverd_msg_reply(struct ibtrs_op *op, const void *reply, u32 len);
void serverd_open_msg(struct serverd *d, struct serverd_session *s, struct ibtrs_op *op);
void serverd_io_msg(struct serverd *d, struct serverd_session *s, struct ibtrs_op *op);
/* Its client does not wait for what is in flight of @open. */
void serverd_io_forget(struct serverd_open *open);

/* ---- ring.c: what the kernel does meanwhile ------------------------------------- */

enum serverd_ring_op {
	SERVERD_READ,
	SERVERD_WRITE,
	SERVERD_FSYNC,
	SERVERD_FALLOCATE,
	SERVERD_DISCARD,		/* of a block device by a worker, or by NBD */
};

/**
 * struct serverd_ring_job - a call of the kernel
 * @nbd: its server does it in place of the kernel; or NULL
 * @memory: the number of serverd_ring_memory() that @buf is in; -1: in none
 * @done: with @res, as the call returns it: bytes or a negative errno
 * @flags: RWF_*, or the mode of fallocate(2)
 */
struct serverd_ring_job {
	struct serverd_job job;		/* for a worker, where there is no ring; first */
	enum serverd_ring_op op;
	struct serverd_nbd *nbd;
	int fd;
	void *buf;
	u32 len;
	int memory;
	u64 pos;
	int flags;
	int res;
	void (*done)(struct serverd *d, struct serverd_ring_job *r);
};

void serverd_ring_start(struct serverd *d);
/* As the options of libibtrs memory and memory_gone. @priv: struct serverd. */
int serverd_ring_memory(void *priv, void *addr, size_t len);
void serverd_ring_memory_gone(void *priv, int memory);
void serverd_ring(struct serverd *d, struct serverd_ring_job *r);
void serverd_ring_flush(struct serverd *d);
void serverd_ring_done(struct serverd *d);
void serverd_ring_stop(struct serverd *d);

/* ---- nbd.c: disks that an NBD server has ---------------------------------------- */

enum serverd_nbd_ability {
	SERVERD_NBD_FLUSH,
	SERVERD_NBD_FUA,
	SERVERD_NBD_TRIM,
	SERVERD_NBD_ZERO,
	SERVERD_NBD_READ_ONLY,
	SERVERD_NBD_ROTATIONAL,
	SERVERD_NBD_MULTI,		/* what one connection flushed, the others see */
};

/* In a worker, or where no client waits for it. */
int serverd_nbd_open(struct serverd_find *f, int path);
void serverd_nbd_close(struct serverd_nbd *n);
int serverd_nbd_flush(struct serverd_nbd *n);
/* In the thread of the server, between watch and unwatch: calls, as those of the ring. */
int serverd_nbd_watch(struct serverd *d, struct serverd_nbd *n);
void serverd_nbd_unwatch(struct serverd *d, struct serverd_nbd *n);
void serverd_nbd(struct serverd *d, struct serverd_ring_job *r);
void serverd_nbd_ready(struct serverd *d, int fd, u32 events);
void serverd_nbd_done(struct serverd *d);
/* What the server said when it was connected. Sizes are bytes; 0: it is not known. */
u64 serverd_nbd_size(const struct serverd_nbd *n);
u32 serverd_nbd_preferred(const struct serverd_nbd *n);
bool serverd_nbd_can(const struct serverd_nbd *n, enum serverd_nbd_ability what);
/* The connection broke, and serverd_export_cut() has been called. */
bool serverd_nbd_gone(const struct serverd_nbd *n);

/* ---- status.c: who is connected with what open, for the command ibnbd -------------- */

/**
 * struct serverd_status - the files that say it
 * @dir: where they are; -1: nowhere, the server is no service of systemd
 * @said: what they say
 * @nr: of the newest tree
 * @orders: the files that take them; @nr_orders: how many there have been; @ep: readable when
 *	something was written to one
 */
struct serverd_status {
	int dir;
	char *said;
	unsigned int nr;
	struct status_order *orders;
	unsigned int nr_orders;
	int ep;
};

void serverd_status_start(struct serverd *d);
/* Follow an order, if one was given. */
void serverd_status_ready(struct serverd *d);
/* Says it anew if something has changed. */
void serverd_status_look(struct serverd *d);
void serverd_status_stop(struct serverd *d);

/* ---- main.c ----------------------------------------------------------------------- */

struct serverd {
	struct ibtrs_srv *srv;
	struct serverd_opts opts;
	struct serverd_conf *conf;
	struct serverd_session *sessions;
	struct serverd_export *exports;
	struct serverd_records *records;
	struct serverd_jobs *jobs;
	int jobs_fd;
	int ep;
	struct serverd_ring *rings[SERVERD_RINGS];	/* the first is for all memory */
	unsigned int nr_rings;
	struct serverd_nbd *nbds;
	struct serverd_status status;
	bool stopping;
};

/* The program; returns its exit code. */
int serverd_main(int argc, char **argv);
u64 serverd_now_ms(void);
u64 serverd_random(void);
/* A line of the log; at most ten in five seconds. Names in it are made visible. */
void serverd_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
