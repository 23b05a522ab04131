// SPDX-License-Identifier: GPL-2.0-only
/* Disks of libibnbd: opening, I/O of each kind, what is refused and in which words. */
#include <poll.h>
#include "disk.h"

#define SLOTS	28	/* of 32: the session keeps some for its messages */

static struct pair p;

UNIT_TEST(what_a_disk_is)
{
	struct ibnbd_disk_info i;

	pair_start(&p, NULL);
	i = pair_info(&p);
	CHECK_EQ(i.bytes, PAIR_BLOCKS * DISKSRV_BLOCK);
	CHECK_EQ(i.block_size, DISKSRV_BLOCK);
	CHECK_EQ(i.physical_block_size, DISKSRV_BLOCK);
	CHECK_EQ(i.max_bytes, 65536);
	CHECK_EQ(i.max_discard, 131072);
	CHECK_EQ(i.max_zeroes, 131072);
	CHECK_EQ(i.q_depth, SLOTS);
	CHECK_EQ(i.paths, 1);
	CHECK_EQ(i.paths_up, 1);
	CHECK_EQ(i.read_only, false);
	CHECK_EQ(i.rotational, true);
	CHECK_EQ(i.cache, true);
	CHECK_EQ(i.fua, true);
	CHECK_EQ(i.unmap, true);
	CHECK_EQ(i.opened, 1);
	CHECK_STR(i.state, "open");
	CHECK_STR(i.state_detail, "open");
	CHECK_STR(i.reason, "");
	CHECK(!ibnbd_disk_q(p.disk, 1));
	CHECK_EQ(SRV(&p, infos), 1);
	CHECK_EQ(SRV(&p, opens), 1);
	ibnbd_disk_close(p.disk);
	p.disk = NULL;
	CHECK_EQ(SRV(&p, closes), 1);
	pair_end(&p);
}

UNIT_TEST(each_kind_of_request)
{
	enum { LEN = 40 * DISKSRV_BLOCK };
	static u8 data[LEN], back[LEN], zero[LEN];
	const char *why = NULL;
	int i;

	pair_start(&p, NULL);
	for (i = 0; i < LEN; i++)
		data[i] = (u8)(i * 7 + i / 4096);
	/* in parts of 64 KiB */
	CHECK_EQ(ibnbd_write(p.q, data, LEN, 4 * DISKSRV_BLOCK, 0, &why), 0);
	CHECK_EQ(SRV(&p, writes), 3);
	CHECK_MEM(p.s.disk + 4 * DISKSRV_BLOCK, data, LEN);
	CHECK_EQ(pair_info(&p).unflushed, LEN);
	CHECK_EQ(ibnbd_flush(p.q, &why), 0);
	CHECK_EQ(SRV(&p, flushes), 1);
	CHECK_EQ(pair_info(&p).unflushed, 0);
	CHECK_EQ(ibnbd_read(p.q, back, LEN, 4 * DISKSRV_BLOCK, &why), 0);
	CHECK_EQ(SRV(&p, reads), 3);
	CHECK_MEM(back, data, LEN);

	CHECK_EQ(ibnbd_write(p.q, data, DISKSRV_BLOCK, 0, IBNBD_REQ_FUA, &why), 0);
	CHECK_EQ(SRV(&p, fuas), 1);
	CHECK_EQ(pair_info(&p).unflushed, 0);
	/* in parts of 128 KiB */
	CHECK_EQ(ibnbd_zeroes(p.q, LEN, 4 * DISKSRV_BLOCK, IBNBD_REQ_NOUNMAP, &why), 0);
	CHECK_EQ(SRV(&p, zeroes), 2);
	CHECK(SRV(&p, last_flags) & IBNBD_F_NOUNMAP);
	CHECK_MEM(p.s.disk + 4 * DISKSRV_BLOCK, zero, LEN);
	CHECK_EQ(ibnbd_zeroes(p.q, DISKSRV_BLOCK, 0, 0, &why), 0);
	CHECK(!(SRV(&p, last_flags) & IBNBD_F_NOUNMAP));
	CHECK_EQ(ibnbd_discard(p.q, LEN, 0, &why), 0);
	CHECK_EQ(SRV(&p, discards), 2);
	CHECK_EQ(p.s.disk[0], 0xdd);
	CHECK_EQ(p.s.disk[LEN - 1], 0xdd);
	CHECK_EQ(p.s.disk[LEN], 0);
	CHECK(!why);
	pair_end(&p);
}

