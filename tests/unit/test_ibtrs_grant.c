// SPDX-License-Identifier: GPL-2.0-only
/* What a client takes of what a server grants. */
#include "ibtrs/logic/chunkmap.h"
#include "unit.h"

UNIT_TEST(grant_check)
{
	static const struct {
		u32 depth, conns, io, page;
		const char *why; /* NULL: taken */
	} rows[] = {
		{ 512, 3, 131072, 4096, NULL },
		{ 2, 2, 4096, 4096, NULL },
		{ 1, 2, 131072, 4096, "a queue depth of 1" },
		{ 0, 2, 131072, 4096, "a queue depth of 1" },
		{ 8192, 32, 131072, 4096, NULL },
		{ 8193, 2, 131072, 4096, "more than 8192 slots" },
		{ 65535, 65535, 131072, 4096, "more than 8192 slots" },
		{ 8192, 33, 4096, 4096, "on so many connections" },
		{ 512, 512, 131072, 4096, NULL },	/* the default depth on 511 CPUs */
		{ 512, 513, 131072, 4096, "on so many connections" },
		{ 8192, 0xffffffff, 4096, 4096, "on so many connections" },
		{ 512, 3, 4096, 65536, "a page of this machine" },
		{ 512, 3, 65535, 65536, "a page of this machine" },
		{ 512, 3, 65536, 65536, NULL },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibtrs_limits l = { .queue_depth = rows[i].depth,
					  .max_io_size = rows[i].io };
		const char *why = NULL;

		UNIT_ROW("depth %u, %u connections, I/O %u, page %u", rows[i].depth, rows[i].conns,
			 rows[i].io, rows[i].page);
		CHECK_EQ(ibtrs_grant_check(&l, rows[i].conns, rows[i].page, &why),
			 rows[i].why ? -EPROTO : 0);
		CHECK(rows[i].why ? !!strstr(why, rows[i].why) : !why);
	}
}
