// SPDX-License-Identifier: GPL-2.0-only
/* A client of libibtrs whose server lies, and one that locks its chunks (NEW_RKEY). */
#include <pthread.h>
#include "ibtrs/logic/fence.h"
#include "fake.h"

UNIT_TEST(new_rkey)
{
	struct ibtrs_wire_rkey_rsp w;
	uint32_t slot, round;
	struct fake f;

	if (!fake_up(&f, true, 0))
		return;
	for (round = 0; round < 3; round++) {
		UNIT_ROW("round %u", round);
		slot = fake_request(&f, IBTRS_IO_WRITE, 100);
		CHECK_EQ(slot, 0);
		CHECK_EQ(f.conn[1].f.key, round ? 0x9000 + round - 1 : KEY);
		CHECK_EQ(f.conn[1].f.addr, 0);
		ibtrs_msg_rkey_encode(&w, (uint16_t)slot, 0x9000 + round);
		raw_send(&f.conn[1], IBTRS_FRAME_SEND_IMM, rsp(slot, 0), 0, 0, &w, sizeof(w));
		fake_done(&f, 0);
	}
	/* a key for another slot */
	slot = fake_request(&f, IBTRS_IO_WRITE, 100);
	ibtrs_msg_rkey_encode(&w, (uint16_t)(slot + 1), 0x9999);
	raw_send(&f.conn[1], IBTRS_FRAME_SEND_IMM, rsp(slot, 0), 0, 0, &w, sizeof(w));
	CHECK_EQ(ibtrs_q_poll(f.q, (struct ibtrs_io *[1]){}, 1, 0), 0);
	fake_step(&f);
	CHECK(!fake_is_up(&f));
	CHECK_STR(fake_info(&f).why, "key response names another slot than its immediate");
	fake_close(&f);
}

struct lie {
	const char *name;
	bool new_rkey;
	uint16_t op;
	uint32_t imm;		/* 0: success of the slot in flight */
	uint32_t len;
	const char *why;
};

static const struct lie lies[] = {
	{ "slot of nobody", false, IBTRS_FRAME_WRITE_IMM, 0x10007fff, 0,
	  "an answer for a slot that is not this queue's" },
	{ "slot of the service queue", false, IBTRS_FRAME_WRITE_IMM, 0x1000000f, 0,
	  "an answer for a slot that is not this queue's" },
	{ "slot that is not in flight", false, IBTRS_FRAME_WRITE_IMM, 0x10000001, 0,
	  "an answer for a slot that is not in flight on its connection" },
	{ "invalidation", false, IBTRS_FRAME_WRITE_IMM, 0x20000000, 0,
	  "an invalidation that was not asked for" },
	{ "SEND with invalidate", false, IBTRS_FRAME_SEND_INV, 0x10000000, 0,
	  "a message that means nothing here" },
	{ "SEND", false, IBTRS_FRAME_SEND, 0x10000000, 8, "a message that means nothing here" },
	{ "accepted again", false, IBTRS_FRAME_REP, 0x10000000, 56,
	  "a message that means nothing here" },
	{ "answer with a payload", false, IBTRS_FRAME_SEND_IMM, 0x10000000, 8,
	  "an answer with a payload" },
	{ "bare answer", true, IBTRS_FRAME_WRITE_IMM, 0x10000000, 0, "an answer without a new key" },
	{ "short key", true, IBTRS_FRAME_SEND_IMM, 0x10000000, 7, "key response is too short" },
	{ "long key", true, IBTRS_FRAME_SEND_IMM, 0x10000000, 513, "a message is longer than allowed" },
	{ "write without a key", false, IBTRS_FRAME_WRITE_IMM, 0x10000000, 1,
	  "the peer wrote outside of the memory it was given" },
	{ "stale", false, IBTRS_FRAME_WRITE_IMM, 0x10000000 | ESTALE << 19, 0,
	  "the server treats a current request as stale" },
};

UNIT_TEST(lies_of_a_server)
{
	static const uint8_t zeros[600];
	struct ibtrs_io *done;
	struct fake f;
	unsigned int i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const struct lie *l = &lies[i];

		UNIT_ROW("%s", l->name);
		if (!fake_up(&f, l->new_rkey, IBTRS_EXT_FENCE))
			break;
		CHECK_EQ(fake_request(&f, IBTRS_IO_WRITE, 100), 0);
		raw_send(&f.conn[1], l->op, l->imm, 0, 0, zeros, l->len);
		CHECK_EQ(ibtrs_q_poll(f.q, &done, 1, 0), 0);
		fake_step(&f);
		CHECK(!fake_is_up(&f));
		CHECK_STR(fake_info(&f).why, l->why);
		/* the request waits for another path */
		CHECK_EQ(f.io.err, 1);
		CHECK_EQ(ibtrs_q_abort(f.q, -EIO), 1);
		fake_done(&f, -EIO);
		fake_close(&f);
	}
}

