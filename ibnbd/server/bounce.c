// SPDX-License-Identifier: GPL-2.0-only
/*
 * Private pages: buffers that the client cannot write to while a device computes checksums over
 * them (docs/design.md decision 9).
 *
 * Three sizes, each a mempool whose elements are one contiguous buffer. So an I/O gets its memory
 * in one piece: no I/O waits for memory while it holds some, and the reserve guarantees progress. A
 * caller in a completion context asks with GFP_NOWAIT. If that fails, it continues in a work item
 * and asks with GFP_NOIO, which waits and cannot fail.
 */
#include <linux/gfp.h>
#include <linux/mempool.h>
#include <linux/mm.h>
#include "ibnbd/server/bounce.h"

static const struct {
	u32 size;
	int reserve;
} bounce_class[] = {
	{ PAGE_SIZE,			64 },
	{ SZ_16K,			16 },
	{ IBNBD_SRV_BOUNCE_MAX,		8 },
};

static mempool_t *bounce_pool[ARRAY_SIZE(bounce_class)];

/* Compound, since one bio_vec spans the whole buffer. */
static void *bounce_alloc_pages(gfp_t gfp, void *order)
{
	struct page *page = alloc_pages(gfp | __GFP_COMP, (unsigned long)order);

	return page ? page_address(page) : NULL;
}

static void bounce_free_pages(void *buf, void *order)
{
	free_pages((unsigned long)buf, (unsigned long)order);
}

/* Undo ibnbd_srv_bounce_init(); no buffer is in use. */
void ibnbd_srv_bounce_exit(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bounce_pool); i++) {
		mempool_destroy(bounce_pool[i]);
		bounce_pool[i] = NULL;
	}
}

/* Fill the reserves. 0 or -ENOMEM. */
int ibnbd_srv_bounce_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bounce_pool); i++) {
		unsigned long order = get_order(bounce_class[i].size);

		bounce_pool[i] = mempool_create(bounce_class[i].reserve, bounce_alloc_pages,
						bounce_free_pages, (void *)order);
		if (!bounce_pool[i]) {
			ibnbd_srv_bounce_exit();
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * ibnbd_srv_bounce_get() - a private buffer
 * @b: the buffer, when true is returned
 * @len: bytes, at most IBNBD_SRV_BOUNCE_MAX
 * @gfp: GFP_NOWAIT, or GFP_NOIO in a context that may sleep: then it never fails
 */
bool ibnbd_srv_bounce_get(struct ibnbd_srv_bounce *b, u32 len, gfp_t gfp)
{
	b->class = 0;
	while (bounce_class[b->class].size < len)
		b->class++;
	b->buf = mempool_alloc(bounce_pool[b->class], gfp);
	return b->buf;
}

/* Free the buffer, if there is one. Any context. */
void ibnbd_srv_bounce_put(struct ibnbd_srv_bounce *b)
{
	if (b->buf)
		mempool_free(b->buf, bounce_pool[b->class]);
	b->buf = NULL;
}
