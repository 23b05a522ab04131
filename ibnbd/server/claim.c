// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two masters on one disk destroy it: a client and this machine itself, or two clients of which one
 * has the whole disk and the other a partition (law L23).
 *
 * Block devices: whatever uses a disk exclusively - a mount, swap, md, the device mapper, mkfs -
 * claims it in the block layer, under a holder of its own. Each open that may write does the same,
 * from before OPEN is answered until its last I/O has ended. All these opens use one common holder.
 * The block layer then does the rest: opens of one disk share the claim, under whatever names they
 * were opened (export.c decides which of them may write at the same time); every other user gets
 * EBUSY; and a disk and its partition exclude each other, even under one holder. The claim ends
 * with the last of those opens, and no state has to be kept for that.
 *
 * Files: the kernel has no claims on files, and a writer of a file cannot keep other writers out.
 * But the kernel counts the writers of a file: if any other program has the file open for writing,
 * OPEN is refused. Our own opens are on a list from before the file is opened until after it is
 * closed. While one is being opened or closed, it is not known whether the kernel counts it: an
 * open whose check depends on that waits until it is settled, so that it neither counts as another
 * program's nor hides one.
 *
 * Readers claim nothing, because they cannot destroy anything. But if the policy says exclusive,
 * every open claims, in any access mode and whatever the parameter claim says.
 *
 * Lock: claim_lock protects the list and file_settled, and is an innermost lock. Calls into the
 * block layer sleep.
 */
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include "ibnbd/server/backing.h"
#include "ibnbd/server/params.h"

static char claim_holder;		/* its address is the holder */

static DEFINE_SPINLOCK(claim_lock);
/* opens of files (for writing, or exclusive), and opens of claimed disks */
static LIST_HEAD(claim_opens);
/* for an open of a file that is settled */
static DECLARE_WAIT_QUEUE_HEAD(claim_wait);

static bool claim_wanted(const struct ibnbd_srv_open *open)
{
	return open->exclusive ||
	       (ibnbd_access_writes(open->access) && READ_ONCE(ibnbd_srv_claim));
}

/* The holder under which @open claims its disk; NULL: it claims nothing. */
void *ibnbd_srv_claim_holder(const struct ibnbd_srv_open *open)
{
	return claim_wanted(open) ? &claim_holder : NULL;
}

/* Has a client claimed this disk, or a partition of it? */
static bool claim_of_client(const struct gendisk *disk)
{
	struct ibnbd_srv_open *open;

	guard(spinlock)(&claim_lock);
	list_for_each_entry(open, &claim_opens, claim_link)
		if (open->bdev && open->bdev->bd_disk == disk)
			return true;
	return false;
}

static const char *claim_taken_by(struct block_device *bdev)
{
	bool part = bdev->bd_dev != disk_devt(bdev->bd_disk);

	if (claim_of_client(bdev->bd_disk))
		return part ? "another client has the whole disk mapped for writing; see ibnbd server list" :
			      "another client has a partition of it mapped for writing; see ibnbd server list";
	if (part && !READ_ONCE(bdev->bd_holder))
		return "the disk that it is a partition of is in use on the server as a whole; ibnbd doctor there names the user";
	return "it is in use on the server: it, or a part of it, is mounted, swap, or below md, LVM or another mapping; ibnbd doctor there says which";
}

/*
 * Why a disk could not be claimed, cause and remedy: opening @dev has failed with -EBUSY. Empty if
 * the disk cannot be opened. Sleeps.
 */
const char *ibnbd_srv_claim_taken(dev_t dev)
{
	cx_bdev_t handle = cx_bdev_open(dev, BLK_OPEN_READ, NULL);
	const char *why;

	if (IS_ERR(handle))
		return "";
	why = claim_taken_by(cx_bdev(handle));
	cx_bdev_close(handle, BLK_OPEN_READ, NULL);
	return why;
}

/* A file is going to be opened, or to be closed. */
void ibnbd_srv_claim_file_begin(struct ibnbd_srv_open *open, const struct inode *inode)
{
	if (!ibnbd_access_writes(open->access) && !open->exclusive)
		return;
	guard(spinlock)(&claim_lock);
	open->inode = inode;
	open->file_settled = false;
	if (list_empty(&open->claim_link))
		list_add(&open->claim_link, &claim_opens);
}

/* False: that depends on opens of ours that are not settled. *@foreign: is there another writer? */
static bool claim_file_decide(const struct inode *inode, bool *foreign)
{
	int sure = 0, perhaps = 0, writers;
	struct ibnbd_srv_open *open;

	guard(spinlock)(&claim_lock);
	list_for_each_entry(open, &claim_opens, claim_link) {
		if (open->inode != inode || !ibnbd_access_writes(open->access))
			continue;
		sure += open->file_settled;
		perhaps += !open->file_settled;
	}
	writers = atomic_read(&inode->i_writecount);
	*foreign = writers > sure;
	return writers <= sure || writers > sure + perhaps;
}

/*
 * Is the file, which @open has open, open for writing elsewhere? -EBUSY, or 0. May wait for other
 * opens of the file.
 */
int ibnbd_srv_claim_file_check(struct ibnbd_srv_open *open, const char **why)
{
	bool foreign;

	scoped_guard(spinlock, &claim_lock)
		open->file_settled = true;
	wake_up_all(&claim_wait);
	if (!claim_wanted(open))
		return 0;
	wait_event_idle(claim_wait, claim_file_decide(open->inode, &foreign));
	if (!foreign)
		return 0;
	*why = "a loop device or a program of the server has the file open for writing; see losetup -j, fuser";
	return -EBUSY;
}

/* The disk of @open has been claimed: put the open on the list. */
void ibnbd_srv_claim_disk(struct ibnbd_srv_open *open)
{
	guard(spinlock)(&claim_lock);
	list_add(&open->claim_link, &claim_opens);
}

/*
 * Take @open off the list: its disk is about to be closed, or its file is closed or was not opened.
 */
void ibnbd_srv_claim_end(struct ibnbd_srv_open *open)
{
	scoped_guard(spinlock, &claim_lock)
		list_del_init(&open->claim_link);
	wake_up_all(&claim_wait);
}
