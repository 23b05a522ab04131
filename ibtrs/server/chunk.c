// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: the memory that clients write requests to, and its keys.
 *
 * Called by handshake.c's INFO work (get, map, register, describe) and by path.c's close work
 * (unmap, put); works of one path never overlap. Nothing is allocated before INFO_REQ.
 *
 * Memory. Each chunk is physically contiguous and zeroed when it is allocated, so that nobody ever
 * reads what another one left (E-17, E-47). When a path ends its chunks go to a shelf for a short
 * while and back to the same path of the same session at the same address, with the same key or
 * none, to nobody else: a reconnect needs no new contiguous memory then. All bytes, in use or in
 * the shelf, are charged against one limit; a quarter of it may lie in the shelf. When it is hit,
 * the shelf is emptied for a client that was in before, never for a stranger; of a session that has
 * ended properly nothing stays there. A path that lingers gives back what no op uses. shelf_lock
 * protects the shelf.
 *
 * Keys. Without always_invalidate as few MRs as the device allows, equal in size (M4): their "page"
 * is the largest power of two that divides the chunk, its DMA addresses and what the device can do.
 * With always_invalidate one MR per chunk, since its key goes with each request. MRs are registered
 * on the service connection, in batches that fit its send queue (L18), before INFO_RSP is posted: a
 * lost INFO_RSP then repeats no REG_MR.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include "ibtrs/logic/chunkmap.h"
#include "ibtrs/server/debug.h"
#include "ibtrs/server/op.h"
#include "ibtrs/server/rx.h"

#define CHUNK_RUN		SZ_4M
#define CHUNK_SHELF_TIME	(20 * HZ)
#define CHUNK_REG_BATCH		32
#define CHUNK_REG_TIMEOUT	(5 * HZ)

static atomic64_t chunk_charged;
static DEFINE_SPINLOCK(shelf_lock);
static LIST_HEAD(shelf);
static u64 shelf_bytes;

static void chunk_expire(struct work_struct *work);
static DECLARE_DELAYED_WORK(shelf_work, chunk_expire);

/* ---- the account -------------------------------------------------------- */

u64 ibtrs_srv_chunk_limit(void)
{
	u64 mb = READ_ONCE(ibtrs_srv_params.max_memory_mb);

	return mb ? mb << 20 : ((u64)totalram_pages() << PAGE_SHIFT) / 2;
}

static bool chunk_try_charge(u64 bytes)
{
	if (atomic64_add_return(bytes, &chunk_charged) <= ibtrs_srv_chunk_limit())
		return true;
	atomic64_sub(bytes, &chunk_charged);
	return false;
}

bool ibtrs_srv_chunk_charge(u64 bytes, bool known)
{
	if (chunk_try_charge(bytes))
		return true;
	if (!known)
		return false;
	ibtrs_srv_chunk_empty_shelf();
	return chunk_try_charge(bytes);
}

void ibtrs_srv_chunk_charge_known(u64 bytes)
{
	atomic64_add(bytes, &chunk_charged);
}

void ibtrs_srv_chunk_uncharge(u64 bytes)
{
	atomic64_sub(bytes, &chunk_charged);
}

/* ---- memory ------------------------------------------------------------- */

static void chunks_free(struct ibtrs_srv_chunks *c)
{
	u32 i;

	for (i = 0; i < c->nr; i++) {
		if (c->mem[i])
			free_pages_exact(c->mem[i], c->size);
		cond_resched();
	}
	kvfree(c);
}

static void chunks_release(struct ibtrs_srv_chunks *c, u64 bytes)
{
	chunks_free(c);
	ibtrs_srv_chunk_uncharge(bytes);
}

static u64 chunks_bytes(const struct ibtrs_srv_chunks *c)
{
	return (u64)(c->nr - c->trimmed) * c->size;
}

