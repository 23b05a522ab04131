// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does anybody wait for the link? (architecture decision 11: tried once a second then, else every 8 s)
 *
 * Called by: path.c (before each wait), the user and whoever sees a sign of life (want). Parked requests are seen here; what the user holds, or
 * refuses, he tells. Nobody takes a wish back: one that has become void costs an attempt per second.
 */
#include <linux/ktime.h>
#include "ibtrs/client/session.h"

bool ibtrs_clt_wanted(struct ibtrs_clt *clt)
{
	return atomic_read(&clt->nr_parked) || !READ_ONCE(clt->opened) || (unsigned long)ktime_get_seconds() < READ_ONCE(clt->want.until);
}

static void want_work(struct work_struct *work)
{
	struct ibtrs_clt *clt = container_of(work, struct ibtrs_clt, want.work);

	mutex_lock(&clt->lock);
	ibtrs_clt_session_retry(clt, NULL);
	mutex_unlock(&clt->lock);
}

void ibtrs_clt_want_init(struct ibtrs_clt *clt)
{
	INIT_WORK(&clt->want.work, want_work);
}

/*
 * ibtrs_clt_want() - see <ibtrs/clt.h>
 */
void ibtrs_clt_want(struct ibtrs_clt *clt, unsigned int seconds)
{
	unsigned long now = ktime_get_seconds(), end = now + seconds, old, seen = READ_ONCE(clt->want.until);

	do {
		old = seen;
		if (old >= end)
			return;
		seen = cmpxchg(&clt->want.until, old, end);
	} while (seen != old);
	/* Until now the timers ran at the pace of a session that nobody uses. */
	if (old <= now)
		queue_work(clt->wq, &clt->want.work);
}
EXPORT_SYMBOL_GPL(ibtrs_clt_want);
