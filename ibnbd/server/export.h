/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An export is a backing object, shared by all sessions. An open is one session's hold on an
 * export. They are implemented in export.c and open.c. A field without a comment on locking is
 * protected by the export lock if it is an export's, and by the session's lock if it is an open's.
 * Fields that I/O reads are set before I/O can reach them, or may change one by one while it runs.
 * The memory of a killed open is freed only after its last I/O has ended and its directory has been
 * removed.
 */
#ifndef IBNBD_SERVER_EXPORT_H
#define IBNBD_SERVER_EXPORT_H

#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <ibtrs/srv.h>
#include "ibnbd/logic/access.h"
#include "ibnbd/logic/epoch.h"
#include "ibnbd/proto/msg.h"

struct ibnbd_srv_session;

enum ibnbd_srv_copy {
	IBNBD_SRV_COPY_AUTO,	/* private pages for devices that need stable data, and for files */
	IBNBD_SRV_COPY_ALWAYS,
	IBNBD_SRV_COPY_NEVER,
};

enum ibnbd_srv_io_mode {
	IBNBD_SRV_IO_AUTO,	/* by what the name resolves to */
	IBNBD_SRV_IO_BLOCK,	/* block devices only */
	IBNBD_SRV_IO_FILE,	/* regular files only */
};

/**
 * struct ibnbd_srv_export - a block device or a regular file that is open
 * @link: in the export list; under the export lock, like every field that names no other lock
 * @key: struct block_device or struct inode; alive because each open in @opens holds it
 * @writers: W of protocol 10.4
 * @claims: how many of @opens claim the disk
 * @copy: set by an administrator at any time, without a lock
 * @wq: for I/O that may wait, and for what follows at the end of opens: a disk or file system that
 *	hangs must not hold up the others
 * @later: blockio only: requests that wait for the device in a worker; under @later_lock (any
 *	context), and so are writes of @later_full, which says that new requests have to queue up
 *	behind them
 * @mixed: fileio only: direct writes share it, a buffered write has it alone
 * @identity: protocol 10.5, found at the first open
 * @id_unknown: the errno with which reading it has failed, so that it is NONE; or 0
 * @writer_id: the key of its record in writer.c: @identity, or, if that is NONE, its number
 * @cache_id: the key of its cache epoch: @identity, or, if that is NONE, an identity for this boot
 * @cache: cache epoch, and whether a flush covers all acknowledged writes; @cache_volatile: the
 *	disk has, or has had since the export was created, a cache that is lost with the power;
 *	@cache_seen: it had one at the last look, and no client has been told otherwise since
 * @disk: the disk that the block device is, or is a partition of; NULL for a file. It and
 *	@epoch_link are epoch.c's, and are read under RCU
 * @doubt: a flush has failed, and the new epoch has not begun yet: until then no read, flush or FUA
 *	write of a client that knows epochs succeeds; written by @doubt_work and
 *	ibnbd_srv_epoch_doubt()
 * @clean_epoch: the epoch that the writer file may still record as clean; 0: none
 * @no_punch: the file system said that it cannot punch holes
 * @kobj: ctl/devices/NAME; its release frees the export
 */
struct ibnbd_srv_export {
	struct list_head link;
	const void *key;
	struct list_head opens;
	u32 writers;
	u32 claims;
	enum ibnbd_srv_copy copy;
	bool no_punch;
	u64 nsectors;
	u64 writer_gen;
	struct ibnbd_epoch cache;
	bool cache_volatile;
	bool cache_seen;
	const struct gendisk *disk;
	struct list_head epoch_link;
	bool doubt;
	struct work_struct doubt_work;
	u64 clean_epoch;
	struct workqueue_struct *wq;
	struct work_struct free_work;
	spinlock_t later_lock;
	struct list_head later;
	bool later_full;
	struct work_struct later_work;
	struct rw_semaphore mixed;
	struct ibnbd_identity identity;
	struct ibnbd_identity writer_id;
	struct ibnbd_identity cache_id;
	int id_unknown;
	struct kobject kobj;
	struct kobject *sessions;
	struct rcu_head rcu;
};

