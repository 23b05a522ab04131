// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots: their memory, and which one a request gets (decision 4).
 *
 * A home is one or a few words of free bits in cache lines of their own. Each CPU searches other
 * homes in an order of its own: it reaches all slots, it tends to find the same ones again, and
 * their own CPUs need those slots last.
 *
 * Called by: the user (take, give), for each request; link.c (init); call.c and trial.c, which take
 * ibtrs' own slots. These slots are few and are taken under a lock; no request in the user's slots
 * waits for one of them.
 *
 * Locking: none for the user's slots. Taking a slot clears its bit, giving it back sets the bit
 * again. Each is one atomic instruction, which also orders what the old and the new owner do with
 * the slot.
 *
 * Failure: while fewer than nr_user slots are taken, at least one is free, but a search can miss
 * it: a slot may return to a home that the search has just left, while another search takes the
 * slot that this search would have found next. So the search visits all homes several times. Then
 * it returns -EAGAIN, and the caller has to try again later.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "ibtrs/client/mr.h"
#include "ibtrs/client/session.h"

/*
 * Decision 4. A message keeps its slot until it is answered, and the OPEN of a disk that recovers
 * from an error may take long. This number of disks of a session may wait in OPEN at the same time
 * before other messages of the session have to wait for a slot.
 */
#define SLOT_OWN_MIN	4
#define SLOT_OWN_MAX	32
#define SLOT_OWN_SHARE	16	/* one slot in so many is ibtrs' own; a smaller depth leaves one */

static void *slots_alloc_pages(const struct ibtrs_clt_slots *s, unsigned int order)
{
	struct page *page = alloc_pages_node(s->node, GFP_KERNEL | __GFP_ZERO | __GFP_COMP, order);

	return page ? page_address(page) : NULL;
}

#define SLOT_ROUNDS	8	/* searches of all homes before -EAGAIN */

static void *slots_alloc_array(const struct ibtrs_clt_slots *s, size_t n, size_t size)
{
	return kvzalloc_node(array_size(n, size), GFP_KERNEL, s->node);
}

static int slots_alloc_homes(struct ibtrs_clt_slots *s, u32 nr_user, u32 cpus)
{
	struct ibtrs_homes *h = &s->homes;
	u32 i;

	ibtrs_homes_plan(h, nr_user, cpus);
	s->home_words = round_up(BITS_TO_LONGS(h->per), SMP_CACHE_BYTES / sizeof(long));
	s->free = slots_alloc_array(s, h->nr, s->home_words * sizeof(long));
	if (!s->free)
		return -ENOMEM;
	for (i = 0; i < nr_user; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		req->free = s->free + i / h->per * s->home_words;
		req->bit = i % h->per;
		__set_bit(req->bit, req->free);
	}
	return 0;
}

static int slots_alloc_buffers(struct ibtrs_clt_slots *s, u32 depth)
{
	u32 i;

	for (i = 0; i < s->nr_hdrs; i++) {
		s->hdrs[i] = slots_alloc_pages(s, 0);
		if (!s->hdrs[i])
			return -ENOMEM;
	}
	for (i = 0; i < depth; i++) {
		struct ibtrs_clt_req *req = &s->reqs[i];

		req->slot = i;
		req->hdr = s->hdrs[i / IBTRS_CLT_HDRS_PER_PAGE] +
			   i % IBTRS_CLT_HDRS_PER_PAGE * IBTRS_CLT_HDR_SIZE;
		req->sge = s->sges + (size_t)i * s->sges_per_slot;
		req->bounce = slots_alloc_pages(s, IBTRS_CLT_BOUNCE_ORDER);
		if (!req->bounce)
			return -ENOMEM;
	}
	return 0;
}

static void slots_free(struct ibtrs_clt_slots *s, u32 depth)
{
	u32 i;

	for (i = 0; s->reqs && i < depth; i++)
		free_pages((unsigned long)s->reqs[i].bounce, IBTRS_CLT_BOUNCE_ORDER);
	for (i = 0; s->hdrs && i < s->nr_hdrs; i++)
		free_page((unsigned long)s->hdrs[i]);
	kvfree(s->reqs);
	kvfree(s->hdrs);
	kvfree(s->sges);
	kvfree(s->free);
	s->free = NULL;
	s->reqs = NULL;
	s->hdrs = NULL;
	s->sges = NULL;
	s->depth = 0;
}

