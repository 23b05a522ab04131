// SPDX-License-Identifier: GPL-2.0-only
/* Paths of libibtrs that are lost and come back, at any byte of an exchange. */
#include "ibtrs/logic/retry.h"
#include "user.h"

#define NR	6

struct load {
	struct world_hdr h[NR];
	struct ibtrs_io io[NR];
	uint8_t data[NR][WORLD_BLOCK];
	unsigned int done;
};

static void fill(uint8_t *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 37 + i * 11 + 1);
}

static void load_submit(struct world *w, struct load *l, enum ibtrs_io_dir dir, unsigned int seed)
{
	struct ibtrs_io *p;
	unsigned int i;

	l->done = 0;
	for (i = 0; i < NR; i++) {
		if (dir == IBTRS_IO_WRITE)
			fill(l->data[i], WORLD_BLOCK, seed + i);
		else
			memset(l->data[i], 0, WORLD_BLOCK);
		l->io[i] = world_io(dir, &l->h[i], i, l->data[i], WORLD_BLOCK);
		l->io[i].user = l;
		l->io[i].err = 1;
		p = &l->io[i];
		CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w->clt, 0), &p, 1), 1);
	}
}

static void load_collect(struct world *w, struct load *l)
{
	struct ibtrs_io *done[NR];
	int n = ibtrs_q_poll(ibtrs_clt_q(w->clt, 0), done, NR, 0);

	while (n-- > 0) {
		CHECK(done[n]->user == l);
		l->done++;
	}
}

static bool load_wait(struct world *w, struct load *l, unsigned int turns)
{
	while (turns-- && l->done < NR) {
		world_turn(w);
		load_collect(w, l);
	}
	return l->done == NR;
}

/* Writes, reads back, and compares with the disk. False: something did not end, or went wrong. */
static bool exchange(struct world *w, struct load *l, unsigned int seed)
{
	uint8_t want[WORLD_BLOCK];
	bool ok = true;
	unsigned int i;

	load_submit(w, l, IBTRS_IO_WRITE, seed);
	ok &= CHECK(load_wait(w, l, 30000));
	for (i = 0; i < NR && ok; i++)
		ok &= CHECK_EQ(l->io[i].err, 0);
	load_submit(w, l, IBTRS_IO_READ, 0);
	ok &= CHECK(load_wait(w, l, 30000));
	for (i = 0; i < NR && ok; i++) {
		fill(want, WORLD_BLOCK, seed + i);
		ok &= CHECK_EQ(l->io[i].err, 0);
		ok &= CHECK_MEM(l->data[i], want, WORLD_BLOCK);
		ok &= CHECK_MEM(w->disk[i], want, WORLD_BLOCK);
	}
	return ok;
}

/*
 * Path A carries so many bytes and is cut, whatever is going on: the handshake, a frame, a payload,
 * an answer. Nothing is lost or wrong, and the path comes back. @step: bytes from one try to the
 * next; @first: where to begin.
 */
static void cut_anywhere(unsigned int paths, long first, long step)
{
	static struct world w;
	struct load l;
	long cut, all = 0;
	bool ok = true;

	for (cut = -1; ok && cut < all; cut = cut < 0 ? first : cut + step) {
		UNIT_ROW("%u paths, cut after %ld bytes", paths, cut);
		world_start(&w, NULL, paths, 1, 0);
		w.grain = 300;
		w.budget[0] = cut ? cut : -1;
		if (cut < 0)
			world_until_up(&w, paths);
		else
			ok &= CHECK(world_until_up(&w, 1));
		ok &= exchange(&w, &l, (unsigned int)cut);
		if (cut < 0)
			all = w.moved[0];
		ok &= CHECK(world_until_up(&w, paths));
		ok &= exchange(&w, &l, 99);
		CHECK(ibtrs_clt_settled(w.clt));
		world_end(&w);
	}
	CHECK(all > 3000);
}

UNIT_TEST(one_of_two_paths_is_cut)
{
	cut_anywhere(2, 1, 61);
}

UNIT_TEST(the_only_path_is_cut)
{
	cut_anywhere(1, 1, 89);
}

