// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports: the backing objects that are open, and the openers of each.
 *
 * Each open holds a backing handle of its own (read-only or writable), see backing.c. All opens of
 * one block device or one file, under whatever names, share one export. An export counts writers
 * (protocol 10.4), knows the identity, and has a directory in sysfs. It exists while it
 * has opens, so the object that is its key cannot go away.
 *
 * Lock: the export lock, see open.c. I/O does not take it, and no disk is opened, flushed or
 * closed under it.
 *
 * Failure: an open that fails leaves nothing behind. An open that was attached is undone only by
 * ibnbd_srv_export_release().
 */
#include <ibtrs/admin.h>
#include "ibnbd/logic/record.h"
#include "ibnbd/server/backing.h"
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/export.h"
#include "ibnbd/server/params.h"
#include "ibnbd/server/session.h"
#include "ibnbd/server/sysfs.h"
#include "ibnbd/server/writer.h"

/* ---- admission (protocol 10.4) ------------------------------------------- */

/* What the writers of an export are like. */
enum {
	/* a closed or lost one may still write to the disk, over what a new one writes */
	PLACE_CLOSING	= 1,
	PLACE_RW	= 2,	/* one has not agreed to a second writer */
	PLACE_AWAY	= 4,	/* one is not connected, and may come back */
};

static unsigned int place_writers(const struct ibnbd_srv_export *e)
{
	const struct ibnbd_srv_open *other;
	unsigned int found = 0;

	list_for_each_entry(other, &e->opens, link) {
		if (!ibnbd_access_writes(other->access))
			continue;
		if (READ_ONCE(other->state) == IBNBD_SRV_OPEN_CLOSING)
			found |= PLACE_CLOSING;
		if (other->access == IBNBD_ACCESS_RW)
			found |= PLACE_RW;
		if (!ibnbd_srv_open_connected(other))
			found |= PLACE_AWAY;
	}
	return found;
}

bool ibnbd_srv_place_is_beside(const struct ibnbd_srv_open *open)
{
	return open->access == IBNBD_ACCESS_MIGRATION && place_writers(open->export) & PLACE_RW;
}

/*
 * May @open, which has none yet, have a place in @e (protocol 10.4)? 0; -EPERM: another one
 * writes; -EBUSY: the client has to wait: a writer is not connected, but may come back, or the
 * requests of an earlier mapping have not ended.
 */
static int place_ask(const struct ibnbd_srv_export *e, const struct ibnbd_srv_open *open,
		     const char **why)
{
	unsigned int writers = place_writers(e);
	int err;

	if (ibnbd_access_writes(open->access) && writers & PLACE_CLOSING) {
		*why = "an earlier mapping of it is not closed: the disk has not ended all its requests";
		return -EBUSY;
	}
	/* The policy may let @open migrate beside one that has not agreed. */
	err = ibnbd_access_open(e->writers, !open->beside && writers & PLACE_RW, open->access, why);
	if (err == -EPERM && writers & PLACE_AWAY) {
		*why = "its writer is disconnected, and may still return";
		return -EBUSY;
	}
	return err;
}

/*
 * The writer @gone has left: which one of @gone and the other writers counts as the last to write?
 * If the other one is not connected and @gone is, @gone wrote last. Else the other one may have
 * written last, or may still write. NULL: no other writer is left.
 */
static const struct ibnbd_srv_open *place_last(const struct ibnbd_srv_export *e,
					       const struct ibnbd_srv_open *gone)
{
	const struct ibnbd_srv_open *other, *last = NULL;

	list_for_each_entry(other, &e->opens, link)
		if (ibnbd_access_writes(other->access))
			last = !ibnbd_srv_open_connected(other) && ibnbd_srv_open_connected(gone) ?
				       gone : other;
	return last;
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

	list_for_each_entry(e, &ibnbd_srv_export_list, link)
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

	mutex_lock(&ibnbd_srv_export_lock);
	/*
	 * Without opens no client has to be told. A last writer that left while @doubt was set has
	 * not left a clean epoch.
	 */
	if (!list_empty(&e->opens))
		ibnbd_srv_epoch_lost(e, "a flush has failed");
	/* Pairs with io_is_of_old(). */
	smp_store_release(&e->doubt, false);
	mutex_unlock(&ibnbd_srv_export_lock);
	ibnbd_srv_writer_file_keep();
	kobject_put(&e->kobj);
}

