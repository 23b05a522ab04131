// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cache epoch of an export: by it a client decides whether a flush still covers the writes that
 * were acknowledged before that flush (protocol.md, "What a flush covers"; law L25).
 *
 * logic/epoch decides from the record whether the epoch is kept or a new one is drawn. While a
 * client has the disk open, the record is in the export. Copies outlive the export, each next to
 * the record of who wrote last: in writer.c until the module is unloaded, in writer_file.c across
 * reloads.
 *
 * Before the OPEN of a writer is answered, the file records on disk that the epoch is not clean. If
 * the file cannot be written then, and may still say "clean", a new epoch is drawn: after a power
 * loss the server would hand out the old epoch from the file, and no client may have the old epoch
 * by then. "Clean" is stored when the last writer has left and a flush after its last request has
 * succeeded. The flush is part of leaving: the writer keeps its place until the flush has ended, so
 * no other client writes during the flush.
 *
 * If the cache of an open disk is lost (cache_lost, a write cache that is switched on, a flush that
 * fails), the server closes the opens of the disk, as when a client is lost. I/O to the old device
 * id is refused, the client sends OPEN again, and the answer tells it the new epoch. The opens of
 * in-kernel clients are left alone, because these clients know no epochs.
 *
 * A failed flush ends the epoch, of a file and of a disk alike (decision 19). The failure is seen
 * in a context that cannot wait for the export lock. So the export is marked (@doubt) at once, and
 * a work draws the new epoch. Until then no read, flush or FUA write of a client that knows epochs
 * succeeds (io.c). Partitions share the cache of their disk, so all exports of one disk are marked
 * at once; they are found under RCU.
 *
 * Lock: all functions but ibnbd_srv_epoch_flush() and ibnbd_srv_epoch_doubt() are called under the
 * export lock. Failure: in doubt, a new epoch is drawn.
 */
#include <linux/blkdev.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/writer.h"

static LIST_HEAD(epoch_exports);	/* changed under the export lock */

/* Put a new export on the list of exports, until ibnbd_srv_epoch_leave(). @open: its first open. */
void ibnbd_srv_epoch_join(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open)
{
	e->disk = open->bdev ? open->bdev->bd_disk : NULL;
	list_add_rcu(&e->epoch_link, &epoch_exports);
}

/* The export has no opens any more. Its memory is freed after an RCU grace period. */
void ibnbd_srv_epoch_leave(struct ibnbd_srv_export *e)
{
	list_del_rcu(&e->epoch_link);
}

/*
 * May a power loss drop acknowledged writes? For a file always: it has the page cache, and the disk
 * below.
 */
static bool epoch_is_volatile(const struct ibnbd_srv_open *open)
{
	return !open->bdev || bdev_write_cache(open->bdev);
}

/*
 * Close the open, so that its client asks again. A client that knows no epochs would not ask again:
 * it keeps its open.
 */
static void epoch_ask_again(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_session *s = open->session;

	if (!ibnbd_srv_epoch_is_known(s)) {
		WRITE_ONCE(open->epoch, open->export->cache.epoch);
		/* Told or not: an old failure of write-back must not begin another epoch. */
		ibnbd_srv_epoch_sample_wb_err(open);
		return;
	}
	guard(spinlock)(&s->lock);
	ibnbd_srv_open_lose(open, "its client must learn that the disk's cache was lost");
}

/* A new epoch has begun: the clients of all opens, readers included, have to ask for it. */
static void epoch_begun(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_open *open;

	ibnbd_srv_writer_store_epoch(e);
	list_for_each_entry(open, &e->opens, link)
		epoch_ask_again(open);
}

/*
 * Two disks with one identity (a cloned partition) share one record. With epochs of their own,
 * "clean" of the one says nothing of the other: its clients compare the epoch, too.
 */
static bool epoch_is_shared(const struct ibnbd_srv_export *e)
{
	const struct ibnbd_srv_export *other;

	list_for_each_entry(other, &epoch_exports, epoch_link)
		if (other != e && e->cache_id.kind != IBNBD_ID_NONE &&
		    other->cache_id.kind == e->cache_id.kind &&
		    !memcmp(other->cache_id.id, e->cache_id.id, sizeof(e->cache_id.id)))
			return true;
	return false;
}

/**
 * ibnbd_srv_epoch_note() - an open is about to be granted
 * @open: its access mode is set
 * @e: the export that the open will join; ibnbd_srv_writer_note() has been called
 *
 * An open that writes may be answered only after ibnbd_srv_writer_file_keep() and
 * ibnbd_srv_epoch_kept() have returned. An open that only reads stores nothing.
 */