UNIT_TEST(the_window_of_a_read)
{
	uint8_t back[64];
	struct ibtrs_desc d, old;
	struct fake f;
	uint32_t slot, i;

	memset(back, 0x5a, sizeof(back));
	for (i = 0; i < 6; i++) {
		UNIT_ROW("case %u", i);
		if (!fake_up(&f, false, IBTRS_EXT_FENCE))
			return;
		/* one read as it should be; its data may come in pieces before */
		slot = fake_request(&f, IBTRS_IO_READ, 64);
		old = fake_desc(&f, true);
		CHECK_EQ(old.len, 64);
		CHECK_EQ(old.addr, 0);
		raw_send(&f.conn[1], IBTRS_FRAME_WRITE, 0, old.rkey, 32, back, 32);
		raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, rsp(slot, 0), old.rkey, 0, back, 64);
		fake_done(&f, 0);
		CHECK_MEM(f.data, back, 64);
		memset(f.data, 0, 64);
		if (i == 0) {
			/* the key is void now */
			raw_send(&f.conn[1], IBTRS_FRAME_WRITE, 0, old.rkey, 0, back, 1);
		} else {
			slot = fake_request(&f, IBTRS_IO_READ, 64);
			d = fake_desc(&f, true);
			CHECK(d.rkey != old.rkey);
			if (i == 1)
				d.rkey = old.rkey;
			raw_send(i == 5 ? &f.conn[0] : &f.conn[1], IBTRS_FRAME_WRITE, 0,
				 i == 4 ? d.rkey + 1 : d.rkey, i == 2 ? 33 : i == 3 ? ~0ull : 0,
				 back, 32);
		}
		CHECK_EQ(ibtrs_q_poll(f.q, (struct ibtrs_io *[1]){}, 1, 0), 0);
		fake_step(&f);
		CHECK(!fake_is_up(&f));
		CHECK_STR(fake_info(&f).why, "the peer wrote outside of the memory it was given");
		CHECK_EQ(fake_info(&f).err, -EACCES);
		CHECK_EQ(f.data[0], 0);
		CHECK_EQ(f.data[63], 0);
		fake_close(&f);
	}
}

/* Law L17: success without data is an error, where the server is ours. */
UNIT_TEST(a_read_delivers_all_its_data)
{
	struct ibtrs_desc d;
	struct fake f;
	uint32_t slot, ext;

	for (ext = 0; ext < 2; ext++) {
		UNIT_ROW("FENCE %u", ext);
		if (!fake_up(&f, false, ext ? IBTRS_EXT_FENCE : 0))
			return;
		slot = fake_request(&f, IBTRS_IO_READ, 64);
		d = fake_desc(&f, ext);
		raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, rsp(slot, 0), d.rkey, 0, f.conn[1].data,
			 63);
		fake_done(&f, ext ? -EIO : 0);
		CHECK(fake_is_up(&f));
		fake_close(&f);
	}
}

/* The answer to a request of which a part is still to be sent must not give its memory back. */
UNIT_TEST(an_answer_that_is_too_early)
{
	struct ibtrs_conn_rsp small = grant(false, 0);
	struct ibtrs_io *p, *done;
	struct fake f;

	if (!fake_up(&f, false, 0))
		return;
	fake_close(&f);
	/* once more, with a send buffer that is too small for a request */
	fake_open(&f);
	f.small = 1;
	if (!CHECK(fake_accept(&f, 0, &small)) || !CHECK(fake_accept(&f, 1, &small)))
		return;
	CHECK_EQ(raw_recv(&f.conn[0]), 1);
	fake_info_rsp(&f, QD, CHUNK, 0);
	f.io = world_io(IBTRS_IO_WRITE, &f.h, 1, f.data, IO);
	f.io.err = 1;
	p = &f.io;
	CHECK_EQ(ibtrs_q_submit(f.q, &p, 1), 1);
	raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, rsp(0, 0), 0, 0, NULL, 0);
	CHECK_EQ(ibtrs_q_poll(f.q, &done, 1, 0), 0);
	fake_step(&f);
	CHECK_STR(fake_info(&f).why, "an answer came to a request that was not sent");
	CHECK_EQ(f.io.err, 1);
	fake_close(&f);
}

/* Another host has counted in this session's name: the client catches up. */
UNIT_TEST(behind)
{
	uint64_t last = 1ull << 30, token;
	struct ibtrs_fence_slot s = { .last = last };
	unsigned int n;
	struct fake f;
	uint32_t slot;

	if (!fake_up(&f, false, IBTRS_EXT_FENCE))
		return;
	slot = fake_request(&f, IBTRS_IO_WRITE, 10);
	for (n = 0; n < 64; n++) {
		/* WRITE_FENCED has its token at 8 */
		memcpy(&token, f.conn[1].data + 10 + sizeof(f.h) + 8, sizeof(token));
		if (ibtrs_fence_arrive(&s, true, le64_to_cpu(token)) != IBTRS_FENCE_STALE)
			break;
		raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM,
			 rsp(slot, ibtrs_fence_behind(&s, true, le64_to_cpu(token))), 0, 0,
			 NULL, 0);
		CHECK_EQ(ibtrs_q_poll(f.q, (struct ibtrs_io *[1]){}, 1, 0), 0);
		if (!CHECK_EQ(raw_recv(&f.conn[1]), 1))
			break;
	}
	CHECK(n > 2);
	CHECK(n <= 41);
	CHECK(s.running);
	raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, rsp(slot, 0), 0, 0, NULL, 0);
	fake_done(&f, 0);
	CHECK(fake_is_up(&f));
	fake_close(&f);
}

