// SPDX-License-Identifier: GPL-2.0-only
#include "ibtrs/logic/patience.h"

#define PATIENCE_LONGEST_MS	(IBTRS_PATIENCE_MS << IBTRS_PATIENCE_DOUBLE)

static u32 patience_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static u32 patience_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

u32 ibtrs_patience_ms(const struct ibtrs_patience *p)
{
	return IBTRS_PATIENCE_MS << patience_min(p->attempt + !p->first_done,
						 IBTRS_PATIENCE_DOUBLE);
}

/*
 * An attempt that began while the link was down must end soon, so that the next attempt can use the
 * link when it is back. Until the neighbour table notices that the link is down, the link looks
 * like a server that has become slow. So some attempts wait long enough for a slow server.
 */
u32 ibtrs_patience_first_ms(const struct ibtrs_patience *p)
{
	bool slow = p->attempt % IBTRS_PATIENCE_SLOW == 0;
	u32 usual;

	if (!p->connect_ms)
		return ibtrs_patience_ms(p);
	usual = patience_min(p->connect_ms, PATIENCE_LONGEST_MS / 4) * 4;
	usual = patience_max(usual, IBTRS_PATIENCE_MS / 2);
	if (p->others)
		return slow ? usual : patience_min(usual, IBTRS_PATIENCE_DOUBT_MS);
	if (p->attempt < IBTRS_PATIENCE_DARK || !slow)
		return usual;
	if (p->ours && p->attempt % IBTRS_PATIENCE_OURS)
		return patience_max(usual, IBTRS_PATIENCE_DOUBT_MS);
	return PATIENCE_LONGEST_MS;
}
