// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <ibtrs/version.h>
#include "ibnbd/client/ctl.h"
#include "ibnbd/client/number.h"
#include "ibnbd/client/wq.h"

static int __init ibnbd_clt_init(void)
{
	int err;

	err = ibnbd_clt_wq_init();
	if (err)
		return err;
	err = ibnbd_clt_ctl_init();
	if (err)
		ibnbd_clt_wq_exit();
	return err;
}

/*
 * Each mapped device holds a reference to the module, so no device is mapped here. But a removal
 * drops the reference before it deletes the disk, so removals may still be running.
 */
static void __exit ibnbd_clt_exit(void)
{
	ibnbd_clt_ctl_exit();
	ibnbd_clt_wq_exit();
	ibnbd_clt_number_exit();
}

module_init(ibnbd_clt_init);
module_exit(ibnbd_clt_exit);
MODULE_DESCRIPTION("IBNBD client: block devices over RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
