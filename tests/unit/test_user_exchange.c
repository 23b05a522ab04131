// SPDX-License-Identifier: GPL-2.0-only
/* Whole exchanges of libibtrs: client and server in one process, over the stream. */
#include "user.h"

#define SAYS "the server says: "

static void fill(uint8_t *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 131 + i * 7);
}

UNIT_TEST(connect_write_read)
{
	uint8_t out[WORLD_BLOCK], in[WORLD_BLOCK];
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct world_hdr h;
	struct ibtrs_io io;
	struct world w;
	unsigned int i;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(ibtrs_clt_info(w.clt, &info), 0);
	CHECK_EQ(info.queue_depth, 32);
	CHECK_EQ(info.q_depth, 28);
	CHECK_EQ(info.max_io_size, 126976);
	CHECK_EQ(info.ups, 1);
	CHECK(info.life != 0);
	for (i = 0; i < 100; i++) {
		UNIT_ROW("round %u", i);
		fill(out, sizeof(out), i);
		io = world_io(IBTRS_IO_WRITE, &h, i % WORLD_BLOCKS, out, sizeof(out));
		CHECK_EQ(world_do(&w, &io), 0);
		CHECK_MEM(w.disk[i % WORLD_BLOCKS], out, sizeof(out));
		memset(in, 0, sizeof(in));
		io = world_io(IBTRS_IO_READ, &h, i % WORLD_BLOCKS, in, sizeof(in));
		CHECK_EQ(world_do(&w, &io), 0);
		CHECK_MEM(in, out, sizeof(out));
	}
	CHECK_EQ(w.executed, 200);
	/* without data, both ways; then an error */
	io = world_io(IBTRS_IO_READ, &h, 0, NULL, 0);
	CHECK_EQ(world_do(&w, &io), 0);
	io = world_io(IBTRS_IO_WRITE, &h, 0, NULL, 0);
	CHECK_EQ(world_do(&w, &io), 0);
	w.answer = -EROFS;
	memset(in, 0xaa, sizeof(in));
	io = world_io(IBTRS_IO_READ, &h, 0, in, sizeof(in));
	CHECK_EQ(world_do(&w, &io), -EROFS);
	CHECK_EQ(in[0], 0xaa);
	world_end(&w);
}

UNIT_TEST(what_does_not_fit_is_refused)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct ibtrs_io io, *p = &io;
	struct ibtrs_q *q;
	struct world_hdr h;
	struct world w;
	uint8_t b[8];

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(ibtrs_clt_info(w.clt, &info), 0);
	q = ibtrs_clt_q(w.clt, 0);
	CHECK(!ibtrs_clt_q(w.clt, 1));
	io = world_io(IBTRS_IO_WRITE, &h, 0, b, info.max_io_size + 1);
	CHECK_EQ(ibtrs_q_submit(q, &p, 1), -EINVAL);
	io = world_io(IBTRS_IO_WRITE, &h, 0, NULL, 8);
	CHECK_EQ(ibtrs_q_submit(q, &p, 1), -EINVAL);
	io = world_io(IBTRS_IO_WRITE, &h, 0, b, 8);
	io.hdr_len = 3;
	CHECK_EQ(ibtrs_q_submit(q, &p, 1), -EINVAL);
	io.hdr_len = (uint16_t)(info.max_hdr_size + 1);
	CHECK_EQ(ibtrs_q_submit(q, &p, 1), -EINVAL);
	io.hdr_len = sizeof(h);
	io.dir = 2;
	CHECK_EQ(ibtrs_q_submit(q, &p, 1), -EINVAL);
	CHECK_EQ(w.executed, 0);
	world_end(&w);
}

