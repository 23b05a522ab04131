// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells clients of a change of an export's size or limits.
 *
 * The kernel does not tell the holder of an open disk that the size of the disk has changed, and
 * there is no such event for files either. So while there are exports, a delayed work compares,
 * every FACTS_LOOK_MS, their sizes with what the clients know: two numbers in memory for each
 * export. The work also claims disks that have got a size, notices write caches that were switched
 * on, and closes opens that no client has come for.
 *
 * Lock: the export lock for all but the opening of a disk that is claimed.
 */
#include <linux/sched.h>
#include "ibnbd/server/backing.h"
#include "ibnbd/server/epoch.h"
#include "ibnbd/server/export.h"

#define FACTS_LOOK_MS	500

static void facts_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(facts_look_work, facts_look);

/* Called when no session is left. */
void ibnbd_srv_facts_exit(void)
{
	cancel_delayed_work_sync(&facts_look_work);
}

/* There is an export. */
void ibnbd_srv_facts_look_later(void)
{
	schedule_delayed_work(&facts_look_work, msecs_to_jiffies(FACTS_LOOK_MS));
}

static void facts_tell_size(struct ibnbd_srv_open *open, u64 nsectors, bool knows)
{
	WRITE_ONCE(open->facts.nsectors, nsectors);
	if (!knows)
		ibnbd_srv_open_tell(open, IBNBD_EVENT_RESIZED);
}

/*
 * Tell the clients of all opens but @asking, whose client gets the size in the answer to its OPEN.
 */
static void facts_new_size(struct ibnbd_srv_export *e, u64 nsectors,
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
			facts_tell_size(open, nsectors, open == asking);
}

/* Without the lock: a disk may take as long as it likes to open. */
static void facts_make_claim(struct ibnbd_srv_open *open)
{
	void *holder = ibnbd_srv_claim_holder(open);
	cx_bdev_t handle = ibnbd_srv_blockio_claim(open, holder), unclaimed;

	if (IS_ERR(handle))
		return;
	mutex_lock(&ibnbd_srv_export_lock);
	unclaimed = ibnbd_srv_blockio_claimed(open, handle, holder);
	if (holder)
		WRITE_ONCE(open->export->claims, open->export->claims + 1);
	facts_tell_size(open, ibnbd_srv_backing_nsectors(open), false);
	mutex_unlock(&ibnbd_srv_export_lock);
	cx_bdev_close(unclaimed, open->mode, NULL);
}

void ibnbd_srv_facts_claim_work(struct work_struct *work)
{
	struct ibnbd_srv_open *open = container_of(work, struct ibnbd_srv_open, claim_work);

	/* A look may have queued the work once more while it was making the claim. */
	if (ibnbd_srv_blockio_claim_is_due(open))
		facts_make_claim(open);
	percpu_ref_put(&open->ref);
}

/*
 * A disk that had no size when it was opened is claimed as soon as it has a size. Only then is its
 * client told the size. An open that is not live yet may be released without a wait for its
 * references: the next look finds it.
 */
static void facts_claim(struct ibnbd_srv_open *open)
{
	if (!ibnbd_srv_blockio_claim_is_due(open) ||
	    READ_ONCE(open->state) != IBNBD_SRV_OPEN_LIVE || !percpu_ref_tryget_live(&open->ref))
		return;
	if (!queue_work(open->export->wq, &open->claim_work))
		percpu_ref_put(&open->ref);	/* the work has one already */
}

/*
 * A disk that was taken out has size 0. The clients are not told: their I/O fails, and the disk may
 * be put back.
 */
static void facts_look(struct work_struct *work)
{
	struct ibnbd_srv_open *open;
	struct ibnbd_srv_export *e;
	u64 nsectors;

	guard(mutex)(&ibnbd_srv_export_lock);
	list_for_each_entry(e, &ibnbd_srv_export_list, link) {
		list_for_each_entry(open, &e->opens, link) {
			ibnbd_srv_open_unclaimed(open);
			facts_claim(open);
		}
		open = list_first_entry_or_null(&e->opens, struct ibnbd_srv_open, link);
		nsectors = open ? ibnbd_srv_backing_nsectors(open) : 0;
		if (open)
			ibnbd_srv_epoch_look(e, open);
		if (nsectors)
			facts_new_size(e, nsectors, NULL);
	}
	if (!list_empty(&ibnbd_srv_export_list))
		ibnbd_srv_facts_look_later();
}

/* Running I/O is checked against these facts, hence WRITE_ONCE(). */
static void facts_set(struct ibnbd_srv_open *open, const struct ibnbd_open_rsp *rsp)
{
	struct ibnbd_facts *f = &open->facts;

	WRITE_ONCE(f->nsectors, rsp->nsectors);
	WRITE_ONCE(f->logical_block_size, rsp->logical_block_size);
	WRITE_ONCE(f->max_discard_sectors, rsp->max_discard_sectors);
	WRITE_ONCE(f->max_write_zeroes_sectors, rsp->max_write_zeroes_sectors);
	WRITE_ONCE(f->secure_erase, rsp->secure_discard);
}

/*
 * Fill in the answer to OPEN, first or repeated, from the backing store as it is now: all but
 * device_id, has_identity and has_durability, which the caller sets. From now on I/O of @open,
 * which is pinned by an I/O reference, is checked against what this answer says.
 */
void ibnbd_srv_facts_describe(struct ibnbd_srv_open *open, struct ibnbd_open_rsp *rsp)
{
	struct ibnbd_srv_export *e = open->export;

	ibnbd_srv_backing_describe(open, rsp);
	guard(mutex)(&ibnbd_srv_export_lock);
	memcpy(rsp->identity.id, e->identity.id, sizeof(rsp->identity.id));
	rsp->identity.kind = e->identity.kind;
	rsp->identity.writer_gen = e->writer_gen;
	ibnbd_srv_epoch_tell(open, rsp);
	if (!open->claim_due) {
		/* Read again under the lock: another OPEN may have told a newer size meanwhile. */
		rsp->nsectors = ibnbd_srv_backing_nsectors(open);
		facts_new_size(e, rsp->nsectors, open);
	}
	facts_set(open, rsp);
}

/* Look at the size again and tell the clients. 0 or -ERESTARTNOINTR. */
int ibnbd_srv_facts_resize(struct ibnbd_srv_export *e)
{
	struct ibnbd_srv_open *open;
	int err = ibnbd_srv_export_trylock();

	if (err)
		return err;
	list_for_each_entry(open, &e->opens, link)
		facts_claim(open);
	open = list_first_entry_or_null(&e->opens, struct ibnbd_srv_open, link);
	if (open && !open->claim_due)
		facts_new_size(e, ibnbd_srv_backing_nsectors(open), NULL);
	mutex_unlock(&ibnbd_srv_export_lock);
	return 0;
}
