// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chunks: the memory that clients write requests to. chunk_keys.c makes DMA addresses and keys for
 * it.
 *
 * Called by: info.c (get) and path_run.c (put, trim), whose works never overlap for one path;
 * quota.c (the account of memory), session.c, main.c. Nothing is allocated before INFO_REQ.
 *
 * Each chunk is physically contiguous and zeroed when it is allocated, so that no client ever reads
 * what another one left (E-17, E-47). When a path ends, its chunks lie in a shelf for a short
 * while. Only the same path of the same session gets them from there, from the same address and
 * with the same key or none: its reconnect needs no new contiguous memory. All bytes, in use or in
 * the shelf, are charged against one limit; at most a quarter of the limit may lie in the shelf.
 * When the limit is hit, the oldest chunks in the shelf are freed for a known client, never for a
 * stranger: first the client's own; then those of others, but only if the client has no more than
 * its share. A session that ends properly leaves no chunks in the shelf. A lingering path frees the
 * chunks that no op uses. shelf_lock protects the shelf.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "ibtrs/server/debug.h"
#include "ibtrs/server/op.h"

#define CHUNK_RUN		SZ_4M
#define CHUNK_SHELF_TIME	(20 * HZ)

static atomic64_t chunk_charged;
static DEFINE_SPINLOCK(shelf_lock);
static LIST_HEAD(shelf);
static u64 shelf_bytes;

static void shelf_make_room(u64 bytes, const struct ibtrs_srv_path *path);
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

static bool chunk_charge(u64 bytes, const struct ibtrs_srv_path *path)
{
	if (chunk_try_charge(bytes))
		return true;
	if (!path->known)
		return false;
	shelf_make_room(bytes, path);
	return chunk_try_charge(bytes);
}

static void chunk_uncharge(u64 bytes)
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

static u64 chunks_bytes(const struct ibtrs_srv_chunks *c)
{
	return (u64)(c->nr - c->trimmed) * c->size + c->queues;
}

static void chunks_release(struct ibtrs_srv_chunks *c)
{
	u64 bytes = chunks_bytes(c);

	chunks_free(c);
	chunk_uncharge(bytes);
}

/*
 * The page allocator gives powers of two, and a chunk is a little larger than one. With one block
 * per chunk, almost half of the memory would be found and zeroed only to be freed again. So a block
 * is cut into as many chunks as it holds, 31 of 132 KiB from 4 MiB. Each chunk has pages of its own
 * and is freed alone.
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

/*
 * May @c be freed to make room for @path? @own: yes if @c is of the client of @path; else: yes if
 * @c is of another client and @path is modest.
 */
static bool shelf_is_free_for(const struct ibtrs_srv_chunks *c, const struct ibtrs_srv_path *path,
			      bool own)
{
	bool mine = ibtrs_addr_equal(&c->peer, &path->addr.src) && !strcmp(c->key, path->proof.key);

	return own ? mine : !mine && path->modest;
}

/* Frees no more than is missing, and nothing if all that may be freed is not enough. */
static void shelf_make_room(u64 bytes, const struct ibtrs_srv_path *path)
{
	s64 missing, free = 0;
	struct ibtrs_srv_chunks *c, *next;
	LIST_HEAD(gone);
	int own;

	spin_lock(&shelf_lock);
	missing = atomic64_read(&chunk_charged) + bytes - ibtrs_srv_chunk_limit();
	list_for_each_entry(c, &shelf, entry)
		if (shelf_is_free_for(c, path, true) || shelf_is_free_for(c, path, false))
			free += chunks_bytes(c);
	for (own = 1; own >= 0 && free >= missing; own--) {
		list_for_each_entry_safe(c, next, &shelf, entry) {
			if (missing <= 0)
				break;
			if (!shelf_is_free_for(c, path, own))
				continue;
			shelf_remove(c);
			list_add_tail(&c->entry, &gone);
			missing -= chunks_bytes(c);
		}
	}
	spin_unlock(&shelf_lock);
	list_for_each_entry_safe(c, next, &gone, entry)
		chunks_release(c);
}

static struct ibtrs_srv_chunks *shelf_find(const struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c;

	lockdep_assert_held(&shelf_lock);
	list_for_each_entry(c, &shelf, entry)
		if (chunks_belong(c, path))
			return c;
	return NULL;
}

static struct ibtrs_srv_chunks *shelf_take(const struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c;

	guard(spinlock)(&shelf_lock);
	c = shelf_find(path);
	if (c)
		shelf_remove(c);
	return c;
}

static u64 shelf_take_queues(const struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c;
	u64 bytes;

	guard(spinlock)(&shelf_lock);
	c = shelf_find(path);
	bytes = c ? c->queues : 0;
	if (c)
		c->queues = 0;
	shelf_bytes -= bytes;
	return bytes;
}

