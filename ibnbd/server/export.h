/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An export: a backing object, shared by all sessions. An open: one session's hold on it. Both are
 * export.c's and open.c's; everything of an export is under the export lock, of an open under its
 * session's, where no word of its own says otherwise. What I/O looks at is set before it can, or
 * read once. An open that is killed keeps its memory until its last I/O and its directory are gone.
 */
#ifndef IBNBD_SERVER_EXPORT_H
#define IBNBD_SERVER_EXPORT_H

#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/percpu-refcount.h>
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

enum {				/* spec F.3 */
	IBNBD_SRV_EVENT_RESIZED	= 1,
	IBNBD_SRV_EVENT_REVOKED	= 2,
};

/**
 * struct ibnbd_srv_export - a block device or a regular file that somebody has open
 * @link: export list, under the export lock, like everything without a word of its own
 * @key: struct block_device or struct inode; alive because each open in @opens holds it
 * @writers: W of spec B.3 rule 4
 * @claims: how many of them claim the disk
 * @wq: fileio only: one file system that hangs must not hold up the others
 * @later: blockio only: requests that have to wait for the device, in a worker; with @later_busy
 *	under @later_lock (any context), as is the writing of @later_full: what comes now waits
 *	behind them
 * @identity: F.4, found at the first open
 * @cache_id: by which its cache epoch is found again: the same, or that of this boot
 * @cache: cache epoch, and whether all that was acknowledged is flushed; @cache_volatile: has it a
 *	cache that is lost with the power, ever since it was opened
 * @disk: a block device: of which it is, or is a part; with @epoch_link epoch.c's, read under RCU
 * @doubt: a flush has failed, and its clients have not been sent to ask for the new epoch yet: no
 *	success is one for them; written by ibnbd_srv_epoch_doubt() and @doubt_work
 * @clean_epoch: the one of which the file may still say that it ended clean; 0: none
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
	bool is_file;
	bool no_punch;
	u64 nsectors;
	u64 writer_gen;
	struct ibnbd_epoch cache;
	bool cache_volatile;
	const struct gendisk *disk;
	struct list_head epoch_link;
	bool doubt;
	struct work_struct doubt_work;
	u64 clean_epoch;
	struct workqueue_struct *wq;
	spinlock_t later_lock;
	struct list_head later;
	bool later_busy;
	bool later_full;
	struct work_struct later_work;
	struct ibnbd_identity identity;
	struct ibnbd_identity cache_id;
	struct kobject kobj;
	struct kobject *sessions;
	struct rcu_head rcu;
};

enum ibnbd_srv_open_state {
	IBNBD_SRV_OPEN_NEW,		/* not in its session's table yet */
	IBNBD_SRV_OPEN_LIVE,
	IBNBD_SRV_OPEN_CLOSING,		/* waits for its I/O */
	/* backing closed; the id stays taken until the client closes */
	IBNBD_SRV_OPEN_RELEASED,
};

/**
 * struct ibnbd_srv_open - one mapping of one session
 * @ref: I/O in flight, plus one while it is live
 * @state, @given_up (CLOSE has come), @close_op (and waits), @lost (the client is gone), @unclaimed
 *	(when it was opened for a client that had lost patience by then, and has not asked again;
 *	else 0): under the session's lock
 * @drained: the last I/O has ended
 * @kobj: ctl/devices/NAME/sessions/SESSION, and the reference count of the memory
 */
struct ibnbd_srv_open {
	/* hot: set before publish; facts change field by field at a repeated OPEN */
	u32 id;
	enum ibnbd_access access;
	bool exclusive;			/* the policy keeps the disk from this host */
	bool beside;			/* it lets this one migrate beside one that writes alone */
	struct block_device *bdev;	/* NULL: a file */
	struct file *file;		/* NULL: a block device */
	enum ibnbd_srv_copy copy;
	bool verifies;			/* has a blk-integrity profile */
	bool direct;			/* file opened with O_DIRECT */
	u32 block;			/* file: logical block size */
	errseq_t wb_err;		/* file: errors of write-back before this are none of it */
	struct ibnbd_facts facts;
	u64 epoch;			/* as its client was told */
	struct ibnbd_srv_export *export;
	struct percpu_ref ref;

	/* cold */
	struct ibnbd_srv_session *session;
	cx_bdev_t handle;
	blk_mode_t mode;
	/* that claims the disk, or NULL; once attached, under the export lock */
	void *holder;
	bool claim_due;			/* when it has a size; under the export lock, too */
	/* claim.c's: of a file that is open for writing, or of a claimed disk */
	struct list_head claim_link;
	const struct inode *inode;
	enum ibnbd_srv_open_state state;
	bool has_kobj;
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
extern const char *const ibnbd_srv_io_mode_names[];

void ibnbd_srv_export_exit(void);
int ibnbd_srv_export_open(struct ibnbd_srv_open *open, const char **why);
void ibnbd_srv_export_release(struct ibnbd_srv_open *open);
void ibnbd_srv_export_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp);
void ibnbd_srv_export_each_open(void (*fn)(struct ibnbd_srv_open *open));
int ibnbd_srv_export_resize(struct ibnbd_srv_export *e);
int ibnbd_srv_export_cache_lost(struct ibnbd_srv_export *e);
int ibnbd_srv_export_set_copy(struct ibnbd_srv_export *e, enum ibnbd_srv_copy copy);

static inline void ibnbd_srv_open_put(struct ibnbd_srv_open *open)
{
	kobject_put(&open->kobj);
}

#endif