/*
 * The page allocator gives powers of two, and a chunk is a little more than one: cut from one block
 * each, half of what is found and zeroed would go back. So a block is cut into as many chunks as it
 * holds, 31 of 132 KiB from 4 MiB; the pages of each are its own, and are freed by themselves.
 */
static struct ibtrs_srv_chunks *chunks_alloc(const struct ibtrs_dev *dev, u32 nr, u32 size)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN;
	u32 run = size % PAGE_SIZE ? 1 : max_t(u32, CHUNK_RUN / size, 1), i;
	struct ibtrs_srv_chunks *c;
	void *mem;

	c = kvzalloc_node(struct_size(c, mem, nr), GFP_KERNEL, dev->node);
	if (!c)
		return NULL;
	c->size = size;
	while (c->nr < nr) {
		while (run > nr - c->nr)
			run /= 2;
		mem = ibtrs_dev_alloc_exact(dev, (size_t)run * size,
					    gfp | (run > 1 ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL));
		if (!mem && run == 1) {
			chunks_free(c);
			return NULL;
		}
		if (!mem) {
			run /= 2;
			continue;
		}
		for (i = 0; i < run; i++)
			c->mem[c->nr++] = mem + (size_t)i * size;
		cond_resched();
	}
	return c;
}

static bool chunks_belong(const struct ibtrs_srv_chunks *c, const struct ibtrs_srv_path *path)
{
	return !memcmp(c->path_uuid, path->uuid, sizeof(path->uuid)) &&
	       !memcmp(c->session_uuid, path->session->uuid, sizeof(c->session_uuid)) &&
	       ibtrs_addr_equal(&c->peer, &path->addr.src) && !strcmp(c->key, path->session->key);
}

static void shelf_remove(struct ibtrs_srv_chunks *c)
{
	list_del(&c->entry);
	shelf_bytes -= chunks_bytes(c);
}

static struct ibtrs_srv_chunks *shelf_take(const struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c, *found = NULL;

	spin_lock(&shelf_lock);
	list_for_each_entry(c, &shelf, entry) {
		if (chunks_belong(c, path)) {
			shelf_remove(c);
			found = c;
			break;
		}
	}
	spin_unlock(&shelf_lock);
	return found;
}

/* The oldest one, if its time is over or the shelf holds more than @max. */
static struct ibtrs_srv_chunks *shelf_take_oldest(u64 max)
{
	struct ibtrs_srv_chunks *c;

	spin_lock(&shelf_lock);
	c = list_first_entry_or_null(&shelf, struct ibtrs_srv_chunks, entry);
	if (c && (shelf_bytes > max || time_after_eq(jiffies, c->expires)))
		shelf_remove(c);
	else
		c = NULL;
	spin_unlock(&shelf_lock);
	return c;
}

static void shelf_tidy(u64 max)
{
	struct ibtrs_srv_chunks *c;

	while ((c = shelf_take_oldest(max)))
		chunks_release(c, chunks_bytes(c));
}

static void shelf_put(struct ibtrs_srv_chunks *c)
{
	c->expires = jiffies + CHUNK_SHELF_TIME;
	spin_lock(&shelf_lock);
	list_add_tail(&c->entry, &shelf);
	shelf_bytes += chunks_bytes(c);
	spin_unlock(&shelf_lock);
	queue_delayed_work(ibtrs_srv.quick_wq, &shelf_work, CHUNK_SHELF_TIME);
	shelf_tidy(ibtrs_srv_chunk_limit() / 4);
}

static void chunk_expire(struct work_struct *work)
{
	shelf_tidy(U64_MAX);
	spin_lock(&shelf_lock);
	if (!list_empty(&shelf))
		queue_delayed_work(ibtrs_srv.quick_wq, &shelf_work, HZ);
	spin_unlock(&shelf_lock);
}

void ibtrs_srv_chunk_empty_shelf(void)
{
	shelf_tidy(0);
}

