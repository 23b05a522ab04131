// SPDX-License-Identifier: GPL-2.0-only
/* Writes of libibnbd that the server may have lost: kept, and sent again. */
#include "disk.h"

static struct pair p;
static struct batch b;

/* The server comes back, and has lost its cache. */
static void lose(void)
{
	disksrv_down(&p.s);
	memset(p.s.disk, 0, PAIR_BLOCKS * DISKSRV_BLOCK);
	p.s.rsp.durability.cache_epoch++;
}

static void write_at(u32 block, u8 seed, unsigned int flags)
{
	static u8 data[DISKSRV_BLOCK];

	memset(data, seed, sizeof(data));
	CHECK_EQ(ibnbd_write(p.q, data, sizeof(data), block * DISKSRV_BLOCK, flags, NULL), 0);
}

static u8 disk_at(u32 block)
{
	return SRV(&p, disk[block * DISKSRV_BLOCK]);
}

/* In the order of before, the last one of each block; what a flush has covered is not sent. */
UNIT_TEST(what_was_lost_is_there_again)
{
	u32 writes;

	pair_start(&p, NULL);
	write_at(0, 1, 0);
	CHECK_EQ(ibnbd_flush(p.q, NULL), 0);
	write_at(1, 2, 0);
	write_at(2, 3, 0);
	write_at(1, 4, 0);
	write_at(2, 5, IBNBD_REQ_FUA);
	CHECK_EQ(ibnbd_discard(p.q, DISKSRV_BLOCK, 3 * DISKSRV_BLOCK, NULL), 0);
	write_at(4, 6, 0);
	CHECK_EQ(ibnbd_zeroes(p.q, DISKSRV_BLOCK, 4 * DISKSRV_BLOCK, IBNBD_REQ_NOUNMAP, NULL), 0);
	writes = SRV(&p, writes);
	lose();
	disksrv_up(&p.s);
	pair_until_opened(&p, 2);
	CHECK_EQ(pair_info(&p).replays, 1);
	CHECK_EQ(pair_info(&p).unflushed, 0);
	CHECK_STR(pair_info(&p).reason, "");
	CHECK_EQ(SRV(&p, writes), writes + 5);
	CHECK_EQ(SRV(&p, flushes), 2);
	CHECK_EQ(SRV(&p, discards), 2);
	CHECK_EQ(SRV(&p, zeroes), 2);
	CHECK_EQ(disk_at(0), 0);
	CHECK_EQ(disk_at(1), 4);
	CHECK_EQ(disk_at(2), 5);
	CHECK_EQ(disk_at(3), 0xdd);
	CHECK_EQ(disk_at(4), 0);
	/* And once more: the log begins anew. */
	write_at(5, 7, 0);
	writes = SRV(&p, writes);
	lose();
	disksrv_up(&p.s);
	pair_until_opened(&p, 3);
	CHECK_EQ(SRV(&p, writes), writes + 1);
	CHECK_EQ(disk_at(5), 7);
	CHECK_EQ(disk_at(1), 0);
	pair_end(&p);
}

/* In mode migration another client may write: what is kept does not replace that. */
UNIT_TEST(what_another_client_has_written)
{
	const struct ibnbd_disk_opts o = { .access = IBNBD_DISK_MIGRATION };

	pair_start(&p, &o);
	write_at(1, 2, 0);
	lose();
	memset(p.s.disk + DISKSRV_BLOCK, 9, DISKSRV_BLOCK);
	p.s.rsp.identity.writer_gen++;
	disksrv_up(&p.s);
	CHECK(pair_until(&p, "fenced"));
	CHECK_STR(pair_info(&p).reason, "another client may have written meanwhile");
	CHECK_EQ(disk_at(1), 9);
	pair_end(&p);
}

/* What is held meanwhile comes behind it. */
UNIT_TEST(what_was_under_way_comes_behind)
{
	pair_start(&p, NULL);
	write_at(0, 1, 0);
	SRV_DO(&p, p.s.late = true);
	batch_submit(&p, &b, IBNBD_REQ_WRITE, 1, 100);
	UNTIL(SRV(&p, nr_kept) == 1);
	lose();
	disksrv_up(&p.s);
	CHECK_EQ(batch_wait(&p, &b), 0);
	CHECK_EQ(disk_at(0), 100);
	CHECK_EQ(pair_info(&p).replays, 1);
	CHECK(pair_info(&p).unflushed > 0);
	pair_end(&p);
}

/*
 * The link breaks amid the replay: the server may still execute a part of it, so it is closed and
 * opened again, and all of it is sent once more.
 */
