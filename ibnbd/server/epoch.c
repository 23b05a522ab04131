// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache epoch of an export: what its clients go by when they ask whether a flush still covers
 * what was acknowledged before it (protocol.md, "What a flush covers"; law L25).
 *
 * Kept or drawn anew is decided by logic/epoch, from the record. While somebody has the disk open
 * that is the export's. It outlives the export beside who wrote last: in writer.c for this life of
 * the module, in writer_file.c for the next.
 *
 * "Somebody writes" is on disk before the OPEN of a writer is answered. If the file can not be
 * written then, and may still say "clean", the epoch is drawn anew: after a loss of power the file
 * would hand out the old one, which is none of any client then. "Clean" is stored when the last
 * writer has left and a flush after its last request has succeeded; that flush is part of leaving,
 * so nobody else writes meanwhile.
 *
 * A cache that is lost under its clients (cache_lost, a disk whose write cache is switched on, a
 * flush that fails) takes their opens away, as when a client was lost: the id answers no more I/O,
 * its client asks again, and hears of another epoch before anything of it can succeed. In-kernel
 * clients are left alone: they would not understand.
 *
 * A flush that fails is told once: a page cache takes for clean what it could not write, and a disk
 * may do so. The next one succeeds, and its client may never have heard of the first, for its link
 * was lost meanwhile, or because it was another client's. So it ends the epoch of a file and of a
 * disk alike. It is seen where nobody may wait for the export lock: a mark says until then that no
 * success of anybody who knows epochs is one. Partitions share the cache of their disk, so all
 * exports of one disk are marked at once; they are found under RCU.
 *
 * Lock: all but ibnbd_srv_epoch_flush() and ibnbd_srv_epoch_doubt() under the export lock. Failure:
 * a doubt is a new epoch.
 */
#include <linux/blkdev.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/open.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/writer.h"
#include "ibnbd/server/writer_file.h"

static LIST_HEAD(epoch_exports);	/* changed under the export lock */

/**
 * ibnbd_srv_epoch_join() - an export is there
 * @e: until ibnbd_srv_epoch_leave()
 * @open: its first
 */
void ibnbd_srv_epoch_join(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open)
{
	e->disk = open->bdev ? open->bdev->bd_disk : NULL;
	list_add_rcu(&e->epoch_link, &epoch_exports);
}

/* It has no opens any more. Its memory lives until RCU's readers are past it. */
void ibnbd_srv_epoch_leave(struct ibnbd_srv_export *e)
{
	list_del_rcu(&e->epoch_link);
}

/* Of a file it is the page cache, and the disk below. */
static bool epoch_is_volatile(const struct ibnbd_srv_open *open)
{
	return !open->bdev || bdev_write_cache(open->bdev);
}

static void epoch_store(const struct ibnbd_srv_export *e, struct ibnbd_epoch *record)
{
	if (record)
		*record = e->cache;
	ibnbd_srv_writer_file_store_epoch(&e->cache_id, &e->cache);
}

/* Where this life of the module remembers it. */
static struct ibnbd_epoch *epoch_record(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_open *open;

	open = list_first_entry_or_null(&e->opens, struct ibnbd_srv_open, link);
	return open ? ibnbd_srv_writer_cache(open, e) : NULL;
}

/* A client that would not ask again keeps what it has: it knows no epochs. */
static void epoch_ask_again(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_session *s = open->session;

	if (!ibnbd_srv_epoch_is_known(s)) {
		WRITE_ONCE(open->epoch, open->export->cache.epoch);
		return;
	}
	spin_lock(&s->lock);
	ibnbd_srv_open_lose(open, "its client has to hear that the disk's cache was lost");
	spin_unlock(&s->lock);
}

/* Another epoch has begun: whoever has the disk open, readers too, hears of it. */
static void epoch_begun(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_open *open;

	epoch_store(e, epoch_record(e));
	list_for_each_entry(open, &e->opens, link)
		epoch_ask_again(open);
}

/**
 * ibnbd_srv_epoch_note() - an open is about to be granted
 * @open: its access mode is set
 * @e: the export that it will join; its writer is noted (writer.c)
 *
 * One that writes may be answered when ibnbd_srv_writer_file_keep() and ibnbd_srv_epoch_kept() have
 * returned; one that reads leaves nothing behind.
 */
void ibnbd_srv_epoch_note(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e)
{
	struct ibnbd_epoch *record = ibnbd_srv_writer_cache(open, e);

	if (list_empty(&e->opens)) {
		if (record)
			e->cache = *record;
		else
			ibnbd_srv_writer_file_recall_epoch(&e->cache_id, &e->cache);
		if (!ibnbd_epoch_begin(&e->cache, get_random_u64()))
			pr_debug("%s: cache epoch %016llx\n", kobject_name(&e->kobj),
				 e->cache.epoch);
		e->cache_volatile = epoch_is_volatile(open);
	}
	if (!ibnbd_access_writes(open->access))
		return;
	if (e->cache.clean) {
		e->clean_epoch = e->cache.epoch;
		ibnbd_epoch_writer(&e->cache);
	}
	epoch_store(e, record);
}

