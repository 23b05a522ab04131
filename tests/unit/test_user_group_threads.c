// SPDX-License-Identifier: GPL-2.0-only
/*
 * A group of libibtrs under load: three servers with a thread each, two queues with a thread each,
 * and a leg that lags, and is out and in again. Each thread writes to blocks of its own, makes up
 * for what the leg has missed, and reads: it must never get what was there before a write that it
 * has back.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "ibtrs/user/libibtrs.h"
#include "unit.h"

#define LEGS	3
#define LAME	2		/* the leg that is out now and then */
#define QUEUES	2
#define BLOCKS	4		/* of each queue */
#define WORDS	64
#define ROUNDS	400

struct server {
	struct ibtrs_srv *srv;
	pthread_t thread;
	uint32_t disk[QUEUES * BLOCKS][WORDS];
};

struct req {
	struct ibtrs_gio io;
	struct ibtrs_io leg[LEGS];
	uint32_t block;			/* the header */
	uint32_t data[WORDS];
	uint32_t repairs;
	bool told;
};

struct worker {
	pthread_t thread;
	struct ibtrs_group *g;
	struct ibtrs_gq *q;
	uint32_t first;
	uint32_t version[BLOCKS];
	uint32_t failed[BLOCKS];	/* writes that the lame leg has missed */
	unsigned int live, reads, bad, repaired;
};

static struct server servers[LEGS];
static bool stop;
static uint64_t made_up;

static void *serve(void *arg)
{
	struct server *s = arg;
	struct ibtrs_op *op[8];
	uint32_t block;
	int n, i;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		n = ibtrs_srv_poll(s->srv, op, 8, 20);
		/* It lags, too: a quorum is there before it. */
		if (n > 0 && s == &servers[LAME])
			usleep(300);
		for (i = 0; i < n; i++) {
			memcpy(&block, op[i]->hdr, sizeof(block));
			if (op[i]->dir == IBTRS_IO_WRITE)
				memcpy(s->disk[block], op[i]->data, op[i]->len);
			else
				memcpy(op[i]->data, s->disk[block], op[i]->len);
			ibtrs_op_reply(op[i], 0);
		}
	}
	return NULL;
}

static struct req *submit(struct worker *w, enum ibtrs_io_dir dir, uint32_t block, uint32_t legs)
{
	struct req *r = calloc(1, sizeof(*r));
	struct ibtrs_gio *io = &r->io;
	unsigned int i;

	r->block = w->first + block;
	for (i = 0; i < WORDS; i++)
		r->data[i] = dir == IBTRS_IO_WRITE ? w->version[block] : 0;
	*io = (struct ibtrs_gio){
		.dir = dir, .hdr = &r->block, .hdr_len = sizeof(r->block), .data = r->data,
		.len = sizeof(r->data), .legs = legs, .leg = r->leg, .user = r,
	};
	if (ibtrs_gq_submit(w->q, &io, 1) != 1)
		abort();
	w->live++;
	return r;
}

static void ended(struct worker *w, struct req *r)
{
	uint32_t block = r->block - w->first;
	int err = r->leg[LAME].err;

	w->live--;
	if (r->io.dir == IBTRS_IO_WRITE && err && err != -ENODATA)
		w->failed[block] += r->repairs + 1;
	if (r->repairs && !err) {
		w->repaired += r->repairs;
		ibtrs_group_whole(w->g, LAME, __atomic_add_fetch(&made_up, r->repairs,
								 __ATOMIC_SEQ_CST));
	}
	free(r);
}

/* Until @until is handed back; that stays. NULL: whatever comes. Return: its result. */
static int turn(struct worker *w, struct req *until)
{
	struct ibtrs_gio *done[8];
	bool back = !until;
	int n, i, err = 0;

	do {
		n = ibtrs_gq_poll(w->q, done, 8, 1000);
		for (i = 0; i < n; i++) {
			struct req *r = done[i]->user;

			if (r == until && !r->told) {
				back = true;
				err = r->io.err;
			}
			r->told = true;
			if (!r->io.left && (r != until || r->io.dir == IBTRS_IO_WRITE))
				ended(w, r);
		}
	} while (!back);
	return err;
}

