// SPDX-License-Identifier: GPL-2.0-only
/*
 * The chunk table of INFO_RSP. Bytes 0..1 depth, 2..5 chunk size, 6..7 count of descriptors, then
 * 16 bytes each (missing ones are derived, so that small inputs reach the accepting end).
 * Properties: an accepted table maps every slot, inside its descriptor, each chunk once; the map is
 * written nowhere beyond depth entries; the server's own choice of MRs is accepted.
 */
#include <stdlib.h>
#include "ibtrs/logic/chunkmap.h"

#define REQUIRE(cond)	do { if (!(cond)) __builtin_trap(); } while (0)

static void check_map(const struct ibtrs_wire_desc *w, u32 sg_cnt, const struct ibtrs_limits *l,
		      const struct ibtrs_chunk *map)
{
	u32 slot = 0;

	REQUIRE(sg_cnt && l->queue_depth % sg_cnt == 0);
	for (u32 i = 0; i < sg_cnt; i++) {
		struct ibtrs_desc d;

		ibtrs_msg_desc_decode(&w[i], &d);
		REQUIRE(d.len && d.len % l->chunk_size == 0 && d.addr + d.len > d.addr);
		for (u64 at = 0; at < d.len; at += l->chunk_size, slot++) {
			REQUIRE(slot < l->queue_depth);
			REQUIRE(map[slot].addr == d.addr + at && map[slot].rkey == d.rkey);
		}
	}
	REQUIRE(slot == l->queue_depth);
	REQUIRE(ibtrs_bits(l->queue_depth) + ibtrs_bits(l->chunk_size) <= 28);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct ibtrs_limits l = { 0 };
	struct ibtrs_wire_desc *w;
	struct ibtrs_chunk *map;
	const char *why = NULL;
	u32 sg_cnt, given, per, present;
	int err;

	if (size < 8)
		return 0;
	l.queue_depth = (u32)(data[0] | data[1] << 8);
	memcpy(&l.chunk_size, data + 2, 4);
	sg_cnt = (u32)(data[6] | data[7] << 8);
	given = (u32)((size - 8) / sizeof(*w));
	/* a count that cannot be right is refused before the first descriptor is looked at */
	present = sg_cnt && l.queue_depth % sg_cnt == 0 && sg_cnt <= l.queue_depth ? sg_cnt : 0;
	w = calloc(present, sizeof(*w));
	per = sg_cnt ? l.queue_depth / sg_cnt : 0;
	for (u32 i = 0; i < present; i++) {
		if (i < given) {
			memcpy(&w[i], data + 8 + i * sizeof(*w), sizeof(*w));
		} else {
			w[i].addr = cpu_to_le64((u64)i << 32);
			w[i].rkey = cpu_to_le32(i);
			w[i].len = cpu_to_le32(per * l.chunk_size);
		}
	}
	map = malloc(l.queue_depth * sizeof(*map));
	err = ibtrs_chunkmap_build(w, sg_cnt, &l, map, &why);
	REQUIRE(err == 0 || err == -EPROTO);
	REQUIRE(!err == !why);
	if (!err)
		check_map(w, sg_cnt, &l, map);
	free(w);
	free(map);

	/* the server's side: at most sg_cnt chunks in an MR */
	u32 n = ibtrs_chunkmap_mr_count(l.queue_depth, sg_cnt);

	REQUIRE(!n == (!l.queue_depth || !sg_cnt));
	REQUIRE(!n || (l.queue_depth % n == 0 && l.queue_depth / n <= sg_cnt));
	return 0;
}
