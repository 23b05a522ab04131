// SPDX-License-Identifier: GPL-2.0-only
/*
 * OPEN_RSP with DURABILITY: golden bytes, what is refused, and how long an
 * answer is with each set of features (protocol 10.1).
 */
#include "unit.h"
#include "ibnbd/proto/msg.h"

static const char *why;

UNIT_TEST(open_rsp_durability_bytes)
{
	static const u8 want[32] = { 8, 7, 6, 5, 4, 3, 2, 1, 1 };
	const u64 both = IBNBD_FEAT_IDENTITY | IBNBD_FEAT_DURABILITY;
	struct ibnbd_open_rsp m = { .device_id = 7, .physical_block_size = 4096,
				    .logical_block_size = 512 }, back;
	struct ibnbd_wire_open_rsp_dur w;
	void *buf;

	m.has_durability = true;
	m.durability.cache_epoch = 0x0102030405060708;
	m.durability.flags = 0xffffffff;
	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_open_rsp_encode(&w, &m), 56);	/* nothing without identity */
	m.has_identity = true;
	memset(&w, 0xa5, sizeof(w));
	CHECK_EQ(ibnbd_msg_open_rsp_encode(&w, &m), 128);
	CHECK_EQ(le16_to_cpu(w.base.rsp.logical_block_size), 512);
	CHECK_MEM(&w.dur, want, 32);
	m.durability.flags = IBNBD_DUR_F_VOLATILE;
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 128, both, 4096, &back, &why), 0);
	CHECK_MEM(&back, &m, sizeof(m));
	memset(w.dur.reserved, 0xee, sizeof(w.dur.reserved));
	w.dur.flags = cpu_to_le32(0xfffffffe);
	buf = unit_exact(&w, 127);
	CHECK_EQ(ibnbd_msg_open_rsp_decode(buf, 127, both, 4096, &back, &why), -EPROTO);
	free(buf);
	buf = unit_exact(&w, 128);
	CHECK_EQ(ibnbd_msg_open_rsp_decode(buf, 128, IBNBD_FEAT_KNOWN, 4096, &back, &why), 0);
	free(buf);
	CHECK_EQ(back.durability.cache_epoch, 0x0102030405060708);
	CHECK_EQ(back.durability.flags, 0);
	/* who did not negotiate it looks at none of it */
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 96, IBNBD_FEAT_IDENTITY, 4096, &back, &why), 0);
	CHECK(!back.has_durability && !back.durability.cache_epoch);
	CHECK_EQ(ibnbd_msg_open_rsp_decode(&w, 56, IBNBD_FEAT_DURABILITY, 4096, &back, &why), 0);
	CHECK(!back.has_identity && !back.has_durability);
}

UNIT_TEST(open_rsp_room)
{
	static const struct { u64 features; u32 len, room; } rows[] = {
		{ 0, 56, 56 }, { 0x1, 56, 56 }, { 0x2, 96, 96 }, { 0x3, 96, 96 },
		{ 0x4, 56, 56 }, { 0x6, 128, 128 }, { 0x7, 128, 128 },
		{ 0x8, 56, 192 }, { 0xa, 96, 192 }, { 0xc, 56, 192 },
		{ 0xe, 128, 192 }, { 0xf, 128, 192 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("features %#llx", (unsigned long long)rows[i].features);
		CHECK_EQ(ibnbd_msg_open_rsp_len(rows[i].features), rows[i].len);
		CHECK_EQ(ibnbd_msg_open_room(rows[i].features), rows[i].room);
	}
}
