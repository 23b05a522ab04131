// SPDX-License-Identifier: GPL-2.0-only
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "ibtrs/core/dev.h"

/* The NUMA node of the adapter. A software device has none; its network interface may have one. */
static int dev_node(struct ib_device *ib)
{
	int node = ibdev_to_node(ib);
	const struct ib_gid_attr *gid;
	struct net_device *netdev;

	if (node == NUMA_NO_NODE) {
		gid = rdma_get_gid_attr(ib, rdma_start_port(ib), 0);
		if (IS_ERR(gid))
			return NUMA_NO_NODE;
		rcu_read_lock();
		netdev = rdma_read_gid_attr_ndev_rcu(gid);
		if (!IS_ERR(netdev) && netdev->dev.parent)
			node = dev_to_node(netdev->dev.parent);
		rcu_read_unlock();
		rdma_put_gid_attr(gid);
	}
	return node == NUMA_NO_NODE || node_online(node) ? node : NUMA_NO_NODE;
}

struct ibtrs_dev *ibtrs_dev_get(struct ib_device *ib)
{
	struct ibtrs_dev *dev __free(kfree) = NULL;

	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return ERR_PTR(-EOPNOTSUPP);
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(dev->pd))
		return ERR_CAST(dev->pd);
	dev->ib = ib;
	dev->node = dev_node(ib);
	return_ptr(dev);
}

void ibtrs_dev_put(struct ibtrs_dev *dev)
{
	if (!dev)
		return;
	ib_dealloc_pd(dev->pd);
	kfree(dev);
}

void *ibtrs_dev_alloc_exact(const struct ibtrs_dev *dev, size_t size, gfp_t gfp)
{
	unsigned int order = get_order(size);
	struct page *page = alloc_pages_node(dev->node, gfp, order);
	unsigned long i;

	if (!page)
		return NULL;
	split_page(page, order);
	for (i = PFN_UP(size); i < 1ul << order; i++)
		__free_page(page + i);
	return page_address(page);
}
