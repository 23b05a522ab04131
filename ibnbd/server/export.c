// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports: the backing objects that somebody has open, and who has them.
 *
 * Each open holds a backing handle of its own (read-only or writable), see backing.c. All opens of
 * one block device or one file, under whatever names, share one export. An export counts writers
 * (B.3 rule 4, place.c), knows the identity, and has a directory in sysfs. It exists while it has
 * opens, so the object that is its key cannot go away.
 *
 * The kernel does not tell the holder of an open disk that the size of the disk has changed, and
 * there is no such event for files either. So while there are exports, a delayed work compares,
 * every EXPORT_LOOK_MS, their sizes with what the clients know: two numbers in memory for each
 * export. The work also claims disks that have got a size, notices write caches that were switched
 * on, and closes opens that no client has come for.
 *
 * Lock: export_lock serializes opening, closing and describing, and the making and removing of
 * sysfs directories. Removing a directory waits for running writes to its files, so the store
 * functions of these files may only try the lock. I/O does not take the lock.
 *
 * Failure: an open that fails leaves nothing behind. An open that was attached is undone only by
 * ibnbd_srv_export_release().
 */
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <ibtrs/admin.h>
#include "ibnbd/server/backing.h"
#include "ibnbd/server/blockio.h"
#include "ibnbd/server/dirs.h"
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/open.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/place.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"
#include "ibnbd/server/writer.h"
#include "ibnbd/server/writer_file.h"

#define EXPORT_LOOK_MS	500

static DEFINE_MUTEX(export_lock);
static LIST_HEAD(export_list);

static void export_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(export_look_work, export_look);

/* Called when no session is left. */
void ibnbd_srv_export_exit(void)
{
	cancel_delayed_work_sync(&export_look_work);
	ibnbd_srv_writer_exit();
}

static void export_look_later(void)
{
	schedule_delayed_work(&export_look_work, msecs_to_jiffies(EXPORT_LOOK_MS));
}

/* ---- attach and release -------------------------------------------------- */

static const void *export_key_ptr(const struct ibnbd_srv_open *open)
{
	return open->bdev ? (const void *)open->bdev : file_inode(open->file);
}

static struct ibnbd_srv_export *export_find(const struct ibnbd_srv_open *open)
{
	const void *key = export_key_ptr(open);
	struct ibnbd_srv_export *e;

	list_for_each_entry(e, &export_list, link)
		if (e->key == key)
			return e;
	return NULL;
}

static void export_free_work(struct work_struct *work)
{
	struct ibnbd_srv_export *e = container_of(work, struct ibnbd_srv_export, free_work);

	destroy_workqueue(e->wq);
	kfree_rcu(e, rcu);
	ibnbd_srv_dirs_released();
}

/* The last reference may be put by a work of the export's own queue. */
static void export_kobj_release(struct kobject *kobj)
{
	queue_work(ibnbd_srv_ctl_wq, &container_of(kobj, struct ibnbd_srv_export, kobj)->free_work);
}

static const_ktype struct kobj_type export_ktype = {
	.release	= export_kobj_release,
	.sysfs_ops	= &ibtrs_admin_sysfs_ops,
	.default_groups	= ibnbd_srv_sysfs_export_groups,
};

/*
 * A flush has failed: begin a new epoch. Every client that opens the export from now on is told of
 * it.
 */
static void export_doubt_work(struct work_struct *work)
{
	struct ibnbd_srv_export *e = container_of(work, struct ibnbd_srv_export, doubt_work);

	mutex_lock(&export_lock);
	/*
	 * Without opens no client has to be told. A last writer that left while @doubt was set has
	 * not left a clean epoch.
	 */
	if (!list_empty(&e->opens))
		ibnbd_srv_epoch_lost(e, "a flush has failed");
	/* Pairs with io_is_of_old(). */
	smp_store_release(&e->doubt, false);
	mutex_unlock(&export_lock);
	ibnbd_srv_writer_file_keep();
	kobject_put(&e->kobj);
}

/* Takes *@wq, also if it fails. */
static struct ibnbd_srv_export *export_create(struct ibnbd_srv_open *open,
					      const struct ibnbd_identity *id,
					      const struct ibnbd_identity *cache_id,
					      struct workqueue_struct **wq)
{
	struct ibnbd_srv_export *e = kzalloc(sizeof(*e), GFP_KERNEL);
	int err;