void ibtrs_srv_chunk_forget(const struct ibtrs_srv_session *s)
{
	struct ibtrs_srv_chunks *c, *next;
	LIST_HEAD(gone);

	spin_lock(&shelf_lock);
	list_for_each_entry_safe(c, next, &shelf, entry) {
		if (memcmp(c->session_uuid, s->uuid, sizeof(c->session_uuid)) ||
		    strcmp(c->key, s->key))
			continue;
		shelf_remove(c);
		list_add(&c->entry, &gone);
	}
	spin_unlock(&shelf_lock);
	list_for_each_entry_safe(c, next, &gone, entry)
		chunks_release(c, chunks_bytes(c));
}

void ibtrs_srv_chunk_trim(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c = path->chunks;
	u32 slot, n = 0;

	/* borrowers: for a test other paths use them, too */
	if (!c || !path->ops || c->borrowers)
		return;
	for (slot = 0; slot < c->nr; slot++) {
		if (!c->mem[slot] || READ_ONCE(ibtrs_srv_op_at(path, slot)->busy))
			continue;
		free_pages_exact(c->mem[slot], c->size);
		c->mem[slot] = NULL;
		n++;
	}
	c->trimmed += n;
	ibtrs_srv_chunk_uncharge((u64)n * c->size);
}

void ibtrs_srv_chunk_stop(void)
{
	cancel_delayed_work_sync(&shelf_work);
	ibtrs_srv_chunk_empty_shelf();
}

/* For a test: what another path of the session has. Never in earnest, see debug.h. */
static struct ibtrs_srv_chunks *chunks_borrow(const struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c = NULL;
	struct ibtrs_srv_path *other;

	rcu_read_lock();
	spin_lock(&shelf_lock);
	list_for_each_entry_rcu(other, &path->session->paths, entry) {
		c = other != path ? other->chunks : NULL;
		if (c) {
			c->borrowers++;
			break;
		}
	}
	spin_unlock(&shelf_lock);
	rcu_read_unlock();
	return c;
}

/* True if somebody else still uses them. */
static bool chunks_let_go(struct ibtrs_srv_path *path)
{
	bool used;

	spin_lock(&shelf_lock);
	used = path->chunks->borrowers;
	if (used)
		path->chunks->borrowers--;
	path->chunks = NULL;
	spin_unlock(&shelf_lock);
	return used;
}

int ibtrs_srv_chunk_get(struct ibtrs_srv_path *path, const char **why)
{
	u32 nr = path->limits.queue_depth, size = path->limits.chunk_size;
	struct ibtrs_srv_chunks *c;

	if (ibtrs_srv_shared_chunks())
		path->chunks = chunks_borrow(path);
	path->chunks = path->chunks ?: shelf_take(path);
	if (path->chunks)
		return 0;
	*why = "as much memory in use as max_memory_mb allows";
	if (!ibtrs_srv_chunk_charge((u64)nr * size, path->known))
		return -ENOMEM;
	*why = "not enough contiguous memory for the chunks: make max_chunk_size or sess_queue_depth smaller";
	c = chunks_alloc(path->dev, nr, size);
	if (!c) {
		ibtrs_srv_chunk_uncharge((u64)nr * size);
		return -ENOMEM;
	}
	memcpy(c->path_uuid, path->uuid, sizeof(c->path_uuid));
	memcpy(c->session_uuid, path->session->uuid, sizeof(c->session_uuid));
	c->peer = path->addr.src;
	strscpy(c->key, path->session->key, sizeof(c->key));
	path->chunks = c;
	return 0;
}

void ibtrs_srv_chunk_put(struct ibtrs_srv_path *path, bool keep)
{
	struct ibtrs_srv_chunks *c = path->chunks;

	if (!c || chunks_let_go(path))
		return;
	if (keep && !c->trimmed)
		shelf_put(c);
	else
		chunks_release(c, chunks_bytes(c));
}

/* ---- keys --------------------------------------------------------------- */

