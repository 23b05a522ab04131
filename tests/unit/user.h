/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Client and server of libibtrs in one process and one thread, with a wire between them that can be
 * cut after any byte, and a clock that moves when the test says so.
 *
 * The server keeps a disk of slots of WORLD_BLOCK bytes. The header of a request says which one, so
 * that what was executed can be compared with what was answered.
 */
#ifndef TEST_USER_H
#define TEST_USER_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "ibtrs/user/libibtrs.h"
#include "unit.h"

#define WORLD_BLOCKS	64
#define WORLD_BLOCK	512
#define WORLD_PATHS	2
#define WORLD_WIRES	64
#define WORLD_LATE	64

struct wire {
	int client, server;	/* our ends */
	unsigned int path;
	unsigned int cid;
	bool open;
};

struct world {
	uint64_t now;
	struct ibtrs_ctx *ctx;
	struct ibtrs_clt *clt;
	struct ibtrs_srv *srv;
	struct wire wires[WORLD_WIRES];
	unsigned int nr_wires;
	long budget[WORLD_PATHS];	/* bytes until the path is cut; < 0: never */
	long moved[WORLD_PATHS];
	bool refuse_dial[WORLD_PATHS];
	bool frozen[WORLD_PATHS];	/* nothing gets through, and nobody is told */
	size_t mtu[WORLD_PATHS];	/* more at a time gets lost; 0: no limit */
	unsigned int mtu_cid;		/* from this connection on; 0: from 1 */
	unsigned int dials[WORLD_PATHS];
	unsigned int grain;		/* bytes that a wire carries at a time */
	uint8_t disk[WORLD_BLOCKS][WORLD_BLOCK];
	unsigned int executed;
	bool late;			/* keep ops until the test answers them */
	struct ibtrs_op *kept[WORLD_LATE];
	unsigned int nr_kept;
	int answer;			/* an error for each op */
};

struct world_hdr {
	uint32_t block;
	uint32_t magic;
};

#define WORLD_MAGIC 0x77777777u

static uint64_t world_now(void *priv)
{
	return ((struct world *)priv)->now;
}

static void wire_cut(struct wire *w)
{
	if (!w->open)
		return;
	w->open = false;
	close(w->client);
	close(w->server);
}

__attribute__((unused))
static void world_cut(struct world *w, unsigned int path)
{
	unsigned int i;

	for (i = 0; i < w->nr_wires; i++)
		if (w->wires[i].path == path)
			wire_cut(&w->wires[i]);
}

/* client -- [0] .. [1] wire [0] .. [1] -- server */
static int world_dial(void *priv, const char *path, unsigned int cid)
{
	struct world *w = priv;
	unsigned int i, p = (unsigned int)(path[0] - 'A');
	int a[2], b[2];

	w->dials[p]++;
	if (w->refuse_dial[p])
		return -ENETUNREACH;
	for (i = 0; i < w->nr_wires && w->wires[i].open; i++)
		;
	if (i == WORLD_WIRES || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a))
		abort();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b))
		abort();
	if (i == w->nr_wires)
		w->nr_wires++;
	w->wires[i] = (struct wire){
		.client = a[1], .server = b[0], .path = p, .cid = cid, .open = true,
	};
	if (ibtrs_srv_take(w->srv, b[1]))
		abort();
	return a[0];
}

