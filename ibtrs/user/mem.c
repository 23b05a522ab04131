// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Memory of the caller's that adapters use in place: data of a request that lies in it is not
 * copied.
 *
 * The session has a table of it, and each path the keys of its adapter for the same entries, from
 * the moment when it can carry requests until its connections are closed. Whether a request's data
 * lies in the table is looked at when the request is posted, and for a read again when it is
 * answered. So the table changes only while no request is about the memory: under the locks of all
 * queues.
 */
#include "ibtrs/user/clt.h"

static bool mem_has(const struct ibtrs_region *g, const struct ibtrs_io *io)
{
	const u8 *data = io->data;

	return io->len && data < g->base + g->len && g->base < data + io->len;
}

/* The locks of all queues are held. */
static bool mem_is_used(const struct ibtrs_clt *clt, const struct ibtrs_region *g)
{
	u32 i, k;

	for (i = 0; i < clt->nr_qs; i++)
		for (k = 0; k < clt->qs[i].nr; k++)
			if (clt->qs[i].reqs[k].state != IBTRS_REQ_FREE &&
			    mem_has(g, clt->qs[i].reqs[k].io))
				return true;
	return false;
}

static void mem_lock(struct ibtrs_clt *clt)
{
	u32 i;

	pthread_mutex_lock(&clt->ctx->lock);
	for (i = 0; i < clt->nr_qs; i++)
		pthread_mutex_lock(&clt->qs[i].lock);
}

static void mem_unlock(struct ibtrs_clt *clt)
{
	u32 i;

	for (i = clt->nr_qs; i; i--)
		pthread_mutex_unlock(&clt->qs[i - 1].lock);
	pthread_mutex_unlock(&clt->ctx->lock);
}

/* Does the path have, or is it to have, keys? */
static bool mem_is_for(const struct ibtrs_clt_path *path)
{
	return path->conns && path->conns[0]->qp->verbs->own;
}

static int mem_path_add(struct ibtrs_clt_path *path, u32 i, const char **why)
{
	struct ibtrs_qp *qp = path->conns[0]->qp;
	const struct ibtrs_region *g = &path->clt->mem[i];
	int err;

	path->mem[i] = *g;
	err = qp->verbs->own(qp, &path->mem[i], g->key, why);
	if (err)
		path->mem[i] = (struct ibtrs_region){};
	return err;
}

static void mem_path_del(struct ibtrs_clt_path *path, u32 i)
{
	if (path->mem[i].mr)
		path->conns[0]->qp->verbs->dereg(&path->mem[i]);
	path->mem[i] = (struct ibtrs_region){};
}

int ibtrs_clt_mem_start(struct ibtrs_clt_path *path, const char **why)
{
	struct ibtrs_clt *clt = path->clt;
	int err = 0;
	u32 i;

	if (!mem_is_for(path))
		return 0;
	path->regions = (struct ibtrs_regions){ .v = path->mem, .nr = IBTRS_CLT_MEMS };
	for (i = 0; i < IBTRS_CLT_MEMS && !err; i++)
		if (clt->mem[i].len)
			err = mem_path_add(path, i, why);
	for (i = 0; i < clt->nr_qs && !err; i++)
		path->conns[i]->qp->regions = &path->regions;
	return err;
}

void ibtrs_clt_mem_end(struct ibtrs_clt_path *path)
{
	u32 i;

	for (i = 0; i < path->regions.nr; i++)
		mem_path_del(path, i);
	path->regions.nr = 0;
}

static void mem_del(struct ibtrs_clt *clt, u32 i)
{
	u32 k;

	for (k = 0; k < clt->nr_paths; k++)
		if (clt->paths[k].regions.nr)
			mem_path_del(&clt->paths[k], i);
	clt->mem[i] = (struct ibtrs_region){};
}

/* The locks are held. Return: 0, or a negative errno and @why. */
static int mem_add(struct ibtrs_clt *clt, const struct ibtrs_region *g, const char **why)
{
	u32 i, k, free = IBTRS_CLT_MEMS;
	int err = 0;

	for (i = IBTRS_CLT_MEMS; i; i--) {
		const struct ibtrs_region *x = &clt->mem[i - 1];

		*why = "some of it is memory of the session already";
		if (x->base < g->base + g->len && g->base < x->base + x->len)
			return -EEXIST;
		free = x->len ? free : i - 1;
	}
	*why = "a session has 16 pieces of memory at most";
	if (free == IBTRS_CLT_MEMS)
		return -ENOSPC;
	*why = "a request has data in it";
	if (mem_is_used(clt, g))
		return -EBUSY;
	clt->mem[free] = *g;
	for (k = 0; k < clt->nr_paths && !err; k++)
		if (clt->paths[k].regions.nr)
			err = mem_path_add(&clt->paths[k], free, why);
	if (err)
		mem_del(clt, free);
	return err;
}

int ibtrs_clt_mem_add(struct ibtrs_clt *clt, void *base, size_t len, uint32_t flags,
		      char why[IBTRS_WHY_LEN])
{
	const struct ibtrs_region g = {
		.base = base, .len = (u32)len, .key = flags & IBTRS_MEM_READ,
	};
	const char *reason = "";
	int err;

	if (!base || !len || len > U32_MAX || flags & ~IBTRS_MEM_READ)
		return ibtrs_user_why(
			why, -EINVAL, clt->name,
			"memory has 1 to 4294967295 bytes, and no flag but IBTRS_MEM_READ");
	mem_lock(clt);
	err = mem_add(clt, &g, &reason);
	mem_unlock(clt);
	return err ? ibtrs_user_why(why, err, clt->name, "%s", reason) : 0;
}

int ibtrs_clt_mem_del(struct ibtrs_clt *clt, void *base)
{
	int err = -ENOENT;
	u32 i;

	mem_lock(clt);
	for (i = 0; i < IBTRS_CLT_MEMS; i++) {
		if (!clt->mem[i].len || clt->mem[i].base != base)
			continue;
		err = mem_is_used(clt, &clt->mem[i]) ? -EBUSY : 0;
		if (!err)
			mem_del(clt, i);
		break;
	}
	mem_unlock(clt);
	return err;
}
