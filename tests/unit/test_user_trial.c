// SPDX-License-Identifier: GPL-2.0-only
/* Trials (protocol 8.4): a path that carries small messages alone is not used. */
#include "fake.h"

#define TRY	IBTRS_CLT_TRY_STREAMS
#define FULL	4096u			/* largest request of the worlds here */

static const struct ibtrs_srv_opts opts = { .queue_depth = 32, .max_io_size = FULL };

static struct ibtrs_path_info path_info(struct world *w, unsigned int path)
{
	struct ibtrs_path_info i = { .size = sizeof(i) };

	CHECK_EQ(ibtrs_clt_path_info(w->clt, path, &i), 0);
	return i;
}

static int small_write(struct world *w)
{
	struct world_hdr h;
	struct ibtrs_io io = world_io(IBTRS_IO_WRITE, &h, 0, NULL, 0);

	return world_do(w, &io);
}

UNIT_TEST(a_trial_passes)
{
	static struct world w;
	long moved[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		UNIT_ROW("%s", i ? "tried" : "not tried");
		world_start(&w, &opts, 2, 3, i ? TRY : 0);
		w.grain = 300;
		CHECK(world_until_up(&w, 2));
		moved[i] = w.moved[0];
		CHECK_EQ(w.executed, 0);
		CHECK_EQ(small_write(&w), 0);
		CHECK_EQ(path_info(&w, 0).established, 1);
		world_end(&w);
	}
	/* three connections, there and back */
	CHECK(moved[1] - moved[0] >= 6 * (long)FULL);
	CHECK(moved[1] - moved[0] < 7 * (long)FULL);
}

/* Full-size packets are lost on one of two paths: the other one has all requests. */
UNIT_TEST(a_path_that_loses_large_packets)
{
	static const char words[] = "full-size packets are lost: is the MTU the same on both hosts and all switches between?";
	struct ibtrs_path_info info;
	static struct world w;
	unsigned int i;

	world_start(&w, &opts, 2, 1, TRY);
	w.mtu[0] = 1000;
	CHECK(world_until_up(&w, 1));
	CHECK_STR(path_info(&w, 0).state, "connecting");
	CHECK_EQ(path_info(&w, 1).established, 1);
	CHECK_EQ(small_write(&w), 0);
	world_turns(&w, 2000);
	CHECK_STR(path_info(&w, 0).state, "connecting");
	world_turns(&w, 1000);
	info = path_info(&w, 0);
	CHECK_EQ(info.established, 0);
	CHECK_EQ(info.err, -EMSGSIZE);
	CHECK_STR(info.why, words);
	CHECK_EQ(world_up(&w), 1);
	/* never, however often it is tried; and as soon as it can be */
	for (i = 0; i < 20; i++) {
		world_turns(&w, 1000);
		CHECK_EQ(world_up(&w), 1);
		CHECK_EQ(small_write(&w), 0);
	}
	w.mtu[0] = 0;
	for (i = 0; i < 100 && world_up(&w) < 2; i++)
		world_turns(&w, 1000);
	CHECK_EQ(world_up(&w), 2);
	world_end(&w);
}

UNIT_TEST(each_connection_is_tried)
{
	static struct world w;

	world_start(&w, &opts, 1, 3, TRY);
	w.mtu[0] = 1000;
	w.mtu_cid = 3;
	world_turns(&w, 2400);
	CHECK_STR(path_info(&w, 0).state, "connecting");
	world_turns(&w, 200);
	CHECK_EQ(path_info(&w, 0).established, 0);
	CHECK_EQ(path_info(&w, 0).err, -EMSGSIZE);
	world_end(&w);
}

