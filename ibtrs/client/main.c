// SPDX-License-Identifier: GPL-2.0-only
/* ibtrs-client: brings the rooms up and takes them down. */
#include <linux/module.h>
#include <ibtrs/version.h>
#include "ibtrs/client/paths.h"
#include "ibtrs/client/port.h"
#include "ibtrs/client/session.h"
#include "ibtrs/client/sysfs.h"

static unsigned int max_conns;
module_param(max_conns, uint, 0444);
MODULE_PARM_DESC(max_conns, "upper bound on interrupt driven connections per path (0: one for each possible CPU)");

u32 ibtrs_clt_nr_conns(void)
{
	u32 n = max_conns ? min(max_conns, nr_cpu_ids) : nr_cpu_ids;

	return min_t(u32, n, IBTRS_MAX_CONS / 2);
}

static int __init ibtrs_clt_init(void)
{
	int err;

	err = ibtrs_clt_paths_init();
	if (err)
		return err;
	err = ibtrs_clt_sysfs_init();
	if (err)
		goto paths;
	err = ibtrs_clt_port_init();
	if (err)
		goto sysfs;
	return 0;

sysfs:
	ibtrs_clt_sysfs_exit();
paths:
	ibtrs_clt_paths_exit();
	return err;
}

static void __exit ibtrs_clt_exit(void)
{
	ibtrs_clt_port_exit();
	ibtrs_clt_sysfs_exit();
	ibtrs_clt_paths_exit();
	rcu_barrier();
}

module_init(ibtrs_clt_init);
module_exit(ibtrs_clt_exit);

MODULE_DESCRIPTION("IBTRS: RDMA transport, client");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
