/* SPDX-License-Identifier: GPL-2.0-only */
/* A disk of libibnbd and its server (disksrv.h) in one process; waiting for what becomes of it. */
#ifndef TEST_DISK_H
#define TEST_DISK_H

#include "disksrv.h"
#include "ibnbd/user/libibnbd.h"
#include "unit.h"

#define PAIR_BLOCKS	64
#define PAIR_MS		20000

struct pair {
	struct disksrv s;
	struct ibtrs_ctx *ctx;
	struct ibnbd_disk *disk;
	struct ibnbd_q *q;
	unsigned int paths;		/* 0: one */
	char why[IBTRS_WHY_LEN];
};

static int pair_open(struct pair *p, const char *name, const struct ibtrs_clt_opts *session,
		     const struct ibnbd_disk_opts *disk)
{
	static const char *const paths[] = { "A", "B" };
	struct ibtrs_clt_opts o = session ? *session : (struct ibtrs_clt_opts){};
	struct ibnbd_disk_opts d = disk ? *disk : (struct ibnbd_disk_opts){};
	int err;

	o.size = sizeof(o);
	o.name = o.name ?: "store1";
	o.dial = disksrv_dial;
	o.priv = &p->s;
	d.size = sizeof(d);
	p->why[0] = 0;
	p->disk = NULL;
	err = ibnbd_disk_open(p->ctx, name, paths, p->paths ?: 1, &o, &d, &p->disk, p->why);
	p->q = err ? NULL : ibnbd_disk_q(p->disk, 0);
	return err;
}

static void pair_prepare(struct pair *p)
{
	const struct ibtrs_ctx_opts co = { .size = sizeof(co), .flags = IBTRS_CTX_THREAD };

	p->disk = NULL;
	disksrv_start(&p->s, PAIR_BLOCKS);
	if (ibtrs_ctx_new(&p->ctx, &co))
		abort();
}

__attribute__((unused))
static void pair_start(struct pair *p, const struct ibnbd_disk_opts *disk)
{
	pair_prepare(p);
	if (!CHECK_EQ(pair_open(p, "db1", NULL, disk), 0)) {
		fprintf(stderr, "%s\n", p->why);
		abort();
	}
}

static void pair_end(struct pair *p)
{
	ibnbd_disk_close(p->disk);
	CHECK_EQ(ibtrs_ctx_free(p->ctx), 0);
	disksrv_end(&p->s);
}

static struct ibnbd_disk_info pair_info(struct pair *p)
{
	struct ibnbd_disk_info i = { .size = sizeof(i) };

	CHECK_EQ(ibnbd_disk_info(p->disk, &i), 0);
	return i;
}

/* A field of the server, read under its lock. */
#define SRV(p, field) ({						\
	pthread_mutex_lock(&(p)->s.lock);				\
	typeof((p)->s.field) srv_value = (p)->s.field;			\
	pthread_mutex_unlock(&(p)->s.lock);				\
	srv_value; })

#define SRV_DO(p, statement) do {					\
	pthread_mutex_lock(&(p)->s.lock);				\
	statement;							\
	pthread_mutex_unlock(&(p)->s.lock);				\
} while (0)

/* Waits for @cond. */
#define UNTIL(cond) ({							\
	unsigned int until_ms;						\
	for (until_ms = 0; until_ms < PAIR_MS && !(cond); until_ms++)	\
		usleep(1000);						\
	CHECK(cond); })

__attribute__((unused))
static bool pair_until(struct pair *p, const char *state)
{
	struct ibnbd_disk_info i = {};
	unsigned int ms;

	for (ms = 0; ms < PAIR_MS; ms++) {
		i = pair_info(p);
		if (!strcmp(i.state_detail, state))
			return true;
		usleep(1000);
	}
	return CHECK_STR(i.state_detail, state);
}

/* The disk has been opened again, so often. */
__attribute__((unused))
static void pair_until_opened(struct pair *p, u32 nr)
{
	struct ibtrs_path_info path = { .size = sizeof(path) };

	if (UNTIL(pair_info(p).opened >= nr && !strcmp(pair_info(p).state, "open")))
		return;
	ibtrs_clt_path_info(ibnbd_disk_session(p->disk), 0, &path);
	fprintf(stderr, "path %s: %s; disk %s: %s\n", path.state, path.why,
		pair_info(p).state_detail, pair_info(p).reason);
}

/* Requests of one block each, block after block. */
struct batch {
	unsigned int nr, got;
	struct ibnbd_req req[32];
	u8 data[32][DISKSRV_BLOCK];
};

__attribute__((unused))
static void batch_submit(struct pair *p, struct batch *b, enum ibnbd_req_op op, unsigned int nr,
			 u8 seed)
{
	struct ibnbd_req *r;
	unsigned int i;

	b->nr = nr;
	b->got = 0;
	for (i = 0; i < nr; i++) {
		memset(b->data[i], op == IBNBD_REQ_WRITE ? (int)(seed + i) : 0, DISKSRV_BLOCK);
		b->req[i] = (struct ibnbd_req){
			.op = (u8)op, .len = DISKSRV_BLOCK, .offset = i * DISKSRV_BLOCK,
			.data = b->data[i], .err = 1, .user = b,
		};
		r = &b->req[i];
		CHECK_EQ(ibnbd_q_submit(p->q, &r, 1), 1);
	}
}

/* Waits for all of them, and counts those of other batches. Return: the last error. */
__attribute__((unused))
static int batch_wait(struct pair *p, struct batch *b)
{
	struct ibnbd_req *done[32];
	unsigned int i;
	int n, err = 0;

	while (b->got < b->nr) {
		n = ibnbd_q_poll(p->q, done, 32, PAIR_MS);
		if (!CHECK(n > 0))
			return 1;
		while (n-- > 0)
			((struct batch *)done[n]->user)->got++;
	}
	for (i = 0; i < b->nr; i++) {
		err = b->req[i].err ?: err;
		CHECK_EQ(!!b->req[i].err, !!b->req[i].why);
	}
	return err;
}

__attribute__((unused))
static void batch_on_disk(struct pair *p, const struct batch *b)
{
	unsigned int i;

	pthread_mutex_lock(&p->s.lock);
	for (i = 0; i < b->nr; i++)
		CHECK_MEM(p->s.disk + i * DISKSRV_BLOCK, b->data[i], DISKSRV_BLOCK);
	pthread_mutex_unlock(&p->s.lock);
}

#endif