/* The only path of a session that was open is used nevertheless: small requests come through. */
UNIT_TEST(the_only_path_loses_large_packets)
{
	static struct world w;
	unsigned int i;

	world_start(&w, &opts, 1, 1, TRY);
	CHECK(world_until_up(&w, 1));
	world_cut(&w, 0);
	w.mtu[0] = 1000;
	for (i = 0; i < 20 && path_info(&w, 0).err != -EMSGSIZE; i++)
		world_turns(&w, 500);
	CHECK_EQ(path_info(&w, 0).err, -EMSGSIZE);
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(path_info(&w, 0).established, 2);
	CHECK_EQ(small_write(&w), 0);
	world_end(&w);

	/* one that never was is not opened */
	world_start(&w, &opts, 1, 1, TRY);
	w.mtu[0] = 1000;
	for (i = 0; i < 30; i++)
		world_turns(&w, 1000);
	CHECK_EQ(path_info(&w, 0).established, 0);
	CHECK_EQ(path_info(&w, 0).err, -EMSGSIZE);
	world_end(&w);
}

/* A path that is cut after any byte of its trial comes back, and is tried once more. */
UNIT_TEST(a_path_is_cut_in_its_trial)
{
	static struct world w;
	long cut, all = 0;

	for (cut = -1; cut < all; cut = cut < 0 ? 1 : cut + 397) {
		UNIT_ROW("cut after %ld bytes", cut);
		world_start(&w, &opts, 1, 2, TRY);
		w.grain = 700;
		w.budget[0] = cut;
		if (!CHECK(world_until_up(&w, 1)) || !CHECK_EQ(small_write(&w), 0))
			abort();
		if (cut < 0)
			all = w.moved[0];
		else
			CHECK(w.moved[0] >= all);
		CHECK_EQ(w.executed, 1);
		world_end(&w);
	}
	CHECK(all > 4 * (long)FULL);
}

/* ---- a server that lies ------------------------------------------------- */

/* The client has sent its trial. Return: where the data are to go. */
static struct ibtrs_desc fake_trial(struct fake *f)
{
	static const uint8_t none[IO];
	struct ibtrs_desc d = {};
	const struct ibtrs_wire_trial *w = (const void *)(f->conn[1].data + IO);

	fake_open_flags(f, TRY);
	if (!fake_handshake(f, false, IBTRS_EXT_FENCE | IBTRS_EXT_TRIAL))
		return d;
	CHECK_STR(fake_info(f).state, "connecting");
	CHECK_EQ(raw_recv(&f->conn[1]), 1);
	CHECK_EQ(f->conn[1].f.op, IBTRS_FRAME_WRITE_IMM);
	CHECK_EQ(f->conn[1].f.imm, ibtrs_imm_trial(0, IO, ibtrs_imm_off_bits(QD)));
	CHECK_EQ(f->conn[1].f.key, KEY);
	CHECK_EQ(f->conn[1].f.addr, 0);
	CHECK_EQ(f->conn[1].f.len, IO + 24);
	CHECK_MEM(f->conn[1].data, none, IO);
	CHECK_EQ(le16_to_cpu(w->type), IBTRS_MSG_TRIAL);
	ibtrs_msg_desc_decode(&w->desc, &d);
	CHECK_EQ(d.len, IO);
	CHECK_EQ(raw_recv(&f->conn[0]), 0);
	return d;
}

static void answer(struct fake *f, unsigned int cid, uint32_t imm, const struct ibtrs_desc *d,
		   uint32_t len)
{
	raw_send(&f->conn[cid], IBTRS_FRAME_WRITE_IMM, imm, d->rkey, d->addr, f->data, len);
	fake_step(f);
}

UNIT_TEST(an_answer_to_a_trial)
{
	static struct fake f;
	struct ibtrs_desc d = fake_trial(&f);
	uint32_t slot;

	answer(&f, 1, 0xb0000000, &d, IO);
	CHECK(fake_is_up(&f));
	CHECK_EQ(raw_recv(&f.conn[0]), 1);
	CHECK_EQ(f.conn[0].f.imm, 0x80000000);
	/* its slot is free: the first request has it, with the first token */
	slot = fake_request(&f, IBTRS_IO_WRITE, 0);
	CHECK_EQ(slot, 0);
	raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, rsp(slot, 0), 0, 0, NULL, 0);
	fake_done(&f, 0);
	/* once more: the window is shut */
	answer(&f, 1, 0xb0000000, &d, 8);
	fake_request(&f, IBTRS_IO_WRITE, 0);
	CHECK_EQ(ibtrs_q_poll(f.q, (struct ibtrs_io *[1]){ NULL }, 1, 0), 0);
	fake_step(&f);
	CHECK(!fake_is_up(&f));
	fake_close(&f);
}