/* The server still executes what came over the lost path: the repetition waits for it. */
UNIT_TEST(a_repetition_waits_for_the_first_execution)
{
	struct ibtrs_io io, *p = &io, *done;
	uint8_t data[WORLD_BLOCK];
	struct ibtrs_path_info a = { .size = sizeof(a) };
	struct ibtrs_q *q;
	struct world_hdr h;
	struct world w;
	unsigned int i, path;

	world_start(&w, NULL, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	q = ibtrs_clt_q(w.clt, 0);
	fill(data, sizeof(data), 1);
	io = world_io(IBTRS_IO_WRITE, &h, 5, data, sizeof(data));
	w.late = true;
	CHECK_EQ(ibtrs_q_submit(q, &p, 1), 1);
	for (i = 0; i < 20 && !w.nr_kept; i++)
		world_turn(&w);
	CHECK_EQ(w.nr_kept, 1);
	/* cut the path that has it: the one with more traffic */
	path = w.moved[1] > w.moved[0];
	w.refuse_dial[path] = true;
	world_cut(&w, path);
	for (i = 0; i < 100; i++) {
		CHECK_EQ(ibtrs_q_poll(q, &done, 1, 0), 0);
		world_turn(&w);
	}
	CHECK_EQ(w.nr_kept, 1);
	CHECK(!ibtrs_clt_settled(w.clt));
	/* the server keeps the path out as long as the first copy runs, and that is no failure */
	w.refuse_dial[path] = false;
	world_turns(&w, 2000);
	CHECK_EQ(world_up(&w), 1);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, path, &a), 0);
	CHECK_EQ(a.err, -EBUSY);
	CHECK_STR(a.why, "the server says: the path's old incarnation is still draining");
	/* it ends, and the second one runs */
	w.late = false;
	w.nr_kept = 0;
	world_execute(&w, w.kept[0]);
	CHECK_EQ(w.executed, 1);
	for (i = 0; i < 100 && ibtrs_q_poll(q, &done, 1, 0) != 1; i++)
		world_turn(&w);
	CHECK_EQ(io.err, 0);
	CHECK_EQ(w.executed, 2);
	CHECK(world_until_up(&w, 2));
	CHECK(ibtrs_clt_settled(w.clt));
	world_end(&w);
}

/* The same, of what the client waits for no more: neither its path nor its slot waits. */
UNIT_TEST(what_may_be_forgotten_holds_nothing_up)
{
	struct ibtrs_io io, *p = &io, *done;
	uint8_t data[WORLD_BLOCK];
	struct world_hdr h;
	struct world w;
	struct load l;
	unsigned int before, i;

	for (before = 0; before < 2; before++) {
		UNIT_ROW("forgotten %s the path is lost", before ? "before" : "after");
		world_start(&w, NULL, 1, 1, 0);
		CHECK(world_until_up(&w, 1));
		fill(data, sizeof(data), 1);
		io = world_io(IBTRS_IO_WRITE, &h, 5, data, sizeof(data));
		w.late = true;
		CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), &p, 1), 1);
		for (i = 0; i < 20 && !w.nr_kept; i++)
			world_turn(&w);
		CHECK_EQ(w.nr_kept, 1);
		w.late = false;
		if (before)
			ibtrs_op_may_forget(w.kept[0]);
		world_cut(&w, 0);
		if (!before) {
			world_turns(&w, 2000);
			CHECK_EQ(world_up(&w), 0);
			ibtrs_op_may_forget(w.kept[0]);
		}
		CHECK(world_until_up(&w, 1));
		for (i = 0; i < 100 && ibtrs_q_poll(ibtrs_clt_q(w.clt, 0), &done, 1, 0) != 1; i++)
			world_turn(&w);
		CHECK_EQ(io.err, 0);
		CHECK_EQ(w.executed, 1);
		CHECK(exchange(&w, &l, 7));
		/* its owner answers: nobody hears that, and its memory goes */
		w.nr_kept = 0;
		world_execute(&w, w.kept[0]);
		CHECK(exchange(&w, &l, 8));
		CHECK(ibtrs_clt_settled(w.clt));
		world_end(&w);
	}
}