bool ibtrs_srv_chunk_charge_queues(const struct ibtrs_srv_path *path)
{
	u64 had = shelf_take_queues(path);

	if (had < path->queue_bytes && !chunk_charge(path->queue_bytes - had, path)) {
		chunk_uncharge(had);
		return false;
	}
	if (had > path->queue_bytes)
		chunk_uncharge(had - path->queue_bytes);
	return true;
}

void ibtrs_srv_chunk_reserve_queues(const struct ibtrs_srv_path *path)
{
	if (path->chunks && !path->chunks->trimmed && !path->chunks->borrowers)
		path->chunks->queues = path->charged;
	else
		chunk_uncharge(path->charged);
}

/* The oldest one, if its time is over or the shelf holds more than @max. */
static struct ibtrs_srv_chunks *shelf_take_oldest(u64 max)
{
	struct ibtrs_srv_chunks *c;

	guard(spinlock)(&shelf_lock);
	c = list_first_entry_or_null(&shelf, struct ibtrs_srv_chunks, entry);
	if (!c || (shelf_bytes <= max && time_before(jiffies, c->expires)))
		return NULL;
	shelf_remove(c);
	return c;
}

static void shelf_tidy(u64 max)
{
	struct ibtrs_srv_chunks *c;

	while ((c = shelf_take_oldest(max)))
		chunks_release(c);
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
	guard(spinlock)(&shelf_lock);
	if (!list_empty(&shelf))
		queue_delayed_work(ibtrs_srv.quick_wq, &shelf_work, HZ);
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
		chunks_release(c);
}

void ibtrs_srv_chunk_trim(struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_chunks *c = path->chunks;
	u32 slot, n = 0;

	if (!c || !path->ops || c->borrowers)
		return;
	for (slot = 0; slot < c->nr; slot++) {
		/* pairs with ibtrs_srv_op_release(): the user does not touch the chunk any more */
		if (!c->mem[slot] || smp_load_acquire(&ibtrs_srv_op_at(path, slot)->busy))
			continue;
		free_pages_exact(c->mem[slot], c->size);
		c->mem[slot] = NULL;
		n++;
	}
	c->trimmed += n;
	/* Its ops stay, and are small beside the chunks, but not beside what is left of them. */
	WRITE_ONCE(path->chunk_bytes,
		   (u64)(c->nr - c->trimmed) * c->size + (u64)c->nr * path->op_stride);
	chunk_uncharge((u64)n * c->size + c->queues);
	c->queues = 0;		/* it never goes to the shelf */
}

void ibtrs_srv_chunk_stop(void)
{
	cancel_delayed_work_sync(&shelf_work);
	shelf_tidy(0);
}

/* Only for a test (debug.h): the path uses the chunks of another path of the session. */
static struct ibtrs_srv_chunks *chunks_borrow(const struct ibtrs_srv_path *path)
{
	struct ibtrs_srv_path *other;

	guard(rcu)();
	guard(spinlock)(&shelf_lock);
	list_for_each_entry_rcu(other, &path->session->paths, entry) {
		if (other != path && other->chunks) {
			other->chunks->borrowers++;
			return other->chunks;
		}
	}
	return NULL;
}

/* True: another path still uses the chunks. */
static bool chunks_let_go(struct ibtrs_srv_path *path)
{
	bool used;

	guard(spinlock)(&shelf_lock);
	used = path->chunks->borrowers;
	if (used)
		path->chunks->borrowers--;
	path->chunks = NULL;
	WRITE_ONCE(path->chunk_bytes, 0);
	return used;
}

int ibtrs_srv_chunk_get(struct ibtrs_srv_path *path, const char **why)
{
	u32 nr = path->limits.queue_depth, size = path->limits.chunk_size;
	struct ibtrs_srv_chunks *c;

	if (ibtrs_srv_shared_chunks())
		path->chunks = chunks_borrow(path);
	path->chunks = path->chunks ?: shelf_take(path);
	if (path->chunks) {
		chunk_uncharge(path->chunks->queues);	/* 0, but in a test (debug.h) */
		path->chunks->queues = 0;
		return 0;
	}
	if (!chunk_charge((u64)nr * size, path))
		return refuse(why, "as much memory in use as max_memory_mb allows", -ENOMEM);
	c = chunks_alloc(path->dev, nr, size);
	if (!c) {
		chunk_uncharge((u64)nr * size);
		return refuse(why, "not enough contiguous memory for the chunks: make max_chunk_size or sess_queue_depth smaller",
			      -ENOMEM);
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
		chunks_release(c);
}