/*
 * An export of the object of @open, not on the list yet. Called without the lock: the identity is
 * read from files, and making a queue may wait for a CPU that goes offline, and so for a disk.
 */
static struct ibnbd_srv_export *export_new(struct ibnbd_srv_open *open, const char **why)
{
	struct ibnbd_srv_export *e __free(kfree) = kzalloc(sizeof(*e), GFP_KERNEL);
	int err;

	if (!e)
		return ERR_PTR(-ENOMEM);
	err = ibnbd_srv_backing_identity(open, e, why);
	if (err)
		return ERR_PTR(err);
	e->wq = alloc_workqueue("ibnbd-export", WQ_UNBOUND | (open->bdev ? WQ_MEM_RECLAIM : 0), 0);
	if (!e->wq)
		return ERR_PTR(-ENOMEM);
	ibnbd_srv_dirs_made();
	kobject_init(&e->kobj, &export_ktype);
	INIT_LIST_HEAD(&e->opens);
	spin_lock_init(&e->later_lock);
	INIT_LIST_HEAD(&e->later);
	INIT_WORK(&e->later_work, ibnbd_srv_blockio_later_work);
	init_rwsem(&e->mixed);
	INIT_WORK(&e->doubt_work, export_doubt_work);
	INIT_WORK(&e->free_work, export_free_work);
	e->key = export_key_ptr(open);
	e->copy = READ_ONCE(ibnbd_srv_copy);
	e->nsectors = ibnbd_srv_backing_nsectors(open);
	return_ptr(e);
}

/* Put a new export on the list, with its directory. @open: its first open. */
static int export_add(struct ibnbd_srv_export *e, struct ibnbd_srv_open *open)
{
	int err = ibnbd_srv_dirs_add_export(e, open);

	if (err)
		return err;
	list_add(&e->link, &ibnbd_srv_export_list);
	ibnbd_srv_epoch_join(e, open);
	ibnbd_srv_facts_look_later();
	return 0;
}

/*
 * Is it the last writer? place_ask() refuses a new writer beside an open that is CLOSING, so a
 * closing open stays the last writer.
 */
static bool export_is_last_writer(const struct ibnbd_srv_open *open)
{
	lockdep_assert_held(&ibnbd_srv_export_lock);
	return ibnbd_access_writes(open->access) && open->export->writers == 1;
}

/*
 * Of two writers one has left, and may have written last. The client of the other one hears of that
 * when it repeats OPEN: while its disk is open, it only gives up what it has kept for a replay.
 */
static void export_writer_left(struct ibnbd_srv_export *e, const struct ibnbd_srv_open *gone)
{
	struct ibnbd_srv_open *open;

	ibnbd_srv_writer_left(e, place_last(e, gone));
	list_for_each_entry(open, &e->opens, link)
		if (ibnbd_access_writes(open->access))
			ibnbd_srv_open_tell(open, IBNBD_EVENT_RESIZED);
}

/* Let go of the export if it has no opens. */
static void export_leave(struct ibnbd_srv_export *e)
{
	if (!list_empty(&e->opens))
		return;
	list_del(&e->link);
	ibnbd_srv_epoch_leave(e);
	ibnbd_srv_dirs_del_export(e);
	kobject_put(&e->kobj);
}

/* @flushed: a flush has covered all that this open wrote. */
static void export_detach(struct ibnbd_srv_open *open, bool flushed)
{
	struct ibnbd_srv_export *e = open->export;

	lockdep_assert_held(&ibnbd_srv_export_lock);
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
	export_leave(e);
}

/* Give @open a place in the export, with the records and the directory. */
static int export_attach(struct ibnbd_srv_export *e, struct ibnbd_srv_open *open, const char **why)
{
	int err = place_ask(e, open, why);

	if (!err)
		err = ibnbd_srv_writer_note(open, e);
	if (err) {
		export_leave(e);
		return err;
	}
	ibnbd_srv_epoch_note(open, e);
	open->export = e;
	if (ibnbd_access_writes(open->access))
		e->writers++;
	if (open->holder)
		WRITE_ONCE(e->claims, e->claims + 1);
	list_add_tail(&open->link, &e->opens);
	err = ibnbd_srv_dirs_add_open(open);
	if (err)
		export_detach(open, true);	/* it has not written */
	return err;
}

