// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>
#include "ibtrs/core/dev.h"

void ibtrs_dev_pool_init(struct ibtrs_dev_pool *pool)
{
	mutex_init(&pool->lock);
	INIT_LIST_HEAD(&pool->devs);
}

static struct ibtrs_dev *dev_make(struct ibtrs_dev_pool *pool, struct ib_device *ib)
{
	struct ibtrs_dev *dev;
	int err;

	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return ERR_PTR(-EOPNOTSUPP);
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(dev->pd)) {
		err = PTR_ERR(dev->pd);
		kfree(dev);
		return ERR_PTR(err);
	}
	dev->ib = ib;
	dev->pool = pool;
	refcount_set(&dev->ref, 1);
	list_add(&dev->entry, &pool->devs);
	return dev;
}

struct ibtrs_dev *ibtrs_dev_get(struct ibtrs_dev_pool *pool, struct ib_device *ib)
{
	struct ibtrs_dev *dev;

	mutex_lock(&pool->lock);
	list_for_each_entry(dev, &pool->devs, entry) {
		if (dev->ib == ib) {
			refcount_inc(&dev->ref);
			goto out;
		}
	}
	dev = dev_make(pool, ib);
out:
	mutex_unlock(&pool->lock);
	return dev;
}

void ibtrs_dev_put(struct ibtrs_dev *dev)
{
	struct ibtrs_dev_pool *pool;

	if (!dev)
		return;
	pool = dev->pool;
	mutex_lock(&pool->lock);
	if (refcount_dec_and_test(&dev->ref)) {
		list_del(&dev->entry);
		ib_dealloc_pd(dev->pd);
		kfree(dev);
	}
	mutex_unlock(&pool->lock);
}