UNIT_TEST(requests_are_held_and_sent_again)
{
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct world w;
	struct load l;

	world_start(&w, NULL, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	w.refuse_dial[0] = w.refuse_dial[1] = true;
	w.late = true;
	load_submit(&w, &l, IBTRS_IO_WRITE, 3);
	world_turns(&w, 10);
	CHECK_EQ(w.nr_kept, NR);
	world_cut(&w, 0);
	world_cut(&w, 1);
	world_turns(&w, 5000);
	load_collect(&w, &l);
	CHECK_EQ(l.done, 0);
	CHECK_EQ(ibtrs_clt_info(w.clt, &info), 0);
	CHECK_EQ(info.paths_up, 0);
	CHECK_EQ(info.parked, NR);
	/* while requests wait, a path is tried each second at least */
	w.refuse_dial[0] = false;
	w.late = false;
	while (w.nr_kept)
		world_execute(&w, w.kept[--w.nr_kept]);
	CHECK(load_wait(&w, &l, 1300));
	CHECK_EQ(l.io[0].err, 0);
	CHECK_EQ(w.executed, 2 * NR);
	CHECK_EQ(ibtrs_clt_info(w.clt, &info), 0);
	CHECK_EQ(info.ups, 2);
	CHECK_EQ(info.parked, 0);
	world_end(&w);
}

static void count_links(void *priv)
{
	++*(unsigned int *)priv;
}

UNIT_TEST(sent_again_only_when_the_user_says_so)
{
	unsigned int links = 0;
	struct ibtrs_clt_info info = { .size = sizeof(info) };
	struct ibtrs_clt_opts o = {
		.flags = IBTRS_CLT_ASK_REPLAY, .link = count_links, .link_priv = &links,
	};
	struct ibtrs_io *got[3 * NR];
	struct world w;
	struct load l, m, n;
	int done = 0, i;

	world_open(&w, NULL, 1, &o);
	CHECK(world_until_up(&w, 1));
	w.late = true;
	load_submit(&w, &l, IBTRS_IO_WRITE, 3);
	world_turns(&w, 10);
	CHECK_EQ(w.nr_kept, NR);
	world_cut(&w, 0);
	world_turns(&w, 3);
	CHECK_EQ(world_up(&w), 0);
	w.late = false;
	while (w.nr_kept)
		world_execute(&w, w.kept[--w.nr_kept]);
	load_submit(&w, &m, IBTRS_IO_READ, 0);
	CHECK(world_until_up(&w, 1));
	load_wait(&w, &m, 0);
	load_submit(&w, &n, IBTRS_IO_READ, 0);
	world_turns(&w, 100);
	/* nothing goes out: neither what was sent before, nor what never was */
	load_collect(&w, &m);
	CHECK_EQ(m.done, 0);
	CHECK_EQ(w.executed, NR);
	CHECK_EQ(ibtrs_clt_info(w.clt, &info), 0);
	CHECK_EQ(info.parked, 3 * NR);
	CHECK_EQ(links, 3);
	CHECK_EQ(ibtrs_clt_replay(w.clt, info.ups - 1), -ESTALE);
	world_turns(&w, 10);
	CHECK_EQ(w.executed, NR);
	CHECK_EQ(ibtrs_clt_replay(w.clt, info.ups), 0);
	for (i = 0; i < 100; i++) {
		world_turn(&w);
		done += ibtrs_q_poll(ibtrs_clt_q(w.clt, 0), got, 3 * NR, 0);
	}
	CHECK_EQ(done, 3 * NR);
	CHECK_EQ(w.executed, 4 * NR);
	world_end(&w);
}

UNIT_TEST(abort_ends_what_is_parked)
{
	struct world w;
	struct load l;
	unsigned int i;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	w.refuse_dial[0] = true;
	w.late = true;
	load_submit(&w, &l, IBTRS_IO_WRITE, 3);
	CHECK_EQ(ibtrs_q_abort(ibtrs_clt_q(w.clt, 0), -EIO), 0);
	world_turns(&w, 10);
	world_cut(&w, 0);
	world_turns(&w, 10);
	CHECK_EQ(ibtrs_q_abort(ibtrs_clt_q(w.clt, 0), -ETIME), NR);
	load_collect(&w, &l);
	CHECK_EQ(l.done, NR);
	for (i = 0; i < NR; i++)
		CHECK_EQ(l.io[i].err, -ETIME);
	CHECK(!ibtrs_clt_settled(w.clt));
	w.refuse_dial[0] = false;
	world_turns(&w, 3000);
	/* the server has not ended them */
	CHECK_EQ(world_up(&w), 0);
	w.late = false;
	while (w.nr_kept)
		world_execute(&w, w.kept[--w.nr_kept]);
	CHECK(world_until_up(&w, 1));
	CHECK(ibtrs_clt_settled(w.clt));
	CHECK(exchange(&w, &l, 4));
	world_end(&w);
}

/* Nothing gets through, and no socket says so: heartbeats find it on both sides. */
UNIT_TEST(silence)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };
	uint64_t since, least = UINT64_MAX;
	struct world w;
	struct load l;
	unsigned int i;

	world_start(&w, NULL, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	/* of many heartbeats, since the host may let one wait */
	for (i = 0; i < 20; i++) {
		world_turns(&w, 1000);
		CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
		if (info.latency_us && info.latency_us < least)
			least = info.latency_us;
	}
	CHECK_EQ(world_up(&w), 2);
	CHECK_EQ(info.established, 1);
	CHECK(least <= 4000);
	since = w.now;
	w.frozen[0] = true;
	load_submit(&w, &l, IBTRS_IO_WRITE, 3);
	CHECK(load_wait(&w, &l, 6000));
	CHECK(w.now - since >= 3000);
	CHECK(w.now - since <= 5100);
	CHECK_EQ(l.io[0].err | l.io[1].err | l.io[2].err, 0);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
	CHECK_STR(info.why, "no sign of life from the server");
	CHECK_EQ(info.err, -ETIMEDOUT);
	/* attempts end by their deadline */
	world_turns(&w, 20000);
	CHECK_EQ(world_up(&w), 1);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
	CHECK_STR(info.why, "the server did not answer in time");
	w.frozen[0] = false;
	world_cut(&w, 0);
	CHECK(world_until_up(&w, 2));
	world_end(&w);
}

