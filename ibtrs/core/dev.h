/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Protection domains (architecture decision 9): the server has one per session and RDMA device, a
 * key of one session opens nothing of another; the client one per path, so that a path whose QPs
 * are gone leaves no key behind that another one could use.
 */
#ifndef IBTRS_CORE_DEV_H
#define IBTRS_CORE_DEV_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <rdma/ib_verbs.h>

/* Lives in the server's session, the client's path. */
struct ibtrs_dev_pool {
	struct mutex lock;
	struct list_head devs;
};

struct ibtrs_dev {
	struct ib_device *ib;
	struct ib_pd *pd;
	int node;		/* where its memory is near, or NUMA_NO_NODE */
	struct ibtrs_dev_pool *pool;
	struct list_head entry;
	refcount_t ref;
};

void ibtrs_dev_pool_init(struct ibtrs_dev_pool *pool);
/*
 * The pool's dev for @ib, made when it is not there yet. ERR_PTR: -ENOTSUPP (no memory management
 * extensions), verbs errors. May sleep.
 */
struct ibtrs_dev *ibtrs_dev_get(struct ibtrs_dev_pool *pool, struct ib_device *ib);
void ibtrs_dev_put(struct ibtrs_dev *dev);
/* alloc_pages_exact() near the device; freed by free_pages_exact(). NULL: no memory. */
void *ibtrs_dev_alloc_exact(const struct ibtrs_dev *dev, size_t size, gfp_t gfp);

#define IBTRS_MR_ADDR	(1ULL << 32)

/*
 * The peer is to know @mr by an address that tells nothing of where its memory lies: of each MR the
 * same, for keys tell them apart. After ib_map_mr_sg(), before REG_MR. Any context.
 *
 * No device is probed for it: an address of REG_MR is its user's to choose, but for the place
 * within a page, and NFS over RDMA does so with each device. One that went by another address would
 * refuse the first transfer of a path, so that nothing could be mapped.
 */
static inline void ibtrs_mr_hide(struct ib_mr *mr)
{
	mr->iova = IBTRS_MR_ADDR | (mr->iova & (mr->page_size - 1));
}

#endif