	if (!e)
		return ERR_PTR(-ENOMEM);
	e->wq = *wq;
	*wq = NULL;
	ibnbd_srv_dirs_kobj_init(&e->kobj, &export_ktype);
	INIT_LIST_HEAD(&e->opens);
	ibnbd_srv_blockio_init_export(e);
	INIT_WORK(&e->doubt_work, export_doubt_work);
	INIT_WORK(&e->free_work, export_free_work);
	e->key = export_key_ptr(open);
	e->is_file = !open->bdev;
	e->copy = ibnbd_srv_default_copy();
	e->identity = *id;
	e->cache_id = *cache_id;
	e->nsectors = ibnbd_srv_backing_nsectors(open);
	err = ibnbd_srv_dirs_add_export(e, open, &export_list);
	if (err)
		goto out_put;
	list_add(&e->link, &export_list);
	ibnbd_srv_epoch_join(e, open);
	export_look_later();
	return e;

out_put:
	kobject_put(&e->kobj);
	return ERR_PTR(err);
}

/*
 * Is it the last writer? place.c refuses a new writer beside an open that is CLOSING, so a closing
 * open stays the last writer.
 */
static bool export_is_last_writer(const struct ibnbd_srv_open *open)
{
	lockdep_assert_held(&export_lock);
	return ibnbd_access_writes(open->access) && open->export->writers == 1;
}

/*
 * Of two writers one has left, and may have written last. The client of the other one hears of that
 * when it repeats OPEN: while its disk is open, it only gives up what it has kept for a replay.
 */
static void export_writer_left(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *gone)
{
	struct ibnbd_srv_open *open;

	e->writer_gen = ibnbd_srv_writer_left(gone, ibnbd_srv_place_last(e, gone));
	list_for_each_entry(open, &e->opens, link)
		if (ibnbd_access_writes(open->access))
			ibnbd_srv_open_tell(open);
}

/*
 * @flushed: a flush has covered all that this open wrote. Returns the export if this was its last
 * open: the caller puts it after it has released the lock.
 */
static struct ibnbd_srv_export *export_detach(struct ibnbd_srv_open *open, bool flushed)
{
	struct ibnbd_srv_export *e = open->export;

	lockdep_assert_held(&export_lock);
	ibnbd_srv_dirs_del_open(open);
	if (export_is_last_writer(open))
		ibnbd_srv_epoch_end(e, flushed);
	list_del_init(&open->link);
	if (open->holder)
		WRITE_ONCE(e->claims, e->claims - 1);
	if (ibnbd_access_writes(open->access)) {
		e->writers--;
		export_writer_left(e, open);
	}
	if (!list_empty(&e->opens))
		return NULL;
	list_del(&e->link);
	ibnbd_srv_epoch_leave(e);
	ibnbd_srv_dirs_del_export(e);
	return e;
}

static void export_drop_unused(struct ibnbd_srv_export *e)
{
	if (!list_empty(&e->opens))
		return;
	list_del(&e->link);
	ibnbd_srv_epoch_leave(e);
	ibnbd_srv_dirs_del_export(e);
	kobject_put(&e->kobj);
}

/*
 * Give @open a place in its export, which is made if there is none, with the records and the
 * directory. An export that is made takes *@wq, which is NULL then.
 */
static int export_attach(struct ibnbd_srv_open *open, const struct ibnbd_identity *id,
			 const struct ibnbd_identity *cache_id, struct workqueue_struct **wq,
			 const char **why)
{
	struct ibnbd_srv_export *e, *unused;
	int err;

	lockdep_assert_held(&export_lock);
	e = export_find(open);
	if (!e) {
		e = export_create(open, id, cache_id, wq);
		if (IS_ERR(e))
			return PTR_ERR(e);
	}
	err = ibnbd_srv_place_ask(e, open, why);
	if (!err)
		err = ibnbd_srv_writer_note(open, e, &e->writer_gen);
	if (err) {
		export_drop_unused(e);
		return err;
	}
	ibnbd_srv_epoch_note(open, e);
	open->export = e;
	open->copy = e->copy;
	if (ibnbd_access_writes(open->access))
		e->writers++;
	if (open->holder)
		WRITE_ONCE(e->claims, e->claims + 1);
	list_add_tail(&open->link, &e->opens);
	err = ibnbd_srv_dirs_add_open(open);
	if (err) {
		unused = export_detach(open, true);	/* it has not written */
		if (unused)
			kobject_put(&unused->kobj);
	}
	return err;
}

/*
 * Before an OPEN is answered: write to the file that there is a writer. A reader has changed no
 * record, so it does not wait for the file system of that file.
 */
static void export_keep_writer(const struct ibnbd_srv_open *open)
{
	int err;

	if (!ibnbd_access_writes(open->access))
		return;
	err = ibnbd_srv_writer_file_keep();
	mutex_lock(&export_lock);
	ibnbd_srv_epoch_kept(open->export, !err);
	mutex_unlock(&export_lock);
}