/**
 * ibnbd_srv_epoch_kept() - the file was written, or could not be
 * @e: an open of it is about to be answered
 * @kept: what ibnbd_srv_epoch_note() stored is on disk
 */
void ibnbd_srv_epoch_kept(struct ibnbd_srv_export *e, bool kept)
{
	if (kept) {
		e->clean_epoch = 0;
	} else if (e->clean_epoch == e->cache.epoch) {
		ibnbd_epoch_lost(&e->cache, get_random_u64());
		epoch_begun(e);
	}
}

static void epoch_doubt(struct ibnbd_srv_export *e)
{
	if (!READ_ONCE(e->cache_volatile) || xchg(&e->doubt, true))
		return;
	/* Without a reference it has no opens any more: there is nobody to be told. */
	if (kobject_get_unless_zero(&e->kobj))
		queue_work(ibnbd_srv_ctl_wq, &e->doubt_work);
}

/* The disk may have dropped what others had written to it, too. */
static void epoch_doubt_neighbours(const struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_export *other;

	rcu_read_lock();
	list_for_each_entry_rcu(other, &epoch_exports, epoch_link)
		if (other != e && e->disk && other->disk == e->disk)
			epoch_doubt(other);
	rcu_read_unlock();
}

/**
 * ibnbd_srv_epoch_doubt() - a flush of it, or a write through its cache, has failed
 * @e: an export that is open
 *
 * Before that is answered. Any context.
 */
void ibnbd_srv_epoch_doubt(struct ibnbd_srv_export *e)
{
	epoch_doubt(e);
	epoch_doubt_neighbours(e);
}

/**
 * ibnbd_srv_epoch_end() - the last writer leaves
 * @e: it is still in the export's list
 * @flushed: ibnbd_srv_epoch_flush() has succeeded after its last request
 */
void ibnbd_srv_epoch_end(struct ibnbd_srv_export *e, bool flushed)
{
	u64 old = e->cache.epoch;

	if (!flushed)
		epoch_doubt_neighbours(e);
	ibnbd_epoch_end(&e->cache, flushed && !READ_ONCE(e->doubt), get_random_u64());
	if (e->cache.epoch != old)
		epoch_begun(e);
	else
		epoch_store(e, epoch_record(e));
}

/**
 * ibnbd_srv_epoch_lost() - the disk's cache may have been lost while it is open
 * @e: its clients hear of it before anything else of theirs succeeds
 * @why: for the log
 */
void ibnbd_srv_epoch_lost(struct ibnbd_srv_export *e, const char *why)
{
	ibnbd_epoch_lost(&e->cache, get_random_u64());
	/* All flushes of a disk may fail, and somebody may go on asking for them. */
	pr_warn_ratelimited("%s: %s: cache epoch %016llx begins\n", kobject_name(&e->kobj), why,
			    e->cache.epoch);
	epoch_begun(e);
}

/**
 * ibnbd_srv_epoch_look() - has the disk got a write cache since it was opened?
 * @e: an export
 * @open: of it
 *
 * Its clients keep no account then of what no flush has covered, so they have to open it anew. That
 * it has lost its cache is told to the next one that opens it: until then they keep one for
 * nothing.
 *
 * Return: true: a new epoch has begun.
 */
bool ibnbd_srv_epoch_look(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open)
{
	if (e->cache_volatile || !epoch_is_volatile(open))
		return false;
	WRITE_ONCE(e->cache_volatile, true);
	/* Nothing was written to a disk without a size, and its clients hear of the size. */
	if (!e->nsectors)
		return false;
	ibnbd_srv_epoch_lost(e, "its write cache was switched on");
	return true;
}

/* What the answer to OPEN says. */
void ibnbd_srv_epoch_tell(struct ibnbd_srv_open *open, struct ibnbd_durability *d)
{
	struct ibnbd_srv_export *e = open->export;

	/*
	 * Once: an open that is lost meanwhile, and pinned by the asker, is judged by the old one.
	 * A flush that is under way in it has covered nothing.
	 */
	if (!open->epoch)
		WRITE_ONCE(open->epoch, e->cache.epoch);
	d->cache_epoch = e->cache.epoch;
	d->flags = e->cache_volatile ? IBNBD_DUR_F_VOLATILE : 0;
}

/**
 * ibnbd_srv_epoch_flush() - have on the medium what was acknowledged
 * @open: a writer whose last request has ended. Sleeps for as long as the disk wants.
 *
 * Return: 0 or a negative errno.
 */
int ibnbd_srv_epoch_flush(struct ibnbd_srv_open *open)
{
	if (open->bdev)
		return blkdev_issue_flush(open->bdev);
	return vfs_fsync(open->file, 1) ?: ibnbd_srv_epoch_wb_err(open);
}
