// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is kept until a flush has covered it, against a model of a disk that forgets: writes, FUA
 * writes, flushes that overlap, fail or are never answered, a pool that is far too small, and power
 * cuts. After each of these either every acknowledged write is there again, or the log says that it
 * has a gap.
 */
#include "unit.h"
#include "ibnbd/logic/kept.h"

#define SEGS	4
#define BLOCK	4096u
#define BLOCKS	24
#define FLUSHES	3

static unsigned char mem[SEGS][IBNBD_KEPT_SEG_SIZE];

struct flush {
	bool sent, executed;
	unsigned long number;
};

struct model {
	struct ibnbd_kept_seg segs[SEGS];
	struct ibnbd_kept_pool pool;
	struct ibnbd_kept log;
	struct ibnbd_unflushed u;
	u32 durable[BLOCKS], cached[BLOCKS], acked[BLOCKS];	/* the number of a write */
	struct flush flush[FLUSHES];
	u64 seed;
	u32 writes, cuts, replays, gaps, resent;
	bool low;
};

static struct model m;

/* As the driver does it. */
static void keep(u32 block, u32 nr, u32 write, bool fua, bool zeroes)
{
	unsigned long needs = m.u.sent + 1;
	u32 left = nr * BLOCK, sector = block * (BLOCK / 512);
	struct ibnbd_kept_at at;
	struct ibnbd_kept_rec rec;
	unsigned char *to;
	u32 i;

	if (fua && ibnbd_kept_empty(&m.log))
		return;
	while (left) {
		if (fua)
			needs = ibnbd_kept_needs(&m.pool, &m.log);
		if (!ibnbd_kept_place(&m.pool, &m.log, zeroes ? 0 : left, BLOCK, needs, &at)) {
			if (ibnbd_kept_grow(&m.pool, &m.log)) {
				m.low |= ibnbd_kept_pool_low(&m.pool);
				continue;
			}
			ibnbd_kept_overflow(&m.pool, &m.log, needs);
			m.gaps++;
			return;
		}
		CHECK(at.seg < SEGS && !at.bytes == zeroes);
		CHECK(at.bytes <= left && !(at.bytes % BLOCK));
		CHECK(at.offset + sizeof(rec) + at.bytes <= IBNBD_KEPT_SEG_SIZE);
		rec = (struct ibnbd_kept_rec){
			.sector = sector, .bytes = at.bytes, .op = IBNBD_OP_WRITE,
		};
		/* Which write it was stands where the driver has nothing. */
		if (zeroes) {
			rec.bytes = left;
			rec.op = IBNBD_OP_WRITE_ZEROES | write << 8;
			at.bytes = 0;
			left = 0;
		}
		to = mem[at.seg] + at.offset;
		memcpy(to, &rec, sizeof(rec));
		for (i = 0; i < at.bytes / BLOCK; i++)
			memcpy(to + sizeof(rec) + i * BLOCK, &write, sizeof(write));
		sector += at.bytes / 512;
		left -= at.bytes;
	}
}

static void write_some(void)
{
	u32 block = unit_random(&m.seed) % BLOCKS, nr = 1 + unit_random(&m.seed) % 6, i;
	bool fua = !(unit_random(&m.seed) % 5), zeroes = !fua && !(unit_random(&m.seed) % 3);

	if (nr > BLOCKS - block)
		nr = BLOCKS - block;
	m.writes++;
	for (i = block; i < block + nr; i++) {
		m.cached[i] = m.acked[i] = m.writes;
		if (fua)
			m.durable[i] = m.writes;
	}
	keep(block, nr, m.writes, fua, zeroes);
	if (!fua)
		ibnbd_unflushed_wrote(&m.u);
}

static void execute_flush(struct flush *f)
{
	memcpy(m.durable, m.cached, sizeof(m.durable));
	f->executed = true;
}

static void flush_some(void)
{
	struct flush *f = &m.flush[unit_random(&m.seed) % FLUSHES];

	if (!f->sent) {
		*f = (struct flush){ .sent = true, .number = ibnbd_unflushed_send(&m.u) };
	} else if (!f->executed) {
		if (unit_random(&m.seed) % 4)
			execute_flush(f);
		else
			f->sent = false;		/* it failed */
	} else {
		ibnbd_unflushed_done(&m.u, f->number);
		ibnbd_kept_flushed(&m.pool, &m.log, f->number);
		f->sent = false;
	}
}

/* What the disk had cached is lost, all of it or some. */
static void power_cut(void)
{
	u32 i;

	m.cuts++;
	for (i = 0; i < BLOCKS; i++) {
		if (unit_random(&m.seed) % 3)
			m.cached[i] = m.durable[i];
		m.durable[i] = m.cached[i];
	}
	memset(m.flush, 0, sizeof(m.flush));
}

