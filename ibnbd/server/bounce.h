/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef IBNBD_SERVER_BOUNCE_H
#define IBNBD_SERVER_BOUNCE_H

#include <linux/sizes.h>
#include <linux/types.h>

/* The largest private buffer; a larger I/O passes through several, one after the other. */
/* u32, as the lengths that it limits: min() requires equal types until kernel 6.6 */
#define IBNBD_SRV_BOUNCE_MAX	((u32)SZ_128K)

/* A private buffer: physically contiguous, page aligned, content undefined. */
struct ibnbd_srv_bounce {
	void *buf;		/* NULL = none */
	u8 class;
};

int ibnbd_srv_bounce_init(void);
void ibnbd_srv_bounce_exit(void);
bool ibnbd_srv_bounce_get(struct ibnbd_srv_bounce *b, u32 len, gfp_t gfp);
void ibnbd_srv_bounce_put(struct ibnbd_srv_bounce *b);

#endif