/* The largest request and header, over a wire that carries 1000 bytes at a time. */
UNIT_TEST(largest)
{
	static uint8_t data[126976], back[126976], hdr[4096];
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct ibtrs_io io, *p = &io, *done;
	struct ibtrs_op *op = NULL;
	struct ibtrs_q *q;
	struct world w;
	unsigned int i, dir;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(ibtrs_clt_info(w.clt, &info), 0);
	q = ibtrs_clt_q(w.clt, 0);
	w.grain = 1000;
	w.late = true;
	fill(data, sizeof(data), 3);
	fill(hdr, sizeof(hdr), 4);
	for (dir = IBTRS_IO_READ; dir <= IBTRS_IO_WRITE; dir++) {
		UNIT_ROW("direction %u", dir);
		io = (struct ibtrs_io){
			.dir = (uint8_t)dir, .hdr = hdr, .hdr_len = (uint16_t)info.max_hdr_size,
			.data = dir == IBTRS_IO_READ ? back : data, .len = sizeof(data),
		};
		CHECK_EQ(ibtrs_q_submit(q, &p, 1), 1);
		for (i = 0; i < 2000 && !w.nr_kept; i++) {
			world_turn(&w);
			ibtrs_q_poll(q, &done, 1, 0);
		}
		if (!CHECK_EQ(w.nr_kept, 1))
			break;
		op = w.kept[--w.nr_kept];
		CHECK_EQ(op->dir, dir);
		CHECK_EQ(op->len, sizeof(data));
		CHECK_EQ(op->hdr_len, info.max_hdr_size);
		CHECK_MEM(op->hdr, hdr, info.max_hdr_size);
		CHECK(!op->service);
		CHECK_STR(op->name, "test");
		if (dir == IBTRS_IO_READ)
			memcpy(op->data, data, sizeof(data));
		else
			CHECK_MEM(op->data, data, sizeof(data));
		ibtrs_op_reply(op, 0);
		for (i = 0; i < 2000 && ibtrs_q_poll(q, &done, 1, 0) != 1; i++)
			world_turn(&w);
		CHECK_EQ(io.err, 0);
	}
	CHECK_MEM(back, data, sizeof(data));
	world_end(&w);
}

/* A full queue takes no more, and many requests end in any order. */
UNIT_TEST(full_queue_and_late_replies)
{
	struct ibtrs_io io[40], *p[40], *done[40];
	uint8_t data[40][WORLD_BLOCK];
	struct world_hdr h[40];
	struct ibtrs_q *q;
	unsigned int i, k, got = 0;
	struct world w;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	q = ibtrs_clt_q(w.clt, 0);
	for (i = 0; i < 40; i++) {
		fill(data[i], WORLD_BLOCK, i);
		io[i] = world_io(IBTRS_IO_WRITE, &h[i], i, data[i], WORLD_BLOCK);
		p[i] = &io[i];
	}
	w.late = true;
	CHECK_EQ(ibtrs_q_submit(q, p, 40), 28);
	CHECK_EQ(ibtrs_q_submit(q, p + 28, 12), 0);
	for (i = 0; i < 100 && w.nr_kept < 28; i++)
		world_turn(&w);
	CHECK_EQ(w.nr_kept, 28);
	CHECK_EQ(ibtrs_q_poll(q, done, 40, 0), 0);
	/* the last one first, seconds later: heartbeats go on meanwhile */
	for (i = 0; i < 10000; i++) {
		world_turn(&w);
		ibtrs_q_poll(q, done, 40, 0);
	}
	CHECK_EQ(world_up(&w), 1);
	for (k = 28; k--;) {
		world_execute(&w, w.kept[k]);
		w.nr_kept--;
		world_turn(&w);
		world_turn(&w);
		CHECK_EQ(ibtrs_q_poll(q, done, 40, 0), 1);
		CHECK_EQ(done[0] - io, k);
		CHECK_EQ(done[0]->err, 0);
		got++;
	}
	CHECK_EQ(got, 28);
	for (i = 0; i < 28; i++)
		CHECK_MEM(w.disk[i], data[i], WORLD_BLOCK);
	world_end(&w);
}

static int admit(void *priv, const char *name, const char *peer, const char *key,
		 char why[IBTRS_WHY_LEN])
{
	if (strcmp(name, "test"))
		return 0;
	snprintf(why, IBTRS_WHY_LEN, "no session \"%s\" from %s here", name, peer);
	return -EACCES;
}

UNIT_TEST(refused_in_words)
{
	struct ibtrs_srv_opts so = { .queue_depth = 32, .admit = admit };
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct world w;
	unsigned int i;

	world_start(&w, &so, 1, 1, 0);
	for (i = 0; i < 50; i++)
		world_turn(&w);
	CHECK_EQ(world_up(&w), 0);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
	CHECK_EQ(info.err, -EACCES);
	CHECK_STR(info.why, SAYS "no session \"test\" from local here");
	CHECK_STR(info.state, "waiting");
	CHECK(info.wait_ms > 0);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 1, &info), -EINVAL);
	world_end(&w);

	/* there is memory for one path */
	so = (struct ibtrs_srv_opts){ .queue_depth = 32, .max_memory_mb = 4 };
	world_start(&w, &so, 2, 1, 0);
	for (i = 0; i < 50; i++)
		world_turn(&w);
	CHECK_EQ(world_up(&w), 1);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 1, &info), 0);
	if (info.err != -ENOMEM)	/* the other one was first */
		CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
	CHECK_EQ(info.err, -ENOMEM);
	CHECK_STR(info.why, SAYS "as much memory in use as max_memory_mb allows");
	world_end(&w);
}