/* Without FUA a flush follows; without a cache there is nothing to do. */
UNIT_TEST(fua_where_the_disk_has_none)
{
	struct ibnbd_req req = { .op = IBNBD_REQ_WRITE, .flags = IBNBD_REQ_FUA };
	static u8 data[DISKSRV_BLOCK];

	pair_prepare(&p);
	p.s.rsp.fua = false;
	CHECK_EQ(pair_open(&p, "db1", NULL, NULL), 0);
	CHECK_EQ(pair_info(&p).fua, false);
	req.data = data;
	req.len = sizeof(data);
	CHECK_EQ(ibnbd_q_do(p.q, &req), -EOPNOTSUPP);
	CHECK_STR(req.why, "the server's disk has no FUA: flush instead");
	CHECK_EQ(ibnbd_write(p.q, data, sizeof(data), 0, IBNBD_REQ_FUA, NULL), 0);
	CHECK_EQ(SRV(&p, fuas), 0);
	CHECK_EQ(SRV(&p, flushes), 1);
	ibnbd_disk_close(p.disk);
	SRV_DO(&p, p.s.rsp.writeback = false);
	CHECK_EQ(pair_open(&p, "db1", NULL, NULL), 0);
	CHECK_EQ(pair_info(&p).cache, false);
	CHECK_EQ(ibnbd_q_do(p.q, &req), 0);
	CHECK_EQ(SRV(&p, fuas), 0);
	CHECK_EQ(SRV(&p, flushes), 1);
	pair_end(&p);
}

static const struct {
	const char *name;
	struct ibnbd_req req;
	bool ro;
	int err;
	const char *why;
} bad[] = {
	{ "offset", { IBNBD_REQ_READ, 0, 4096, 512 }, false, -EINVAL,
	  "not aligned to the logical block size" },
	{ "odd offset", { IBNBD_REQ_READ, 0, 4096, 1 }, false, -EINVAL,
	  "not aligned to the logical block size" },
	{ "length", { IBNBD_REQ_WRITE, 0, 512, 4096 }, false, -EINVAL,
	  "not aligned to the logical block size" },
	{ "no length", { IBNBD_REQ_WRITE, 0, 0, 4096 }, false, -EINVAL,
	  "I/O size does not fit the operation" },
	{ "end", { IBNBD_REQ_READ, 0, 8192, 63 * 4096 }, false, -EIO,
	  "beyond the end of the device" },
	{ "far end", { IBNBD_REQ_READ, 0, 4096, ~0ull << 12 }, false, -EIO,
	  "beyond the end of the device" },
	{ "size", { IBNBD_REQ_READ, 0, 65536 + 4096, 0 }, false, -EINVAL,
	  "more than the session carries at a time, or no memory for it" },
	{ "zeroes", { IBNBD_REQ_ZEROES, 0, 131072 + 4096, 0 }, false, -EINVAL,
	  "range larger than the announced limit" },
	{ "operation", { 9, 0, 4096, 0 }, false, -EINVAL,
	  "an operation or a flag that this library does not know" },
	{ "flag", { IBNBD_REQ_READ, 0x80, 4096, 0 }, false, -EINVAL,
	  "an operation or a flag that this library does not know" },
	{ "read-only", { IBNBD_REQ_WRITE, 0, 4096, 0 }, true, -EROFS,
	  "write to a device that is mapped read-only" },
	{ "discard", { IBNBD_REQ_DISCARD, 0, 4096, 0 }, true, -EROFS,
	  "write to a device that is mapped read-only" },
};

UNIT_TEST(what_is_refused_is_not_sent)
{
	const struct ibnbd_disk_opts ro = { .access = IBNBD_DISK_RO };
	static u8 data[65536 + 4096];
	struct ibnbd_req req;
	unsigned int i, access;

	for (access = 0; access < 2; access++) {
		pair_start(&p, access ? &ro : NULL);
		CHECK_EQ(pair_info(&p).read_only, access);
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			if (bad[i].ro != access)
				continue;
			UNIT_ROW("%s", bad[i].name);
			req = bad[i].req;
			req.data = data;
			CHECK_EQ(ibnbd_q_do(p.q, &req), bad[i].err);
			CHECK_EQ(req.err, bad[i].err);
			CHECK_STR(req.why, bad[i].why);
		}
		req = (struct ibnbd_req){ IBNBD_REQ_READ, 0, 4096, 0, NULL };
		CHECK_EQ(ibnbd_q_do(p.q, &req), -EINVAL);
		CHECK_EQ(SRV(&p, reads) + SRV(&p, writes) + SRV(&p, discards) + SRV(&p, zeroes), 0);
		pair_end(&p);
	}
}

