// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
#include "ibnbd/logic/unflushed.h"

bool ibnbd_unflushed_lost_between(const struct ibnbd_unflushed_epoch *old,
				  const struct ibnbd_unflushed_epoch *new)
{
	if (old->told && new->told)
		return old->epoch != new->epoch;
	/* The server was upgraded or replaced: the two answers cannot be compared. */
	if (old->told != new->told)
		return true;
	return old->link != new->link;
}

bool ibnbd_unflushed_counts(bool ignore, bool asked, bool told, bool is_volatile, bool flushes)
{
	if (ignore)
		return false;
	return told ? is_volatile : asked && flushes;
}