/**
 * ibnbd_srv_export_open() - resolve the name of an open, open the object, take a place in its
 * export (B.3 rules 2 to 4)
 * @open: new
 * @why: reason of a refusal, not set if the errno says enough
 *
 * Sleeps as long as the disk takes. Return: 0, to be undone by ibnbd_srv_export_release(); or an
 * errno.
 */
int ibnbd_srv_export_open(struct ibnbd_srv_open *open, const char **why)
{
	struct ibnbd_identity id, cache_id;
	struct workqueue_struct *wq;
	int err;

	err = ibnbd_srv_backing_open(open, why);
	if (err)
		return err;
	ibnbd_srv_backing_identity(open, &id, &cache_id);
	/* Without the lock: it may wait for a CPU that goes offline, and that one for a disk. */
	wq = alloc_workqueue("ibnbd-export", WQ_UNBOUND | (open->bdev ? WQ_MEM_RECLAIM : 0), 0);
	err = wq ? 0 : -ENOMEM;
	if (!err) {
		mutex_lock(&export_lock);
		err = export_attach(open, &id, &cache_id, &wq, why);
		mutex_unlock(&export_lock);
	}
	if (wq)
		destroy_workqueue(wq);
	if (err) {
		ibnbd_srv_backing_close(open);
		return err;
	}
	export_keep_writer(open);
	return 0;
}

/**
 * ibnbd_srv_export_release() - undo ibnbd_srv_export_open(); does not free @open
 * @open: no I/O is in flight
 *
 * If @open is the last writer, its disk is flushed while @open still has its place. The place is
 * given up before the handle is closed. No I/O is left by then, so the next one to open finds an
 * object that nobody writes to any more.
 */
void ibnbd_srv_export_release(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_export *unused;
	bool flushed = false;
	int err = 0;

	mutex_lock(&export_lock);
	if (export_is_last_writer(open)) {
		mutex_unlock(&export_lock);
		err = ibnbd_srv_epoch_flush(open);
		flushed = !err;
		mutex_lock(&export_lock);
	}
	unused = export_detach(open, flushed);
	mutex_unlock(&export_lock);
	if (err)
		pr_warn_ratelimited("%s: the flush behind its last writer has failed (%d): clients hear of a new cache epoch\n",
			open->name, err);
	ibnbd_srv_backing_close(open);
	if (unused)
		kobject_put(&unused->kobj);
	if (ibnbd_access_writes(open->access))
		ibnbd_srv_writer_file_keep();
}

/* ---- what the client hears ----------------------------------------------- */

static void export_tell_size(struct ibnbd_srv_open *open, u64 nsectors, bool knows)
{
	WRITE_ONCE(open->facts.nsectors, nsectors);
	if (!knows)
		ibnbd_srv_open_tell(open);
}

/*
 * Tell the clients of all opens but @asking, whose client gets the size in the answer to its OPEN.
 */
static void export_new_size(struct ibnbd_srv_export *e, u64 nsectors,
			    const struct ibnbd_srv_open *asking)
{
	struct ibnbd_srv_open *open;

	if (e->nsectors == nsectors)
		return;
	pr_info("%s: size changed from %llu to %llu sectors\n", kobject_name(&e->kobj),
		e->nsectors, nsectors);
	e->nsectors = nsectors;
	list_for_each_entry(open, &e->opens, link)
		if (!open->claim_due)
			export_tell_size(open, nsectors, open == asking);
}

/*
 * A disk that had no size when it was opened is claimed as soon as it has a size. Only then is its
 * client told the size.
 */
static void export_claim(struct ibnbd_srv_open *open)
{
	if (!ibnbd_srv_blockio_claim(open))
		return;
	if (open->holder)
		WRITE_ONCE(open->export->claims, open->export->claims + 1);
	export_tell_size(open, ibnbd_srv_backing_nsectors(open), false);
}

/*
 * A disk that was taken out has size 0. The clients are not told: their I/O fails, and the disk may
 * be put back.
 */
static void export_look(struct work_struct *work)
{
	struct ibnbd_srv_open *open;
	struct ibnbd_srv_export *e;
	u64 nsectors;

	guard(mutex)(&export_lock);
	list_for_each_entry(e, &export_list, link) {
		list_for_each_entry(open, &e->opens, link) {
			ibnbd_srv_open_unclaimed(open);
			export_claim(open);
		}
		open = list_first_entry_or_null(&e->opens, struct ibnbd_srv_open, link);
		nsectors = open ? ibnbd_srv_backing_nsectors(open) : 0;
		if (open)
			ibnbd_srv_epoch_look(e, open);
		if (nsectors)
			export_new_size(e, nsectors, NULL);
	}
	if (!list_empty(&export_list))
		export_look_later();
}

