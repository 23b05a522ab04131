// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * RDMA: memory that the adapter knows.
 *
 * A server registers its chunks, and the adapter reads and writes them in place. A client's buffers
 * are its caller's, and not registered unless the caller says so (mem.c): each slot of a connection
 * has memory of its own that is laid out as the chunk is (data, header), and data is copied to it
 * before the request and from it after the answer. So a server can write to that memory at any
 * time, and to the caller's never.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "ibtrs/user/rdma_qp.h"

#define RDMA_IOVA	0x100000u	/* where memory begins for peers */

const char *ibtrs_rdma_words(int err)
{
	struct rlimit lock;

	switch (-err) {
	case ENOMEM:
		if (!getrlimit(RLIMIT_MEMLOCK, &lock) && lock.rlim_cur != RLIM_INFINITY)
			return "no memory, or more than may be locked: raise LimitMEMLOCK= (systemd), --ulimit memlock= (container) or ulimit -l, or lower the queue depth";
		return "no memory";
	case ENODEV:
	case ENOENT:
	case EADDRNOTAVAIL:
		return "no RDMA device has that address, or a way to it: see rdma link";
	case ENETUNREACH:
	case EHOSTUNREACH:
		return "no route leads there, or the host does not answer";
	case ETIMEDOUT:
		return "the host does not answer";
	case EACCES:
	case EPERM:
		return "this user may not use the RDMA device: that takes /dev/infiniband/rdma_cm and uverbsN";
	case EADDRINUSE:
		return "somebody else listens there: choose another port";
	}
	return "the RDMA device does not do it";
}

int ibtrs_rdma_break(struct ibtrs_rdma *r, int err)
{
	return ibtrs_qp_break(&r->qp, err, ibtrs_rdma_words(err));
}

static struct ibv_mr *rdma_mr(struct ibtrs_rdma *r, void *base, size_t len, u64 addr, bool remote)
{
	return ibv_reg_mr_iova(r->id->qp->pd, base, len, addr,
			       remote ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0);
}

/* Memory of the library's. */
static struct ibv_mr *rdma_reg_mr(struct ibtrs_rdma *r, void *base, size_t len)
{
	struct ibv_mr *mr;

	/* A child that is forked would take the pages away, by copying on write. */
	madvise(base, len, MADV_DONTFORK);
	mr = rdma_mr(r, base, len, RDMA_IOVA, true);
	if (!mr)
		ibtrs_rdma_break(r, errno ? -errno : -ENOMEM);
	return mr;
}

int ibtrs_rdma_area_new(struct ibtrs_rdma *r, struct ibtrs_rdma_area *a, size_t len)
{
	a->base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->base == MAP_FAILED) {
		a->base = NULL;
		return ibtrs_rdma_break(r, -ENOMEM);
	}
	a->len = len;
	a->mr = rdma_reg_mr(r, a->base, len);
	return a->mr ? 0 : r->qp.err;
}

void ibtrs_rdma_area_free(struct ibtrs_rdma_area *a)
{
	if (a->mr)
		ibv_dereg_mr(a->mr);
	if (a->base)
		munmap(a->base, a->len);
	*a = (struct ibtrs_rdma_area){};
}

struct ibv_sge ibtrs_rdma_area_sge(const struct ibtrs_rdma_area *a, size_t at, u32 len)
{
	return (struct ibv_sge){ .addr = RDMA_IOVA + at, .length = len, .lkey = a->mr->lkey };
}

int ibtrs_rdma_slots(struct ibtrs_qp *qp, u32 nr, u32 size)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);

	r->nr_slots = nr;
	r->slot_size = size;
	return ibtrs_rdma_area_new(r, &r->slots, (size_t)nr * size);
}

const struct ibtrs_region *ibtrs_rdma_in_place(const struct ibtrs_rdma *r, const void *data,
					       size_t len, u64 *addr)
{
	const struct ibtrs_regions *regions = r->qp.regions;
	const u8 *d = data;
	u32 i;

	for (i = 0; regions && i < regions->nr; i++) {
		const struct ibtrs_region *g = &regions->v[i];
		size_t at = (size_t)(d - g->base);

		if (d < g->base || at > g->len || len > g->len - at)
			continue;
		*addr = g->addr + at;
		return g;
	}
	return NULL;
}

/* Memory that a read's answer is written to; without a key the peer may not. */
static u32 rdma_own_key(const struct ibtrs_rdma *r, const void *data, size_t len, u64 *addr)
{
	const struct ibtrs_region *g = ibtrs_rdma_in_place(r, data, len, addr);

	return g ? g->key : 0;
}

void ibtrs_rdma_expose(struct ibtrs_qp *qp, u32 i, void *data, struct ibtrs_desc *desc)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);
	size_t at = (size_t)i * r->slot_size;

	desc->rkey = rdma_own_key(r, data, desc->len, &desc->addr);
	if (desc->rkey)
		return;
	/* A server that answers without data must not pass off that of an earlier request. */
	memset(r->slots.base + at, 0, desc->len);
	desc->addr = RDMA_IOVA + at;
	desc->rkey = r->slots.mr->rkey;
}

void ibtrs_rdma_conceal(struct ibtrs_qp *qp, u32 i, void *data, u32 len)
{
	struct ibtrs_rdma *r = ibtrs_rdma_of(qp);
	u64 addr;

	if (data && !rdma_own_key(r, data, len, &addr))
		memcpy(data, r->slots.base + (size_t)i * r->slot_size, len);
}

int ibtrs_rdma_own(struct ibtrs_qp *qp, struct ibtrs_region *g, bool remote, const char **why)
{
	struct ibv_mr *mr;
	int err;

	/* Both addresses have the same place in a page. */
	g->addr = RDMA_IOVA + ((uintptr_t)g->base & (uintptr_t)(sysconf(_SC_PAGESIZE) - 1));
	mr = rdma_mr(ibtrs_rdma_of(qp), g->base, g->len, g->addr, remote);
	if (!mr) {
		err = errno ? -errno : -ENOMEM;
		*why = ibtrs_rdma_words(err);
		return err;
	}
	g->key = remote ? mr->rkey : 0;
	g->mr = mr;
	return 0;
}

int ibtrs_rdma_reg(struct ibtrs_qp *qp, struct ibtrs_regions *regions, u32 i, void *base, u32 len)
{
	struct ibv_mr *mr = rdma_reg_mr(ibtrs_rdma_of(qp), base, len);

	if (!mr)
		return qp->err;
	regions->v[i] = (struct ibtrs_region){
		.base = base, .len = len, .key = mr->rkey, .addr = RDMA_IOVA, .mr = mr,
	};
	regions->locked = true;
	return 0;
}

void ibtrs_rdma_dereg(struct ibtrs_region *g)
{
	if (g->mr)
		ibv_dereg_mr(g->mr);
	g->mr = NULL;
	g->key = 0;
}
