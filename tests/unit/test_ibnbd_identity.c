// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identities and records, byte for byte: a disk that another kind of server has, or a later version
 * of this one, must be the same disk to its clients. The values were computed by another program.
 */
#include "unit.h"
#include "ibnbd/logic/identity.h"
#include "ibnbd/logic/record.h"

/* The vectors of SipHash's authors. */
UNIT_TEST(identity_siphash)
{
	static const u64 want[] = {
		[0] = 0x726fdb47dd0e0e31ULL, [15] = 0xa129ca6149be45e5ULL,
	};
	u8 in[15];
	size_t i;

	for (i = 0; i < sizeof(in); i++)
		in[i] = (u8)i;
	for (i = 0; i < ARRAY_SIZE(want); i += 15)
		CHECK(ibnbd_siphash(in, i, 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL) ==
		      want[i]);
}

static void check_id(const struct ibnbd_identity *id, u8 kind, const char *want)
{
	char hex[2 * IBNBD_ID_LEN + 1];
	size_t i;

	for (i = 0; i < IBNBD_ID_LEN; i++)
		sprintf(hex + 2 * i, "%02x", id->id[i]);
	CHECK_STR(hex, want);
	CHECK_EQ(id->kind, kind);
}

#define NONE "00000000000000000000000000000000"

UNIT_TEST(identity_disks)
{
	static const struct {
		int place;
		const char *name, *partuuid;
		bool part;
		u64 start;
		u8 kind;
		const char *want;
	} rows[] = {
		{ 2, "nvme.1b36-73657269616c", NULL, false, 0, IBNBD_ID_HARDWARE,
		  "f4c9f43c4d6859cc81d2dd62deeb98a9" },
		/* a whole disk has no uuid of a partition, whatever somebody says */
		{ 2, "nvme.1b36-73657269616c", "0a1b2c3d-01", false, 7, IBNBD_ID_HARDWARE,
		  "f4c9f43c4d6859cc81d2dd62deeb98a9" },
		{ 5, "disk-a", NULL, true, 2048, IBNBD_ID_HARDWARE,
		  "ab3b7695a857dba4848a51baac69c099" },
		{ 5, "disk-a", "00000000-01", true, 2048, IBNBD_ID_HARDWARE,
		  "ab3b7695a857dba4848a51baac69c099" },
		{ 3, "naa.5000c500a1b2c3d4", "0a1b2c3d-01", true, 2048, IBNBD_ID_UUID,
		  "4f18bb2c8764ef7644768b84f1886288" },
		{ -1, NULL, "0a1b2c3d-01", true, 2048, IBNBD_ID_UUID,
		  "4058c0bcde63f86f91fde4cacd4701a9" },
		{ -1, NULL, NULL, true, 2048, IBNBD_ID_NONE, NONE },
		{ -1, NULL, NULL, false, 0, IBNBD_ID_NONE, NONE },
	};
	char text[IBNBD_IDENTITY_TEXT];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibnbd_identity_disk d = {
			.place = rows[i].place < 0 ? NULL : &ibnbd_identity_places[rows[i].place],
			.name = rows[i].name, .part = rows[i].part, .partuuid = rows[i].partuuid,
			.start = rows[i].start,
		};
		struct ibnbd_identity id;

		memset(&id, 0x55, sizeof(id));
		UNIT_ROW("disk %zu", i);
		ibnbd_identity_disk(&d, text, &id);
		check_id(&id, rows[i].kind, rows[i].want);
	}
}

/* A name longer than the room is cut, and nothing is written behind it. */
UNIT_TEST(identity_long)
{
	char name[2 * IBNBD_IDENTITY_TEXT], *text = unit_exact(name, IBNBD_IDENTITY_TEXT);
	struct ibnbd_identity_disk d = {
		.place = ibnbd_identity_places, .name = name, .part = true, .partuuid = name,
	};
	struct ibnbd_identity id, cut;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	ibnbd_identity_disk(&d, text, &id);
	CHECK_EQ(strlen(text), IBNBD_IDENTITY_TEXT - 1);
	name[IBNBD_IDENTITY_TEXT] = 0;
	ibnbd_identity_disk(&d, text, &cut);
	CHECK_MEM(&cut, &id, sizeof(id.id));
	free(text);
}

