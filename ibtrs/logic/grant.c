// SPDX-License-Identifier: GPL-2.0-only
/* What a client takes of what a server grants: memory is spent here for each slot. Pure. */
#include "ibtrs/logic/grant.h"

int ibtrs_grant_check(const struct ibtrs_limits *l, u32 nr_conns, u32 page_size, const char **why)
{
	*why = "the server grants a queue depth of 1: raise its sess_queue_depth";
	if (l->queue_depth < 2)
		return -EPROTO;
	*why = "the server grants more than 8192 slots, for each of which memory would be spent here: lower its sess_queue_depth";
	if (l->queue_depth > IBTRS_GRANT_DEPTH)
		return -EPROTO;
	*why = "the server grants more slots than are affordable on so many connections: lower its sess_queue_depth, or max_conns of ibtrs-client here";
	if ((u64)l->queue_depth * nr_conns > IBTRS_GRANT_QUEUED)
		return -EPROTO;
	*why = "the server takes no I/O of a page of this machine: raise its max_chunk_size";
	if (l->max_io_size < page_size)
		return -EPROTO;
	*why = NULL;
	return 0;
}
