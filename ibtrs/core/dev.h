/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Protection domains (decision 9). Server and client have one per path. So a key of one path gives
 * no access to memory over another: not to another session's, not to the same session's by a path
 * that has not been let in, and not by a path to one whose QPs are gone.
 */
#ifndef IBTRS_CORE_DEV_H
#define IBTRS_CORE_DEV_H

#include <rdma/ib_verbs.h>

/* Each path has one of its own, and so has each connection that only authenticates. */
struct ibtrs_dev {
	struct ib_device *ib;
	struct ib_pd *pd;
	int node;		/* NUMA node of the device, or NUMA_NO_NODE */
};

/*
 * A new PD of @ib. ERR_PTR: -EOPNOTSUPP (no memory management extensions), -ENOMEM, verbs errors.
 * May sleep.
 */
struct ibtrs_dev *ibtrs_dev_get(struct ib_device *ib);
/* @dev may be NULL. May sleep. */
void ibtrs_dev_put(struct ibtrs_dev *dev);
/* alloc_pages_exact() near the device; freed by free_pages_exact(). NULL: no memory. */
void *ibtrs_dev_alloc_exact(const struct ibtrs_dev *dev, size_t size, gfp_t gfp);

#define IBTRS_MR_ADDR	(1ULL << 32)

/*
 * Maps the @n entries of @sg, for a device that sees pages of @page bytes. Gives @mr a new key, and
 * an address (iova) that tells the peer nothing about where the memory lies. Each MR gets the same
 * address, except the offset in the page; the keys tell the MRs apart. Call it before REG_MR. Any
 * context. Return: 0, or a negative errno.
 *
 * It does not probe the device for this: the user of REG_MR may choose the address, except the
 * offset in the page, and NFS over RDMA does so with every device. A device that used another
 * address would refuse the first transfer of a path, so that nothing could be mapped.
 */
static inline int ibtrs_mr_map(struct ib_mr *mr, struct scatterlist *sg, int n, u32 page)
{
	int got = ib_map_mr_sg(mr, sg, n, NULL, page);

	if (got != n)
		return got < 0 ? got : -EINVAL;
	mr->iova = IBTRS_MR_ADDR | (mr->iova & (mr->page_size - 1));
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return 0;
}

#endif
