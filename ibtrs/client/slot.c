// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/slab.h>
#include "ibtrs/client/mr.h"
#include "ibtrs/client/slot.h"

/*
 * Decision 4. A message keeps its slot until it is answered, and the OPEN of a disk that recovers
 * from an error may take long: so many disks of a session may do that before its other messages
 * wait for them.
 */
#define SLOT_OWN_MIN	4
#define SLOT_OWN_MAX	32
#define SLOT_OWN_SHARE	16	/* of the depth; below so many it is one slot */

static void *slots_alloc_pages(const struct ibtrs_clt_slots *s, unsigned int order)
{
	struct page *page = alloc_pages_node(s->node, GFP_KERNEL | __GFP_ZERO | __GFP_COMP, order);

	return page ? page_address(page) : NULL;
}

static void *slots_alloc_array(const struct ibtrs_clt_slots *s, size_t n, size_t size)
{
	return kvzalloc_node(array_size(n, size), GFP_KERNEL, s->node);
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
		req->hdr = ibtrs_clt_slot_hdr(s, i);
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
	s->reqs = NULL;
	s->hdrs = NULL;
	s->sges = NULL;
	s->depth = 0;
}

int ibtrs_clt_slots_init(struct ibtrs_clt_slots *s, u32 depth, u32 max_segments, int node)
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
	if (s->reqs && s->hdrs && s->sges)
		err = slots_alloc_buffers(s, depth);
	if (err) {
		slots_free(s, depth);
		return err;
	}
	/* A depth of 1 leaves nothing for a user: the caller refuses it. */
	s->nr_user = depth - own;
	s->own_free = GENMASK(own - 1, 0);
	/*
	 * Another path, whose attempt has failed, may just be walking: it sees no slot, or all of
	 * them.
	 */
	smp_store_release(&s->depth, depth);
	return 0;
}

void ibtrs_clt_slots_free(struct ibtrs_clt_slots *s)
{
	slots_free(s, s->depth);
}

static int slot_take(struct ibtrs_clt_slots *s, unsigned int leave)
{
	unsigned long flags;
	int bit, slot = -EAGAIN;

	spin_lock_irqsave(&s->lock, flags);
	if (hweight_long(s->own_free) > leave) {
		bit = __ffs(s->own_free);
		s->own_free &= ~BIT(bit);
		slot = s->nr_user + bit;
	}
	spin_unlock_irqrestore(&s->lock, flags);
	return slot;
}

int ibtrs_clt_slot_get(struct ibtrs_clt_slots *s)
{
	return slot_take(s, 0);
}

int ibtrs_clt_slot_spare(struct ibtrs_clt_slots *s)
{
	return slot_take(s, 1);
}

int ibtrs_clt_slot_half(struct ibtrs_clt_slots *s)
{
	return slot_take(s, DIV_ROUND_UP(s->depth - s->nr_user, 2));
}

void ibtrs_clt_slot_put(struct ibtrs_clt_slots *s, u32 slot)
{
	unsigned long flags;

	spin_lock_irqsave(&s->lock, flags);
	s->own_free |= BIT(slot - s->nr_user);
	spin_unlock_irqrestore(&s->lock, flags);
	wake_up(&s->wait);
}