void ibnbd_srv_epoch_note(const struct ibnbd_srv_open *open, struct ibnbd_srv_export *e)
{
	if (list_empty(&e->opens)) {
		ibnbd_srv_writer_recall_epoch(e);
		if (!ibnbd_epoch_begin(&e->cache, get_random_u64()))
			pr_debug("%s: cache epoch %016llx\n", kobject_name(&e->kobj),
				 e->cache.epoch);
		if (epoch_is_shared(e))
			ibnbd_epoch_lost(&e->cache, get_random_u64());
		e->cache_volatile = epoch_is_volatile(open);
		e->cache_seen = e->cache_volatile;
	}
	if (!ibnbd_access_writes(open->access))
		return;
	if (e->cache.clean) {
		e->clean_epoch = e->cache.epoch;
		ibnbd_epoch_writer(&e->cache);
	}
	ibnbd_srv_writer_store_epoch(e);
}

/*
 * One of the opens of @e is about to be answered. @kept: what ibnbd_srv_epoch_note() stored is on
 * disk; false: the writer file could not be written.
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
	/* If no reference is left, the export has no opens: no client has to be told. */
	if (kobject_get_unless_zero(&e->kobj))
		queue_work(e->wq, &e->doubt_work);
}

/* The disk may also have dropped data that was written through other exports of it. */
static void epoch_doubt_neighbours(const struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_export *other;

	guard(rcu)();
	list_for_each_entry_rcu(other, &epoch_exports, epoch_link)
		if (other != e && e->disk && other->disk == e->disk)
			epoch_doubt(other);
}

/*
 * A flush of an open export, or a write with FUA or PREFLUSH, has failed. Called before the failed
 * request is answered. Any context.
 */
void ibnbd_srv_epoch_doubt(struct ibnbd_srv_export *e)
{
	epoch_doubt(e);
	epoch_doubt_neighbours(e);
}

/*
 * The last writer leaves, whose open is still in the list of @e. @flushed: ibnbd_srv_epoch_flush()
 * has succeeded after its last request had ended.
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
		ibnbd_srv_writer_store_epoch(e);
}

/*
 * The cache of an open disk may have been lost: its clients have to open it again, and are told the
 * new epoch then. @why: for the log.
 */
void ibnbd_srv_epoch_lost(struct ibnbd_srv_export *e, const char *why)
{
	ibnbd_epoch_lost(&e->cache, get_random_u64());
	/* Rate-limited: every flush of a disk may fail, and a client may go on sending flushes. */
	pr_warn_ratelimited("%s: %s: cache epoch %016llx begins\n", kobject_name(&e->kobj), why,
			    e->cache.epoch);
	epoch_begun(e);
}

static void epoch_tell_again(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_open *open;

	pr_info("%s: its write cache is on again\n", kobject_name(&e->kobj));
	list_for_each_entry(open, &e->opens, link)
		ibnbd_srv_open_tell(open, IBNBD_EVENT_RESIZED);
}

/**
 * ibnbd_srv_epoch_look() - was the disk's write cache switched on?
 * @e: an export
 * @open: one of its opens
 *
 * Clients of a disk without a write cache send no flushes. If the cache was switched off while the
 * disk was open, they have gone on tracking which writes no flush has covered, so they only have to
 * hear of the cache. If the disk had none when it was opened, they do not track, and a new epoch
 * begins.
 */
void ibnbd_srv_epoch_look(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open)
{
	bool seen = e->cache_seen;

	e->cache_seen = epoch_is_volatile(open);
	if (seen || !e->cache_seen)
		return;
	if (e->cache_volatile) {
		epoch_tell_again(e);
		return;
	}
	WRITE_ONCE(e->cache_volatile, true);
	/*
	 * A disk without a size has not been written to, and its clients will be told of its size.
	 */
	if (e->nsectors)
		ibnbd_srv_epoch_lost(e, "its write cache was switched on");
}

/*
 * Fill in the durability part of the answer to OPEN. If the answer says that there is no write
 * cache, its client sends no flushes until the cache is switched on again and
 * ibnbd_srv_epoch_look() has noticed.
 */
void ibnbd_srv_epoch_tell(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp)
{
	struct ibnbd_srv_export *e = open->export;

	/*
	 * Set only once: a repeated OPEN may have pinned an open that a new epoch has closed. I/O
	 * of that open must still be compared with the old epoch: a flush that is under way in it
	 * has covered nothing.
	 */
	if (!open->epoch)
		WRITE_ONCE(open->epoch, e->cache.epoch);
	rsp->durability.cache_epoch = e->cache.epoch;
	rsp->durability.flags = e->cache_volatile ? IBNBD_DUR_F_VOLATILE : 0;
	if (!rsp->writeback)
		e->cache_seen = false;
}

/*
 * Bring all acknowledged writes of @open to the medium, whose last request has ended. Sleeps for as
 * long as the disk takes.
 */
int ibnbd_srv_epoch_flush(struct ibnbd_srv_open *open)
{
	if (open->bdev)
		return blkdev_issue_flush(open->bdev);
	return vfs_fsync(open->file, 1) ?: ibnbd_srv_epoch_wb_err(open);
}
