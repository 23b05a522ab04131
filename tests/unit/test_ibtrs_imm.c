// SPDX-License-Identifier: GPL-2.0-only
/* The immediate (protocol 3, 8.3), its vectors, and the bit counting it rests on. */
#include "ibtrs/proto/imm.h"
#include "unit.h"

UNIT_TEST(bits_table)
{
	static const struct {
		u64 n;
		unsigned int want;
	} rows[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 2 },
		{ 5, 3 }, { 512, 9 }, { 513, 10 }, { 131072, 17 },
		{ 65535, 16 }, { 65536, 16 }, { 65537, 17 },
		{ 1ull << 63, 63 }, { (1ull << 63) + 1, 64 }, { ~0ull, 64 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("bits(%llu)", (unsigned long long)rows[i].n);
		CHECK_EQ(ibtrs_bits(rows[i].n), rows[i].want);
	}
}

/* The vectors of protocol 3: queue depth 512, so M = 19. */
UNIT_TEST(imm_vectors)
{
	unsigned int m = ibtrs_imm_off_bits(512);

	CHECK_EQ(m, 19);
	CHECK_EQ(ibtrs_imm_req(5, 4128, m), 0x00281020);
	CHECK_EQ(ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, 5, 0), 0x10000005);
	CHECK_EQ(ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, 5, -EIO), 0x10280005);
	CHECK_EQ(ibtrs_imm_rsp(IBTRS_IMM_IO_RSP_INV, 5, 0), 0x20000005);
	CHECK_EQ(ibtrs_imm_hb(IBTRS_IMM_HB_MSG), 0x80000000);
	CHECK_EQ(ibtrs_imm_hb(IBTRS_IMM_HB_ACK), 0x90000000);
	CHECK_EQ(ibtrs_imm_event(1, 7), 0xa1000007);
	CHECK_EQ(ibtrs_imm_event(2, 0xffffff), 0xa2ffffff);
	CHECK_EQ(ibtrs_imm_event(1, 0xff000001), 0xa1000001);
}

UNIT_TEST(imm_off_bits_table)
{
	static const struct {
		u32 qd;
		unsigned int want;
	} rows[] = { { 1, 28 }, { 2, 27 }, { 3, 26 }, { 16, 24 }, { 512, 19 }, { 65535, 12 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		UNIT_ROW("depth %u", rows[i].qd);
		CHECK_EQ(ibtrs_imm_off_bits(rows[i].qd), rows[i].want);
	}
}

UNIT_TEST(imm_req_round_trip)
{
	static const u32 depths[] = { 1, 2, 3, 31, 512, 1000, 4096, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		unsigned int m = ibtrs_imm_off_bits(depths[i]);
		u32 slots[] = { 0, depths[i] / 2, depths[i] - 1 },
			offs[] = { 0, 4, 4096, (1u << m) - 1 };

		for (size_t s = 0; s < ARRAY_SIZE(slots); s++) {
			for (size_t o = 0; o < ARRAY_SIZE(offs); o++) {
				u32 off = offs[o] & ((1u << m) - 1),
					imm = ibtrs_imm_req(slots[s], off, m);

				UNIT_ROW("depth %u slot %u off %u", depths[i], slots[s], off);
				CHECK_EQ(ibtrs_imm_type(imm), IBTRS_IMM_IO_REQ);
				CHECK_EQ(ibtrs_imm_req_slot(imm, m), slots[s]);
				CHECK_EQ(ibtrs_imm_req_off(imm, m), off);
			}
		}
	}
	UNIT_ROW("type bits are no slot");
	CHECK_EQ(ibtrs_imm_req_slot(0xf0000000, 19), 0);
}

UNIT_TEST(imm_rsp_errno)
{
	static const struct {
		int err, want;
	} rows[] = {
		{ 0, 0 }, { -1, -1 }, { -EIO, -EIO }, { -116, -116 }, { -511, -511 },
		{ -512, -EIO }, { -4095, -EIO }, { 1, -EIO },
		{ 5000, -EIO }, { INT_MIN, -EIO }, { INT_MAX, -EIO },
		{ -1024, -EIO },	/* its low 9 bits are 0: must not turn into success */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 imm = ibtrs_imm_rsp(IBTRS_IMM_IO_RSP, IBTRS_IMM_RSP_SLOT_MASK, rows[i].err);

		UNIT_ROW("errno %d", rows[i].err);
		CHECK_EQ(ibtrs_imm_type(imm), IBTRS_IMM_IO_RSP);
		CHECK_EQ(ibtrs_imm_rsp_err(imm), rows[i].want);
		CHECK_EQ(ibtrs_imm_rsp_slot(imm), IBTRS_IMM_RSP_SLOT_MASK);
	}
	UNIT_ROW("any immediate decodes to an errno in range");
	CHECK_EQ(ibtrs_imm_rsp_err(0xffffffff), -511);
	CHECK_EQ(ibtrs_imm_rsp_slot(0xffffffff), 0x7ffff);
}

UNIT_TEST(imm_event_round_trip)
{
	u32 imm = ibtrs_imm_event(2, 0x123456);

	CHECK_EQ(ibtrs_imm_type(imm), IBTRS_IMM_EVENT);
	CHECK_EQ(ibtrs_imm_event_kind(imm), 2);
	CHECK_EQ(ibtrs_imm_event_dev(imm), 0x123456);
	CHECK_EQ(ibtrs_imm_type(ibtrs_imm_hb(IBTRS_IMM_HB_ACK)), IBTRS_IMM_HB_ACK);
}