UNIT_TEST(a_name_belongs_to_one_session)
{
	static const char *const names[] = { "A" };
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = "test", .dial = world_dial,
	};
	struct ibtrs_clt *second;
	char why[IBTRS_WHY_LEN];
	struct world w;
	unsigned int i;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	o.priv = &w;
	CHECK_EQ(ibtrs_clt_open(w.ctx, names, 1, &o, &second, why), 0);
	for (i = 0; i < 50; i++)
		world_turn(&w);
	CHECK_EQ(ibtrs_clt_path_info(second, 0, &info), 0);
	CHECK_EQ(info.established, 0);
	CHECK_EQ(info.err, -EBUSY);
	CHECK_STR(info.why, SAYS "an earlier session of this host has this name, and has not ended yet");
	/* free when the first one has gone */
	ibtrs_clt_close(w.clt);
	w.clt = second;
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(ibtrs_ctx_free(w.ctx), -EBUSY);
	world_end(&w);
}

UNIT_TEST(options_are_checked)
{
	static const char *const bad[] = { "10.0.0.1", "tcp:host", "tcp:10.0.0.1:70000", "unix:x",
					   "tcp:10.0.0.1:", "ip:10.0.0.1", "tcp:" };
	struct {
		struct ibtrs_clt_opts o;
		uint64_t later;
	} newer = { .o = { .size = sizeof(newer), .name = "x" }, .later = 1 };
	struct ibtrs_clt_opts o = { .size = sizeof(o), .name = "x" };
	struct ibtrs_srv_opts s = {
		.size = sizeof(s), .queue_depth = 65535, .max_io_size = 1u << 20,
	};
	char why[IBTRS_WHY_LEN] = "";
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct ibtrs_srv *srv;
	unsigned int i;

	CHECK_EQ(ibtrs_ctx_new(&ctx, NULL), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		UNIT_ROW("%s", bad[i]);
		why[0] = 0;
		CHECK(ibtrs_clt_open(ctx, &bad[i], 1, &o, &clt, why) < 0);
		CHECK(!strncmp(why, bad[i], strlen(bad[i])));
	}
	UNIT_ROW("options");
	CHECK_EQ(ibtrs_clt_open(ctx, bad, 0, &o, &clt, why), -EINVAL);
	CHECK_EQ(ibtrs_clt_open(ctx, bad, 1, &newer.o, &clt, why), -E2BIG);
	o.name = "a/b";
	CHECK_EQ(ibtrs_clt_open(ctx, bad, 1, &o, &clt, why), -EINVAL);
	CHECK_STR(why, "session: session name contains '/' or '.'");
	o.name = NULL;
	CHECK_EQ(ibtrs_clt_open(ctx, bad, 1, &o, &clt, why), -EINVAL);
	o.name = "x";
	o.policy = "fastest";
	CHECK_EQ(ibtrs_clt_open(ctx, bad, 1, &o, &clt, why), -EINVAL);
	CHECK_STR(why, "x: policy fastest: round-robin, min-inflight or min-latency is expected");
	CHECK_EQ(ibtrs_srv_new(&s, &srv, why), -EINVAL);
	CHECK_STR(why, "server: queue_depth and max_io_size are too large together");
	s.queue_depth = 1;
	CHECK_EQ(ibtrs_srv_new(&s, &srv, why), -EINVAL);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
}

/* ---- which path carries a request ----------------------------------------- */

#define SPREAD 4

/*
 * Writes SPREAD blocks from block @at on, which the server keeps. Return: how many of them went
 * over path 1: the other bytes there are fewer than a block.
 */