/* Give @open a place in its export, which is made if there is none. */
static int export_take_place(struct ibnbd_srv_open *open, const char **why)
{
	struct ibnbd_srv_export *e, *new;
	int err = 0;

	mutex_lock(&ibnbd_srv_export_lock);
	e = export_find(open);
	if (!e) {
		mutex_unlock(&ibnbd_srv_export_lock);
		new = export_new(open, why);
		if (IS_ERR(new))
			return PTR_ERR(new);
		mutex_lock(&ibnbd_srv_export_lock);
		e = export_find(open);
		if (!e)
			err = export_add(new, open);
		if (e || err)
			kobject_put(&new->kobj);
		e = e ?: new;
	}
	err = err ?: export_attach(e, open, why);
	mutex_unlock(&ibnbd_srv_export_lock);
	return err;
}

/*
 * Before an OPEN is answered: write to the file that there is a writer. A reader has changed no
 * record, so it does not wait for the file system of that file. Without the record a server that
 * takes over lets an earlier client replay its writes over this one's: a file that an administrator
 * has named must have it.
 */
static int export_keep_writer(const struct ibnbd_srv_open *open, const char **why)
{
	int err;

	if (!ibnbd_access_writes(open->access))
		return 0;
	err = ibnbd_srv_writer_file_keep();
	if (err && ibnbd_srv_writer_file_is_given()) {
		*why = IBNBD_RECORD_LOST;
		return -EIO;
	}
	guard(mutex)(&ibnbd_srv_export_lock);
	ibnbd_srv_epoch_kept(open->export, !err);
	return 0;
}

/**
 * ibnbd_srv_export_open() - resolve the name of an open, open the object, take a place in its
 * export (protocol 10.2, 10.4)
 * @open: new
 * @why: reason of a refusal, not set if the errno says enough
 *
 * Sleeps as long as the disk takes. Return: 0, to be undone by ibnbd_srv_export_release(); or an
 * errno.
 */
int ibnbd_srv_export_open(struct ibnbd_srv_open *open, const char **why)
{
	int err = ibnbd_srv_backing_open(open, why);

	if (err)
		return err;
	err = export_take_place(open, why);
	if (err) {
		ibnbd_srv_backing_close(open);
		return err;
	}
	err = export_keep_writer(open, why);
	if (err)
		ibnbd_srv_export_release(open);
	return err;
}

/**
 * ibnbd_srv_export_release() - undo ibnbd_srv_export_open(); does not free @open
 * @open: no I/O is in flight
 *
 * If @open is the last writer, its disk is flushed while @open still has its place. The place is
 * given up before the handle is closed. No I/O is left by then, so the next one to open finds an
 * object that has no writer any more.
 */
void ibnbd_srv_export_release(struct ibnbd_srv_open *open)
{
	struct ibnbd_srv_export *e = open->export;
	bool flushed = false;
	int err = 0;

	/* When its last reference is put, a work waits for its queue, in which this may run. */
	kobject_get(&e->kobj);
	mutex_lock(&ibnbd_srv_export_lock);
	if (export_is_last_writer(open)) {
		mutex_unlock(&ibnbd_srv_export_lock);
		err = ibnbd_srv_epoch_flush(open);
		flushed = !err;
		mutex_lock(&ibnbd_srv_export_lock);
	}
	export_detach(open, flushed);
	mutex_unlock(&ibnbd_srv_export_lock);
	if (err)
		pr_warn_ratelimited("%s: the flush after its last writer failed (%d): a new cache epoch begins\n",
			open->name, err);
	ibnbd_srv_backing_close(open);
	kobject_put(&e->kobj);
	if (ibnbd_access_writes(open->access))
		ibnbd_srv_writer_file_keep();
}

/* ---- for an administrator ------------------------------------------------ */

static void export_keep(struct work_struct *work)
{
	ibnbd_srv_writer_file_keep();
}
static DECLARE_WORK(export_keep_work, export_keep);

/*
 * The administrator or udev says that the disk has lost its cache. Returns 0 or -ERESTARTNOINTR.
 *
 * A work writes the new epoch to the file: the last close waits for this store under the lock that
 * each client needs, so the store must not wait for a file system. If the server dies before that,
 * the file still says of a disk that is written to that it has not ended clean.
 */
int ibnbd_srv_export_cache_lost(struct ibnbd_srv_export *e)
{
	int err = ibnbd_srv_export_trylock();

	if (err)
		return err;
	ibnbd_srv_epoch_lost(e, "its cache was lost");
	queue_work(ibnbd_srv_ctl_wq, &export_keep_work);
	mutex_unlock(&ibnbd_srv_export_lock);
	return 0;
}
