// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs-client: brings the rooms up and takes them down, and listens to what should make waiting paths try at once: an RDMA device or a network
 * interface that came up.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <ibtrs/version.h>
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

static void main_kick(struct ibtrs_clt_path *path, void *arg)
{
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
}

static void main_kick_all(struct work_struct *work)
{
	ibtrs_clt_session_each_path(main_kick, NULL);
}

static DECLARE_WORK(main_kick_work, main_kick_all);

static int main_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	if (event == NETDEV_UP || event == NETDEV_CHANGE)
		schedule_work(&main_kick_work);
	return NOTIFY_DONE;
}

static struct notifier_block main_netdev_nb = {
	.notifier_call = main_netdev_event,
};

static int main_ib_add(struct ib_device *ib)
{
	schedule_work(&main_kick_work);
	return 0;
}

static void main_ib_remove(struct ib_device *ib, void *data)
{
	/* The CM tells each connection; the drain of its path lets the device go. */
}

static struct ib_client main_ib_client = {
	.name	= "ibtrs-client",
	.add	= main_ib_add,
	.remove	= main_ib_remove,
};

static int __init ibtrs_clt_init(void)
{
	int err;

	err = ibtrs_clt_sysfs_init();
	if (err)
		return err;
	err = ib_register_client(&main_ib_client);
	if (err)
		goto sysfs_exit;
	err = register_netdevice_notifier(&main_netdev_nb);
	if (err)
		goto ib_unregister;
	return 0;

ib_unregister:
	ib_unregister_client(&main_ib_client);
	cancel_work_sync(&main_kick_work);
sysfs_exit:
	ibtrs_clt_sysfs_exit();
	return err;
}

static void __exit ibtrs_clt_exit(void)
{
	unregister_netdevice_notifier(&main_netdev_nb);
	ib_unregister_client(&main_ib_client);
	cancel_work_sync(&main_kick_work);
	ibtrs_clt_sysfs_exit();
	rcu_barrier();
}

module_init(ibtrs_clt_init);
module_exit(ibtrs_clt_exit);

MODULE_DESCRIPTION("IBTRS: RDMA transport, client");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