UNIT_TEST(identity_files)
{
	struct ibnbd_identity_inode n = { .ino = 131077, .generation = 0xdeadbeef };
	struct ibnbd_identity id;
	u8 i;

	ibnbd_identity_file(&n, &id);
	check_id(&id, IBNBD_ID_NONE, NONE);
	for (i = 0; i < sizeof(n.uuid); i++)
		n.uuid[i] = i + 1;
	ibnbd_identity_file(&n, &id);
	check_id(&id, IBNBD_ID_FILE, "73aff8ee11ead6edfe4366ea2ea1f0ad");
	n.has_volume = true;
	n.volume[0] = 0x11223344;
	n.volume[1] = 0x55667788;
	ibnbd_identity_file(&n, &id);
	check_id(&id, IBNBD_ID_FILE, "867de11bbfa1e497c86ec50b2f39c10b");
}

UNIT_TEST(identity_of_this_boot)
{
	struct ibnbd_identity_now n = { .boot = "4f1c7d62-9a1e-4f0b-8a3e-0123456789ab" };
	char text[IBNBD_IDENTITY_TEXT];
	struct ibnbd_identity id;

	n.has_disk = n.is_disk = true;
	n.diskseq = 17;
	ibnbd_identity_now(&n, text, &id);
	check_id(&id, IBNBD_ID_INSTANCE, "150c880843747c2492f2da7d5a572b43");
	n.is_disk = false;
	n.diskseq = 9;
	n.dev = 8 << 20;
	n.ino = 1234;
	n.generation = 77;
	ibnbd_identity_now(&n, text, &id);
	check_id(&id, IBNBD_ID_INSTANCE, "2892e1c90cbc7fc5f213e2f3a4cb1ad7");
	n.has_disk = false;
	n.dev = 42;
	ibnbd_identity_now(&n, text, &id);
	check_id(&id, IBNBD_ID_INSTANCE, "e142f36ce343ef6b5068a785851b02fb");
	ibnbd_identity_number(0x0102030405060708ULL, 0x11121314, 0x21222324, &id);
	check_id(&id, IBNBD_ID_NUMBER, "08070605040302011413121124232221");
}

UNIT_TEST(identity_record_slot)
{
	struct ibnbd_record_slot s = { .kind = IBNBD_ID_FILE };
	char first[sizeof(s)] = "ibnbd-server: cache epochs, 1\n";
	u8 i;

	for (i = 0; i < sizeof(s.id); i++)
		s.id[i] = i;
	s.gen = cpu_to_le64(0x1234567800000002ULL);
	for (i = 0; i < sizeof(s.writer); i++)
		s.writer[i] = 0x40 + i;
	CHECK(le64_to_cpu(ibnbd_record_sum(&s)) == 0xfdd93994efd5354aULL);
	s.sum = ~0ull;				/* is not in the sum */
	CHECK(le64_to_cpu(ibnbd_record_sum(&s)) == 0xfdd93994efd5354aULL);
	ibnbd_record_header(IBNBD_RECORD_EPOCHS, &s);
	CHECK_MEM(&s, first, sizeof(s));
	CHECK(ibnbd_record_boot("a") && ibnbd_record_boot("a") != ibnbd_record_boot("b"));
}

UNIT_TEST(identity_generations)
{
	CHECK(ibnbd_record_first(7, 9, false, false) == 0x700000009ULL);
	CHECK(ibnbd_record_first(7, 0, false, true) == 0x700000001ULL);	/* 0 is a promise */
	CHECK(ibnbd_record_first(7, 9, true, false) == 0x700000000ULL);
	CHECK(ibnbd_record_first(7, 9, true, true) == 0x700000001ULL);
	CHECK(ibnbd_record_raise(0x700000009ULL) == 0x70000000aULL);
	CHECK(ibnbd_record_raise(0x7ffffffffULL) == 0x700000001ULL);
}
