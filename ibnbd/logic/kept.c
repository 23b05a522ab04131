// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibnbd/logic/kept.h"

void ibnbd_kept_pool_init(struct ibnbd_kept_pool *p, struct ibnbd_kept_seg *segs, u32 nr)
{
	u32 i;

	p->segs = segs;
	p->nr = nr;
	p->nr_free = nr;
	p->free = nr ? 0 : IBNBD_KEPT_NONE;
	for (i = 0; i < nr; i++)
		segs[i].next = i + 1 < nr ? i + 1 : IBNBD_KEPT_NONE;
}

void ibnbd_kept_init(struct ibnbd_kept *k)
{
	memset(k, 0, sizeof(*k));
	k->first = IBNBD_KEPT_NONE;
}

bool ibnbd_kept_grow(struct ibnbd_kept_pool *p, struct ibnbd_kept *k)
{
	struct ibnbd_kept_seg *seg;
	u32 i = p->free;

	if (i == IBNBD_KEPT_NONE)
		return false;
	seg = &p->segs[i];
	p->free = seg->next;
	p->nr_free--;
	seg->next = IBNBD_KEPT_NONE;
	seg->used = 0;
	/*
	 * The first record of the segment may be a FUA write, which needs no flush of its own: the
	 * segment is then freed with the records before it.
	 */
	seg->needs = ibnbd_kept_empty(k) ? 0 : p->segs[k->last].needs;
	if (ibnbd_kept_empty(k))
		k->first = i;
	else
		p->segs[k->last].next = i;
	k->last = i;
	return true;
}

bool ibnbd_kept_place(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, u32 data, u32 block,
		      unsigned long needs, struct ibnbd_kept_at *at)
{
	struct ibnbd_kept_seg *seg;
	u32 room;

	if (ibnbd_kept_empty(k))
		return false;
	seg = &p->segs[k->last];
	room = IBNBD_KEPT_SEG_SIZE - seg->used;
	if (room < sizeof(struct ibnbd_kept_rec) + (data ? block : 0))
		return false;
	room -= sizeof(struct ibnbd_kept_rec);
	at->seg = k->last;
	at->offset = seg->used;
	at->bytes = data < room ? data : room - room % block;
	/* Headers start at multiples of eight bytes. */
	seg->used += sizeof(struct ibnbd_kept_rec) + at->bytes;
	if (seg->used == sizeof(struct ibnbd_kept_rec) + at->bytes ||
	    ibnbd_unflushed_after(needs, seg->needs))
		seg->needs = needs;
	return true;
}

static void kept_give_first(struct ibnbd_kept_pool *p, struct ibnbd_kept *k)
{
	u32 i = k->first;

	k->first = p->segs[i].next;
	p->segs[i].next = p->free;
	p->free = i;
	p->nr_free++;
}

void ibnbd_kept_drop(struct ibnbd_kept_pool *p, struct ibnbd_kept *k)
{
	while (!ibnbd_kept_empty(k))
		kept_give_first(p, k);
}

void ibnbd_kept_overflow(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, unsigned long needs)
{
	ibnbd_kept_drop(p, k);
	if (!k->gap || ibnbd_unflushed_after(needs, k->gap_needs))
		k->gap_needs = needs;
	k->gap = true;
}

void ibnbd_kept_flushed(struct ibnbd_kept_pool *p, struct ibnbd_kept *k, unsigned long number)
{
	while (!ibnbd_kept_empty(k) && !ibnbd_unflushed_after(p->segs[k->first].needs, number))
		kept_give_first(p, k);
	if (k->gap && !ibnbd_unflushed_after(k->gap_needs, number))
		k->gap = false;
}