static void read_back(struct worker *w, uint32_t block)
{
	struct req *r;
	int err;

	do {
		r = submit(w, IBTRS_IO_READ, block, 0);
		err = turn(w, r);
		if (!err) {
			w->bad += r->data[0] != w->version[block];
			w->bad += r->data[WORDS - 1] != w->version[block];
			__atomic_store_n(&w->reads, w->reads + 1, __ATOMIC_RELAXED);
		} else {
			w->bad += err != -ENODATA;
		}
		ended(w, r);
	} while (err == -ENODATA);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t seed = 7 + w->first;
	uint32_t round, block;

	for (round = 1; round <= ROUNDS; round++) {
		block = (uint32_t)(unit_random(&seed) % BLOCKS);
		w->version[block] = round;
		w->bad += !!turn(w, submit(w, IBTRS_IO_WRITE, block, 0));
		read_back(w, block);
		for (block = 0; block < BLOCKS && round % 4 == 0; block++) {
			struct req *r;

			if (!w->failed[block])
				continue;
			r = submit(w, IBTRS_IO_WRITE, block, 1u << LAME);
			r->repairs = w->failed[block];
			w->failed[block] = 0;
		}
	}
	while (w->live)
		turn(w, NULL);
	return NULL;
}

static bool busy(const struct worker *w)
{
	unsigned int i, live = 0;

	for (i = 0; i < QUEUES; i++)
		live += __atomic_load_n(&w[i].reads, __ATOMIC_RELAXED) < ROUNDS;
	return live;
}

UNIT_TEST(a_leg_comes_and_goes)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };
	const struct ibtrs_group_opts o = {
		.size = sizeof(o), .flags = IBTRS_GROUP_EARLY, .quorum = 2,
	};
	const struct ibtrs_clt_opts clt_opts = {
		.size = sizeof(clt_opts), .name = "group", .queues = QUEUES,
	};
	struct ibtrs_leg_info info = { .size = sizeof(info) };
	static struct worker w[QUEUES];
	struct ibtrs_clt *clt[LEGS];
	char why[IBTRS_WHY_LEN], at[48];
	const char *path = at;
	struct ibtrs_group *g;
	struct ibtrs_ctx *ctx;
	unsigned int i;

	CHECK_EQ(ibtrs_ctx_new(&ctx, &co), 0);
	for (i = 0; i < LEGS; i++) {
		snprintf(at, sizeof(at), "unix:/tmp/ibtrs-group-%d-%u", getpid(), i);
		if (!CHECK_EQ(ibtrs_srv_new(NULL, &servers[i].srv, why), 0) ||
		    !CHECK_EQ(ibtrs_srv_listen(servers[i].srv, at, why), 0) ||
		    !CHECK_EQ(pthread_create(&servers[i].thread, NULL, serve, &servers[i]), 0) ||
		    !CHECK_EQ(ibtrs_clt_open(ctx, &path, 1, &clt_opts, &clt[i], why), 0))
			abort();
	}
	CHECK_EQ(ibtrs_group_new(clt, LEGS, &o, &g, why), 0);
	for (i = 0; i < QUEUES; i++) {
		w[i] = (struct worker){
			.g = g, .q = ibtrs_group_q(g, i), .first = i * BLOCKS,
		};
		CHECK_EQ(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; busy(w); i++) {
		CHECK_EQ(ibtrs_group_out(g, LAME, i % 2), 0);
		usleep(3000);
	}
	CHECK_EQ(ibtrs_group_out(g, LAME, false), 0);
	for (i = 0; i < QUEUES; i++) {
		pthread_join(w[i].thread, NULL);
		UNIT_ROW("queue %u", i);
		CHECK_EQ(w[i].bad, 0);
		CHECK_EQ(w[i].reads, ROUNDS);
		CHECK(w[i].repaired > 0);
	}
	CHECK_EQ(ibtrs_group_leg(g, LAME, &info), 0);
	CHECK(info.missed >= made_up);
	CHECK_EQ(info.owes, 0);
	CHECK_EQ(ibtrs_group_free(g), 0);
	for (i = 0; i < LEGS; i++)
		ibtrs_clt_close(clt[i]);
	CHECK_EQ(ibtrs_ctx_free(ctx), 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < LEGS; i++) {
		pthread_join(servers[i].thread, NULL);
		CHECK_EQ(ibtrs_srv_free(servers[i].srv), 0);
	}
}
