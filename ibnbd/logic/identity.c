// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The hash must be the same after a reboot, on every machine and in every kind of server, so its
 * keys are constants, and tests/unit/test_ibnbd_identity.c has golden values.
 */
#include "ibnbd/logic/identity.h"

#define IDENTITY_KEY	0x69626e62642d6964ULL

const struct ibnbd_identity_place ibnbd_identity_places[IBNBD_IDENTITY_PLACES] = {
	{ "dm/uuid",		IBNBD_ID_UUID },
	{ "md/uuid",		IBNBD_ID_UUID },
	{ "wwid",		IBNBD_ID_HARDWARE },	/* NVMe */
	{ "device/wwid",	IBNBD_ID_HARDWARE },	/* SCSI */
	{ "device/cid",		IBNBD_ID_HARDWARE },	/* MMC */
	{ "serial",		IBNBD_ID_HARDWARE },	/* virtio */
};

struct sip {
	u64 v0, v1, v2, v3;
};

static inline u64 sip_turn(u64 x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_rounds(struct sip *s, unsigned int n)
{
	while (n--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = sip_turn(s->v1, 13) ^ s->v0;
		s->v3 = sip_turn(s->v3, 16) ^ s->v2;
		s->v0 = sip_turn(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = sip_turn(s->v1, 17) ^ s->v2;
		s->v3 = sip_turn(s->v3, 21) ^ s->v0;
		s->v2 = sip_turn(s->v2, 32);
	}
}

static void sip_word(struct sip *s, u64 m)
{
	s->v3 ^= m;
	sip_rounds(s, 2);
	s->v0 ^= m;
}

u64 ibnbd_siphash(const void *data, size_t len, u64 k0, u64 k1)
{
	struct sip s = {
		.v0 = 0x736f6d6570736575ULL ^ k0,
		.v1 = 0x646f72616e646f6dULL ^ k1,
		.v2 = 0x6c7967656e657261ULL ^ k0,
		.v3 = 0x7465646279746573ULL ^ k1,
	};
	const u8 *p = data;
	u64 last = (u64)len << 56;
	size_t i;
	__le64 m;

	for (i = 0; i + sizeof(m) <= len; i += sizeof(m)) {
		memcpy(&m, p + i, sizeof(m));
		sip_word(&s, le64_to_cpu(m));
	}
	for (; i < len; i++)
		last |= (u64)p[i] << 8 * (i % sizeof(m));
	sip_word(&s, last);
	s.v2 ^= 0xff;
	sip_rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static void identity_hash(struct ibnbd_identity *id, u8 kind, const void *data, size_t len)
{
	__le64 half[2] = {
		cpu_to_le64(ibnbd_siphash(data, len, IDENTITY_KEY, 1)),
		cpu_to_le64(ibnbd_siphash(data, len, IDENTITY_KEY, 2)),
	};

	static_assert(sizeof(half) == sizeof(id->id), "identity");
	memcpy(id->id, half, sizeof(half));
	id->kind = kind;
}

static void identity_none(struct ibnbd_identity *id)
{
	memset(id->id, 0, sizeof(id->id));
	id->kind = IBNBD_ID_NONE;
}

void ibnbd_identity_disk(const struct ibnbd_identity_disk *d, char *text, struct ibnbd_identity *id)
{
	const char *uuid = d->part && d->partuuid ? d->partuuid : "";
	int n = 0;

	identity_none(id);
	/* A DOS partition table without a signature: its partitions are called so on every disk. */
	if (!strncmp(uuid, "00000000-", 9))
		uuid = "";
	if (*uuid)
		n = scnprintf(text, IBNBD_IDENTITY_TEXT, "partuuid:%s", uuid);
	if (d->place)
		n += scnprintf(text + n, (size_t)(IBNBD_IDENTITY_TEXT - n), "%s%s:%s",
			       n ? " " : "", d->place->attr, d->name);
	if (!n)
		return;
	if (d->part && !*uuid)
		n += scnprintf(text + n, (size_t)(IBNBD_IDENTITY_TEXT - n), "+%llu",
			       (unsigned long long)d->start);
	identity_hash(id, *uuid ? (u8)IBNBD_ID_UUID : d->place->kind, text, (size_t)n);
}

void ibnbd_identity_file(const struct ibnbd_identity_inode *n, struct ibnbd_identity *id)
{
	static const u8 none[sizeof(n->uuid)];
	struct {
		u8 uuid[16];
		__le64 ino;
		__le64 generation;
		__le32 volume[2];		/* btrfs only */
	} name = {
		.ino = cpu_to_le64(n->ino),
		.generation = cpu_to_le64(n->generation),
		.volume = { cpu_to_le32(n->volume[0]), cpu_to_le32(n->volume[1]) },
	};

	identity_none(id);
	if (!memcmp(n->uuid, none, sizeof(none)))
		return;
	memcpy(name.uuid, n->uuid, sizeof(name.uuid));
	identity_hash(id, IBNBD_ID_FILE, &name,
		      n->has_volume ? sizeof(name) : offsetof(typeof(name), volume));
}

void ibnbd_identity_now(const struct ibnbd_identity_now *n, char *text, struct ibnbd_identity *id)
{
	int len = scnprintf(text, IBNBD_IDENTITY_TEXT, "%s", n->boot);

	if (n->has_disk)
		len += scnprintf(text + len, (size_t)(IBNBD_IDENTITY_TEXT - len), " disk:%llu",
				 (unsigned long long)n->diskseq);
	if (n->is_disk)
		len += scnprintf(text + len, (size_t)(IBNBD_IDENTITY_TEXT - len), "+%llu",
				 (unsigned long long)n->start);
	else
		len += scnprintf(text + len, (size_t)(IBNBD_IDENTITY_TEXT - len), " %u:%llu:%u",
				 n->dev, (unsigned long long)n->ino, n->generation);
	identity_hash(id, IBNBD_ID_INSTANCE, text, (size_t)len);
}

void ibnbd_identity_number(u64 ino, u32 generation, u32 dev, struct ibnbd_identity *id)
{
	struct {
		__le64 ino;
		__le32 generation;
		__le32 dev;
	} number = {
		.ino = cpu_to_le64(ino),
		.generation = cpu_to_le32(generation),
		.dev = cpu_to_le32(dev),
	};

	static_assert(sizeof(number) == sizeof(id->id), "number");
	memcpy(id->id, &number, sizeof(number));
	id->kind = IBNBD_ID_NUMBER;
}