UNIT_TEST(operations_that_the_disk_does_not_have)
{
	const char *why = NULL;

	pair_prepare(&p);
	p.s.rsp.max_discard_sectors = 0;
	p.s.rsp.discard_granularity = 0;
	/* hazard M10: from a server without ZEROES the number means something else */
	p.s.features = IBNBD_FEAT_IDENTITY;
	CHECK_EQ(pair_open(&p, "db1", NULL, NULL), 0);
	CHECK_EQ(pair_info(&p).max_discard, 0);
	CHECK_EQ(pair_info(&p).max_zeroes, 0);
	CHECK_EQ(ibnbd_discard(p.q, 8192, 0, &why), -EOPNOTSUPP);
	CHECK_STR(why, "operation not supported by the device");
	why = NULL;
	CHECK_EQ(ibnbd_zeroes(p.q, 8192, 0, 0, &why), -EOPNOTSUPP);
	CHECK_STR(why, "operation not supported by the device");
	pair_end(&p);
}

UNIT_TEST(errors_of_the_server)
{
	static u8 data[DISKSRV_BLOCK];
	const char *why = NULL;

	pair_start(&p, NULL);
	SRV_DO(&p, p.s.io_err = -ENOSPC; p.s.io_op = IBNBD_OP_WRITE);
	CHECK_EQ(ibnbd_write(p.q, data, sizeof(data), 0, 0, &why), -ENOSPC);
	CHECK_STR(why, "the server's disk has answered with an error");
	CHECK_EQ(ibnbd_write(p.q, data, sizeof(data), 0, 0, NULL), 0);
	CHECK_STR(pair_info(&p).state, "open");
	pair_end(&p);
}

UNIT_TEST(an_open_that_fails_says_why)
{
	const struct ibtrs_clt_opts nameless = { .name = "a/b" };
	const struct ibnbd_disk_opts wrong = { .access = 7 };

	pair_prepare(&p);
	CHECK_EQ(pair_open(&p, "db2", NULL, NULL), -ENOENT);
	CHECK_STR(p.why, "cannot open db2 on session store1: the server says: nothing is exported under that name");
	p.s.features = 0;
	CHECK_EQ(pair_open(&p, "db2", NULL, NULL), -ENOENT);
	CHECK_STR(p.why, "cannot open db2 on session store1: the server exports nothing of that name");
	p.s.features = IBNBD_FEAT_KNOWN;
	CHECK_EQ(pair_open(&p, "", NULL, NULL), -EINVAL);
	CHECK_STR(p.why, "the name of a disk has 1 to 254 bytes");
	CHECK_EQ(pair_open(&p, "db1", &nameless, NULL), -EINVAL);
	CHECK_STR(p.why, "session: session name contains '/' or '.'");
	CHECK_EQ(pair_open(&p, "db1", NULL, &wrong), -EINVAL);
	CHECK_STR(p.why, "db1: an option has no value that it may have");
	p.s.rsp.logical_block_size = 300;
	CHECK_EQ(pair_open(&p, "db1", NULL, NULL), -EPROTO);
	CHECK_STR(p.why, "cannot open db1 on session store1: logical block size is not a power of two from 512 to the page size");
	pair_end(&p);
}

static unsigned int key_of(void *priv, const char *name,
			   uint8_t key[IBTRS_SECRETS][IBTRS_SECRET_LEN])
{
	memset(key[0], 5, IBTRS_SECRET_LEN);
	return !strcmp(name, "db-1");
}

UNIT_TEST(keys_are_handed_to_the_session)
{
	uint8_t key[IBTRS_SECRET_LEN];
	struct ibtrs_clt_opts o = { .key_name = "db-1", .key = key };

	pair_prepare(&p);
	disksrv_down(&p.s);
	p.s.opts.auth = IBTRS_SRV_AUTH_REQUIRED;
	p.s.opts.key = key_of;
	disksrv_up(&p.s);
	CHECK(pair_open(&p, "db1", NULL, NULL) < 0);
	CHECK(strstr(p.why, "authentication is required here"));
	memset(key, 5, sizeof(key));
	CHECK_EQ(pair_open(&p, "db1", &o, NULL), 0);
	pair_end(&p);
}

