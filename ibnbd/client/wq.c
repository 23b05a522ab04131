// SPDX-License-Identifier: GPL-2.0-only
/* The work queues that all devices share. */
#include <linux/workqueue.h>
#include "ibnbd/client/wq.h"

struct workqueue_struct *ibnbd_clt_dev_wq;
struct workqueue_struct *ibnbd_clt_remove_wq;

int ibnbd_clt_wq_init(void)
{
	ibnbd_clt_dev_wq = alloc_workqueue("ibnbd-clt-dev", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ibnbd_clt_dev_wq)
		return -ENOMEM;
	/* del_gendisk() waits for works of queues without a rescuer, so this one has none. */
	ibnbd_clt_remove_wq = alloc_workqueue("ibnbd-clt-remove", WQ_UNBOUND, 0);
	if (ibnbd_clt_remove_wq)
		return 0;
	destroy_workqueue(ibnbd_clt_dev_wq);
	return -ENOMEM;
}

/* Waits for the removals. */
void ibnbd_clt_wq_exit(void)
{
	destroy_workqueue(ibnbd_clt_remove_wq);
	destroy_workqueue(ibnbd_clt_dev_wq);
}