/* A server that never gets enough of it: the request waits for another path, once. */
UNIT_TEST(behind_for_ever)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct ibtrs_io *done;
	unsigned int n;
	struct fake f;
	uint32_t slot;

	if (!fake_up(&f, false, IBTRS_EXT_FENCE))
		return;
	slot = fake_request(&f, IBTRS_IO_WRITE, 10);
	for (n = 0; n < 100; n++) {
		raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, rsp(slot, -IBTRS_FENCE_BEHIND - 3), 0,
			 0, NULL, 0);
		CHECK_EQ(ibtrs_q_poll(f.q, &done, 1, 0), 0);
		if (raw_recv(&f.conn[1]) != 1)
			break;
	}
	CHECK_EQ(n, 63);
	fake_step(&f);
	CHECK_STR(fake_info(&f).why, "the server treats each request of a slot as stale");
	CHECK_EQ(ibtrs_clt_info(f.clt, &info), 0);
	CHECK_EQ(info.parked, 1);
	CHECK_EQ(ibtrs_q_abort(f.q, -EIO), 1);
	fake_done(&f, -EIO);
	CHECK_EQ(ibtrs_q_poll(f.q, &done, 1, 0), 0);
	fake_close(&f);
}

UNIT_TEST(grants_that_are_refused)
{
	static const struct {
		struct ibtrs_limits limits;
		uint16_t sg_cnt;
		uint32_t len, cut;
		const char *why;
	} rows[] = {
		{ { .queue_depth = 0, .max_io_size = IO, .max_hdr_size = 4096 }, 0, 0, 0,
		  "server announces a queue depth of 0" },
		{ { .queue_depth = 65535, .max_io_size = IO, .max_hdr_size = 4096 }, 0, 0, 0,
		  "queue depth and chunk size of the server do not fit the immediate" },
		{ { .queue_depth = 2, .max_io_size = IO, .max_hdr_size = 287 }, 0, 0, 0,
		  "server announces a header size outside 288 bytes .. 1 MiB" },
		{ { .queue_depth = QD, .max_io_size = IO, .max_hdr_size = 4096 }, QD, CHUNK - 1, 0,
		  "chunk descriptor is not a whole number of chunks" },
		{ { .queue_depth = QD, .max_io_size = IO, .max_hdr_size = 4096 }, 5, CHUNK, 0,
		  "number of chunk descriptors does not divide the queue depth" },
		{ { .queue_depth = QD, .max_io_size = IO, .max_hdr_size = 4096 }, QD, CHUNK, 1,
		  "info response ends before its last descriptor" },
	};
	struct fake f;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibtrs_conn_rsp rsp = { .limits = rows[i].limits };

		UNIT_ROW("%s", rows[i].why);
		fake_open(&f);
		if (CHECK(fake_accept(&f, 0, &rsp)) && rows[i].sg_cnt &&
		    CHECK(fake_accept(&f, 1, &rsp))) {
			CHECK_EQ(raw_recv(&f.conn[0]), 1);
			fake_info_rsp(&f, rows[i].sg_cnt, rows[i].len, rows[i].cut);
		}
		CHECK(!fake_is_up(&f));
		CHECK_EQ(fake_info(&f).err, -EPROTO);
		CHECK_STR(fake_info(&f).why, rows[i].why);
		fake_close(&f);
	}
}

static void *hang_up(void *arg)
{
	struct fake *f = arg;

	usleep(20000);
	shutdown(f->conn[0].fd, SHUT_RDWR);
	return NULL;
}

/* A call is sent once: when its path is lost, it ends. */
UNIT_TEST(a_call_whose_path_is_lost)
{
	uint8_t reply[8] = { 0 };
	pthread_t thread;
	struct fake f;

	if (!fake_up(&f, false, IBTRS_EXT_FENCE))
		return;
	CHECK_EQ(pthread_create(&thread, NULL, hang_up, &f), 0);
	CHECK_EQ(ibtrs_clt_call(f.clt, "call", 4, reply, sizeof(reply), 5000), -ECONNRESET);
	pthread_join(thread, NULL);
	CHECK(!fake_is_up(&f));
	CHECK_EQ(ibtrs_clt_call(f.clt, "call", 4, reply, sizeof(reply), 5000), -ENOTCONN);
	fake_close(&f);
}
