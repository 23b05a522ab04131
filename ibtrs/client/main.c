// SPDX-License-Identifier: GPL-2.0-only
/* ibtrs-client: sets up and tears down the parts of the module. */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <ibtrs/version.h>
#include "ibtrs/client/cm.h"
#include "ibtrs/client/dirs.h"

#define CREATE_TRACE_POINTS
#include "ibtrs/client/trace.h"

static int __init ibtrs_clt_init(void)
{
	int err;

	err = ibtrs_clt_dirs_init();
	if (err)
		return err;
	err = ibtrs_clt_port_init();
	if (err)
		ibtrs_clt_dirs_exit();
	return err;
}

static void __exit ibtrs_clt_exit(void)
{
	ibtrs_clt_port_exit();
	ibtrs_clt_dirs_exit();
	rcu_barrier();
	/* a store of remove_path, outside of its attribute, or its work may be here still */
	synchronize_rcu_tasks();
}

module_init(ibtrs_clt_init);
module_exit(ibtrs_clt_exit);

MODULE_DESCRIPTION("IBTRS: RDMA transport, client");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