/* Without requests a path is tried with the pace of an idle session, and at once with the first. */
UNIT_TEST(pace_of_attempts)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };
	unsigned int before, i;
	struct world w;
	struct load l;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	w.refuse_dial[0] = true;
	world_cut(&w, 0);
	world_turns(&w, 40000);
	before = w.dials[0];
	world_turns(&w, 40000);
	CHECK(w.dials[0] - before >= 4);
	CHECK(w.dials[0] - before <= 7);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
	CHECK_EQ(info.err, -ENETUNREACH);
	CHECK(info.wait_ms <= 9600);
	for (i = 0; i < 20000 && info.wait_ms < 2000; i++) {
		world_turn(&w);
		ibtrs_clt_path_info(w.clt, 0, &info);
	}
	before = w.dials[0];
	load_submit(&w, &l, IBTRS_IO_WRITE, 1);
	world_turns(&w, 2);
	CHECK_EQ(w.dials[0] - before, 1);
	world_turns(&w, 10000);
	CHECK(w.dials[0] - before >= 8);
	w.refuse_dial[0] = false;
	CHECK(load_wait(&w, &l, 1300));
	world_end(&w);
}

/* The server is another one: the session is made anew, and counts from the beginning. */
UNIT_TEST(the_server_begins_anew)
{
	struct ibtrs_clt_info a = { .size = sizeof(a) }, b = a;
	struct ibtrs_srv_opts so = { .size = sizeof(so), .queue_depth = 32, .now_ms = world_now };
	struct ibtrs_path_info info = { .size = sizeof(info) };
	char why[IBTRS_WHY_LEN];
	struct world w;
	struct load l;

	world_start(&w, NULL, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	CHECK(exchange(&w, &l, 1));
	CHECK_EQ(ibtrs_clt_info(w.clt, &a), 0);
	CHECK_EQ(ibtrs_srv_free(w.srv), 0);
	so.priv = &w;
	CHECK_EQ(ibtrs_srv_new(&so, &w.srv, why), 0);
	CHECK(exchange(&w, &l, 2));
	CHECK(world_until_up(&w, 2));
	CHECK_EQ(ibtrs_clt_info(w.clt, &b), 0);
	CHECK_EQ(b.ups, 2);
	CHECK(b.life != a.life);
	/* with another depth the session cannot go on */
	CHECK_EQ(ibtrs_srv_free(w.srv), 0);
	so.queue_depth = 64;
	CHECK_EQ(ibtrs_srv_new(&so, &w.srv, why), 0);
	world_turns(&w, 3000);
	CHECK_EQ(world_up(&w), 0);
	CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
	CHECK_STR(info.why,
		  "the server changed its queue depth: close the session and open it again");
	world_end(&w);
}

/* Requests are spread over the paths in turn. */
UNIT_TEST(round_robin)
{
	struct world w;
	struct load l;
	long before[2];

	world_start(&w, NULL, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	before[0] = w.moved[0];
	before[1] = w.moved[1];
	CHECK(exchange(&w, &l, 1));
	CHECK(w.moved[0] - before[0] > NR * WORLD_BLOCK);
	CHECK(w.moved[1] - before[1] > NR * WORLD_BLOCK);
	world_end(&w);
}

/* A path that falls silent again and again rests, and is tried with one request when it is back. */
UNIT_TEST(a_path_that_is_not_trusted)
{
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct world_hdr h[4];
	struct ibtrs_io io[4], *p[4] = { &io[0], &io[1], &io[2], &io[3] }, *done[4];
	uint8_t data[WORLD_BLOCK] = { 0 };
	unsigned int i, got = 0;
	struct world w;
	long before;

	world_start(&w, NULL, 2, 1, 0);
	CHECK(world_until_up(&w, 2));
	for (i = 0; i < 2; i++) {
		w.frozen[0] = true;
		world_turns(&w, 5200);
		CHECK_EQ(world_up(&w), 1);
		CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
		/* two marks each time: the second time it rests 10 s and not 0.1 s */
		if (i)
			CHECK(info.wait_ms > 6000);
		else
			CHECK(info.wait_ms < 2000);
		w.frozen[0] = false;
		world_cut(&w, 0);
		CHECK(world_until_up(&w, 2));
		CHECK_EQ(ibtrs_clt_path_info(w.clt, 0, &info), 0);
		CHECK_EQ(info.established, i + 2);
	}
	world_turns(&w, 1100);
	w.late = true;
	before = w.moved[0];
	for (i = 0; i < 4; i++)
		io[i] = world_io(IBTRS_IO_WRITE, &h[i], i, data, sizeof(data));
	CHECK_EQ(ibtrs_q_submit(ibtrs_clt_q(w.clt, 0), p, 4), 4);
	for (i = 0; i < 20 && w.nr_kept < 4; i++)
		world_turn(&w);
	CHECK_EQ(w.nr_kept, 4);
	CHECK(w.moved[0] - before >= WORLD_BLOCK);
	CHECK(w.moved[0] - before < 2 * WORLD_BLOCK);
	while (w.nr_kept)
		world_execute(&w, w.kept[--w.nr_kept]);
	for (i = 0; i < 20; i++) {
		world_turn(&w);
		got += (unsigned int)ibtrs_q_poll(ibtrs_clt_q(w.clt, 0), done, 4, 0);
	}
	CHECK_EQ(got, 4);
	world_end(&w);
}

UNIT_TEST(a_path_is_given_up)
{
	static const char *const paths[] = { "B" };
	struct ibtrs_path_info info = { .size = sizeof(info) };
	struct ibtrs_clt_opts o = {
		.size = sizeof(o), .flags = IBTRS_CLT_NOWAIT, .name = "other", .max_attempts = 3,
		.dial = world_dial,
	};
	struct ibtrs_clt *other;
	char why[IBTRS_WHY_LEN];
	struct world w;

	world_start(&w, NULL, 1, 1, 0);
	CHECK(world_until_up(&w, 1));
	o.priv = &w;
	w.refuse_dial[1] = true;
	CHECK_EQ(ibtrs_clt_open(w.ctx, paths, 1, &o, &other, why), 0);
	world_turns(&w, 20000);
	CHECK_EQ(ibtrs_clt_path_info(other, 0, &info), 0);
	CHECK_STR(info.state, "closed");
	CHECK_EQ(info.err, -ENETUNREACH);
	CHECK_EQ(w.dials[1], 3);
	ibtrs_clt_close(other);
	CHECK_EQ(world_up(&w), 1);
	world_end(&w);
}

UNIT_TEST(closed_before_it_connects)
{
	struct world w;

	world_start(&w, NULL, 2, 1, 0);
	ibtrs_clt_shut(w.clt);
	CHECK_EQ(w.dials[0] + w.dials[1], 0);
	world_turns(&w, 100);
	CHECK_EQ(w.dials[0] + w.dials[1], 0);
	world_end(&w);
}