static int chunk_map_dma(struct ibtrs_srv_path *path, struct scatterlist *sgl)
{
	struct ib_device *ib = path->dev->ib;
	struct ibtrs_srv_chunks *c = path->chunks;
	struct scatterlist *sg;
	u32 i;

	sg_init_table(sgl, c->nr);
	for_each_sg(sgl, sg, c->nr, i) {
		u64 dma = ib_dma_map_single(ib, c->mem[i], c->size, DMA_BIDIRECTIONAL);

		if (ib_dma_mapping_error(ib, dma))
			return -ENOMEM;
		path->mrs.dma[i] = dma;
		path->mrs.mapped = i + 1;
		sg_set_buf(sg, c->mem[i], c->size);
		sg_dma_address(sg) = dma;
		sg_dma_len(sg) = c->size;
	}
	return 0;
}

/* The largest page that the chunk, its addresses and the device agree on; 0 if there is none. */
static u32 chunk_page_size(const struct ibtrs_srv_path *path)
{
	u64 fit = path->chunks->size;
	u32 i, size;

	for (i = 0; i < path->chunks->nr; i++)
		fit |= path->mrs.dma[i];
	for (size = 1u << __ffs64(fit); size >= SZ_4K; size >>= 1)
		if (path->dev->ib->attrs.page_size_cap & size)
			return size;
	return 0;
}

static int chunk_make_mr(struct ibtrs_srv_path *path, struct scatterlist *sgl, u32 per_mr, u32 page)
{
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(path->dev->pd, IB_MR_TYPE_MEM_REG, per_mr * (path->chunks->size / page));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	path->mrs.mr[path->mrs.nr++] = mr;
	n = ib_map_mr_sg(mr, sgl, per_mr, NULL, page);
	if (n != per_mr)
		return n < 0 ? n : -EINVAL;
	ibtrs_mr_hide(mr);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	return 0;
}

static int chunk_make_mrs(struct ibtrs_srv_path *path, struct scatterlist *sgl, const char **why)
{
	u32 page = chunk_page_size(path), nr = path->limits.queue_depth, mrs, per_mr;
	struct scatterlist *sg;
	u32 i;
	int err;

	*why = "the RDMA device has no page size that divides the chunk";
	if (!page)
		return -EOPNOTSUPP;
	mrs = path->new_rkey ?
		      nr :
		      ibtrs_chunkmap_mr_count(nr, path->dev->ib->attrs.max_fast_reg_page_list_len /
							  (path->chunks->size / page));
	*why = "the RDMA device cannot register a whole chunk: make max_chunk_size smaller";
	if (!mrs || path->chunks->size / page > path->dev->ib->attrs.max_fast_reg_page_list_len)
		return -EOPNOTSUPP;
	*why = "the RDMA device cannot register the chunks: make sess_queue_depth smaller";
	path->mrs.mr = kvcalloc(mrs, sizeof(*path->mrs.mr), GFP_KERNEL);
	if (!path->mrs.mr)
		return -ENOMEM;
	per_mr = nr / mrs;
	for_each_sg(sgl, sg, nr, i) {
		if (i % per_mr)
			continue;
		err = chunk_make_mr(path, sg, per_mr, page);
		if (err)
			return err;
	}
	return 0;
}

static void chunk_rkey_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	/* Never posted: RKEY_RSP is part of a reply. */
}

static int chunk_make_rkeys(struct ibtrs_srv_path *path)
{
	size_t size = path->limits.queue_depth * sizeof(struct ibtrs_wire_rkey_rsp);

	if (!path->new_rkey)
		return 0;
	return ibtrs_iu_init(&path->rkeys, path->dev->ib, size, DMA_TO_DEVICE, chunk_rkey_sent);
}