enum ibnbd_srv_open_state {
	IBNBD_SRV_OPEN_NEW,		/* not in its session's table yet */
	IBNBD_SRV_OPEN_LIVE,
	IBNBD_SRV_OPEN_CLOSING,		/* waits for its I/O, or for its place to be released */
	/* backing closed; the id stays taken until the client closes */
	IBNBD_SRV_OPEN_RELEASED,
};

/**
 * struct ibnbd_srv_open - one mapping of one session
 * @ref: I/O in flight, plus one while it is live
 * @state, @given_up (CLOSE has come), @close_op (the CLOSE that waits for its answer), @lost
 *	(closed without a CLOSE; the id becomes free when the open is released), @unclaimed (when it
 *	was opened, if the client had sent OPEN again or lost the path by then, and has not come for
 *	it yet; else 0): under the session's lock
 * @drained: the last I/O has ended
 * @kobj: ctl/devices/NAME/sessions/SESSION, and the reference count of the memory
 */
struct ibnbd_srv_open {
	/* hot: set before publish; facts change field by field at a repeated OPEN */
	u32 id;
	enum ibnbd_access access;
	bool exclusive;			/* the policy keeps the disk from this host */
	bool beside;			/* it lets this one migrate beside an open of mode rw */
	struct block_device *bdev;	/* NULL: a file */
	struct file *file;		/* NULL: a block device */
	bool verifies;			/* has a blk-integrity profile */
	u32 align;			/* file: of direct I/O; 0: it cannot do any */
	u32 block;			/* file: logical block size */
	errseq_t wb_err;		/* file: write-back errors before this do not count */
	struct ibnbd_facts facts;
	u64 epoch;			/* the cache epoch that its client was told */
	struct ibnbd_srv_export *export;
	struct percpu_ref ref;

	/* cold */
	struct ibnbd_srv_session *session;
	cx_bdev_t handle;
	blk_mode_t mode;
	/* under which the disk is claimed, or NULL; under the export lock once attached */
	void *holder;
	bool claim_due;			/* claim once it has a size; under the export lock */
	struct work_struct claim_work;	/* does it, and has an I/O reference */
	/* claim.c's list: a file that is open for writing (or exclusive), or a claimed disk */
	struct list_head claim_link;
	const struct inode *inode;
	bool file_settled;		/* open, not being opened or closed */
	enum ibnbd_srv_open_state state;
	bool given_up;
	bool lost;
	unsigned long unclaimed;
	struct ibtrs_srv_op *close_op;
	struct list_head link;		/* export->opens, under the export lock */
	struct completion drained;
	struct work_struct release_work;
	struct kobject kobj;
	struct rcu_head rcu;
	char name[IBNBD_NAME_LEN];
};

extern const char *const ibnbd_srv_copy_names[];

/* open.c: opens as objects; the list of all exports, under the export lock */

extern struct mutex ibnbd_srv_export_lock;
extern struct list_head ibnbd_srv_export_list;

int ibnbd_srv_export_trylock(void);
struct ibnbd_srv_open *ibnbd_srv_open_new(struct ibnbd_srv_session *s, const char *name,
					  enum ibnbd_access access);
bool ibnbd_srv_open_kill(struct ibnbd_srv_open *open);
void ibnbd_srv_open_lose(struct ibnbd_srv_open *open, const char *why);
void ibnbd_srv_open_tell(const struct ibnbd_srv_open *open, u32 kind);
bool ibnbd_srv_open_connected(const struct ibnbd_srv_open *open);
void ibnbd_srv_open_unclaimed(struct ibnbd_srv_open *open);

static inline void ibnbd_srv_open_put(struct ibnbd_srv_open *open)
{
	kobject_put(&open->kobj);
}

/* export.c: opens with a place in an export */

int ibnbd_srv_export_open(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_export_release(struct ibnbd_srv_open *open);
int ibnbd_srv_export_cache_lost(struct ibnbd_srv_export *e);
/* Does @open migrate beside an open of mode rw, whose client has not agreed to a second writer? */
bool ibnbd_srv_place_is_beside(const struct ibnbd_srv_open *open);

/* facts.c: sizes and limits, as clients know them */

void ibnbd_srv_facts_exit(void);
void ibnbd_srv_facts_look_later(void);
void ibnbd_srv_facts_claim_work(struct work_struct *work);
void ibnbd_srv_facts_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
int ibnbd_srv_facts_resize(struct ibnbd_srv_export *e);

#endif