static long spread(struct world *w, struct world_hdr *h, struct ibtrs_io *io, unsigned int at)
{
	static uint8_t data[WORLD_BLOCK];
	unsigned int i, kept = w->nr_kept;
	long before = w->moved[1];
	struct ibtrs_io *p;

	for (i = at; i < at + SPREAD; i++) {
		io[i] = world_io(IBTRS_IO_WRITE, &h[i], i, data, sizeof(data));
		p = &io[i];
		CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w->clt, 0), &p, 1), 1);
	}
	for (i = 0; i < 1000 && w->nr_kept < kept + SPREAD; i++)
		world_turn(w);
	CHECK_EQ(w->nr_kept, kept + SPREAD);
	return (w->moved[1] - before) / WORLD_BLOCK;
}

/* Path 0 has all the requests when path 1 comes back: only round-robin gives it more. */
UNIT_TEST(policies)
{
	static const struct {
		const char *word;
		long second;
	} rows[] = {
		{ NULL, SPREAD },
		{ "min-inflight", SPREAD },
		{ "mi", SPREAD },
		{ "round-robin", SPREAD / 2 },
	};
	struct world_hdr h[2 * SPREAD];
	struct ibtrs_io io[2 * SPREAD];
	struct world w;
	unsigned int i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ibtrs_clt_opts o = { .policy = rows[i].word };

		UNIT_ROW("%s", rows[i].word ?: "default");
		world_open(&w, NULL, 2, &o);
		CHECK(world_until_up(&w, 2));
		w.late = true;
		world_cut(&w, 1);
		w.refuse_dial[1] = true;
		world_turns(&w, 10);
		CHECK_EQ(spread(&w, h, io, 0), 0);
		w.refuse_dial[1] = false;
		CHECK(world_until_up(&w, 2));
		CHECK_EQ(spread(&w, h, io, SPREAD), rows[i].second);
		world_end(&w);
	}
}

/* Heartbeats of one path take long, then those of the other one. */
UNIT_TEST(min_latency)
{
	const struct ibtrs_clt_opts o = { .policy = "min-latency" };
	struct ibtrs_path_info info[2];
	struct world_hdr h[2 * SPREAD];
	struct ibtrs_io io[2 * SPREAD];
	unsigned int slow, i;
	struct world w;

	world_open(&w, NULL, 2, &o);
	CHECK(world_until_up(&w, 2));
	w.late = true;
	for (slow = 0; slow < 2; slow++) {
		UNIT_ROW("path %u is slow", slow);
		w.frozen[slow] = true;
		world_turns(&w, 1500);
		usleep(200000);
		w.frozen[slow] = false;
		world_turns(&w, 20);
		for (i = 0; i < 2; i++) {
			info[i] = (struct ibtrs_path_info){ .size = sizeof(info[i]) };
			CHECK_EQ(ibtrs_clt_path_info(w.clt, i, &info[i]), 0);
		}
		CHECK(info[slow].latency_us >= 200000);
		CHECK(info[!slow].latency_us && info[!slow].latency_us < info[slow].latency_us);
		CHECK_EQ(spread(&w, h, io, slow * SPREAD), slow ? 0 : SPREAD);
		/* both of them are asked again */
		world_turns(&w, 2000);
	}
	world_end(&w);
}

/* ---- memory that adapters use in place ------------------------------------ */

