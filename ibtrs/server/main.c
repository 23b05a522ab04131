// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibtrs-server: the order in which its parts are started and stopped. Nothing listens, and no
 * memory is held for any client, until a user (ibnbd-server) calls ibtrs_srv_open().
 */
#include <linux/module.h>
#include <ibtrs/version.h>
#include "ibtrs/server/auth.h"
#include "ibtrs/server/chunk.h"
#include "ibtrs/server/debug.h"
#include "ibtrs/server/knock.h"
#include "ibtrs/server/listen.h"
#include "ibtrs/server/name.h"
#include "ibtrs/server/session.h"
#include "ibtrs/server/sysfs.h"

struct ibtrs_srv ibtrs_srv;

/**
 * ibtrs_srv_open() - start listening on all RDMA devices, those that come later included
 * @ops: callbacks; must stay until ibtrs_srv_close()
 * @port: host order
 *
 * Return: 0, -EBUSY (already open), -EADDRINUSE (perhaps by the kernel's own rtrs-server), or what
 * the connection manager said.
 */
int ibtrs_srv_open(const struct ibtrs_srv_ops *ops, u16 port)
{
	int err = 0;

	mutex_lock(&ibtrs_srv.lock);
	if (ibtrs_srv.ops) {
		err = -EBUSY;
	} else {
		ibtrs_srv.ops = ops;
		ibtrs_srv.accepting = true;
	}
	mutex_unlock(&ibtrs_srv.lock);
	if (err)
		return err;
	err = ibtrs_srv_listen_start(port);
	if (err)
		ibtrs_srv_close();
	return err;
}
EXPORT_SYMBOL_GPL(ibtrs_srv_open);

/**
 * ibtrs_srv_close() - stop listening, close all paths
 *
 * Waits until every op was replied and every session_down ran. Nothing is called back afterwards.
 */
void ibtrs_srv_close(void)
{
	mutex_lock(&ibtrs_srv.lock);
	ibtrs_srv.accepting = false;
	mutex_unlock(&ibtrs_srv.lock);
	ibtrs_srv_listen_stop();
	ibtrs_srv_knock_end_all();
	ibtrs_srv_auth_forget_all();
	ibtrs_srv_session_close_all();
	ibtrs_srv_chunk_stop();
	mutex_lock(&ibtrs_srv.lock);
	ibtrs_srv_name_forget_all();
	ibtrs_srv.ops = NULL;
	mutex_unlock(&ibtrs_srv.lock);
}
EXPORT_SYMBOL_GPL(ibtrs_srv_close);

static int __init ibtrs_srv_init(void)
{
	int err;

	err = ibtrs_srv_params_check();
	if (err)
		return err;
	mutex_init(&ibtrs_srv.lock);
	INIT_LIST_HEAD(&ibtrs_srv.sessions);
	init_waitqueue_head(&ibtrs_srv.gone);
	ibtrs_dev_pool_init(&ibtrs_srv.devs);
	/* a device made of bios that hangs blocks one work for each path */
	ibtrs_srv.wq = alloc_workqueue("ibtrs-srv", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	if (!ibtrs_srv.wq)
		return -ENOMEM;
	ibtrs_srv.quick_wq =
		alloc_workqueue("ibtrs-srv-quick", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	err = -ENOMEM;
	if (!ibtrs_srv.quick_wq)
		goto free_wq;
	ibtrs_srv.info_wq = alloc_workqueue("ibtrs-srv-info", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ibtrs_srv.info_wq)
		goto free_quick;
	err = ibtrs_srv_sysfs_init();
	if (err)
		goto free_info;
	ibtrs_srv_debug_init();
	return 0;

free_info:
	destroy_workqueue(ibtrs_srv.info_wq);
free_quick:
	destroy_workqueue(ibtrs_srv.quick_wq);
free_wq:
	destroy_workqueue(ibtrs_srv.wq);
	return err;
}

static void __exit ibtrs_srv_exit(void)
{
	ibtrs_srv_debug_exit();
	ibtrs_srv_sysfs_exit();
	destroy_workqueue(ibtrs_srv.info_wq);
	destroy_workqueue(ibtrs_srv.quick_wq);
	destroy_workqueue(ibtrs_srv.wq);
}

module_init(ibtrs_srv_init);
module_exit(ibtrs_srv_exit);

MODULE_DESCRIPTION("IBTRS: RDMA transport, server");
MODULE_LICENSE("GPL");
MODULE_VERSION(IBNBD_VERSION);