/* Running I/O is checked against these facts, hence WRITE_ONCE(). */
static void export_set_facts(struct ibnbd_srv_open *open, const struct ibnbd_open_rsp *rsp)
{
	struct ibnbd_facts *f = &open->facts;

	WRITE_ONCE(f->nsectors, rsp->nsectors);
	WRITE_ONCE(f->logical_block_size, rsp->logical_block_size);
	WRITE_ONCE(f->max_discard_sectors, rsp->max_discard_sectors);
	WRITE_ONCE(f->max_write_zeroes_sectors, rsp->max_write_zeroes_sectors);
	WRITE_ONCE(f->secure_erase, rsp->secure_discard);
}

/**
 * ibnbd_srv_export_describe() - fill in the answer to OPEN, first or repeated, from the backing
 * store as it is now
 * @open: pinned by an I/O reference
 * @rsp: all fields are set but device_id, has_identity and has_durability, which the caller sets
 *
 * From now on I/O of this open is checked against what this answer says.
 */
void ibnbd_srv_export_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp)
{
	struct ibnbd_srv_export *e = open->export;

	ibnbd_srv_backing_describe(open, rsp);
	mutex_lock(&export_lock);
	memcpy(rsp->identity.id, e->identity.id, sizeof(rsp->identity.id));
	rsp->identity.kind = e->identity.kind;
	rsp->identity.writer_gen = e->writer_gen;
	ibnbd_srv_epoch_tell(open, rsp);
	if (!open->claim_due) {
		/* Read again under the lock: another OPEN may have told a newer size meanwhile. */
		rsp->nsectors = ibnbd_srv_backing_nsectors(open);
		export_new_size(e, rsp->nsectors, open);
	}
	export_set_facts(open, rsp);
	mutex_unlock(&export_lock);
}

/*
 * Called from a sysfs file of the export: a task that removes the directory may hold the lock and
 * wait for us, so the lock is only tried.
 */
static int export_trylock(void)
{
	return mutex_trylock(&export_lock) ? 0 : restart_syscall();
}

/**
 * ibnbd_srv_export_each_open() - call a function for every open
 * @fn: called under the export lock
 *
 * Sleeps. Must not be called from a file in an export's directory.
 */
void ibnbd_srv_export_each_open(void (*fn)(struct ibnbd_srv_open *open))
{
	struct ibnbd_srv_export *e;
	struct ibnbd_srv_open *open;

	guard(mutex)(&export_lock);
	list_for_each_entry(e, &export_list, link)
		list_for_each_entry(open, &e->opens, link)
			fn(open);
}

/* Call @fn for one open under the export lock. Sleeps. Returns what @fn returns. */
bool ibnbd_srv_export_call(struct ibnbd_srv_open *open, bool (*fn)(struct ibnbd_srv_open *open))
{
	guard(mutex)(&export_lock);
	return fn(open);
}

/* Look at the size again and tell the clients. 0 or -ERESTARTNOINTR. */
int ibnbd_srv_export_resize(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_open *open;
	int err = export_trylock();

	if (err)
		return err;
	list_for_each_entry(open, &e->opens, link)
		export_claim(open);
	open = list_first_entry_or_null(&e->opens, struct ibnbd_srv_open, link);
	if (open && !open->claim_due)
		export_new_size(e, ibnbd_srv_backing_nsectors(open), NULL);
	mutex_unlock(&export_lock);
	return 0;
}

/*
 * The administrator or udev says that the disk has lost its cache. Returns 0, -ERESTARTNOINTR, or
 * another errno: the new epoch is not in the file, and a restart of the server may forget it.
 */
int ibnbd_srv_export_cache_lost(struct ibnbd_srv_export *e)
{
	int err = export_trylock();

	if (err)
		return err;
	ibnbd_srv_epoch_lost(e, "its cache was lost");
	mutex_unlock(&export_lock);
	return ibnbd_srv_writer_file_keep();
}

/* Set private pages or not, for all opens of the export. 0 or -ERESTARTNOINTR. */
int ibnbd_srv_export_set_copy(struct ibnbd_srv_export *e, enum ibnbd_srv_copy copy)
{
	struct ibnbd_srv_open *open;
	int err = export_trylock();

	if (err)
		return err;
	WRITE_ONCE(e->copy, copy);
	list_for_each_entry(open, &e->opens, link)
		WRITE_ONCE(open->copy, copy);
	mutex_unlock(&export_lock);
	return 0;
}