int ibtrs_clt_slots_init(struct ibtrs_clt_slots *s, u32 depth, u32 max_segments, int node, u32 cpus)
{
	u32 own = depth < SLOT_OWN_SHARE ?
			  1 :
			  clamp_t(u32, depth / SLOT_OWN_SHARE, SLOT_OWN_MIN, SLOT_OWN_MAX);
	int err = -ENOMEM;

	s->nr_hdrs = DIV_ROUND_UP(depth, IBTRS_CLT_HDRS_PER_PAGE);
	s->sges_per_slot = max_segments + 1;
	s->node = node;
	s->reqs = slots_alloc_array(s, depth, sizeof(*s->reqs));
	s->hdrs = slots_alloc_array(s, s->nr_hdrs, sizeof(*s->hdrs));
	s->sges = slots_alloc_array(s, (size_t)depth * s->sges_per_slot, sizeof(*s->sges));
	/* A depth of 1 leaves nothing for a user: the caller refuses it. */
	if (s->reqs && s->hdrs && s->sges)
		err = slots_alloc_homes(s, depth - own, cpus) ?: slots_alloc_buffers(s, depth);
	if (err) {
		slots_free(s, depth);
		return err;
	}
	s->nr_user = depth - own;
	s->own_free = GENMASK(own - 1, 0);
	/*
	 * Another path, whose attempt has failed, may be in ibtrs_clt_req_walk() at the same time:
	 * it sees either no slot, or all of them.
	 */
	smp_store_release(&s->depth, depth);
	return 0;
}

void ibtrs_clt_slots_free(struct ibtrs_clt_slots *s)
{
	slots_free(s, s->depth);
}

/* ---- the user's --------------------------------------------------------- */

/* Take the lowest free slot of @home, at bit @from or above. */
static int slot_take_low(struct ibtrs_clt_slots *s, u32 home, u32 from)
{
	unsigned long *free = s->free + home * s->home_words;
	unsigned long mask = ~0ul << from % BITS_PER_LONG, left;
	u32 per = s->homes.per, i, bit;

	for (i = from / BITS_PER_LONG; i < BITS_TO_LONGS(per); i++, mask = ~0ul) {
		while ((left = READ_ONCE(free[i]) & mask)) {
			bit = __ffs(left);
			if (likely(test_and_clear_bit(bit, &free[i])))
				return home * per + i * BITS_PER_LONG + bit;
		}
	}
	return -EAGAIN;
}

static int slot_take_high(struct ibtrs_clt_slots *s, u32 home)
{
	unsigned long *free = s->free + home * s->home_words, left;
	u32 per = s->homes.per, i, bit;

	for (i = BITS_TO_LONGS(per); i--;) {
		while ((left = READ_ONCE(free[i]))) {
			bit = __fls(left);
			if (likely(test_and_clear_bit(bit, &free[i])))
				return home * per + i * BITS_PER_LONG + bit;
		}
	}
	return -EAGAIN;
}

static noinline int slot_find(struct ibtrs_clt_slots *s, u32 cpu)
{
	u32 home = ibtrs_homes_of(&s->homes, cpu), first = ibtrs_homes_first(&s->homes, cpu);
	u32 round, i;
	int slot;

	slot = slot_take_low(s, home, first);
	if (slot < 0 && first)
		slot = slot_take_low(s, home, 0);
	for (round = 0; round < SLOT_ROUNDS && slot < 0; round++) {
		for (i = 0; i < s->homes.nr && slot < 0; i++) {
			home = ibtrs_homes_next(&s->homes, home);
			slot = slot_take_high(s, home);
		}
	}
	return slot;
}

int ibtrs_clt_slot_take(struct ibtrs_clt *clt)
{
	struct ibtrs_clt_slots *s = &clt->slots;
	u32 cpu = ibtrs_clt_cpu(clt, raw_smp_processor_id()), bit;
	unsigned long *free, left;

	/* The usual case: the home has the CPU's own number, and its first word has a free slot. */
	if (likely(cpu < s->homes.nr)) {
		free = s->free + cpu * s->home_words;
		left = READ_ONCE(*free);
		if (likely(left)) {
			bit = __ffs(left);
			if (likely(test_and_clear_bit(bit, free)))
				return cpu * s->homes.per + bit;
		}
	}
	return slot_find(s, cpu);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_slot_take);

void ibtrs_clt_slot_give(struct ibtrs_clt *clt, u32 slot)
{
	struct ibtrs_clt_req *req = &clt->slots.reqs[slot];

	smp_mb__before_atomic();	/* pairs with the barrier in test_and_clear_bit() */
	set_bit(req->bit, req->free);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_slot_give);

/* ---- ibtrs' own --------------------------------------------------------- */

int ibtrs_clt_slot_get(struct ibtrs_clt_slots *s, unsigned int leave)
{
	int bit;

	guard(spinlock_irqsave)(&s->lock);
	if (hweight_long(s->own_free) <= leave)
		return -EAGAIN;
	bit = __ffs(s->own_free);
	s->own_free &= ~BIT(bit);
	return s->nr_user + bit;
}

void ibtrs_clt_slot_put(struct ibtrs_clt_slots *s, u32 slot)
{
	scoped_guard(spinlock_irqsave, &s->lock)
		s->own_free |= BIT(slot - s->nr_user);
	wake_up(&s->wait);
}