static void send_again(void)
{
	struct ibnbd_kept_rec rec;
	unsigned char *from;
	u32 seg, at, i, write;

	for (seg = m.log.first; seg != IBNBD_KEPT_NONE; seg = m.segs[seg].next) {
		for (at = 0; at < m.segs[seg].used; at += sizeof(rec) + ibnbd_kept_data(&rec)) {
			memcpy(&rec, mem[seg] + at, sizeof(rec));
			from = mem[seg] + at + sizeof(rec);
			m.resent++;
			for (i = 0; i < rec.bytes / BLOCK; i++) {
				write = rec.op >> 8;
				if (!write)
					memcpy(&write, from + i * BLOCK, sizeof(write));
				m.cached[rec.sector / (BLOCK / 512) + i] = write;
			}
		}
	}
}

static void come_back(void)
{
	struct flush f = { .sent = true };
	bool whole = true;
	u32 i;

	if (!ibnbd_unflushed_any(&m.u)) {
		UNIT_ROW("cut %u, all was flushed", m.cuts);
	} else if (m.log.gap) {
		ibnbd_unflushed_forgive(&m.u);
		ibnbd_kept_drop(&m.pool, &m.log);
		m.log.gap = false;
		memcpy(m.acked, m.cached, sizeof(m.acked));
		return;
	} else {
		UNIT_ROW("cut %u, replay", m.cuts);
		m.replays++;
		send_again();
		/* The link goes in the middle; what was sent may be cached or not. */
		if (!(unit_random(&m.seed) % 4)) {
			power_cut();
			send_again();
		}
		f.number = ibnbd_unflushed_send(&m.u);
		execute_flush(&f);
		ibnbd_unflushed_done(&m.u, f.number);
		ibnbd_kept_flushed(&m.pool, &m.log, f.number);
		CHECK(ibnbd_kept_empty(&m.log));
		CHECK_EQ(m.pool.nr_free, SEGS);
		CHECK(!ibnbd_unflushed_any(&m.u));
	}
	for (i = 0; i < BLOCKS; i++)
		whole &= m.cached[i] == m.acked[i];
	CHECK(whole);
}

UNIT_TEST(no_acknowledged_write_is_lost)
{
	u32 n, step;

	for (n = 0; n < 20000; n++) {
		u64 seed = n + 1;
		u32 flushy = 1 + n % 7;

		memset(&m, 0, sizeof(m));
		m.seed = seed;
		ibnbd_kept_pool_init(&m.pool, m.segs, SEGS);
		ibnbd_kept_init(&m.log);
		for (step = 0; step < 200; step++) {
			if (!(unit_random(&m.seed) % 40)) {
				power_cut();
				come_back();
			} else if (unit_random(&m.seed) % 8 < flushy) {
				flush_some();
			} else {
				write_some();
			}
			if (unit_failures > 20)
				return;
		}
		if (n == 0)
			CHECK(m.replays && m.gaps && m.low);
		ibnbd_kept_drop(&m.pool, &m.log);
		CHECK_EQ(m.pool.nr_free, SEGS);
	}
}

UNIT_TEST(operations_without_data)
{
	struct ibnbd_kept_seg segs[2];
	struct ibnbd_kept_pool pool;
	struct ibnbd_kept_at at;
	struct ibnbd_kept log;
	u32 n = 0;

	ibnbd_kept_pool_init(&pool, segs, 2);
	ibnbd_kept_init(&log);
	CHECK(!ibnbd_kept_place(&pool, &log, 0, 512, 1, &at));
	CHECK(ibnbd_kept_grow(&pool, &log));
	while (ibnbd_kept_place(&pool, &log, 0, 512, 1, &at)) {
		CHECK_EQ(at.bytes, 0);
		n++;
	}
	CHECK_EQ(n, IBNBD_KEPT_SEG_SIZE / sizeof(struct ibnbd_kept_rec));
	CHECK(ibnbd_kept_grow(&pool, &log));
	CHECK(!ibnbd_kept_grow(&pool, &log));
	CHECK(ibnbd_kept_pool_low(&pool));
	UNIT_ROW("a block that does not fit behind what is there");
	CHECK(ibnbd_kept_place(&pool, &log, 65536, 4096, 1, &at));
	CHECK_EQ(at.bytes, 15 * 4096);
	CHECK(!ibnbd_kept_place(&pool, &log, 4096, 4096, 1, &at));
	CHECK(ibnbd_kept_place(&pool, &log, 4096, 512, 1, &at));
	CHECK_EQ(at.bytes, 7 * 512);
}