/* Moves up to @grain bytes from @from to @to. False: the end. */
static bool wire_move(struct world *w, struct wire *x, int from, int to)
{
	uint8_t buf[4096];
	size_t max = w->grain && w->grain < sizeof(buf) ? w->grain : sizeof(buf);
	long *budget = &w->budget[x->path];
	ssize_t n;

	if (*budget >= 0 && (size_t)*budget < max)
		max = (size_t)*budget;
	if (!max)
		return false;
	n = recv(from, buf, max, MSG_PEEK);
	if (n > 0 && x->cid >= (w->mtu_cid ?: 1) && w->mtu[x->path] &&
	    (size_t)n > w->mtu[x->path])
		return true;
	n = recv(from, buf, max, 0);
	if (n < 0)
		return errno == EAGAIN;
	if (!n || send(to, buf, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	w->moved[x->path] += n;
	if (*budget >= 0)
		*budget -= n;
	return true;
}

static void world_wires(struct world *w)
{
	unsigned int i;

	for (i = 0; i < w->nr_wires; i++) {
		struct wire *x = &w->wires[i];

		if (!x->open || w->frozen[x->path])
			continue;
		if (!wire_move(w, x, x->client, x->server) ||
		    !wire_move(w, x, x->server, x->client))
			wire_cut(x);
	}
	/* A path that was cut has lost all of its connections. */
	for (i = 0; i < WORLD_PATHS; i++) {
		if (w->budget[i])
			continue;
		world_cut(w, i);
		w->budget[i] = -1;
	}
}

__attribute__((unused))
static void world_execute(struct world *w, struct ibtrs_op *op)
{
	struct world_hdr h = { 0 };
	int err = w->answer;

	if (op->hdr_len >= sizeof(h))
		memcpy(&h, op->hdr, sizeof(h));
	if (h.magic != WORLD_MAGIC || h.block >= WORLD_BLOCKS || op->len > WORLD_BLOCK)
		err = -EINVAL;
	else if (op->dir == IBTRS_IO_WRITE)
		memcpy(w->disk[h.block], op->data, op->len);
	else
		memcpy(op->data, w->disk[h.block], op->len);
	w->executed++;
	ibtrs_op_reply(op, err);
}

/* One turn of everything but the client's queues. */
__attribute__((unused))
static void world_turn(struct world *w)
{
	struct ibtrs_op *op[8];
	int n, i;

	ibtrs_ctx_step(w->ctx, 0);
	world_wires(w);
	n = ibtrs_srv_poll(w->srv, op, 8, 0);
	for (i = 0; i < n; i++) {
		if (w->late && w->nr_kept < WORLD_LATE)
			w->kept[w->nr_kept++] = op[i];
		else
			world_execute(w, op[i]);
	}
	w->now++;
}

__attribute__((unused))
static uint32_t world_up(struct world *w)
{
	struct ibtrs_clt_info i = { .size = sizeof(i) };

	ibtrs_clt_info(w->clt, &i);
	return i.paths_up;
}

__attribute__((unused))
static bool world_until_up(struct world *w, uint32_t paths)
{
	unsigned int i;

	for (i = 0; i < 20000 && world_up(w) < paths; i++)
		world_turn(w);
	return world_up(w) >= paths;
}

static void world_open(struct world *w, const struct ibtrs_srv_opts *so, unsigned int paths,
		       const struct ibtrs_clt_opts *clt)
{
	static const char *const names[] = { "A", "B" };
	struct ibtrs_ctx_opts co = { .size = sizeof(co), .now_ms = world_now, .priv = w };
	struct ibtrs_srv_opts s = so ? *so : (struct ibtrs_srv_opts){ .queue_depth = 32 };
	struct ibtrs_clt_opts o = *clt;
	char why[IBTRS_WHY_LEN] = "";

	memset(w, 0, sizeof(*w));
	o.size = sizeof(o);
	o.flags |= IBTRS_CLT_NOWAIT;
	o.name = o.name ?: "test";
	o.dial = o.dial ?: world_dial;
	o.priv = w;
	w->now = 1000000;
	w->budget[0] = w->budget[1] = -1;
	s.size = sizeof(s);
	s.now_ms = world_now;
	s.priv = w;
	if (!CHECK_EQ(ibtrs_srv_new(&s, &w->srv, why), 0) ||
	    !CHECK_EQ(ibtrs_ctx_new(&w->ctx, &co), 0) ||
	    !CHECK_EQ(ibtrs_clt_open(w->ctx, names, paths, &o, &w->clt, why), 0)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
}

__attribute__((unused))
static void world_start(struct world *w, const struct ibtrs_srv_opts *so, unsigned int paths,
			unsigned int queues, uint32_t flags)
{
	const struct ibtrs_clt_opts o = { .flags = flags, .queues = queues };

	world_open(w, so, paths, &o);
}

__attribute__((unused))
static void world_turns(struct world *w, unsigned int n)
{
	while (n--)
		world_turn(w);
}

__attribute__((unused))
static void world_end(struct world *w)
{
	unsigned int i;

	ibtrs_clt_close(w->clt);
	CHECK_EQ(ibtrs_ctx_free(w->ctx), 0);
	for (i = 0; i < w->nr_kept; i++)
		world_execute(w, w->kept[i]);
	CHECK_EQ(ibtrs_srv_free(w->srv), 0);
	for (i = 0; i < w->nr_wires; i++)
		wire_cut(&w->wires[i]);
}

/* Submits @io and turns until it is handed back. Return: its result; 1: it never was. */
__attribute__((unused))
static int world_do(struct world *w, struct ibtrs_io *io)
{
	struct ibtrs_q *q = ibtrs_clt_q(w->clt, 0);
	struct ibtrs_io *done;
	unsigned int i;
	int n;

	n = ibtrs_q_submit(q, &io, 1);
	if (n != 1)
		return n;
	for (i = 0; i < 200000; i++) {
		world_turn(w);
		if (ibtrs_q_poll(q, &done, 1, 0) == 1)
			return done == io ? io->err : 2;
	}
	return 1;
}

__attribute__((unused))
static struct ibtrs_io world_io(enum ibtrs_io_dir dir, struct world_hdr *h, uint32_t block,
				void *data, uint32_t len)
{
	*h = (struct world_hdr){ .block = block, .magic = WORLD_MAGIC };
	return (struct ibtrs_io){
		.dir = dir, .hdr = h, .hdr_len = sizeof(*h), .data = data, .len = len,
	};
}

#endif