UNIT_TEST(one_writer_or_two_that_migrate)
{
	const struct ibnbd_disk_opts migration = { .access = IBNBD_DISK_MIGRATION };
	const struct ibnbd_disk_opts ro = { .access = IBNBD_DISK_RO };
	const struct ibtrs_clt_opts other = { .name = "store2" };
	struct ibnbd_disk *first;

	pair_start(&p, NULL);
	first = p.disk;
	CHECK_EQ(pair_open(&p, "db1", &other, NULL), -EPERM);
	CHECK(strstr(p.why, "the server says: "));
	CHECK_EQ(pair_open(&p, "db1", &other, &ro), 0);
	ibnbd_disk_close(p.disk);
	ibnbd_disk_close(first);
	CHECK_EQ(pair_open(&p, "db1", NULL, &migration), 0);
	CHECK_EQ(SRV(&p, maps[0].access), IBNBD_ACCESS_MIGRATION);
	pair_end(&p);
}

UNIT_TEST(a_queue_has_so_many_slots_and_a_file_descriptor)
{
	static struct batch b;
	struct ibnbd_req more = { .op = IBNBD_REQ_FLUSH }, *r = &more, *done[32];
	struct pollfd fd;

	pair_start(&p, NULL);
	fd = (struct pollfd){ .fd = ibnbd_q_fd(p.q), .events = POLLIN };
	SRV_DO(&p, p.s.late = true);
	batch_submit(&p, &b, IBNBD_REQ_WRITE, SLOTS, 1);
	CHECK_EQ(ibnbd_q_submit(p.q, &r, 1), 0);
	UNTIL(SRV(&p, nr_kept) == SLOTS);
	CHECK_EQ(ibnbd_q_poll(p.q, done, 32, 0), 0);
	CHECK_EQ(ibnbd_q_poll(p.q, done, 32, 20), 0);
	CHECK_EQ(poll(&fd, 1, 0), 0);
	SRV_DO(&p, disksrv_release(&p.s));
	CHECK_EQ(poll(&fd, 1, PAIR_MS), 1);
	CHECK_EQ(batch_wait(&p, &b), 0);
	batch_on_disk(&p, &b);
	CHECK_EQ(ibnbd_q_submit(p.q, &r, 1), 1);
	CHECK_EQ(ibnbd_q_poll(p.q, done, 32, PAIR_MS), 1);
	CHECK(done[0] == &more);
	CHECK_EQ(more.err, 0);
	pair_end(&p);
}

#define THREADS	6

static bool enough;

static void *hammer(void *arg)
{
	u8 data[DISKSRV_BLOCK], back[DISKSRV_BLOCK];
	uintptr_t nr = (uintptr_t)arg, bad = 0;
	unsigned int i;

	for (i = 0; !__atomic_load_n(&enough, __ATOMIC_ACQUIRE) && !bad; i++) {
		memset(data, (int)(nr * 40 + i), sizeof(data));
		bad += ibnbd_write(p.q, data, sizeof(data), nr * DISKSRV_BLOCK, i & 1, NULL) != 0;
		bad += ibnbd_flush(p.q, NULL) != 0;
		bad += ibnbd_read(p.q, back, sizeof(back), nr * DISKSRV_BLOCK, NULL) != 0;
		bad += memcmp(data, back, sizeof(data)) != 0;
	}
	return (void *)bad;
}

/* More threads than slots wait on one queue, while its path is cut again and again. */
UNIT_TEST(threads_wait_on_one_queue)
{
	const struct ibtrs_clt_opts o = { .q_depth = 3 };
	pthread_t thread[THREADS];
	uintptr_t i;
	void *bad;

	pair_prepare(&p);
	CHECK_EQ(pair_open(&p, "db1", &o, NULL), 0);
	CHECK_EQ(pair_info(&p).q_depth, 3);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, hammer, (void *)i))
			abort();
	for (i = 0; i < 6; i++) {
		usleep(20000);
		disksrv_cut(&p.s);
		pair_until_opened(&p, (u32)i + 2);
	}
	__atomic_store_n(&enough, true, __ATOMIC_RELEASE);
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &bad);
		CHECK(!bad);
	}
	CHECK(SRV(&p, writes) > THREADS);
	pair_end(&p);
}
