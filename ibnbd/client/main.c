// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/workqueue.h>
#include <ibtrs/version.h>
#include "ibnbd/client/disk.h"
#include "ibnbd/client/sysfs.h"

#define CREATE_TRACE_POINTS
#include "ibnbd/client/trace.h"

struct workqueue_struct *ibnbd_clt_dev_wq;
struct workqueue_struct *ibnbd_clt_remove_wq;

/* Waits for the removals. */
static void wq_exit(void)
{
	if (ibnbd_clt_remove_wq)
		destroy_workqueue(ibnbd_clt_remove_wq);
	if (ibnbd_clt_dev_wq)
		destroy_workqueue(ibnbd_clt_dev_wq);
}

static int __init ibnbd_clt_init(void)
{
	int err = -ENOMEM;

	ibnbd_clt_dev_wq = alloc_workqueue("ibnbd-clt-dev", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	/* del_gendisk() waits for works of queues without a rescuer, so this one has none. */
	ibnbd_clt_remove_wq = alloc_workqueue("ibnbd-clt-remove", WQ_UNBOUND, 0);
	if (ibnbd_clt_dev_wq && ibnbd_clt_remove_wq)
		err = ibnbd_clt_ctl_init();
	if (err)
		wq_exit();
	return err;
}

/*
 * Each mapped device holds a reference to the module, so no device is mapped here. But a removal
 * drops the reference before it deletes the disk, so removals may still be running.
 */
static void __exit ibnbd_clt_exit(void)
{
	ibnbd_clt_ctl_exit();
	wq_exit();
	ibnbd_clt_number_exit();
}

module_init(ibnbd_clt_init);
module_exit(ibnbd_clt_exit);
MODULE_DESCRIPTION("IBNBD client: block devices over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