UNIT_TEST(a_replay_that_is_cut_off)
{
	u32 id, i;

	p.paths = 2;
	pair_prepare(&p);
	p.s.closed_dial = 2;
	CHECK_EQ(pair_open(&p, "db1", NULL, NULL), 0);
	p.paths = 0;
	for (i = 0; i < 8; i++)
		write_at(i, (u8)(10 + i), 0);
	lose();
	p.s.late = true;
	disksrv_up(&p.s);
	UNTIL(SRV(&p, nr_kept) == 1);
	CHECK_STR(pair_info(&p).state_detail, "replaying");
	id = SRV(&p, maps[0].id);
	SRV_DO(&p, p.s.closed_dial = 1);
	disksrv_cut(&p.s);
	UNTIL(SRV(&p, closes) == 1);
	CHECK_STR(pair_info(&p).state, "closed");
	CHECK_EQ(pair_info(&p).replays, 0);
	SRV_DO(&p, disksrv_release(&p.s));
	pair_until_opened(&p, 2);
	CHECK(SRV(&p, maps[0].id) != id);
	CHECK_EQ(pair_info(&p).replays, 1);
	for (i = 0; i < 8; i++)
		CHECK_EQ(disk_at(i), 10 + i);
	pair_end(&p);
}

/* A flush that fails may have dropped what was written: the same. */
UNIT_TEST(a_flush_that_fails)
{
	pair_start(&p, NULL);
	write_at(0, 1, 0);
	SRV_DO(&p, p.s.io_err = -EIO; p.s.io_op = IBNBD_OP_FLUSH);
	CHECK_EQ(ibnbd_flush(p.q, NULL), -EIO);
	UNTIL(pair_info(&p).replays == 1);
	pair_until_opened(&p, 2);
	CHECK_EQ(SRV(&p, writes), 2);
	CHECK_EQ(pair_info(&p).unflushed, 0);
	/* The flush behind the replay fails, too. */
	write_at(0, 2, 0);
	lose();
	SRV_DO(&p, p.s.io_err = -ENOSPC; p.s.io_op = IBNBD_OP_FLUSH);
	disksrv_up(&p.s);
	CHECK(pair_until(&p, "fenced"));
	CHECK_STR(pair_info(&p).reason, "the writes that the server may have lost cannot be repeated (-28): close the disk and open it again to accept the loss");
	pair_end(&p);
}

/* The library flushes when half of its memory is used, so that it does not get full. */
UNIT_TEST(memory_for_what_is_kept)
{
	const struct ibnbd_disk_opts o = { .retain_mb = 1 };
	u32 i;

	pair_start(&p, &o);
	for (i = 0; i < 2000; i++)
		write_at(i % PAIR_BLOCKS, (u8)i, 0);
	UNTIL(SRV(&p, flushes) > 0);
	CHECK_EQ(pair_info(&p).opened, 1);
	lose();
	disksrv_up(&p.s);
	UNTIL(strcmp(pair_info(&p).state_detail, "held") &&
	      strcmp(pair_info(&p).state_detail, "replaying"));
	CHECK_STR(pair_info(&p).state, "open");
	pair_end(&p);
}

/* It gets full all the same where no flush is answered: then a loss fences the disk. */
UNIT_TEST(more_than_can_be_kept)
{
	const struct ibnbd_disk_opts o = { .retain_mb = 1 };
	u32 i;

	pair_start(&p, &o);
	SRV_DO(&p, p.s.no_flush = true);
	for (i = 0; i < 300; i++)
		write_at(i % PAIR_BLOCKS, (u8)i, 0);
	lose();
	disksrv_up(&p.s);
	CHECK(pair_until(&p, "fenced"));
	CHECK(strstr(pair_info(&p).reason, "the server may have lost its disk's write cache, and the last 2 MiB written were not flushed"));
	pair_end(&p);
}

/* A server that tells nothing of its cache: only if the user asks. */
UNIT_TEST(a_server_that_says_nothing)
{
	const struct ibnbd_disk_opts o[] = {
		{ .unflushed = IBNBD_DISK_UNFLUSHED_AUTO },
		{ .unflushed = IBNBD_DISK_UNFLUSHED_REPLAY },
	};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		UNIT_ROW("replay %u", i);
		pair_prepare(&p);
		p.s.features = IBNBD_FEAT_IDENTITY;
		CHECK_EQ(pair_open(&p, "db1", NULL, &o[i]), 0);
		write_at(0, 1, 0);
		lose();
		disksrv_up(&p.s);
		pair_until_opened(&p, 2);
		CHECK_EQ(pair_info(&p).replays, i);
		CHECK_EQ(disk_at(0), i);
		pair_end(&p);
	}
}