UNIT_TEST(wrong_answers_to_a_trial)
{
	static const struct {
		const char *name;
		unsigned int cid;
		uint32_t imm;
		uint32_t len;
		int err;
	} rows[] = {
		{ "too short", 1, 0xb0000000, IO - 1, -EPROTO },
		{ "empty", 1, 0xb0000000, 0, -EPROTO },
		{ "an answer to a request", 1, 0x10000000, 0, -EPROTO },
		{ "on the service connection", 0, 0xb0000000, 8, -EACCES },
		{ "too long", 1, 0xb0000000, IO + 1, -EACCES },
	};
	static struct fake f;
	struct ibtrs_desc d;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static uint8_t data[IO + 1];

		UNIT_ROW("%s", rows[i].name);
		d = fake_trial(&f);
		raw_send(&f.conn[rows[i].cid], IBTRS_FRAME_WRITE_IMM, rows[i].imm, d.rkey, d.addr,
			 data, rows[i].len);
		fake_step(&f);
		CHECK_STR(fake_info(&f).state, "waiting");
		CHECK_EQ(fake_info(&f).err, rows[i].err);
		fake_close(&f);
	}
}

/* No answer: the network, or its large packets? A heartbeat tells. */
UNIT_TEST(a_trial_that_is_late)
{
	static struct fake f;
	struct ibtrs_desc d;
	unsigned int how;

	for (how = 0; how < 4; how++) {
		UNIT_ROW("%u", how);
		d = fake_trial(&f);
		/* the server's heart beats, and is answered, but proves nothing yet */
		raw_send(&f.conn[0], IBTRS_FRAME_WRITE_IMM, 0x80000000, 0, 0, NULL, 0);
		fake_step(&f);
		CHECK_EQ(raw_recv(&f.conn[0]), 1);
		CHECK_EQ(f.conn[0].f.imm, 0x90000000);
		f.now += 1998;		/* 2 s from INFO_RSP, but one */
		fake_step(&f);
		CHECK_EQ(raw_recv(&f.conn[0]), 0);
		f.now += 1;
		fake_step(&f);
		CHECK_EQ(raw_recv(&f.conn[0]), 1);
		CHECK_EQ(f.conn[0].f.imm, 0x80000000);
		f.now += 400;
		if (how == 1)
			raw_send(&f.conn[0], IBTRS_FRAME_WRITE_IMM, 0x90000000, 0, 0, NULL, 0);
		if (how == 2)		/* slow, and not too slow */
			raw_send(&f.conn[1], IBTRS_FRAME_WRITE_IMM, 0xb0000000, d.rkey, d.addr,
				 f.data, IO);
		if (how == 3)
			close(f.conn[1].fd), f.conn[1].fd = -1;
		fake_step(&f);
		/* A path that has ended is tried again soon. */
		f.now += how == 3 ? 0 : 100;
		fake_step(&f);
		if (how == 2) {
			CHECK(fake_is_up(&f));
		} else {
			CHECK_STR(fake_info(&f).state, "waiting");
			CHECK_EQ(fake_info(&f).err, how == 0 ? -ETIMEDOUT :
				 how == 1 ? -EMSGSIZE : -ECONNRESET);
		}
		fake_close(&f);
	}
}

/* A server that does not know trials gets none. */
UNIT_TEST(a_server_without_trials)
{
	static struct fake f;

	fake_open_flags(&f, TRY);
	CHECK(fake_handshake(&f, false, IBTRS_EXT_FENCE));
	CHECK(fake_is_up(&f));
	CHECK_EQ(raw_recv(&f.conn[1]), 0);
	fake_close(&f);
}

