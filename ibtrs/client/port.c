// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the host's own ports tell.
 *
 * Down: a path whose port lost its link fails at once, instead of after some heartbeats (decision 11): its requests are on another path while the
 * cable still falls. Up: paths that wait for their next attempt make it now.
 */
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/client/port.h"
#include "ibtrs/client/session.h"

static void port_event(struct ib_event_handler *handler, struct ib_event *ev)
{
	struct ibtrs_clt_path *path = container_of(handler, struct ibtrs_clt_path, port.handler);

	if (ev->event == IB_EVENT_DEVICE_FATAL)
		ibtrs_clt_path_fail(path, -EIO, "the RDMA device broke down");
	else if (ev->event == IB_EVENT_PORT_ERR && ev->element.port_num == path->port.num)
		ibtrs_clt_path_fail(path, -ENETDOWN, "the port has no link");
}

void ibtrs_clt_port_watch(struct ibtrs_clt_path *path, const struct rdma_cm_id *id)
{
	path->port.num = id->port_num;
	INIT_IB_EVENT_HANDLER(&path->port.handler, id->device, port_event);
	ib_register_event_handler(&path->port.handler);
	path->port.watched = true;
}

void ibtrs_clt_port_unwatch(struct ibtrs_clt_path *path)
{
	if (!path->port.watched)
		return;
	ib_unregister_event_handler(&path->port.handler);
	path->port.watched = false;
}

static void port_kick(struct ibtrs_clt_path *path, void *arg)
{
	ibtrs_clt_path_post(path, IBTRS_PATH_EV_RETRY, 0, NULL);
}

static void port_kick_all(struct work_struct *work)
{
	ibtrs_clt_session_each_path(port_kick, NULL);
}

static DECLARE_WORK(port_kick_work, port_kick_all);

static int port_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	if (event == NETDEV_UP || event == NETDEV_CHANGE)
		schedule_work(&port_kick_work);
	return NOTIFY_DONE;
}

static struct notifier_block port_netdev_nb = {
	.notifier_call = port_netdev_event,
};

static int port_ib_add(struct ib_device *ib)
{
	schedule_work(&port_kick_work);
	return 0;
}

static void port_ib_remove(struct ib_device *ib, void *data)
{
	/* The CM tells each connection; the drain of its path lets the device go. */
}

static struct ib_client port_ib_client = {
	.name	= "ibtrs-client",
	.add	= port_ib_add,
	.remove	= port_ib_remove,
};

int ibtrs_clt_port_init(void)
{
	int err;

	err = ib_register_client(&port_ib_client);
	if (err)
		return err;
	err = register_netdevice_notifier(&port_netdev_nb);
	if (err) {
		ib_unregister_client(&port_ib_client);
		cancel_work_sync(&port_kick_work);
	}
	return err;
}

void ibtrs_clt_port_exit(void)
{
	unregister_netdevice_notifier(&port_netdev_nb);
	ib_unregister_client(&port_ib_client);
	cancel_work_sync(&port_kick_work);
}
