// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a mapped device: drain, CLOSE, delete the disk, free.
 *
 * The work is queued once, by the step to "unmapped" in dev_state.c. Only this work frees a device
 * that has got its number, and only after map_device has finished with it. A task that unmaps may
 * wait until disk and number are gone; it waits outside of the attributes, which are deleted with
 * the disk (L5). The work waits for nothing that a dead server could withhold: parked requests end
 * at once; requests in flight get some time, then their paths are broken (L3). A CLOSE is sent
 * before that, so that the server lets a path come back although the disk has not answered. Without
 * a link the session keeps the id, and sends the CLOSE on the next link before it opens anything.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include "ibnbd/client/dev_state.h"
#include "ibnbd/client/disk.h"
#include "ibnbd/client/kept.h"
#include "ibnbd/client/link.h"
#include "ibnbd/client/names.h"
#include "ibnbd/client/open.h"
#include "ibnbd/client/remove.h"

#define REMOVE_DRAIN		(5 * HZ)	/* what in-flight requests get on a healthy path */
#define REMOVE_DRAIN_AGAIN	HZ
#define REMOVE_DRAIN_POLL_MS	20

static void remove_drain(struct ibnbd_clt_dev *dev)
{
	unsigned long end = jiffies + REMOVE_DRAIN;
	bool busy = false;

	for (;;) {
		scoped_guard(mutex, &dev->lock)
			busy = ibnbd_clt_dev_abort(dev);
		if (!busy)
			return;
		if (time_after(jiffies, end)) {
			pr_warn("ibnbd%d: unmap: requests are not answered, breaking their paths\n",
				dev->index);
			ibnbd_clt_open_give_up(dev);
			ibnbd_clt_inflight_break(dev, 0,
					      "a device with unanswered requests is unmapped");
			end = jiffies + REMOVE_DRAIN_AGAIN;
		}
		msleep(REMOVE_DRAIN_POLL_MS);
	}
}

void ibnbd_clt_remove_work(struct work_struct *work)
{
	struct ibnbd_clt_dev *dev = container_of(work, struct ibnbd_clt_dev, remove_work);
	struct ibnbd_clt_session *s = dev->sess;

	if (dev->disk)
		remove_drain(dev);
	wait_for_completion(&dev->mapped);
	if (dev->shown == IBNBD_CLT_SHOWN_LINK)
		ibnbd_clt_names_unlink(dev);
	if (s)
		ibnbd_clt_open_close(dev, IBNBD_DEV_UNMAPPED);
	/*
	 * A task that sees the disk gone may unload the module: module exit waits for the rest of
	 * the work.
	 */
	module_put(THIS_MODULE);
	ibnbd_clt_disk_del(dev);
	/*
	 * No request, no attribute and, after the next call, no session queues a work of the
	 * device.
	 */
	if (s)
		ibnbd_clt_link_leave(s, dev);
	ibnbd_clt_group_leave(dev);
	cancel_delayed_work_sync(&dev->work);
	cancel_delayed_work_sync(&dev->group_work);
	cancel_delayed_work_sync(&dev->hold_work);
	cancel_delayed_work_sync(&dev->sweep_work);
	cancel_delayed_work_sync(&dev->flush_work);
	ibnbd_clt_kept_forget(dev, false);
	if (s && ibnbd_open_sm_owes(dev->remote))
		ibnbd_clt_link_unclosed(s, dev);
	if (s)
		ibnbd_clt_session_put(s);
	if (dev->disk)
		pr_info("ibnbd%d: removed\n", dev->index);
	ibnbd_clt_names_forget(dev);
	ibnbd_clt_dev_free(dev);
}