/* ---- a client that lies ------------------------------------------------- */

static void raw_trial(struct raw_path *p, uint32_t slot, uint32_t off, uint16_t type, uint32_t len)
{
	static uint8_t buf[3 * 4096 + 64];
	const struct ibtrs_desc d = { .addr = 0x1122334455667788, .rkey = 0x99aabbcc, .len = len };
	struct ibtrs_wire_trial w;
	unsigned int i;

	for (i = 0; i < off && i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 7 + 3);
	ibtrs_trial_encode(&w, &d);
	w.type = cpu_to_le16(type);
	if (off + sizeof(w) <= p->chunk)
		memcpy(buf + off, &w, sizeof(w));
	raw_send(&p->r, IBTRS_FRAME_WRITE_IMM, ibtrs_imm_trial(slot, off, p->off_bits), p->key,
		 (uint64_t)slot * p->chunk, buf,
		 off + sizeof(w) <= p->chunk ? off + (uint32_t)sizeof(w) : p->chunk);
	raw_poll(p);
}

UNIT_TEST(a_server_answers_trials)
{
	static const struct {
		const char *name;
		uint8_t ext;
		uint32_t slot, off, len;
		uint16_t type;
		bool good;
	} rows[] = {
		{ "good", IBTRS_EXT_TRIAL, 3, 4096, 4096, 7, true },
		{ "small", IBTRS_EXT_TRIAL, 15, 1, 1, 7, true },
		{ "not negotiated", IBTRS_EXT_FENCE, 3, 4096, 4096, 7, false },
		{ "another type", IBTRS_EXT_TRIAL, 3, 4096, 4096, 3, false },
		{ "no data", IBTRS_EXT_TRIAL, 3, 0, 0, 7, false },
		{ "too much", IBTRS_EXT_TRIAL, 3, 4097, 4097, 7, false },
		{ "another length", IBTRS_EXT_TRIAL, 3, 4096, 4095, 7, false },
		{ "beyond the chunk", IBTRS_EXT_TRIAL, 3, 8169, 8169, 7, false },
		{ "far beyond all chunks", IBTRS_EXT_TRIAL, 15, 0xffffff, 0xffffff, 7, false },
	};
	struct ibtrs_srv_opts o = { .size = sizeof(o), .queue_depth = 16, .max_io_size = FULL };
	struct raw_path p;
	struct ibtrs_srv *srv;
	unsigned int i, k;

	CHECK_EQ(ibtrs_srv_new(&o, &srv, NULL), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		UNIT_ROW("%s", rows[i].name);
		if (!CHECK(raw_path_up(&p, srv, rows[i].ext, (uint8_t)(i + 1))))
			return;
		CHECK_EQ(p.chunk, 8192);
		raw_trial(&p, rows[i].slot, rows[i].off, rows[i].type, rows[i].len);
		if (!rows[i].good) {
			CHECK_EQ(raw_recv(&p.r), -1);
			raw_path_end(&p);
			continue;
		}
		/* twice: no slot is taken */
		for (k = 0; k < 2; k++) {
			CHECK_EQ(raw_recv(&p.r), 1);
			CHECK_EQ(p.r.f.op, IBTRS_FRAME_WRITE_IMM);
			CHECK_EQ(p.r.f.imm, 0xb0000000);
			CHECK_EQ(p.r.f.addr, 0x1122334455667788);
			CHECK_EQ(p.r.f.key, 0x99aabbcc);
			CHECK_EQ(p.r.f.len, rows[i].len);
			CHECK_EQ(p.r.data[0], 3);
			CHECK_EQ(p.r.data[rows[i].len - 1], (uint8_t)((rows[i].len - 1) * 7 + 3));
			if (!k)
				raw_trial(&p, rows[i].slot, rows[i].off, 7, rows[i].len);
		}
		raw_path_end(&p);
	}
	CHECK_EQ(ibtrs_srv_free(srv), 0);
}
