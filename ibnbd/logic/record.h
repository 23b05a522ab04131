/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What a server remembers of its disks over a restart (writer_file): the slots of the file as
 * bytes, and the rules of the writer generation (protocol 10.5). Pure: who serves reads and writes
 * the file.
 *
 * The file is two tables of IBNBD_RECORD_SLOTS slots: the writers, and behind them the cache
 * epochs. The first slot of each table is a header that names the table. A slot with a wrong
 * checksum is free.
 */
#ifndef IBNBD_LOGIC_RECORD_H
#define IBNBD_LOGIC_RECORD_H

#include "ibnbd/logic/identity.h"

#define IBNBD_RECORD_SLOTS	4096	/* of a table */
#define IBNBD_RECORD_KEY	0x69626e62642d7772ULL

/* Why a client that comes to write is refused when a file that was named cannot be written. */
#define IBNBD_RECORD_LOST \
	"the server cannot record that it is written to (writer_file, state_dir): its log says why"

enum ibnbd_record_table {
	IBNBD_RECORD_WRITERS,
	IBNBD_RECORD_EPOCHS,
	IBNBD_RECORD_TABLES,
};

#define IBNBD_RECORD_ALL	(IBNBD_RECORD_TABLES * IBNBD_RECORD_SLOTS)

/**
 * struct ibnbd_record_slot - 64 bytes of the file
 * @sum: of what follows; a slot of zeroes is free
 * @kind, @id: the disk
 * @clean: epochs: it ended clean
 * @gen, @writer: writers: the generation, and the session that wrote last; null: one of several
 * @epoch: epochs: the cache epoch
 * @boot: epochs: of a server in user space that has, or had, a writer: ibnbd_record_boot() of the
 *	machine's boot; 0 of a kernel's server
 */
struct ibnbd_record_slot {
	__le64 sum;
	u8 kind;
	u8 clean;
	u8 reserved[6];
	u8 id[IBNBD_ID_LEN];
	union {
		struct {
			__le64 gen;
			u8 writer[16];
			u8 reserved2[8];
		};
		struct {
			__le64 epoch;
			__le64 boot;
			u8 reserved3[16];
		};
	};
};

static_assert(sizeof(struct ibnbd_record_slot) == 64, "slot");

/* The checksum finds torn or damaged slots. It does not find forged ones: the file is root's. */
static inline __le64 ibnbd_record_sum(const struct ibnbd_record_slot *s)
{
	return cpu_to_le64(ibnbd_siphash(&s->kind, sizeof(*s) - offsetof(typeof(*s), kind),
					 IBNBD_RECORD_KEY, 1));
}

/* The first slot of a table. */
static inline void ibnbd_record_header(enum ibnbd_record_table t, struct ibnbd_record_slot *s)
{
	static const char *const text[IBNBD_RECORD_TABLES] = {
		"ibnbd-server: who wrote last, 1\n",
		"ibnbd-server: cache epochs, 1\n",
	};

	memset(s, 0, sizeof(*s));
	memcpy(s, text[t], strlen(text[t]));
}

/* A boot of the machine as a number, which is not 0; @id is its boot_id, as text. */
static inline u64 ibnbd_record_boot(const char *id)
{
	return ibnbd_siphash(id, strlen(id), IBNBD_RECORD_KEY, 2) ?: 1;
}

/**
 * ibnbd_record_first() - a generation that no client was ever told
 * @high, @low: random
 * @none: each disk has one client only (writer_file=none)
 * @forgot: a record was dropped, or given to another disk
 *
 * To clients the low half counts the earlier writers: they take 0 for the promise that there was
 * none.
 */
static inline u64 ibnbd_record_first(u32 high, u32 low, bool none, bool forgot)
{
	if (none)
		return (u64)high << 32 | forgot;
	return (u64)high << 32 | (low ? low : 1);
}

/* Another client has written. The low half never returns to 0. */
static inline u64 ibnbd_record_raise(u64 gen)
{
	u32 low = (u32)gen + 1;

	return (gen & ~(u64)U32_MAX) | (low ? low : 1);
}

#endif