/* Over a stream it changes nothing but who may take it back. */
UNIT_TEST(memory_of_a_session)
{
	static uint8_t data[20][WORLD_BLOCK];
	char why[IBTRS_WHY_LEN] = "";
	struct ibtrs_io io, *p = &io;
	struct world_hdr h;
	unsigned int i;
	struct world w;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, NULL, 1, 0, why), -EINVAL);
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data, 0, 0, why), -EINVAL);
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data, 1ull << 32, 0, why), -EINVAL);
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data, 1, 2, why), -EINVAL);
	CHECK_STR(why, "test: memory has 1 to 4294967295 bytes, and no flag but IBTRS_MEM_READ");
	for (i = 0; i < 16; i++)
		CHECK_EQ(ibtrs_clt_mem_add(w.clt, data[i], WORLD_BLOCK, IBTRS_MEM_READ, why), 0);
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data[16], WORLD_BLOCK, 0, why), -ENOSPC);
	CHECK_STR(why, "test: a session has 16 pieces of memory at most");
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data[3] + 1, 1, 0, why), -EEXIST);
	CHECK_EQ(ibtrs_clt_mem_del(w.clt, data[3] + 1), -ENOENT);
	CHECK_EQ(ibtrs_clt_mem_del(w.clt, data[16]), -ENOENT);
	fill(data[3], WORLD_BLOCK, 3);
	io = world_io(IBTRS_IO_WRITE, &h, 7, data[3], WORLD_BLOCK);
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), &p, 1), 1);
	CHECK_EQ(ibtrs_clt_mem_del(w.clt, data[3]), -EBUSY);
	CHECK_EQ(ibtrs_clt_mem_del(w.clt, data[4]), 0);
	CHECK_EQ(world_do_end(&w, &io), 0);
	CHECK_MEM(w.disk[7], data[3], WORLD_BLOCK);
	CHECK_EQ(ibtrs_clt_mem_del(w.clt, data[3]), 0);
	/* a read that waits for a path */
	w.refuse_dial[0] = true;
	world_cut(&w, 0);
	io = world_io(IBTRS_IO_READ, &h, 7, data[3] + 1, WORLD_BLOCK);
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), &p, 1), 1);
	world_turns(&w, 10);
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data[3], WORLD_BLOCK, IBTRS_MEM_READ, why), -EBUSY);
	CHECK_STR(why, "test: a request has data in it");
	w.refuse_dial[0] = false;
	CHECK_EQ(world_do_end(&w, &io), 0);
	CHECK_MEM(w.disk[7], data[3] + 1, WORLD_BLOCK);
	CHECK_EQ(ibtrs_clt_mem_add(w.clt, data[3], WORLD_BLOCK, IBTRS_MEM_READ, why), 0);
	world_end(&w);
}

/* ---- what a server is told of a session ---------------------------------- */

static uint64_t gone_session;
static unsigned int gone_nr;
static char peers_seen[64];

static enum ibtrs_srv_left gone(void *priv, uint64_t session)
{
	gone_session = session;
	gone_nr++;
	return IBTRS_SRV_LEFT_CLOSED;
}

static void peers_each(void *priv, const char *peer)
{
	strcat(peers_seen, peer);
	strcat(peers_seen, ";");
}

/* A session ends when its last path is lost and its last request has ended, not before. */
UNIT_TEST(session_gone)
{
	const struct ibtrs_srv_opts so = { .queue_depth = 16, .gone = gone };
	struct ibtrs_io *p, io;
	struct world_hdr h;
	uint8_t data[WORLD_BLOCK] = { 1 }, uuid[IBTRS_SESSION_UUID];
	uint64_t first;
	struct world w;

	gone_nr = 0;
	world_start(&w, &so, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	w.late = true;
	io = world_io(IBTRS_IO_WRITE, &h, 3, data, sizeof(data));
	p = &io;
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), &p, 1), 1);
	world_turns(&w, 100);
	if (!CHECK_EQ(w.nr_kept, 1))
		abort();
	first = w.kept[0]->session;
	memcpy(uuid, w.kept[0]->uuid, sizeof(uuid));
	peers_seen[0] = 0;
	CHECK_EQ(ibtrs_srv_peers(w.srv, first, peers_each, NULL), 2);
	CHECK_STR(peers_seen, "local;local;");
	CHECK_EQ(ibtrs_srv_peers(w.srv, first + 1, NULL, NULL), 0);
	w.refuse_dial[0] = w.refuse_dial[1] = true;
	world_cut(&w, 0);
	world_turns(&w, 10);
	CHECK_EQ(ibtrs_srv_peers(w.srv, first, NULL, NULL), 1);
	world_cut(&w, 1);
	world_turns(&w, 10);
	CHECK_EQ(ibtrs_srv_peers(w.srv, first, NULL, NULL), 0);
	CHECK_EQ(gone_nr, 0);
	world_execute(&w, w.kept[0]);
	w.nr_kept = 0;
	CHECK_EQ(gone_nr, 1);
	CHECK_EQ(gone_session, first);
	/* The client comes back: another session of the same uuid. */
	w.refuse_dial[0] = w.refuse_dial[1] = false;
	for (unsigned int i = 0; i < 20000 && !w.nr_kept; i++) {
		struct ibtrs_io *done;

		world_turn(&w);
		ibtrs_q_poll(ibtrs_clt_q(w.clt, 0), &done, 1, 0);
	}
	if (!CHECK_EQ(w.nr_kept, 1))
		abort();
	CHECK(w.kept[0]->session != first);
	CHECK_MEM(w.kept[0]->uuid, uuid, sizeof(uuid));
	world_end(&w);
	CHECK_EQ(gone_nr, 2);
}
