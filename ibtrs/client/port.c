// SPDX-License-Identifier: GPL-2.0-only
/*
 * Link events of the host's own ports.
 *
 * Down: a path whose port lost its link fails at once, instead of after some missed heartbeats
 * (decision 11), and its requests move at once. The kernel reports the first port that loses its
 * carrier at once, but other ports up to a second late. So the first report makes us look at all
 * ports, and again 100 ms later for ports that go down together with the first. Up: paths that wait
 * for their next attempt start it now, and retry often for a while, because the other end may need
 * a moment longer.
 */
#include <linux/delay.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include "ibtrs/client/session.h"

#define PORT_LOOK_AGAIN	msecs_to_jiffies(100)
#define PORT_SETTLE_MS	1500
#define PORT_SETTLE_STEP_MS	20

static void port_lost(struct ibtrs_clt_path *path)
{
	ibtrs_clt_path_fail(path, -ENETDOWN, "the port has no link");
}

static void port_event(struct ib_event_handler *handler, struct ib_event *ev)
{
	struct ibtrs_clt_path *path = container_of(handler, struct ibtrs_clt_path, port.handler);

	if (ev->event == IB_EVENT_DEVICE_FATAL)
		ibtrs_clt_path_fail(path, -EIO, "the RDMA device broke down");
	else if (ev->event == IB_EVENT_PORT_ERR && ev->element.port_num == path->port.num)
		port_lost(path);
}

void ibtrs_clt_port_watch(struct ibtrs_clt_path *path, const struct rdma_cm_id *id)
{
	path->port.num = id->port_num;
	/*
	 * On other fabrics than RoCE the interface only provides the address: connections outlive
	 * the loss of its carrier.
	 */
	path->port.ifindex = rdma_protocol_roce(id->device, id->port_num) ?
				     id->route.addr.dev_addr.bound_dev_if :
				     0;
	INIT_IB_EVENT_HANDLER(&path->port.handler, id->device, port_event);
	ib_register_event_handler(&path->port.handler);
}

void ibtrs_clt_port_unwatch(struct ibtrs_clt_path *path)
{
	if (!path->port.handler.device)
		return;
	ib_unregister_event_handler(&path->port.handler);
	path->port.handler.device = NULL;
}

/* Is @bit set in the state of the interface? No, if there is none. */
static bool port_is(const struct ibtrs_clt_path *path, enum netdev_state_t bit)
{
	struct net_device *dev;

	guard(rcu)();
	dev = dev_get_by_index_rcu(&init_net, READ_ONCE(path->port.ifindex));
	return dev && test_bit(bit, &dev->state);
}

/*
 * Packets queued at a port without carrier hold references to the QPs of soft-RoCE. They are
 * dropped when the kernel reports the loss of carrier. Before 6.0 a QP that is destroyed before
 * such packets is cleaned up in freed memory. Later kernels wait for the packets when they destroy
 * the QP, so waiting here costs nothing there. No request waits for this: all have left the path.
 */
void ibtrs_clt_port_settle(struct ibtrs_clt_path *path)
{
	unsigned int ms;

	for (ms = 0; ms < PORT_SETTLE_MS && port_is(path, __LINK_STATE_LINKWATCH_PENDING);
	     ms += PORT_SETTLE_STEP_MS)
		msleep(PORT_SETTLE_STEP_MS);
	/* The kernel frees the packets when it releases its lock, just after the report. */
	if (ms || port_is(path, __LINK_STATE_NOCARRIER))
		msleep(PORT_SETTLE_STEP_MS);
}

static void port_look(struct ibtrs_clt_path *path)
{
	if (ibtrs_clt_path_state(path) == IBTRS_PATH_UP && port_is(path, __LINK_STATE_NOCARRIER))
		port_lost(path);
}

static void port_look_all(struct work_struct *work)
{
	ibtrs_clt_dirs_each_path(port_look);
}

static DECLARE_DELAYED_WORK(port_look_work, port_look_all);
static DECLARE_DELAYED_WORK(port_look_again, port_look_all);

static void port_kick(struct ibtrs_clt_path *path)
{
	if (ibtrs_clt_path_state(path) == IBTRS_PATH_UP)
		return;
	ibtrs_clt_want(path->clt, IBTRS_RETRY_NEWS_S);
	ibtrs_clt_path_hurry(path, false);
}

static void port_kick_all(struct work_struct *work)
{
	ibtrs_clt_dirs_each_path(port_kick);
}

static DECLARE_WORK(port_kick_work, port_kick_all);

static int port_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	if (event == NETDEV_CHANGE && !netif_carrier_ok(netdev_notifier_info_to_dev(ptr))) {
		mod_delayed_work(system_percpu_wq, &port_look_work, 0);
		mod_delayed_work(system_percpu_wq, &port_look_again, PORT_LOOK_AGAIN);
	} else if (event == NETDEV_UP || event == NETDEV_CHANGE) {
		schedule_work(&port_kick_work);
	}
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

/* No remove: the CM sends each connection an event; the drain of its path releases the device. */
static struct ib_client port_ib_client = {
	.name	= "ibtrs-client",
	.add	= port_ib_add,
};

static void port_works_end(void)
{
	cancel_work_sync(&port_kick_work);
	cancel_delayed_work_sync(&port_look_work);
	cancel_delayed_work_sync(&port_look_again);
}

int ibtrs_clt_port_init(void)
{
	int err;

	err = ib_register_client(&port_ib_client);
	if (err)
		return err;
	err = register_netdevice_notifier(&port_netdev_nb);
	if (err) {
		ib_unregister_client(&port_ib_client);
		port_works_end();
	}
	return err;
}

void ibtrs_clt_port_exit(void)
{
	unregister_netdevice_notifier(&port_netdev_nb);
	ib_unregister_client(&port_ib_client);
	port_works_end();
}