int ibtrs_srv_chunk_map(struct ibtrs_srv_path *path, const char **why)
{
	u32 nr = path->limits.queue_depth;
	struct scatterlist *sgl;
	int err;

	*why = "no memory for the chunks";
	err = ibtrs_fault_wait(IBTRS_FAULT_SRV_MR, ibtrs_srv_session_label(path->session),
			       path->name);
	if (err)
		return err;
	err = -ENOMEM;
	path->mrs.dma = kvcalloc(nr, sizeof(*path->mrs.dma), GFP_KERNEL);
	sgl = kvmalloc_array(nr, sizeof(*sgl), GFP_KERNEL);
	if (path->mrs.dma && sgl)
		err = chunk_map_dma(path, sgl);
	err = err ?: chunk_make_rkeys(path);
	err = err ?: chunk_make_mrs(path, sgl, why);
	kvfree(sgl);
	return err;
}

void ibtrs_srv_chunk_unmap(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_mrs *m = &path->mrs;

	ibtrs_iu_free(&path->rkeys);
	while (m->nr)
		ib_dereg_mr(m->mr[--m->nr]);
	kvfree(m->mr);
	m->mr = NULL;
	while (m->mapped--)
		ib_dma_unmap_single(path->dev->ib, m->dma[m->mapped], path->chunks->size,
				    DMA_BIDIRECTIONAL);
	m->mapped = 0;
	kvfree(m->dma);
	m->dma = NULL;
}

static void chunk_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ibtrs_srv_path *path = container_of(wc->wr_cqe, struct ibtrs_srv_path, reg_cqe);

	if (wc->status != IB_WC_SUCCESS)
		path->reg_err = -EIO;
	if (!--path->reg_left)
		complete(&path->reg_done);
}

static int chunk_register_batch(struct ibtrs_srv_path *path, struct ib_reg_wr *wrs, u32 first,
				u32 n)
{
	struct ibtrs_conn *c = &path->conns[0].c;
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		ibtrs_srv_chunk_reg_wr(&wrs[i], path->mrs.mr[first + i], &path->reg_cqe);
		wrs[i].wr.next = i + 1 < n ? &wrs[i + 1].wr : NULL;
		wrs[i].wr.send_flags = IB_SEND_SIGNALED;
	}
	path->reg_left = n;
	err = ibtrs_conn_send(c, &wrs[0].wr, &wrs[n - 1].wr, n, true);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&path->reg_done, CHUNK_REG_TIMEOUT))
		return -ETIMEDOUT;
	if (path->reg_err)
		return path->reg_err;
	ibtrs_conn_credit(c, n);
	return 0;
}

int ibtrs_srv_chunk_register(struct ibtrs_srv_path *path, const char **why)
{
	struct ib_reg_wr *wrs;
	u32 i;
	int err = 0;

	*why = "out of memory";
	wrs = kcalloc(CHUNK_REG_BATCH, sizeof(*wrs), GFP_KERNEL);
	if (!wrs)
		return -ENOMEM;
	*why = "the RDMA device does not register the chunks";
	init_completion(&path->reg_done);
	path->reg_cqe.done = chunk_reg_done;
	path->reg_err = 0;
	for (i = 0; i < path->mrs.nr && !err; i += CHUNK_REG_BATCH)
		err = chunk_register_batch(path, wrs, i,
					   min_t(u32, CHUNK_REG_BATCH, path->mrs.nr - i));
	kfree(wrs);
	return err;
}

int ibtrs_srv_chunk_describe(const struct ibtrs_srv_path *path, struct ibtrs_wire_info_rsp *rsp)
{
	u32 i, nr = path->mrs.nr, per_mr = path->limits.queue_depth / nr;
	struct ibtrs_desc *desc;

	desc = kvcalloc(nr, sizeof(*desc), GFP_KERNEL);
	if (!desc)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		desc[i].addr = path->mrs.mr[i]->iova;
		desc[i].rkey = path->mrs.mr[i]->rkey;
		desc[i].len = per_mr * path->chunks->size;
	}
	ibtrs_msg_info_rsp_encode(rsp, desc, nr);
	kvfree(desc);
	return 0;
}
